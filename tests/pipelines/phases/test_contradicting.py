"""What may not retire a fact opens a contradiction; and whatever the verdicts, no circle arises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from drawn import USUAL_FACT
from drawn_pairs import THREE_DAYS, USUAL_PAIR, opened, phase_of
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.updates import GIVES_WAY
from nous_pipelines.snapshots.table_schemas import FACTS


@pytest.mark.parametrize(
    ("columns", "cells", "pair", "why"),
    [
        ("trust", ("80", "50"), "updates | yes | 0.9", "trusted less"),
        ("is_pinned", ("yes", "no"), "updates | yes | 0.9", "the earlier one is pinned"),
        ("trust", ("50", "50"), "updates | yes | 0.79", "not sure"),
        ("trust", ("50", "50"), "updates | no | 0.9", "nobody knows which was stated later"),
        ("trust", ("50", "50"), "contradicts | yes | 0.5", "they can't both be so"),
    ],
)
def test_what_may_not_retire_a_fact_opens_a_contradiction_and_both_stay(columns, cells, pair, why):
    phase = phase_of(
        f"""
        id | learned_at | {columns}
        ---|------------|----------
        b  | 2026-05-01 | {cells[0]}
        a  | 2026-05-02 | {cells[1]}
        """,
        f"""
        left_id | right_id | verdict | is_ordered | confidence
        --------|----------|---------|------------|-----------
        b       | a        | {pair}
        """,
    )

    (proposal,) = phase.proposals
    contradiction, *marks = proposal.changes
    assert (proposal.kind, proposal.targets) == ("contradiction", ("a", "b"))
    assert (contradiction.set["memory_a"], contradiction.set["memory_b"]) == ("a", "b")
    assert contradiction.set["detected_at"] == "2026-06-02T00:00:00+00:00"
    assert contradiction.set["judgement"]["model"] == "offline:1"
    assert [(mark.kind, mark.id, mark.set, mark.action) for mark in marks] == [
        ("fact", memory, {"contradiction_status": "open"}, "contradicted") for memory in ("a", "b")
    ]
    assert why in proposal.reason
    assert phase.proposed == {"aria": 1}


@pytest.mark.parametrize("pinned", ["a", "b"])
def test_a_pinned_later_value_and_a_confidence_of_exactly_four_fifths_retire_as_any_other(pinned):
    phase = phase_of(
        f"""
        id | learned_at | is_pinned
        ---|------------|----------
        a  | 2026-05-01 | {"yes" if pinned == "a" else "no"}
        b  | 2026-05-02 | {"yes" if pinned == "b" else "no"}
        """,
        """
        left_id | right_id | confidence
        --------|----------|-----------
        a       | b        | 0.8
        """,
    )

    assert [proposal.kind for proposal in phase.proposals] == ["contradiction" if pinned == "a" else "supersede"]


def test_a_fact_marked_already_is_not_marked_again():
    phase = phase_of(
        """
        id | contradiction_status
        ---|---------------------
        a  | open
        b  | none
        """,
        """
        left_id | right_id | verdict
        --------|----------|------------
        a       | b        | contradicts
        """,
    )

    (proposal,) = phase.proposals
    assert [(change.kind, change.id) for change in proposal.changes[1:]] == [("fact", "b")]
    assert [read.id for read in proposal.read_set] == ["a", "b"]


def test_contradictions_that_share_a_fact_are_opened_together():
    phase = phase_of(
        """
        id | learned_at
        ---|-----------
        a  | 2026-05-01
        b  | 2026-05-01
        c  | 2026-05-01
        d  | 2026-05-01
        e  | 2026-05-01
        """,
        """
        left_id | right_id | verdict
        --------|----------|------------
        a       | b        | contradicts
        d       | e        | contradicts
        b       | c        | contradicts
        """,
    )

    assert [proposal.targets for proposal in phase.proposals] == [("a", "b", "c"), ("d", "e")]
    assert opened(phase) == [("a", "b"), ("b", "c"), ("d", "e")]
    assert phase.proposed == {"aria": 3}
    assert "1 more that share" in phase.proposals[0].reason


def test_a_contradiction_with_a_fact_that_gives_way_tonight_is_not_opened():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id | verdict
        --------|----------|------------
        a       | b        | updates
        a       | c        | contradicts
        """,
    )

    assert [proposal.kind for proposal in phase.proposals] == ["supersede"]
    assert phase.left == {"aria": {GIVES_WAY: 1}}


