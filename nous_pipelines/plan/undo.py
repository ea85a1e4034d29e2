"""Takes back what a night did: another transition, version checked, refused with a reason where others built on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.errors import DeadlockDetected, LockNotAvailable, QueryCanceled
from psycopg.rows import class_row

from nous_online.core.errors import NotFound, Refused, Unavailable
from nous_online.core.kinds import KINDS
from nous_online.database.changes import Cause, add_usage, locked_versions
from nous_online.database.connection import Database
from nous_online.memories.contradictions import mark_anew
from nous_online.memories.undoing import PastChange, check_names, restore
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.plan.apply import CHUNK_TIMEOUT_S, undeadlocked
from nous_pipelines.plan.apply_chunk import SQL, by_id, usage_delta


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
    read_set: list[dict[str, Any]]
    changes: list[dict[str, Any]]


@dataclass(frozen=True)
class Undone:
    """Which proposals were taken back, and which not and why."""

    undone: tuple[UUID, ...]
    refused: Mapping[UUID, str]


def undo(database: Database, selection: Selection, *, reason: str) -> Undone:
    """Take back the selected proposals, the latest first, each in one transaction.

    Restores every column they changed. A proposal whose memories were changed since in the same columns is refused,
    and stays applied, as is one that somebody kept busy, and those that are left when the database fails half-way.
    Raises `NotFound` when nothing that is selected is applied, and `Unavailable` when nothing could be taken back.
    """
    with database.transaction() as connection, connection.cursor(row_factory=class_row(AppliedProposal)) as cursor:
        found = cursor.execute(SQL["applied_proposals"], vars(selection)).fetchall()
    if not found:
        wanted = ", ".join(f"{name}={value}" for name, value in vars(selection).items() if value is not None)
        raise NotFound(f"no applied proposal has {wanted or 'been found'}; `nous diff` shows what each night did")
    undone: list[UUID] = []
    refused: dict[UUID, str] = {}
    for place, proposal in enumerate(found):
        try:
            undeadlocked(partial(undo_proposal, database, proposal, reason=reason))
            undone.append(proposal.id)
        except Refused as refusal:
            refused[proposal.id] = str(refusal)
        except Unavailable as error:
            if is_busy(error):
                refused[proposal.id] = f"busy: somebody is at work on what it changed ({error}); run it again"
            elif not undone:
                raise
            else:
                return Undone(tuple(undone), refused | {each.id: f"not reached: {error}" for each in found[place:]})
    return Undone(tuple(undone), refused)


def undo_range(database: Database, selection: Selection, nights: Iterable[date], *, reason: str) -> dict[date, Undone]:
    """Take back nights one after the other, to be given newest first, up to one of which something is refused.

    Returns what became of each that had anything to take back. Raises `NotFound` when none had, and `Unavailable`,
    naming the nights that were taken back, when the database fails.
    """
    results: dict[date, Undone] = {}
    missing: NotFound | None = None
    for night in nights:
        try:
            results[night] = undo(database, replace(selection, night=night), reason=reason)
        except NotFound as error:
            missing = missing or error
            continue
        except Unavailable as error:
            done = ", ".join(each.isoformat() for each in results) or "no night"
            raise Unavailable(f"{done} was taken back, then night {night} could not be: {error}") from error
        if results[night].refused:
            break
    if missing is not None and not results:
        raise NotFound(
            "no applied proposal is left of these nights; `nous diff` shows what each night did"
        ) from missing
    return results


def is_busy(error: Unavailable) -> bool:
    """Tell whether a transaction failed because of what others were doing to the same rows."""
    return isinstance(error.__cause__, QueryCanceled | LockNotAvailable | DeadlockDetected)


def undo_proposal(database: Database, proposal: AppliedProposal, *, reason: str) -> None:
    """Restore everything one proposal changed; raise `Refused`, changing nothing, where that is no longer possible."""
    key = {"agent_id": proposal.agent_id, "id": proposal.id}
    with database.transaction(proposal.agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
        states = connection.execute(SQL["lock_proposals"], {**key, "ids": [proposal.id]}).fetchall()
        if states != [(proposal.id, "applied")]:
            raise Refused(f"proposal {proposal.id} is no longer applied")
        with connection.cursor(row_factory=class_row(PastChange)) as cursor:
            events = cursor.execute(SQL["proposal_events"], key).fetchall()
        for name, kind in KINDS.items():
            changed = {event.memory_id for event in events if event.memory_kind == name}
            named = contradicting(proposal) if name == "fact" else set[UUID]()
            locked_versions(connection, proposal.agent_id, kind, changed | named)
        for event in events:
            cause = Cause("operator", "undone", reason, datetime.now(UTC), proposal_id=proposal.id, undoes=event.id)
            restore(connection, proposal.agent_id, event, cause=cause)
        check_names(connection, proposal.agent_id, [event.memory_id for event in events])
        take_back(connection, proposal, reason=reason)
        connection.execute(SQL["decide_proposal"], {**key, "state": "undone", "outcome": reason})


def take_back(connection: Connection, proposal: AppliedProposal, *, reason: str) -> None:
    """Take back what a proposal changed besides memories: counters, contradictions, links."""
    agent_id = proposal.agent_id
    reads = by_id(Read(**read) for read in proposal.read_set)
    changes = [Change(**change) for change in proposal.changes]
    counted = [usage_delta(reads[each.id], each, sign=-1) for each in changes if each.kind == "usage"]
    add_usage(connection, agent_id, counted)
    for each in changes:
        if each.kind == "contradiction":
            close_contradiction(connection, agent_id, each, note=f"taken back: {reason}")
        if each.kind == "link":
            link = {"agent_id": agent_id, "id": each.id, "to_id": each.set["to_id"], "kind": each.set["kind"]}
            connection.execute(SQL["remove_link"], link)
    mark_again(connection, proposal, reason=reason)


def contradicting(proposal: AppliedProposal) -> set[UUID]:
    """Return the facts that a proposal said contradict each other."""
    found = [change["set"] for change in proposal.changes if change["kind"] == "contradiction"]
    return {UUID(each[side]) for each in found for side in ("memory_a", "memory_b")}


def mark_again(connection: Connection, proposal: AppliedProposal, *, reason: str) -> None:
    """Let the facts of contradictions that were taken back say whether another one that is open names them."""
    cause = Cause("operator", "marked", reason, datetime.now(UTC), proposal_id=proposal.id)
    mark_anew(connection, proposal.agent_id, contradicting(proposal), cause=cause)


def close_contradiction(connection: Connection, agent_id: str, change: Change, *, note: str) -> None:
    """Say that both facts of a contradiction hold; raise `Refused` where somebody decided otherwise."""
    key = {"agent_id": agent_id, "id": change.id}
    if connection.execute(SQL["close_contradiction"], {**key, "note": note}).rowcount:
        return
    found = connection.execute(SQL["how_resolved"], key).fetchone()
    if found is not None:
        pair = f"{change.set['memory_a']} and {change.set['memory_b']}"
        why = f" ({found[1]})" if found[1] else ""
        raise Refused(f"the contradiction between facts {pair} has been resolved since, as {found[0]!r}{why}")
