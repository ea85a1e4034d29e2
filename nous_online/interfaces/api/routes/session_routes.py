"""Working memory: what a session is about, and what it holds."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import ConfigDict

from nous_online.heart import Heart
from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import NOT_BLANK, PROJECT_NEEDS_ID, Body, carrying
from nous_online.memories.sessions import SessionEnd
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


@carrying(Heart.focus, without=("session_id",))
class FocusBody(Body):
    """What a session is about now."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"task": "migrate the staging database", "frame": "task", "capacity": 20}}
    )


@carrying(Heart.load_context, without=("session_id", "fact_ids", "episode_ids", "censor_ids"))
class LoadBody(Body):
    """What is taken into working memory."""

    model_config = ConfigDict(
        json_schema_extra={**SOMETHING_TO_LOAD, "example": {"note": "the dump takes 40 minutes", "relevance": 0.8}}
    )


@carrying(Heart.end_session, without=("session_id",))
class EndBody(Body):
    """What is to be kept of a session that ends."""

    model_config = ConfigDict(
        json_schema_extra={
            **PROJECT_NEEDS_ID,
            "example": {"outcome": "success", "lessons_learned": ["Dump before the migration."]},
        }
    )


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