MEMORIES = "abcdefgh"
PAIRS = [(left, right) for place, left in enumerate(MEMORIES) for right in MEMORIES[place + 1 :]]


@st.composite
def stores(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Eight facts said in any order, some at once, some confirmed, and whatever verdicts on their pairs."""
    days = st.integers(0, 5)
    rows: list[dict[str, Any]] = [
        {
            **USUAL_FACT,
            "id": memory,
            "learned_at": datetime(2026, 5, 1, tzinfo=UTC) + timedelta(days=draw(days)),
            "last_confirmed_at": draw(
                st.none() | days.map(lambda day: datetime(2026, 5, 1, tzinfo=UTC) + timedelta(days=day))
            ),
            "trust": draw(st.sampled_from((50, 50, 80))),
            "is_pinned": draw(st.sampled_from((False, False, False, True))),
        }
        for memory in MEMORIES
    ]
    found = draw(st.lists(st.sampled_from(PAIRS), unique=True, max_size=20))
    pairs = [
        {
            **USUAL_PAIR,
            **dict(zip(("left_id", "right_id"), draw(st.permutations(pair)), strict=True)),
            "verdict": draw(st.sampled_from(("updates", "updates", "updates", "contradicts", "compatible", "same"))),
            "is_ordered": draw(st.booleans()),
            "confidence": draw(st.sampled_from((0.5, 0.9))),
        }
        for pair in found
    ]
    return pl.DataFrame(rows, schema=FACTS), pl.DataFrame(pairs, schema=JUDGED)


@given(stores())
@settings(max_examples=examples(12), deadline=None)
def test_whatever_the_verdicts_no_circle_arises_and_every_pair_is_accounted_for(store):
    table, pairs = store

    phase = phase_of(table, pairs)

    heirs = {c.id: c.set["superseded_by"] for p in phase.proposals if p.kind == "supersede" for c in p.changes}
    known = {row["id"]: row for row in table.to_dicts()}
    for memory in heirs:
        seen = [memory]
        while heirs[seen[-1]] in heirs:
            assert heirs[seen[-1]] not in seen
            seen.append(heirs[seen[-1]])
        assert known[heirs[seen[-1]]]["trust"] >= known[memory]["trust"]
        assert not known[memory]["is_pinned"]
    assert phase.unexplained() == {}
    assert sum(phase.proposed.values()) + sum(phase.reasons().values()) == sum(phase.eligible.values())
    assert not {memory for pair in opened(phase) for memory in pair} & set(heirs)


@given(stores(), st.randoms())
@settings(max_examples=examples(6), deadline=None)
def test_the_order_of_rows_decides_nothing(store, random):
    table, pairs = store
    shuffled = [each[random.sample(range(len(each)), len(each))] for each in (table, pairs)]

    assert phase_of(*shuffled).as_dict() == phase_of(table, pairs).as_dict()


@given(stores())
@settings(max_examples=examples(6), deadline=None)
def test_every_row_a_proposal_changes_is_changed_once_and_was_read(store):
    phase = phase_of(*store)

    for proposal in phase.proposals:
        changed = [change.id for change in proposal.changes if change.kind == "fact"]
        assert len(changed) == len(set(changed))
        assert set(changed) <= {read.id for read in proposal.read_set}
    assert len({proposal.id for proposal in phase.proposals}) == len(phase.proposals)
