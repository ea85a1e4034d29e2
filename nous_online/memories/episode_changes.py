"""What may be told about an episode while it happens and when it ends: checked, and turned into columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, cast
from uuid import UUID

from nous_online.core.domain import DecisionId, Episode
from nous_online.core.errors import InvalidInput, Refused
from nous_online.core.policy import MAX_DETAIL_BYTES
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import (
    MAX_IDS,
    checked_active_censors,
    checked_choice,
    checked_decision,
    checked_frame,
    checked_id,
    checked_names,
    checked_optional,
    checked_said,
    checked_share,
    checked_text,
)

OUTCOMES = ("success", "failure", "partial", "ongoing")
ARTIFACT_KINDS = ("commit", "pr", "adr", "file")
MAX_LESSON_BYTES = 4 * 1024
LISTS = ("participants", "tags", "lessons_learned", "decision_ids", "procedures_activated")
SCALARS = ("title", "summary", "outcome", "surprise_level", "frame_used", "encoded_censors")


class ChangeDetails(TypedDict, total=False):
    """What an update may add to an episode; lists only grow."""

    append: str | None
    """A new line of the detail."""
    title: str | None
    summary: str | None
    participants: list[str] | None
    tags: list[str] | None
    lessons_learned: list[str] | None
    decision_ids: Sequence[DecisionId] | None
    """Decisions recorded here by id or reference, or taken elsewhere by their names there."""
    procedures_activated: Sequence[UUID] | None
    artifacts: Sequence[tuple[str, str]] | None
    """Pairs of a kind (`commit`, `pr`, `adr`, `file`) and what names it, at most 200 characters."""
    outcome: str | None
    surprise_level: float | None
    frame: str | None
    """The cognitive frame the agent is in; `frame_used` is the same."""
    active_censors: list[str] | None
    """The censors that are active; `encoded_censors` is the same."""
    frame_used: str | None
    encoded_censors: list[str] | None


class EndDetails(ChangeDetails, total=False):
    """What closing an episode may tell besides."""

    ended_at: datetime | str | None


class BeginningDetails(TypedDict, total=False):
    """What is settled when an episode begins."""

    session_id: str | None
    started_at: datetime | str | None
    source: str | None
    source_kind: str
    trust: int | None
    """From 0 to 100; unless told, that of its source kind (`LearnPolicy.source_trust`)."""
    is_pinned: bool
    scope: str
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


class StartDetails(BeginningDetails, total=False):
    """What starting an episode may tell besides its title."""

    participants: list[str] | None
    tags: list[str] | None
    decision_ids: Sequence[DecisionId] | None
    procedures_activated: Sequence[UUID] | None
    artifacts: Sequence[tuple[str, str]] | None
    frame: str | None
    """The cognitive frame the agent is in; `frame_used` is the same."""
    active_censors: list[str] | None
    """The censors that are active; `encoded_censors` is the same."""
    frame_used: str | None
    encoded_censors: list[str] | None


class RecordDetails(StartDetails, total=False):
    """What may be told about an episode that is over, besides its detail."""

    title: str | None
    summary: str | None
    lessons_learned: list[str] | None
    outcome: str | None
    surprise_level: float | None
    ended_at: datetime | str | None


@dataclass(frozen=True)
class Artifact:
    """Something an episode produced or was about: a commit, a pull request, a decision record, a file."""

    kind: str
    reference: str


@dataclass(frozen=True)
class Beginning:
    """Where an episode comes from and whose it is, checked."""

    session_id: str | None
    started_at: datetime
    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    scope: str
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


@dataclass(frozen=True)
class EpisodeChange:
    """What is added to an episode, checked; None and empty leave it as it is."""

    append: str | None = None
    title: str | None = None
    summary: str | None = None
    outcome: str | None = None
    surprise_level: float | None = None
    frame_used: str | None = None
    encoded_censors: list[str] | None = None
    participants: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    lessons_learned: tuple[str, ...] = ()
    decision_ids: tuple[DecisionId, ...] = ()
    procedures_activated: tuple[UUID, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


def known_details(details: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Return details whose names are all known; raise `InvalidInput` naming one that is not."""
    for name in details:
        if name not in known.__annotations__:
            raise InvalidInput(f"unknown detail {name!r}; known: {', '.join(known.__annotations__)}")
    return dict(details)


