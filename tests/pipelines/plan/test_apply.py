from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from night_runs import NIGHT, events_in, facts_in, plan_of, proposals_in, remember, usage_in

from nous_online.core.domain import FACT
from nous_online.core.errors import Conflict, NousError, Unavailable
from nous_online.database.changes import Cause, Version, change_memory
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.nights import end_of
from nous_pipelines.phases.proposals import Change, Plan, Proposal, Read
from nous_pipelines.plan.apply import Applied, apply_plan, find_agents
from nous_pipelines.plan.planning import planned

COPIES = ("the office opens at nine", "cats like fish", "rain falls down") * 2
APPLY = """
import json, os, signal, sys
from nous_online.database.connection import Database
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.phases.proposals import PLAN

url, last = sys.argv[1], int(sys.argv[2])

def progress(done, total):
    if done == last:
        os.kill(os.getpid(), signal.SIGKILL)

plan = PLAN.validate_python(json.load(sys.stdin))
apply_plan(Database(url, role="nous_night"), plan, run_id="killed", on_progress=progress, chunk_size=int(sys.argv[3]))
"""


@dataclass(frozen=True)
class Undisturbed:
    """A plan of three merges of word-for-word copies, and what it leaves behind when nothing disturbs it."""

    plan: Plan
    facts: dict[str, Any]
    left: tuple[Any, ...]


@pytest.fixture(scope="module")
def undisturbed_night(server, admin, template, tmp_path_factory):
    name = f"undisturbed_{uuid.uuid4().hex[:12]}"
    admin.execute(f"create database {name} template {template}")
    app, database = Database(server.dsn(name)), Database(server.dsn(name), role="nous_night")
    remember(Heart.open("aria", database=app, embedder=WordEmbedder(), judge=ScriptedJudge()), *COPIES)
    app.close()
    plan = plan_of(database, tmp_path_factory.mktemp("undisturbed"), ScriptedJudge())
    with psycopg.connect(server.dsn(name), autocommit=True) as owner:
        facts = facts_in(owner, without=("written_xid", "created_at"))
        apply_plan(database, plan, run_id="r")
        left = everything(owner)
    database.close()
    yield Undisturbed(plan, facts, left)
    admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def plan(heart, owner, undisturbed_night):
    """The plan of these facts: they are stored under the same ids in every store."""
    remember(heart, *COPIES)
    assert facts_in(owner, without=("written_xid", "created_at")) == undisturbed_night.facts
    return undisturbed_night.plan


@pytest.fixture
def undisturbed(undisturbed_night):
    """The facts, usage and proposals that `plan` leaves behind when nothing disturbs it."""
    return undisturbed_night.left


def everything(owner):
    """What a night may leave behind, but for the moments at which the rows were written."""
    return (
        facts_in(owner, without=("written_xid", "created_at")),
        usage_in(owner),
        proposals_in(owner),
        [
            (str(e["memory_id"]), e["action"], e["version_after"], e["effective_at"])
            for e in by_memory(events_in(owner))
        ],
    )


def by_memory(events):
    return sorted(events, key=lambda event: (event["memory_id"], event["version_after"]))


def changed_by(owner, proposal):
    return {str(e["memory_id"]) for e in events_in(owner) if e["proposal_id"] == proposal.id}


def test_what_is_merged_points_to_what_stays(night_database, plan, owner):
    outcome = apply_plan(night_database, plan, run_id="r1")

    facts = facts_in(owner)
    assert outcome == Applied(applied=3)
    for proposal in plan.proposals:
        kept, gone = (facts[memory] for memory in proposal.targets)
        assert (kept["state"], kept["confirmation_count"]) == ("active", 1)
        assert (gone["state"], gone["superseded_by"]) == ("superseded", kept["id"])
        assert datetime.fromisoformat(gone["superseded_at"]) == end_of(NIGHT)


