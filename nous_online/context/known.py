"""What a context is made from, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from nous_online.context.prediction.prediction_answer import Predicted
from nous_online.memories.working_memory import Item
from nous_online.recall.recall import FoundMemory, Recalled

QUESTION, TASK, FILE, ERROR = "question", "task", "file", "error"


@dataclass(frozen=True)
class ContextReach:
    """For whom a context is, at which moment, and what they are doing."""

    agent_id: str
    at: datetime
    is_past: bool
    """The moment was told: what stands is what stood then."""
    session_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    file: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Contradicting:
    """Two facts that can't both be so, the one learned first in front."""

    detected_at: datetime
    facts: tuple[FoundMemory, FoundMemory]

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.facts[0].id, self.facts[1].id


@dataclass(frozen=True)
class StandingMemories:
    """What stands whatever is asked: memories by section, open contradictions and decisions."""

    memories: Mapping[str, Sequence[FoundMemory]] = field(default_factory=dict[str, Sequence[FoundMemory]])
    contradictions: Sequence[Contradicting] = ()
    decisions: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Linked:
    """A memory read by its id; a weight says how strongly it is linked to one that was found."""

    memory: FoundMemory
    weight: float | None


@dataclass(frozen=True)
class Answered:
    """What was recalled for a question, a task, a file or an error."""

    cue: str
    """One of QUESTION, TASK, FILE and ERROR."""
    text: str
    answers: Sequence[Recalled]


@dataclass(frozen=True)
class Known:
    """Everything a context can be made of."""

    standing: StandingMemories = field(default_factory=StandingMemories)
    answered: Sequence[Answered] = ()
    predicted: Sequence[Predicted] = ()
    named: Sequence[Linked] = ()
    """The predicted and the held ones, and what is linked to what was recalled."""
    held: Sequence[Item] = ()
    threads: Sequence[str] = ()
    use_counts: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