def checked_change(details: Mapping[str, Any]) -> EpisodeChange:
    """Check what is told about an episode; raise `InvalidInput` naming what to mend."""
    append, outcome, surprise = details.get("append"), details.get("outcome"), details.get("surprise_level")
    return EpisodeChange(
        append=None if append is None else checked_text("detail", append, max_bytes=MAX_DETAIL_BYTES),
        title=checked_optional("title", details.get("title"), max_characters=500),
        summary=checked_optional("summary", details.get("summary"), max_characters=20_000),
        outcome=None if outcome is None else checked_choice("outcome", outcome, OUTCOMES),
        surprise_level=None if surprise is None else checked_share("surprise_level", surprise),
        frame_used=checked_frame(details),
        encoded_censors=checked_active_censors(details),
        participants=tuple(checked_names("participants", details.get("participants")) or ()),
        tags=tuple(checked_names("tags", details.get("tags")) or ()),
        lessons_learned=tuple(checked_lessons(details.get("lessons_learned"))),
        decision_ids=checked_decisions(details.get("decision_ids")),
        procedures_activated=checked_ids("procedures_activated", details.get("procedures_activated")),
        artifacts=checked_artifacts(details.get("artifacts")),
    )


def checked_beginning(details: Mapping[str, Any], *, now: datetime, rights: Rights = UNLIMITED) -> Beginning:
    """Check whose an episode is and since when; raise `InvalidInput`, and `Forbidden` for more than a caller may."""
    ended_at, standing = checked_said("ended_at", details.get("ended_at"), now=now), rights.standing(details)
    return Beginning(
        session_id=checked_optional("session_id", details.get("session_id"), max_characters=100),
        started_at=checked_said("started_at", details.get("started_at"), now=now) or ended_at or now,
        source=checked_optional("source", details.get("source"), max_characters=500),
        source_kind=standing.source_kind,
        trust=standing.trust,
        is_pinned=standing.is_pinned,
        scope=standing.scope,
        user_id=checked_optional("user_id", details.get("user_id"), max_characters=100),
        project_id=checked_optional("project_id", details.get("project_id"), max_characters=100),
        idempotency_key=checked_optional("idempotency_key", details.get("idempotency_key"), max_characters=200),
    )


def checked_lessons(values: object) -> list[str]:
    """Return the lessons of an episode, each a sentence or a few."""
    entries = checked_entries("lessons_learned", values)
    return [checked_text("a lesson", value, max_bytes=MAX_LESSON_BYTES) for value in entries]


def checked_ids(name: str, values: object) -> tuple[UUID, ...]:
    """Return ids, from UUIDs or their texts."""
    return tuple(checked_id(f"an entry of {name}", value) for value in checked_entries(name, values))


def checked_decisions(values: object) -> tuple[DecisionId, ...]:
    """Return what names decisions: ids, references, or what they are called elsewhere."""
    return tuple(checked_decision("an entry of decision_ids", each) for each in checked_entries("decision_ids", values))


def checked_artifacts(values: object) -> tuple[Artifact, ...]:
    """Return artifacts, from pairs of kind and reference."""
    return tuple(checked_artifact(value) for value in checked_entries("artifacts", values))


def checked_artifact(value: object) -> Artifact:
    """Return one artifact, from a pair of kind and reference."""
    match value:
        case [str() as kind, str() as reference]:
            named = checked_optional("the reference of an artifact", reference, max_characters=200)
        case _:
            named, kind = None, ""
    if named is None:
        raise InvalidInput(f"an artifact is a pair (kind, reference), such as ('commit', '4f3d51d'); got {value!r}")
    return Artifact(checked_choice("the kind of an artifact", kind, ARTIFACT_KINDS), named)


def checked_entries(name: str, values: object) -> Sequence[object]:
    """Return a list that is not too long; None counts as an empty one."""
    if values is None:
        return ()
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInput(f"{name} must be a list, got {values!r}")
    entries = cast("Sequence[object]", values)
    if len(entries) > MAX_IDS:
        raise InvalidInput(f"{name} has {len(entries):,} entries, the limit is {MAX_IDS:,}")
    return entries


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
