"""One thread that ends what is late: starting a timer for every call costs more than the call's own statements."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


class Watch:
    """One thing that has to be done by a moment, and whether it was late."""

    def __init__(self, ends_at: float, cut: Callable[[], None]) -> None:
        self.ends_at = ends_at
        self.cut = cut
        self.has_expired = False


class Watchdog:
    """Calls what was left to it when a block is not done in time, and never after the block has ended."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    @contextmanager
    def watching(self, seconds: float, cut: Callable[[], None]) -> Generator[Watch]:
        """Call `cut` once if the block takes longer than `seconds`; the watch says whether it came to that."""
        watch = Watch(time.monotonic() + seconds, cut)
        with self._changed:
            self._watches.add(watch)
            if self._thread is None or not self._thread.is_alive():  # it does not survive a fork
                self._wakes_at = watch.ends_at
                self._thread = threading.Thread(target=self._run, name="nous-watchdog", daemon=True)
                self._thread.start()
            elif watch.ends_at < self._wakes_at:
                self._changed.notify()
        try:
            yield watch
        finally:
            with self._changed:
                self._watches.discard(watch)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for watch in [watch for watch in self._watches if watch.ends_at <= now]:
                    self._watches.discard(watch)
                    watch.has_expired = True
                    with suppress(Exception):  # a connection that broke by itself; the others still need this thread
                        watch.cut()
                self._wakes_at = min((watch.ends_at for watch in self._watches), default=float("inf"))
                self._changed.wait(None if self._wakes_at == float("inf") else self._wakes_at - now)


WATCHDOG = Watchdog()
