"""Carries out a checked plan: in short transactions, every row that was read checked, an event for every change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.errors import DeadlockDetected, InsufficientPrivilege
from psycopg.types.json import Jsonb

from nous_online.core.domain import KINDS
from nous_online.core.errors import Conflict, InvalidInput, Refused, Unavailable
from nous_online.database.changes import (
    Alteration,
    Cause,
    Cooling,
    UsageDelta,
    Version,
    add_usage,
    change_memories,
    lock_versions,
    store_cold_texts,
)
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.memories.contradictions import of_questions, update_contradiction_status
from nous_online.memories.status import unknown_agent
from nous_pipelines.failpoints import reach
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.proposals import Change, Plan, Proposal, Read
from nous_pipelines.plan.inheriting import inherit_words

SQL = statements("nous_pipelines.plan", "apply.sql")
OF_A_MEMORY = {*KINDS, "usage", "cold_text"}
"""Kinds of changes whose id is that of a memory, which must be in the read set."""
CHUNK_SIZE = 200
"""Proposals in one transaction: 0.2 s, for which an agent that writes to one of their memories has to wait."""
CHUNK_TIMEOUT_S = 30.0
ATTEMPTS = 5
MOST_HELD_APART = 1000
"""Agents a night locks one by one, with two locks each: a server with default settings has room for 6,400 locks."""
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
    """Apply a plan that passed its checks; applying it again changes nothing.

    The proposals of an agent are applied in chunks, each in a short transaction. One that read a memory that has
    changed since is recorded as stale. Raises `Conflict` when another night holds one of the agents, and `NotFound`
    when one of them has been erased; nothing was changed then.
    """
    outcomes: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    agent_ids = sorted({proposal.agent_id for proposal in plan.proposals})
    with night_locks(database, agent_ids):
        if agent_ids:  # none would mean all of them
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
        mark_settled(database, plan, agent_ids, run_id=run_id)
        reach("facts marked")
        pass_words_on(database, plan, run_id=run_id)
        reach("words passed on")
        with database.transaction() as connection:
            connection.execute(SQL["close_plan"], {"hash": plan.hash})
        reach("plan closed")
    return Applied(outcomes["applied"], outcomes["stale"], outcomes["refused"], outcomes["known"], reasons)


def mark_settled(database: Database, plan: Plan, agent_ids: Sequence[str], *, run_id: str) -> None:
    """Update the contradiction status of the facts whose contradiction was settled, as one side gave way.

    A mark only says what contradictions and facts say by themselves, so it has no proposal of its own: whatever takes
    one of these back sets it again. After all chunks: it changes facts that other proposals of the plan may have read.
    Raises `Unavailable` where the rows of an agent stay locked, once all others are marked.
    """
    refused: list[Unavailable] = []
    with database.transaction() as connection:
        settled = connection.execute(of_questions(SQL["settled_sides"]), {"agent_ids": list(agent_ids)}).fetchall()
    why, at = "a side of its contradiction gave way", end_of(plan.night)
    cause = Cause("operator", "marked", why, effective_at=at, night=plan.night, run_id=run_id)
    for agent_id, sides in settled:
        try:
            with database.transaction(agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
                update_contradiction_status(connection, agent_id, sides, cause=cause)
        except Unavailable as error:
            refused.append(error)
    if refused:
        raise refused[0]


def pass_words_on(database: Database, plan: Plan, *, run_id: str) -> None:
    """Have what took a fact's place found by that fact's words too.

    After all chunks, as `mark_settled`; the change is of the proposal that superseded, and taken back with it. Raises
    `Unavailable` where the rows of an agent stay locked, once all others are changed.
    """
    refused: list[Unavailable] = []
    why, at = "found by what was said in its place before", end_of(plan.night)
    cause = Cause("night", "changed", why, effective_at=at, night=plan.night, run_id=run_id)
    for chunk in chunks_of([each for each in plan.proposals if each.kind == "supersede"], CHUNK_SIZE):
        agent_id, ids = chunk[0].agent_id, [proposal.id for proposal in chunk]

        def attempt(agent_id: str = agent_id, ids: Sequence[UUID] = ids) -> None:
            with database.transaction(agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
                inherit_words(connection, agent_id, ids, cause=cause)

        try:
            retry_on_deadlock(attempt)
        except Unavailable as error:
            refused.append(error)
    if refused:
        raise refused[0]


def chunks_of(proposals: Sequence[Proposal], size: int) -> Iterator[list[Proposal]]:
    """Yield chunks of at most `size` proposals of one agent, in the order of the plan."""
    by_agent: defaultdict[str, list[Proposal]] = defaultdict(list)
    for proposal in proposals:
        by_agent[proposal.agent_id].append(proposal)
    for own in by_agent.values():
        for start in range(0, len(own), size):
            yield own[start : start + size]


@contextmanager
def night_locks(database: Database, agent_ids: Sequence[str]) -> Iterator[None]:
    """Hold locks that keep other nights away from these agents; raise `Conflict` when another night has one of them.

    Advisory locks on a connection of their own, released with it even if this process is killed. Each agent belongs to
    one of 1,024 buckets. Up to 1,000 agents are locked exclusively, with a shared lock on their buckets; more by
    exclusive locks on their buckets, so that the lock table never overflows. Small nights of different agents thus
    never block each other; a night of more than 1,000 agents also blocks nights, and erasing, of others.
    """
    # A lock for each of 20,000 agents exhausted the lock table of the server.
    statement = SQL["hold_agents" if len(agent_ids) <= MOST_HELD_APART else "hold_buckets"]
    with database.transaction(timeout_s=24 * 3600) as connection:  # open, and idle, until everything is applied
        held = connection.execute(statement, {"agent_ids": list(agent_ids)}).fetchone()
        if held is not None:
            agent_id, is_for_all = held
            others = ", or for others of its bucket: this night or that one is for many" if is_for_all else ""
            raise Conflict(
                f"another night is being applied for agent {agent_id!r}{others}; "
                "wait for it to end and run this one again"
            )
        connection.execute(SQL["hold_no_snapshot"])
        yield


def store_plan(database: Database, plan: Plan, *, run_id: str, checks: Sequence[Mapping[str, Any]]) -> None:
    """Store the plan's hash, policy, counts and checks in `lifecycle.plans`."""
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
    """Apply proposals of one agent in one transaction, and return the outcome of each.

    A proposal that violates a constraint is found by bisection and recorded as refused; otherwise it would fail its
    whole chunk night after night. A missing grant is raised: the night would refuse everything and report success.
    """

    def attempt() -> list[ProposalOutcome]:
        with database.transaction(proposals[0].agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
            return carry_out(connection, plan_hash, proposals, run_id=run_id)

    try:
        return retry_on_deadlock(attempt)
    except (Refused, InvalidInput) as error:
        if isinstance(error.__cause__, InsufficientPrivilege):
            raise
        if len(proposals) == 1:
            return [refuse(database, plan_hash, proposals[0], violated_rule(error))]
    half = len(proposals) // 2
    parts = (proposals[:half], proposals[half:])
    return [each for part in parts for each in apply_chunk(database, plan_hash, part, run_id=run_id)]


def violated_rule(error: Refused | InvalidInput) -> str:
    """Return the message of a refused change with the name of the violated constraint."""
    cause = error.__cause__
    rule = cause.diag.constraint_name if isinstance(cause, psycopg.Error) else None
    return f"{error}; the rule is {rule!r}" if rule else str(error)


def retry_on_deadlock(attempt: Callable[[], Result]) -> Result:
    """Run a transaction, again (up to `ATTEMPTS` times) if the server ended it because of a deadlock."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except Unavailable as error:
            if number == ATTEMPTS or not isinstance(error.__cause__, DeadlockDetected):
                raise
    raise AssertionError("the last attempt returns or raises")


def refuse(database: Database, plan_hash: str, proposal: Proposal, reason: str) -> ProposalOutcome:
    """Record a proposal as refused, in a transaction of its own."""
    refused = ProposalOutcome(proposal, "refused", reason)
    rows = {"agent_id": proposal.agent_id, "plan_hash": plan_hash, "proposals": Jsonb([proposal_row(refused)])}
    with database.transaction(proposal.agent_id, timeout_s=CHUNK_TIMEOUT_S) as connection:
        connection.execute(SQL["store_proposals"], rows)
    return refused


def find_agents(database: Database, agent_ids: Sequence[str]) -> list[str]:
    """Return the ids of these agents, of all agents when none is given; raise `NotFound` for an unknown one."""
    with database.transaction() as connection:
        found = [row[0] for row in connection.execute(SQL["find_agents"], {"agent_ids": list(agent_ids)})]
    missing = sorted(set(agent_ids) - set(found))
    if missing:
        raise unknown_agent(database.url, missing[0])
    return found


def own_policy(database: Database, agent_id: str) -> dict[str, Any]:
    """Return the policy fields set for an agent; raise `NotFound` for an unknown agent."""
    find_agents(database, [agent_id])
    with database.transaction() as connection:
        return stored_policy(connection, agent_id)


def set_policy(database: Database, agent_id: str, values: Mapping[str, float], *, is_reset: bool) -> dict[str, Any]:
    """Set fields of an agent's policy, or with `is_reset` replace all of them, and return those set now.

    They take effect with the next snapshot; a night with a snapshot keeps its policy. Raises `InvalidInput` for values
    that are invalid together, and `NotFound` for an unknown agent; nothing was changed then.
    """
    find_agents(database, [agent_id])
    with database.transaction() as connection:
        known = {} if is_reset else stored_policy(connection, agent_id)
        whole = NightPolicy().overridden({**known, **values})
        own = {name: getattr(whole, name) for name in {**known, **values}}
        connection.execute(SQL["store_policy"], {"agent_id": agent_id, "policy": Jsonb(own)})
    return own


def stored_policy(connection: Connection, agent_id: str) -> dict[str, Any]:
    """Return the stored policy fields of an agent."""
    row = connection.execute(SQL["read_policy"], {"agent_id": agent_id}).fetchone()
    return row[0] if row else {}


def earlier_leaving(database: Database, plan: Plan) -> dict[str, list[int]]:
    """Return how many memories each agent lost in each of its last 14 nights."""
    with database.transaction() as connection:
        return dict(connection.execute(SQL["earlier_leaving"], {"night": plan.night}).fetchall())


def costs_of(database: Database, night: date) -> dict[str, float]:
    """Return what language models cost each agent in a night, in US dollars, failed requests included."""
    with database.transaction() as connection:
        return dict(connection.execute(SQL["costs_of_night"], {"night": night}).fetchall())


def is_applied(database: Database, plan_hash: str) -> bool:
    """Return whether a plan was applied to this database, up to its last proposal."""
    with database.transaction() as connection:
        row = connection.execute(SQL["is_applied"], {"hash": plan_hash}).fetchone()
    return row is not None and row[0]


def applied_since(database: Database, night: date, moment: datetime) -> bool:
    """Return whether an earlier night was applied after a moment."""
    with database.transaction() as connection:
        row = connection.execute(SQL["applied_since"], {"night": night, "moment": moment}).fetchone()
    return row is not None and row[0]


# --- the proposals of one agent in one transaction: decided on locked rows, then applied together ---


@dataclass(frozen=True)
class ProposalOutcome:
    """The state of one proposal after apply, and the reason if it was not applied."""

    proposal: Proposal
    state: str
    reason: str | None = None


def carry_out(
    connection: Connection, plan_hash: str, proposals: Sequence[Proposal], *, run_id: str
) -> list[ProposalOutcome]:
    """Decide about proposals of one agent and make the changes of the valid ones, in the caller's transaction.

    Raises `Refused` when a contradiction or link to add exists already; the caller must roll back then.
    """
    agent_id = proposals[0].agent_id
    key = {"agent_id": agent_id, "ids": [proposal.id for proposal in proposals]}
    connection.execute(SQL["plan_once"])
    states = dict(connection.execute(SQL["lock_proposals"], key).fetchall())
    known = [proposal for proposal in proposals if states.get(proposal.id, "proposed") != "proposed"]
    fresh = [proposal for proposal in proposals if states.get(proposal.id, "proposed") == "proposed"]
    decided = decide(fresh, lock_read_versions(connection, agent_id, fresh))
    reach("proposals decided")
    rows = Jsonb([proposal_row(each) for each in decided])
    connection.execute(SQL["store_proposals"], {"agent_id": agent_id, "plan_hash": plan_hash, "proposals": rows})
    reach("proposals stored")
    make_changes(connection, agent_id, [each.proposal for each in decided if each.state == "applied"], run_id=run_id)
    return [*decided, *(ProposalOutcome(proposal, "known") for proposal in known)]


def lock_read_versions(connection: Connection, agent_id: str, proposals: Sequence[Proposal]) -> dict[str, int]:
    """Lock every memory the proposals read, and return their current versions by id."""
    wanted: defaultdict[str, set[UUID]] = defaultdict(set)
    for proposal in proposals:
        for read in proposal.read_set:
            wanted[read.kind].add(UUID(read.id))
    found: dict[str, int] = {}
    for name, kind in KINDS.items():
        if wanted[name]:
            locked = lock_versions(connection, agent_id, kind, wanted[name])
            found |= {str(memory_id): version for memory_id, version in locked.items()}
    return found


def decide(proposals: Iterable[Proposal], found: Mapping[str, int]) -> list[ProposalOutcome]:
    """Return the outcome of each proposal, given the current version of each memory they read (`found`).

    In order: a proposal that read what an earlier one changes is stale, as if that had been committed before.
    """
    now = dict(found)
    decided: list[ProposalOutcome] = []
    for proposal in proposals:
        wrong, late = invalid_reason(proposal), staleness(proposal.read_set, now)
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


def invalid_reason(proposal: Proposal) -> str | None:
    """Return why a proposal is invalid whatever the store holds, None if it is valid."""
    read = {each.id for each in proposal.read_set}
    for each in proposal.changes:
        if each.kind in OF_A_MEMORY and each.id not in read:
            return f"it changes {each.kind} {each.id}, which it did not read"
    times = Counter(each.id for each in proposal.changes if each.kind in KINDS)
    twice = [memory for memory, count in times.items() if count > 1]
    return f"it changes memory {twice[0]} twice; one change can set all columns" if twice else None


def staleness(read_set: Sequence[Read], found: Mapping[str, int]) -> str | None:
    """Return which memory changed since a proposal read it, None if none did."""
    for read in read_set:
        version = found.get(read.id)
        if version is None:
            return f"{read.kind} {read.id} is gone"
        if version != read.row_version:
            return f"{read.kind} {read.id} changed since it was read (version {read.row_version}, now {version})"
    return None


def make_changes(connection: Connection, agent_id: str, proposals: Sequence[Proposal], *, run_id: str) -> None:
    """Make every change of these proposals, in batches by kind.

    Texts go to cold storage first, since changing the episode clears them.
    """
    every: defaultdict[str, list[tuple[Proposal, Change]]] = defaultdict(list)
    for proposal in proposals:
        for each in proposal.changes:
            every["memory" if each.kind in KINDS else each.kind].append((proposal, each))
    reads = {proposal.id: by_id(proposal.read_set) for proposal in proposals}
    coolings = [
        Cooling(UUID(each.id), each.set["tier"], tuple(each.set["columns"]), each.set.get("purge_after"))
        for _, each in every["cold_text"]
    ]
    store_cold_texts(connection, agent_id, coolings)
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
    """Return a read set by id."""
    return {read.id: read for read in read_set}


def alteration(
    proposal: Proposal, change: Change, read: Read, cold: Mapping[UUID, Cooling], *, run_id: str
) -> Alteration[Any]:
    """Return a change of a memory at the version the proposal read, with its cause for the event."""
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
    """Return what a change adds to the counters of a memory, subtracts with `sign=-1`."""
    retrieved, cited, ignored = (
        sign * change.add.get(f"{name}_count", 0) for name in ("retrieved", "cited", "ignored")
    )
    return UsageDelta(UUID(change.id), read.kind, retrieved, cited, ignored)


def open_contradictions(connection: Connection, agent_id: str, changes: Sequence[Change]) -> None:
    """Insert contradictions between facts; raise `Refused` if one exists already."""
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
    """Insert links dated at the end of the night; raise `Refused` if one exists already."""
    if not changes:
        return
    rows = [{"id": each.id, **each.set, "created_at": end_of(p.night).isoformat()} for p, each in changes]
    parameters = {"agent_id": agent_id, "links": Jsonb(rows)}
    new = {(str(row[0]), str(row[1]), row[2]) for row in connection.execute(SQL["add_links"], parameters)}
    for _, each in changes:
        if (each.id, each.set["to_id"], each.set["kind"]) not in new:
            raise Refused(f"a link {each.set['kind']!r} from {each.id} to {each.set['to_id']} is there already")


def proposal_row(decided: ProposalOutcome) -> dict[str, Any]:
    """Return the row of a proposal in `lifecycle.proposals` as JSON, with its outcome."""
    row = {**decided.proposal.as_dict(), "evidence": dict(decided.proposal.evidence)}
    return {**row, "id": str(decided.proposal.id), "state": decided.state, "outcome": decided.reason}
