"""A night and the agents it works for write the same memories at the same time, and nobody loses anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from examples import examples

from nous_online.core.domain import FACT
from nous_online.core.errors import Conflict, Refused
from nous_online.database.changes import Cause, Version, change_memory, lock_memories, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.phases.proposals import Change, Plan, Proposal, Read
from nous_pipelines.plan.apply import Applied, apply_plan
from nous_pipelines.plan.planning import planned

RACES = examples(400)
"""How many proposals meet an online writer; 10,000 take some minutes."""
NIGHT = date(2026, 6, 1)
ENDS = "2026-06-02T00:00:00+00:00"
NOON = datetime(2026, 6, 2, 12, tzinfo=UTC)
WRITERS = 3


@dataclass(frozen=True)
class Pair:
    """Two facts a night and an agent both want to change."""

    place: int
    one: str
    other: str


@pytest.fixture
def pairs(heart: Heart, owner: psycopg.Connection) -> list[Pair]:
    """Facts of aria, two for each race, stored in bulk as an import would."""
    heart.learn("the first thing")
    owner.execute("set session_replication_role = replica")
    owner.execute(
        """insert into heart.facts (agent_id, content, learned_at)
           select 'aria', 'fact ' || n, '2026-05-01' from generate_series(1, %s) n""",
        [2 * RACES],
    )
    owner.execute(
        """insert into lifecycle.events (agent_id, memory_kind, memory_id, action, from_state, to_state, version_before,
                                         version_after, actor, reason, effective_at)
           select 'aria', 'fact', id, 'learned', 'new', state, 0, 1, 'import', 'drawn', learned_at
           from heart.facts where content like 'fact %'"""
    )
    owner.execute("set session_replication_role = origin")
    rows = owner.execute("select id::text from heart.facts where content like 'fact %' order by md5(id::text)")
    ids = [row[0] for row in rows.fetchall()]
    return [Pair(place, ids[2 * place], ids[2 * place + 1]) for place in range(RACES)]


def proposal(kind: str, reads: Sequence[str], *changes: Change) -> Proposal:
    return Proposal(
        night=NIGHT, agent_id="aria", kind=kind, targets=tuple(reads), changes=changes, reason="drawn", evidence={},
        read_set=tuple(Read("fact", memory, 1) for memory in reads),
    )  # fmt: skip


def retired(gone: str, heir: str) -> Change:
    return Change(
        "fact",
        gone,
        set={"state": "superseded", "superseded_by": heir, "superseded_at": ENDS, "succession": "merged"},
        action="merged",
    )


def nightly(pair: Pair) -> Proposal:
    """Return what the night wants of a pair: merge it, rank one of it, or archive one of it."""
    kept = Change("fact", pair.one, set={"confirmation_count": 1}, action="absorbed")
    ways: tuple[Callable[[], Proposal], ...] = (
        lambda: proposal("merge", (pair.one, pair.other), kept, retired(pair.other, pair.one)),
        lambda: proposal("supersede", (pair.other, pair.one), retired(pair.one, pair.other)),
        lambda: proposal("promote", (pair.one,), Change("fact", pair.one, set={"rank_weight": 1.25})),
        lambda: proposal(
            "archive", (pair.other,),
            Change("fact", pair.other, set={"state": "archived", "archived_at": ENDS}, action="archived"),
        ),
    )  # fmt: skip
    return ways[pair.place % len(ways)]()


def plan_for(proposals: Sequence[Proposal]) -> Plan:
    return planned(NIGHT, proposals, agent_ids=[], policy={})


def online(database: Database, pair: Pair) -> str:
    """Change one fact of a pair as an agent's verb does: read and lock it, decide, write. Return which one."""
    memory = pair.one if pair.place % 3 else pair.other
    cause = Cause("agent", "corrected", "the agent said so", NOON)
    with database.transaction("aria") as connection:
        (fact,) = lock_memories(connection, "aria", FACT, [UUID(memory)])
        change_memory(connection, "aria", version_of(FACT, fact), {"category": f"said {pair.place}"}, cause=cause)
    return memory


def both_at_once(night_database: Database, plan: Plan, writes: Sequence[Callable[[], object]]) -> Applied:
    """Apply a plan while other threads write, each its part in turn."""
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(lambda part=part: [write() for write in part]) for part in parts(writes)]
        applied = apply_plan(night_database, plan, run_id="r1", chunk_size=20)
        for part in running:
            part.result()
    return applied


def parts(writes: Sequence[Callable[[], object]]) -> list[Sequence[Callable[[], object]]]:
    return [writes[start::WRITERS] for start in range(WRITERS)]


def lost(owner: psycopg.Connection) -> list[object]:
    """Return the facts that nobody finds any more: superseded, and no heir at the end of the chain is left."""
    return owner.execute(
        """with recursive chain as (
               select id, id as heir, state, superseded_by, 0 as length from heart.facts
               union all
               select c.id, f.id, f.state, f.superseded_by, length + 1
               from chain c join heart.facts f on f.id = c.superseded_by
               where c.state = 'superseded' and length < 100
           )
           select id from heart.facts
           except select id from chain where state in ('active', 'archived')"""
    ).fetchall()


