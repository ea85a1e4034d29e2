"""What is taken back of the proposals of one agent in one transaction: decided on locked rows, then done together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nous_online.core.errors import Refused
from nous_online.core.kinds import KINDS
from nous_online.database.changes import Alteration, Cause, add_usage, change_memories
from nous_online.memories.contradictions import mark_anew
from nous_online.memories.undoing import PastChange, check_names, locked_rows, restoration
from nous_pipelines.failpoints import reach
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.plan.apply_chunk import SQL, by_id, usage_delta


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

    @cached_property
    def by_kind(self) -> dict[str, list[Change]]:
        """What it changed, by the kind of change; those of memories, of whichever kind, under `memory`."""
        found: defaultdict[str, list[Change]] = defaultdict(list)
        for each in self.changes:
            found["memory" if each["kind"] in KINDS else each["kind"]].append(Change(**each))
        return found

    @property
    def changed(self) -> set[str]:
        """The memories it changed."""
        return {change.id for change in self.by_kind.get("memory", [])}

    @property
    def contradicting(self) -> set[UUID]:
        """The facts it said contradict each other."""
        opened = self.by_kind.get("contradiction", [])
        return {UUID(each.set[side]) for each in opened for side in ("memory_a", "memory_b")}


def take_back(connection: Connection, proposals: Sequence[AppliedProposal], *, reason: str) -> dict[UUID, str]:
    """Restore what proposals of one agent changed, in the caller's transaction; return why some could not be.

    No two of them may have changed the same memory. Raises `Refused` when the database forbids what one of them needs;
    nothing may be committed then.
    """
    agent_id, ids = proposals[0].agent_id, [proposal.id for proposal in proposals]
    states = dict(connection.execute(SQL["lock_proposals"], {"agent_id": agent_id, "ids": ids}).fetchall())
    standing = [proposal for proposal in proposals if states.get(proposal.id) == "applied"]
    refused = {each: f"proposal {each} is no longer applied" for each in ids if states.get(each) != "applied"}
    sound, alterations, faults = decide(connection, agent_id, standing, reason=reason)
    reach("undo decided")
    change_memories(connection, agent_id, alterations)
    check_names(connection, agent_id, [each.read.id for each in alterations])
    reach("memories restored")
    take_back_usage(connection, agent_id, sound)
    remove_links(connection, agent_id, sound)
    reach("links removed")
    close_contradictions(connection, agent_id, sound, reason=reason)
    reach("contradictions closed")
    decided = {"agent_id": agent_id, "ids": [proposal.id for proposal in sound], "outcome": reason}
    connection.execute(SQL["mark_undone"], decided)
    reach("proposals undone")
    return refused | faults


def decide(
    connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal], *, reason: str
) -> tuple[list[AppliedProposal], list[Alteration[Any]], dict[UUID, str]]:
    """Lock what some proposals changed; return which can be taken back, by which changes, and why the others can't."""
    events: defaultdict[UUID | None, list[PastChange]] = defaultdict(list)
    key = {"agent_id": agent_id, "ids": [proposal.id for proposal in proposals]}
    with connection.cursor(row_factory=class_row(PastChange)) as cursor:
        for event in cursor.execute(SQL["proposal_events"], key):
            events[event.proposal_id].append(event)
    named = {fact for proposal in proposals for fact in proposal.contradicting}
    found = locked_rows(connection, agent_id, [each for own in events.values() for each in own], and_facts=named)
    resolved = resolved_since(connection, agent_id, proposals)
    at = datetime.now(UTC)

    sound: list[AppliedProposal] = []
    alterations: list[Alteration[Any]] = []
    refused: dict[UUID, str] = {}
    for proposal in proposals:
        own: list[Alteration[Any]] = []
        try:
            check_unresolved(proposal, resolved)
            for event in events[proposal.id]:
                cause = Cause("operator", "undone", reason, at, proposal_id=proposal.id, undoes=event.id)
                own.append(restoration(connection, agent_id, event, found, cause=cause))
        except Refused as refusal:
            refused[proposal.id] = str(refusal)
            continue
        sound.append(proposal)
        alterations += own
    return sound, alterations, refused


def resolved_since(
    connection: Connection, agent_id: str, proposals: Collection[AppliedProposal]
) -> dict[str, tuple[str, str | None]]:
    """Lock the contradictions that proposals opened; return how those were resolved that are open no more, by id."""
    ids = [each.id for proposal in proposals for each in proposal.by_kind.get("contradiction", [])]
    if not ids:
        return {}
    rows = connection.execute(SQL["lock_contradictions"], {"agent_id": agent_id, "ids": ids}).fetchall()
    return {str(each): (resolution, note) for each, status, resolution, note in rows if status == "resolved"}


def check_unresolved(proposal: AppliedProposal, resolved: dict[str, tuple[str, str | None]]) -> None:
    """Raise `Refused` where somebody has decided about a contradiction that a proposal opened."""
    for each in proposal.by_kind.get("contradiction", []):
        if each.id in resolved:
            resolution, note = resolved[each.id]
            pair = f"{each.set['memory_a']} and {each.set['memory_b']}"
            why = f" ({note})" if note else ""
            raise Refused(f"the contradiction between facts {pair} has been resolved since, as {resolution!r}{why}")


def take_back_usage(connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal]) -> None:
    """Subtract from the counters what proposals added to them."""
    deltas = [
        usage_delta(reads[each.id], each, sign=-1)
        for proposal in proposals
        if "usage" in proposal.by_kind
        for reads in [by_id(Read(**read) for read in proposal.read_set)]
        for each in proposal.by_kind["usage"]
    ]
    add_usage(connection, agent_id, deltas)


def remove_links(connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal]) -> None:
    """Remove the links that proposals made."""
    links = [{"id": each.id, **each.set} for proposal in proposals for each in proposal.by_kind.get("link", [])]
    if links:
        connection.execute(SQL["remove_links"], {"agent_id": agent_id, "links": Jsonb(links)})


def close_contradictions(
    connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal], *, reason: str
) -> None:
    """Say of contradictions that both facts hold, and let the facts say whether another one that is open names them."""
    ids = [each.id for proposal in proposals for each in proposal.by_kind.get("contradiction", [])]
    if not ids:
        return
    closed = {"agent_id": agent_id, "ids": ids, "note": f"taken back: {reason}"}
    connection.execute(SQL["close_contradictions"], closed)
    named = {fact for proposal in proposals for fact in proposal.contradicting}
    mark_anew(connection, agent_id, named, cause=Cause("operator", "marked", reason, datetime.now(UTC)))
