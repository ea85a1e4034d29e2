"""Episodes: what happened, checked, embedded and stored closed, each with its event."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, cast
from uuid import UUID, uuid5

from pgvector import Vector
from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online import store
from nous_online.agent import Agent
from nous_online.deadline import Deadline
from nous_online.domain import SCOPES, SOURCE_KINDS
from nous_online.embedding import Vectors
from nous_online.errors import InvalidInput
from nous_online.facts import IMPORTED, checked_trust
from nous_online.policy import MAX_DETAIL_BYTES
from nous_online.statements import statements
from nous_online.store import Request
from nous_online.validation import (
    checked_choice,
    checked_flag,
    checked_moment,
    checked_names,
    checked_optional,
    checked_share,
    checked_text,
)

SQL = statements("nous_online", "episodes.sql")
OUTCOMES = ("success", "failure", "partial", "ongoing")
MAX_LESSON_BYTES = 4 * 1024
EMBEDDED_CHARACTERS = 2000  # of an episode without summary; the local embedder reads no further anyway


class EpisodeDetails(TypedDict, total=False):
    """Everything that may be told about a closed episode besides its detail."""

    title: str | None
    summary: str | None
    started_at: datetime | str | None
    ended_at: datetime | str | None
    participants: list[str] | None
    tags: list[str] | None
    frame_used: str | None
    encoded_censors: list[str] | None
    outcome: str | None
    surprise_level: float | None
    lessons_learned: list[str] | None
    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    scope: str
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


EPISODE_FIELDS = ("detail", *(name for name in EpisodeDetails.__annotations__ if name != "idempotency_key"))


@dataclass(frozen=True)
class NewEpisode:
    """A closed episode, checked and ready to be stored."""

    detail: str
    title: str | None
    summary: str | None
    started_at: datetime
    ended_at: datetime
    participants: list[str]
    tags: list[str]
    frame_used: str | None
    encoded_censors: list[str] | None
    outcome: str | None
    surprise_level: float | None
    lessons_learned: list[str]
    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    scope: str
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


def new_episode(detail: object, details: EpisodeDetails, *, now: datetime) -> NewEpisode:
    """Check everything said about an episode; raise `InvalidInput` naming what to mend.

    Without dates it happened at `now`; with one of the two it began and ended in that moment.
    """
    started_at, ended_at = interval(details, now=now)
    outcome, surprise = details.get("outcome"), details.get("surprise_level")
    return NewEpisode(
        detail=checked_text("detail", detail, max_bytes=MAX_DETAIL_BYTES),
        title=checked_optional("title", details.get("title"), max_characters=500),
        summary=checked_optional("summary", details.get("summary"), max_characters=20_000),
        started_at=started_at,
        ended_at=ended_at,
        participants=checked_names("participants", details.get("participants")) or [],
        tags=checked_names("tags", details.get("tags")) or [],
        frame_used=checked_optional("frame_used", details.get("frame_used"), max_characters=100),
        encoded_censors=checked_names("encoded_censors", details.get("encoded_censors")),
        outcome=None if outcome is None else checked_choice("outcome", outcome, OUTCOMES),
        surprise_level=None if surprise is None else checked_share("surprise_level", surprise),
        lessons_learned=checked_lessons(details.get("lessons_learned")),
        source=checked_optional("source", details.get("source"), max_characters=500),
        source_kind=checked_choice("source_kind", details.get("source_kind", "agent"), SOURCE_KINDS),
        trust=checked_trust(details.get("trust", 50)),
        is_pinned=checked_flag("is_pinned", details.get("is_pinned", False)),
        scope=checked_choice("scope", details.get("scope", "private"), SCOPES),
        user_id=checked_optional("user_id", details.get("user_id"), max_characters=100),
        project_id=checked_optional("project_id", details.get("project_id"), max_characters=100),
        idempotency_key=checked_optional("idempotency_key", details.get("idempotency_key"), max_characters=200),
    )


def interval(details: EpisodeDetails, *, now: datetime) -> tuple[datetime, datetime]:
    """Return when an episode began and ended."""
    began, ended = (checked_moment(name, details.get(name)) for name in ("started_at", "ended_at"))
    started_at, ended_at = began or ended or now, ended or began or now
    if ended_at < started_at:
        raise InvalidInput(f"ended_at {ended_at.isoformat()} lies before started_at {started_at.isoformat()}")
    return started_at, ended_at


def checked_lessons(values: object) -> list[str]:
    """Return the lessons of an episode, each a sentence or a few."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InvalidInput(f"lessons_learned must be a list of texts, got {values!r}")
    return [checked_text("a lesson", value, max_bytes=MAX_LESSON_BYTES) for value in cast("list[object]", values)]


def store_deferred(agent: Agent, news: Sequence[NewEpisode], deadline: Deadline) -> int:
    """Store closed episodes, all or none, and return how many were new; known idempotency keys are skipped."""
    vectors = agent.embed([embedded_text(new) for new in news], deadline)
    with agent.transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        known = store.find_requests(connection, agent.id, [new.idempotency_key for new in news if new.idempotency_key])
        fresh = [(new, vector) for new, vector in zip(news, vectors, strict=True) if new.idempotency_key not in known]
        rows = [episode_row(agent, new, vector) for new, vector in fresh]
        with connection.cursor() as cursor:
            cursor.executemany(SQL["store_episode"], rows)
        keyed = [(new, row["id"]) for (new, _), row in zip(fresh, rows, strict=True)]
        store_keys(connection, agent.id, keyed)
    return len(fresh)


def store_keys(connection: Connection, agent_id: str, stored: Sequence[tuple[NewEpisode, UUID | None]]) -> None:
    """Remember which keys led to which episodes."""
    requests = [
        Request(new.idempotency_key, content_hash(new), episode_id, "stored")
        for new, episode_id in stored
        if new.idempotency_key and episode_id
    ]
    store.store_requests(connection, agent_id, "import", requests)


def episode_row(agent: Agent, new: NewEpisode, vector: Vectors) -> dict[str, Any]:
    """Return the parameters of `store_episode`."""
    key = new.idempotency_key
    return {
        **vars(new),
        "id": uuid5(IMPORTED, f"{agent.id}\n{key}") if key else None,
        "agent_id": agent.id,
        "encoded_censors": None if new.encoded_censors is None else Jsonb(new.encoded_censors),
        "embedding": Vector(vector),
        "space_id": agent.embedder.space.id,
        "actor": "import",
        "reason": "imported as it ended",
    }


def embedded_text(new: NewEpisode) -> str:
    """Return what of an episode its vector stands for: the title and the summary, or the beginning of the detail."""
    return "\n".join(filter(None, (new.title, new.summary or new.detail[:EMBEDDED_CHARACTERS])))


def content_hash(new: NewEpisode) -> str:
    """Return the SHA-256 of what was told."""
    return hashlib.sha256(f"{new.title or ''}\n{new.detail}".encode()).hexdigest()
