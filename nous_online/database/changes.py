"""The one write path of memories: version checked, event left, reversible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, Generic, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from nous_online.core.domain import Kind, M
from nous_online.core.errors import InvalidInput, NotFound, Stale
from nous_online.core.rights import ACTS_AS
from nous_online.database.statements import statements

BLOCKS = statements("nous_online.database", "changes.sql")
Actor = Literal["agent", "night", "operator", "import"]


@dataclass(frozen=True)
class Cause:
    """Who changes a memory, why, and at which logical time: what its event records."""

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
    """A memory's id and the row version it was read at."""

    kind: Kind[M]
    id: UUID
    row_version: int


@dataclass(frozen=True)
class UsageDelta:
    """What to add to the usage counters of one memory; negative numbers subtract."""

    id: UUID
    kind: str
    retrieved_count: int = 0
    cited_count: int = 0
    ignored_count: int = 0
    last_used_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the delta as plain JSON values."""
        return json_values(vars(self))


@dataclass(frozen=True)
class Growth:
    """A text column that grew: its event keeps the old length and the appended text, not the whole text twice."""

    column: str
    characters: int
    appended: str

    @property
    def images(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The event's before- and after-image of the column."""
        return {self.column: {"characters": self.characters}}, {self.column: {"appended": self.appended}}