def test_every_change_leaves_an_event_that_says_who_why_and_what_was_before(night_database, plan, owner):
    apply_plan(night_database, plan, run_id="r1")

    events = [event for event in events_in(owner) if event["actor"] == "night"]
    assert Counter(event["action"] for event in events) == {"absorbed": 3, "merged": 3}
    assert {event["proposal_id"] for event in events} == {proposal.id for proposal in plan.proposals}
    for event in events:
        assert (event["night"], event["run_id"], event["effective_at"]) == (NIGHT, "r1", end_of(NIGHT))
        assert event["reason"].startswith("said 2 times")
        assert event["before"] != event["after"]
        assert event["before"].keys() == event["after"].keys()


def test_the_plan_and_its_checks_are_kept_beside_what_it_did(night_database, plan, owner):
    apply_plan(night_database, plan, run_id="r1", checks=[{"name": "effect", "passed": True}])

    row = owner.execute("select hash, night, policy, counts, checks, run_id, state from lifecycle.plans").fetchone()
    assert row == (
        plan.hash, NIGHT, dict(plan.policy), {"merge": 3}, [{"name": "effect", "passed": True}], "r1", "applied"
    )  # fmt: skip


def test_a_second_run_applies_nothing(night_database, plan, owner):
    apply_plan(night_database, plan, run_id="r1")
    before = facts_in(owner, without=()), events_in(owner)

    outcome = apply_plan(night_database, plan, run_id="r2")

    assert outcome == Applied(known=3)
    assert (facts_in(owner, without=()), events_in(owner)) == before


@pytest.mark.parametrize("place", [0, 1])
def test_a_memory_that_changed_since_it_was_read_makes_its_proposal_stale_and_no_other(
    night_database, plan, owner, place
):
    stale, *sound = plan.proposals
    recategorise(night_database, stale.targets[place])

    outcome = apply_plan(night_database, plan, run_id="r1")

    assert (outcome.applied, outcome.stale) == (2, 1)
    assert "changed since it was read (version 1, now 2)" in outcome.reasons[str(stale.id)]
    assert proposals_in(owner)[str(stale.id)] == "stale"
    assert changed_by(owner, stale) == set()
    assert all(changed_by(owner, proposal) for proposal in sound)


def recategorise(database, memory):
    """Change a memory as somebody else would between the snapshot and the night's writes."""
    cause = Cause("operator", "corrected", "filed under another heading", effective_at=datetime.now(UTC))
    with database.transaction("aria") as connection:
        change_memory(connection, "aria", Version(FACT, uuid.UUID(memory), 1), {"category": "other"}, cause=cause)


def test_a_stale_proposal_says_why_in_the_store_and_is_not_tried_again(heart, night_database, plan, owner):
    heart.learn("cats like fish")
    apply_plan(night_database, plan, run_id="r1")

    assert apply_plan(night_database, plan, run_id="r2") == Applied(known=3)
    (outcome,) = owner.execute("select outcome from lifecycle.proposals where state = 'stale'").fetchone()
    assert "changed since it was read" in outcome


class Walked(tuple[Read, ...]):
    """A read set that counts how many of its entries were looked at."""

    steps = 0

    def __iter__(self):
        for each in super().__iter__():
            Walked.steps += 1
            yield each


def test_what_a_proposal_read_is_gone_through_a_few_times_however_much_it_changes(heart, night_database, owner):
    remember(heart, *(f"fact {number}" for number in range(100)))
    reads = Walked(
        Read("fact", memory, columns["row_version"]) for memory, columns in facts_in(owner, without=()).items()
    )
    ids = tuple(memory for memory in facts_in(owner))
    changes = [Change("fact", memory, set={"category": "x"}, action="retagged") for memory in ids]
    counts = [Change("usage", memory, add={"cited_count": 1}) for memory in ids]
    proposal = Proposal(NIGHT, "aria", "merge", ids, reads, (*changes, *counts), "a test", {})
    Walked.steps = 0

    assert apply_plan(night_database, Plan(NIGHT, (), {}, (proposal,)), run_id="r").applied == 1
    assert Walked.steps <= 10 * len(ids)


