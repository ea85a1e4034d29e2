"""The one write path for memories that exist: version checked, event left, reversible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nous_online.domain import Fact
from nous_online.errors import Conflict, InvalidInput
from nous_online.statements import statements

SQL = statements("nous_online", "changes.sql")
Actor = Literal["agent", "night", "operator", "import"]
# What a change may touch: the columns that `change_fact` writes. Content, origin and vectors are never rewritten.
CHANGEABLE = frozenset((
    "state", "subject", "slot", "category", "tags", "confidence", "summary", "compressed", "index_word", "source",
    "sources", "trust", "is_pinned", "last_confirmed_at", "confirmation_count", "superseded_by", "superseded_at",
    "valid_from", "valid_to", "archived_at", "contradiction_status", "scope", "user_id", "project_id",
    "rank_weight",
))  # fmt: skip


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


def change_fact(
    connection: Connection, agent_id: str, fact_id: UUID, *, row_version: int, values: Mapping[str, Any], cause: Cause
) -> Fact:
    """Set columns of one fact and leave the event; raise `Conflict` when it is no longer at `row_version`.

    `values` maps column names to JSON values (moments as ISO 8601 text); one that never changes is
    refused with `InvalidInput`.
    """
    fixed = sorted(set(values) - CHANGEABLE)
    if fixed:
        raise InvalidInput(f"fact {fact_id}: {fixed[0]!r} can't be changed; learn a new fact that supersedes this one")
    parameters = {
        "agent_id": agent_id,
        "id": fact_id,
        "row_version": row_version,
        "values": Jsonb(dict(values)),
        **vars(cause),
    }
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        fact = cursor.execute(SQL["change_fact"], parameters).fetchone()
    if fact is None:
        raise Conflict(f"fact {fact_id} is no longer at version {row_version}; read it again and decide anew")
    return fact


def add_usage(connection: Connection, agent_id: str, memory_id: UUID, kind: str, delta: UsageDelta) -> None:
    """Add to the usage counters of one memory."""
    connection.execute(SQL["add_usage"], {"agent_id": agent_id, "id": memory_id, "kind": kind, **vars(delta)})


def locked_versions(connection: Connection, agent_id: str, fact_ids: list[UUID]) -> dict[UUID, int]:
    """Lock facts in id order until the transaction ends and return their versions; absent ones are left out."""
    return dict(connection.execute(SQL["lock_facts"], {"agent_id": agent_id, "ids": sorted(fact_ids)}).fetchall())
