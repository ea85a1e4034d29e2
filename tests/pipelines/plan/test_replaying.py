from dataclasses import replace

import numpy as np
import polars as pl
from drawn import drawn_facts, merge
from drawn_evidence import FACTS, VECTORS, evidence, gone, probe
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_online.language.minilm import unit_rows
from nous_pipelines.phases.incremental_join import vector_matrix
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.plan.checks import CHECKS
from nous_pipelines.plan.planning import Replay, probe_of, relevance, without_harmful_proposals


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


@settings(max_examples=examples(24), deadline=None)
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
    replay = Replay(given_evidence.searchable(["aria"]), given_evidence)
    vectors = vector_matrix(asked["embedding"])
    probes = [probe_of(row) for row in asked.to_dicts()]

    in_full = [
        found
        for one, vector in zip(probes, vectors, strict=True)
        for memory in one.cited
        if (found := replay.compared(memory, one, relevance(replay._vectors, vector)))
    ]

    assert list(replay.worse(probes, vectors)) == in_full


def test_a_promotion_that_would_hide_a_used_memory_waits_and_the_night_goes_on():
    asked = probe("b", vector=(0.6, 0.8, 0.0))
    wanted = evidence(reweighted("c", 1.5), reweighted("d", 1.5), probes=asked)

    plan = without_harmful_proposals(wanted)

    assert [proposal.targets for proposal in plan.proposals] == [("d",)]
    assert [proposal.targets for proposal in plan.waiting] == [("c",)]
    assert CHECKS["recall_does_not_regress"](replace(wanted, plan=plan)).passed


def test_a_merge_that_would_hide_a_used_memory_waits_as_well():
    asked = probe("b", vector=(0.6, 0.8, 0.0))
    wanted = evidence(merge("a", "b"), probes=asked)

    plan = without_harmful_proposals(wanted)

    assert [proposal.kind for proposal in plan.waiting] == ["merge"]
    assert CHECKS["recall_does_not_regress"](replace(wanted, plan=plan)).passed


def test_what_vanishes_without_an_heir_is_left_to_the_check():
    wanted = evidence(gone("b", state="archived"), probes=probe("b", vector=VECTORS["b"]))

    assert without_harmful_proposals(wanted) is wanted.plan
    assert not CHECKS["recall_does_not_regress"](wanted).passed


def test_a_later_value_need_not_answer_the_question_the_earlier_one_answered():
    asked = probe("b", vector=(0.6, 0.8, 0.0))

    assert CHECKS["recall_does_not_regress"](evidence(merge("a", "b", kind="supersede"), probes=asked)).passed


def test_a_memory_that_its_words_found_and_its_vector_did_not_says_nothing():
    asked = probe("a", vector=(0.0, 1.0, 0.0))  # third by cosine, and only one answer was wanted

    assert CHECKS["recall_does_not_regress"](evidence(merge("d", "a"), probes=asked)).passed


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000))
def test_a_sample_never_hides_what_the_whole_would_show(seed):
    rng = np.random.default_rng(seed)
    names = [f"m{number:03}" for number in range(120)]
    vectors = unit_rows(rng.standard_normal((120, 4)).astype(np.float32))
    facts = drawn_facts("id\n---\n" + "\n".join(names), vectors=dict(zip(names, vectors.tolist(), strict=True)))
    plan = [reweighted(name, float(rng.choice([0.5, 4.0]))) for name in rng.permutation(names)[:30]]
    cited = rng.permutation(names)[:12]
    asked = pl.concat([probe(*cited, vector=vectors[place].tolist(), limit=5) for place in range(8)])
    about = evidence(*plan, facts=facts, probes=asked)
    whole, sampled = (Replay(about.searchable(["aria"]), about) for _ in range(2))
    sampled._stride = 7
    probes, questions = [probe_of(row) for row in asked.to_dicts()], vector_matrix(asked["embedding"])

    assert list(sampled.worse(probes, questions)) == list(whole.worse(probes, questions))


def test_a_promotion_that_is_held_back_may_uncover_another_that_hides():
    facts = drawn_facts(
        "id\n---\na\nb\nc", vectors={"a": (1.0, 0.0, 0.0), "b": (0.9, 0.43589, 0.0), "c": (0.8, 0.6, 0.0)}
    )
    # a's own promotion keeps it before b; it is held back for c's sake, and then b's has to wait as well.
    asked = pl.concat([probe("a", vector=(1.0, 0.0, 0.0)), probe("c", vector=(0.85, 0.52678, 0.0), limit=2)])
    wanted = evidence(reweighted("a", 1.5), reweighted("b", 1.4), facts=facts, probes=asked)

    plan = without_harmful_proposals(wanted)

    assert CHECKS["recall_does_not_regress"](replace(wanted, plan=plan)).passed
    assert len(plan.proposals) + len(plan.waiting) == 2
