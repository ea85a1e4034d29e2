"""What tests have other processes do with a chunk."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from nous_online.core.errors import InvalidInput

FOREVER_S = 600


@dataclass(frozen=True)
class Numbered:
    """A chunk that says which it is, and where it may leave a mark."""

    number: int
    folder: Path

    def __str__(self) -> str:
        return f"chunk {self.number}"

    def is_first_time(self) -> bool:
        """Tell whether nobody has worked on it yet."""
        try:
            (self.folder / f"{self.number}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def double(chunk: Numbered) -> int:
    """Return twice the number; the first chunks take longest."""
    time.sleep(0.02 if chunk.number < 2 else 0)
    return 2 * chunk.number


def refuse_three(chunk: Numbered) -> int:
    """Return the number, but raise for number three."""
    if chunk.number == 3:
        raise InvalidInput("three is no number to be doubled; take another")
    return chunk.number


def kill_once(chunk: Numbered) -> int:
    """Return twice the number; whoever is the first to work on number three is killed over it."""
    if chunk.number == 3 and chunk.is_first_time():
        os.kill(os.getpid(), signal.SIGKILL)
    return double(chunk)


def kill_always(chunk: Numbered) -> int:
    """Kill whoever works on number three."""
    if chunk.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return double(chunk)


def hang_once(chunk: Numbered) -> int:
    """Return twice the number; whoever is the first to work on number three never ends."""
    if chunk.number == 3 and chunk.is_first_time():
        time.sleep(FOREVER_S)
    return double(chunk)


def hang_always(chunk: Numbered) -> int:
    """Never end with number three."""
    if chunk.number == 3:
        time.sleep(FOREVER_S)
    return double(chunk)


def whose_process(chunk: Numbered) -> int:
    """Return the id of the process."""
    time.sleep(0.2)
    return os.getpid()
