"""What works on chunks of agents, wherever that is: results come back in the order of the chunks."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol, TypeVar

from nous_online.core.errors import DeadlineExceeded, NousError, Unavailable
from nous_online.core.files import keep_private
from nous_online.core.settings import Settings

C = TypeVar("C")
R = TypeVar("R")
OnDone = Callable[[int, int], None]
"""Is told how many chunks of how many are done."""
MOST_LOST = 3
"""Workers that may end over one chunk before the chunk is held to be the cause."""
MOST_LATE = 2
"""Times a chunk may pass its deadline: the first time the machine may have been busy."""


class Engine(Protocol):
    """Maps a function over chunks."""

    @property
    def width(self) -> int:
        """How many chunks it works on at once."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether functions run in this process; otherwise function, chunks and results have to be picklable."""
        ...

    @property
    def shares_settings(self) -> bool:
        """Whether workers know what this process was told; otherwise they go by their own environment."""
        ...

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        """Return the results of a function in the order of the chunks.

        What the function raises for a chunk is raised here, and no other chunk is begun. Raises `DeadlineExceeded`
        for a chunk that does not end in its time, and `Unavailable` when workers are lost again and again.
        """
        ...

    def close(self) -> None:
        """End what it started."""
        ...


class InProcess:
    """Works on one chunk after the other, in this process."""

    width = 1
    shares_memory = True
    shares_settings = True

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        """Return the results of a function in the order of the chunks."""
        found: list[R] = []
        for chunk in chunks:
            found.append(function(chunk))
            if on_done is not None:
                on_done(len(found), len(chunks))
        return found

    def close(self) -> None:
        """Do nothing: nothing was started."""


def engine_of(settings: Settings) -> Engine:
    """Return the engine that NOUS_ENGINE names.

    Raises `Unavailable` when it can't be reached, and `Unsupported` when its extra is missing or a worker differs.
    """
    kind, _, place = settings.engine.partition(":")
    if kind == "in-process":
        return InProcess()
    if kind == "processes":
        return ProcessPool(int(place) if place else os.cpu_count() or 1, deadline_s=settings.engine_deadline_s)
    from nous_pipelines.engines.dask_engine import DaskEngine

    return DaskEngine(settings.engine, deadline_s=settings.engine_deadline_s)


def too_late(chunk: object, deadline_s: float, where: str) -> DeadlineExceeded:
    """Return what is raised for a chunk that passed its deadline."""
    return DeadlineExceeded(
        f"{chunk} took longer than {deadline_s:g} s on {where}; raise NOUS_ENGINE_DEADLINE_S, or look at its agents"
    )


def too_many_lost(chunk: object, count: int, how: str) -> Unavailable:
    """Return what is raised for a chunk over which workers end again and again."""
    return Unavailable(f"{count} workers ended over {chunk} ({how}); look for too little memory, then run it again")


def portable(error: Exception) -> Exception:
    """Return an error that comes through to another process: as it is where it can be pickled, with its traceback."""
    where = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    except Exception:  # whatever an error's own `__reduce__` or `__init__` raises
        copy = None
    if type(copy) is not type(error) or str(copy) != str(error):
        error = Unavailable(str(error)) if isinstance(error, NousError) else RuntimeError(f"{type(error)}: {error}")
    if not isinstance(error, NousError):
        error.add_note(f"in a worker:\n{where}")
    return error


# --- processes ---

SPAWN = multiprocessing.get_context("spawn")
"""A fork would copy locks that threads of Polars hold."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
JOIN_S = 5.0


@dataclass
class PoolWorker:
    """A process, how to talk to it, and since when it works on which chunk."""

    process: SpawnProcess
    connection: Any
    """An end of a pipe, which Python calls otherwise on every platform."""
    is_ready: bool = False
    chunk: int | None = None
    since: float = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a chunk."""
        return self.is_ready and self.chunk is None

    def give(self, function: Callable[[Any], Any], place: int, chunk: object) -> None:
        """Hand over a chunk; a worker that has ended is noticed when it is waited for."""
        self.chunk, self.since = place, time.monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send_bytes(pickle.dumps((function, chunk)))

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join(JOIN_S)
        self.connection.close()


