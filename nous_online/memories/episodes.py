"""Episodes: started, told more of, closed, or stored closed at once; each version with its event."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.details import RecordDetails
from nous_online.core.domain import Artifact, Episode
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.core.fields import rows_of
from nous_online.core.kinds import EPISODE
from nous_online.core.policy import DEFAULT_SESSION, MAX_DETAIL_BYTES
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import checked_id, checked_said, checked_text
from nous_online.database.changes import Cause, Growth, add_memory, change_memory, get_memory, locked_memory, version_of
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories import store
from nous_online.memories.agent import Agent
from nous_online.memories.episode_changes import (
    Beginning,
    EpisodeChange,
    changed_values,
    checked_beginning,
    checked_change,
)
from nous_online.memories.events import emit
from nous_online.memories.facts import IMPORTED
from nous_online.memories.quotas import check_quota, size_of
from nous_online.memories.store import KeyedRequest
from nous_online.memories.told_texts import guarded

LONGEST = timedelta(days=24_855)
"""Its duration is kept in seconds, in 32 bits."""
SQL = statements("nous_online.memories", "episodes.sql")
EMBEDDED_CHARACTERS = 2000  # of an episode without summary; the local embedder reads no further anyway


NOT_IMPORTED = ("decision_ids", "procedures_activated", "idempotency_key")
EPISODE_FIELDS = ("detail", *(name for name in rows_of(RecordDetails) if name not in NOT_IMPORTED))


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
    artifacts: tuple[Artifact, ...]
    session_id: str | None
    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    scope: str
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


def new_episode(detail: object, details: RecordDetails, *, now: datetime, rights: Rights = UNLIMITED) -> NewEpisode:
    """Check everything said about an episode; raise `InvalidInput` naming what to mend.

    Without dates it happened at `now`; with one of the two it began and ended in that moment.
    """
    started_at, ended_at = interval(details, now=now)
    checked, _ = guarded({"detail": checked_text("detail", detail, max_bytes=MAX_DETAIL_BYTES)}, ["detail"], rights)
    text = checked["detail"]
    told, beginning = checked_change(details, rights), checked_beginning(details, now=now, rights=rights)
    return NewEpisode(
        detail=text,
        title=told.title,
        summary=told.summary,
        started_at=started_at,
        ended_at=ended_at,
        participants=list(told.participants),
        tags=list(told.tags),
        frame_used=told.frame_used,
        encoded_censors=told.encoded_censors,
        outcome=told.outcome,
        surprise_level=told.surprise_level,
        lessons_learned=list(told.lessons_learned),
        artifacts=told.artifacts,
        session_id=beginning.session_id,
        source=beginning.source,
        source_kind=beginning.source_kind,
        trust=beginning.trust,
        is_pinned=beginning.is_pinned,
        scope=beginning.scope,
        user_id=beginning.user_id,
        project_id=beginning.project_id,
        idempotency_key=beginning.idempotency_key,
    )


def interval(details: RecordDetails, *, now: datetime) -> tuple[datetime, datetime]:
    """Return when an episode began and ended."""
    began, ended = (checked_said(name, details.get(name), now=now) for name in ("started_at", "ended_at"))
    started_at, ended_at = began or ended or now, ended or began or now
    if ended_at < started_at:
        raise InvalidInput(f"ended_at {ended_at.isoformat()} lies before started_at {started_at.isoformat()}")
    check_length(started_at, ended_at)
    return started_at, ended_at


def check_length(started_at: datetime, ended_at: datetime) -> None:
    """Raise `Conflict` where an episode would last longer than its duration in seconds can say."""
    if ended_at - started_at > LONGEST:
        message = (
            f"{started_at.isoformat()} to {ended_at.isoformat()} is more than the {LONGEST.days:,} days an episode "
            "may last; mend started_at or ended_at"
        )
        raise Conflict(message)


def store_deferred(agent: Agent, news: Sequence[NewEpisode], deadline: Deadline) -> int:
    """Store closed episodes and queue their completion, all or none; return how many were new.

    Known idempotency keys are skipped. Completions fall due by when the episodes ended, so that what is drawn from
    them is learned in the order it happened.
    """
    check_quota(agent, deadline, count=len(news), size=sum(size_of(new.detail) for new in news))
    vectors = agent.embed([embedded_text(new) for new in news], deadline)
    with agent.space_transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        known = store.find_requests(connection, agent.id, [new.idempotency_key for new in news if new.idempotency_key])
        fresh = [(new, vector) for new, vector in zip(news, vectors, strict=True) if new.idempotency_key not in known]
        rows = [episode_row(agent, new, vector) for new, vector in fresh]
        with connection.cursor() as cursor:
            cursor.executemany(SQL["store_episode"], rows)
            cursor.executemany(SQL["store_artifact"], [each for row in rows for each in artifact_rows(row)])
        keyed = [(new, row["id"]) for (new, _), row in zip(fresh, rows, strict=True)]
        store_keys(connection, agent.id, keyed)
    return len(fresh)


def store_keys(connection: Connection, agent_id: str, stored: Sequence[tuple[NewEpisode, UUID | None]]) -> None:
    """Remember which keys led to which episodes."""
    requests = [
        KeyedRequest(new.idempotency_key, content_hash(new), episode_id, "stored")
        for new, episode_id in stored
        if new.idempotency_key and episode_id
    ]
    store.store_requests(connection, agent_id, "import", requests)


def episode_row(agent: Agent, new: NewEpisode, vector: Vectors) -> dict[str, Any]:
    """Return the parameters of `store_episode`."""
    key = new.idempotency_key
    return {
        **vars(new),
        "id": uuid5(IMPORTED, f"{agent.id}\n{key}") if key else uuid4(),
        "agent_id": agent.id,
        "encoded_censors": None if new.encoded_censors is None else Jsonb(new.encoded_censors),
        "embedding": Vector(vector),
        "space_id": agent.embedder.space.id,
        "actor": "import",
        "reason": "imported as it ended",
    }


def artifact_rows(episode: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of `store_artifact` for the parameters of `store_episode`."""
    own = {"agent_id": episode["agent_id"], "episode_id": episode["id"]}
    return [{**own, **vars(artifact)} for artifact in episode["artifacts"]]


