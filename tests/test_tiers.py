"""Episodes condensed by age: which move, what they keep, what can be restored, and why others stay."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from drawn import MOMENT, drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_pipelines.phases import Phase
from nous_pipelines.policy import NightPolicy
from nous_pipelines.proposals import Change, Read
from nous_pipelines.transforms.tiers import LEVELS, TIERS, due_episodes, episode_summaries_of, tier_phase_of

NIGHT = date(2026, 6, 30)
EPISODES = {
    "id": pl.String,
    "agent_id": pl.String,
    "state": pl.String,
    "title": pl.String,
    "summary": pl.String,
    "compressed": pl.String,
    "index_word": pl.String,
    "detail": pl.String,
    "compression_tier": pl.String,
    "ended_at": MOMENT,
    "participants": pl.List(pl.String),
    "is_pinned": pl.Boolean,
    "row_version": pl.Int64,
    "is_rewound": pl.Boolean,
}
USUAL = {
    "agent_id": "aria",
    "state": "closed",
    "title": "Moved billing",
    "summary": "Billing moved to Postgres in May",
    "compressed": "Billing moved",
    "index_word": "billing",
    "detail": "Ada: billing moves to Postgres in May.",
    "compression_tier": "raw",
    "ended_at": datetime(2026, 6, 20, tzinfo=UTC),
    "participants": [],
    "is_pinned": False,
    "row_version": 3,
    "is_rewound": False,
}
USES = {
    "agent_id": pl.String,
    "memory_id": pl.String,
    "memory_kind": pl.String,
    "day": pl.Date,
    "retrieved": pl.Int64,
    "cited": pl.Int64,
    "ignored": pl.Int64,
}
UNDONE = {"agent_id": pl.String, "kind": pl.String, "targets": pl.List(pl.String)}
STORY = (
    "Ada: The billing database moved from MySQL to Postgres 18 on 12 May. Ben: I checked 4,200 invoices by hand. "
    "Ada: Two of them had lost their currency. Ben: Cleo mended both the same evening. Ada: The old cluster is "
    "switched off in June. Ben: Backups of it are kept until the end of the year. Ada: Nobody noticed the move."
)


def episodes(text, **usual):
    return drawn(text, EPISODES, usual={**USUAL, **usual})


def uses(*cited):
    rows = [("aria", memory, "episode", day, 1, count, 0) for memory, day, count in cited]
    return pl.DataFrame(rows, schema=USES, orient="row")


def undone(*taken_back):
    return pl.DataFrame([("aria", kind, [target]) for kind, target in taken_back], schema=UNDONE, orient="row")


def due(table, *, cited=(), back=(), policy=None, night=NIGHT):
    return due_episodes(table, uses=uses(*cited), undone=undone(*back), policy=policy or NightPolicy(), night=night)


def phase_of(table, **options) -> Phase:
    found = due(table, **options)
    return tier_phase_of(found, episode_summaries_of(found), night=options.get("night", NIGHT))


def moves(table, **options):
    return {p.targets[0]: p.evidence["to"] for p in phase_of(table, **options).proposals}


def only(table, **options):
    (proposal,) = phase_of(table, **options).proposals
    return proposal


def cold(proposal):
    return {c.set["tier"]: c.set["columns"] for c in proposal.changes if c.kind == "cold_text"}


def test_age_at_the_end_of_the_night_decides_the_tier():
    table = episodes("""
        id      | ended_at
        --------|--------------------
        days_6  | 2026-06-24 00:00:01
        days_7  | 2026-06-24
        days_29 | 2026-06-01 00:00:01
        days_30 | 2026-06-01
        days_89 | 2026-04-02 00:00:01
        days_90 | 2026-04-02
    """)

    assert moves(table) == {
        "days_7": "summary",
        "days_29": "summary",
        "days_30": "compressed",
        "days_89": "compressed",
        "days_90": "fossil",
    }


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


def test_a_late_episode_leaves_all_its_texts_under_the_tier_it_had():
    table = episodes("""
        id | ended_at
        ---|-----------
        a  | 2025-01-20
    """)

    proposal = only(table)

    assert proposal.evidence["to"] == "fossil"
    assert cold(proposal) == {"raw": ["detail", "summary", "compressed"]}


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
        c  | 2025-05-20 | one two three four five | one two
    """)

    shown = [(p.evidence["words_before"], p.evidence["words_after"]) for p in phase_of(table).proposals]

    assert shown == [(5, 2), (5, 2), (5, 2)]


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
        id         | ended_at
        -----------|-----------
        cited      | 2026-01-20
        long_ago   | 2026-01-20
        tonight    | 2026-01-20
        found_only | 2026-01-20
    """)
    cited = [
        ("cited", date(2026, 6, 1), 2),
        ("cited", date(2026, 6, 2), 1),
        ("long_ago", date(2026, 5, 31), 1),
        ("tonight", NIGHT, 1),
        ("found_only", NIGHT, 0),
    ]

    assert moves(table, cited=cited) == {
        "cited": "compressed",
        "tonight": "compressed",
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
    assert len(values["summary"].split()) <= len(STORY.split()) / 2 + 1
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
        id | ended_at   | title | summary | compressed | index_word
        ---|------------|-------|---------|------------|-----------
        a  | 2025-06-20 | -     | -       | -          | -
    """)

    proposal = only(table)

    assert set(proposal.changes[-1].set) == {"compression_tier", "detail", "title", "index_word"}
    assert cold(proposal) == {"raw": ["detail"]}