def test_a_memory_that_is_gone_makes_its_proposal_stale(night_database, plan, owner):
    lost = plan.proposals[0].targets[1]
    owner.execute("delete from heart.facts where id = %s", [lost])

    outcome = apply_plan(night_database, plan, run_id="r1")

    assert (outcome.applied, outcome.stale) == (2, 1)
    assert list(outcome.reasons.values()) == [f"fact {lost} is gone"]


def test_two_nights_of_one_agent_do_not_meet(night_database, database_url, plan, owner):
    met = []

    def meet(done, total):
        if done == 1:
            other = Database(database_url, role="nous_night")
            before = everything(owner)
            with pytest.raises(Conflict, match="another night is being applied for agent 'aria'; wait"):
                apply_plan(other, plan, run_id="r2")
            met.append(everything(owner) == before)
            other.close()

    assert apply_plan(night_database, plan, run_id="r1", on_progress=meet, chunk_size=1).applied == 3
    assert met == [True]


def test_a_night_that_meets_another_one_changes_nothing_and_can_be_run_later(night_database, plan, owner):
    with psycopg.connect(owner.info.dsn, password=owner.info.password) as other:
        other.execute("select pg_advisory_xact_lock(hashtextextended('night:aria', 0))")
        before = everything(owner)

        with pytest.raises(Conflict):
            apply_plan(night_database, plan, run_id="r1")

        assert everything(owner) == before
    assert apply_plan(night_database, plan, run_id="r1").applied == 3


def test_the_night_of_one_agent_does_not_wait_for_that_of_another(night_database, plan, owner):
    with psycopg.connect(owner.info.dsn, password=owner.info.password) as other:
        other.execute("select pg_advisory_xact_lock(hashtextextended('night:ben', 0))")

        assert apply_plan(night_database, plan, run_id="r1").applied == 3


@pytest.mark.parametrize("last", [1, 2])
def test_a_night_that_breaks_between_two_proposals_is_finished_by_the_next_run(
    night_database, plan, owner, undisturbed, last
):
    def interrupt(done, total):
        if done == last:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_plan(night_database, plan, run_id="r1", on_progress=interrupt, chunk_size=1)

    assert apply_plan(night_database, plan, run_id="r2") == Applied(applied=3 - last, known=last)
    assert everything(owner) == undisturbed


@pytest.mark.parametrize("chunk_size", [1, 2, 200])
@pytest.mark.parametrize("nth", [1, 2, 3, 6])
def test_a_night_whose_write_fails_leaves_no_half_of_a_chunk(night_database, plan, owner, undisturbed, nth, chunk_size):
    before = facts_in(owner)
    fail_at_event(owner, nth, "raise exception 'no space left' using errcode = 'disk_full'")

    with pytest.raises(Unavailable, match="disk is full"):
        apply_plan(night_database, plan, run_id="r1", chunk_size=chunk_size)

    whole = (nth - 1) // 2 // chunk_size * chunk_size
    assert sum(columns["state"] == "superseded" for columns in facts_in(owner).values()) == whole
    assert Counter(proposals_in(owner).values()) == Counter({"applied": whole} if whole else {})
    assert whole or facts_in(owner) == before
    owner.execute("drop trigger failing on lifecycle.events")
    apply_plan(night_database, plan, run_id="r2")
    assert everything(owner) == undisturbed


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_the_database_forbids_is_refused_and_does_not_stop_the_others(night_database, plan, owner, place):
    culprit = plan.proposals[place]
    owner.execute(
        f"alter table heart.facts add constraint stays check (id <> '{culprit.targets[1]}' or state = 'active')"
    )

    outcome = apply_plan(night_database, plan, run_id="r1")

    assert (outcome.applied, outcome.refused) == (2, 1)
    assert "forbids it (CheckViolation); nothing was stored; the rule is 'stays'" in outcome.reasons[str(culprit.id)]
    assert proposals_in(owner)[str(culprit.id)] == "refused"
    assert changed_by(owner, culprit) == set()
    assert apply_plan(night_database, plan, run_id="r2") == Applied(known=3)