def embedded_text(new: NewEpisode) -> str:
    """Return what of an imported episode its vector stands for."""
    return text_to_embed(new.title, new.summary, new.detail)


def text_to_embed(title: str | None, summary: str | None, detail: str | None) -> str:
    """Return what an episode's vector stands for: the title and the summary, or the beginning of the detail."""
    return "\n".join(filter(None, (title, summary or (detail or "")[:EMBEDDED_CHARACTERS])))


def content_hash(new: NewEpisode) -> str:
    """Return the SHA-256 of what was told; the title of a conversation may still change and says nothing."""
    return hash_of(None if new.session_id else new.title, new.detail)


def hash_of(title: str | None, detail: str | None) -> str:
    """Return the SHA-256 of a title and a detail."""
    return hashlib.sha256(f"{title or ''}\n{detail or ''}".encode()).hexdigest()


def stored_until(connection: Connection, agent_id: str, key: str) -> datetime | None:
    """Return when the episode ended that was stored under an idempotency key; None where none was."""
    row = connection.execute(SQL["stored_until"], {"agent_id": agent_id, "key": key}).fetchone()
    return row[0] if row else None


def get_episode(agent: Agent, episode_id: UUID, deadline: Deadline) -> Episode:
    """Return one episode; raise `NotFound` when this agent has none of that id."""
    with agent.transaction(deadline) as connection:
        return get_memory(connection, agent.id, EPISODE, episode_id)


def drawn_from(agent: Agent, told: Sequence[Mapping[str, Any]], name: str, deadline: Deadline) -> list[dict[str, Any]]:
    """Return the details of memories said to be drawn from episodes, which `name` names: trusted as those, unless told.

    Raises `NotFound` for an episode this agent has not, and `InvalidInput` where the source kind is `episode` and none
    is named.
    """
    for each in told:
        if each.get("source_kind") == "episode" and each.get(name) is None:
            raise InvalidInput(f"source_kind 'episode' needs {name}, the episode it was drawn from")
    ids = [None if each.get(name) is None else checked_id(name, each[name]) for each in told]
    known: dict[UUID, Episode] = {}
    if any(ids):
        with agent.transaction(deadline) as connection:
            known = {each: get_memory(connection, agent.id, EPISODE, each) for each in set(ids) if each is not None}
    return [
        {**each, "trust": min(known[drawn].trust, agent.rights.max_trust)}
        if drawn is not None and each.get("source_kind") == "episode" and each.get("trust") is None
        else dict(each)
        for drawn, each in zip(ids, told, strict=True)
    ]


def current_episode(connection: Connection, agent_id: str, session_id: str | None) -> Episode | None:
    """Return the open episode begun last in a session; None when there is none.

    Without a session it is one of the default session, or, where that has none, of any.
    """
    parameters = {"agent_id": agent_id, "session_id": session_id, "default_session": DEFAULT_SESSION}
    row = connection.execute(SQL["current_episode"], parameters).fetchone()
    return get_memory(connection, agent_id, EPISODE, row[0]) if row else None


def artifacts_of(connection: Connection, agent_id: str, episode_id: UUID) -> list[Artifact]:
    """Return what an episode named, by kind and reference; raise `NotFound` when this agent has none of that id."""
    get_memory(connection, agent_id, EPISODE, episode_id)
    with connection.cursor(row_factory=class_row(Artifact)) as cursor:
        return cursor.execute(SQL["artifacts_of"], {"agent_id": agent_id, "episode_id": episode_id}).fetchall()


def begin(connection: Connection, agent_id: str, beginning: Beginning, change: EpisodeChange) -> Episode:
    """Store an open episode; raise `NotFound` when it names a procedure that is not there."""
    cause = Cause("agent", "started", "the episode began", effective_at=beginning.started_at)
    values = {**beginning_values(beginning), **changed_values(change, None), "state": "open"}
    return add(connection, agent_id, values, change, cause)


