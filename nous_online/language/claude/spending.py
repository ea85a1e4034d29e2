"""What a request cost, as whoever pays for it keeps account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from nous_online.language.claude.replies import Usage


@dataclass(frozen=True)
class Spent:
    """One request that was sent, whatever came of it; `error` says why it brought no answer."""

    purpose: str
    """What for: `judge`, `write`."""
    model: str
    prompt_version: str
    usage: Usage
    error: str | None = None


Meter: TypeAlias = Callable[[Spent], None]
"""Keeps what was spent; it never raises."""
