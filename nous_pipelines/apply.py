"""Carries out a checked plan: a short transaction a proposal, every row it read checked, an event for every change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nous_online.changes import Cause, UsageDelta, Version, add_usage, change_memory, locked_memories
from nous_online.database import Database
from nous_online.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.kinds import KINDS
from nous_online.statements import statements
from nous_pipelines.nights import end_of
from nous_pipelines.proposals import Change, Plan, Proposal, Read, vars_of

SQL = statements("nous_pipelines", "apply.sql")
PROPOSAL_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Applied:
    """What became of each proposal of a plan."""

    applied: int = 0
    stale: int = 0
    refused: int = 0
    known: int = 0
    """Decided in an earlier run of the same night; nothing was done again."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a proposal went stale or was refused."""


@dataclass(frozen=True)
class StoredProposal:
    """A proposal that was decided, with the words of what it is about."""

    id: str
    agent_id: str
    kind: str
    targets: list[str]
    reason: str
    evidence: Mapping[str, Any]
    state: str
    texts: Mapping[str, str]


def apply_plan(
    database: Database,
    plan: Plan,
    *,
    run_id: str,
    checks: Sequence[Mapping[str, Any]] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> Applied:
    """Apply a plan that passed its checks; running it again does nothing.

    A proposal one of whose memories changed since it was read is recorded as stale and left alone. Raises `Conflict`
    when another night is at work on one of the agents; nothing was changed then.
    """
    outcomes: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    with holding_night(database, sorted({proposal.agent_id for proposal in plan.proposals})):
        store_plan(database, plan, run_id=run_id, checks=checks)
        for done, proposal in enumerate(plan.proposals, start=1):
            outcome, reason = apply_proposal(database, plan.hash, proposal, run_id=run_id)
            outcomes[outcome] += 1
            if outcome in {"stale", "refused"}:
                reasons[str(proposal.id)] = reason
            if on_progress is not None:
                on_progress(done, len(plan.proposals))
        with database.transaction() as connection:
            connection.execute(SQL["close_plan"], {"hash": plan.hash})
    return Applied(outcomes["applied"], outcomes["stale"], outcomes["refused"], outcomes["known"], reasons)


@contextmanager
def holding_night(database: Database, agent_ids: Sequence[str]) -> Iterator[None]:
    """Keep other nights away from these agents; raise `Conflict` when one is already at work."""
    with ExitStack() as stack:
        connection = stack.enter_context(database.transaction(timeout_s=24 * 3600))
        for agent_id in agent_ids:
            row = connection.execute(SQL["hold_night"], {"agent_id": agent_id}).fetchone()
            if row is None or not row[0]:
                message = (
                    f"another night is being applied for agent {agent_id!r}; wait for it to end and run this one again"
                )
                raise Conflict(message)
        yield


def store_plan(database: Database, plan: Plan, *, run_id: str, checks: Sequence[Mapping[str, Any]]) -> None:
    """Keep the plan's identity, policy and checks beside what it did."""
    row = {
        "hash": plan.hash,
        "night": plan.night,
        "agent_ids": list(plan.agent_ids),
        "policy": Jsonb(dict(plan.policy)),
        "counts": Jsonb(Counter(proposal.kind for proposal in plan.proposals)),
        "checks": Jsonb(list(checks)),
        "run_id": run_id,
    }
    with database.transaction() as connection:
        connection.execute(SQL["store_plan"], row)


def apply_proposal(database: Database, plan_hash: str, proposal: Proposal, *, run_id: str) -> tuple[str, str]:
    """Apply one proposal and return `applied`, `stale`, `refused` or `known`, and why.

    What the database's own rules forbid is recorded as refused, so that it does not stop the others night after night.
    A missing grant is no fault of the proposal: it stops the night, which otherwise would succeed and do nothing.
    """
    try:
        return apply_at_once(database, plan_hash, proposal, run_id=run_id)
    except (Refused, InvalidInput) as error:
        if isinstance(error.__cause__, InsufficientPrivilege):
            raise
        with database.transaction(proposal.agent_id, timeout_s=PROPOSAL_TIMEOUT_S) as connection:
            connection.execute(SQL["store_proposal"], proposal_row(plan_hash, proposal))
            decision = {"agent_id": proposal.agent_id, "id": proposal.id, "state": "refused", "outcome": str(error)}
            connection.execute(SQL["decide_proposal"], decision)
        return "refused", str(error)


def apply_at_once(database: Database, plan_hash: str, proposal: Proposal, *, run_id: str) -> tuple[str, str]:
    """Apply one proposal in one transaction, or leave it stale."""
    key = {"agent_id": proposal.agent_id, "id": proposal.id}
    with database.transaction(proposal.agent_id, timeout_s=PROPOSAL_TIMEOUT_S) as connection:
        connection.execute(SQL["store_proposal"], proposal_row(plan_hash, proposal))
        state = connection.execute(SQL["lock_proposal"], key).fetchone()
        if state is None or state[0] != "proposed":
            return "known", "decided before"
        reason = staleness(proposal.read_set, versions(connection, proposal))
        if reason is None:
            for change in proposal.changes:
                carry_out(connection, proposal, change, run_id=run_id)
        outcome = "applied" if reason is None else "stale"
        connection.execute(SQL["decide_proposal"], {**key, "state": outcome, "outcome": reason})
    return outcome, reason or ""


def versions(connection: Connection, proposal: Proposal) -> dict[str, int]:
    """Lock everything the proposal read and return the versions it has now."""
    found: dict[str, int] = {}
    for name, kind in KINDS.items():
        wanted = [UUID(read.id) for read in proposal.read_set if read.kind == name]
        memories = locked_memories(connection, proposal.agent_id, kind, wanted) if wanted else []
        found |= {str(memory.id): memory.row_version for memory in memories}
    return found


def staleness(read_set: Sequence[Read], found: Mapping[str, int]) -> str | None:
    """Say what a proposal read that is no longer so; None when all of it still is."""
    for read in read_set:
        version = found.get(read.id)
        if version is None:
            return f"{read.kind} {read.id} is gone"
        if version != read.row_version:
            return f"{read.kind} {read.id} changed since it was read (version {read.row_version}, now {version})"
    return None


def carry_out(connection: Connection, proposal: Proposal, change: Change, *, run_id: str) -> None:
    """Make one change of a proposal."""
    read = next(read for read in proposal.read_set if read.id == change.id)
    if change.kind == "usage":
        add_usage(connection, proposal.agent_id, UUID(change.id), read.kind, UsageDelta.of(change.add))
        return
    cause = Cause(
        actor="night",
        action=change.action or "changed",
        reason=proposal.reason,
        effective_at=end_of(proposal.night),
        night=proposal.night,
        run_id=run_id,
        proposal_id=proposal.id,
    )
    change_memory(
        connection,
        proposal.agent_id,
        Version(KINDS[change.kind], UUID(change.id), read.row_version),
        change.set,
        cause=cause,
    )


def proposal_row(plan_hash: str, proposal: Proposal) -> dict[str, Any]:
    """Return the parameters of `store_proposal`."""
    return {
        "id": proposal.id,
        "agent_id": proposal.agent_id,
        "night": proposal.night,
        "plan_hash": plan_hash,
        "kind": proposal.kind,
        "targets": [UUID(target) for target in proposal.targets],
        "read_set": Jsonb([vars_of(read) for read in proposal.read_set]),
        "changes": Jsonb([change.as_dict() for change in proposal.changes]),
        "reason": proposal.reason,
        "evidence": Jsonb(dict(proposal.evidence)),
        "cost_usd": proposal.cost_usd,
    }


def find_agents(database: Database, agent_ids: Sequence[str]) -> list[str]:
    """Return the agents a night is for, all of them when none is named; raise `NotFound` for one nobody knows."""
    with database.transaction() as connection:
        found = [row[0] for row in connection.execute(SQL["find_agents"], {"agent_ids": list(agent_ids)})]
    missing = sorted(set(agent_ids) - set(found))
    if missing:
        raise NotFound(f"agent {missing[0]!r} is not known here; `nous status` lists those that are")
    return found


def earlier_leaving(database: Database, plan: Plan) -> dict[str, list[int]]:
    """Return how many memories each agent lost in its recent nights."""
    with database.transaction() as connection:
        return dict(connection.execute(SQL["earlier_leaving"], {"night": plan.night}).fetchall())


def applied_since(database: Database, night: date, moment: datetime) -> bool:
    """Tell whether a night before this one was applied after a moment."""
    with database.transaction() as connection:
        row = connection.execute(SQL["applied_since"], {"night": night, "moment": moment}).fetchone()
    return row is not None and row[0]


def proposals_of(database: Database, night: date) -> list[StoredProposal]:
    """Return the proposals of a night that were decided, whichever of its runs decided them."""
    with database.transaction() as connection, connection.cursor(row_factory=class_row(StoredProposal)) as cursor:
        return cursor.execute(SQL["proposals_of_night"], {"night": night}).fetchall()