def test_an_episode_that_says_nothing_waits_for_more():
    table = episodes("""
        id | ended_at   | title  | detail | summary | compressed | index_word
        ---|------------|--------|--------|---------|------------|-----------
        a  | 2026-06-20 | -      | -      | -       | -          | -
        b  | 2026-06-20 | Titled | -      | -       | -          | -
        c  | 2025-06-20 | Titled | -      | -       | -          | -
        d  | 2026-06-20 | -      | password=hunter2horse | - | -    | -
    """)

    found = phase_of(table)

    assert {p.targets[0]: p.changes[-1].set["index_word"] for p in found.proposals} == {"c": "titled"}
    assert found.left == {"aria": {"nothing could be drawn from it yet": 3}}


def test_summaries_are_made_only_for_those_that_move_and_lack_one():
    table = episodes("""
        id       | ended_at   | is_pinned | compressed
        ---------|------------|-----------|-----------
        complete | 2026-06-20 | no        | line
        lacking  | 2026-06-20 | no        | -
        pinned   | 2026-06-20 | yes       | -
        young    | 2026-06-29 | no        | -
        fossil   | 2025-06-20 | no        | -
    """)

    assert episode_summaries_of(due(table))["id"].to_list() == ["lacking"]


def test_an_agent_may_keep_its_episodes_longer():
    table = episodes("""
        id | ended_at
        ---|-----------
        a  | 2026-06-20
        b  | 2026-06-01
    """)

    assert moves(table, policy=NightPolicy(summary_after_days=20)) == {"b": "compressed"}


def test_the_order_of_rows_makes_no_difference():
    table = episodes("""
        id | agent_id | ended_at   | summary
        ---|----------|------------|--------
        b  | zoe      | 2026-06-20 | -
        a  | aria     | 2026-01-20 | said
        c  | aria     | 2026-05-20 | -
    """)

    assert phase_of(table).as_dict() == phase_of(table[::-1]).as_dict()


# --- nights one by one, or only some of them ---


def after(table, chilled, night, **options):
    """The episodes and the cold texts once a night was applied."""
    rows = {row["id"]: row for row in table.to_dicts()}
    chilled = dict(chilled)
    for proposal in phase_of(table, night=night, **options).proposals:
        for change in proposal.changes:
            row = rows[change.id]
            if change.kind == "cold_text":
                key = (change.id, change.set["tier"])
                assert key not in chilled
                chilled[key] = {name: row[name] for name in change.set["columns"]}
            else:
                row.update(change.set, row_version=row["row_version"] + 1)
    return pl.DataFrame(list(rows.values()), schema=EPISODES), chilled


def lived(table, nights):
    chilled = {}
    for night in nights:
        table, chilled = after(table, chilled, night)
    texts = {(memory, name): text for (memory, _), texts in chilled.items() for name, text in texts.items() if text}
    return table.drop("row_version").to_dicts(), texts


COMPLETE = episodes("""
    id | ended_at            | compression_tier | detail
    ---|---------------------|------------------|-------
    a  | 2026-06-20 10:00:00 | raw              | long
    b  | 2026-06-01          | raw              | long
    c  | 2026-03-31 23:59:59 | raw              | -
    d  | 2026-02-01          | summary          | -
""")
INCOMPLETE = episodes(
    """
    id | ended_at
    ---|--------------------
    a  | 2026-06-20 10:00:00
    b  | 2026-03-31 23:59:59
""",
    title=None,
    summary=None,
    compressed=None,
    index_word=None,
    detail=STORY,
)
NIGHTS = [NIGHT + timedelta(days=place) for place in range(100)]


@settings(max_examples=10, deadline=None)
@given(st.sets(st.sampled_from(NIGHTS)))
def test_nights_one_by_one_end_where_some_of_them_end(run):
    every = lived(COMPLETE, NIGHTS)

    assert lived(COMPLETE, sorted({*run, NIGHTS[-1]})) == every
    assert {row["compression_tier"] for row in every[0]} == {"fossil"}


def test_a_late_first_night_leaves_the_same_row_and_every_text_that_was_told():
    every, chilled = lived(INCOMPLETE, NIGHTS)
    late, chilled_late = lived(INCOMPLETE, NIGHTS[-1:])

    assert late == every
    assert chilled_late == {("a", "detail"): STORY, ("b", "detail"): STORY}
    assert chilled_late.items() <= chilled.items()


def test_a_night_has_nothing_left_to_do_after_itself():
    table, _ = after(COMPLETE, {}, NIGHT)

    assert phase_of(table).eligible == {}


@pytest.mark.parametrize(("tier", "days"), [("raw", 200), ("summary", 10), ("fossil", 400)])
def test_five_thousand_complete_episodes_cost_next_to_nothing(tier, days):
    ended = datetime(2026, 7, 1, tzinfo=UTC) - timedelta(days=days)
    rows = [{**USUAL, "id": f"{place:05}", "detail": STORY * 5, "compression_tier": tier, "ended_at": ended}
            for place in range(5000)]  # fmt: skip
    table = pl.DataFrame(rows, schema=EPISODES)

    began = time.perf_counter()
    found = phase_of(table)

    assert time.perf_counter() - began < 2  # a quarter of one on a quiet machine
    assert len(found.proposals) == (5000 if tier == "raw" else 0)


def test_tiers_are_those_of_the_schema(owner):
    rule = owner.execute(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'episodes_compression_tier_check'"
    ).fetchone()[0]

    assert all(f"'{tier}'" in rule for tier in TIERS)
