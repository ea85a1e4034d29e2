"""The kinds of memory that are versioned: their table, the value a row becomes, and the columns a change may touch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from nous_online.core.domain import Censor, Episode, Fact, Procedure

M = TypeVar("M", Fact, Episode, Procedure, Censor)


@dataclass(frozen=True)
class Kind(Generic[M]):
    """One kind of memory."""

    name: str
    table: str
    """In schema `heart`."""
    value: type[M]
    changeable: frozenset[str]
    """What a change may set. What was said, its origin and when it was learned are never rewritten."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the value, in its order."""
        return tuple(field.name for field in fields(self.value))


EVERYWHERE = frozenset((
    "state", "tags", "summary", "compressed", "index_word", "source", "trust", "is_pinned", "archived_at",
    "is_forgotten", "scope", "user_id", "project_id", "rank_weight",
))  # fmt: skip
VECTORS = frozenset(("embedding", "context_embedding", "embedding_space_id"))

FACT = Kind("fact", "facts", Fact, EVERYWHERE | VECTORS | {
    "subject", "slot", "category", "confidence", "sources", "last_confirmed_at", "confirmation_count", "superseded_by",
    "superseded_at", "succession", "key", "valid_from", "valid_to", "contradiction_status", "perhaps_replaces",
})  # fmt: skip
EPISODE = Kind("episode", "episodes", Episode, EVERYWHERE | VECTORS | {
    "title", "detail", "compression_tier", "ended_at", "completed_at", "completion_note", "decision_ids",
    "participants", "procedures_activated", "outcome", "surprise_level", "lessons_learned", "frame_used",
    "encoded_censors",
})  # fmt: skip
PROCEDURE = Kind("procedure", "procedures", Procedure, EVERYWHERE | VECTORS | {
    "name", "domain", "goals", "core_patterns", "core_tools", "core_concepts", "implementation_notes", "steps",
    "template", "trigger", "activation_count", "success_count", "failure_count", "last_activated_at",
    "related_procedures", "related_decision_ids", "censors", "review_reason",
})  # fmt: skip
CENSOR = Kind("censor", "censors", Censor, (EVERYWHERE - {"tags"}) | VECTORS | {
    "severity", "activation_count", "false_positive_count", "escalation_threshold", "last_activated_at", "expires_at",
    "forgiven_count", "is_escalated", "exceptions", "last_activation",
})  # fmt: skip

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in (FACT, EPISODE, PROCEDURE, CENSOR)}
