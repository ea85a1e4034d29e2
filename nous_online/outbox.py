"""Events that others consume: written with the change they tell of, delivered at least once and in order per agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.statements import statements

SQL = statements("nous_online", "outbox.sql")
EventName = Literal[
    "fact_learned",
    "episode_closed",
    "episode_completed",
    "procedure_loaded",
    "censor_activated",
    "decision_recorded",
    "decision_failed",
    "guardrail_triggered",
    "calibration_drift",
]


def emit(
    connection: Connection,
    agent_id: str,
    name: EventName,
    *,
    memory_id: UUID | None = None,
    payload: Mapping[str, Any] | None = None,
) -> None:
    """Announce something in the transaction that does it: both become true, or neither."""
    row = {"agent_id": agent_id, "name": name, "memory_id": memory_id, "payload": Jsonb(dict(payload or {}))}
    connection.execute(SQL["emit"], row)
