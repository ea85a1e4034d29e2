"""The memories and their parts, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Generic, Literal, Self, TypeVar, get_args
from uuid import UUID

LearnAction = Literal["stored", "confirmed", "superseded"]
SourceKind = Literal["user", "agent", "tool", "web", "episode", "import", "operator"]
Scope = Literal["private", "project", "system"]
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
Outcome = Literal["success", "failure", "partial", "ongoing"]
Severity = Literal["warn", "block", "absolute"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
ProcedureKind = Literal["k_line", "workflow", "pattern"]
MemoryKind = Literal["fact", "episode", "procedure", "censor"]
Detail = Literal["full", "summary", "compressed", "index"]
"""The levels a memory can be shown at, the most detailed first."""
DecisionStatus = Literal["pending", "succeeded", "failed", "abandoned"]
DECISION_STATUSES: tuple[DecisionStatus, ...] = get_args(DecisionStatus)
DOCUMENT = "document"
"""The category of a named text: it is found by name, so learning and nights don't compare it."""

DecisionId = UUID | str
"""The id of a decision recorded here, or the reference of one recorded elsewhere, such as `abc123`."""


SHOWN_CHARACTERS = 60


def decision_of(text: DecisionId) -> DecisionId:
    """Return a decision's id as a UUID where the text is one in its usual form, else the text itself."""
    try:
        found = UUID(str(text))
    except ValueError:
        return text
    return found if str(found) == str(text).lower() else text  # `UUID` accepts 32 hexadecimal digits too: a reference


class WithDecisionIds:
    """Mixin that converts the columns with ids of decisions, which are text in the database, to `DecisionId`."""

    def __post_init__(self) -> None:
        for name in ("source_decision_id", "decision_id", "learned_from_decision_id"):
            if isinstance(value := getattr(self, name, None), str):
                object.__setattr__(self, name, decision_of(value))
        for name in ("decision_ids", "related_decision_ids"):
            if value := getattr(self, name, None):
                object.__setattr__(self, name, [decision_of(each) for each in value])


def shortened(text: str) -> str:
    """Return a text cut to the 60 characters that a `repr` shows."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


class Addable:
    """Mixin for dataclasses of counts, sums or lists: `+` adds field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: value + getattr(other, name) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Fact(WithDecisionIds):
    """A statement the agent learned, with its present state."""

    def __repr__(self) -> str:
        return f"<fact {str(self.id)[:8]} {self.state} {self.learned_at:%Y-%m-%d}: {shortened(self.content)!r}>"

    id: UUID
    state: str
    content: str
    subject: str | None
    slot: str | None
    key: str | None
    category: str | None
    tags: list[str]
    confidence: float
    source: str | None
    source_kind: SourceKind
    source_episode_id: UUID | None
    source_decision_id: DecisionId | None
    sources: list[str]
    """The sources of all statements that confirmed it or were merged into it."""
    trust: int
    is_pinned: bool
    learned_at: datetime
    last_confirmed_at: datetime | None
    confirmation_count: int
    superseded_by: UUID | None
    succession: str | None
    """How it was superseded: `merged` into a fact of the same meaning, or `replaced` by one of another meaning."""
    valid_from: datetime | None
    valid_to: datetime | None
    contradiction_status: str
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Scope
    user_id: str | None
    project_id: str | None
    rank_weight: float
    row_version: int
    is_forgotten: bool = False
    """Forgotten on request: archived, and not found by questions about the past either."""
    perhaps_replaces: list[UUID] = field(default_factory=list)
    """Earlier facts it perhaps replaces, though the judge was not sure: both stay, and recall puts it before them."""


@dataclass(frozen=True)
class Statement(WithDecisionIds):
    """A statement, word for word, and its fact."""

    def __repr__(self) -> str:
        return f"<statement {str(self.id)[:8]} {self.reason} {self.said_at:%Y-%m-%d}: {shortened(self.content)!r}>"

    id: UUID
    fact_id: UUID
    """Its fact, which may have been merged into the one in question."""
    content: str
    subject: str | None
    said_at: datetime
    recorded_at: datetime
    source: str | None
    source_kind: SourceKind
    trust: int
    reason: str
    """How it relates to the fact: `first` (its words are the fact), `imported` (the same, by an import), `repeat` (the
    same words but for case, spacing and punctuation), `reworded` (other words), `merged` (a statement of a fact that
    was merged into it)."""
    taken_back_at: datetime | None
    """When its confirmation was undone: it is kept, and no longer counts."""
    scope: Scope
    user_id: str | None
    project_id: str | None
    session_id: str | None
    episode_id: UUID | None
    decision_id: DecisionId | None
    frame: str | None


