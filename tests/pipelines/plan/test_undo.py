from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from night_runs import NIGHT, SAID, events_in, facts_in, plan_of, proposals_in, remember, snapshot_of, usage_in

import nous_pipelines.plan.undo as undoing_nights
from nous_online.core.domain import FACT
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.changes import Cause, Version, change_memory
from nous_online.heart import Heart
from nous_online.interfaces.exporting import export_agent, restore_agent
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.plan.apply import CHUNK_SIZE, Applied, apply_plan
from nous_pipelines.plan.undo import Selection, undo, undo_range

NEXT = NIGHT + timedelta(days=1)
EARLIER = datetime(2026, 5, 20, tzinfo=UTC)
NINE, NOW_NINE = "the office opens at nine", "the office opens at nine now"


@pytest.fixture
def run(night_database, judge, tmp_path):
    """Run a night without an orchestrator, and return its plan."""

    def apply(night=NIGHT):
        plan = plan_of(night_database, tmp_path, judge, night=night)
        apply_plan(night_database, plan, run_id=f"run of {night}")
        return plan

    return apply


@pytest.fixture
def opened(database, embedder, judge):
    """Open the memory of an agent by name."""
    return lambda agent_id: Heart.open(agent_id, database=database, embedder=embedder, judge=judge)


def take_back(database, reason="a mistake", chunk_size=CHUNK_SIZE, **selection):
    return undo(database, Selection(**selection), reason=reason, chunk_size=chunk_size)


def change(database, memory, action="changed", **values):
    with database.transaction("aria") as connection:
        (version,) = connection.execute("select row_version from heart.facts where id = %s", [memory]).fetchone()
        cause = Cause("agent", action, "the agent said so", effective_at=datetime(2026, 6, 3, tzinfo=UTC))
        change_memory(connection, "aria", Version(FACT, uuid.UUID(memory), version), values, cause=cause)


def test_undoing_a_night_restores_every_row_and_keeps_both_events(heart, night_database, run, owner):
    remember(heart, NINE, NINE, NINE, "cats like fish", tags=["b", "a"], source="chat", confidence=0.1)
    before = facts_in(owner)
    (proposal,) = run().proposals

    result = take_back(night_database, night=NIGHT)

    assert result.undone == (proposal.id,)
    assert result.refused == {}
    assert facts_in(owner) == before
    assert proposals_in(owner) == {str(proposal.id): "undone"}
    done, undone = ([e for e in events_in(owner) if e["actor"] == actor] for actor in ("night", "operator"))
    assert {e["undoes"] for e in undone} == {e["id"] for e in done}
    assert {(e["action"], e["reason"]) for e in undone} == {("undone", "a mistake")}


ONE_FACT = st.fixed_dictionaries({
    "content": st.sampled_from([NINE, NOW_NINE, "cats like fish"]),
    "tags": st.lists(st.sampled_from(["a", "b", "ü, ö"]), max_size=2, unique=True),
    "source": st.sampled_from([None, "chat", "mail"]),
    "confidence": st.sampled_from([0.1, 0.7, 1.0]),
    "trust": st.sampled_from([40, 50]),
    "is_pinned": st.booleans(),
    "encoded_frame": st.sampled_from([None, "decision"]),
    "hours": st.integers(0, 500),
})  # fmt: skip


HISTORY = st.fixed_dictionaries({
    "facts": st.lists(ONE_FACT, min_size=2, max_size=6),
    "confirmed": st.booleans(),
    "cites": st.lists(st.integers(0, 5), max_size=3),
})  # fmt: skip


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORY)
def test_whatever_happened_before_undoing_a_night_restores_it(history, opened, night_database, owner, tmp_path):
    heart = opened(agent_id := f"agent-{uuid.uuid4()}")
    judge = heart.agent.judge
    judge.verdicts = {(NINE, NOW_NINE): Verdict.SAME, (NOW_NINE, NINE): Verdict.SAME}
    live_through(heart, **history)
    before = facts_in(owner, agent_id=agent_id), usage_in(owner, agent_id)
    plan = plan_of(night_database, tmp_path / agent_id, judge, agent_id=agent_id)
    apply_plan(night_database, plan, run_id="r1")

    if plan.proposals:
        result = take_back(night_database, agent_id=agent_id)
        assert set(result.undone) == {proposal.id for proposal in plan.proposals}

    assert (facts_in(owner, agent_id=agent_id), usage_in(owner, agent_id)) == before


