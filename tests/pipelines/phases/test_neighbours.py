"""Which facts are looked at together, and that a night after another finds the same by comparing only what is new."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from conftest import WordEmbedder
from drawn import drawn, drawn_facts, embedded_facts
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_pairs import NONE_UNDONE

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases import incremental_join
from nous_pipelines.phases.neighbours import FOUND, fingerprints, neighbours_of
from nous_pipelines.snapshots.table_schemas import UNDONE

POLICY = NightPolicy(candidate_similarity=0.9, neighbour_similarity=0.6)


def facts(text):
    return embedded_facts(text, WordEmbedder())


def found(table, *, policy=POLICY, undone=NONE_UNDONE):
    return neighbours_of(table, policy=policy, undone=undone).pairs


def sides(table):
    return sorted((left, right) for left, right in table.select("left_id", "right_id").iter_rows())


def at(*angles):
    """Return the facts a, b, … in a plane, each at its angle in degrees."""
    names = "abcdefghijklmnop"[: len(angles)]
    turned = {
        name: (np.cos(np.radians(angle)), np.sin(np.radians(angle))) for name, angle in zip(names, angles, strict=True)
    }
    rows = "\n".join(f"{name} | text {name}" for name in names)
    return drawn_facts(f"id | content\n---|---\n{rows}", vectors=turned)


def test_candidates_always_meet_and_below_them_each_fact_meets_its_nearest_alone():
    table = at(0, 10, 40, 45)

    assert sides(found(table, policy=replace(POLICY, neighbour_count=1))) == [
        ("a", "b"),  # 10 degrees apart, as c and d by 5: candidates
        ("a", "c"),
        ("b", "c"),
        ("b", "d"),
        ("c", "d"),
    ]


def test_a_pair_stays_when_it_is_among_the_nearest_of_either():
    table = at(0, 30, 60, 90)

    near = found(table, policy=replace(POLICY, neighbour_count=1, neighbour_similarity=0.5))

    assert sides(near) == [("a", "b"), ("b", "c"), ("c", "d")]


def test_without_neighbours_only_candidates_are_looked_at():
    table = at(0, 20, 60)

    assert sides(found(table, policy=replace(POLICY, neighbour_count=0))) == [("a", "b")]


FRESH = datetime(2026, 6, 1, tzinfo=UTC)


def told(table, *fresh):
    """Return the facts, those named told after `FRESH` in that order, the others long before."""
    moments = {name: FRESH + timedelta(hours=1 + number) for number, name in enumerate(fresh)}
    said = [moments.get(name, FRESH - timedelta(days=300)) for name in table["id"]]
    return table.with_columns(learned_at=pl.Series(said, dtype=table.schema["learned_at"]))


def by_rank(table, *, stored=(), **policy):
    """Return the pairs that only those told or stored lately are in, none of which lie near each other."""
    far = {"neighbour_similarity": 0.999, "candidate_similarity": 0.999, "ranked_within": 2.0}
    limits = replace(POLICY, **{**far, **policy})
    came = table.filter(pl.col("id").is_in(stored)).select("agent_id", "id")
    pairs = neighbours_of(table, policy=limits, undone=NONE_UNDONE, fresh_from=FRESH, stored=came).pairs
    return sorted(tuple(sorted(pair)) for pair in sides(pairs))


def test_what_was_told_lately_meets_its_nearest_however_far_they_are():
    table = told(at(0, 40, 70, 100, 150), "a", "d")

    assert by_rank(table, ranked_count=1) == [("a", "b"), ("c", "d")]
    assert by_rank(table, ranked_count=2) == [("a", "b"), ("a", "c"), ("c", "d"), ("d", "e")]
    assert by_rank(table, ranked_count=2, ranked_similarity=0.5) == [("a", "b"), ("c", "d"), ("d", "e")]
    assert by_rank(table, ranked_count=0) == []


def test_what_was_told_long_ago_and_stored_lately_as_an_import_is_meets_its_nearest_too():
    table = told(at(0, 40, 70, 100, 150), "a")

    assert by_rank(table, ranked_count=1, stored=["d"]) == [("a", "b"), ("c", "d")]
    assert by_rank(table, ranked_count=1, stored=["d", "e"]) == [("a", "b"), ("c", "d"), ("d", "e")]
    assert by_rank(table, ranked_count=1, ranked_facts=1, stored=["d"]) == [("a", "b")], (
        "what was told last comes first"
    )


def test_a_copy_that_was_stored_lately_brings_the_others_before_their_nearest():
    table = told(at(0, 0, 60, 100))
    copies = table.with_columns(content=pl.Series(["Ana sails", "Ana sails", "Ben rows", "Cleo swims"]))

    assert by_rank(copies, ranked_count=1, stored=["b"]) == [("a", "c")]


def test_what_stands_far_behind_the_nearest_is_met_only_when_it_shares_words():
    table = told(at(0, 30, 36, 45), "a")
    others = table.with_columns(content=pl.Series(["harbour crane", "apples", "pears", "plums"]))
    alike = table.with_columns(content=pl.Series(["harbour crane", "apples", "pears", "harbour crane, new"]))
    of_one = others.with_columns(subject=pl.Series(["Ana", None, None, "Ana"]))

    assert by_rank(others, ranked_count=3, ranked_within=0.06) == [("a", "b"), ("a", "c")]
    assert by_rank(alike, ranked_count=3, ranked_within=0.06) == [("a", "b"), ("a", "c"), ("a", "d")]
    assert by_rank(of_one, ranked_count=3, ranked_within=0.12) == [("a", "b"), ("a", "c"), ("a", "d")]


def test_of_the_nearest_those_that_share_words_come_first():
    table = told(at(0, 30, 36, 42), "a")
    alike = table.with_columns(content=pl.Series(["harbour crane", "apples", "pears", "harbour crane, new"]))

    assert by_rank(alike, ranked_count=2, ranked_within=0.1) == [("a", "b"), ("a", "d")]
    assert by_rank(alike, ranked_count=2, ranked_within=0.1, neighbour_count=2) == [("a", "b"), ("a", "c")]


def test_what_was_only_confirmed_is_not_new():
    table = told(at(0, 40, 70), "a").with_columns(
        last_confirmed_at=pl.Series([None, FRESH + timedelta(hours=2), None], dtype=pl.Datetime("us", "UTC"))
    )

    assert by_rank(table, ranked_count=1) == [("a", "b")]
    assert by_rank(told(table, "a", "c"), ranked_count=1) == [("a", "b"), ("b", "c")]


def test_each_agent_has_room_for_its_latest_facts_whoever_else_told_more():
    table = told(at(0, 40, 80, 120, 0, 40), "e", "a", "c", "d").with_columns(
        agent_id=pl.Series(["aria", "aria", "aria", "aria", "bix", "bix"])
    )

    assert by_rank(table, ranked_count=1, ranked_facts=1) == [("c", "d"), ("e", "f")]


def test_how_many_are_compared_at_once_changes_nothing(monkeypatch):
    table = told(at(*range(0, 160, 10)), *"hgfedcba")
    whole = by_rank(table, ranked_count=3)

    monkeypatch.setattr(incremental_join, "BLOCK_ROWS", 3)
    monkeypatch.setattr(incremental_join, "BLOCK_COLUMNS", 5)

    assert by_rank(table, ranked_count=3) == whole


@pytest.mark.parametrize("within", [0.0, 0.06, 0.3])
def test_the_nearest_are_those_of_a_sort_of_all_however_many_are_within_reach(monkeypatch, within):
    words = ["harbour crane", "crane", "apples", "harbour", "pears crane", "apples and pears"]
    table = told(at(*[7 * number * number % 170 for number in range(16)]), *"hgfedcba")
    table = table.with_columns(content=pl.Series([f"{words[row % 6]} {row}" for row in range(16)]))
    limits = {"neighbour_count": 4, "ranked_count": 3, "ranked_within": within}
    of_all = by_rank(table, **limits)

    for seeds in (1, 4, 8, 16):  # one bounds nothing: all within reach are sorted; four bound the nearest four
        monkeypatch.setattr(incremental_join, "SEED_ROWS", seeds)

        assert len(of_all) > 0
        assert by_rank(table, **limits) == of_all


def test_facts_on_other_subjects_take_nobodys_place_among_the_nearest():
    table = at(0, 30, 45).with_columns(subject=pl.Series(["ana", "ben", "ana"]))

    near = found(table, policy=replace(POLICY, neighbour_count=1))

    assert sides(near) == [("a", "c")]


def test_facts_of_one_slot_meet_whatever_their_words_in_order_and_with_the_latest():
    table = facts("""
        id | content     | slot | learned_at
        ---|-------------|------|-----------
        a  | one two     | port | 2026-05-01
        b  | red blue    | port | 2026-05-02
        c  | oak pine    | port | 2026-05-03
        d  | wine bread  | port | 2026-05-04
        e  | horse river | -    | 2026-05-04
    """)

    assert sides(found(table)) == [("a", "b"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]


@pytest.mark.parametrize("column", ["scope", "user_id", "project_id", "embedding_space_id", "agent_id", "subject"])
def test_facts_of_one_slot_in_two_places_or_on_two_subjects_do_not_meet(column):
    table = facts(f"""
        id | content | slot | {column}
        ---|---------|------|---------
        a  | one two | port | {"project" if column == "scope" else "one"}
        b  | red sky | port | {"private" if column == "scope" else "other"}
    """)

    assert found(table).is_empty()


def test_the_earlier_statement_is_left_and_a_confirmation_counts_as_saying_it_again():
    table = facts("""
        id | content | slot | learned_at | last_confirmed_at | valid_from
        ---|---------|------|------------|-------------------|-----------
        a  | one two | port | 2026-05-01 | 2026-05-05        | -
        b  | red sky | port | 2026-05-03 | -                 | -
        c  | old oak | pine | 2026-05-03 | -                 | 2020-01-01
        d  | new oak | pine | 2026-05-01 | -                 | -
        e  | to be   | be   | 2026-05-01 | -                 | -
        f  | or not  | be   | 2026-05-01 | -                 | -
    """)

    pairs = found(table)

    assert sides(pairs) == [("b", "a"), ("c", "d"), ("e", "f")]
    assert dict(pairs.select("left_id", "is_ordered").iter_rows()) == {"b": True, "c": True, "e": False}


def test_a_copy_said_last_makes_what_it_says_the_later_statement():
    table = facts("""
        id | content | slot | learned_at
        ---|---------|------|-----------
        a  | one two | port | 2026-05-01
        b  | red sky | port | 2026-05-03
        c  | one two | port | 2026-05-05
    """)

    assert sides(found(table)) == [("b", "a")]


def test_users_of_a_project_meet_only_where_they_may_say_the_same():
    table = at(0, 10, 40, 0, 0, 0).with_columns(
        project_id=pl.Series(["web", "web", "web", "web", "api", None]),
        user_id=pl.Series(["ana", "ben", "eva", "ana", "ben", "ben"]),
    )

    pairs = found(table)

    assert sides(pairs) == [("a", "b"), ("a", "d"), ("b", "d")]
    assert pairs.filter("is_across_users").select("left_id", "right_id").rows() == [("a", "b"), ("b", "d")]


def test_what_several_users_say_word_for_word_meets_once_for_each_of_them():
    table = facts("""
        id | content | user_id | project_id | scope
        ---|---------|---------|------------|--------
        a  | one two | ana     | web        | private
        b  | one two | ben     | web        | private
        c  | one two | eva     | web        | private
        d  | one two | ana     | web        | private
        e  | one two | leo     | web        | system
        f  | one two | leo     | api        | private
    """)

    assert sides(found(table)) == [("a", "b"), ("a", "c")]


def test_of_copies_a_person_took_apart_one_speaks_for_the_others():
    table = facts("""
        id | content
        ---|--------------
        a  | one two
        b  | one two
        c  | one two
        d  | one two three
    """)
    undone = drawn("""
        agent_id | kind  | targets
        ---------|-------|--------
        aria     | merge | b, c
        aria     | merge | b, c
        ben      | merge | a, b
        aria     | tier  | a, b
    """, UNDONE)  # fmt: skip

    made = neighbours_of(table, policy=POLICY, undone=undone)

    assert sides(made.pairs) == [("a", "d")]
    assert made.copies.select("member_id", "representative_id", "is_silent").rows() == [
        ("a", "a", False),
        ("b", "a", False),
        ("c", "c", True),
        ("d", "d", False),
    ]


def test_an_undone_merge_of_thousands_of_copies_costs_no_more_than_they_do():
    ids = [f"f{place:05}" for place in range(4000)]
    rows = "\n".join(f"{memory} | one two" for memory in ids)
    table = facts(f"id | content\n---|---\n{rows}")
    undone = pl.DataFrame({"agent_id": ["aria"], "kind": ["merge"], "targets": [ids]}, schema=UNDONE)

    made = neighbours_of(table, policy=POLICY, undone=undone)

    assert made.pairs.is_empty()
    assert made.copies["is_silent"].sum() == 3999


def test_spaces_of_two_widths_lie_in_one_store():
    wide = drawn_facts("id | content\n---|---\na | one\nb | two", vectors={"a": (1, 0, 0), "b": (1, 0, 0)})
    narrow = drawn_facts("id | content\n---|---\nc | one\nd | two", vectors={"c": (1, 0), "d": (1, 0)})
    table = pl.concat([wide.with_columns(embedding_space_id=pl.lit("wide")), narrow])

    assert sides(found(table)) == [("a", "b"), ("c", "d")]


def test_no_facts_have_no_neighbours():
    made = neighbours_of(at(0).clear(), policy=POLICY, undone=NONE_UNDONE)

    assert made.pairs.schema == pl.Schema(FOUND)
    assert made.pairs.is_empty()
    assert made.compared.rows.is_empty()


def test_a_fingerprint_changes_with_a_single_bit():
    rows = np.random.default_rng(1).standard_normal((50, 7)).astype(np.float32)
    changed = rows.copy()
    changed.view(np.uint32)[np.arange(50), np.arange(50) % 7] ^= 1

    marks = fingerprints(np.concatenate([rows, changed]))

    assert len(set(marks.tolist())) == 100


# --- a night after another ---


@st.composite
def stores(draw):
    """Draw two states of one store: facts come and go, are edited, change place, and take up again."""
    words = st.lists(st.sampled_from(["one", "two", "red", "sky", "oak"]), min_size=1, max_size=4).map(" ".join)
    row = st.tuples(
        words,
        st.sampled_from(["active", "active", "active", "archived"]),
        st.sampled_from(["ana", "ben", None]),
        st.sampled_from(["web", None]),
        st.sampled_from(["aria", "bob"]),
        st.sampled_from([None, "port"]),
    )
    before = draw(st.lists(row, min_size=1, max_size=24))
    after = [draw(row) if draw(st.integers(0, 4)) == 0 else kept for kept in before]
    after += draw(st.lists(row, max_size=8))
    return [table_of(rows, draw(st.permutations(range(len(rows))))) for rows in (before, after)]


def table_of(rows, order):
    cells = [
        f"f{place:02} | {text} | {state} | {user or '-'} | {project or '-'} | {agent} | {slot or '-'}"
        for place, (text, state, user, project, agent, slot) in enumerate(rows)
    ]
    header = "id | content | state | user_id | project_id | agent_id | slot\n---|---|---|---|---|---|---\n"
    return facts(header + "\n".join(cells[place] for place in order))


@settings(max_examples=examples(8), deadline=None)
@given(states=stores(), least=st.sampled_from([0.6, 0.7]), later=st.sampled_from([0.6, 0.6, 0.65]))
def test_comparing_only_what_is_new_finds_what_comparing_all_finds(states, least, later):
    before, after = states
    earlier = neighbours_of(before, policy=replace(POLICY, neighbour_similarity=least), undone=NONE_UNDONE)
    policy = replace(POLICY, neighbour_similarity=later)

    whole = neighbours_of(after, policy=policy, undone=NONE_UNDONE)
    step = neighbours_of(after, policy=policy, undone=NONE_UNDONE, earlier=earlier.compared)

    assert step.pairs.equals(whole.pairs)
    assert step.compared.rows.equals(whole.compared.rows)
    assert step.compared.pairs.equals(whole.compared.pairs)


@settings(max_examples=examples(8), deadline=None)
@given(states=stores(), told_lately=st.integers(0, 8), most=st.sampled_from([0, 2, 20]))
def test_new_facts_that_have_met_all_that_is_near_are_not_compared_and_miss_nothing(states, told_lately, most):
    before, after = states
    policy = replace(POLICY, neighbour_count=most, ranked_count=1)
    earlier = neighbours_of(before, policy=policy, undone=NONE_UNDONE)

    whole = neighbours_of(after, policy=policy, undone=NONE_UNDONE)
    step = neighbours_of(
        told(after, *after["id"].head(told_lately)),
        policy=policy,
        undone=NONE_UNDONE,
        earlier=earlier.compared,
        fresh_from=FRESH,
    )

    assert step.compared.rows.equals(whole.compared.rows)
    assert step.compared.pairs.equals(whole.compared.pairs)


def large_place():
    """Return 900 facts of one place, f000 to f899."""
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((900, 8))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    names = [f"f{place:03}" for place in range(900)]
    rows = "\n".join(f"{name} | text {name}" for name in names)
    return drawn_facts(f"id | content\n---|---\n{rows}", vectors=dict(zip(names, vectors.tolist(), strict=True)))


@pytest.mark.parametrize(("most", "least_joined", "most_joined"), [(20, 0, 0), (2, 1, 9)])
def test_a_large_place_goes_once_past_its_new_facts_and_again_past_those_near_too_many(
    monkeypatch, most, least_joined, most_joined
):
    policy = replace(POLICY, neighbour_similarity=0.85, neighbour_count=most, ranked_count=2)
    last = [f"f{place}" for place in range(890, 900)]
    table = told(large_place(), *last)
    known = neighbours_of(table.filter(~pl.col("id").is_in(last)), policy=policy, undone=NONE_UNDONE).compared
    whole = neighbours_of(table, policy=policy, undone=NONE_UNDONE, fresh_from=FRESH)
    join, joined = incremental_join._join_fresh, []

    def counted(rows, fresh, **limits):
        joined.append(int(fresh.sum()))
        return join(rows, fresh, **limits)

    monkeypatch.setattr(incremental_join, "_join_fresh", counted)

    step = neighbours_of(table, policy=policy, undone=NONE_UNDONE, earlier=known, fresh_from=FRESH)

    assert step.pairs.equals(whole.pairs)
    assert least_joined <= sum(joined) <= most_joined


def test_a_large_place_with_a_few_new_facts_is_compared_with_them_alone(monkeypatch):
    table = large_place()
    whole = neighbours_of(table, policy=POLICY, undone=NONE_UNDONE)
    earlier = neighbours_of(table.filter(pl.col("id") > "f010"), policy=POLICY, undone=NONE_UNDONE)
    monkeypatch.setattr("nous_pipelines.phases.incremental_join._join_all", None)

    step = neighbours_of(table, policy=POLICY, undone=NONE_UNDONE, earlier=earlier.compared)

    assert step.pairs.equals(whole.pairs)
    assert len(whole.pairs) > 1000


def test_a_night_without_news_compares_nothing(monkeypatch):
    table = at(0, 5, 10)
    earlier = neighbours_of(table, policy=POLICY, undone=NONE_UNDONE)
    monkeypatch.setattr("nous_pipelines.phases.incremental_join.similar_pairs", None)

    again = neighbours_of(table, policy=POLICY, undone=NONE_UNDONE, earlier=earlier.compared)

    assert again.pairs.equals(earlier.pairs)
