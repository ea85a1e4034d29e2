"""Episodes that can't be completed: set aside after so many attempts, with the reason, and queued again on demand."""

from __future__ import annotations

from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.domain import Episode
from nous_online.core.errors import NousError, Refused
from nous_online.core.kinds import EPISODE
from nous_online.database.changes import Cause, change_memory, locked_memory, version_of
from nous_online.database.statements import statements
from nous_online.memories import store
from nous_online.memories.agent import Agent

SQL = statements("nous_online.memories", "retries.sql")
LONGEST_REASON = 500
"""Characters: whatever a writer says of a text is told in a line."""


class Unwritten(NousError):
    """The writer failed at this very episode. Unlike an outage, which passes, it counts among its failures."""


def set_aside(agent: Agent, episode_id: UUID, *, failure_count: int, reason: str, deadline: Deadline) -> None:
    """End the attempts at an episode and say why in its note; its text stays. One taken back meanwhile gets no note."""
    note = f"set aside after {failure_count} attempts: {reason}"[:LONGEST_REASON]
    with agent.transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)  # before the episode, as completing one does
        episode = locked_memory(connection, agent.id, EPISODE, episode_id)
        if is_open_end(episode):
            noted(connection, agent, episode, note, action="set_aside", reason=note)
        connection.execute(SQL["end_attempts"], {"agent_id": agent.id, "episode_id": episode_id, "note": note})


def retry_episode(agent: Agent, episode_id: UUID, deadline: Deadline) -> Episode:
    """Queue a closed episode that is not complete as if it was never tried, and return it; `Refused` for any other."""
    with agent.transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        episode = locked_memory(connection, agent.id, EPISODE, episode_id)
        if not is_open_end(episode):
            found = "complete" if episode.completed_at else episode.state
            raise Refused(f"episode {episode_id} is {found}; only a closed one that is not complete is tried again")
        if episode.completion_note is not None:
            episode = noted(connection, agent, episode, None, action="queued", reason="it is to be tried again")
        connection.execute(SQL["queue_again"], {"agent_id": agent.id, "episode_id": episode_id})
    agent.awake.set()
    return episode


def is_open_end(episode: Episode) -> bool:
    """Tell whether an episode is over and not complete."""
    return episode.state == "closed" and episode.completed_at is None


def noted(
    connection: Connection, agent: Agent, episode: Episode, note: str | None, *, action: str, reason: str
) -> Episode:
    """Write a note on the completion of an episode, and leave the event that says so."""
    cause = Cause("agent", action, reason, effective_at=episode.ended_at or episode.started_at)
    return change_memory(connection, agent.id, version_of(EPISODE, episode), {"completion_note": note}, cause=cause)