def live_through(heart, facts, *, confirmed, cites):
    """Store facts, confirm one of them, and use some."""
    entries = [{**fact, "learned_at": SAID + timedelta(hours=fact["hours"])} for fact in facts]
    heart.learn_deferred([
        (entry["content"], {k: v for k, v in entry.items() if k not in {"content", "hours"}}) for entry in entries
    ])  # fmt: skip
    if confirmed:
        heart.learn(facts[0]["content"], learned_at=EARLIER)
    for place in cites:
        found = heart.recall("when does the office open?", at=EARLIER)
        heart.cite(found.id, [found[place % len(found)].memory.id], at=EARLIER)
        heart.ignore(found.id, [found[0].memory.id], at=EARLIER)


def test_usage_counted_since_the_merge_is_kept(heart, night_database, run, owner):
    remember(heart, NINE, NINE)
    found = heart.recall("when does the office open?", at=EARLIER)
    heart.cite(found.id, [answer.memory.id for answer in found], at=EARLIER)
    (proposal,) = run().proposals
    kept, gone = proposal.targets
    heart.recall("when does the office open?")

    take_back(night_database, night=NIGHT)

    assert {memory: counts[:2] for memory, counts in usage_in(owner).items()} == {kept: (2, 1), gone: (1, 1)}


def test_a_confirmation_since_the_merge_is_kept(heart, night_database, run, owner):
    remember(heart, NINE, NINE, NINE)
    (proposal,) = run().proposals
    heart.learn(NINE, learned_at=datetime(2026, 6, 9, tzinfo=UTC))
    assert facts_in(owner)[proposal.targets[0]]["confirmation_count"] == 3

    result = take_back(night_database, night=NIGHT)

    kept = facts_in(owner)[proposal.targets[0]]
    assert result.refused == {}
    assert kept["confirmation_count"] == 1
    assert datetime.fromisoformat(kept["last_confirmed_at"]) == datetime(2026, 6, 9, tzinfo=UTC)


def test_a_later_change_of_another_column_is_kept(heart, night_database, run, owner):
    remember(heart, NINE, NINE)
    (proposal,) = run().proposals
    change(night_database, proposal.targets[0], category="hours")

    assert take_back(night_database, night=NIGHT).refused == {}

    assert facts_in(owner)[proposal.targets[0]]["category"] == "hours"


def test_a_later_change_of_the_same_column_refuses_with_who_and_why(heart, night_database, run, owner):
    remember(heart, NINE, NINE, "cats like fish", "cats like fish")
    blocked, free = run().proposals
    change(night_database, blocked.targets[0], "retagged", tags=["hours"])
    before = facts_in(owner)

    result = take_back(night_database, night=NIGHT)

    assert result.undone == (free.id,)
    assert (
        "was changed since (tags): retagged by agent (the agent said so); undo that first: nous undo "
        f"{blocked.targets[0]} --agent aria" in result.refused[blocked.id]
    )
    assert proposals_in(owner) == {str(blocked.id): "applied", str(free.id): "undone"}
    assert {m: c for m, c in facts_in(owner).items() if m in blocked.targets} == {
        m: c for m, c in before.items() if m in blocked.targets
    }


