"""Turns: each caller has its own places, so that nobody waits for another one's slowness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from nous_online.core.errors import DeadlineExceeded
from nous_online.interfaces.api.problems import BUSY, InterfaceProblem


class Turns:
    """So many places for each caller, and so many of its calls that hold or await one; for one event loop."""

    def __init__(self, places: int, *, most: int) -> None:
        self._places, self._most = places, most
        self._free: dict[str, asyncio.Semaphore] = {}
        self._here: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, caller: str, *, seconds: float) -> AsyncGenerator[None]:
        """Hold one of a caller's places for a block.

        Raises `InterfaceProblem` 503 where too many of its calls wait already, and `DeadlineExceeded` when none of its
        places becomes free within `seconds`.
        """
        if self._here.get(caller, 0) >= self._most:
            raise InterfaceProblem(BUSY, f"{self._most} calls of this caller are under way already; send fewer at once")
        free = self._free.setdefault(caller, asyncio.Semaphore(self._places))
        self._here[caller] = self._here.get(caller, 0) + 1
        try:
            await taken(free, seconds)
            try:
                yield
            finally:
                free.release()
        finally:
            self._here[caller] -= 1
            if not self._here[caller]:
                del self._here[caller], self._free[caller]


async def taken(free: asyncio.Semaphore, seconds: float) -> None:
    """Take a place; raise `DeadlineExceeded` when none becomes free in time."""
    try:
        async with asyncio.timeout(seconds):
            await free.acquire()
    except TimeoutError as error:
        message = f"other calls of this caller took all of {seconds:.3g} s; send fewer at once, or try again"
        raise DeadlineExceeded(message) from error
