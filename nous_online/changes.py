"""The one write path of memories: version checked, event left, reversible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, Generic, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from nous_online.errors import InvalidInput, NotFound, Stale
from nous_online.kinds import Kind, M
from nous_online.statements import statements

BLOCKS = statements("nous_online", "changes.sql")
Actor = Literal["agent", "night", "operator", "import"]


@dataclass(frozen=True)
class Cause:
    """Who changes a memory, why, and in which logical moment."""

    actor: Actor
    action: str
    reason: str
    effective_at: datetime
    night: date | None = None
    run_id: str | None = None
    proposal_id: UUID | None = None
    undoes: int | None = None


@dataclass(frozen=True)
class Version(Generic[M]):
    """One memory as it was read."""

    kind: Kind[M]
    id: UUID
    row_version: int


@dataclass(frozen=True)
class UsageDelta:
    """What to add to the counters of one memory; negative to take it back."""

    retrieved_count: int = 0
    cited_count: int = 0
    ignored_count: int = 0
    last_used_at: datetime | None = None

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> UsageDelta:
        """Return the delta of counters given by name; those not named stay."""
        retrieved, cited, ignored = (counts.get(f"{name}_count", 0) for name in ("retrieved", "cited", "ignored"))
        return cls(retrieved, cited, ignored)


@dataclass(frozen=True)
class Growth:
    """A text column that only gets longer: its event keeps how long it was and what was added, not all of it twice."""

    column: str
    characters: int
    appended: str

    @property
    def images(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What stands for the column in an event, before and after."""
        return {self.column: {"characters": self.characters}}, {self.column: {"appended": self.appended}}


def version_of(kind: Kind[M], memory: M) -> Version[M]:
    """Return the version a memory was read at."""
    return Version(kind, memory.id, memory.row_version)


def get_memory(connection: Connection, agent_id: str, kind: Kind[M], memory_id: UUID) -> M:
    """Return one memory in whatever state it is; raise `NotFound` when this agent has none of that id."""
    with connection.cursor(row_factory=class_row(kind.value)) as cursor:
        found = cursor.execute(composed("get_memory", kind), {"agent_id": agent_id, "id": memory_id}).fetchone()
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no {kind.name} {memory_id}")
    return found


def locked_memories(connection: Connection, agent_id: str, kind: Kind[M], memory_ids: Sequence[UUID]) -> list[M]:
    """Lock memories in id order until the transaction ends and return them; absent ones are left out."""
    with connection.cursor(row_factory=class_row(kind.value)) as cursor:
        parameters = {"agent_id": agent_id, "ids": sorted(memory_ids)}
        return cursor.execute(composed("lock_memories", kind), parameters).fetchall()


def locked_memory(connection: Connection, agent_id: str, kind: Kind[M], memory_id: UUID) -> M:
    """Lock one memory until the transaction ends and return it; raise `NotFound` when there is none."""
    for found in locked_memories(connection, agent_id, kind, [memory_id]):
        return found
    raise NotFound(f"agent {agent_id!r} has no {kind.name} {memory_id}")


def add_memory(connection: Connection, agent_id: str, kind: Kind[M], values: Mapping[str, Any], *, cause: Cause) -> M:
    """Store a new memory with its event, and return it.

    `values` maps column names to JSON values (moments as ISO 8601 text, vectors as `[x,y,…]`); others keep their
    defaults.
    """
    row = {**values, "agent_id": agent_id}
    parameters = {"values": Jsonb(row), "kind": kind.name, **vars(cause)}
    with connection.cursor(row_factory=class_row(kind.value)) as cursor:
        stored = cursor.execute(composed("add_memory", kind, tuple(row)), parameters).fetchone()
    if stored is None:
        raise NotFound(f"the {kind.name} of agent {agent_id!r} was not stored")
    return stored


def change_memory(
    connection: Connection,
    agent_id: str,
    read: Version[M],
    values: Mapping[str, Any],
    *,
    cause: Cause,
    growth: Growth | None = None,
) -> M:
    """Set columns of one memory and leave the event; raise `Stale` when it is no longer at the version read.

    `values` maps column names to JSON values as in `add_memory`; one that never changes is refused with `InvalidInput`.
    """
    kind = read.kind
    fixed = sorted(set(values) - kind.changeable)
    if fixed:
        raise InvalidInput(f"{kind.name} {read.id}: {fixed[0]!r} can't be changed; store a new {kind.name} instead")
    grown_from, grown_by = growth.images if growth else ({}, {})
    parameters = {
        "grown_from": Jsonb(grown_from),
        "grown_by": Jsonb(grown_by),
        "agent_id": agent_id,
        "id": read.id,
        "kind": kind.name,
        "row_version": read.row_version,
        "values": Jsonb(dict(values)),
        **vars(cause),
    }
    with connection.cursor(row_factory=class_row(kind.value)) as cursor:
        changed = cursor.execute(composed("change_memory", kind, tuple(values)), parameters).fetchone()
    if changed is None:
        message = f"{kind.name} {read.id} is no longer at version {read.row_version}; read it again and decide anew"
        raise Stale(message)
    return changed


@cache
def composed(statement: str, kind: Kind[Any], given: tuple[str, ...] = ()) -> Composed:
    """Fill table and columns of a kind into a statement; `given` are the columns it sets."""
    return SQL(BLOCKS[statement]).format(
        table=Identifier("heart", kind.table),
        columns=SQL(", ").join(map(Identifier, kind.columns)),
        given=SQL(", ").join(map(Identifier, given)),
        **{
            f"given_of_{row}": SQL(", ").join(Identifier(row, name) for name in given)
            for row in ("r", "old", "changed")
        },
    )


def add_usage(connection: Connection, agent_id: str, memory_id: UUID, kind: str, delta: UsageDelta) -> None:
    """Add to the usage counters of one memory."""
    connection.execute(BLOCKS["add_usage"], {"agent_id": agent_id, "id": memory_id, "kind": kind, **vars(delta)})