@dataclass(frozen=True)
class Episode(WithDecisionIds):
    """Something that happened: its text, participants and outcome."""

    def __repr__(self) -> str:
        about = shortened(self.title or self.summary or self.compressed or self.detail or "")
        return f"<episode {str(self.id)[:8]} {self.state} {self.started_at:%Y-%m-%d}: {about!r}>"

    id: UUID
    state: str
    session_id: str | None
    title: str | None
    detail: str | None
    summary: str | None
    compressed: str | None
    compression_tier: str
    started_at: datetime
    ended_at: datetime | None
    duration_seconds: int | None
    completed_at: datetime | None
    completion_note: str | None
    decision_ids: list[DecisionId]
    participants: list[str]
    tags: list[str]
    frame_used: str | None
    encoded_censors: list[str] | None
    procedures_activated: list[UUID]
    outcome: Outcome | None
    surprise_level: float | None
    lessons_learned: list[str]
    source: str | None
    source_kind: SourceKind
    trust: int
    is_pinned: bool
    scope: Scope
    user_id: str | None
    project_id: str | None
    rank_weight: float
    row_version: int
    is_forgotten: bool = False


@dataclass(frozen=True)
class Artifact:
    """Something an episode produced or was about: a commit, a pull request, a decision record or a file."""

    kind: str
    reference: str


@dataclass(frozen=True)
class Procedure(WithDecisionIds):
    """How something is done: a K-line of three bands, a workflow of steps, or a pattern with a template."""

    def __repr__(self) -> str:
        when = f"{str(self.id)[:8]} {self.state} {self.learned_at:%Y-%m-%d}"
        return f"<procedure {when}: {self.kind} {shortened(self.name)!r}>"

    id: UUID
    state: str
    name: str
    domain: str | None
    kind: ProcedureKind
    goals: list[str]
    core_patterns: list[str]
    core_tools: list[str]
    core_concepts: list[str]
    implementation_notes: list[str]
    steps: list[Any]
    template: Any
    trigger: str | None
    compressed: str | None
    activation_count: int
    success_count: int
    failure_count: int
    last_activated_at: datetime | None
    related_procedures: list[UUID]
    related_decision_ids: list[DecisionId]
    censors: list[str]
    tags: list[str]
    review_reason: str | None
    source: str | None
    source_kind: SourceKind
    trust: int
    is_pinned: bool
    learned_at: datetime
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Scope
    user_id: str | None
    project_id: str | None
    rank_weight: float
    row_version: int
    is_forgotten: bool = False

    @property
    def effectiveness(self) -> float | None:
        """The share of uses that succeeded; None before the first one was judged."""
        judged = self.success_count + self.failure_count
        return self.success_count / judged if judged else None


@dataclass(frozen=True)
class Censor(WithDecisionIds):
    """Something not to do: its trigger, the reason, and the severity."""

    def __repr__(self) -> str:
        when = f"{str(self.id)[:8]} {self.state} {self.learned_at:%Y-%m-%d}"
        return f"<censor {when}: {self.severity} {shortened(self.trigger)!r}>"

    id: UUID
    state: str
    trigger: str
    reason: str
    severity: Severity
    is_literal: bool
    activation_count: int
    false_positive_count: int
    escalation_threshold: int
    last_activated_at: datetime | None
    learned_from_decision_id: DecisionId | None
    learned_from_episode_id: UUID | None
    source: str | None
    source_kind: SourceKind
    trust: int
    is_pinned: bool
    learned_at: datetime
    expires_at: datetime | None
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Scope
    user_id: str | None
    project_id: str | None
    rank_weight: float
    forgiven_count: int
    """Activations that don't count towards a block: by meaning alone, reported as false, or before it was lowered."""
    is_escalated: bool
    """Whether its activations made it a block, rather than a person."""
    exceptions: list[dict[str, Any]]
    """Actions reported as false alarms, the latest last: `action`, `activation_id`, `source_kind`, `reported_at`."""
    row_version: int
    is_forgotten: bool = False


Memory = Fact | Episode | Procedure | Censor

