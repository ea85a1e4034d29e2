from itertools import combinations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_online.core.errors import InvalidInput
from nous_pipelines.phases.merging import clusters


def accepted(text):
    rows = [line.split() for line in text.strip().splitlines()]
    return pl.DataFrame(
        {
            "left_id": [left for left, _, _ in rows],
            "right_id": [right for _, right, _ in rows],
            "similarity": [float(similarity) for _, _, similarity in rows],
        },
        schema={"left_id": pl.String, "right_id": pl.String, "similarity": pl.Float64},
    )


def members(table):
    grouped = table.group_by("cluster_id", maintain_order=True).agg("member_id")
    return dict(grouped.iter_rows())


def test_a_chain_does_not_join_its_ends():
    pairs = accepted("""
        a b 0.97
        b c 0.95
    """)

    assert members(clusters(pairs)) == {"a": ["a", "b"]}


def test_pairs_that_all_agree_become_one_cluster():
    pairs = accepted("""
        a b 0.93
        c b 0.99
        a c 0.94
    """)

    assert members(clusters(pairs)) == {"a": ["a", "b", "c"]}


def test_one_missing_pair_splits_a_component_at_its_weakest_side():
    pairs = accepted("""
        a b 0.99
        a c 0.93
        b c 0.93
        b d 0.94
        c d 0.98
    """)

    assert members(clusters(pairs)) == {"a": ["a", "b"], "c": ["c", "d"]}


def test_ties_are_broken_by_id():
    pairs = accepted("""
        c d 0.95
        b c 0.95
        a b 0.95
    """)

    assert members(clusters(pairs)) == {"a": ["a", "b"], "c": ["c", "d"]}


def test_no_pairs_make_no_clusters():
    assert clusters(accepted("")).rows() == []


def test_a_memory_paired_with_itself_is_no_duplicate():
    assert clusters(accepted("a a 1.0")).rows() == []


@st.composite
def accepted_pairs(draw):
    names = "abcdefghijkl"[: draw(st.integers(2, 12))]
    candidates = list(combinations(names, 2))
    kept = draw(st.lists(st.sampled_from(candidates), unique=True))
    levels = st.sampled_from([0.92, 0.95, 0.99])
    return [(left, right, draw(levels)) for left, right in kept]


def as_table(rows):
    schema = {"left_id": pl.String, "right_id": pl.String, "similarity": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@given(pairs=accepted_pairs())
@settings(max_examples=examples(30), deadline=None)
def test_every_two_members_of_a_cluster_were_accepted_as_the_same(pairs):
    judged_same = {frozenset(pair[:2]) for pair in pairs}

    together = members(clusters(as_table(pairs))).values()

    assert all(frozenset(two) in judged_same for cluster in together for two in combinations(cluster, 2))


@given(pairs=accepted_pairs())
@settings(max_examples=examples(30), deadline=None)
def test_no_two_clusters_could_still_be_merged(pairs):
    judged_same = {frozenset(pair[:2]) for pair in pairs}
    named = {name for pair in pairs for name in pair[:2]}

    together = [set(cluster) for cluster in members(clusters(as_table(pairs))).values()]
    alone = [{name} for name in named - set().union(*together)]

    for one, other in combinations(together + alone, 2):
        assert not all(frozenset((a, b)) in judged_same for a in one for b in other)


@given(pairs=accepted_pairs(), data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_clusters_do_not_depend_on_order_or_direction_or_repetition_of_the_pairs(pairs, data):
    shuffled = [
        (right, left, similarity) if data.draw(st.booleans()) else (left, right, similarity)
        for left, right, similarity in data.draw(st.permutations(pairs + pairs[:2]))
    ]

    assert clusters(as_table(shuffled)).equals(clusters(as_table(pairs)))


def equals(text):
    rows = [line.split() for line in text.strip().splitlines()]
    return pl.DataFrame(rows, schema={"member_id": pl.String, "representative_id": pl.String}, orient="row")


def test_exact_copies_follow_their_representative_into_its_cluster():
    copies = equals("""
        a a
        b b
        c a
        d d
        e d
    """)

    joined = clusters(accepted("a b 0.96"), equals=copies)

    assert members(joined) == {"a": ["a", "b", "c"], "d": ["d", "e"]}


def test_a_memory_without_a_copy_or_an_accepted_pair_is_in_no_cluster():
    assert clusters(accepted(""), equals=equals("a a\nb b")).rows() == []


def test_refuses_an_accepted_memory_that_represents_nothing():
    with pytest.raises(InvalidInput, match="b was accepted as a duplicate but represents no memory"):
        clusters(accepted("a b 1.0"), equals=equals("a a\nb a"))


def test_refuses_a_pair_without_similarity():
    with pytest.raises(InvalidInput, match="no similarity"):
        clusters(accepted("a b nan"))


def test_hundreds_of_memories_all_alike_are_one_cluster():
    names = pl.Series([f"{number:04d}" for number in range(400)])  # more pairs than are looked at together
    left, right = np.triu_indices(400, k=1)
    pairs = pl.DataFrame({"left_id": names.gather(left), "right_id": names.gather(right), "similarity": 1.0})

    assert members(clusters(pairs)) == {"0000": names.to_list()}
