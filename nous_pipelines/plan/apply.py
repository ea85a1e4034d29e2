"""Carries out a checked plan: in short transactions, every row that was read checked, an event for every change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, TypeVar

import psycopg
from psycopg.errors import DeadlockDetected, InsufficientPrivilege
from psycopg.types.json import Jsonb

from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused, Unavailable
from nous_online.database.connection import Database
from nous_pipelines.failpoints import reach
from nous_pipelines.phases.proposals import Plan, Proposal
from nous_pipelines.plan.apply_chunk import SQL, ProposalOutcome, carry_out, proposal_row

CHUNK_SIZE = 200
"""Proposals applied together: a fifth of a second, for which an agent that changes one of their memories waits."""
CHUNK_TIMEOUT_S = 30.0
ATTEMPTS = 5
MOST_HELD_APART = 1000
"""Agents a night holds by a lock of their own: the lock table of a server with default settings takes 6,400."""
Result = TypeVar("Result")


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


def apply_plan(
    database: Database,
    plan: Plan,
    *,
    run_id: str,
    checks: Sequence[Mapping[str, Any]] = (),
    on_progress: Callable[[int, int], None] | None = None,
    chunk_size: int = CHUNK_SIZE,
) -> Applied:
    """Apply a plan that passed its checks; running it again does nothing.

    Proposals of one agent are applied in chunks, a short transaction each. One that read a memory which changed since
    is recorded as stale and left alone. Raises `Conflict` when another night is at work on one of the agents, and
    `NotFound` when one of them has been erased since; nothing was changed then.
    """
    outcomes: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    agent_ids = sorted({proposal.agent_id for proposal in plan.proposals})
    with holding_night(database, agent_ids):
        if agent_ids:
            find_agents(database, agent_ids)
        reach("night held")
        store_plan(database, plan, run_id=run_id, checks=checks)
        reach("plan stored")
        for chunk in chunks_of(plan.proposals, chunk_size):
            for decided in apply_chunk(database, plan.hash, chunk, run_id=run_id):
                outcomes[decided.state] += 1
                if decided.state in {"stale", "refused"}:
                    reasons[str(decided.proposal.id)] = decided.reason or ""
            reach("chunk committed")
            if on_progress is not None:
                on_progress(outcomes.total(), len(plan.proposals))
        with database.transaction() as connection:
            connection.execute(SQL["close_plan"], {"hash": plan.hash})
        reach("plan closed")
    return Applied(outcomes["applied"], outcomes["stale"], outcomes["refused"], outcomes["known"], reasons)


def chunks_of(proposals: Sequence[Proposal], size: int) -> Iterator[list[Proposal]]:
    """Yield the proposals agent by agent, at most `size` together, each agent's in the order of the plan."""
    by_agent: defaultdict[str, list[Proposal]] = defaultdict(list)
    for proposal in proposals:
        by_agent[proposal.agent_id].append(proposal)
    for own in by_agent.values():
        for start in range(0, len(own), size):
            yield own[start : start + size]


@contextmanager
def holding_night(database: Database, agent_ids: Sequence[str]) -> Iterator[None]:
    """Keep other nights away from these agents; raise `Conflict` when one is already at work.

    The locks are held by a connection of its own and gone with it, whatever happens. Each agent has one of 1,024
    buckets. Up to 1,000 agents are held by a lock each, beside a share of their buckets; more by their whole buckets,
    so that locks never run out. Small nights of different agents thus never meet. A night of more than 1,000 keeps
    away nights of other agents too, and the erasing of one: for as long as it takes to apply it.
    """
    statement = SQL["hold_agents" if len(agent_ids) <= MOST_HELD_APART else "hold_buckets"]
    with database.transaction(timeout_s=24 * 3600) as connection:
        held = connection.execute(statement, {"agent_ids": list(agent_ids)}).fetchone()
        if held is not None:
            agent_id, is_for_all = held
            others = ", or for others of its bucket: this night or that one is for many" if is_for_all else ""
            raise Conflict(
                f"another night is being applied for agent {agent_id!r}{others}; "
                "wait for it to end and run this one again"
            )
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


def apply_chunk(
    database: Database, plan_hash: str, proposals: Sequence[Proposal], *, run_id: str
) -> list[ProposalOutcome]:
    """Apply proposals of one agent in one transaction, and return what became of each.

    What the database's own rules forbid is looked for by halves and recorded as refused, so that it does not stop the
    others night after night. A missing grant is no fault of a proposal: it stops the night, which otherwise would
    succeed and do nothing.
    """

    def attempt() -> list[ProposalOutcome]:
        with database.transaction(proposals[0].agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
            return carry_out(connection, plan_hash, proposals, run_id=run_id)

    try:
        return undeadlocked(attempt)
    except (Refused, InvalidInput) as error:
        if isinstance(error.__cause__, InsufficientPrivilege):
            raise
        if len(proposals) == 1:
            return [refuse(database, plan_hash, proposals[0], forbidden(error))]
    half = len(proposals) // 2
    parts = (proposals[:half], proposals[half:])
    return [each for part in parts for each in apply_chunk(database, plan_hash, part, run_id=run_id)]


def forbidden(error: Refused | InvalidInput) -> str:
    """Return why the database takes no change, with the rule of the schema, which whoever runs nights may know."""
    cause = error.__cause__
    rule = cause.diag.constraint_name if isinstance(cause, psycopg.Error) else None
    return f"{error}; the rule is {rule!r}" if rule else str(error)


def undeadlocked(attempt: Callable[[], Result]) -> Result:
    """Run a transaction, again where the server ended it to free somebody who waited for it in a circle."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except Unavailable as error:
            if number == ATTEMPTS or not isinstance(error.__cause__, DeadlockDetected):
                raise
    raise AssertionError("the last attempt returns or raises")


def refuse(database: Database, plan_hash: str, proposal: Proposal, reason: str) -> ProposalOutcome:
    """Record that a proposal can't be applied, and why."""
    refused = ProposalOutcome(proposal, "refused", reason)
    rows = {"agent_id": proposal.agent_id, "plan_hash": plan_hash, "proposals": Jsonb([proposal_row(refused)])}
    with database.transaction(proposal.agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
        connection.execute(SQL["store_proposals"], rows)
    return refused


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


def costs_of(database: Database, night: date) -> dict[str, float]:
    """Return what language models cost each agent in a night, in US dollars, failed requests included."""
    with database.transaction() as connection:
        return dict(connection.execute(SQL["costs_of_night"], {"night": night}).fetchall())


def applied_since(database: Database, night: date, moment: datetime) -> bool:
    """Tell whether a night before this one was applied after a moment."""
    with database.transaction() as connection:
        row = connection.execute(SQL["applied_since"], {"night": night, "moment": moment}).fetchone()
    return row is not None and row[0]
