"""Learning facts, recalling memories, and saying what of them was used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.core.domain import Fact, Learned, Statement
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.heart import Heart
from nous_online.interfaces.api.access import HeartCall, IdempotencyKey
from nous_online.interfaces.api.bodies import (
    PROJECT_NEEDS_ID,
    SENDABLE,
    Body,
    Ids,
    carrying,
    check_order,
    episode_needs,
    text_of,
)
from nous_online.memories.store import unrecorded_count
from nous_online.recall.ranking import ScoreParts
from nous_online.recall.recall import FoundMemory
from nous_online.recall.recalling import Recall

router = APIRouter(tags=["memories"])


@carrying(Heart.learn)
class FactBody(Body):
    """A fact to be learned."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [PROJECT_NEEDS_ID, episode_needs("source_episode_id")],
            "example": {
                "content": "Deploys go through blue/green since May",
                "subject": "deploys",
                "tags": ["process"],
                "frame": "decision",
                "source": "chat with Ada",
            },
        }
    )


@carrying(Heart.recall, without=("at",))
class RecallBody(Body):
    """A question to the memory."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"query": "how do we deploy?", "limit": 5, "frame": "decision"}}
    )


class FeedbackBody(Body):
    """What of a recall, or of a context, was used and what was of no use."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"cited": ["0199ab3e-6f52-7c1e-9d53-2f4f5a9b7c11"], "ignored": []}}
    )

    cited: Ids = Field(default=[], description="Memories that were used: they rise, and no night may lose them.")
    ignored: Ids = Field(default=[], description="Memories that were of no use.")


class SplitBody(Body):
    """Why a statement is made a fact of its own."""

    model_config = ConfigDict(json_schema_extra={"example": {"reason": "voting against is not voting for"}})

    reason: Annotated[str, text_of(1000), SENDABLE] | None = None


class KeepBothBody(Body):
    """Which earlier fact stays beside the later one, and why."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"earlier_id": "0199ab3e-6f52-7c1e-9d53-2f4f5a9b7c11", "reason": "two offices, one each"}
        }
    )

    earlier_id: UUID = Field(description="One of the fact's `perhaps_replaces`.")
    reason: Annotated[str, text_of(1000), SENDABLE] | None = None


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


@dataclass(frozen=True)
class FeedbackAnswer:
    """How much of the feedback was news."""

    cited: int
    ignored: int


@router.post("/facts", operation_id="learn", summary="Learn a fact")
def learn(body: FactBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Learned:
    """Learn one fact: confirm the one that says the same, supersede the one it updates, or store it.

    `near` holds other facts near it. Where it takes the place of one of them, learn it again with its id in `replaces`.
    """
    told = body.told()
    check_order(told.get("valid_from"), told.get("valid_to"))
    return call.heart.learn(deadline_s=call.left(), idempotency_key=idempotency_key, **told)


@router.get("/facts/{fact_id:uuid}/statements", operation_id="list_statements", summary="What was said for a fact")
def list_statements(fact_id: UUID, call: HeartCall) -> StatementList:
    """Return what was said for a fact, word for word, the oldest first; for a fact in any state.

    Statements of facts that were merged into it are among them.
    """
    fact = call.heart.get(fact_id, deadline_s=call.left())
    said = call.heart.statements(fact_id, deadline_s=call.left())
    return StatementList(said, unrecorded_count(fact, said))


@router.post(
    "/statements/{statement_id:uuid}/split", operation_id="split", summary="Make a statement a fact of its own"
)
def split(statement_id: UUID, body: SplitBody, call: HeartCall) -> Fact:
    """Make a statement a fact of its own, apart from the fact it was taken for, and return that.

    A statement that gave a fact its words can't be split off it, unless that fact was merged into another.
    """
    return call.heart.split(statement_id, reason=body.reason, deadline_s=call.left())


@router.post(
    "/facts/{fact_id:uuid}/keep-both", operation_id="keep_both", summary="Settle that a fact replaces no other"
)
def keep_both(fact_id: UUID, body: KeepBothBody, call: HeartCall) -> Fact:
    """Settle that a fact does not replace an earlier one it is in doubt to replace; undo opens the doubt again."""
    return call.heart.keep_both(fact_id, body.earlier_id, reason=body.reason, deadline_s=call.left())


@router.post("/recall", operation_id="recall", summary="Recall memories")
def recall(body: RecallBody, call: HeartCall) -> RecallAnswer:
    """Return what answers a question best, best first, with the parts of each score, and remember that it was asked."""
    return shown(call.heart.recall(deadline_s=call.left(), **body.told()))


def shown(found: Recall) -> RecallAnswer:
    """Return a recall as it is sent."""
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
    return RecallAnswer(found.id, memories, found.confidence, found.is_confident, found.is_by_words)


@router.post("/recalls/{recall_id:uuid}/feedback", operation_id="give_feedback", summary="Say what was used")
def give_feedback(recall_id: UUID, body: FeedbackBody, call: HeartCall) -> FeedbackAnswer:
    """Say which answers of a recall, or lines of a context, were used, and which were of no use.

    Saying it twice counts once. What the recall did not return is not found.
    """
    try:
        ignored = call.heart.ignore(recall_id, body.ignored, deadline_s=call.left())
        return FeedbackAnswer(call.heart.cite(recall_id, body.cited, deadline_s=call.left()), ignored)
    except InvalidInput as error:
        raise NotFound(str(error)) from error