@dataclass(frozen=True)
class Cooling:
    """Text columns that move to cold storage: their event keeps the tier they are stored under, not the texts."""

    id: UUID
    """The episode's."""
    tier: str
    """What the episode was condensed from."""
    columns: tuple[str, ...]
    purge_after: str | None = None
    """When the cold text may be deleted, as ISO 8601; None keeps it."""

    @property
    def images(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The event's before- and after-images of the columns; SQL keeps null for a column that was null."""
        return {column: {"cold_text": self.tier} for column in self.columns}, {}


@dataclass(frozen=True)
class ConfirmingStatement:
    """A statement that confirms a fact, stored with the change it makes; the event of the change names it."""

    values: Mapping[str, Any]
    """Columns of `heart.statements`, its `id` among them, as JSON has them."""

    @property
    def images(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The event's before- and after-images of the statement."""
        return {}, {"statement": self.values["id"]}


@dataclass(frozen=True)
class EventNote:
    """Entries of an event besides the changed columns, such as the statement or other fact the change was about."""

    after: Mapping[str, str]

    @property
    def images(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The event's before- and after-images of the note."""
        return {}, dict(self.after)


@dataclass(frozen=True)
class Alteration(Generic[M]):
    """New column values of one memory, valid for the version that was read."""

    read: Version[M]
    values: Mapping[str, Any]
    """Column names to JSON values, as in `add_memory`."""
    cause: Cause
    noted: Growth | Cooling | ConfirmingStatement | EventNote | None = None
    """What the event records besides the columns, or in place of them."""

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of `change_memories`; raise `InvalidInput` for a column that never changes."""
        kind = self.read.kind
        fixed = sorted(set(self.values) - kind.changeable)
        if fixed:
            message = f"{kind.name} {self.read.id}: {fixed[0]!r} can't be changed; store a new {kind.name} instead"
            raise InvalidInput(message)
        before, after = self.noted.images if self.noted else ({}, {})
        read = {"id": str(self.read.id), "row_version": self.read.row_version, "values": dict(self.values)}
        stated = {"statement": dict(self.noted.values)} if isinstance(self.noted, ConfirmingStatement) else {}
        cause = json_values(vars(self.cause))
        cause["actor"] = ACTS_AS.get() if self.cause.actor == "agent" else self.cause.actor
        return {**read, "abridged_before": before, "abridged_after": after, **cause, **stated}


def version_of(kind: Kind[M], memory: M) -> Version[M]:
    """Return the version a memory was read at."""
    return Version(kind, memory.id, memory.row_version)


def get_memory(connection: Connection, agent_id: str, kind: Kind[M], memory_id: UUID) -> M:
    """Return one memory in any state; raise `NotFound` when this agent has none with that id."""
    with connection.cursor(row_factory=class_row(kind.value)) as cursor:
        found = cursor.execute(fill_statement("get_memory", kind), {"agent_id": agent_id, "id": memory_id}).fetchone()
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no {kind.name} {memory_id}")
    return found


def lock_memories(connection: Connection, agent_id: str, kind: Kind[M], memory_ids: Sequence[UUID]) -> list[M]:
    """Lock memories in id order until the transaction ends and return them; absent ones are left out."""
    with connection.cursor(row_factory=class_row(kind.value)) as cursor:
        # One order for all writers, so that two of them who want the same rows wait instead of deadlocking.
        parameters = {"agent_id": agent_id, "ids": sorted(memory_ids)}
        return cursor.execute(fill_statement("lock_memories", kind), parameters).fetchall()


def lock_memory(connection: Connection, agent_id: str, kind: Kind[M], memory_id: UUID) -> M:
    """Lock one memory until the transaction ends and return it; raise `NotFound` when there is none."""
    for found in lock_memories(connection, agent_id, kind, [memory_id]):
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
        stored = cursor.execute(fill_statement("add_memory", kind, tuple(row)), parameters).fetchone()
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
    noted: Growth | ConfirmingStatement | EventNote | None = None,
) -> M:
    """Set columns of one memory and store the event; raise `Stale` when it is no longer at the version read.

    `values` maps column names to JSON values as in `add_memory`. Raises `InvalidInput` for a column that never changes.
    """
    entry = Alteration(read, values, cause, noted).as_dict()
    statement = fill_statement(
        "change_memories", read.kind, tuple(values), has_statement=isinstance(noted, ConfirmingStatement)
    )
    parameters = {"agent_id": agent_id, "kind": read.kind.name, "entries": Jsonb([entry])}
    with connection.cursor(row_factory=class_row(read.kind.value)) as cursor:
        changed = cursor.execute(statement, parameters).fetchone()
    if changed is None:
        raise stale_error(read)
    return changed


def change_memories(connection: Connection, agent_id: str, alterations: Sequence[Alteration[Any]]) -> None:
    """Set columns of many memories, with an event for each: one SQL statement for each kind and set of columns.

    Raises `Stale` when one is no longer at the version read; roll the transaction back then.
    """
    groups: defaultdict[tuple[Kind[Any], tuple[str, ...]], list[Alteration[Any]]] = defaultdict(list)
    for alteration in alterations:
        groups[alteration.read.kind, tuple(sorted(alteration.values))].append(alteration)
    for (kind, given), members in groups.items():
        statement = fill_statement("change_memories", kind, given, ("id",))
        entries = Jsonb([member.as_dict() for member in members])
        parameters = {"agent_id": agent_id, "kind": kind.name, "entries": entries}
        changed = {row[0] for row in connection.execute(statement, parameters)}
        for member in members:
            if member.read.id not in changed:
                raise stale_error(member.read)


def stale_error(read: Version[Any]) -> Stale:
    """Return the error for a memory that is no longer at the version read."""
    return Stale(
        f"{read.kind.name} {read.id} is no longer at version {read.row_version}; read it again, then change it"
    )


def lock_versions(
    connection: Connection, agent_id: str, kind: Kind[Any], memory_ids: Collection[UUID]
) -> dict[UUID, int]:
    """Lock memories in id order until the transaction ends and return their versions; absent ones are left out."""
    statement = fill_statement("lock_memories", kind, (), ("id", "row_version"))
    return dict(connection.execute(statement, {"agent_id": agent_id, "ids": sorted(memory_ids)}).fetchall())


@cache
def fill_statement(
    statement: str,
    kind: Kind[Any],
    given: tuple[str, ...] = (),
    shown: tuple[str, ...] | None = None,
    *,
    has_statement: bool = False,
) -> Composed:
    """Return a statement for the table of a kind; `given` are the columns it sets, `shown` those it returns.

    Cached: composing it takes psycopg longer than some of the queries take.
    """
    return SQL(BLOCKS[statement]).format(
        table=Identifier("heart", kind.table),
        columns=SQL(", ").join(map(Identifier, shown or kind.columns)),
        given=SQL(", ").join(map(Identifier, given)),
        stated=SQL(BLOCKS["with_statement"] if has_statement else ""),
        **{
            f"given_of_{row}": SQL(", ").join(Identifier(row, name) for name in given)
            for row in ("r", "old", "changed")
        },
    )


def store_cold_texts(connection: Connection, agent_id: str, coolings: Sequence[Cooling]) -> None:
    """Copy the current texts of episodes to cold storage; call it before the episodes change."""
    if coolings:
        texts = Jsonb([json_values(vars(cooling)) for cooling in coolings])
        connection.execute(BLOCKS["store_cold_texts"], {"agent_id": agent_id, "texts": texts})


def add_usage(connection: Connection, agent_id: str, deltas: Sequence[UsageDelta]) -> None:
    """Add to the usage counters of memories."""
    if not deltas:
        return
    parameters = {"agent_id": agent_id, "deltas": Jsonb([delta.as_dict() for delta in deltas])}
    connection.execute(BLOCKS["begin_usage"], parameters)  # rows of zeros for memories that were never used
    connection.execute(BLOCKS["add_usage"], parameters)


def json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON types: moments and dates as ISO 8601 text, ids as text."""
    return {
        # Moments too: a datetime is a date.
        name: value.isoformat() if isinstance(value, date) else str(value) if isinstance(value, UUID) else value
        for name, value in values.items()
    }
