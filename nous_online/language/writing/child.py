"""Child processes that parse long texts, and are killed at their deadline whatever a text does to them.

A thread can't be killed, and a running regular expression holds the GIL of its process until it ends (decision 0024).
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from nous_online.core.deadline import LIMIT
from nous_online.core.errors import DeadlineExceeded, Unavailable
from nous_online.core.policy import WritingPolicy
from nous_online.processes import python_program

P = ParamSpec("P")
T = TypeVar("T")
Answer = tuple[Literal[True], T] | tuple[Literal[False], Exception] | None

POLICY = WritingPolicy()
PACKAGES = Path(__file__).parents[3]
PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from nous_online.language.writing import child; child.serve(int(sys.argv[2]))"
)
KEPT = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
"""Environment variables passed on; no address and no key, since a child works on a text alone."""
GRACE_S = 2.0  # waited after a child's own alarm, which a stopped process does not get
WAITING_SHARE = 0.5  # of the caller's time, most that is spent waiting for a child: the rest is for reading


class Child:
    """A process that runs one function after the other; the system kills it when one takes too long."""

    def __init__(self) -> None:
        self._connection, there = Pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 (the command is ours)
                python_program(PROGRAM, str(PACKAGES), str(there.fileno())),
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in KEPT if name in os.environ}
                | {"PYTHONSAFEPATH": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        except BaseException:
            self._connection.close()
            raise
        finally:
            there.close()

    def is_alive(self) -> bool:
        """Tell whether the process runs."""
        return self._process.poll() is None

    def call(self, function: Callable[..., T], arguments: tuple[Any, ...], *, seconds: float) -> Answer[T]:
        """Return the result or the exception of a function, None when the process ended or did not answer in time."""
        try:
            self._connection.send((function, arguments, seconds))
            return self._connection.recv() if self._connection.poll(seconds + GRACE_S) else None
        except (EOFError, OSError):
            return None

    def end(self) -> int:
        """End the process and return its exit code, below zero the signal that killed it."""
        self._connection.close()
        try:
            return self._process.wait(0.2)  # an idle child exits when its connection closes
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class Children:
    """A pool of children: at most `most` work at the same time, others wait their turn; one idle child is kept."""

    def __init__(self, *, seconds: float = POLICY.reading_s, most: int = POLICY.most_readers) -> None:
        self._seconds = seconds
        self._most = most
        self.forget()

    def forget(self) -> None:
        """Forget all children; for a forked process, whose parent still uses them."""
        self._freed = threading.Condition()
        self._idle: list[Child] = []
        self._waiting: deque[object] = deque()
        self._busy = 0

    def call(self, function: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> T:
        """Run a module's function in a child and return its result, or raise its exception.

        Raises `DeadlineExceeded` when it takes longer than a text may take, `ChildProcessError` when the child was
        killed, and `Unavailable` when none can be started, or none is free for as long as a stuck text is waited for or
        half of the time that `within` gives its caller.
        """
        child = self._take()
        answer = None
        began = time.monotonic()
        try:
            answer = child.call(function, arguments, seconds=self._seconds)
        finally:
            code = self._give_back(child, is_broken=answer is None)
        match answer:
            case (True, result):
                return result
            case (False, Exception() as error):
                raise error
            case _ if code == -signal.SIGALRM or time.monotonic() - began > self._seconds:
                raise DeadlineExceeded(f"reading the text took longer than {self._seconds:g} s and was ended")
            case _ if code > 0:
                raise Unavailable(f"the process that reads texts ended with code {code}; see whether it can be started")
            case _:
                raise ChildProcessError(f"the process that reads texts was ended by signal {-code}")

    def end(self) -> None:
        """End the idle children; a busy one exits after its text."""
        with self._freed:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _take(self) -> Child:
        left_s = LIMIT.until - time.monotonic()
        place, longest_s = object(), min(self._seconds + GRACE_S, left_s * WAITING_SHARE)
        with self._freed:
            self._waiting.append(place)
            try:
                is_free = self._freed.wait_for(
                    lambda: self._busy < self._most and self._waiting[0] is place, timeout=longest_s
                )
            finally:
                self._waiting.remove(place)
                self._freed.notify_all()  # another one is first now
            if not is_free:
                raise Unavailable(f"{self._most} other texts were being read for {longest_s:.3g} s; try again")
            self._busy += 1
            kept = self._idle.pop() if self._idle else None
        if kept is not None and kept.is_alive():
            return kept
        try:
            return Child()
        except OSError as error:
            with self._freed:
                self._busy -= 1
                self._freed.notify_all()
            message = f"no process that reads texts can be started: {error}"
            raise Unavailable(message) from error

    def _give_back(self, child: Child, *, is_broken: bool = False) -> int:
        with self._freed:
            self._busy -= 1
            self._freed.notify_all()
            is_kept = not is_broken and not self._idle
            if is_kept:
                self._idle.append(child)
        return 0 if is_kept else child.end()


def serve(descriptor: int) -> None:
    """Run the functions that arrive on a connection until it closes; the main function of a child."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a Python handler would wait for the regular expression to end
    connection: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            function, arguments, seconds = connection.recv()
        except EOFError:
            return
        signal.alarm(ceil(seconds))
        try:
            answer = (True, function(*arguments))
        except Exception as error:  # raised again in the parent
            answer = (False, error)
        signal.alarm(0)
        connection.send(answer)


CHILDREN = Children()
atexit.register(CHILDREN.end)
os.register_at_fork(after_in_child=CHILDREN.forget)
