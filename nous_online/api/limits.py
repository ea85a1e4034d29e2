"""How often one caller may call: a moving window in memory, kept by each process for itself."""

from __future__ import annotations

import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from nous_online.api.problems import TOO_MANY, Failure


class Limit:
    """So many calls of one caller in any minute."""

    def __init__(self, calls_per_minute: int) -> None:
        self._window = MovingWindowRateLimiter(MemoryStorage())
        self._item = RateLimitItemPerMinute(calls_per_minute)

    def count(self, caller: str) -> None:
        """Count a call; raise `Failure` 429, with when to come again, for one too many."""
        if not self._window.hit(self._item, caller):
            raise self._refusal(caller)

    def check(self, caller: str) -> None:
        """Raise `Failure` 429 where one more call would be one too many."""
        if not self._window.test(self._item, caller):
            raise self._refusal(caller)

    def _refusal(self, caller: str) -> Failure:
        reset_at = self._window.get_window_stats(self._item, caller).reset_time
        seconds = max(1, int(reset_at - time.time()) + 1)
        detail = f"more than {self._item.amount} calls in a minute; wait {seconds} s"
        return Failure(TOO_MANY, detail, headers={"Retry-After": str(seconds)})
