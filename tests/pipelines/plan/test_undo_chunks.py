"""Undoing takes proposals back in chunks, and what can't be taken back stops no other."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from night_runs import NIGHT, facts_in, plan_of, remember

from nous_pipelines import failpoints
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.plan.apply import Applied, apply_plan
from nous_pipelines.plan.planning import planned
from nous_pipelines.plan.undo import Selection, undo

NEXT = NIGHT + timedelta(days=1)


def take_back(database, **selection):
    return undo(database, Selection(**selection), reason="a mistake")


@pytest.fixture
def commits(monkeypatch):
    """The names of the steps of undoing that were reached, for each chunk that was committed."""
    reached = []
    monkeypatch.setattr(failpoints, "on_reach", reached.append)
    return lambda: reached.count("undo committed")


def test_what_can_not_be_taken_back_is_left_and_the_rest_of_its_chunk_is_committed_at_once(
    heart, judge, night_database, commits, tmp_path
):
    remember(heart, *("the office opens at nine", "cats like fish", "rain falls down") * 2)
    plan = plan_of(night_database, tmp_path, judge)
    apply_plan(night_database, plan, run_id="r1")
    first, blocked, last = plan.proposals
    heart.update(uuid.UUID(blocked.targets[0]), tags=["hours"])

    result = take_back(night_database, night=NIGHT)

    assert {*result.undone} == {first.id, last.id}
    assert list(result.refused) == [blocked.id]
    assert commits() == 1


def test_what_the_database_forbids_is_found_by_halves(heart, night_database, owner, commits):
    procedures = [heart.store_procedure(name, goals=["ship"]).id for name in ("deploy", "test", "build")]
    away = {"state": "archived", "archived_at": "2026-06-02T00:00:00+00:00"}
    retired = [
        Proposal(
            night=NIGHT, agent_id="aria", kind="procedure", targets=(str(each),), reason="it fails", evidence={},
            read_set=(Read("procedure", str(each), 1),),
            changes=(Change("procedure", str(each), set=away, action="archived"),),
        )
        for each in procedures
    ]  # fmt: skip
    plan = planned(NIGHT, retired, agent_ids=[], policy={})
    assert apply_plan(night_database, plan, run_id="r1") == Applied(applied=3)
    heart.store_procedure("test", goals=["ship again"])

    result = take_back(night_database, night=NIGHT)

    states = dict(owner.execute("select id, state from heart.procedures where id = any(%s)", [procedures]).fetchall())
    assert [states[each] for each in procedures] == ["active", "archived", "active"]
    assert list(result.refused) == [retired[1].id]
    assert "procedures_name" in result.refused[retired[1].id]
    assert len(result.undone) == 2


def test_nights_that_changed_the_same_memory_are_undone_one_after_the_other_in_one_call(
    heart, night_database, owner, commits
):
    remember(heart, "the office opens at nine")
    (fact,) = facts_in(owner)
    before = facts_in(owner)
    for version, (night, weight) in enumerate([(NIGHT, 1.5), (NEXT, 2.0)], start=1):
        risen = Proposal(
            night=night, agent_id="aria", kind="promote", targets=(fact,), reason="used", evidence={},
            read_set=(Read("fact", fact, version),),
            changes=(Change("fact", fact, set={"rank_weight": weight}, action="promoted"),),
        )  # fmt: skip
        plan = planned(night, [risen], agent_ids=[], policy={})
        assert apply_plan(night_database, plan, run_id="r1") == Applied(applied=1)

    assert len(take_back(night_database, agent_id="aria").undone) == 2
    assert facts_in(owner) == before
    assert commits() == 2
