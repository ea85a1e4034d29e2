"""Runs chunks on the workers of a Dask scheduler; every worker needs the files of nights under the same path."""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nous_online.core.errors import DeadlineExceeded, Unavailable, Unsupported
from nous_pipelines.engines.engine import MOST_LATE, OnDone, code_digest, picklable_error, too_late, too_many_lost

C = TypeVar("C")
R = TypeVar("R")
CONNECT_S = 15.0
WORKERS_S = 60.0
"""How long to wait for the first worker: after the scheduler was restarted its workers have to restart, too."""
LOOK_S = 1.0
"""How often to check that the scheduler still answers."""
LAST_WORDS_S = 5.0
"""How long a worker past its deadline lives on, so that its answer gets out; 2 s were too few on a busy machine."""
PACKAGES = ("numpy", "polars")
"""Packages whose version may change results."""


@dataclass(frozen=True)
class Build:
    """The code that runs in a process; processes with different code may make different plans."""

    nous: str
    code: str
    """The first digits of the SHA-256 of our sources."""
    python: str
    packages: tuple[str, ...]

    def __str__(self) -> str:
        return f"Nous {self.nous} ({self.code}) with Python {self.python}, {', '.join(self.packages)}"


@cache
def build() -> Build:
    """Return the code that runs in this process."""
    packages = tuple(f"{name} {version(name)}" for name in PACKAGES)
    return Build(version("nous-pipelines"), code_digest()[:12], platform.python_version(), packages)


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
        self._address = f"{'tls' if scheme.endswith('+tls') else 'tcp'}://{place}"
        self._deadline_s = deadline_s
        try:
            parts = urlsplit(self._address)
            socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_S).close()
            self._client = Client(self._address, timeout=CONNECT_S, set_as_default=False, name="nous-night")
        except (OSError, TimeoutError, ValueError) as error:
            message = f"no Dask scheduler answers at {self._address}, which NOUS_ENGINE names ({error})"
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
        """Return the results of a function in the order of the chunks."""
        work = DaskRound(self, function, chunks)
        try:
            return work.results(on_done)
        finally:
            work.give_up()

    def submit(self, function: Callable[[C], R], chunk: C) -> Any:
        """Submit a chunk and return its future."""
        guarded = partial(run_with_deadline, function, deadline_s=self._deadline_s, wanted=build())
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
            f"the Dask scheduler at {self._address} was lost in the midst of a night, and nothing was changed by this "
            "step; start it again, then run the night again"
        )

    @property
    def deadline_s(self) -> float:
        """How long a chunk may take, in seconds."""
        return self._deadline_s

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return self._address

    def close(self) -> None:
        """Disconnect from the scheduler, which drops our unfinished chunks."""
        self._client.close(timeout=CONNECT_S)

    def _refuse_others(self) -> None:
        """Raise `Unsupported` for a worker with other code, and `Unavailable` if there is no worker."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            message = f"no worker has come to the Dask scheduler at {self._address} in {WORKERS_S:g} s"
            raise Unavailable(f"{message}; start some with: dask worker {self._address} --nthreads 1") from error
        found_at: Any = self._client.run(build, on_error="return")
        for worker, found in found_at.items():
            require_same(worker, found)


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
                    raise self._stuck() from None
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

    def _stuck(self) -> DeadlineExceeded:
        chunk = self._chunks[min(self._places.values())]
        return too_late(chunk, self._engine.deadline_s, f"the workers of {self._engine.address}")


def require_same(worker: str, found: Any) -> None:
    """Raise `Unsupported` for a worker that runs other code than this process."""
    if found != build():
        other = found if isinstance(found, Build) else f"something else ({found!r})"
        raise Unsupported(f"the Dask worker {worker} runs {other}, this night {build()}; give all of them one image")


def run_with_deadline(function: Callable[[C], R], chunk: C, *, deadline_s: float, wanted: Build) -> ChunkOutcome:
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
