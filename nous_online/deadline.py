"""How much time a call has left, and how it ends although the code it waits for does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from numbers import Real
from typing import TypeVar

from nous_online.errors import DeadlineExceeded, InvalidInput

T = TypeVar("T")
LONGEST_S = 86_400.0


@dataclass(frozen=True)
class Deadline:
    """The moment by which a call ends, whatever happens; made once, when the call begins."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not isinstance(self.seconds, Real) or not 0 < self.seconds <= LONGEST_S:
            raise InvalidInput(f"a deadline must be above 0 and at most {LONGEST_S:g} seconds, got {self.seconds!r}")

    def remaining(self) -> float:
        """Return the seconds left; raise `DeadlineExceeded` when there are none."""
        left = self.began + self.seconds - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f"the call took longer than its {self.seconds:g} s; it was ended, try again")
        return left


def within(seconds: float, work: Callable[[], T], *, name: str) -> T:
    """Return what `work` returns, or raise what it raises; raise `DeadlineExceeded` when neither happens in time.

    Work that is late is abandoned, not ended: its thread goes on by itself, and what it returns is dropped.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # carried over to the caller, who waits for it
            outcome.set_exception(error)

    threading.Thread(target=run, name=f"nous-{name}", daemon=True).start()
    if outcome in wait([outcome], timeout=seconds).not_done:
        raise DeadlineExceeded(f"the {name} did not answer within {seconds:.3g} s; try again")
    return outcome.result()
