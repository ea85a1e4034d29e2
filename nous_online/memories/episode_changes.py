"""What may be told about an episode while it happens and when it ends: checked, and turned into columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from nous_online.core.details import BeginningDetails, ChangeDetails
from nous_online.core.domain import Artifact, DecisionId, Episode, Outcome, Scope, SourceKind
from nous_online.core.errors import InvalidInput, Refused
from nous_online.core.fields import checked_details
from nous_online.core.policy import MAX_DETAIL_BYTES
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import checked_said, checked_text
from nous_online.memories.told_texts import guarded

LISTS = ("participants", "tags", "lessons_learned", "decision_ids", "procedures_activated")
TEXTS = ("title", "summary", "append", "lessons_learned")
"""In these a credential is looked for."""
SCALARS = ("title", "summary", "outcome", "surprise_level", "frame_used", "encoded_censors")


@dataclass(frozen=True)
class Beginning:
    """Where an episode comes from and whose it is, checked."""

    session_id: str | None
    started_at: datetime
    source: str | None
    source_kind: SourceKind
    trust: int
    is_pinned: bool
    scope: Scope
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


@dataclass(frozen=True)
class EpisodeChange:
    """What is added to an episode, checked; None and empty leave it as it is."""

    append: str | None = None
    title: str | None = None
    summary: str | None = None
    outcome: Outcome | None = None
    surprise_level: float | None = None
    frame_used: str | None = None
    encoded_censors: list[str] | None = None
    participants: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    lessons_learned: tuple[str, ...] = ()
    decision_ids: tuple[DecisionId, ...] = ()
    procedures_activated: tuple[UUID, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


def checked_change(details: Mapping[str, Any], rights: Rights = UNLIMITED) -> EpisodeChange:
    """Check what is told about an episode; raise `InvalidInput` naming what to mend."""
    told, _ = guarded(checked_details(ChangeDetails, details), TEXTS, rights)
    lists: dict[str, Any] = {name: tuple(told.pop(name) or ()) for name in (*LISTS, "artifacts")}
    frame, censors = told.pop("frame"), told.pop("active_censors")
    return EpisodeChange(frame_used=frame, encoded_censors=censors, **told, **lists)


def checked_beginning(details: Mapping[str, Any], *, now: datetime, rights: Rights = UNLIMITED) -> Beginning:
    """Check whose an episode is and since when; raise `InvalidInput`, and `Forbidden` for more than a caller may."""
    told = checked_details(BeginningDetails, details, now=now)
    ended_at = checked_said("ended_at", details.get("ended_at"), now=now)
    values: dict[str, Any] = {
        **told,
        **vars(rights.standing(told)),
        "started_at": told["started_at"] or ended_at or now,
    }
    return Beginning(**values)


def changed_values(change: EpisodeChange, known: Episode | None) -> dict[str, Any]:
    """Return the columns an episode gets that differ from what is known; raise `Refused` or `InvalidInput`.

    Only an open episode grows; of a closed one everything else can still be said.
    """
    values: dict[str, Any] = {} if change.append is None else {"detail": grown_detail(change.append, known)}
    for name in SCALARS:
        told = getattr(change, name)
        if told is not None and told != getattr(known, name, None):
            values[name] = told
    for name in LISTS:
        before = list[Any](getattr(known, name, ()))
        after = united(before, getattr(change, name))
        if after != before:
            values[name] = [str(entry) for entry in after]
    return values


def grown_detail(append: str, known: Episode | None) -> str:
    """Return the detail with a line more; raise `Refused` once the episode is over, `InvalidInput` beyond the limit."""
    if known is not None and known.state != "open":
        raise Refused(f"episode {known.id} is {known.state}, so its detail no longer grows; start another episode")
    before = known.detail if known else None
    return checked_text("detail", append if before is None else f"{before}\n{append}", max_bytes=MAX_DETAIL_BYTES)


def united(before: Iterable[Any], more: Iterable[Any]) -> list[Any]:
    """Return what is in either, each once, what was there before first."""
    return list(dict.fromkeys([*before, *more]))


def checked_end(value: object, *, started_at: datetime, now: datetime) -> datetime:
    """Return when an episode ended: `now` unless told; raise `InvalidInput` when that is before it began."""
    ended_at = checked_said("ended_at", value, now=now) or max(now, started_at)
    if ended_at < started_at:
        raise InvalidInput(f"ended_at {ended_at.isoformat()} lies before started_at {started_at.isoformat()}")
    return ended_at
