"""Engines run a function over chunks of agents, in this process or elsewhere, and return results in order.

On a Dask scheduler every worker needs the files of nights under the same path.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import platform
import signal
import socket
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from nous_online.core.errors import DeadlineExceeded, NousError, Unavailable, Unsupported
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
        try:
            answer = pickle.dumps((True, function(chunk)))
        except Exception as error:
            answer = pickle.dumps((False, picklable_error(error)))
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.send_bytes(answer)


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, even in the middle of a chunk."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


# --- Dask ---


CONNECT_S = 15.0
WORKERS_S = 60.0
"""How long to wait for the first worker: after the scheduler was restarted its workers have to restart, too."""
LOOK_S = 1.0
"""How often to check that the scheduler still answers."""
LAST_WORDS_S = 5.0
"""How long a worker past its deadline lives on, so that its answer gets out; 2 s were too few on a busy machine."""
PACKAGES = ("numpy", "polars")
"""Packages whose version may change results."""


@cache
def build() -> str:
    """Return the code that runs in this process in words; processes with different code may make different plans."""
    packages = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)]
    return f"Nous {version('nous-pipelines')} ({code_digest()[:12]}) with {', '.join(packages)}"


@dataclass(frozen=True)
class ChunkOutcome:
    """The result of a chunk on a worker, or the error raised for it."""

    result: Any = None
    error: Exception | None = None
    is_late: bool = False


class DaskEngine:
    """Runs as many chunks at once as the workers of a scheduler have threads."""

    shares_memory = False
    shares_settings = False

    def __init__(self, url: str, *, deadline_s: float) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            message = f"NOUS_ENGINE={url} needs the extra `dask` ({error})"
            raise Unsupported(f"{message}; run: pip install 'nous-pipelines[dask]'") from error
        scheme, _, place = url.partition("://")
        self.address = f"{'tls' if scheme.endswith('+tls') else 'tcp'}://{place}"
        self.deadline_s = deadline_s
        try:
            parts = urlsplit(self.address)
            socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_S).close()
            self._client = Client(self.address, timeout=CONNECT_S, set_as_default=False, name="nous-night")
        except (OSError, TimeoutError, ValueError) as error:
            message = f"no Dask scheduler answers at {self.address}, which NOUS_ENGINE names ({error})"
            raise Unavailable(f"{message}; start one with: dask scheduler") from error
        try:
            self._refuse_others()
        except BaseException:
            self.close()
            raise

    @property
    def width(self) -> int:
        """The total number of threads of the workers."""
        self.require_scheduler()
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError) as error:
            raise self.lost_scheduler() from error
        return max(1, sum(worker["nthreads"] for worker in workers.values()))

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        work = DaskRound(self, function, chunks)
        try:
            return work.results(on_done)
        finally:
            work.give_up()

    def submit(self, function: Callable[[C], R], chunk: C) -> Any:
        """Submit a chunk and return its future."""
        guarded = partial(run_with_deadline, function, deadline_s=self.deadline_s, wanted=build())
        # Not pure: Dask takes equal calls of a pure function for one task, whose result it may still hold.
        return self._client.submit(guarded, chunk, pure=False, retries=0)

    def first_of(self, futures: Sequence[Any]) -> Collection[Any]:
        """Wait for the first of some futures and return those done; raise `TimeoutError` after `LOOK_S`."""
        from distributed import wait
        from distributed.client import FuturesCancelledError

        try:
            with self._client.as_current():
                ended: Any = wait(futures, timeout=LOOK_S, return_when="FIRST_COMPLETED")
        except FuturesCancelledError as error:
            raise self.lost_scheduler() from error
        return ended.done

    def require_scheduler(self) -> None:
        """Raise `Unavailable` if the scheduler is gone, and with it the chunks it had."""
        if self._client.status != "running" or self._client.scheduler is None or self._client.scheduler.comm is None:
            raise self.lost_scheduler()

    def lost_scheduler(self) -> Unavailable:
        """Return the error for a lost scheduler."""
        return Unavailable(
            f"the Dask scheduler at {self.address} was lost in the midst of a night, and nothing was changed by this "
            "step; start it again, then run the night again"
        )

    def close(self) -> None:
        """Disconnect from the scheduler, which drops our unfinished chunks."""
        self._client.close(timeout=CONNECT_S)

    def _refuse_others(self) -> None:
        """Raise `Unsupported` for a worker with other code, and `Unavailable` if there is no worker."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            message = f"no worker has come to the Dask scheduler at {self.address} in {WORKERS_S:g} s"
            raise Unavailable(f"{message}; start some with: dask worker {self.address} --nthreads 1") from error
        found_at: Any = self._client.run(build, on_error="return")
        for worker, found in found_at.items():
            if found != build():
                other = found if isinstance(found, str) else f"something else ({found!r})"
                raise Unsupported(
                    f"the Dask worker {worker} runs {other}, this night {build()}; give all of them one image"
                )


