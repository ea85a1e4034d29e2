"""The steps of a night at which tests kill it, to prove that the next run comes to the same result."""

from __future__ import annotations

from collections.abc import Callable


def go_on(_name: str) -> None:
    """Do nothing; tests replace it."""


on_reach: Callable[[str], None] = go_on


def reach(name: str) -> None:
    """Announce that the point of this name has been reached."""
    on_reach(name)
