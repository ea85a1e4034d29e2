"""What becomes of the proposals of one agent in one transaction: decided on locked rows, then carried out together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.errors import Refused
from nous_online.core.kinds import KINDS
from nous_online.database.changes import (
    Alteration,
    Cause,
    Cooling,
    UsageDelta,
    Version,
    add_usage,
    change_memories,
    cool_texts,
    locked_versions,
)
from nous_online.database.statements import statements
from nous_pipelines.failpoints import reach
from nous_pipelines.nights import end_of
from nous_pipelines.phases.proposals import Change, Proposal, Read, vars_of

SQL = statements("nous_pipelines.plan", "apply.sql")
OF_A_MEMORY = {*KINDS, "usage", "cold_text"}
"""Changes whose id is that of a memory, which must be in the read set."""


@dataclass(frozen=True)
class ProposalOutcome:
    """What became of one proposal, and why if it was not applied."""

    proposal: Proposal
    state: str
    reason: str | None = None


def carry_out(
    connection: Connection, plan_hash: str, proposals: Sequence[Proposal], *, run_id: str
) -> list[ProposalOutcome]:
    """Decide about proposals of one agent and make the changes of the sound ones, in the caller's transaction.

    Raises `Refused` when something that a proposal adds is there already; nothing may be committed then.
    """
    agent_id = proposals[0].agent_id
    key = {"agent_id": agent_id, "ids": [proposal.id for proposal in proposals]}
    states = dict(connection.execute(SQL["lock_proposals"], key).fetchall())
    known = [proposal for proposal in proposals if states.get(proposal.id, "proposed") != "proposed"]
    fresh = [proposal for proposal in proposals if states.get(proposal.id, "proposed") == "proposed"]
    decided = decide(fresh, versions(connection, agent_id, fresh))
    reach("proposals decided")
    rows = Jsonb([proposal_row(each) for each in decided])
    connection.execute(SQL["store_proposals"], {"agent_id": agent_id, "plan_hash": plan_hash, "proposals": rows})
    reach("proposals stored")
    change(connection, agent_id, [each.proposal for each in decided if each.state == "applied"], run_id=run_id)
    return [*decided, *(ProposalOutcome(proposal, "known") for proposal in known)]


def versions(connection: Connection, agent_id: str, proposals: Sequence[Proposal]) -> dict[str, int]:
    """Lock everything the proposals read and return the versions it has now."""
    wanted: defaultdict[str, set[UUID]] = defaultdict(set)
    for proposal in proposals:
        for read in proposal.read_set:
            wanted[read.kind].add(UUID(read.id))
    found: dict[str, int] = {}
    for name, kind in KINDS.items():
        if wanted[name]:
            locked = locked_versions(connection, agent_id, kind, wanted[name])
            found |= {str(memory_id): version for memory_id, version in locked.items()}
    return found


def decide(proposals: Iterable[Proposal], found: Mapping[str, int]) -> list[ProposalOutcome]:
    """Return what becomes of each proposal, given the versions that everything they read has now.

    They are decided in order: one that read what an earlier one changes is stale, as if that had been committed.
    """
    now = dict(found)
    decided: list[ProposalOutcome] = []
    for proposal in proposals:
        wrong, late = fault(proposal), staleness(proposal.read_set, now)
        if wrong is not None:
            decided.append(ProposalOutcome(proposal, "refused", wrong))
        elif late is not None:
            decided.append(ProposalOutcome(proposal, "stale", late))
        else:
            decided.append(ProposalOutcome(proposal, "applied"))
            for each in proposal.changes:
                if each.kind in KINDS:
                    now[each.id] += 1
    return decided


def fault(proposal: Proposal) -> str | None:
    """Say why a proposal can't be carried out whatever the store holds; None when it can."""
    read = {each.id for each in proposal.read_set}
    for each in proposal.changes:
        if each.kind in OF_A_MEMORY and each.id not in read:
            return f"it changes {each.kind} {each.id}, which it did not read"
    times = Counter(each.id for each in proposal.changes if each.kind in KINDS)
    twice = [memory for memory, count in times.items() if count > 1]
    return f"it changes memory {twice[0]} twice; one change can set all columns" if twice else None


def staleness(read_set: Sequence[Read], found: Mapping[str, int]) -> str | None:
    """Say what a proposal read that is no longer so; None when all of it still is."""
    for read in read_set:
        version = found.get(read.id)
        if version is None:
            return f"{read.kind} {read.id} is gone"
        if version != read.row_version:
            return f"{read.kind} {read.id} changed since it was read (version {read.row_version}, now {version})"
    return None


