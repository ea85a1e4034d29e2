"""How much an agent remembers, and what of it is still to be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from uuid import UUID

from psycopg import Connection

from nous_online.database.statements import statements

SQL = statements("nous_online.memories", "status.sql")


@dataclass(frozen=True)
class WaitingWork:
    """What is left to whoever works: closed episodes, how many of them failed so far, and events by consumer."""

    episodes: int
    failed_episodes: int
    last_error: str | None
    events: Mapping[str, int]
    set_aside: int = 0
    """Closed episodes that failed too often and are tried no more, until `retry_episode` queues them again."""
    set_aside_ids: tuple[UUID, ...] = ()
    """The latest ten of them."""


@dataclass(frozen=True)
class Nights:
    """Which night an agent was last in, and which have been missed since: nights that are over and had changes."""

    last: date | None
    """None where there was none yet."""
    missed_from: date | None = None
    """The first night that was missed; None where none was."""
    missed_changes: int = 0
    """How many changes of memories wait for a night."""


@dataclass(frozen=True)
class Status:
    """The memories of one agent, counted by kind and state, how often it recalled, and what is still to be done."""

    agent: str
    memories: Mapping[str, Mapping[str, int]]
    recalls: int
    waiting: WaitingWork
    nights: Nights


def status_of(connection: Connection, agent_id: str) -> Status:
    """Count what an agent remembers; one that is not known here remembers nothing."""
    rows = connection.execute(SQL["count_memories"], {"agent_id": agent_id}).fetchall()
    (recalls,) = connection.execute(SQL["count_recalls"], {"agent_id": agent_id}).fetchone() or (0,)
    kinds = sorted({kind for kind, _, _ in rows})
    memories = {kind: {state: count for of, state, count in rows if of == kind} for kind in kinds}
    return Status(agent_id, memories, recalls, waiting_of(connection, agent_id), nights_of(connection, agent_id))


def nights_of(connection: Connection, agent_id: str) -> Nights:
    """Return which night an agent was last in, and what has waited for one since."""
    found = connection.execute(SQL["find_nights"], {"agent_id": agent_id, "over": over()}).fetchone()
    last, first_change, changes = found or (None, None, 0)
    missed_from = first_change.astimezone(UTC).date() if first_change else None
    return Nights(last, missed_from, changes)


def waiting_of(connection: Connection, agent_id: str) -> WaitingWork:
    """Count what an agent left to whoever works."""
    row = connection.execute(SQL["count_completions"], {"agent_id": agent_id}).fetchone()
    episodes, failed, last_error = row or (0, 0, None)
    aside, aside_ids = connection.execute(SQL["count_set_aside"], {"agent_id": agent_id}).fetchone() or (0, [])
    events = dict(connection.execute(SQL["count_events"], {"agent_id": agent_id}).fetchall())
    told = {consumer: count for consumer, count in events.items() if count}
    return WaitingWork(episodes, failed, last_error, told, aside, tuple(aside_ids))


def last_night_applied(connection: Connection) -> date | None:
    """Return the last night that was applied for anybody, None where there was none; any role may ask."""
    (last,) = connection.execute(SQL["last_night"]).fetchone() or (None,)
    return last


def agents_waiting(connection: Connection) -> int:
    """Count the agents with changes that no night of theirs has seen, though it is over."""
    (count,) = connection.execute(SQL["agents_waiting"], {"over": over()}).fetchone() or (0,)
    return count


def over() -> datetime:
    """Return the moment the last night that is over ended: midnight UTC."""
    return datetime.combine(datetime.now(UTC).date(), time(), UTC)
