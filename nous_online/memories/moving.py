"""Memories move to another embedding space: versions counted and events left as for any change, in one statement."""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from nous_online.core.kinds import EPISODE, Kind
from nous_online.database.statements import statements

BLOCKS = statements("nous_online.memories", "moving.sql")
REEMBEDDED = "re-embedded"
"""What moving a memory to another embedding space is called; it changes nothing that was said, so it is not undone."""


def lock_moving(connection: Connection, agent_id: str, kind: Kind[Any], space_id: str) -> int:
    """Lock the memories of a kind that live in another embedding space than this one, and return how many they are."""
    statement = SQL(BLOCKS["lock_moving"]).format(table=Identifier("heart", kind.table))
    row = connection.execute(statement, {"agent_id": agent_id, "space_id": space_id}).fetchone()
    return row[0] if row else 0


def move_memories(
    connection: Connection, agent_id: str, kind: Kind[Any], space_id: str, *, reason: str, run_id: str | None
) -> int:
    """Give the memories of a kind their vectors of another space, with an event each, and return how many got theirs.

    One changed since its vector was made, or without one, stays as it is.
    """
    began_at = Identifier("started_at" if kind is EPISODE else "learned_at")
    statement = SQL(BLOCKS["move_memories"]).format(table=Identifier("heart", kind.table), began_at=began_at)
    parameters = {"agent_id": agent_id, "kind": kind.name, "space_id": space_id, "action": REEMBEDDED}
    return connection.execute(statement, {**parameters, "reason": reason, "run_id": run_id}).rowcount
