"""Starting, updating, closing and recording episodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.core.domain import Episode
from nous_online.heart import Heart
from nous_online.interfaces.api.access import HeartCall, IdempotencyKey
from nous_online.interfaces.api.bodies import PROJECT_NEEDS_ID, WHOLE, Body, Line, carrying, counted

router = APIRouter(prefix="/episodes", tags=["episodes"])
LONGEST_S = 31 * 24 * 3600


class ArtifactBody(Body):
    """Something an episode produced or was about."""

    kind: Literal["commit", "pr", "adr", "file"]
    reference: Annotated[Line, Field(max_length=200)] = Field(description="What names it, such as `4f3d51d`.")


class EpisodeBody(Body):
    """What may be said of an episode at any time."""

    artifacts: Annotated[list[ArtifactBody], Field(max_length=200)] | None = None

    def noted(self, *without: str) -> dict[str, Any]:
        """Return what was told, with artifacts as pairs."""
        told = self.told("artifacts", *without)
        if self.artifacts is not None:
            told["artifacts"] = [(each.kind, each.reference) for each in self.artifacts]
        return told


@carrying(Heart.start_episode, without=("procedures_activated",))
class StartBody(EpisodeBody):
    """An episode that begins."""

    model_config = ConfigDict(
        json_schema_extra={
            **PROJECT_NEEDS_ID,
            "example": {"title": "Migrate the staging database", "session_id": "s-1", "tags": ["db"]},
        }
    )


@carrying(Heart.update_episode, without=("procedures_activated",))
class UpdateBody(EpisodeBody):
    """More of an episode: lists grow, single values are replaced."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"append": "The dump took 40 minutes.", "participants": ["Ada"]}}
    )


@carrying(Heart.close_episode, without=("procedures_activated", "ended_at"))
class CloseBody(EpisodeBody):
    """The end of an episode."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"outcome": "success", "lessons_learned": ["Dump before the migration, not after."]}
        }
    )


@carrying(Heart.record_episode, without=("procedures_activated", "ended_at"))
class RecordBody(EpisodeBody):
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

    duration_seconds: Annotated[int, counted(0, LONGEST_S), WHOLE] | None = Field(
        default=None, description="How long it took; with `started_at`."
    )


@router.post("", operation_id="start_episode", summary="Start an episode")
def start(body: StartBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Episode:
    """Begin an episode, in state `open` and tier `raw`."""
    return call.heart.start_episode(deadline_s=call.left(), idempotency_key=idempotency_key, **body.noted())


@router.post("/record", operation_id="record_episode", summary="Record an episode that is over")
def record(body: RecordBody, call: HeartCall, idempotency_key: IdempotencyKey = None) -> Episode:
    """Tell of an episode that is over; it gets a title, a summary and up to twelve facts within 30 s."""
    details = body.noted("duration_seconds")
    if (began := details.get("started_at")) is not None:
        details["ended_at"] = began + timedelta(seconds=body.duration_seconds or 0)
    return call.heart.record_episode(deadline_s=call.left(), idempotency_key=idempotency_key, **details)


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
