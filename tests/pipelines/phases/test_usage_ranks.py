"""How use becomes a rank weight: what lifts, what lowers, what fades, and what stays."""

from __future__ import annotations

import time
from datetime import timedelta
from math import log

import polars as pl
import pytest
from drawn import NONE_UNDONE
from drawn_uses import NIGHT, days_before, episodes, facts, procedures, undone, uses
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.phases.usage import (
    HALF_LIVES_DAYS,
    heirs,
    moved_weight,
    rank_phase,
    usage_ranks,
    usage_score,
)

POLICY = NightPolicy()


def ranks(known, used, *, said=None, learned=None, policy=POLICY, night=NIGHT):
    tables = {
        "facts": known,
        "episodes": episodes() if said is None else said,
        "procedures": procedures() if learned is None else learned,
        "uses": used,
    }
    return usage_ranks(tables, policy=policy, night=night)


def phase(known, used, *, taken_back=NONE_UNDONE, policy=POLICY, **others):
    table = ranks(known, used, policy=policy, **others)
    return rank_phase({"usage_ranks": table, "undone": taken_back}, policy=policy, night=NIGHT)


def weights(known, used, **others):
    """The weight that use asks for, by memory."""
    return dict(ranks(known, used, **others).select("id", "weight").iter_rows())


def moves(found):
    """What becomes of each weight, by memory."""
    return {proposal.targets[0]: proposal.changes[0].set["rank_weight"] for proposal in found.proposals}


def moments(text, at):
    """Uses at exact moments, for the score alone."""
    drawn = uses(text)
    ages = [at - timedelta(days=(end_of(NIGHT).date() - day).days) for day in drawn["day"]]
    return drawn.rename({"memory_id": "id"}).with_columns(used_at=pl.Series(ages, dtype=pl.Datetime("us", "UTC")))


def test_the_score_is_the_mean_of_three_estimates_of_uses_per_day():
    at = days_before(0)
    used = moments("memory_id | days_ago | cited\n---|---|---\na | 14 | 1", at)

    (lift,) = usage_score(used, at=at)["lift"]

    assert lift == pytest.approx(sum(log(2) / h * 2 ** (-14 / h) for h in HALF_LIVES_DAYS) / 3)


def test_steady_use_scores_its_rate_per_day():
    at = days_before(0)
    used = moments("memory_id | days_ago | cited\n---|---|---\n" + "\n".join(f"a | {d} | 1" for d in range(2000)), at)

    (lift,) = usage_score(used.with_columns(used_at=pl.col("used_at") - timedelta(hours=12)), at=at)["lift"]

    assert lift == pytest.approx(1, rel=0.02)


def test_being_shown_without_a_citation_promotes_nothing():
    known = facts("id\n---\na\nb\nc")
    used = uses("""
        memory_id | days_ago | retrieved | cited
        ----------|----------|-----------|------
        a         | 2        | 1         | 1
        b         | 2        | 1         | 0
    """)

    asked = weights(known, used)

    assert asked["a"] > 1
    assert asked["b"] == 1
    assert "c" not in asked


def test_ignored_lowers():
    known = facts("id\n---\na\nb")
    used = uses("""
        memory_id | days_ago | retrieved | cited | ignored
        ----------|----------|-----------|-------|--------
        a         | 2        | 3         | 0     | 3
        b         | 2        | 3         | 3     | 0
    """)

    found = phase(known, used)

    assert {p.targets[0]: p.kind for p in found.proposals} == {"a": "demote", "b": "promote"}
    assert moves(found)["a"] < 1 < moves(found)["b"]


def test_use_fades():
    known = facts("id\n---\na\nb\nc")
    used = uses("""
        memory_id | days_ago | cited
        ----------|----------|------
        a         | 1        | 1
        b         | 20       | 1
        c         | 200      | 1
    """)

    asked = weights(known, used)

    assert asked["a"] > asked["b"] > asked["c"] > 1


def test_a_weight_comes_back_to_one_once_its_use_is_forgotten():
    known = facts("id | rank_weight\n---|---\na | 1.4\nb | 0.75")

    found = phase(known, uses())

    assert moves(found) == {"a": 1.0, "b": 1.0}
    assert found.proposals[0].reason == "not used in the last 365 days: weight 1.40 → 1.00"


def test_an_agent_that_recalls_much_and_one_that_recalls_little_are_measured_alike():
    known = facts("id | agent_id\n---|---\na | aria\nb | aria\nx | ben\ny | ben")
    rows = ["memory_id | agent_id | days_ago | retrieved | cited", "---|---|---|---|---"]
    rows += [f"a | aria | {day} | 1 | 1" for day in range(1, 90)]
    rows += [f"b | aria | {day} | 1 | 1" for day in range(1, 90, 9)]
    rows += [f"x | ben | {day} | 1 | 1" for day in range(1, 90, 9)]

    asked = weights(known, uses("\n".join(rows)))

    assert asked["a"] == pytest.approx(asked["x"], abs=0.05)
    assert asked["b"] < asked["x"] - 0.1


