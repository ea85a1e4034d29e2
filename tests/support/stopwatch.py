"""How long a call took, less what a busy machine kept from it: for tests that a call ends by its deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TICK_S = 0.01
"""How often it is looked whether this process still gets its turn."""
USUAL_S = 0.002
"""How late a process on an idle machine wakes up, at most."""
LONGEST_S = 300.0
"""A watch that a failing test leaves running stops by itself."""


def stopwatch() -> Callable[[], float]:
    """Start a watch; called, it stops and returns the seconds of which the machine gave this process its share.

    A thread that only sleeps wakes up late by as much as this process had to wait for a core, whatever else it does:
    a call that waits for nothing but its deadline takes as long here on a machine five times slower.
    """
    began, lost_s, is_over = time.monotonic(), 0.0, threading.Event()

    def tick() -> None:
        nonlocal lost_s
        before = time.monotonic()
        while not is_over.wait(TICK_S) and (now := time.monotonic()) - began < LONGEST_S:
            lost_s += max(0.0, now - before - TICK_S - USUAL_S)
            before = now

    ticking = threading.Thread(target=tick, daemon=True)
    ticking.start()

    def took_s() -> float:
        until = time.monotonic()
        is_over.set()
        ticking.join()
        return until - began - lost_s

    return took_s
