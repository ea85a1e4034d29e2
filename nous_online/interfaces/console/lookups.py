"""Queries of the console beyond the verbs: one function each, from a connection to frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier

from nous_online.database.statements import statements

BLOCKS = statements("nous_online.interfaces.console", "console.sql")


@dataclass(frozen=True)
class ListedMemory:
    """A memory of any kind as a list shows it; `about` is a subject, title, domain or severity."""

    kind: str
    id: UUID
    state: str
    text: str
    about: str | None
    at: datetime
    trust: int
    is_pinned: bool
    is_forgotten: bool
    source: str | None
    user_id: str | None
    confirmation_count: int


@dataclass(frozen=True)
class LinkedMemory:
    """A link of a memory: the other memory, the kind, and the weight from 0 to 1."""

    id: UUID
    kind: str
    weight: float


@dataclass(frozen=True)
class Uses:
    """How often a memory was found, cited and ignored."""

    retrieved_count: int = 0
    cited_count: int = 0
    ignored_count: int = 0
    last_used_at: datetime | None = None


@dataclass(frozen=True)
class OpenContradiction:
    """Two facts that contradict each other, undecided."""

    id: UUID
    memory_a: UUID
    memory_b: UUID
    detected_at: datetime
    reason: str | None
    proposed: Mapping[str, Any] | None
    waiting: int
    """The number of all open contradictions."""


@dataclass(frozen=True)
class PastContradiction:
    """A contradiction that a fact is or was in."""

    id: UUID
    memory_a: UUID
    memory_b: UUID
    detected_at: datetime
    status: str
    resolution: str | None
    note: str | None


@dataclass(frozen=True)
class Doubt:
    """A fact that perhaps replaces an earlier one; both are recalled."""

    later_id: UUID
    earlier_id: UUID


@dataclass(frozen=True)
class NightLine:
    """A night in a list: its figures, and the number of its proposals in each state."""

    night: date
    figures: Mapping[str, Any]
    states: Mapping[str, int]


@dataclass(frozen=True)
class KindCount:
    """How many proposals of one kind are in one state."""

    kind: str
    state: str
    count: int


@dataclass(frozen=True)
class NightProposal:
    """A proposal of a night: what it changes, why, and its state."""

    id: UUID
    kind: str
    targets: list[UUID]
    reason: str
    state: str
    outcome: str | None


def over_all_kinds(block: str) -> Composed:
    """Return the named statement over memories of all kinds."""
    columns = SQL(", ").join(Identifier(field.name) for field in fields(ListedMemory))
    return SQL(BLOCKS[block]).format(columns=columns, rows=SQL(BLOCKS["rows"]))


def list_memories(connection: Connection, agent_id: str, conditions: Mapping[str, Any]) -> list[ListedMemory]:
    """Return the latest memories that fit the conditions, named as the parameters of the query."""
    with connection.cursor(row_factory=class_row(ListedMemory)) as cursor:
        # Not prepared: a generic plan scans all memories, a plan for these values uses the index that fits them.
        return cursor.execute(
            over_all_kinds("list_memories"), {**conditions, "agent_id": agent_id}, prepare=False
        ).fetchall()


def named_memories(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, ListedMemory]:
    """Return memories by id; erased ones are missing."""
    if not ids:
        return {}
    with connection.cursor(row_factory=class_row(ListedMemory)) as cursor:
        found = cursor.execute(over_all_kinds("named_memories"), {"agent_id": agent_id, "ids": list(ids)}).fetchall()
    return {each.id: each for each in found}


def links_of(connection: Connection, agent_id: str, memory_id: UUID) -> list[LinkedMemory]:
    """Return the links of a memory, the strongest first, 50 at most."""
    with connection.cursor(row_factory=class_row(LinkedMemory)) as cursor:
        return cursor.execute(BLOCKS["links_of"], {"agent_id": agent_id, "id": memory_id}).fetchall()


def uses_of(connection: Connection, agent_id: str, memory_id: UUID) -> Uses:
    """Return the counts of uses of a memory."""
    with connection.cursor(row_factory=class_row(Uses)) as cursor:
        return cursor.execute(BLOCKS["uses_of"], {"agent_id": agent_id, "id": memory_id}).fetchone() or Uses()


def open_contradictions(connection: Connection, agent_id: str, *, limit: int) -> list[OpenContradiction]:
    """Return open contradictions, the oldest first."""
    with connection.cursor(row_factory=class_row(OpenContradiction)) as cursor:
        return cursor.execute(BLOCKS["open_contradictions"], {"agent_id": agent_id, "limit": limit}).fetchall()


def contradictions_of(connection: Connection, agent_id: str, fact_id: UUID) -> list[PastContradiction]:
    """Return the contradictions a fact is or was in, the latest first."""
    with connection.cursor(row_factory=class_row(PastContradiction)) as cursor:
        return cursor.execute(BLOCKS["contradictions_of"], {"agent_id": agent_id, "id": fact_id}).fetchall()


def doubts(connection: Connection, agent_id: str, *, limit: int) -> list[Doubt]:
    """Return pairs of active facts of which the later perhaps replaces the earlier, the latest first."""
    with connection.cursor(row_factory=class_row(Doubt)) as cursor:
        return cursor.execute(BLOCKS["doubts"], {"agent_id": agent_id, "limit": limit}).fetchall()


def list_nights(connection: Connection, agent_id: str, *, limit: int) -> list[NightLine]:
    """Return the agent's nights, the latest first."""
    with connection.cursor(row_factory=class_row(NightLine)) as cursor:
        return cursor.execute(BLOCKS["list_nights"], {"agent_id": agent_id, "limit": limit}).fetchall()


def night_figures(connection: Connection, agent_id: str, night: date) -> Mapping[str, Any]:
    """Return the figures of the agent's memory after a night; empty if there are none."""
    row = connection.execute(BLOCKS["night_figures"], {"agent_id": agent_id, "night": night}).fetchone()
    return {} if row is None else row[0]


def night_kinds(connection: Connection, agent_id: str, night: date) -> list[KindCount]:
    """Return the number of proposals of a night, by kind and state."""
    with connection.cursor(row_factory=class_row(KindCount)) as cursor:
        return cursor.execute(BLOCKS["night_kinds"], {"agent_id": agent_id, "night": night}).fetchall()


def night_proposals(connection: Connection, agent_id: str, conditions: Mapping[str, Any]) -> list[NightProposal]:
    """Return proposals of a night that fit the conditions, named as the parameters of the query."""
    with connection.cursor(row_factory=class_row(NightProposal)) as cursor:
        return cursor.execute(BLOCKS["night_proposals"], {**conditions, "agent_id": agent_id}).fetchall()