def test_a_merge_whose_memory_has_left_since_is_refused(heart, night_database, run, owner):
    remember(heart, NINE, NINE, "cats like fish")
    (proposal,) = run().proposals
    kept = proposal.targets[0]
    (other,) = (m for m, c in facts_in(owner).items() if c["content"] == "cats like fish")
    change(
        night_database,
        kept,
        "superseded",
        state="superseded",
        superseded_by=other,
        superseded_at="2026-06-03T00:00:00Z",
        succession="replaced",
    )

    result = take_back(night_database, night=NIGHT)

    assert "was changed since (state): superseded by agent" in result.refused[proposal.id]
    assert facts_in(owner)[proposal.targets[1]]["state"] == "superseded"


def test_a_merge_another_night_built_on_has_to_wait_until_that_one_is_undone(heart, night_database, judge, run, owner):
    remember(heart, NINE, NINE)
    original = facts_in(owner)
    (first,) = run().proposals
    judge.verdicts = {(NINE, NOW_NINE): Verdict.SAME}
    heart.learn_deferred([(NOW_NINE, {"learned_at": datetime(2026, 6, 2, tzinfo=UTC), "trust": 60})])
    before = facts_in(owner)
    (second,) = run(NEXT).proposals
    assert second.targets[1] == first.targets[0]

    assert list(take_back(night_database, night=NIGHT).refused) == [first.id]
    assert take_back(night_database, night=NEXT).undone == (second.id,)
    assert facts_in(owner) == before
    assert take_back(night_database, night=NIGHT).undone == (first.id,)
    assert {m: c for m, c in facts_in(owner).items() if m in original} == original


def test_all_nights_of_an_agent_are_undone_the_latest_first(heart, night_database, judge, run, owner):
    remember(heart, NINE, NINE)
    (first,) = run().proposals
    judge.verdicts = {(NINE, NOW_NINE): Verdict.SAME}
    heart.learn_deferred([(NOW_NINE, {"learned_at": datetime(2026, 6, 2, tzinfo=UTC), "trust": 60})])
    (second,) = run(NEXT).proposals

    result = take_back(night_database, agent_id="aria")

    assert result.undone == (second.id, first.id)
    assert {columns["state"] for columns in facts_in(owner).values()} == {"active"}


def test_a_range_of_nights_is_undone_newest_first_up_to_one_that_others_built_on(heart, night_database, run, owner):
    remember(heart, NINE, NINE)
    for day, text in ((2, "cats like fish"), (3, "rain falls down")):
        heart.learn_deferred([(text, {"learned_at": datetime(2026, 6, day, tzinfo=UTC)})] * 2)
    nights = [NIGHT + timedelta(days=day) for day in range(3)]
    first, middle, last = (run(night).proposals[0] for night in nights)
    change(night_database, middle.targets[0], "retagged", tags=["pets"])
    newest_first = [NEXT + timedelta(days=9), *reversed(nights)]

    refused = undo_range(night_database, Selection(), newest_first, reason="a mistake")
    rest = undo_range(night_database, Selection(agent_id="aria"), [NIGHT], reason="a mistake")

    assert {night: (result.undone, list(result.refused)) for night, result in refused.items()} == {
        nights[2]: ((last.id,), []), NEXT: ((), [middle.id])
    }  # fmt: skip
    assert rest[NIGHT].undone == (first.id,)
    with pytest.raises(NotFound, match="no applied proposal is left of these nights"):
        undo_range(night_database, Selection(), [NIGHT], reason="a mistake")


def test_only_what_is_selected_is_undone(heart, opened, night_database, run):
    remember(heart, NINE, NINE, "cats like fish", "cats like fish")
    remember(opened("ben"), NINE, NINE)
    one, other, bens = sorted(run().proposals, key=lambda p: (p.agent_id, p.id))

    assert take_back(night_database, id=one.id).undone == (one.id,)
    assert take_back(night_database, agent_id="ben").undone == (bens.id,)
    with pytest.raises(NotFound, match=r"agent_id=ben was undone already, on .{10} at .{5} UTC \(a mistake\);"):
        take_back(night_database, agent_id="ben")
    for selection in ({"kind": "archive"}, {"night": NEXT}, {"id": uuid.uuid4()}):
        with pytest.raises(NotFound, match="no applied proposal has"):
            take_back(night_database, **selection)
    assert take_back(night_database, kind="merge", night=NIGHT).undone == (other.id,)


