"""The end of a session: what was worth keeping becomes an episode, and the working memory is cleared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.details import BeginningDetails, PartingDetails
from nous_online.core.domain import Episode, Outcome
from nous_online.core.fields import check_known
from nous_online.core.kinds import EPISODE
from nous_online.core.policy import MAX_DETAIL_BYTES
from nous_online.core.rights import Rights
from nous_online.database.changes import get_memory, locked_memory
from nous_online.language.minilm import Vectors
from nous_online.memories import episode_writes, episodes
from nous_online.memories.agent import Agent
from nous_online.memories.episode_changes import (
    EpisodeChange,
    checked_beginning,
    checked_change,
)
from nous_online.memories.sessions import SQL, episode_of, existing, key, locked_session, read
from nous_online.memories.working_memory import NOTE, Session, held_items, told


@dataclass(frozen=True)
class SessionEnd:
    """What became of a session: the episode that keeps what was worth keeping, None where there was nothing."""

    session_id: str
    task: str | None
    episode: Episode | None
    released: tuple[UUID, ...]
    """The memories it held."""


@dataclass(frozen=True)
class Parting:
    """What is said of a session when it ends, and whose its new episode is; checked."""

    outcome: Outcome | None
    lessons: tuple[str, ...]
    reach: BeginningDetails

    def change(self, session: Session, known: Episode | None) -> EpisodeChange:
        """Return what its episode is told; the frame the episode has already stands."""
        return EpisodeChange(
            append=told(session, self.lessons),
            outcome=self.outcome,
            lessons_learned=self.lessons,
            frame_used=None if known and known.frame_used else session.frame,
        )


def checked_parting(details: PartingDetails, *, now: datetime, rights: Rights) -> Parting:
    """Check what is said of a session when it ends; raise `InvalidInput` naming what to mend."""
    check_known(details, PartingDetails)
    change, whose = checked_change(details, rights), checked_beginning(details, now=now)
    reach = BeginningDetails(scope=whose.scope, user_id=whose.user_id, project_id=whose.project_id)
    return Parting(change.outcome, change.lessons_learned, reach)


def end(agent: Agent, session_id: str, parting: Parting, deadline: Deadline) -> SessionEnd:
    """Close the session's episode, or a new one, with what was worth keeping, and clear the working memory.

    All of it in one transaction; raises `NotFound` when there is no such session, for it may have ended already.
    """
    with agent.transaction(deadline) as connection:
        session = existing(read(connection, agent.id, session_id), agent.id, session_id)
        known = roomy(open_episode(connection, agent.id, session_id), told(session, parting.lessons))
    vector = episode_writes.vector_of(agent, known, parting.change(session, known), deadline)
    with agent.space_transaction(deadline) as connection:
        # The episode first, as whoever activates a procedure does: else the two could wait for each other.
        current = open_episode(connection, agent.id, session_id, is_locked=True)
        session = existing(locked_session(connection, agent.id, session_id), agent.id, session_id)
        episode = kept(connection, agent, session, current, parting, vector=vector)
        connection.execute(SQL["end_session"], key(agent.id, session_id))
    agent.awake.set()
    released = tuple(item.id for item in held_items(session.items) if item.kind != NOTE)
    return SessionEnd(session_id, session.task, episode, released)


def kept(
    connection: Connection,
    agent: Agent,
    session: Session,
    current: Episode | None,
    parting: Parting,
    *,
    vector: Vectors | None,
) -> Episode | None:
    """Store what is worth keeping of a session, in its current episode if it has one; None when that is nothing."""
    now = datetime.now(UTC)
    known = roomy(current, told(session, parting.lessons))
    if current is not None:
        agent.rights.check_may_change(current)
    change = parting.change(session, known)
    if known is not None:
        return episodes.close(connection, agent, known.id, change, ended_at=max(now, known.started_at), vector=vector)
    if current is not None:
        full = EpisodeChange(outcome=parting.outcome)
        episodes.close(connection, agent, current.id, full, ended_at=max(now, current.started_at))
    if change.append is None:
        return None
    began = {"session_id": session.session_id, "started_at": min(session.created_at, now)}
    beginning = checked_beginning(
        {**parting.reach, **began, "source": f"session:{session.session_id}"}, now=now, rights=agent.rights
    )
    return episodes.record(connection, agent, beginning, change, end=now, vector=vector)


def roomy(episode: Episode | None, more: str | None) -> Episode | None:
    """Return the episode if its detail can take so much more; one that is full is closed as it is."""
    size = len((episode.detail or "").encode()) if episode else 0
    return episode if size + len((more or "").encode()) < MAX_DETAIL_BYTES else None


def open_episode(connection: Connection, agent_id: str, session_id: str, *, is_locked: bool = False) -> Episode | None:
    """Return the open episode of a session; locked, it stays open until the transaction ends."""
    episode_id = episode_of(connection, agent_id, session_id)
    if episode_id is None:
        return None
    found = (locked_memory if is_locked else get_memory)(connection, agent_id, EPISODE, episode_id)
    return found if found.state == "open" else None