def test_a_missing_grant_stops_the_night_instead_of_refusing_every_proposal(night_database, plan, owner):
    owner.execute("revoke insert on lifecycle.events from nous_night")

    with pytest.raises(NousError, match="may not do this"):
        apply_plan(night_database, plan, run_id="r1")

    assert proposals_in(owner) == {}
    owner.execute("grant insert on lifecycle.events to nous_night")
    assert apply_plan(night_database, plan, run_id="r2") == Applied(applied=3)


def fail_at_event(owner, nth, statement):
    """Make the n-th event of the night run a statement; a sequence counts, since it outlives a rollback."""
    owner.execute("create sequence nights_events")
    owner.execute("grant usage on sequence nights_events to nous_night")
    owner.execute(f"""
        create function failing() returns trigger language plpgsql as $$
        begin
            if new.actor = 'night' and nextval('nights_events') = {nth} then {statement}; end if;
            return new;
        end $$""")
    owner.execute("create trigger failing before insert on lifecycle.events for each row execute function failing()")


def test_a_process_killed_between_two_proposals_loses_nothing(night_database, database_url, plan, owner, undisturbed):
    command = [sys.executable, "-c", APPLY, database_url, "2", "1"]

    killed = subprocess.run(command, input=json.dumps(plan.as_dict()), text=True, timeout=120, check=False)

    assert killed.returncode == -signal.SIGKILL
    assert apply_plan(night_database, plan, run_id="r2") == Applied(applied=1, known=2)
    assert everything(owner) == undisturbed


def test_a_process_killed_inside_a_proposal_loses_nothing(night_database, database_url, plan, owner, undisturbed):
    fail_at_event(owner, 4, "perform pg_sleep(1.5)")
    process = subprocess.Popen([sys.executable, "-c", APPLY, database_url, "-1", "1"], stdin=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps(plan.as_dict()))
    process.stdin.close()
    wait_until(
        owner, "select count(*) > 0 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
    )

    os.kill(process.pid, signal.SIGKILL)

    assert process.wait(timeout=30) == -signal.SIGKILL
    assert rerun_once_the_dead_let_go(night_database, plan) == Applied(applied=2, known=1)
    assert everything(owner) == undisturbed


def rerun_once_the_dead_let_go(database, plan):
    """Run again as an operator would: a server needs a moment to notice that a client died."""
    for _ in range(50):
        try:
            return apply_plan(database, plan, run_id="r2")
        except Conflict:
            time.sleep(0.1)
    raise TimeoutError("the lock of the killed night is still held")


def wait_until(owner, query):
    ends_at = time.monotonic() + 60
    while not owner.execute(query).fetchone()[0]:
        assert time.monotonic() < ends_at, query
        time.sleep(0.02)


def test_usage_is_summed_on_what_stays(heart, judge, night_database, owner, tmp_path):
    remember(heart, *COPIES[:1] * 2)
    for _ in range(3):
        found = heart.recall("when does the office open?", at=datetime(2026, 5, 20, tzinfo=UTC))
        heart.cite(found.id, [found[1].memory.id], at=datetime(2026, 5, 20, tzinfo=UTC))
    plan = plan_of(night_database, tmp_path, judge)

    apply_plan(night_database, plan, run_id="r1")

    assert usage_in(owner)[plan.proposals[0].targets[0]][:3] == (6, 3, 0)


def test_agents_are_found_by_name_and_a_stranger_is_named(heart, night_database):
    assert find_agents(night_database, []) == ["aria"]
    assert find_agents(night_database, ["aria"]) == ["aria"]
    with pytest.raises(NousError, match="agent 'nobody' is not known here"):
        find_agents(night_database, ["aria", "nobody"])


def test_an_empty_plan_is_applied_and_recorded(night_database, owner):
    plan = planned(NIGHT, [], agent_ids=[], policy={})

    assert apply_plan(night_database, plan, run_id="r1") == Applied()
    assert owner.execute("select state from lifecycle.plans").fetchone() == ("applied",)