MEANINGS = {
    "id": "Its id.",
    "content": "One statement.",
    "state": "Its state in the lifecycle.",
    "last_confirmed_at": "When it was last confirmed.",
    "confirmation_count": "How often it was confirmed.",
    "superseded_by": "The fact that superseded it.",
    "contradiction_status": "Whether it is part of a contradiction, and whether that is resolved.",
    "activation_count": "How often it was activated.",
    "last_activated_at": "When it was last activated.",
    "false_positive_count": "How many activations were reported as false.",
    "success_count": "How many uses succeeded.",
    "failure_count": "How many uses failed.",
    "compression_tier": "How far it was condensed: raw, summary, compressed or fossil.",
    "completed_at": "When its title, summary and facts were written.",
    "compressed": "Its text in one line.",
    "duration_seconds": "How long it took.",
    "rank_weight": "The weight nights derived from its use: recall multiplies its score by it.",
    "row_version": "Its version, incremented by every change.",
    "slot": "The attribute it gives a value of, from its words.",
    "detail": "What was said and done.",
    "completion_note": "A note on its completion, such as why it was set aside.",
    "name": "Its name.",
    "review_reason": "Why a night flagged it for review.",
    "trigger": "What triggers it.",
    "reason": "Why not, or what to do instead.",
    "title": "Its name.",
    "status": "Whether it is pending, succeeded, failed or was abandoned.",
    "outcome": "What came of it.",
    "resolved_at": "When it was resolved.",
    "perhaps_replaces": "Earlier facts it perhaps replaces, though no judge is sure; recall puts it before them.",
    "is_forgotten": "Forgotten on request: archived, and not found by questions about the past either.",
}
"""The meaning of fields that are not parameters; `core/details.py` explains the others."""


@dataclass(frozen=True)
class Neighbour:
    """A stored fact near a new statement; `similarity` is their cosine."""

    fact: Fact
    similarity: float


@dataclass(frozen=True)
class Near:
    """An active fact near a new statement; `similarity` is their cosine, `verdict` a judge's."""

    fact: Fact
    similarity: float
    verdict: str | None
    """None where no judge was asked."""
    reason: str | None
    suggestion: str | None
    """How to state that the new statement replaces it, where that is possible."""


@dataclass(frozen=True)
class Learned:
    """The result of learning: `action`, the memory stored or confirmed, the fact it was compared with, and why."""

    action: LearnAction
    memory: Fact
    reason: str
    match: Neighbour | None = None
    contradicts: tuple[Neighbour, ...] = ()
    """Facts that contradict it; `contradictions` lists them until somebody decides."""
    near: tuple[Near, ...] = ()
    """Up to five other active facts near it, the nearest first: it may replace one of them."""
    forgotten: UUID | None = None
    """A forgotten fact of the same words: it stays forgotten, and this is a new one."""
    hidden: int = 0
    """How many credentials were hidden in its texts."""


@dataclass(frozen=True)
class NewFact:
    """A statement checked and ready to be stored."""

    content: str
    subject: str | None
    category: str | None
    tags: list[str]
    context: str | None
    confidence: float
    source: str | None
    source_kind: SourceKind
    trust: int
    is_pinned: bool
    learned_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Scope
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None
    slot: str | None = None
    key: str | None = None
    hidden: int = 0
    """How many credentials were hidden in it."""
    summary: str | None = None
    compressed: str | None = None
    index_word: str | None = None
    source_episode_id: UUID | None = None
    source_decision_id: DecisionId | None = None
    session_id: str | None = None
    sources: list[str] = field(default_factory=list)
    perhaps_replaces: list[UUID] = field(default_factory=list)


@dataclass(frozen=True)
class EmbeddingSpace:
    """The vectors that may be compared with each other: of one model, one set of weights, one width."""

    id: str
    model: str
    weights_sha256: str
    dimensions: int


# --- the kinds of memory that are versioned ---

M = TypeVar("M", Fact, Episode, Procedure, Censor)


@dataclass(frozen=True)
class Kind(Generic[M]):
    """One kind of memory."""

    name: str
    table: str
    """In schema `heart`."""
    value: type[M]
    changeable: frozenset[str]
    """The columns that may change. Its text, its origin and when it was learned never do."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self.value))


EVERYWHERE = frozenset((
    "state", "tags", "summary", "compressed", "index_word", "source", "trust", "is_pinned", "archived_at",
    "is_forgotten", "scope", "user_id", "project_id", "rank_weight",
))  # fmt: skip
VECTORS = frozenset(("embedding", "context_embedding", "embedding_space_id"))

FACT = Kind("fact", "facts", Fact, EVERYWHERE | VECTORS | {
    "subject", "slot", "category", "confidence", "sources", "last_confirmed_at", "confirmation_count", "superseded_by",
    "superseded_at", "succession", "key", "valid_from", "valid_to", "contradiction_status", "perhaps_replaces",
    "context",
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