@dataclass
class PoolRound:
    """The chunks of one `map`: which wait, which are done, and how often each was begun in vain."""

    function: Callable[[Any], Any]
    chunks: Sequence[Any]
    deadline_s: float
    waiting: deque[int] = field(default_factory=deque[int])
    results: dict[int, Any] = field(default_factory=dict[int, Any])
    lost: Counter[int] = field(default_factory=Counter[int])
    late: Counter[int] = field(default_factory=Counter[int])

    def take(self, worker: PoolWorker) -> bool:
        """Take the answer of a worker that has one, or has ended; return whether it lives.

        Raises what the function raised, and `Unavailable` for a chunk over which workers end again and again.
        """
        place = worker.chunk
        try:
            is_done, answer = pickle.loads(worker.connection.recv_bytes())  # noqa: S301 (from our own child)
        except (EOFError, OSError):
            worker.process.join(JOIN_S)
            self._lose(place, how_it_ended(worker.process), is_ready=worker.is_ready)
            return False
        worker.is_ready, worker.chunk = True, None
        if not is_done:
            raise answer
        if place is not None:
            self.results[place] = answer
        return True

    def _lose(self, place: int | None, how: str, *, is_ready: bool) -> None:
        """Let a chunk wait for another worker; raise `Unavailable` where one more would not help."""
        if not is_ready:
            raise Unavailable(f"a process for chunks of agents ended as it began ({how}); it says why on stderr")
        if place is None:
            return
        self.lost[place] += 1
        if self.lost[place] >= MOST_LOST:
            raise too_many_lost(self.chunks[place], MOST_LOST, how)
        self.waiting.appendleft(place)

    def is_late(self, worker: PoolWorker) -> bool:
        """Tell whether a worker has passed the deadline of its chunk, which then waits for another one.

        Raises `DeadlineExceeded` when that happened before.
        """
        place = worker.chunk
        if place is None or time.monotonic() - worker.since < self.deadline_s:
            return False
        self.late[place] += 1
        if self.late[place] >= MOST_LATE:
            raise too_late(self.chunks[place], self.deadline_s, f"process {worker.process.pid}")
        self.waiting.appendleft(place)
        return True


class ProcessPool:
    """Works on as many chunks at once as it has processes; they start with the first `map` and serve all of a night."""

    shares_memory = False
    shares_settings = True

    def __init__(self, width: int, *, deadline_s: float) -> None:
        self.width = width
        self._deadline_s = deadline_s
        self._workers: list[PoolWorker] = []

    @property
    def pids(self) -> list[int]:
        """The ids of its processes."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        """Return the results of a function in the order of the chunks."""
        work = PoolRound(function, chunks, self._deadline_s, deque(range(len(chunks))))
        try:
            while len(work.results) < len(chunks):
                before = len(work.results)
                self._hand_out(work)
                self._look(work)
                if on_done is not None and len(work.results) > before:
                    on_done(len(work.results), len(chunks))
        except BaseException:
            self.close()  # what is still worked on nobody waits for
            raise
        return [work.results[place] for place in range(len(chunks))]

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _hand_out(self, work: PoolRound) -> None:
        """Give each idle worker a chunk, starting processes as far as there are chunks for them."""
        while len(self._workers) < min(self.width, len(work.waiting) + self._busy):
            self._workers.append(start_worker(threads_each(self.width)))
        for worker in self._workers:
            if worker.is_idle and work.waiting:
                place = work.waiting.popleft()
                worker.give(work.function, place, work.chunks[place])

    @property
    def _busy(self) -> int:
        return sum(worker.chunk is not None for worker in self._workers)

    def _look(self, work: PoolRound) -> None:
        """Wait until a worker answers, ends or passes its deadline, and see to those that did."""
        begun = [worker.since for worker in self._workers if worker.chunk is not None]
        left_s = max(0.0, min(begun) + self._deadline_s - time.monotonic()) if begun else None
        ready = wait([worker.connection for worker in self._workers], timeout=left_s)
        for worker in list(self._workers):
            is_alive = work.take(worker) if worker.connection in ready else not work.is_late(worker)
            if not is_alive:
                worker.end()
                self._workers.remove(worker)


def how_it_ended(process: SpawnProcess) -> str:
    """Say how a process ended."""
    code = process.exitcode
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def threads_each(width: int) -> int:
    """Return how many threads each of so many processes may compute with."""
    return max(1, (os.cpu_count() or 1) // width)


def start_worker(threads: int) -> PoolWorker:
    """Start a worker."""
    ours, its = SPAWN.Pipe()
    process = SPAWN.Process(target=serve, args=(its,), name="nous-chunks", daemon=True)
    with environment_of_workers(threads):
        process.start()
    its.close()
    return PoolWorker(process, ours)


@contextmanager
def environment_of_workers(threads: int) -> Iterator[None]:
    """Have a process that is started meanwhile compute with so many threads, unless the environment says how many.

    Nor does it look for modules in the current folder: `multiprocessing` starts Python with `-c`, which would.
    """
    told = {"PYTHONSAFEPATH": "1", **{name: str(threads) for name in THREADS}}
    added = {name: value for name, value in told.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def serve(connection: Any) -> None:
    """Work on chunks until nobody hands over another one: the main function of a worker."""
    keep_private()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all of a terminal; who started us ends us
    threading.Thread(target=end_with_parent, daemon=True).start()
    connection.send_bytes(pickle.dumps((True, None)))
    while True:
        try:
            function, chunk = pickle.loads(connection.recv_bytes())  # noqa: S301 (from our own parent)
        except (EOFError, OSError):
            return
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.send_bytes(answer_of(function, chunk))


def answer_of(function: Callable[[Any], Any], chunk: object) -> bytes:
    """Return what a function makes of a chunk, or raises, as bytes."""
    try:
        return pickle.dumps((True, function(chunk)))
    except Exception as error:
        return pickle.dumps((False, portable(error)))


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, in the midst of a chunk too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
