"""Deadlines of calls, and threads that let a call end in time although the code it waits for does not."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from numbers import Real
from queue import SimpleQueue
from typing import TypeVar

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable

T = TypeVar("T")
LONGEST_S = 86_400.0
MOST_BUSY = 128  # calls of an embedder or judge at once, late ones included
MOST_IDLE = 8  # threads kept for the next call
LONGEST_EXIT_S = 15.0  # 64 long texts, a batch of an import, take the embedder seven seconds on one busy core
LOOK_AGAIN_S = 0.05


class ThreadLimit(threading.local):
    """Until when the call that this thread works for waits."""

    until: float = float("inf")
    """When `within` abandons the work, by the monotonic clock; never outside of it."""


LIMIT = ThreadLimit()


@dataclass(frozen=True)
class Deadline:
    """The time limit of one call, in seconds of the monotonic clock; create it when the call begins."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not isinstance(self.seconds, Real) or not 0 < self.seconds <= LONGEST_S:
            raise InvalidInput(f"a deadline must be above 0 and at most {LONGEST_S:g} seconds, got {self.seconds!r}")

    @property
    def left_s(self) -> float:
        """The seconds left; zero or negative after the deadline."""
        return self.began + self.seconds - time.monotonic()

    def remaining(self) -> float:
        """Return the seconds left; raise `DeadlineExceeded` when there are none."""
        left = self.left_s
        if left <= 0:
            raise DeadlineExceeded(f"the call took longer than its {self.seconds:g} s; it was ended, try again")
        return left


def pause_s(failed_count: int, *, first_s: float, longest_s: float) -> float:
    """Return the seconds to wait after so many failures in a row: `first_s`, doubled for each, at most `longest_s`."""
    return min(first_s * 2 ** min(failed_count - 1, 30), longest_s)  # capped: a float would overflow


def within(seconds: float, work: Callable[[], T], *, name: str) -> T:
    """Return what `work` returns, or raise what it raises; raise `DeadlineExceeded` when neither happens in time.

    Late work is abandoned, not ended, since Python can't end a thread: it continues, and its result is dropped. Raises
    `Unavailable` when `MOST_BUSY` calls are running already.
    """
    outcome: Future[T] = Future()
    until = time.monotonic() + seconds

    def run() -> None:
        LIMIT.until = until
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised again in the thread of the caller
            outcome.set_exception(error)

    WORKERS.take(name).give(run)
    try:
        outcome.exception(timeout=seconds)  # returned, not raised: a `TimeoutError` of the work itself is none of ours
    except TimeoutError:
        raise DeadlineExceeded(f"the {name} did not answer within {seconds:.3g} s; try again") from None
    return outcome.result()


class Worker(threading.Thread):
    """A thread that runs one function after another; late work occupies it until it ends."""

    def __init__(self, put_back: Callable[[Worker], bool]) -> None:
        super().__init__(name="nous-worker", daemon=True)
        self._given: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._put_back = put_back
        self.start()

    def give(self, work: Callable[[], None]) -> None:
        self._given.put(work)

    def run(self) -> None:
        self._given.get()()
        while self._put_back(self):
            self._given.get()()

    def stop(self) -> None:
        """Raise `SystemExit` in the thread; native code sees it only when it returns to Python."""
        if self.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(SystemExit))

    def wait(self, until: float) -> None:
        """Wait for the thread to end, unless it is waiting in the standard library, where an exit is harmless."""
        while self.is_alive() and time.monotonic() < until:
            frame = sys._current_frames().get(self.ident or 0)  # pyright: ignore[reportPrivateUsage] (documented)
            if frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in sys.stdlib_module_names:
                return
            self.join(LOOK_AGAIN_S)


class Workers:
    """A pool of threads for work that may be abandoned at a deadline; idle ones are kept for the next call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    def take(self, name: str) -> Worker:
        """Return an idle worker, a new one if need be; raise `Unavailable` when too many are busy."""
        with self._lock:
            if len(self._busy) >= MOST_BUSY:
                message = f"{MOST_BUSY} calls of the {name} go on already; see why they don't end, then try again"
                raise Unavailable(message)
            worker = self._idle.pop() if self._idle else Worker(self._put_back)
            self._busy.add(worker)
        return worker

    def is_any_busy(self) -> bool:
        return bool(self._busy)

    def leave(self) -> None:
        """Stop the busy workers at exit: native code that returns to a finalized interpreter aborts the process."""
        until = time.monotonic() + LONGEST_EXIT_S
        late = tuple(self._busy)
        for worker in late:
            worker.stop()
        for worker in late:
            worker.wait(until)

    def forget(self) -> None:
        """Reset the pool in a forked process, in which none of these threads exists; the lock may be held."""
        self._lock = threading.Lock()
        self._idle, self._busy = [], set()

    def _put_back(self, worker: Worker) -> bool:
        with self._lock:
            self._busy.discard(worker)
            is_kept = len(self._idle) < MOST_IDLE
            if is_kept:
                self._idle.append(worker)
        return is_kept


WORKERS = Workers()
atexit.register(WORKERS.leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