def test_the_uses_of_a_superseded_fact_lift_its_active_successor():
    known = facts("""
        id | state      | superseded_by | row_version
        ---|------------|---------------|------------
        a  | superseded | b             | 2
        b  | superseded | c             | 3
        c  | active     | -             | 4
        d  | active     | -             | 5
    """)
    used = uses("memory_id | days_ago | cited\n---|---|---\na | 3 | 1")

    (proposal,) = phase(known, used).proposals

    assert proposal.targets == ("c",)
    assert proposal.read_set == (Read("fact", "c", 4), Read("fact", "a", 2), Read("fact", "b", 3))


def test_facts_that_succeed_each_other_in_a_circle_have_no_heir():
    known = facts("""
        id | state      | superseded_by
        ---|------------|--------------
        a  | superseded | b
        b  | superseded | a
        c  | superseded | d
        d  | active     | -
    """)

    assert heirs(known).rows() == [("aria", "c", "d")]


def test_a_successor_of_another_agent_inherits_nothing():
    known = facts(
        "id | agent_id | state | superseded_by\n---|---|---|---\na | ben | superseded | b\nb | aria | active | -"
    )

    assert heirs(known).is_empty()


def test_closed_episodes_and_active_procedures_are_ranked_too():
    said = episodes("id | state\n---|---\ne | closed\no | open")
    learned = procedures("id | state\n---|---\np | active\nr | review")
    used = pl.concat(
        uses(f"memory_id | days_ago | cited\n---|---|---\n{memory} | 1 | 2", kind=kind)
        for memory, kind in (("e", "episode"), ("o", "episode"), ("p", "procedure"), ("r", "procedure"))
    )

    found = phase(facts(), used, said=said, learned=learned)

    assert {p.targets[0]: p.changes[0].kind for p in found.proposals} == {"e": "episode", "p": "procedure"}


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [("is_pinned", "yes", "pinned"), ("is_rewound", "yes", "changed after the end of the night")],
)
def test_what_is_pinned_or_rewound_keeps_its_weight(column, value, reason):
    known = facts(f"id | {column}\n---|---\na | {value}")
    used = uses("memory_id | days_ago | cited\n---|---|---\na | 1 | 5")

    found = phase(known, used)

    assert found.proposals == []
    assert found.left == {"aria": {reason: 1}}


@pytest.mark.parametrize("kind", ["promote", "demote"])
def test_what_a_person_took_back_is_not_proposed_again(kind):
    known = facts("id\n---\na\nb")
    used = uses("memory_id | days_ago | cited\n---|---|---\na | 1 | 5\nb | 1 | 5")

    found = phase(known, used, taken_back=undone(kind, "a"))

    assert list(moves(found)) == ["b"]
    assert found.left == {"aria": {"a person took back what its use had made of its weight": 1}}


def test_the_change_names_the_weight_and_the_reason_says_how_it_was_earned():
    known = facts("id | row_version\n---|---\na | 7")
    used = uses("""
        memory_id | days_ago | retrieved | cited | ignored
        ----------|----------|-----------|-------|--------
        a         | 1        | 5         | 2     | 1
        a         | 9        | 2         | 2     | 0
        a         | 200      | 9         | 9     | 0
    """)

    (proposal,) = phase(known, used).proposals

    (change,) = proposal.changes
    new = change.set["rank_weight"]
    assert change == Change("fact", "a", set={"rank_weight": new}, action="promoted")
    assert proposal.read_set == (Read("fact", "a", 7),)
    assert proposal.reason == f"shown 7 times, cited 4 times, ignored once in the last 30 days: weight 1.00 → {new:.2f}"
    assert set(proposal.evidence) == {"lift", "drop", "pace", "relative", "weight"}


def test_the_reason_says_whose_uses_were_counted_besides_its_own():
    known = facts("""
        id | state      | superseded_by
        ---|------------|--------------
        a  | superseded | b
        b  | superseded | c
        c  | active     | -
    """)
    used = uses("""
        memory_id | days_ago | retrieved | cited
        ----------|----------|-----------|------
        a         | 9        | 9         | 8
        b         | 5        | 4         | 3
        c         | 1        | 2         | 1
    """)
    long_ago = uses("memory_id | days_ago | retrieved | cited\n---|---|---|---\nb | 40 | 9 | 8")

    (proposal,) = phase(known, used).proposals
    (older,) = phase(known, long_ago).proposals

    words = "shown 15 times, cited 12 times in the last 30 days, counting the uses of 2 facts it replaced: weight"
    assert proposal.reason.startswith(words)
    assert older.reason.startswith("last used on 22 May 2026, counting the uses of a fact it replaced: weight")


def test_a_night_after_the_one_that_moved_the_weights_moves_none():
    known = facts("id\n---\na\nb\nc")
    used = uses("memory_id | days_ago | cited | ignored\n---|---|---|---\na | 1 | 5 | 0\nb | 30 | 1 | 0\nc | 2 | 0 | 4")
    found = moves(phase(known, used))

    later = known.with_columns(rank_weight=pl.col("id").replace_strict(found, default=1.0, return_dtype=pl.Float64))

    assert found
    assert phase(later, used).proposals == []


