"""What an agent is shown before it asks: a context within a budget, and what it will probably want."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.context.context_answer import TIERS, Context, ContextLine, Tier
from nous_online.context.prediction.prediction_answer import Predicted
from nous_online.context.signals import MAX_NAME_BYTES, MAX_WORDS_BYTES, MOST_LISTED, SignalDetails
from nous_online.core.policy import ContextPolicy
from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import SENDABLE, WHOLE, Body, Moment, Name, Tags, Text, counted, text_of

router = APIRouter(prefix="/context", tags=["context"])
File = Annotated[str, text_of(MAX_NAME_BYTES), SENDABLE]
Words = Annotated[str, text_of(MAX_WORDS_BYTES), SENDABLE]
Told = Annotated[list[File], Field(max_length=MOST_LISTED)]
Errors = Annotated[list[Words], Field(max_length=MOST_LISTED)]
LOGIN: dict[str, Any] = {
    "current_file": "src/auth/login.ts",
    "recent_errors": ["TypeError: Cannot read property 'id' of undefined"],
    "activity": "debugging",
}


class SignalsBody(Body):
    """What the agent is doing right now."""

    current_file: File | None = Field(default=None, description="The file that was opened, from the project's root.")
    imports: Told | None = Field(default=None, description="What that file imports.")
    branch: File | None = Field(default=None, description="The branch that was checked out.")
    recent_errors: Errors | None = Field(default=None, description="Texts of errors seen lately, the latest first.")
    activity: File | None = Field(default=None, description="What is being done, such as debugging.")
    task: Words | None = Field(default=None, description="What is to be achieved, in words.")
    collaborators: Told | None = Field(default=None, description="Who has joined.")

    def details(self) -> SignalDetails:
        """Return the signals as the verbs take them."""
        return cast("SignalDetails", self.told())


class AssembleBody(Body):
    """For what a context is wanted, and how large it may be."""

    model_config = ConfigDict(json_schema_extra={"example": {"budget": 8000, "signals": LOGIN}})

    budget: Annotated[int, counted(1, ContextPolicy.most_budget), WHOLE] | None = Field(
        default=None, description="Most tokens; unless told, what the frame needs: 3,000 to 12,000."
    )
    frame: Name | None = Field(default=None, description="The cognitive frame; unless told, the activity's.")
    query: Text | None = Field(default=None, description="What was asked, if something was.")
    signals: SignalsBody | None = None
    session_id: Name | None = None
    user_id: Name | None = None
    project_id: Name | None = None
    active_censors: Tags | None = None
    at: Moment | None = None


class PredictBody(Body):
    """What was seen: the file that was opened, or more."""

    model_config = ConfigDict(json_schema_extra={"example": {"file_opened": "src/auth/login.ts"}})

    file_opened: File | None = Field(default=None, description="Short for `signals.current_file`.")
    signals: SignalsBody | None = None
    session_id: Name | None = None
    limit: Annotated[int, counted(1, 200), WHOLE] = 50
    user_id: Name | None = None
    project_id: Name | None = None
    at: Moment | None = None


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


@dataclass(frozen=True)
class PredictionAnswer:
    """What is likely to be wanted in a session, the likeliest first."""

    session_id: str
    predicted_memories: list[Predicted]
    confidence: float
    """The expected share of what the session will want that is among them."""


@router.post("/assemble", operation_id="assemble_context", summary="Assemble a context")
def assemble(body: AssembleBody, call: HeartCall) -> ContextAnswer:
    """Return what the agent should see now, in four tiers, never a token over the budget."""
    signals = None if body.signals is None else body.signals.details()
    return context_shown(call.heart.assemble_context(signals=signals, deadline_s=call.left(), **body.told("signals")))


def context_shown(found: Context) -> ContextAnswer:
    """Return a context as it is sent."""
    return ContextAnswer(
        context=found.text,
        token_count=found.token_count,
        budget=found.budget,
        tiers=Tiers(*(found.tokens.get(tier, 0) for tier in TIERS)),
        tokens=found.tokens,
        left_out=found.left_out,
        counting=found.counting,
        recall_id=found.recall_id,
        lines=list(found.lines),
    )


@router.post("/predict", operation_id="predict", summary="Predict what will be wanted")
def predict(body: PredictBody, call: HeartCall) -> PredictionAnswer:
    """Return the memories this session will probably want, and warm what the next context will use."""
    signals = SignalDetails() if body.signals is None else body.signals.details()
    if body.file_opened is not None:
        signals["current_file"] = body.file_opened
    found = call.heart.predict(signals=signals, deadline_s=call.left(), **body.told("signals", "file_opened"))
    return PredictionAnswer(found.session_id, list(found.memories), found.confidence)
