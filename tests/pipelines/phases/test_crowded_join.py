"""Where nearly everything is near everything each fact meets its nearest alone, in every night the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from drawn import drawn_facts
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_pairs import NONE_UNDONE

from nous_online.language.minilm import unit_rows
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases import incremental_join, neighbours
from nous_pipelines.phases.incremental_join import Crowd, Limits, is_crowded, nearest_pairs
from nous_pipelines.phases.neighbours import neighbours_of

POLICY = NightPolicy(candidate_similarity=0.92, neighbour_similarity=0.8, neighbour_count=2)


def around(rng, rows, width, *, spread=0.45):
    """Draw rows about one direction: with a spread of 0.45 their cosines lie about 0.83."""
    centre = unit_rows(rng.standard_normal((1, width), dtype=np.float32))
    own = unit_rows(rng.standard_normal((rows, width), dtype=np.float32))
    return unit_rows((centre + np.float32(spread) * own).astype(np.float32))


def exact(rows):
    return (rows.astype(np.float64) @ rows.astype(np.float64).T).astype(np.float32)


def nearest_of(similarity, row, may_meet, *, most, threshold):
    others = np.flatnonzero(may_meet & (similarity[row] >= np.float32(threshold)))
    others = others[others != row]
    return others[np.lexsort((others, -similarity[row, others]))][:most].tolist()


@cache
def crowd_of(kind):
    """Draw rows that may meet as `kind` says, and find the nearest of each by brute force."""
    rng = np.random.default_rng(1)
    rows = around(rng, 1100, 24)
    rows[500:520] = rows[7]  # ties
    codes, none = rng.integers(0, 3, len(rows)).astype(np.uint32), np.zeros(len(rows), np.uint32)
    crowd = Crowd(rows, codes if kind == "subjects" else none, codes + 1 if kind == "owners" else none)
    similarity, allowed = exact(rows), np.ones((1100, 1100), np.bool_)
    if kind == "subjects":
        allowed = (codes[:, None] == codes) | (codes[:, None] == 0) | (codes == 0)
    elif kind == "owners":
        allowed = codes[:, None] != codes
    near = [nearest_of(similarity, row, allowed[row], most=30, threshold=0.8) for row in range(1100)]
    return crowd, near, [similarity[row, each[-1]] if len(each) == 30 else 0 for row, each in enumerate(near)]


@pytest.mark.parametrize("seeds", [3, 64, 4096])
@pytest.mark.parametrize("kind", ["one subject", "subjects", "owners"])
def test_finds_of_each_row_the_nearest_of_brute_force(monkeypatch, seeds, kind):
    monkeypatch.setattr(incremental_join, "SEED_ROWS", seeds)
    crowd, near, expected_reach = crowd_of(kind)
    floors = np.full(1100, np.inf, dtype=np.float32)

    pairs, reach = nearest_pairs(crowd, np.arange(1100, dtype=np.int32), Limits(0.8, 30, floors))

    assert [pairs.right[pairs.left == row].tolist() for row in range(1100)] == near
    assert reach.tolist() == expected_reach


def test_a_pair_above_the_floor_of_the_other_row_is_found_though_it_is_beyond_the_nearest():
    rows = around(np.random.default_rng(2), 900, 24)
    chosen, similarity = np.arange(5, dtype=np.int32), exact(rows)
    floors = np.where(np.arange(900) % 2, np.float32(0.85), np.float32(np.inf))

    pairs, reach = nearest_pairs(
        Crowd(rows, np.zeros(900, np.uint32), np.zeros(900, np.uint32)), chosen, Limits(0.8, 20, floors)
    )

    for row in chosen:
        above = {other for other in range(1, 900, 2) if other != row and similarity[row, other] > np.float32(0.85)}
        near = nearest_of(similarity, row, np.ones(900, np.bool_), most=20, threshold=0.8)
        assert {*pairs.right[pairs.left == row].tolist()} == above | {*near}
        assert reach[row] == similarity[row, near[-1]]


def test_a_sample_tells_whether_rows_are_crowded():
    dense, sparse = around(np.random.default_rng(3), 3000, 24), around(np.random.default_rng(3), 3000, 24, spread=9)
    every = np.arange(3000, dtype=np.int32)

    assert is_crowded(dense, every, threshold=0.8, most=120)
    assert not is_crowded(sparse, every, threshold=0.8, most=120)


def test_a_row_is_not_taken_for_its_own_neighbour():
    apart = np.eye(2000, dtype=np.float32)

    assert not is_crowded(apart, np.arange(2000, dtype=np.int32), threshold=0.8, most=0)


# --- a night after another ---


def table_of(names, vectors, *, subjects=None, users=None):
    rows = "\n".join(f"{name} | text {name}" for name in names)
    table = drawn_facts(f"id | content\n---|---\n{rows}", vectors=dict(zip(names, vectors.tolist(), strict=True)))
    if subjects is not None:
        table = table.with_columns(subject=pl.Series(subjects, dtype=pl.String))
    if users is not None:
        table = table.with_columns(user_id=pl.Series(users, dtype=pl.String), project_id=pl.lit("web"))
    return table


def small_limits(patch):
    """Let stores of some dozen facts be crowded ones."""
    patch.setattr(incremental_join, "PACKED_ROWS", 2)
    patch.setattr(neighbours, "MOST_CANDIDATES", 3)
    patch.setattr(incremental_join, "SEED_ROWS", 16)


def found(table, **given):
    return neighbours_of(table, policy=POLICY, undone=NONE_UNDONE, **given)


def brute_force(table):
    """Return the pairs that belong to the result by the rule in words, one fact after another."""
    rows = np.array(table["embedding"].to_list(), dtype=np.float32)
    similarity, ids, subjects = exact(rows), table["id"].to_list(), table["subject"].to_list()
    active = [row for row, state in enumerate(table["state"]) if state == "active"]
    pairs = set()
    for row in active:
        others = [
            other
            for other in active
            if other != row
            and similarity[row, other] >= np.float32(0.8)
            and (subjects[row] == subjects[other] or None in (subjects[row], subjects[other]))
        ]
        others.sort(key=lambda other, row=row: (-similarity[row, other], ids[other]))
        candidates = sum(similarity[row, other] >= 0.92 for other in others)
        pairs |= {tuple(sorted((ids[row], ids[other]))) for other in others[: min(3, candidates) + 2]}
    return pairs


@st.composite
def dense_stores(draw):
    """Draw states of one dense store: facts come, leave, return, and some share a vector or name a subject."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(12, 40))
    vectors = around(rng, count, 6, spread=draw(st.sampled_from([0.3, 0.45, 0.6])))
    vectors[rng.random(count) < draw(st.sampled_from([0, 0.3]))] = vectors[0]
    subjects = [("ana", "ben", *[None] * 8)[place] for place in rng.integers(0, 10, count)]
    names = [f"f{place:02}" for place in rng.permutation(count)]
    table = table_of(names, vectors, subjects=subjects)
    leaving, coming = draw(st.sampled_from([0, 0.05, 0.4])), draw(st.sampled_from([0, 0.1, 0.6]))
    states, is_active = [], rng.random(count) < 0.7
    for _ in range(3):
        states.append(table.with_columns(state=pl.Series(np.where(is_active, "active", "archived").tolist())))
        is_active = np.where(is_active, rng.random(count) >= leaving, rng.random(count) < coming)
    return states


@settings(max_examples=examples(4), deadline=None)
@given(states=dense_stores())
def test_night_after_night_a_dense_store_gives_what_comparing_all_gives(states):
    with pytest.MonkeyPatch.context() as patch:
        small_limits(patch)
        earlier = incremental_join.NOTHING
        for table in states:
            whole, step = found(table), found(table, earlier=earlier)

            assert {*map(frozenset, whole.pairs.select("left_id", "right_id").rows())} == {
                *map(frozenset, brute_force(table))
            }
            assert step.pairs.equals(whole.pairs)
            assert step.cut == whole.cut
            earlier = step.compared
