"""Rows for an agent to be erased, put where no verb would put them."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg.sql import SQL, Identifier


def insert(owner: psycopg.Connection, agent_id: str, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Insert rows of an agent past the triggers and foreign keys."""
    owner.execute("set session_replication_role = replica")
    for name, values in rows.items():
        statement = SQL("insert into {} (agent_id, {}) values (%s, {})").format(
            Identifier(*name.split(".")),
            SQL(", ").join(map(Identifier, values)),
            SQL(", ").join(SQL("%s") for _ in values),
        )
        owner.execute(statement, [agent_id, *values.values()])
    owner.execute("set session_replication_role = default")