class DaskRound:
    """The chunks of one `map`, and the futures of those submitted.

    No more are submitted than there are threads: when a worker dies, Dask counts a failure for every task queued on it.
    """

    def __init__(self, engine: DaskEngine, function: Callable[[Any], Any], chunks: Sequence[Any]) -> None:
        self._engine = engine
        self._function = function
        self._chunks = chunks
        self._waiting = deque(range(len(chunks)))
        self._places: dict[Any, int] = {}
        self._late = Counter[int]()
        self._found: dict[int, Any] = {}

    def results(self, on_done: OnDone | None) -> list[Any]:
        """Return the results in the order of the chunks."""
        # Workers enforce the deadline themselves; this one is for a cluster that answers nothing any more.
        patience_s = MOST_LATE * self._engine.deadline_s + CONNECT_S
        looked_at = time.monotonic()
        while self._waiting or self._places:
            self._hand_out()
            try:
                ended = self._engine.first_of(list(self._places))
            except TimeoutError:
                if time.monotonic() - looked_at > patience_s:
                    chunk = self._chunks[min(self._places.values())]
                    raise too_late(chunk, self._engine.deadline_s, f"the workers of {self._engine.address}") from None
                continue
            taken = [self._take(future) for future in ended]
            if not any(taken):
                continue
            looked_at = time.monotonic()
            if on_done is not None:
                on_done(len(self._found), len(self._chunks))
        return [self._found[place] for place in range(len(self._chunks))]

    def _hand_out(self) -> None:
        """Submit chunks until each thread has one; raise `Unavailable` if the scheduler is gone."""
        self._engine.require_scheduler()
        most = self._engine.width if self._waiting else 0
        while self._waiting and len(self._places) < most:
            place = self._waiting.popleft()
            self._places[self._engine.submit(self._function, self._chunks[place])] = place

    def give_up(self) -> None:
        """Release the futures of unfinished chunks."""
        for future in self._places:
            future.release()

    def _take(self, future: Any) -> bool:
        """Store the result of a chunk and return True, or False if it has to be waited for again; raise its error."""
        outcome = self._outcome(future, self._places[future])
        if outcome is None:
            return False
        place = self._places.pop(future)
        future.release()  # or Dask repeats the chunk if the worker that holds the result dies, and leaves its files
        if outcome.is_late and self._late[place] + 1 < MOST_LATE:
            self._late[place] += 1
            self._waiting.appendleft(place)
        elif outcome.error is not None:
            raise outcome.error
        else:
            self._found[place] = outcome.result
        return True

    def _outcome(self, future: Any, place: int) -> ChunkOutcome | None:
        """Return the outcome of a chunk; None if the worker that held it died and another repeats the chunk."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError

        try:
            return future.result(timeout=LOOK_S)
        except TimeoutError:
            return None
        except KilledWorker as error:
            count = error.allowed_failures + 1
            raise too_many_lost(self._chunks[place], count, f"the last of them {error.last_worker.address}") from error
        except (FutureCancelledError, CommClosedError) as error:
            raise self._engine.lost_scheduler() from error


def run_with_deadline(function: Callable[[C], R], chunk: C, *, deadline_s: float, wanted: str) -> ChunkOutcome:
    """Return the outcome of a chunk on this worker, which ends its process if the deadline is exceeded.

    A thread can't be stopped, so the process has to end; its nanny starts another one.
    """
    from distributed import get_worker

    worker = get_worker().address
    if build() != wanted:
        message = f"the Dask worker {worker} runs {build()}, this night {wanted}; give all of them one image"
        return ChunkOutcome(error=Unsupported(message))
    found: list[ChunkOutcome] = []
    thread = threading.Thread(target=lambda: found.append(outcome_of(function, chunk)), daemon=True)
    thread.start()
    thread.join(deadline_s)
    if thread.is_alive():
        threading.Timer(LAST_WORDS_S, os._exit, [1]).start()
        return ChunkOutcome(error=too_late(chunk, deadline_s, f"the Dask worker {worker}"), is_late=True)
    return found[0]


def outcome_of(function: Callable[[Any], Any], chunk: object) -> ChunkOutcome:
    """Return the result of a function for a chunk, or its error, as an outcome."""
    try:
        return ChunkOutcome(function(chunk))
    except Exception as error:
        return ChunkOutcome(error=picklable_error(error))
