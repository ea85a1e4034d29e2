"""Events as values, written in the transaction of the change they tell of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.database.statements import statements

SQL = statements("nous_online.memories", "events.sql")
EVERYTHING = "*"
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
    "event_skipped",
]


@dataclass(frozen=True)
class Event:
    """Something that happened to one agent; `memory_id` names the memory or decision it tells of."""

    id: int
    name: str
    agent_id: str
    memory_id: UUID | None
    payload: dict[str, Any]
    created_at: datetime


Handler = Callable[[Event], object]


@dataclass(frozen=True, eq=False)
class Subscription:
    """What one consumer wants to hear; `cancel` ends it, and the consumer's place in the queue is kept."""

    consumer: str
    names: frozenset[str]
    handler: Handler
    among: list[Subscription] = field(repr=False)

    def cancel(self) -> None:
        """Hear no more; cancelling twice is no mistake."""
        if self in self.among:
            self.among.remove(self)

    def wants(self, event: Event) -> bool:
        """Tell whether this subscription is for such an event."""
        return not self.names.isdisjoint((EVERYTHING, event.name))


def emit(
    connection: Connection,
    agent_id: str,
    name: EventName,
    *,
    memory_id: UUID | None = None,
    payload: Mapping[str, Any] | None = None,
) -> None:
    """Announce something in the transaction that does it: both become true, or neither."""
    write_event(connection, agent_id, name, memory_id=memory_id, payload=payload or {})


def write_event(
    connection: Connection, agent_id: str, name: str, *, memory_id: UUID | None, payload: Mapping[str, Any]
) -> None:
    """Put one event of any name into the outbox."""
    row = {"agent_id": agent_id, "name": name, "memory_id": memory_id, "payload": Jsonb(dict(payload))}
    connection.execute(SQL["write_event"], row)
