"""What may be done to a memory of any kind by its id: forget it, restore it, pin it, correct what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.core.domain import Memory
from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import (
    SENDABLE,
    Body,
    Flag,
    Line,
    Moment,
    Name,
    Share,
    Tags,
    check_order,
    text_of,
)

router = APIRouter(prefix="/memories/{memory_id:uuid}", tags=["memories"])
Reason = Annotated[str, text_of(4096), SENDABLE]
CLEARED = ("subject", "category", "valid_from", "valid_to")
"""What null clears; for the rest it says nothing."""


class ForgetBody(Body):
    """Why a memory is to be forgotten."""

    model_config = ConfigDict(json_schema_extra={"example": {"reason": "the lock was changed"}})

    reason: Reason


class ReasonBody(Body):
    """Why something is done to a memory."""

    model_config = ConfigDict(json_schema_extra={"example": {"reason": "forgotten by mistake"}})

    reason: Reason | None = None


class CorrectionBody(Body):
    """What is known about a memory besides its text; what is not named stays, null clears what may be absent."""

    model_config = ConfigDict(
        json_schema_extra={"minProperties": 1, "example": {"subject": "gate code", "tags": ["home"]}}
    )

    tags: Tags | None = Field(default=None, description="Of anything but a censor.")
    subject: Line | None = Field(default=None, max_length=500, description="Of a fact, as what follows but is_pinned.")
    category: Name | None = None
    confidence: Share | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = Field(default=None, description="Not before `valid_from`.")
    is_pinned: Flag | None = Field(default=None, description="No night archives it.")
    reason: Reason | None = None


@dataclass(frozen=True)
class MemoryAnswer:
    """A memory of any kind."""

    memory: Memory


@dataclass(frozen=True)
class ForgottenAnswer:
    """A memory that was forgotten, and the facts that stay out of recall with it."""

    memory: Memory
    merged: tuple[UUID, ...]
    """Facts that were merged into it."""
    replaced: tuple[UUID, ...]
    """Facts it had taken the place of."""


@router.post("/forget", operation_id="forget", summary="Forget a memory")
def forget(memory_id: UUID, body: ForgetBody, call: HeartCall) -> ForgottenAnswer:
    """Take a memory out of recall, contexts and questions about the past; it stays in the store and can be restored."""
    gone = call.heart.forget(memory_id, reason=body.reason, deadline_s=call.left())
    return ForgottenAnswer(gone.memory, gone.merged, gone.replaced)


@router.post("/restore", operation_id="restore", summary="Restore a memory")
def restore(memory_id: UUID, body: ReasonBody, call: HeartCall) -> MemoryAnswer:
    """Bring back a memory that was forgotten, or archived by a night, to the state it was in."""
    return MemoryAnswer(call.heart.restore(memory_id, reason=body.reason, deadline_s=call.left()))


@router.post("/pin", operation_id="pin", summary="Pin a memory")
def pin(memory_id: UUID, body: ReasonBody, call: HeartCall) -> MemoryAnswer:
    """Keep nights from archiving or condensing a memory."""
    return MemoryAnswer(call.heart.pin(memory_id, reason=body.reason, deadline_s=call.left()))


@router.post("/unpin", operation_id="unpin", summary="Unpin a memory")
def unpin(memory_id: UUID, body: ReasonBody, call: HeartCall) -> MemoryAnswer:
    """Let nights archive and condense a memory again."""
    return MemoryAnswer(call.heart.unpin(memory_id, reason=body.reason, deadline_s=call.left()))


@router.patch("", operation_id="update", summary="Correct a memory")
def update(memory_id: UUID, body: CorrectionBody, call: HeartCall) -> MemoryAnswer:
    """Correct what is known about a memory; its text never changes: learn the other one."""
    check_order(body.valid_from, body.valid_to)
    changes: Any = {name: value for name, value in body.told("reason").items() if value is not None or name in CLEARED}
    return MemoryAnswer(call.heart.update(memory_id, reason=body.reason, deadline_s=call.left(), **changes))
