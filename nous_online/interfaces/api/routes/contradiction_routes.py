"""What contradicts itself, and settling it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import SENDABLE, Body, Id, text_of
from nous_online.memories.contradictions import Contradiction

router = APIRouter(prefix="/contradictions", tags=["contradictions"])
Status = Annotated[Literal["open", "resolved", "any"], Query(description="Which contradictions.")]
HOW_IT_ENDS: dict[str, Any] = {
    "oneOf": [
        {"required": ["resolution"], "properties": {"resolution": {"type": "string"}, "keep": {"type": "null"}}},
        {"required": ["keep"], "properties": {"keep": {"type": "string"}, "resolution": {"type": "null"}}},
    ],
    "if": {"properties": {"resolution": {"const": "merged"}}, "required": ["resolution"]},
    "then": {"required": ["merged_into"], "properties": {"merged_into": {"type": "string"}}},
    "else": {"properties": {"merged_into": {"type": "null"}}},
}


class RulingBody(Body):
    """How a contradiction ends: a `resolution`, or `keep`, the fact that wins."""

    model_config = ConfigDict(
        json_schema_extra={
            **HOW_IT_ENDS,
            "example": {"resolution": "b_wins", "note": "Migration completed, A is outdated"},
        }
    )

    resolution: Literal["a_wins", "b_wins", "both_valid", "merged"] | None = None
    keep: Id | None = Field(default=None, description="Instead of a resolution: the id of the fact that wins.")
    note: Annotated[str, text_of(4096), SENDABLE] | None = None
    merged_into: Id | None = Field(
        default=None, description="With `merged`, and only then: the fact, learned for it, that takes both places."
    )


@dataclass(frozen=True)
class ContradictionList:
    """Contradictions, the oldest first."""

    contradictions: list[Contradiction]


@router.get("", operation_id="list_contradictions", summary="List contradictions")
def list_all(call: HeartCall, status: Status = "open") -> ContradictionList:
    """Return the agent's contradictions in one status, the oldest first."""
    wanted = None if status == "any" else status
    return ContradictionList(call.heart.contradictions(status=wanted, deadline_s=call.left()))


@router.post("/{contradiction_id:uuid}/resolve", operation_id="resolve_contradiction", summary="Decide a contradiction")
def resolve(contradiction_id: UUID, body: RulingBody, call: HeartCall) -> Contradiction:
    """Decide a contradiction, and return it with both texts; the loser is superseded, and can be brought back."""
    return call.heart.resolve_contradiction(
        contradiction_id,
        body.resolution,
        keep=body.keep,
        note=body.note,
        merged_into=body.merged_into,
        deadline_s=call.left(),
    )