def change(connection: Connection, agent_id: str, proposals: Sequence[Proposal], *, run_id: str) -> None:
    """Make every change of these proposals: first the texts that leave, as they still read, then the rows."""
    every: defaultdict[str, list[tuple[Proposal, Change]]] = defaultdict(list)
    for proposal in proposals:
        for each in proposal.changes:
            every["memory" if each.kind in KINDS else each.kind].append((proposal, each))
    reads = {proposal.id: by_id(proposal.read_set) for proposal in proposals}
    coolings = [cooling_of(each) for _, each in every["cold_text"]]
    cool_texts(connection, agent_id, coolings)
    reach("texts cooled")
    cold = {cooling.id: cooling for cooling in coolings}
    altered = [alteration(p, each, reads[p.id][each.id], cold, run_id=run_id) for p, each in every["memory"]]
    change_memories(connection, agent_id, altered)
    reach("memories changed")
    add_usage(connection, agent_id, [usage_delta(reads[p.id][each.id], each) for p, each in every["usage"]])
    reach("usage added")
    open_contradictions(connection, agent_id, [each for _, each in every["contradiction"]])
    reach("contradictions opened")
    add_links(connection, agent_id, every["link"])
    reach("links added")


def by_id(read_set: Iterable[Read]) -> dict[str, Read]:
    """Return what a proposal read by the id of the memory."""
    return {read.id: read for read in read_set}


def cooling_of(change: Change) -> Cooling:
    """Return which texts a change moves to cold storage."""
    return Cooling(UUID(change.id), change.set["tier"], tuple(change.set["columns"]), change.set.get("purge_after"))


def alteration(
    proposal: Proposal, change: Change, read: Read, cold: Mapping[UUID, Cooling], *, run_id: str
) -> Alteration[Any]:
    """Return what a change sets of a memory, at the version the proposal read."""
    memory_id = UUID(change.id)
    cause = Cause(
        actor="night",
        action=change.action or "changed",
        reason=proposal.reason,
        effective_at=end_of(proposal.night),
        night=proposal.night,
        run_id=run_id,
        proposal_id=proposal.id,
    )
    version = Version(KINDS[change.kind], memory_id, read.row_version)
    return Alteration(version, change.set, cause, cold.get(memory_id))


def usage_delta(read: Read, change: Change, *, sign: int = 1) -> UsageDelta:
    """Return what a change adds to the counters of a memory, or with `sign=-1` takes from them."""
    retrieved, cited, ignored = (
        sign * change.add.get(f"{name}_count", 0) for name in ("retrieved", "cited", "ignored")
    )
    return UsageDelta(UUID(change.id), read.kind, retrieved, cited, ignored)


def open_contradictions(connection: Connection, agent_id: str, changes: Sequence[Change]) -> None:
    """Record that facts contradict each other; raise `Refused` where that is known already."""
    if not changes:
        return
    rows = Jsonb([{"id": each.id, **each.set} for each in changes])
    parameters = {"agent_id": agent_id, "contradictions": rows}
    new = {str(row[0]) for row in connection.execute(SQL["open_contradictions"], parameters)}
    for each in changes:
        if each.id not in new:
            pair = f"{each.set['memory_a']} and {each.set['memory_b']}"
            raise Refused(f"the contradiction between facts {pair} is on record already, open or resolved")


def add_links(connection: Connection, agent_id: str, changes: Sequence[tuple[Proposal, Change]]) -> None:
    """Link memories as of the end of the night; raise `Refused` where the same link is there already."""
    if not changes:
        return
    rows = [{"id": each.id, **each.set, "created_at": end_of(p.night).isoformat()} for p, each in changes]
    parameters = {"agent_id": agent_id, "links": Jsonb(rows)}
    new = {(str(row[0]), str(row[1]), row[2]) for row in connection.execute(SQL["add_links"], parameters)}
    for _, each in changes:
        if (each.id, each.set["to_id"], each.set["kind"]) not in new:
            raise Refused(f"a link {each.set['kind']!r} from {each.id} to {each.set['to_id']} is there already")


def proposal_row(decided: ProposalOutcome) -> dict[str, Any]:
    """Return the row of a proposal as JSON, with what was decided."""
    proposal = decided.proposal
    return {
        "id": str(proposal.id),
        "night": proposal.night.isoformat(),
        "kind": proposal.kind,
        "targets": list(proposal.targets),
        "read_set": [vars_of(read) for read in proposal.read_set],
        "changes": [each.as_dict() for each in proposal.changes],
        "reason": proposal.reason,
        "evidence": dict(proposal.evidence),
        "cost_usd": proposal.cost_usd,
        "state": decided.state,
        "outcome": decided.reason,
    }
