from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import ScriptedJudge
from drawn import NIGHT, drawn_facts, merge
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_online.embedding import unit_rows
from nous_online.pairs.judging import OfflineJudge, Verdict
from nous_pipelines.canaries import CANARIES
from nous_pipelines.checks import CHECKS
from nous_pipelines.evidence import Evidence
from nous_pipelines.phases import Phase
from nous_pipelines.policy import Policies
from nous_pipelines.proposals import Change, Read, planned
from nous_pipelines.replaying import Replay, probe_of
from nous_pipelines.transforms.vectors import vector_matrix

RECALLS = {
    "agent_id": pl.String,
    "query": pl.String,
    "types": pl.List(pl.String),
    "result_limit": pl.Int32,
    "cited_ids": pl.List(pl.String),
    "embedding": pl.List(pl.Float32),
}
VECTORS = {"a": (1.0, 0.0, 0.0), "b": (0.8, 0.6, 0.0), "c": (0.0, 1.0, 0.0), "d": (0.0, 0.0, 1.0)}
FACTS = drawn_facts(
    """
    id | agent_id
    ---|---------
    a  | aria
    b  | aria
    c  | aria
    d  | aria
    x  | ben
    y  | ben
    """,
    vectors=VECTORS,
)


def evidence(*proposals, facts=FACTS, **changes):
    """Evidence about facts alone, unless `changes` say more."""
    found = facts.filter(pl.col("state") == "active", pl.col("embedding").is_not_null())
    recalled = found.select("agent_id", "id", "embedding", "rank_weight", kind=pl.lit("fact"))
    values = {
        "plan": planned(NIGHT, proposals, agent_ids=[], policy={}),
        "memories": facts.select("agent_id", "id", "state", "trust", "is_pinned", kind=pl.lit("fact")),
        "searchable": lambda agent_id: recalled.filter(agent_id=agent_id),
        "phases": [],
        "probes": pl.DataFrame(schema=RECALLS),
        "earlier_leaving": {},
        "policies": Policies(),
        "judge": OfflineJudge(),
    }
    return Evidence(**{**values, **changes})


def gone(memory, **values):
    """A proposal that takes one memory out of `active` without naming a successor, unless `values` do."""
    change = Change("fact", memory, set={"state": "superseded", **values})
    return merge(memory, read_set=(Read("fact", memory, 1),), changes=(change,))


def facts_with(**columns):
    return FACTS.with_columns(**{name: pl.col("id").is_in(list(ids)) for name, ids in columns.items()})


def many(count, *, share_of=1000):
    """A plan that retires `count` of an agent's `share_of` active memories."""
    facts = drawn_facts("id\n---\n" + "\n".join(f"m{number:04}" for number in range(share_of)))
    return evidence(merge(*(f"m{number:04}" for number in range(count + 1))), facts=facts)


def probe(*cited, vector, limit=1, agent_id="aria", types=()):
    row = {
        "agent_id": agent_id,
        "query": "how?",
        "types": list(types),
        "result_limit": limit,
        "cited_ids": list(cited),
        "embedding": vector,
    }
    return pl.DataFrame([row], schema=RECALLS)


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


def test_a_circle_of_successions_is_found():
    plan = evidence().plan
    circle = replace(plan, proposals=(merge("b", "a"), merge("c", "b"), merge("a", "c")))

    result = CHECKS["no_cycles"](evidence(plan=circle))

    assert not result.passed
    assert "a, b, c" in result.description
    assert not CHECKS["conservation"](evidence(plan=circle)).passed


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
    assert CHECKS["blast_radius"](evidence(*plan, facts=facts)).passed


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


def test_a_used_memory_that_would_be_harder_to_find_stops_the_night():
    # b answers first; merged into a, which points elsewhere, the answer would come second, after c.
    asked = probe("b", vector=(0.6, 0.8, 0.0))

    result = CHECKS["recall_does_not_regress"](evidence(merge("a", "b"), probes=asked))

    assert not result.passed
    assert "“how?”: b at rank 1 before, 2 after" in result.description


def test_a_probe_may_lose_ranks_within_the_length_of_its_answer():
    asked = probe("b", vector=(0.6, 0.8, 0.0), limit=2)

    assert CHECKS["recall_does_not_regress"](evidence(merge("a", "b"), probes=asked)).passed


def test_a_used_memory_that_would_vanish_stops_the_night():
    asked = probe("b", vector=VECTORS["b"], limit=10)

    assert not CHECKS["recall_does_not_regress"](evidence(gone("b", state="archived"), probes=asked)).passed


def test_what_was_recalled_and_not_used_is_no_probe():
    asked = probe(vector=VECTORS["b"])

    result = CHECKS["recall_does_not_regress"](evidence(gone("b", state="archived"), probes=asked))

    assert result.passed
    assert result.metadata == {"probes": 0}


