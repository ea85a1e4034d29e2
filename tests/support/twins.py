"""Processes that begin as copies of this one, where a test is about another process and not about how one starts.

Python and what it imports take a second or two; a copy has all of that. It opens connections of its own, and may be
killed.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from typing import Any

TWINS = multiprocessing.get_context("fork")
Say = Callable[[object], None]


class Twin:
    """A copy of this process that does one thing, and what it said meanwhile."""

    def __init__(self, work: Callable[[Say], object]) -> None:
        self._heard, said = multiprocessing.Pipe(duplex=False)
        self.process = TWINS.Process(target=lambda: work(said.send))
        with warnings.catch_warnings():
            # Newer versions of Python warn of locks that other threads hold: those that run beside a test hold none.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        said.close()

    def hears(self) -> Any:
        """Return what it says next; raise `EOFError` when it has ended."""
        return self._heard.recv()

    def end(self, *, timeout_s: float = 60) -> tuple[int | None, list[Any]]:
        """Wait for its end, and return its exit code, and all it said that was not heard yet."""
        said = list(self._rest())
        self.process.join(timeout_s)
        self._heard.close()
        return self.process.exitcode, said

    def _rest(self) -> Iterator[Any]:
        while True:
            try:
                yield self.hears()
            except EOFError:
                return
