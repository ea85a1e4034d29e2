"""Starting, updating, closing and recording episodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.core.domain import Episode
from nous_online.core.policy import MAX_DETAIL_BYTES
from nous_online.interfaces.api.access import HeartCall, IdempotencyKey
from nous_online.interfaces.api.bodies import (
    PROJECT_NEEDS_ID,
    SENDABLE,
    WHOLE,
    ActiveCensors,
    Body,
    Decisions,
    Frame,
    Line,
    Lines,
    Moment,
    Name,
    Outcome,
    Share,
    Tags,
    ToldFields,
    counted,
    text_of,
)

router = APIRouter(prefix="/episodes", tags=["episodes"])
Title = Annotated[Line, Field(max_length=500)]
Detail = Annotated[str, text_of(MAX_DETAIL_BYTES), SENDABLE]
LONGEST_S = 31 * 24 * 3600


class ArtifactBody(Body):
    """Something an episode produced or was about."""

    kind: Literal["commit", "pr", "adr", "file"]
    reference: Annotated[Line, Field(max_length=200)] = Field(description="What names it, such as `4f3d51d`.")


class Noted(Body):
    """What may be said of an episode at any time."""

    participants: Tags | None = None
    tags: Tags | None = None
    decision_ids: Decisions | None = None
    artifacts: Annotated[list[ArtifactBody], Field(max_length=200)] | None = None

    def noted(self, *without: str) -> dict[str, Any]:
        """Return what was told, with artifacts as pairs."""
        told = self.told("artifacts", *without)
        if self.artifacts is not None:
            told["artifacts"] = [(each.kind, each.reference) for each in self.artifacts]
        return told


class StartBody(ToldFields, Noted):
    """An episode that begins."""

    model_config = ConfigDict(
        json_schema_extra={
            **PROJECT_NEEDS_ID,
            "example": {"title": "Migrate the staging database", "session_id": "s-1", "tags": ["db"]},
        }
    )

    title: Title | None = None
    session_id: Name | None = None
    started_at: Moment | None = None
    frame: Frame = None


class EpisodeOutcome(Noted):
    """What came of an episode."""

    title: Title | None = None
    summary: Annotated[str, text_of(20_000), SENDABLE] | None = None
    lessons_learned: Lines | None = None
    outcome: Outcome | None = None
    surprise_level: Share | None = None
    frame: Frame = None


class Growing(EpisodeOutcome):
    """What makes an episode grow."""

    active_censors: ActiveCensors = None
    append: Detail | None = Field(default=None, description="A new line of the detail.")


class UpdateBody(Growing):
    """More of an episode: lists grow, single values are replaced."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"append": "The dump took 40 minutes.", "participants": ["Ada"]}}
    )


class CloseBody(Growing):
    """The end of an episode."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"outcome": "success", "lessons_learned": ["Dump before the migration, not after."]}
        }
    )


class RecordBody(ToldFields, EpisodeOutcome):
    """An episode that is over, in one call."""

    model_config = ConfigDict(
        json_schema_extra={
            **PROJECT_NEEDS_ID,
            "example": {
                "detail": "We moved staging to Postgres 18. The dump took 40 minutes. Ada checked every table.",
                "outcome": "success",
                "participants": ["Ada"],
            },
        }
    )

    detail: Detail | None = Field(default=None, description="What was said and done.")
    session_id: Name | None = None
    started_at: Moment | None = Field(default=None, description="Now, unless told.")
    duration_seconds: Annotated[int, counted(0, LONGEST_S), WHOLE] | None = Field(
        default=None, description="How long it took; with `started_at`."
    )


@router.post("", operation_id="start_episode", summary="Start an episode")
def start(body: StartBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Episode:
    """Begin an episode, in state `open` and tier `raw`."""
    details = body.noted("title")
    return call.heart.start_episode(body.title, deadline_s=call.left(), idempotency_key=idempotency_key, **details)


@router.post("/record", operation_id="record_episode", summary="Record an episode that is over")
def record(body: RecordBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Episode:
    """Tell of an episode that is over; it gets a title, a summary and up to twelve facts within 30 s."""
    details = body.noted("detail", "duration_seconds")
    if body.started_at is not None:
        details["ended_at"] = body.started_at + timedelta(seconds=body.duration_seconds or 0)
    return call.heart.record_episode(body.detail, deadline_s=call.left(), idempotency_key=idempotency_key, **details)


@router.get("/{episode_id:uuid}", operation_id="get_episode", summary="Read an episode")
def get(episode_id: UUID, call: HeartCall) -> Episode:
    """Return one episode in whatever state it is."""
    return call.heart.get_episode(episode_id, deadline_s=call.left())


@router.patch("/{episode_id:uuid}", operation_id="update_episode", summary="Tell more of an episode")
def update(episode_id: UUID, body: UpdateBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Episode:
    """Tell more of an episode; what is known already changes nothing."""
    return call.heart.update_episode(
        episode_id, deadline_s=call.left(), idempotency_key=idempotency_key, **body.noted()
    )


@router.post("/{episode_id:uuid}/close", operation_id="close_episode", summary="Close an episode")
def close(episode_id: UUID, body: CloseBody, call: HeartCall) -> Episode:
    """End an episode now; one that is over already is returned as it is."""
    return call.heart.close_episode(episode_id, deadline_s=call.left(), **body.noted())


@router.post("/{episode_id:uuid}/retry", operation_id="retry_episode", summary="Complete an episode after all")
def retry(episode_id: UUID, call: HeartCall) -> Episode:
    """Queue a closed episode again that was set aside after too many failures, as its completion note says."""
    return call.heart.retry_episode(episode_id, deadline_s=call.left())
