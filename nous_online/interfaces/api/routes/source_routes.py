"""What came from one source, and taking it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import SENDABLE, Body, Line, text_of

router = APIRouter(prefix="/sources", tags=["memories"])


class SourceBody(Body):
    """Which source is to be taken back, and why."""

    model_config = ConfigDict(json_schema_extra={"example": {"source": "wiki.example.org", "reason": "it was forged"}})

    source: Line = Field(max_length=500, description="As memories name it, or the name an import was given.")
    reason: Annotated[str, text_of(4096), SENDABLE]


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


@router.post("/undo", operation_id="undo_source", summary="Take back all that one source said")
def undo_source(body: SourceBody, call: HeartCall) -> SourceAnswer:
    """Archive what the source began and take back what it confirmed; all of each memory, or nothing."""
    done = call.heart.undo_source(body.source, reason=body.reason, deadline_s=call.left())
    return SourceAnswer(done.undone, tuple(NotUndone(each, why) for each, why in done.refused.items()))