def test_a_proposal_of_a_copied_agent_is_undone_for_the_agent_that_is_named(
    heart, database, night_database, run, tmp_path
):
    remember(heart, NINE, NINE)
    (proposal,) = run().proposals
    export_agent(database, "aria", tmp_path / "aria.jsonl.gz")
    restore_agent(database, tmp_path / "aria.jsonl.gz", agent_id="carol")

    with pytest.raises(InvalidInput, match=r"is of several agents: aria, carol; name one with --agent$"):
        take_back(night_database, id=proposal.id)
    assert take_back(night_database, id=proposal.id, agent_id="carol").agents == ("carol",)
    with pytest.raises(InvalidInput, match="is of several agents"):
        take_back(night_database, id=proposal.id)
    assert take_back(night_database, night=NIGHT).agents == ("aria",)


def test_a_night_of_an_agent_and_its_copy_says_what_it_undid_of_whom(heart, database, night_database, run, tmp_path):
    remember(heart, NINE, NINE)
    (proposal,) = run().proposals
    export_agent(database, "aria", tmp_path / "aria.jsonl.gz")
    restore_agent(database, tmp_path / "aria.jsonl.gz", agent_id="carol")
    change(night_database, proposal.targets[0], "retagged", tags=["hours"])

    result = take_back(night_database, night=NIGHT)

    assert (result.undone, result.agents) == ((proposal.id,), ("carol",))
    assert result.refused[proposal.id].startswith("of aria: ")


def test_undoing_twice_finds_nothing_to_undo(heart, night_database, run):
    remember(heart, NINE, NINE)
    run()
    take_back(night_database, night=NIGHT)

    with pytest.raises(NotFound, match=f"night={NIGHT}"):
        take_back(night_database, night=NIGHT)


def test_what_was_undone_is_neither_applied_nor_proposed_again(heart, night_database, run, owner):
    remember(heart, NINE, NINE)
    plan = run()
    take_back(night_database, night=NIGHT)
    before = facts_in(owner, without=())

    again = apply_plan(night_database, plan, run_id="the same night again")
    following = [run(NIGHT + timedelta(days=days)).proposals for days in (1, 2)]
    today = run(datetime.now(UTC).date()).proposals

    assert again == Applied(known=1)
    assert (*following, today) == ((), (), ())
    assert facts_in(owner, without=()) == before


def test_a_copy_learned_after_an_undone_merge_can_still_be_merged(heart, night_database, judge, run):
    judge.verdicts = {(NINE, NINE): Verdict.SAME}
    remember(heart, NINE, NINE)
    run()
    take_back(night_database, night=NIGHT)
    heart.learn_deferred([(NINE, {})])

    (proposal,) = run(datetime.now(UTC).date()).proposals

    assert len(proposal.targets) == 2


def test_the_night_of_an_undone_merge_still_shows_what_it_saw(heart, night_database, run, tmp_path):
    remember(heart, NINE, NINE)
    run()
    take_back(night_database, night=NIGHT)

    later = snapshot_of(night_database, tmp_path / "again", night=NIGHT)

    assert later.table("facts")["state"].to_list() == ["active", "active"]
    assert later.counts["undone"] == 1


def test_memories_are_found_again_after_an_undo(heart, night_database, run):
    remember(heart, NINE, NINE, "cats like fish")
    run()
    merged = len([answer for answer in heart.recall("when does the office open?") if answer.content == NINE])

    take_back(night_database, night=NIGHT)

    assert merged == 1
    assert len([answer for answer in heart.recall("when does the office open?") if answer.content == NINE]) == 2


@pytest.fixture
def other(owner):
    """Another connection, with a transaction open."""
    with psycopg.connect(owner.info.dsn, password=owner.info.password) as connection:
        yield connection


