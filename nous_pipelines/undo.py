"""Takes back what a night did: another transition, version checked, refused with a reason where others built on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, sql
from psycopg.rows import class_row, dict_row

from nous_online.changes import Cause, UsageDelta, Version, add_usage, change_memory, locked_memories
from nous_online.database import Database
from nous_online.errors import NotFound, Refused
from nous_online.kinds import KINDS
from nous_pipelines.apply import PROPOSAL_TIMEOUT_S, SQL

COUNTED = ("confirmation_count",)
"""Columns that are added to: taking back subtracts what was added, whatever was added since."""
LATEST = ("last_confirmed_at",)
"""Columns that only move forward: a later value stays."""


@dataclass(frozen=True)
class Selection:
    """Which applied proposals to take back; what is None does not narrow."""

    agent_id: str | None = None
    night: date | None = None
    kind: str | None = None
    id: UUID | None = None


@dataclass(frozen=True)
class AppliedProposal:
    """A proposal that was applied, as far as undoing needs it."""

    agent_id: str
    id: UUID
    night: date
    kind: str
    reason: str
    changes: list[dict[str, Any]]


@dataclass(frozen=True)
class Undone:
    """Which proposals were taken back, and which not and why."""

    undone: tuple[UUID, ...]
    refused: Mapping[UUID, str]


def undo(database: Database, selection: Selection, *, reason: str) -> Undone:
    """Take back the selected proposals, the latest first, each in one transaction.

    Restores every column they changed. A proposal whose memories were changed since in the same columns is refused,
    and stays applied. Raises `NotFound` when nothing that is selected is applied.
    """
    with database.transaction() as connection, connection.cursor(row_factory=class_row(AppliedProposal)) as cursor:
        found = cursor.execute(SQL["applied_proposals"], vars(selection)).fetchall()
    if not found:
        wanted = ", ".join(f"{name}={value}" for name, value in vars(selection).items() if value is not None)
        raise NotFound(f"no applied proposal has {wanted or 'been found'}; `nous diff` shows what each night did")
    undone: list[UUID] = []
    refused: dict[UUID, str] = {}
    for proposal in found:
        try:
            undo_proposal(database, proposal, reason=reason)
            undone.append(proposal.id)
        except Refused as refusal:
            refused[proposal.id] = str(refusal)
    return Undone(tuple(undone), refused)


def undo_proposal(database: Database, proposal: AppliedProposal, *, reason: str) -> None:
    """Restore everything one proposal changed; raise `Refused`, changing nothing, where that is no longer possible."""
    key = {"agent_id": proposal.agent_id, "id": proposal.id}
    with database.transaction(proposal.agent_id, timeout_s=PROPOSAL_TIMEOUT_S) as connection:
        state = connection.execute(SQL["lock_proposal"], key).fetchone()
        if state is None or state[0] != "applied":
            raise Refused(f"proposal {proposal.id} is no longer applied")
        with connection.cursor(row_factory=dict_row) as cursor:
            events = cursor.execute(SQL["proposal_events"], key).fetchall()
        for name, kind in KINDS.items():
            locked_memories(
                connection,
                proposal.agent_id,
                kind,
                [event["memory_id"] for event in events if event["memory_kind"] == name],
            )
        for event in events:
            restore(connection, proposal, event, reason=reason)
        for change in proposal.changes:
            if change["kind"] == "usage":
                taken = UsageDelta.of({name: -count for name, count in change["add"].items()})
                add_usage(connection, proposal.agent_id, UUID(change["id"]), "fact", taken)
        connection.execute(SQL["decide_proposal"], {**key, "state": "undone", "outcome": reason})


def restore(connection: Connection, proposal: AppliedProposal, event: Mapping[str, Any], *, reason: str) -> None:
    """Put back what one event changed."""
    memory, kind = event["memory_id"], KINDS[event["memory_kind"]]
    statement = sql.SQL(SQL["memory_as_json"]).format(table=sql.Identifier("heart", kind.table))
    row = connection.execute(statement, {"agent_id": proposal.agent_id, "id": memory}).fetchone()
    if row is None:
        raise Refused(f"{kind.name} {memory} is gone")
    version, now = row
    left = {"state": event["to_state"], **event["after"]}
    changed = [name for name in left if is_changed(name, left[name], now[name])]
    if changed:
        raise Refused(
            f"{kind.name} {memory} was changed since ({', '.join(changed)}): "
            f"{later_cause(connection, proposal, memory)}"
        )
    cause = Cause("operator", "undone", reason, datetime.now(UTC), proposal_id=proposal.id, undoes=event["id"])
    values = {name: restored(name, event["before"][name], event["after"][name], now[name]) for name in event["before"]}
    change_memory(connection, proposal.agent_id, Version(kind, memory, version), values, cause=cause)


def is_changed(name: str, after: Any, now: Any) -> bool:
    """Tell whether somebody changed a column since, in a way that taking back would destroy."""
    return name not in COUNTED and name not in LATEST and after != now


def restored(name: str, before: Any, after: Any, now: Any) -> Any:
    """Return what a column should hold once a change from `before` to `after` is taken back from `now`."""
    if name in COUNTED:
        return now - (after - before)
    if name in LATEST and now != after:
        return now
    return before


def later_cause(connection: Connection, proposal: AppliedProposal, memory: UUID) -> str:
    """Say who changed a memory last, and why."""
    row = connection.execute(SQL["last_event"], {"agent_id": proposal.agent_id, "memory_id": memory}).fetchone()
    return f"{row[0]} by {row[2]} ({row[1]}); undo that first" if row else "by an unknown change"
