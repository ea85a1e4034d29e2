import json
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest
from drawn import NIGHT, merge
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_pipelines.phases.phase_table import PRECEDENCE
from nous_pipelines.phases.proposals import PLAN, Change, Read, canonical_json
from nous_pipelines.plan.planning import planned

MERGES = [merge("a", "b"), merge("c", "d"), merge("a", "b", agent_id="ben")]


def plan_of(*proposals, **changes):
    return planned(NIGHT, proposals, **{"agent_ids": ["aria"], "policy": {"limit": 1}, **changes})


def archive(memory, **changes):
    gone = Change("fact", memory, set={"state": "archived"})
    return merge(memory, kind="archive", read_set=(Read("fact", memory, 1),), changes=(gone,), **changes)


def test_the_same_proposal_of_the_same_night_has_the_same_id():
    assert merge("a", "b").id == merge("a", "b", reason="other words").id


@pytest.mark.parametrize(
    "other",
    [merge("b", "a"), merge("a", "b", "c"), merge("a", "b", agent_id="ben"), merge("a", "b", night=date(2026, 6, 2)),
     merge("a", "b", kind="supersede")],
)  # fmt: skip
def test_another_night_agent_kind_or_target_makes_another_id(other):
    assert merge("a", "b").id != other.id


def test_proposals_and_plans_survive_json():
    plan = plan_of(*MERGES, archive("a"))

    again = PLAN.validate_json(json.dumps(plan.as_dict()))

    assert again == plan
    assert again.hash == plan.hash


@settings(max_examples=examples(10), deadline=None)
@given(st.permutations([*MERGES, archive("b"), archive("x")]))
def test_a_plan_does_not_depend_on_the_order_of_its_proposals(proposals):
    assert plan_of(*proposals).hash == plan_of(*MERGES, archive("b"), archive("x")).hash


@pytest.mark.parametrize(
    "changed",
    [
        {"reason": "other words"},
        {"evidence": {"similarity": 0.93}},
        {"read_set": (Read("fact", "a", 2), Read("fact", "b", 1))},
        {"changes": (Change("usage", "a", add={"cited_count": 1}),)},
        {"cost_usd": 0.01},
        {"targets": ("a", "b", "x")},
    ],
)
def test_the_hash_changes_with_anything_a_proposal_says(changed):
    assert plan_of(merge("a", "b")).hash != plan_of(replace(merge("a", "b"), **changed)).hash


def test_the_hash_changes_with_night_agents_policy_and_what_waits():
    hashes = {
        plan_of(*MERGES).hash,
        plan_of(*MERGES, policy={"limit": 2}).hash,
        plan_of(*MERGES, agent_ids=["ben"]).hash,
        plan_of(*MERGES[:2]).hash,
        plan_of(*MERGES, archive("a")).hash,
        planned(date(2026, 6, 2), MERGES, agent_ids=["aria"], policy={"limit": 1}).hash,
    }

    assert len(hashes) == 6


def test_the_order_in_which_agents_are_named_means_nothing():
    assert plan_of(*MERGES, agent_ids=["ben", "aria"]).hash == plan_of(*MERGES, agent_ids=["aria", "ben"]).hash


@pytest.mark.parametrize(("first", "second"), list(pairwise(PRECEDENCE)))
def test_of_two_that_change_one_memory_the_kind_named_first_keeps_it(first, second):
    early, late = merge("a", "b", kind=first), merge("b", "c", kind=second)

    plan = plan_of(late, early)

    assert plan.proposals == (early,)
    assert plan.waiting == (late,)


def test_what_was_decided_on_a_memory_that_changes_tonight_waits():
    reads_only = replace(archive("x"), read_set=(Read("fact", "x", 1), Read("fact", "b", 1)))

    plan = plan_of(merge("a", "b"), reads_only)

    assert plan.waiting == (reads_only,)


def test_reading_the_same_memory_makes_nobody_wait():
    one, other = (replace(archive(memory), read_set=(Read("fact", memory, 1), Read("fact", "r", 1))) for memory in "xy")

    assert plan_of(one, other).waiting == ()


def test_what_waits_takes_nothing_from_others():
    waits, free = merge("b", "c", kind="archive"), merge("c", "d", kind="tier")

    plan = plan_of(merge("a", "b"), waits, free)

    assert plan.waiting == (waits,)
    assert free in plan.proposals


def test_memories_of_two_agents_never_make_each_other_wait():
    assert plan_of(merge("a", "b"), merge("a", "b", agent_id="ben")).waiting == ()


def test_an_empty_night_has_a_plan_and_a_hash():
    assert plan_of().proposals == ()
    assert len(plan_of().hash) == 64


def test_json_is_written_one_way_only_and_refuses_what_is_no_number():
    assert canonical_json({"b": 1, "a": "ü"}) == '{"a":"ü","b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"a": float("nan")})


def superseding(earlier, later):
    """A supersession that changes only the earlier fact and relies on the later one."""
    change = Change("fact", earlier, set={"state": "superseded", "superseded_by": later})
    return merge(later, earlier, kind="supersede", changes=(change,))


def test_a_value_that_is_repeated_every_day_still_replaces_its_predecessor():
    repeated, replaced = merge("monday", "monday again"), superseding("friday", "monday")

    plan = plan_of(repeated, replaced)

    assert plan.proposals == (replaced, repeated)
    assert plan.waiting == ()


def test_a_supersession_waits_when_its_heir_is_merged_away():
    away, replaced = merge("monday", "monday again"), superseding("friday", "monday again")

    plan = plan_of(away, replaced)

    assert plan.proposals == (away,)
    assert plan.waiting == (replaced,)


def test_what_takes_another_memory_s_place_tonight_is_not_archived_tonight():
    replaced = superseding("friday", "monday")
    archived = archive("monday")

    plan = plan_of(archived, replaced)

    assert plan.proposals == (replaced,)
    assert plan.waiting == (archived,)
