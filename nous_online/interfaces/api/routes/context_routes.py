"""What an agent is shown before it asks: a context within a budget, and what it will probably want."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.context.context_answer import TIERS, Context, ContextLine, Predicted, Tier
from nous_online.core.details import MAX_NAME_BYTES, SignalDetails
from nous_online.heart import Heart
from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import SENDABLE, Body, carrying, text_of

router = APIRouter(prefix="/context", tags=["context"])
LOGIN: dict[str, Any] = {
    "current_file": "src/auth/login.ts",
    "recent_errors": ["TypeError: Cannot read property 'id' of undefined"],
    "activity": "debugging",
}


@carrying(SignalDetails)
class SignalsBody(Body):
    """What the agent is doing right now."""

    def details(self) -> SignalDetails:
        """Return the signals as the verbs take them."""
        return cast("SignalDetails", self.told())


@carrying(Heart.assemble_context)
class AssembleBody(Body):
    """For what a context is wanted, and how large it may be."""

    model_config = ConfigDict(json_schema_extra={"example": {"budget": 8000, "signals": LOGIN}})

    signals: SignalsBody | None = None


@carrying(Heart.predict)
class PredictBody(Body):
    """What was seen: the file that was opened, or more."""

    model_config = ConfigDict(json_schema_extra={"example": {"file_opened": "src/auth/login.ts"}})

    file_opened: Annotated[str, text_of(MAX_NAME_BYTES), SENDABLE] | None = Field(
        default=None, description="Short for `signals.current_file`."
    )
    signals: SignalsBody | None = None


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
        is_by_words=found.is_by_words,
    )


@router.post("/predict", operation_id="predict", summary="Predict what will be wanted")
def predict(body: PredictBody, call: HeartCall) -> PredictionAnswer:
    """Return the memories this session will probably want, and warm what the next context will use."""
    signals = SignalDetails() if body.signals is None else body.signals.details()
    if body.file_opened is not None:
        signals["current_file"] = body.file_opened
    found = call.heart.predict(signals=signals, deadline_s=call.left(), **body.told("signals", "file_opened"))
    return PredictionAnswer(found.session_id, list(found.memories), found.confidence)
