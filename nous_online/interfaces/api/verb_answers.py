"""Responses of the HTTP interface that differ from what the verb returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Any
from uuid import UUID

from nous_online.context.context_lines import TIERS, Context, ContextLine, Predicted, Prediction, Tier
from nous_online.core.domain import Artifact, Censor, Fact, Memory, Procedure, Statement
from nous_online.memories.checking import Activation, CensorCheck
from nous_online.memories.contradictions import Contradiction
from nous_online.memories.decisions import Decision
from nous_online.memories.memory_verbs import Forgotten
from nous_online.memories.undoing import PastChange, SourceUndone
from nous_online.memories.workflows import LearnedWorkflow
from nous_online.queue.webhooks import Webhook
from nous_online.recall.ranking import ScoreParts
from nous_online.recall.recall import FoundMemory, Recall


@dataclass(frozen=True)
class StatementList:
    """What was said for a fact, the oldest first."""

    statements: list[Statement]
    unrecorded_count: int
    """Confirmations from before statements were kept: counted, without words."""


@dataclass(frozen=True)
class Remembered:
    """One answer of a recall: the text to show, why it stands where it stands, and the whole memory."""

    id: UUID
    kind: str
    text: str
    score: float
    parts: ScoreParts
    memory: FoundMemory
    put_before: UUID | None
    """The earlier fact about the same thing that it was put before."""
    contradicted_by: tuple[UUID, ...]
    """Facts that contradict it, undecided."""


@dataclass(frozen=True)
class RecallAnswer:
    """The answers of a recall, best first."""

    recall_id: UUID
    """Takes the feedback."""
    memories: list[Remembered]
    confidence: float
    """The chance that the best one found is an answer, 0 to 1."""
    is_confident: bool
    """Whether an answer is more likely to have been found than not."""
    is_by_words: bool
    """Whether only words were compared, because the embedder could not be asked."""

    @classmethod
    def of(cls, found: Recall) -> RecallAnswer:
        """Return the response for a recall."""
        memories = [
            Remembered(
                each.id,
                each.memory.kind,
                each.text,
                each.score,
                each.parts,
                each.memory,
                each.put_before,
                each.contradicted_by,
            )
            for each in found
        ]
        return cls(found.id, memories, found.confidence, found.is_confident, found.is_by_words)


@dataclass(frozen=True)
class FeedbackAnswer:
    """How much of the feedback was news."""

    cited: int
    ignored: int


@dataclass(frozen=True)
class Tiers:
    """Tokens of each tier: critical, relevant, background, index."""

    tier1: int
    tier2: int
    tier3: int
    tier4: int


@dataclass(frozen=True)
class ContextAnswer:
    """A context ready to be put before a model."""

    context: str
    token_count: int
    """Of the whole text; never above `budget`."""
    budget: int
    tiers: Tiers
    tokens: Mapping[Tier, int]
    """The same by the names of the tiers."""
    left_out: Mapping[Tier, int]
    """Lines of each tier that found no room."""
    counting: str
    recall_id: UUID
    """Takes the feedback: POST /recalls/{recall_id:uuid}/feedback."""
    lines: list[ContextLine]
    """Every line, with why it is there."""
    is_by_words: bool
    """Whether only words were compared with what was told, because the embedder could not be asked."""

    @classmethod
    def of(cls, found: Context) -> ContextAnswer:
        """Return the response for a context."""
        same = ("token_count", "budget", "tokens", "left_out", "counting", "recall_id", "is_by_words")
        values: dict[str, Any] = {name: getattr(found, name) for name in same}
        tiers = Tiers(*(found.tokens.get(tier, 0) for tier in TIERS))
        return cls(context=found.text, tiers=tiers, lines=list(found.lines), **values)


@dataclass(frozen=True)
class PredictionAnswer:
    """What is likely to be wanted in a session, the likeliest first."""

    session_id: str
    predicted_memories: list[Predicted]
    confidence: float
    """The expected share of what the session will want that is among them."""

    @classmethod
    def of(cls, found: Prediction) -> PredictionAnswer:
        """Return the response for a prediction."""
        return cls(found.session_id, list(found.memories), found.confidence)


@dataclass(frozen=True)
class CheckAnswer:
    """What speaks against an action."""

    is_allowed: bool
    """Whether nothing more than warns."""
    is_blocked: bool
    """Whether something more than warns."""
    severity: str | None
    """The firmest, null where nothing speaks against it."""
    activations: list[Activation]
    """The firmest first."""

    @classmethod
    def of(cls, found: CensorCheck) -> CheckAnswer:
        """Return the response for a check of censors."""
        return cls(found.is_allowed, not found.is_allowed, found.severity, list(found))


@dataclass(frozen=True)
class ForgottenAnswer:
    """A memory that was forgotten, and the facts that stay out of recall with it."""

    memory: Memory
    merged: tuple[UUID, ...]
    """Facts that were merged into it."""
    replaced: tuple[UUID, ...]
    """Facts it had taken the place of."""

    @classmethod
    def of(cls, gone: Forgotten) -> ForgottenAnswer:
        """Return the response for a forgotten memory."""
        return cls(gone.memory, gone.merged, gone.replaced)


@dataclass(frozen=True)
class NotUndone:
    """A memory that still holds what the source said."""

    memory_id: UUID
    reason: str


@dataclass(frozen=True)
class SourceAnswer:
    """Which memories no longer hold what a source said, the latest first, and which still do."""

    undone: tuple[UUID, ...]
    refused: tuple[NotUndone, ...]

    @classmethod
    def of(cls, done: SourceUndone) -> SourceAnswer:
        """Return the response for an undone source."""
        return cls(done.undone, tuple(NotUndone(each, why) for each, why in done.refused.items()))


@dataclass(frozen=True)
class WorkflowAnswer:
    """A workflow that was found, what was done about it, and the procedure it is kept as."""

    action: str
    name: str
    steps: list[str]
    support: int
    """How many sessions hold it."""
    success_share: float | None
    procedure: Procedure | None
    """Null where it was only looked for."""


@dataclass(frozen=True)
class WorkflowList:
    """The workflows that episodes share."""

    workflows: list[WorkflowAnswer]

    @classmethod
    def of(cls, found: Sequence[LearnedWorkflow]) -> WorkflowList:
        """Return the response for learned workflows."""
        return cls(
            [
                WorkflowAnswer(
                    each.action,
                    each.found.name,
                    [step.name for step in each.found.steps],
                    each.found.support,
                    each.found.success_share,
                    each.procedure,
                )
                for each in found
            ]
        )


def wrapped(name: str, about: str, **fields: Any) -> type[Any]:
    """Return a response class with one field: an object, unlike a bare list, can get more fields later."""
    answer = make_dataclass(name, fields.items(), frozen=True)
    answer.__doc__ = about
    return answer


MemoryAnswer = wrapped("MemoryAnswer", "A memory of any kind.", memory=Memory)
CensorList = wrapped("CensorList", "The active censors of an agent.", censors=list[Censor])
ContradictionList = wrapped(
    "ContradictionList", "Contradictions, the oldest first.", contradictions=list[Contradiction]
)
FactList = wrapped("FactList", "Facts, the latest first.", facts=list[Fact])
FactCounts = wrapped("FactCounts", "How many facts there are in each state.", counts=dict[str, int])
ChangeList = wrapped("ChangeList", "Every change of a memory, the latest first.", changes=list[PastChange])
ArtifactList = wrapped("ArtifactList", "What an episode produced or was about.", artifacts=list[Artifact])
ProcedureList = wrapped("ProcedureList", "Procedures, the best first.", procedures=list[Procedure])
DecisionList = wrapped("DecisionList", "Decisions, the latest first.", decisions=list[Decision])
WebhookList = wrapped("WebhookList", "The webhooks of an agent, oldest first.", webhooks=list[Webhook])
StoredCount = wrapped("StoredCount", "How many of the facts were new.", stored=int)
