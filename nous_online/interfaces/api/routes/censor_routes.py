"""Adding and checking censors, and saying when one was wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.core.domain import Censor
from nous_online.heart import Heart
from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import PROJECT_NEEDS_ID, Body, Id, Line, Text, carrying, episode_needs
from nous_online.memories.checking import Activation

router = APIRouter(prefix="/censors", tags=["censors"])
LITERAL_HAS_A_WORD: dict[str, Any] = {
    "if": {"properties": {"is_literal": {"const": True}}, "required": ["is_literal"]},
    "then": {"properties": {"trigger": {"type": "string", "pattern": "[A-Za-z0-9]"}}},
}


@carrying(Heart.add_censor)
class CensorBody(Body):
    """Something to beware of."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [PROJECT_NEEDS_ID, LITERAL_HAS_A_WORD, episode_needs("learned_from_episode_id")],
            "example": {
                "trigger": "pushing directly to main branch",
                "reason": "use a feature branch",
                "severity": "block",
            },
        }
    )


@carrying(Heart.check_censors)
class CheckBody(Body):
    """An action about to be done."""

    model_config = ConfigDict(json_schema_extra={"example": {"action": "git push origin main", "frame": "task"}})


class FalsePositiveBody(Body):
    """Which activation of a censor was wrong, and why."""

    model_config = ConfigDict(json_schema_extra={"example": {"note": "the repository is a sandbox"}})

    activation_id: Id | None = Field(default=None, description="The latest that nobody reported unless told.")
    action: Text | None = Field(default=None, description="Or the action it should let pass.")
    note: Line | None = None


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


@dataclass(frozen=True)
class CensorList:
    """The active censors of an agent."""

    censors: list[Censor]


@router.post("", operation_id="add_censor", summary="Add a censor")
def add(body: CensorBody, call: HeartCall) -> Censor:
    """Teach the agent to beware of something; what it knows already is only made stricter."""
    return call.heart.add_censor(deadline_s=call.left(), **body.told())


@router.get("", operation_id="list_censors", summary="List the active censors")
def list_all(call: HeartCall) -> CensorList:
    """Return the active censors, the firmest first."""
    return CensorList(call.heart.list_censors(deadline_s=call.left()))


@router.post("/check", operation_id="check_censors", summary="Check an action")
def check(body: CheckBody, call: HeartCall) -> CheckAnswer:
    """Return what speaks against an action about to be done; a check that failed is no permission."""
    found = call.heart.check_censors(deadline_s=call.left(), **body.told())
    return CheckAnswer(found.is_allowed, not found.is_allowed, found.severity, list(found))


@router.post("/{censor_id:uuid}/false-positive", operation_id="report_false_positive", summary="Report a false alarm")
def report_false_positive(censor_id: UUID, body: FalsePositiveBody, call: HeartCall) -> Censor:
    """Say that a censor fired where it should not have: that action, and its like, set it off no more.

    Reports here are an agent's: they do not open what blocks where the censor is absolute or trusted more than 50.
    """
    return call.heart.report_false_positive(censor_id, deadline_s=call.left(), **body.told())
