"""Episodes condensed night by night, and by some of the nights: where they end is the same."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from drawn_episodes import NIGHT, STORY, episodes, phase_of
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.snapshots.table_schemas import EPISODES

POLICY = NightPolicy(compressed_after_days=15, fossil_after_days=25)
"""Ages that all episodes reach in twenty nights."""


def after(table, chilled, night, **options):
    """The episodes and the cold texts once a night was applied."""
    rows = {row["id"]: row for row in table.to_dicts()}
    chilled = dict(chilled)
    for proposal in phase_of(table, night=night, policy=POLICY, **options).proposals:
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
    b  | 2026-06-16          | raw              | long
    c  | 2026-06-05 23:59:59 | raw              | -
    d  | 2026-05-01          | summary          | -
""")
INCOMPLETE = episodes(
    """
    id | ended_at
    ---|--------------------
    x  | 2026-06-20 10:00:00
    y  | 2026-06-05 23:59:59
""",
    title=None,
    summary=None,
    compressed=None,
    index_word=None,
    completed_at=None,
    detail=STORY,
)
NIGHTS = [NIGHT + timedelta(days=place) for place in range(20)]


@pytest.fixture(scope="module")
def every():
    """Where twenty nights over both end, one by one."""
    return lived(pl.concat([COMPLETE, INCOMPLETE]), NIGHTS)


def of(table, found):
    """What was found of the episodes of one table."""
    rows, texts = found
    return [row for row in rows if row["id"] in table["id"]], {
        key: texts[key] for key in texts if key[0] in table["id"]
    }


@settings(max_examples=examples(3), deadline=None)
@given(run=st.sets(st.sampled_from(NIGHTS)))
def test_nights_one_by_one_end_where_some_of_them_end(every, run):
    rows, texts = of(COMPLETE, every)

    assert lived(COMPLETE, sorted({*run, *NIGHTS[-3:]})) == (rows, texts)
    assert {row["compression_tier"] for row in rows} == {"fossil"}


def test_what_no_writer_completed_ends_as_a_summary_on_the_first_night_or_on_the_last(every):
    rows, chilled = of(INCOMPLETE, every)

    assert lived(INCOMPLETE, NIGHTS[-1:]) == (rows, chilled)
    assert chilled == {("x", "detail"): STORY, ("y", "detail"): STORY}
    assert {row["compression_tier"] for row in rows} == {"summary"}
