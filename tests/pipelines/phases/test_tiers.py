"""Episodes condensed by age: which move, what they keep, what can be restored, and why others stay."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from drawn_episodes import NIGHT, STORY, USUAL, cold, episodes, moves, only, phase_of, tables_of

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.chunk_work import episode_summaries
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.phases.tiers import LEVELS, TIERS
from nous_pipelines.snapshots.table_schemas import EPISODES


def test_age_at_the_end_of_the_night_decides_the_tier():
    table = episodes("""
        id      | ended_at            | compression_tier
        --------|---------------------|-----------------
        days_6  | 2026-06-24 00:00:01 | raw
        days_7  | 2026-06-24          | raw
        days_29 | 2026-06-01 00:00:01 | summary
        days_30 | 2026-06-01          | summary
        days_89 | 2026-04-02 00:00:01 | compressed
        days_90 | 2026-04-02          | compressed
    """)

    assert moves(table) == {"days_7": "summary", "days_30": "compressed", "days_90": "fossil"}


def test_an_episode_moves_one_tier_a_night_however_old_it_is():
    table = episodes("""
        id | ended_at   | compression_tier
        ---|------------|-----------------
        a  | 2025-01-20 | raw
        b  | 2025-01-20 | summary
        c  | 2025-01-20 | compressed
    """)

    assert moves(table) == {"a": "summary", "b": "compressed", "c": "fossil"}


def test_below_its_summary_the_age_of_an_episode_counts_from_when_a_writer_completed_it():
    table = episodes("""
        id        | ended_at   | compression_tier | completed_at
        ----------|------------|------------------|--------------------
        new       | 2025-01-20 | raw              | 2026-06-30 12:00:00
        tomorrow  | 2025-01-20 | summary          | 2026-07-02
        days_29   | 2025-01-20 | summary          | 2026-06-01 00:00:01
        days_30   | 2025-01-20 | summary          | 2026-06-01
        days_89   | 2025-01-20 | compressed       | 2026-04-02 00:00:01
        days_90   | 2025-01-20 | compressed       | 2026-04-02
        afterward | 2026-06-02 | summary          | 2026-01-01
    """)

    assert moves(table) == {"new": "summary", "days_30": "compressed", "days_90": "fossil"}


def test_an_episode_whose_summary_no_writer_made_keeps_it():
    table = episodes("""
        id        | ended_at   | compression_tier | completed_at | completion_note
        ----------|------------|------------------|--------------|----------------
        new       | 2025-01-20 | raw              | -            | -
        old       | 2025-01-20 | summary          | -            | -
        set_aside | 2025-01-20 | summary          | 2026-06-20   | skipped
    """)

    found = phase_of(table)

    assert [(p.targets[0], p.evidence["to"]) for p in found.proposals] == [("new", "summary")]
    assert found.left == {"aria": {"no writer has completed it, so it keeps its summary": 2}}


def test_an_episode_that_is_where_its_age_asks_is_not_looked_at():
    table = episodes("""
        id | ended_at   | compression_tier
        ---|------------|-----------------
        a  | 2026-06-20 | summary
        b  | 2026-05-20 | compressed
        c  | 2026-01-20 | fossil
        d  | 2026-06-29 | raw
        e  | 2026-06-29 | compressed
    """)

    found = phase_of(table)

    assert (found.eligible, found.proposals) == ({}, [])


def test_each_tier_keeps_less_and_the_rest_goes_to_cold_storage():
    table = episodes("""
        id | ended_at   | compression_tier | detail | summary
        ---|------------|------------------|--------|--------
        a  | 2026-06-20 | raw              | long   | short
        b  | 2026-05-20 | summary          | -      | short
        c  | 2026-01-20 | compressed       | -      | -
    """)

    to_summary, to_line, to_title = phase_of(table).proposals

    assert to_summary.changes == (
        Change("cold_text", "a", set={"tier": "raw", "columns": ["detail"], "purge_after": None}),
        Change("episode", "a", set={"compression_tier": "summary", "detail": None}, action="condensed"),
    )
    assert to_line.changes == (
        Change("cold_text", "b", set={"tier": "summary", "columns": ["summary"], "purge_after": None}),
        Change("episode", "b", set={"compression_tier": "compressed", "summary": None}, action="condensed"),
    )
    assert to_title.changes == (
        Change("cold_text", "c", set={"tier": "compressed", "columns": ["compressed"], "purge_after": None}),
        Change("episode", "c", set={"compression_tier": "fossil", "compressed": None}, action="condensed"),
    )
    assert to_title.read_set == (Read("episode", "c", 3),)


def test_a_summary_told_after_it_was_lost_does_not_replace_the_first_one():
    table = episodes("""
        id | ended_at   | compression_tier | detail | summary
        ---|------------|------------------|--------|-----------
        a  | 2025-01-20 | compressed       | -      | told again
    """)

    assert cold(only(table)) == {"compressed": ["summary", "compressed"]}


def test_the_reason_says_what_stays_and_what_can_be_restored():
    table = episodes("""
        id | ended_at   | compression_tier | detail | summary
        ---|------------|------------------|--------|--------------------
        a  | 2026-05-21 | summary          | -      | five words are not many
        b  | 2026-06-23 | raw              | one two | short
        c  | 2026-06-23 | raw              | -      | told without a detail
    """)

    assert [proposal.reason for proposal in phase_of(table).proposals] == [
        "closed 41 days ago: keeps its compressed line; its summary of 5 words can be restored",
        "closed 8 days ago: keeps its summary; its detail of 2 words can be restored",
        "closed 8 days ago: keeps its summary",
    ]


def test_the_evidence_counts_the_words_shown_before_and_after():
    table = episodes("""
        id | ended_at   | detail                  | summary
        ---|------------|-------------------------|------------
        a  | 2026-06-20 | one two three four five | one two
        b  | 2026-05-20 | one two three four five | one two
    """)

    shown = [(p.evidence["words_before"], p.evidence["words_after"]) for p in phase_of(table).proposals]

    assert shown == [(5, 2), (5, 2)]


def test_open_and_archived_episodes_are_no_concern_of_the_night():
    table = episodes("""
        id | state    | ended_at
        ---|----------|-----------
        a  | open     | -
        b  | archived | 2026-01-20
    """)

    assert phase_of(table).eligible == {}


def test_what_must_stay_is_accounted_for_with_its_reason():
    table = episodes("""
        id | is_pinned | is_rewound | ended_at
        ---|-----------|------------|-----------
        a  | yes       | no         | 2026-01-20
        b  | no        | yes        | 2026-01-20
        c  | no        | no         | 2026-01-20
        d  | no        | no         | 2026-06-20
        e  | no        | no         | 2026-06-20
    """)

    found = phase_of(table, back=[("tier", "c"), ("merge", "e")], cited=[("d", date(2026, 6, 25), 1)])

    assert [proposal.targets for proposal in found.proposals] == [("e",)]
    assert found.left == {
        "aria": {
            "pinned": 1,
            "changed after the end of the night": 1,
            "a person took its condensing back": 1,
            "cited within 30 days, so it stays one tier more detailed": 1,
        }
    }
    assert (found.eligible, found.unexplained()) == ({"aria": 5}, {})


def test_an_episode_in_use_stays_one_tier_more_detailed():
    table = episodes("""
        id         | ended_at   | compression_tier
        -----------|------------|-----------------
        cited      | 2026-01-20 | compressed
        long_ago   | 2026-01-20 | compressed
        tonight    | 2026-05-20 | raw
        found_only | 2026-01-20 | compressed
    """)
    cited = [
        ("cited", date(2026, 6, 1), 2),
        ("cited", date(2026, 6, 2), 1),
        ("long_ago", date(2026, 5, 31), 1),
        ("tonight", NIGHT, 1),
        ("found_only", NIGHT, 0),
    ]

    assert moves(table, cited=cited) == {
        "tonight": "summary",
        "long_ago": "fossil",
        "found_only": "fossil",
    }


def test_what_an_imported_episode_lacks_is_drawn_from_its_detail():
    table = episodes(
        """
        id | ended_at
        ---|-----------
        a  | 2026-06-20
    """,
        title=None,
        summary=None,
        compressed=None,
        index_word=None,
        detail=STORY,
    )

    proposal = only(table)

    values = proposal.changes[-1].set
    assert set(values) == {"compression_tier", "detail", *LEVELS}
    assert values["detail"] is None
    assert all(sentence.split(": ")[-1] in STORY for sentence in values["summary"].split(". "))
    assert len(values["compressed"].split()) < len(STORY.split()) / 2
    assert "drawn from it tonight" in proposal.reason
    assert proposal.evidence["drawn"] == list(LEVELS)


def test_what_was_told_stays_in_front_of_what_is_drawn():
    table = episodes("""
        id | ended_at   | title | summary | compressed | index_word
        ---|------------|-------|---------|------------|-----------
        a  | 2026-06-20 | Told  | Told so | -          | -
    """)

    values = only(table).changes[-1].set

    assert {"title", "summary"} & set(values) == set()
    assert values["index_word"] == "told"


def test_only_what_the_tier_keeps_is_drawn():
    table = episodes("""
        id | ended_at   | title | summary | compressed | index_word | compression_tier
        ---|------------|-------|---------|------------|------------|-----------------
        a  | 2025-06-20 | -     | -       | -          | -          | compressed
    """)

    proposal = only(table)

    assert set(proposal.changes[-1].set) == {"compression_tier", "detail", "title", "index_word"}
    assert cold(proposal) == {"compressed": ["detail"]}


def test_an_episode_that_says_nothing_waits_for_more():
    table = episodes("""
        id | ended_at   | title  | detail | summary | compressed | index_word | compression_tier
        ---|------------|--------|--------|---------|------------|------------|-----------------
        a  | 2026-06-20 | -      | -      | -       | -          | -          | raw
        b  | 2026-06-20 | Titled | -      | -       | -          | -          | raw
        c  | 2025-06-20 | Titled | -      | -       | -          | -          | compressed
        d  | 2026-06-20 | -      | password=hunter2horse | - | -    | -          | raw
    """)

    found = phase_of(table)

    assert {p.targets[0]: p.changes[-1].set["index_word"] for p in found.proposals} == {"c": "titled"}
    assert found.left == {"aria": {"nothing could be drawn from it yet": 3}}


def test_summaries_are_made_only_for_those_that_move_and_lack_one():
    table = episodes("""
        id       | ended_at   | is_pinned | compressed | compression_tier
        ---------|------------|-----------|------------|-----------------
        complete | 2026-06-20 | no        | line       | raw
        lacking  | 2026-06-20 | no        | -          | raw
        pinned   | 2026-06-20 | yes       | -          | raw
        young    | 2026-06-29 | no        | -          | raw
        fossil   | 2025-06-20 | no        | -          | compressed
    """)

    made = episode_summaries(tables_of(table), policy=NightPolicy(), night=NIGHT)

    assert made["id"].to_list() == ["lacking"]


def test_an_agent_may_keep_its_episodes_longer():
    table = episodes("""
        id | ended_at
        ---|-----------
        a  | 2026-06-20
        b  | 2026-06-01
    """)

    assert moves(table, policy=NightPolicy(summary_after_days=20)) == {"b": "summary"}


def test_the_order_of_rows_makes_no_difference():
    table = episodes("""
        id | agent_id | ended_at   | summary
        ---|----------|------------|--------
        b  | zoe      | 2026-06-20 | -
        a  | aria     | 2026-01-20 | said
        c  | aria     | 2026-05-20 | -
    """)

    assert phase_of(table).as_dict() == phase_of(table[::-1]).as_dict()


@pytest.mark.parametrize(("tier", "days"), [("raw", 200), ("summary", 10), ("fossil", 400)])
def test_five_thousand_complete_episodes_cost_next_to_nothing(tier, days):
    ended = datetime(2026, 7, 1, tzinfo=UTC) - timedelta(days=days)
    rows = [{**USUAL, "id": f"{place:05}", "detail": STORY * 5, "compression_tier": tier, "ended_at": ended}
            for place in range(5000)]  # fmt: skip
    table = pl.DataFrame(rows, schema=EPISODES)

    began = time.process_time()
    found = phase_of(table)

    assert time.process_time() - began < 2
    assert len(found.proposals) == (5000 if tier == "raw" else 0)


def test_tiers_are_those_of_the_schema(owner):
    rule = owner.execute(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'episodes_compression_tier_check'"
    ).fetchone()[0]

    assert all(f"'{tier}'" in rule for tier in TIERS)
