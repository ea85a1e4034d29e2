from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import ScriptedJudge
from drawn import drawn_facts, merge
from drawn_evidence import FACTS, VECTORS, evidence, gone, probe

from nous_online.language.pairs.judging import Verdict
from nous_pipelines.night_policy import Policies
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Change
from nous_pipelines.plan.checks import CANARIES, CHECKS, check_without_offenders


def facts_with(**columns):
    return FACTS.with_columns(**{name: pl.col("id").is_in(list(ids)) for name, ids in columns.items()})


def many(count, *, share_of=1000):
    """A plan that retires `count` of an agent's `share_of` active memories."""
    facts = drawn_facts("id\n---\n" + "\n".join(f"m{number:04}" for number in range(share_of)))
    return evidence(merge(*(f"m{number:04}" for number in range(count + 1))), facts=facts)


@pytest.mark.parametrize("name", CHECKS)
def test_a_sound_plan_passes_every_check(name):
    result = CHECKS[name](evidence(merge("a", "b"), probes=probe("a", vector=VECTORS["a"])))

    assert result.passed, result.description


@pytest.mark.parametrize("name", CHECKS)
def test_a_night_without_proposals_passes_every_check(name):
    quiet = evidence(facts=FACTS.clear())

    assert CHECKS[name](quiet).passed


@pytest.mark.parametrize(
    ("case", "proposals"),
    [
        ("no successor at all", [gone("a")]),
        ("a successor nobody knows", [merge("nobody", "a")]),
        ("a successor that leaves as well", [merge("b", "a"), replace(gone("b"), kind="archive")]),
        ("a successor of another agent", [merge("x", "a")]),
    ],
)
def test_conservation_names_the_memory_that_would_be_lost(case, proposals):
    plan = evidence().plan
    result = CHECKS["conservation"](evidence(plan=replace(plan, proposals=tuple(proposals))))

    assert not result.passed, case
    assert ": a" in result.description
    assert result.metadata["offenders"] >= 1


def test_conservation_needs_a_successor_that_is_active():
    dormant = FACTS.with_columns(state=pl.when(pl.col("id") == "a").then(pl.lit("archived")).otherwise("state"))

    assert not CHECKS["conservation"](evidence(merge("a", "b"), facts=dormant)).passed


def test_conservation_lets_a_memory_be_archived():
    assert CHECKS["conservation"](evidence(gone("a", state="archived"))).passed


def test_conservation_follows_a_succession_to_its_end():
    plan = evidence().plan
    chained = replace(plan, proposals=(merge("b", "a"), merge("c", "b")))

    assert CHECKS["conservation"](evidence(plan=chained)).passed


def test_conservation_counts_the_statements_that_would_be_reached_no_more():
    said = pl.DataFrame({"agent_id": ["aria", "aria"], "id": ["a", "b"], "said_count": [3, 2]})

    lost = CHECKS["conservation"](evidence(merge("x", "a"), statements=said))
    sound = CHECKS["conservation"](evidence(merge("b", "a"), statements=said))

    assert "1 memories would leave without a living successor, and 3 statements with them: a" in lost.description
    assert (sound.passed, dict(sound.metadata)) == (True, {"statements": 3, "unreached_statements": 0})


def test_conservation_wants_to_know_how_a_fact_gives_way():
    away = Change("fact", "b", set={"state": "superseded", "superseded_by": "a"})

    result = CHECKS["conservation"](evidence(merge("a", "b", changes=(away,))))

    assert (result.passed, result.description) == (False, "1 memories would give way without saying how: b")


def test_a_circle_of_successions_is_found():
    plan = evidence().plan
    circle = replace(plan, proposals=(merge("b", "a"), merge("c", "b"), merge("a", "c")))

    result = CHECKS["no_cycles"](evidence(plan=circle))

    assert not result.passed
    assert "a, b, c" in result.description
    assert not CHECKS["conservation"](evidence(plan=circle)).passed


def test_a_contradiction_is_no_memory_that_had_to_be_read():
    opened = Change("contradiction", "its own id", set={"memory_a": "a", "memory_b": "b"})
    marked = merge(
        "a", "b", kind="contradiction", changes=(opened, Change("fact", "a", set={}), Change("fact", "b", set={}))
    )

    assert CHECKS["reads_what_it_changes"](evidence(marked)).passed