LOCK = "select from heart.facts where id = %s for update"


def test_a_busy_memory_keeps_its_proposal_and_stops_no_other(
    heart, night_database, run, owner, other, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(undoing_nights, "CHUNK_TIMEOUT_S", 0.5)
    remember(heart, *(NINE, "cats like fish", "rain falls down") * 2)
    busy, *free = sorted(run().proposals, key=lambda proposal: proposal.id)
    other.execute(LOCK, [busy.targets[0]])

    result = take_back(night_database, night=NIGHT)
    other.rollback()
    again = take_back(night_database, night=NIGHT)

    assert set(result.undone) == {proposal.id for proposal in free}
    assert list(result.refused) == [busy.id]
    assert result.refused[busy.id].startswith("busy: somebody is at work on what it changed")
    assert result.refused[busy.id].endswith("run it again")
    assert again.undone == (busy.id,)
    assert {columns["state"] for columns in facts_in(owner).values()} == {"active"}


def test_an_undoing_that_the_server_ends_to_resolve_a_deadlock_is_tried_again(heart, night_database, run, owner, other):
    remember(heart, NINE, NINE)
    (proposal,) = run().proposals
    first, last = sorted(proposal.targets)

    with ThreadPoolExecutor(1) as pool:
        other.execute("set local deadlock_timeout = '60s'")  # so that it is the undoing that gives way
        other.execute(LOCK, [last])
        undoing = pool.submit(take_back, night_database, night=NIGHT)
        wait_until(owner, "select count(*) > 0 from pg_locks where not granted and locktype = 'transactionid'")
        other.execute(LOCK, [first])
        other.rollback()

        assert undoing.result().undone == (proposal.id,)


def test_of_two_undoings_at_once_one_undoes_and_the_other_changes_nothing(heart, night_database, run, owner, other):
    remember(heart, NINE, NINE)
    original = facts_in(owner)
    (proposal,) = run().proposals
    other.execute(LOCK, [min(proposal.targets)])

    with ThreadPoolExecutor(2) as pool:
        undoings = [pool.submit(take_back, night_database, night=NIGHT) for _ in range(2)]
        wait_until(owner, "select count(distinct pid) = 2 from pg_locks where not granted")
        other.rollback()
        results = [undoing.result() for undoing in undoings]

    assert sorted(result.undone for result in results) == [(), (proposal.id,)]
    (refused,) = [result.refused for result in results if result.refused]
    assert refused == {proposal.id: f"proposal {proposal.id} is no longer applied"}
    assert facts_in(owner) == original
    assert [event["action"] for event in events_in(owner)].count("undone") == 2  # one for each of both facts


def test_what_was_undone_before_the_database_failed_is_told(heart, night_database, run, owner, other):
    remember(heart, NINE, NINE, "cats like fish", "cats like fish")
    first, second = sorted((proposal.id, proposal.targets[0]) for proposal in run().proposals)
    other.execute(LOCK, [second[1]])

    with ThreadPoolExecutor(1) as pool:
        undoing = pool.submit(take_back, night_database, night=NIGHT, chunk_size=1)
        wait_until(owner, "select count(*) > 0 from pg_locks where not granted and locktype = 'transactionid'")
        owner.execute("select pg_terminate_backend(pid) from pg_locks where not granted and locktype = 'transactionid'")
        result = undoing.result()

    assert result.undone == (first[0],)
    assert list(result.refused) == [second[0]]
    assert result.refused[second[0]].startswith("not reached: ")


def wait_until(owner, query):
    ends_at = time.monotonic() + 60
    while owner.execute(query).fetchone() != (True,):
        assert time.monotonic() < ends_at, query
        time.sleep(0.01)


def test_a_night_far_back_is_named_in_what_is_not_found(night_database):
    with pytest.raises(NotFound, match="night=2021-01-01, kind=merge"):
        take_back(night_database, night=date(2021, 1, 1), kind="merge")