def test_nights_without_new_use_write_a_fading_weight_only_now_and_then():
    known = facts("id\n---\na\nb")
    rows = ["memory_id | days_ago | cited", "---|---|---", "a | 1 | 3", *(f"b | {d} | 1" for d in range(1, 200, 3))]
    used = uses("\n".join(rows))
    written = []

    for later in range(0, 90, 3):
        night = NIGHT + timedelta(days=later)
        tables = {"usage_ranks": ranks(known, used, night=night), "undone": NONE_UNDONE}
        moved = rank_phase(tables, policy=POLICY, night=night)
        written += [(later, *entry) for entry in moves(moved).items()]
        current = moves(moved)
        known = known.with_columns(
            rank_weight=pl.when(pl.col("id").is_in(list(current)))
            .then(pl.col("id").replace_strict(current, default=None, return_dtype=pl.Float64))
            .otherwise("rank_weight")
        )

    of_a = [weight for _, memory, weight in written if memory == "a"]
    assert 1 < len(of_a) <= 8
    assert sorted(of_a, reverse=True) == of_a


@settings(max_examples=examples(15), deadline=None)
@given(
    asked=st.floats(0.7, 1.5),
    now=st.integers(14, 30).map(lambda steps: steps / 20),
    step=st.sampled_from([0.01, 0.05, 0.1, 0.25, 1.0]),
)
def test_weights_stay_within_their_bounds_and_settle_at_once(asked, now, step):
    policy = NightPolicy(rank_step=step)
    table = pl.DataFrame({"weight": [asked], "rank_weight": [now]})

    (moved,) = table.select(new=moved_weight(policy))["new"]

    if moved is not None:
        assert policy.min_demotion <= moved <= policy.max_promotion
        settled = table.with_columns(rank_weight=pl.lit(moved)).select(new=moved_weight(policy))
        assert settled["new"].to_list() == [None]


def test_what_was_cited_within_the_days_of_the_probes_is_not_lowered():
    known = facts("id | rank_weight\n---|---\na | 1.5\nb | 1.5\nc | 1.5")
    used = uses(
        "memory_id | days_ago | cited | ignored\n---|---|---|---\na | 20 | 1 | 0\nb | 20 | 0 | 1\nc | 40 | 1 | 0"
    )

    found = phase(known, used)

    assert sorted(moves(found)) == ["b", "c"]
    assert found.left == {"aria": {"cited too lately to be lowered": 1}}


def test_every_memory_with_a_use_or_a_weight_is_accounted_for():
    known = facts("id | rank_weight | is_pinned\n---|---|---\na | 1 | no\nb | 1.5 | yes\nc | 0.8 | no\nd | 1 | no")
    used = uses("memory_id | days_ago | cited\n---|---|---\na | 1 | 1")

    found = phase(known, used)

    assert found.eligible == {"aria": 3}
    assert found.unexplained() == {}


def test_uses_after_the_night_do_not_count():
    known = facts("id\n---\na")
    used = uses("memory_id | days_ago | cited\n---|---|---\na | 0 | 5")

    assert phase(known, used).proposals == []


def test_the_order_of_rows_changes_nothing():
    known = facts("id\n---\n" + "\n".join(f"m{n}" for n in range(40)))
    rows = [f"m{n * n % 40} | {n * 7 % 300 + 1} | {n % 3}" for n in range(300)]
    used = uses("\n".join(["memory_id | days_ago | cited", "---|---|---", *rows]))

    first = phase(known, used)
    second = phase(known.sample(fraction=1, shuffle=True, seed=1), used.sample(fraction=1, shuffle=True, seed=2))

    assert first.as_dict() == second.as_dict()


def test_a_hundred_thousand_facts_with_a_million_uses_are_ranked_in_seconds():
    count, used_rows = 100_000, 1_000_000
    known = facts("id\n---\na").drop("id").join(pl.DataFrame({"id": [f"{n:06d}" for n in range(count)]}), how="cross")
    of = pl.int_range(used_rows, eager=True).hash(1)
    used = pl.DataFrame(
        {
            "agent_id": pl.repeat("aria", used_rows, eager=True),
            "memory_id": (of % count).cast(pl.String).str.zfill(6),
            "memory_kind": pl.repeat("fact", used_rows, eager=True),
            "day": NIGHT - pl.Series((of // count) % 365).cast(pl.Duration("ms")) * 86_400_000,
            "retrieved": pl.repeat(2, used_rows, eager=True),
            "cited": (of % 7 == 0).cast(pl.Int64),
            "ignored": (of % 5 == 0).cast(pl.Int64),
        }
    ).with_columns(pl.col("day").cast(pl.Date))
    began = time.process_time()

    ranked = ranks(known, used)

    assert time.process_time() - began < 10, "two seconds on an idle machine"
    assert len(ranked) > 0.99 * count