@pytest.mark.parametrize("kind", ["fact", "usage"])
def test_a_change_of_what_was_not_read_is_found(kind):
    blind = merge("a", "b")
    blind = replace(blind, changes=(*blind.changes, Change(kind, "c", set={"tags": []})))

    result = CHECKS["reads_what_it_changes"](evidence(blind))

    assert not result.passed
    assert str(blind.id) in result.description


def test_a_pinned_memory_may_not_leave():
    pinned = facts_with(is_pinned="b")

    assert "b" in CHECKS["protected"](evidence(merge("a", "b"), facts=pinned)).description
    assert not CHECKS["protected"](evidence(merge("a", "b"), facts=pinned)).passed
    assert not CHECKS["protected"](evidence(gone("b", state="archived"), facts=pinned)).passed
    assert CHECKS["protected"](evidence(merge("b", "a"), facts=pinned)).passed


def test_a_memory_may_not_give_way_to_a_less_trusted_one():
    trusted = FACTS.with_columns(trust=pl.when(pl.col("id") == "b").then(60).otherwise(50))

    assert not CHECKS["protected"](evidence(merge("a", "b"), facts=trusted)).passed
    assert CHECKS["protected"](evidence(merge("b", "a"), facts=trusted)).passed


def test_a_plan_about_memories_nobody_knows_breaks_no_check():
    strange = evidence(merge("nobody", "no one"))

    assert [name for name, check in CHECKS.items() if not check(strange).passed] == ["conservation"]


@pytest.mark.parametrize(("count", "is_fine"), [(400, True), (401, False)])
def test_no_more_than_the_largest_share_leaves(count, is_fine):
    assert CHECKS["blast_radius"](many(count)).passed is is_fine


@pytest.mark.parametrize(("count", "is_fine"), [(20, True), (21, False)])
def test_a_young_agent_may_lose_a_few_whatever_their_share(count, is_fine):
    assert CHECKS["blast_radius"](many(count, share_of=22)).passed is is_fine


@pytest.mark.parametrize(("count", "is_fine"), [(50, True), (51, False)])
def test_no_more_than_the_largest_number_leaves(count, is_fine):
    limited = replace(many(count), policies=Policies({"max_leaving_count": 50}))

    result = CHECKS["blast_radius"](limited)

    assert result.passed is is_fine
    assert is_fine or "aria: 51 of 1000 memories would leave, the limit is 50" in result.description


@pytest.mark.parametrize(("earlier", "is_fine"), [((3, 3, 900), False), ((), True), ((5, 5, 5), True), ((0, 0), True)])
def test_a_jump_against_the_median_of_earlier_nights_stops_the_night(earlier, is_fine):
    jumping = replace(many(50), earlier_leaving={"aria": earlier})

    result = CHECKS["blast_radius"](jumping)

    assert result.passed is is_fine
    assert is_fine or "17 times the usual 3" in result.description


def test_the_memories_of_two_agents_are_counted_apart():
    rows = "\n".join(f"{agent}{n} | {agent}" for agent in ("aria", "ben") for n in range(60))
    facts = drawn_facts(f"id | agent_id\n---|---\n{rows}")
    plan = [merge(*(f"{agent}{n}" for n in range(25)), agent_id=agent) for agent in ("aria", "ben")]

    assert not CHECKS["blast_radius"](evidence(plan[0], facts=pl.concat([facts.head(30), facts.tail(60)]))).passed
    result = CHECKS["blast_radius"](evidence(*plan, facts=facts))
    assert (result.passed, result.description) == (
        True, "48 of 120 active memories of 2 agents with proposals would leave"
    )  # fmt: skip


def test_a_plan_that_retires_nothing_says_so_without_counting():
    assert CHECKS["blast_radius"](evidence()).description == "no active memory would leave"