def test_a_probe_whose_memory_left_in_an_earlier_night_says_nothing():
    probes = pl.concat([probe("older", vector=VECTORS["a"]), probe("older", vector=VECTORS["a"], agent_id="nobody")])

    assert CHECKS["recall_does_not_regress"](evidence(merge("a", "b"), probes=probes)).passed


def test_probes_of_one_agent_are_not_asked_of_another():
    everybody = FACTS.with_columns(
        embedding=pl.col("embedding").fill_null(pl.Series([[0.6, 0.8, 0.0]], dtype=pl.List(pl.Float32)).first())
    )
    asked = probe("c", vector=(0.6, 0.8, 0.0))

    assert CHECKS["recall_does_not_regress"](
        evidence(merge("x", "y", agent_id="ben"), facts=everybody, probes=asked)
    ).passed


def reweighted(memory, weight, kind="promote"):
    """A proposal that changes how much a memory's relevance counts."""
    change = Change("fact", memory, set={"rank_weight": weight})
    return replace(merge(memory, read_set=(Read("fact", memory, 1),), changes=(change,)), kind=kind)


def test_a_memory_that_is_promoted_past_a_used_one_stops_the_night():
    asked = probe("b", vector=(0.6, 0.8, 0.0))

    result = CHECKS["recall_does_not_regress"](evidence(reweighted("c", 1.5), probes=asked))

    assert not result.passed
    assert "b at rank 1 before, 2 after" in result.description


def test_a_used_memory_that_is_demoted_out_of_reach_stops_the_night():
    asked = probe("b", vector=(0.6, 0.8, 0.0))

    assert not CHECKS["recall_does_not_regress"](evidence(reweighted("b", 0.5, "demote"), probes=asked)).passed
    assert CHECKS["recall_does_not_regress"](evidence(reweighted("c", 0.5, "demote"), probes=asked)).passed


def test_a_promotion_within_the_length_of_the_answer_is_fine():
    asked = probe("b", vector=(0.6, 0.8, 0.0), limit=2)

    assert CHECKS["recall_does_not_regress"](evidence(reweighted("c", 1.5), probes=asked)).passed


def test_a_memory_of_a_kind_that_was_not_asked_for_overtakes_nobody():
    asked = probe("b", vector=(0.6, 0.8, 0.0), types=("episode",))

    assert CHECKS["recall_does_not_regress"](evidence(reweighted("c", 1.5), probes=asked)).passed


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_shortcut_of_the_replay_never_hides_a_worse_rank(seed):
    rng = np.random.default_rng(seed)
    facts = drawn_facts(
        "id\n---\n" + "\n".join("abcdefgh"),
        vectors={name: unit_rows(rng.standard_normal((1, 3)))[0].tolist() for name in "abcdefgh"},
    )
    plan = [reweighted(name, float(rng.choice([0.5, 1.5, 4.0]))) for name in rng.permutation(list("abcdefgh"))[:3]]
    plan = [*plan[:2], merge("h", "g")] if rng.random() < 0.5 else plan
    asked = pl.concat([probe(*"abg", vector=unit_rows(rng.standard_normal((1, 3)))[0].tolist(), limit=2)] * 3)
    given_evidence = evidence(*plan, facts=facts, probes=asked)
    replay = Replay(given_evidence.searchable("aria"), given_evidence)
    vectors = vector_matrix(asked["embedding"])
    probes = [probe_of(row) for row in asked.to_dicts()]

    in_full = [
        sentence
        for one, vector in zip(probes, vectors, strict=True)
        for memory in one.cited
        if (sentence := replay._compared(memory, one, vector))
    ]

    assert list(replay.worse(probes, vectors)) == in_full


def test_verdicts_that_cost_more_than_the_policy_allows_stop_the_night():
    dear = replace(merge("a", "b"), cost_usd=1.5)

    assert CHECKS["budget"](evidence(dear)).passed
    result = CHECKS["budget"](evidence(dear, policies=Policies({"max_cost_usd": 1})))
    assert not result.passed
    assert "aria (1.50 USD of 1.00)" in result.description


def found(**left):
    """A phase that had three of aria's rows to decide about, proposed one, and left others for the reasons given."""
    phase = Phase("merge_proposals")
    phase.look("aria", 3)
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


def test_one_agent_does_not_excuse_another():
    phase = found(pinned=2)
    phase.look("ben")

    result = CHECKS["effect"](evidence(phases=[phase]))

    assert "of ben" in result.description
    assert "of aria" not in result.description


def test_every_check_has_a_sentence_and_figures_that_are_plain_values():
    for check in CHECKS.values():
        result = check(evidence(merge("a", "b")))

        assert (check.__doc__ or "").strip()
        assert result.description
        assert not any(isinstance(value, np.generic) for value in result.metadata.values())
