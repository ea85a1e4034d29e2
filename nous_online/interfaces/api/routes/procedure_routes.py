"""Storing and activating procedures, and saying how they went."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.core.domain import Procedure
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.heart import Heart
from nous_online.interfaces.api.access import HeartCall, IdempotencyKey
from nous_online.interfaces.api.bodies import (
    PROJECT_NEEDS_ID,
    Body,
    Flag,
    Line,
    Lines,
    Name,
    carrying,
)
from nous_online.memories.levels import BANDS

router = APIRouter(prefix="/procedures", tags=["procedures"])
SAYS_HOW: dict[str, Any] = {
    "anyOf": [
        {
            "properties": {"kind": {"const": "workflow"}, "steps": {"type": "array", "minItems": 1}},
            "required": ["kind", "steps"],
        },
        {
            "properties": {"kind": {"const": "pattern"}, "template": {"type": "object", "minProperties": 1}},
            "required": ["kind", "template"],
        },
        *(
            {"properties": {"kind": {"const": "k_line"}, band: {"type": "array", "minItems": 1}}, "required": [band]}
            for band in BANDS
        ),
    ]
}
"""In JSON Schema, what the store asks: a procedure says how it is done, each kind in its own way."""
OneLine = Annotated[Line, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")]


class StepBody(Body):
    """One step with its detail."""

    name: Line
    detail: Line | None = None


Filled = Line | Lines | Annotated[dict[Line, Line], Field(max_length=100)]


@carrying(Heart.store_procedure)
class ProcedureBody(Body):
    """How something is done."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [PROJECT_NEEDS_ID, SAYS_HOW],
            "example": {"name": "deploy", "kind": "workflow", "steps": ["test", "build", "stage", "verify", "prod"]},
        }
    )

    steps: Annotated[list[Line | StepBody], Field(max_length=100)] | None = None
    template: Annotated[dict[Line, Filled], Field(max_length=100)] | None = None
    hint: OneLine | None = None


class ActivateBody(Body):
    """Where a procedure is put to use."""

    model_config = ConfigDict(json_schema_extra={"example": {"session_id": "s-1"}})

    session_id: Name = Field(default=DEFAULT_SESSION, description="That of the header `X-Nous-Session` unless told.")


class OutcomeBody(Body):
    """How it went."""

    model_config = ConfigDict(json_schema_extra={"example": {"is_success": True, "note": "all checks green"}})

    is_success: Flag
    note: Line | None = None


@router.post("", operation_id="store_procedure", summary="Store a procedure")
def store(body: ProcedureBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Procedure:
    """Keep how something is done under a name of its own; the same name with another content is a new version."""
    details = body.told("steps")
    if body.steps is not None:
        details["steps"] = [each if isinstance(each, str) else each.told() for each in body.steps]
    return call.heart.store_procedure(deadline_s=call.left(), idempotency_key=idempotency_key, **details)


@router.get("/{procedure_id:uuid}", operation_id="get_procedure", summary="Read a procedure")
def get(procedure_id: UUID, call: HeartCall) -> Procedure:
    """Return one procedure in whatever state it is."""
    return call.heart.get_procedure(procedure_id, deadline_s=call.left())


@router.post("/{procedure_id:uuid}/activate", operation_id="activate_procedure", summary="Put a procedure to use")
def activate(procedure_id: UUID, body: ActivateBody, call: HeartCall) -> Procedure:
    """Load a procedure into a session's working memory, and count it."""
    return call.heart.activate_procedure(procedure_id, deadline_s=call.left(), **body.told())


@router.post("/{procedure_id:uuid}/outcome", operation_id="record_procedure_outcome", summary="Say how it went")
def outcome(procedure_id: UUID, body: OutcomeBody, call: HeartCall) -> Procedure:
    """Say that a procedure worked or failed; nights flag for review those that mostly fail."""
    heart = call.heart
    record = heart.record_procedure_success if body.is_success else heart.record_procedure_failure
    return record(procedure_id, note=body.note, deadline_s=call.left())