def test_an_agent_that_alone_breaks_a_check_is_left_out_unless_it_is_about_all():
    rows = "\n".join(f"{agent}{n} | {agent}" for agent in ("aria", "ben", "cleo") for n in range(40))
    facts = drawn_facts(f"id | agent_id\n---|---\n{rows}")
    plan = [merge(*(f"{agent}{n}" for n in range(n)), agent_id=agent) for agent, n in (("aria", 9), ("ben", 25))]
    across = merge("cleo1", "aria10", agent_id="aria")

    results, left = check_without_offenders(evidence(*plan, facts=facts))
    alone, nobody = check_without_offenders(evidence(plan[1], facts=facts.filter(agent_id="ben")))
    stopping = [check_without_offenders(evidence(*plan, facts=facts, judge=ScriptedJudge())),
                check_without_offenders(evidence(*plan, across, facts=facts))]  # fmt: skip

    assert [(each.agent_id, each.step) for each in left] == [("ben", "blast_radius")]
    assert all(result.passed for result in results.values())
    assert results["blast_radius"].metadata == {"leaving": 8, "active": 40}
    assert (nobody, alone["blast_radius"].passed) == ([], False)
    assert [(out, results[name].is_about_all) for name, (results, out) in zip(
        ("canaries", "conservation"), stopping, strict=True)] == [([], True), ([], True)]  # fmt: skip


def test_a_judge_that_merges_too_much_is_found_by_the_canaries():
    gullible = ScriptedJudge({(c.a, c.b): Verdict.SAME for c in CANARIES})

    result = CHECKS["canaries"](evidence(judge=gullible))

    assert not result.passed
    assert result.metadata["offenders"] == sum(Verdict.SAME not in c.allowed for c in CANARIES)
    assert CANARIES[0].a in result.description


def test_a_judge_that_recognises_nothing_is_found_by_the_canaries():
    result = CHECKS["canaries"](evidence(judge=ScriptedJudge()))

    assert not result.passed
    assert result.metadata["offenders"] == sum(Verdict.COMPATIBLE not in c.allowed for c in CANARIES)


@pytest.mark.parametrize("wrong", range(len(CANARIES)))
def test_each_canary_alone_stops_the_night(wrong):
    truth = {(c.a, c.b): min(c.allowed if c is not CANARIES[wrong] else set(Verdict) - c.allowed) for c in CANARIES}

    assert not CHECKS["canaries"](evidence(judge=ScriptedJudge(truth))).passed


def test_verdicts_that_cost_more_than_the_policy_allows_stop_the_night():
    dear = {"aria": 1.5, "ben": 0.5}

    assert CHECKS["budget"](evidence(costs=dear)).passed
    result = CHECKS["budget"](evidence(costs=dear, policies=Policies({"max_cost_usd": 1})))
    assert not result.passed
    assert "aria (1.50 USD of 1.00)" in result.description
    assert "ben" not in result.description


def found(**left):
    """A phase that had three of aria's rows to decide about, proposed one, and left others for the reasons given."""
    phase = Phase("merge_proposals")
    phase.add_eligible("aria", 3)
    phase.propose(merge("a", "b"))
    for reason, rows in left.items():
        phase.leave("aria", reason, rows)
    return phase


def test_a_night_that_passes_over_rows_without_a_word_is_stopped():
    result = CHECKS["effect"](evidence(phases=[found(pinned=1)]))

    assert not result.passed
    assert "merge_proposals of aria (1 of 3 rows)" in result.description
    assert result.metadata["merge_proposals"]["left"] == {"pinned": 1}


def test_a_night_that_says_why_it_left_every_row_may_go_on():
    assert CHECKS["effect"](evidence(phases=[found(pinned=2)])).passed


def test_a_row_that_is_counted_twice_can_not_hide_another():
    assert not CHECKS["effect"](evidence(phases=[found(pinned=3)])).passed


def test_one_agent_does_not_excuse_another():
    phase = found(pinned=2)
    phase.add_eligible("ben")

    result = CHECKS["effect"](evidence(phases=[phase]))

    assert "of ben" in result.description
    assert "of aria" not in result.description


def test_every_check_has_a_sentence_and_figures_that_are_plain_values():
    for check in CHECKS.values():
        result = check(evidence(merge("a", "b")))

        assert (check.__doc__ or "").strip()
        assert result.description
        assert not any(isinstance(value, np.generic) for value in result.metadata.values())
