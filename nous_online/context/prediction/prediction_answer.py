"""What predicting returns."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Predicted:
    """A memory that is likely to be wanted, how likely, and what speaks for it."""

    memory_id: UUID
    kind: str
    confidence: float
    """The chance that it is used in this session, calibrated on sessions that were not learned from."""
    reasons: tuple[str, ...]
    """Such as "used in 7 of the last 9 sessions with src/auth/login.py open"."""
    is_bearing: bool = True
    """Something of what is being done speaks for it, not only how often it is used."""


@dataclass(frozen=True)
class Prediction:
    """What is likely to be wanted in a session, the likeliest first."""

    session_id: str
    """Where feedback and later calls belong; made where none was told."""
    memories: tuple[Predicted, ...]
    confidence: float
    """The expected share of what the session will want that is among them; 0 where nothing is known."""
