"""Working memory: what a session is about, and what it holds."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from nous_online.core.policy import SessionPolicy
from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import (
    NOT_BLANK,
    PROJECT_NEEDS_ID,
    SENDABLE,
    WHOLE,
    Body,
    Id,
    Ids,
    Lines,
    Name,
    Outcome,
    ReachFields,
    Share,
    Tags,
    counted,
    text_of,
)
from nous_online.memories.session_ends import SessionEnd
from nous_online.memories.sessions import MAX_TASK_BYTES
from nous_online.memories.working_memory import WorkingMemory

router = APIRouter(prefix="/sessions/{session_id}", tags=["working memory"])
SessionId = Annotated[str, Path(min_length=1, max_length=100, pattern=NOT_BLANK)]
SOMETHING_TO_LOAD: dict[str, Any] = {
    "anyOf": [
        {"properties": {"memory_ids": {"type": "array", "minItems": 1}}, "required": ["memory_ids"]},
        {"properties": {"procedure_id": {"type": "string"}}, "required": ["procedure_id"]},
        {"properties": {"note": {"type": "string"}}, "required": ["note"]},
    ]
}


class FocusBody(Body):
    """What a session is about now."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"task": "migrate the staging database", "frame": "task", "capacity": 20}}
    )

    task: Annotated[str, text_of(MAX_TASK_BYTES), SENDABLE] | None = Field(
        default=None, description="What it is about; stays as it is unless told, and so does the rest."
    )
    frame: Name | None = None
    active_censors: Tags | None = Field(
        default=None, description="With the frame, what calls of this session go by that tell none."
    )
    capacity: Annotated[int, counted(1, SessionPolicy.max_capacity), WHOLE] | None = Field(
        default=None, description="How many items it holds; 20 at first."
    )


class LoadBody(Body):
    """What is taken into working memory."""

    model_config = ConfigDict(
        json_schema_extra={**SOMETHING_TO_LOAD, "example": {"note": "the dump takes 40 minutes", "relevance": 0.8}}
    )

    memory_ids: Ids = Field(default=[], description="Memories of any kind.")
    procedure_id: Id | None = None
    note: Annotated[str, text_of(4096), SENDABLE] | None = Field(
        default=None, description="A text that is no memory yet."
    )
    relevance: Share | None = Field(default=None, description="How near each is to the task, unless told.")


class EndBody(ReachFields):
    """What is to be kept of a session that ends."""

    model_config = ConfigDict(
        json_schema_extra={
            **PROJECT_NEEDS_ID,
            "example": {"outcome": "success", "lessons_learned": ["Dump before the migration."]},
        }
    )

    outcome: Outcome | None = None
    lessons_learned: Lines | None = None


@router.put("/focus", operation_id="focus", summary="Say what a session is about")
def focus(session_id: SessionId, body: FocusBody, call: HeartCall) -> WorkingMemory:
    """Give a session its task: what it holds is weighed anew, and the least relevant goes."""
    return call.heart.focus(session_id=session_id, deadline_s=call.left(), **body.told())


@router.post("/load", operation_id="load_context", summary="Take memories into working memory")
def load(session_id: SessionId, body: LoadBody, call: HeartCall) -> WorkingMemory:
    """Take memories, or a note, into working memory; the answer names what had to go for them."""
    return call.heart.load_context(session_id=session_id, deadline_s=call.left(), **body.told())


@router.get("", operation_id="get_working_memory", summary="Read the working memory")
def get(session_id: SessionId, call: HeartCall) -> WorkingMemory:
    """Return what a session holds, the most relevant first."""
    return call.heart.get_working_memory(session_id, deadline_s=call.left())


@router.post("/end", operation_id="end_session", summary="End a session")
def end(session_id: SessionId, body: EndBody, call: HeartCall) -> SessionEnd:
    """End a session: what is worth keeping goes into its episode, and its memory is cleared."""
    return call.heart.end_session(session_id, deadline_s=call.left(), **body.told())
