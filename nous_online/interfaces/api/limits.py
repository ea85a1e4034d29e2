"""How often one caller may call: a moving window in memory, kept by each process for itself."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from nous_online.interfaces.api.problems import TOO_MANY, InterfaceProblem

MOST_COUNTED = 10_000
"""Callers whose calls are remembered; the first makes room, or addresses that are made up would fill the memory."""


class Limit:
    """So many calls of one caller in any minute."""

    def __init__(self, calls_per_minute: int, *, most_callers: int = MOST_COUNTED) -> None:
        self._callers: OrderedDict[str, None] = OrderedDict()
        self._most_callers = most_callers
        self._lock = threading.Lock()
        self._window = MovingWindowRateLimiter(MemoryStorage())
        self._item = RateLimitItemPerMinute(calls_per_minute)

    def count(self, caller: str) -> None:
        """Count a call; raise `InterfaceProblem` 429, with when to come again, for one too many."""
        with self._lock:
            self._callers[caller] = None
            gone = self._callers.popitem(last=False)[0] if len(self._callers) > self._most_callers else None
        if gone is not None:
            self._window.clear(self._item, gone)
        if not self._window.hit(self._item, caller):
            raise self._refusal(caller)

    def check(self, caller: str) -> None:
        """Raise `InterfaceProblem` 429 where one more call would be one too many."""
        if not self._window.test(self._item, caller):
            raise self._refusal(caller)

    def _refusal(self, caller: str) -> InterfaceProblem:
        reset_at = self._window.get_window_stats(self._item, caller).reset_time
        seconds = max(1, int(reset_at - time.time()) + 1)
        detail = f"more than {self._item.amount} calls in a minute; wait {seconds} s"
        return InterfaceProblem(TOO_MANY, detail, headers={"Retry-After": str(seconds)})
