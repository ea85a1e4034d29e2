"""What assembling a context and predicting return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from nous_online.core.domain import Detail
from nous_online.core.policy import ContextPolicy

POLICY = ContextPolicy()
Tier = Literal["critical", "relevant", "background", "index"]
TIERS: tuple[Tier, ...] = ("critical", "relevant", "background", "index")
"""The four tiers, the most important first; what one leaves of its share flows down to the next."""


@dataclass(frozen=True)
class ContextLine:
    """One line of a context, and why it is there."""

    tier: Tier
    kind: str
    """`fact`, `episode`, `procedure`, `censor`, `decision`, `contradiction`, a `note` of working memory, or a `pointer`
    to several."""
    memory_ids: tuple[UUID, ...]
    """What it shows: two of a contradiction, several of a pointer, one otherwise."""
    level: Detail
    text: str
    tokens: int
    reason: str


@dataclass(frozen=True)
class Context:
    """A context ready to be put before a model; `recall_id` takes the feedback on what it showed."""

    def __repr__(self) -> str:
        return f"<context of {len(self.lines)} lines, {self.token_count:,} of {self.budget:,} tokens>"

    recall_id: UUID
    text: str
    budget: int
    token_count: int
    """Of the whole text, counted as `counting` says; never above `budget`."""
    counting: str
    """Whose tokens they are: the tokenizer that `NOUS_TOKENIZER` names."""
    tokens: Mapping[Tier, int]
    """Tokens of each tier, its heading included."""
    lines: tuple[ContextLine, ...]
    left_out: Mapping[Tier, int]
    """How many lines of each tier found no room."""
    is_by_words: bool = False
    """Whether only words were compared with what was told, because the embedder could not be asked."""


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