def unevented(owner: psycopg.Connection) -> list[object]:
    """Return the facts of which some version has no event, or whose events end elsewhere."""
    return owner.execute(
        """select f.id from heart.facts f
           join lateral (select count(*) as count, max(version_after) as last,
                                (array_agg(to_state order by version_after desc))[1] as state
                         from lifecycle.events e where e.memory_id = f.id) e on true
           where (e.count, e.last, e.state) is distinct from (f.row_version, f.row_version, f.state)"""
    ).fetchall()


def test_no_write_of_an_agent_is_lost_to_a_night_nor_any_memory(night_database, database, pairs, owner):
    plan = plan_for([nightly(pair) for pair in pairs])
    order = sorted(pairs, key=lambda pair: (pair.place // 200, pair.one))
    written: dict[str, str] = {}

    def write(pair: Pair) -> None:
        written[online(database, pair)] = f"said {pair.place}"

    outcome = both_at_once(night_database, plan, [lambda pair=pair: write(pair) for pair in order])

    assert outcome.applied + outcome.stale == len(plan.proposals) == RACES
    assert outcome.refused == 0
    assert len(written) == RACES
    assert 0 < outcome.stale < RACES
    found = dict(owner.execute("select id::text, category from heart.facts where category is not null").fetchall())
    assert found == written
    assert (lost(owner), unevented(owner)) == ([], [])


def test_a_proposal_whose_memory_an_agent_changed_first_changes_nothing(night_database, database, pairs, owner):
    plan = plan_for([nightly(pair) for pair in pairs])
    touched = {online(database, pair) for pair in pairs[::3]}

    outcome = apply_plan(night_database, plan, run_id="r1")

    expected = {str(each.id) for each in plan.proposals if touched & {read.id for read in each.read_set}}
    assert set(outcome.reasons) == expected
    assert outcome.stale == len(expected) > 0
    versions = dict(owner.execute("select id::text, row_version from heart.facts").fetchall())
    assert {versions[memory] for memory in touched} == {2}
    assert (lost(owner), unevented(owner)) == ([], [])


def test_a_night_and_an_agent_that_supersede_each_others_choice_keep_one_of_both(heart, night_database, pairs, owner):
    for pair in pairs:
        owner.execute(
            """insert into heart.contradictions (id, agent_id, memory_a, memory_b) values (%s, 'aria', %s, %s)""",
            [uuid4(), *sorted((pair.one, pair.other))],
        )
    rows = owner.execute("select id, memory_a::text, memory_b::text from heart.contradictions").fetchall()
    plan = plan_for([proposal("supersede", (b, a), retired(a, b)) for _, a, b in rows])
    refused: list[UUID] = []

    def settle(contradiction: UUID) -> None:
        try:
            heart.resolve_contradiction(contradiction, "a_wins", at=NOON)
        except (Conflict, Refused):
            refused.append(contradiction)

    outcome = both_at_once(night_database, plan, [lambda row=row: settle(row[0]) for row in rows])

    active = dict(owner.execute("select id::text, state = 'active' from heart.facts").fetchall())
    assert [pair for pair in pairs if active[pair.one] + active[pair.other] != 1] == []
    assert outcome.applied == len(refused)
    assert outcome.applied + outcome.stale == RACES
    assert (lost(owner), unevented(owner)) == ([], [])


def test_a_night_that_is_ended_to_free_an_agent_tries_again(night_database, pairs, owner):
    first, last = sorted((pairs[0].one, pairs[0].other))
    plan = plan_for([proposal("archive", (first, last), Change("fact", last, set={"category": "night"}))])
    with ThreadPoolExecutor(1) as pool:
        with owner.transaction():
            owner.execute("set local deadlock_timeout = '60s'")  # so that it is the night that gives way
            owner.execute("select from heart.facts where id = %s for update", [last])
            applying = pool.submit(apply_plan, night_database, plan, run_id="r1")
            wait_for_a_waiter(owner)
            owner.execute("select from heart.facts where id = %s for update", [first])
        outcome = applying.result()

    assert outcome == Applied(applied=1)


def wait_for_a_waiter(owner: psycopg.Connection) -> None:
    query = "select count(*) from pg_locks where not granted and locktype = 'transactionid'"
    ends_at = time.monotonic() + 60
    while owner.execute(query).fetchone() == (0,):
        assert time.monotonic() < ends_at, query
        time.sleep(0.01)


def test_memories_at_an_older_version_than_was_read_are_never_changed(night_database, pairs):
    gone = Version(FACT, UUID(pairs[0].one), 9)
    cause = Cause("operator", "changed", "a test", NOON)

    with pytest.raises(Conflict, match="no longer at version 9"), night_database.transaction("aria") as connection:
        change_memory(connection, "aria", gone, {"category": "x"}, cause=cause)