def record(
    connection: Connection,
    agent: Agent,
    beginning: Beginning,
    change: EpisodeChange,
    *,
    end: datetime,
    vector: Vectors | None,
) -> Episode:
    """Store an episode that is over, and queue its completion; set `agent.awake` once the transaction has ended."""
    check_length(beginning.started_at, end)
    cause = Cause("agent", "recorded", "told when it was over", effective_at=end)
    values = {
        **beginning_values(beginning),
        **changed_values(change, None),
        **vector_values(agent, vector),
        **closed(end),
    }
    episode = add(connection, agent.id, values, change, cause)
    queue_completion(connection, agent.id, episode.id)
    return episode


def add(
    connection: Connection, agent_id: str, values: Mapping[str, Any], change: EpisodeChange, cause: Cause
) -> Episode:
    """Store a new episode with its artifacts."""
    check_procedures(connection, agent_id, change)
    episode = add_memory(connection, agent_id, EPISODE, values, cause=cause)
    store_artifacts(connection, agent_id, episode.id, change)
    return episode


def amend(
    connection: Connection,
    agent: Agent,
    episode_id: UUID,
    change: EpisodeChange,
    *,
    at: datetime,
    vector: Vectors | None = None,
) -> Episode:
    """Add to an episode; what is known already changes nothing. Raises `NotFound`, `Refused` and `InvalidInput`."""
    known = locked_memory(connection, agent.id, EPISODE, episode_id)
    values = changed_values(change, known)
    store_artifacts(connection, agent.id, episode_id, change)
    if not values:
        return known
    check_procedures(connection, agent.id, change)
    cause = Cause("agent", "updated", f"told more: {', '.join(sorted(values))}", effective_at=at)
    growth = growth_of(known.detail, values.get("detail"))
    values |= vector_values(agent, vector)
    return change_memory(connection, agent.id, version_of(EPISODE, known), values, cause=cause, noted=growth)


def close(
    connection: Connection,
    agent: Agent,
    episode_id: UUID,
    change: EpisodeChange,
    *,
    ended_at: datetime,
    vector: Vectors | None = None,
) -> Episode:
    """Close an episode and queue its completion; one that is over already is returned as it is.

    It ends no earlier than it began, whatever the clocks say. Set `agent.awake` once the transaction has ended.
    Raises `NotFound`, `InvalidInput`, and `Conflict` where it would have lasted too long.
    """
    known = locked_memory(connection, agent.id, EPISODE, episode_id)
    if known.state != "open":
        return known
    check_procedures(connection, agent.id, change)
    end = max(ended_at, known.started_at)
    check_length(known.started_at, end)
    values = {**changed_values(change, known), **vector_values(agent, vector), **closed(end)}
    cause = Cause("agent", "closed", "the episode ended", effective_at=end)
    growth = growth_of(known.detail, values.get("detail"))
    episode = change_memory(connection, agent.id, version_of(EPISODE, known), values, cause=cause, noted=growth)
    store_artifacts(connection, agent.id, episode_id, change)
    queue_completion(connection, agent.id, episode_id)
    return episode


def growth_of(before: str | None, after: str | None) -> Growth | None:
    """Return by how much a detail grew, None where it did not."""
    return Growth("detail", len(before), after[len(before) :]) if before and after else None


def beginning_values(beginning: Beginning) -> dict[str, Any]:
    """Return the columns that are settled when an episode begins."""
    values = {name: value for name, value in vars(beginning).items() if name != "idempotency_key"}
    return {**values, "started_at": beginning.started_at.isoformat()}


def closed(ended_at: datetime) -> dict[str, Any]:
    """Return the columns of an episode that is over."""
    return {"state": "closed", "ended_at": ended_at.isoformat()}


def vector_values(agent: Agent, vector: Vectors | None) -> dict[str, Any]:
    """Return the columns of a vector; none where there is nothing to embed yet."""
    if vector is None:
        return {}
    return {"embedding": Vector(vector).to_text(), "embedding_space_id": agent.embedder.space.id}


def check_procedures(connection: Connection, agent_id: str, change: EpisodeChange) -> None:
    """Raise `NotFound` when an episode is to name a procedure this agent has not."""
    parameters = {"agent_id": agent_id, "ids": list(change.procedures_activated)}
    for (absent,) in connection.execute(SQL["absent_procedures"], parameters) if change.procedures_activated else ():
        raise NotFound(f"agent {agent_id!r} has no procedure {absent}; store it before an episode names it")


def store_artifacts(connection: Connection, agent_id: str, episode_id: UUID, change: EpisodeChange) -> None:
    """Store what an episode produced; what is known already stays."""
    rows = artifact_rows({"agent_id": agent_id, "id": episode_id, "artifacts": change.artifacts})
    with connection.cursor() as cursor:
        cursor.executemany(SQL["store_artifact"], rows)


def queue_completion(connection: Connection, agent_id: str, episode_id: UUID) -> None:
    """Leave word that an episode is to be completed, and announce that it ended."""
    connection.execute(SQL["queue_completion"], {"agent_id": agent_id, "episode_id": episode_id})
    emit(connection, agent_id, "episode_closed", memory_id=episode_id, payload={"episode_id": str(episode_id)})
