"""How much an agent remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import Connection

from nous_online.statements import statements

SQL = statements("nous_online", "status.sql")


@dataclass(frozen=True)
class Status:
    """The memories of one agent, counted by kind and state, and how often it recalled."""

    agent: str
    memories: Mapping[str, Mapping[str, int]]
    recalls: int


def status_of(connection: Connection, agent_id: str) -> Status:
    """Count what an agent remembers; one that is not known here remembers nothing."""
    rows = connection.execute(SQL["count_memories"], {"agent_id": agent_id}).fetchall()
    (recalls,) = connection.execute(SQL["count_recalls"], {"agent_id": agent_id}).fetchone() or (0,)
    kinds = sorted({kind for kind, _, _ in rows})
    memories = {kind: {state: count for of, state, count in rows if of == kind} for kind in kinds}
    return Status(agent_id, memories, recalls)
