"""Engines run a function over chunks of agents, in this process or elsewhere, and return results in order."""

from __future__ import annotations

import hashlib
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
from functools import cache
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar

from nous_online.core.errors import DeadlineExceeded, NousError, Unavailable
from nous_online.core.files import keep_private
from nous_online.core.settings import Settings

C = TypeVar("C")
R = TypeVar("R")
OnDone = Callable[[int, int], None]
"""Called with the number of chunks done and of all chunks."""
MOST_LOST = 3
"""Workers that may die while working on one chunk before the night fails: the chunk is the likely cause then."""
MOST_LATE = 2
"""Times a chunk may exceed its deadline: the first time the machine may have been busy."""
CODE_FOLDERS = ("nous_online", "nous_pipelines", "nous_sql")
CODE_SUFFIXES = frozenset({".json", ".py", ".sql", ".toml", ".txt", ".xz"})
"""Of the files that results depend on. The 24 MB of weights of the pair reader are not read: a JSON file has their
checksum."""


@cache
def code_digest() -> str:
    """Return the SHA-256 of the modules, queries and word lists of this version: other code may have other results."""
    digest, root = hashlib.sha256(), Path(__file__).parents[2]
    paths = (path for folder in CODE_FOLDERS for path in (root / folder).rglob("*.*") if path.suffix in CODE_SUFFIXES)
    for path in sorted(paths):
        digest.update(path.relative_to(root).as_posix().encode() + b"\n" + path.read_bytes())
    return digest.hexdigest()


class Engine(Protocol):
    """Maps a function over chunks."""

    @property
    def width(self) -> int:
        """How many chunks it works on at once."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether functions run in this process; otherwise function, chunks and results must be picklable."""
        ...

    @property
    def shares_settings(self) -> bool:
        """Whether workers have the settings of this process; otherwise they read their own environment."""
        ...

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        """Return the results of a function in the order of the chunks.

        An exception of the function is raised here, and no further chunk is started. Raises `DeadlineExceeded` for a
        chunk that exceeds its deadline `MOST_LATE` times, and `Unavailable` for one over which `MOST_LOST` workers die.
        """
        ...

    def close(self) -> None:
        """End the workers and connections it started."""
        ...


class InProcess:
    """Runs one chunk after the other in this process."""

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
        """Do nothing: it started nothing."""


def engine_of(settings: Settings) -> Engine:
    """Return the engine named by NOUS_ENGINE.

    Raises `Unavailable` if it can't be reached, and `Unsupported` if its extra is missing or a worker runs other code.
    """
    kind, _, place = settings.engine.partition(":")
    if kind == "in-process":
        return InProcess()
    if kind == "processes":
        return ProcessPool(int(place) if place else os.cpu_count() or 1, deadline_s=settings.engine_deadline_s)
    from nous_pipelines.engines.dask_engine import DaskEngine

    return DaskEngine(settings.engine, deadline_s=settings.engine_deadline_s)


def too_late(chunk: object, deadline_s: float, where: str) -> DeadlineExceeded:
    """Return the error for a chunk that exceeded its deadline."""
    return DeadlineExceeded(
        f"{chunk} took longer than {deadline_s:g} s on {where}; raise NOUS_ENGINE_DEADLINE_S, or look at its agents"
    )


def too_many_lost(chunk: object, count: int, how: str) -> Unavailable:
    """Return the error for a chunk over which workers died again and again."""
    return Unavailable(f"{count} workers ended over {chunk} ({how}); look for too little memory, then run it again")


def picklable_error(error: Exception) -> Exception:
    """Return an error that can be pickled, the same if possible, with its traceback as a note unless it is our own."""
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

SPAWN = multiprocessing.get_context("spawn")  # a fork would copy locks held by threads of Polars, and deadlock
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
JOIN_S = 5.0


