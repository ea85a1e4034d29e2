"""How much time a call has left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from nous_online.errors import DeadlineExceeded, InvalidInput


@dataclass(frozen=True)
class Deadline:
    """The moment by which a call ends, whatever happens; made once, when the call begins."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InvalidInput(f"a deadline must be above 0 seconds, got {self.seconds!r}")

    def remaining(self) -> float:
        """Return the seconds left; raise `DeadlineExceeded` when there are none."""
        left = self.began + self.seconds - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(
                f"the call took longer than its {self.seconds:g} s; nothing more was done, try again"
            )
        return left