@dataclass
class PoolWorker:
    """A worker process, the pipe to it, and the chunk it works on since when (monotonic)."""

    process: SpawnProcess
    connection: Any
    """The end of a pipe; its type differs between platforms."""
    is_ready: bool = False
    chunk: int | None = None
    since: float = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a chunk."""
        return self.is_ready and self.chunk is None

    def give(self, function: Callable[[Any], Any], place: int, chunk: object) -> None:
        """Send a chunk to the worker."""
        self.chunk, self.since = place, time.monotonic()
        # A worker that has died is noticed, and its chunk given to another, when its pipe is read.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send_bytes(pickle.dumps((function, chunk)))

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join(JOIN_S)
        self.connection.close()


@dataclass
class PoolRound:
    """The chunks of one `map`: waiting, done, and how often a worker died or was late over each."""

    function: Callable[[Any], Any]
    chunks: Sequence[Any]
    deadline_s: float
    waiting: deque[int] = field(default_factory=deque[int])
    results: dict[int, Any] = field(default_factory=dict[int, Any])
    lost: Counter[int] = field(default_factory=Counter[int])
    late: Counter[int] = field(default_factory=Counter[int])

    def take(self, worker: PoolWorker) -> bool:
        """Receive from a worker whose pipe is ready, and return whether it is alive; its result is stored.

        Raises what the function raised, and `Unavailable` for a chunk over which workers died `MOST_LOST` times.
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
        """Queue the chunk of a dead worker again; raise `Unavailable` if another worker would not help."""
        if not is_ready:
            raise Unavailable(f"a process for chunks of agents ended as it began ({how}); it says why on stderr")
        if place is None:
            return
        self.lost[place] += 1
        if self.lost[place] >= MOST_LOST:
            raise too_many_lost(self.chunks[place], MOST_LOST, how)
        self.waiting.appendleft(place)

    def is_late(self, worker: PoolWorker) -> bool:
        """Return whether a worker has exceeded the deadline of its chunk, which is then queued again.

        Raises `DeadlineExceeded` if that happened to the chunk before.
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
    """Runs chunks in a pool of processes, which start with the first `map` and are kept for the whole night."""

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
            self.close()  # nobody waits for the chunks still in progress
            raise
        return [work.results[place] for place in range(len(chunks))]

    def close(self) -> None:
        """Kill all processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _hand_out(self, work: PoolRound) -> None:
        """Give each idle worker a chunk, starting processes as long as there are chunks for them."""
        while len(self._workers) < min(self.width, len(work.waiting) + self._busy):
            self._workers.append(start_worker(max(1, (os.cpu_count() or 1) // self.width)))
        for worker in self._workers:
            if worker.is_idle and work.waiting:
                place = work.waiting.popleft()
                worker.give(work.function, place, work.chunks[place])

    @property
    def _busy(self) -> int:
        return sum(worker.chunk is not None for worker in self._workers)

    def _look(self, work: PoolRound) -> None:
        """Wait until a worker answers, dies or exceeds its deadline, and handle it."""
        begun = [worker.since for worker in self._workers if worker.chunk is not None]
        left_s = max(0.0, min(begun) + self._deadline_s - time.monotonic()) if begun else None
        ready = wait([worker.connection for worker in self._workers], timeout=left_s)
        for worker in list(self._workers):
            is_alive = work.take(worker) if worker.connection in ready else not work.is_late(worker)
            if not is_alive:
                worker.end()
                self._workers.remove(worker)


def how_it_ended(process: SpawnProcess) -> str:
    """Return how a process ended: the name of the signal, or its exit code."""
    code = process.exitcode
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def start_worker(threads: int) -> PoolWorker:
    """Start a worker process that computes with so many threads."""
    ours, its = SPAWN.Pipe()
    process = SPAWN.Process(target=serve, args=(its,), name="nous-chunks", daemon=True)
    with environment_of_workers(threads):
        process.start()
    its.close()
    return PoolWorker(process, ours)


@contextmanager
def environment_of_workers(threads: int) -> Iterator[None]:
    """Set the environment of processes started in the block: the number of threads, unless it is set already.

    Also PYTHONSAFEPATH: `multiprocessing` starts Python with `-c`, which would import modules from the current folder.
    """
    wanted = {"PYTHONSAFEPATH": "1", **{name: str(threads) for name in THREADS}}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def serve(connection: Any) -> None:
    """Run chunks until the pipe is closed: the main function of a worker."""
    keep_private()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent ends us
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
    """Return a pickled (is_done, result or exception) of a function for a chunk."""
    try:
        return pickle.dumps((True, function(chunk)))
    except Exception as error:
        return pickle.dumps((False, picklable_error(error)))


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, even in the middle of a chunk."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
