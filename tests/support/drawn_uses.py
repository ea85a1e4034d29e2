"""Memories and their uses, drawn in a test as the snapshot has them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl
from drawn import USUAL_FACT, drawn

from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.table_schemas import CENSORS, EPISODES, FACTS, PROCEDURES, UNDONE, USES

NIGHT = date(2026, 6, 30)
USUAL = {
    "agent_id": "aria",
    "is_pinned": False,
    "is_rewound": False,
    "row_version": 1,
    "rank_weight": 1.0,
    "trust": 50,
    "learned_at": datetime(2026, 5, 1, tzinfo=UTC),
}
UNUSED = {"retrieved_count": 0, "cited_count": 0, "ignored_count": 0}


def facts(text: str = "id\n---") -> pl.DataFrame:
    """Draw facts."""
    return drawn(text, FACTS, usual=USUAL_FACT)


def episodes(text: str = "id\n---") -> pl.DataFrame:
    """Draw episodes, closed unless said otherwise."""
    return drawn(text, EPISODES, usual={**USUAL, "state": "closed"})


def procedures(text: str = "id\n---") -> pl.DataFrame:
    """Draw procedures, active and never used unless said otherwise."""
    counts = {"activation_count": 0, "success_count": 0, "failure_count": 0}
    usual = {**USUAL, **UNUSED, **counts, "state": "active", "name": "deploy", "related_procedures": []}
    return drawn(text, PROCEDURES, usual=usual)


def censors(text: str = "id\n---") -> pl.DataFrame:
    """Draw censors, active warnings unless said otherwise."""
    return drawn(text, CENSORS, usual={**USUAL, "state": "active", "severity": "warn"})


def uses(text: str = "memory_id | days_ago\n---", *, kind: str = "fact") -> pl.DataFrame:
    """Draw uses, so many days before the end of the night; those of a `days_ago` of 1 lie on the night itself."""
    columns = {**USES, "days_ago": pl.Int64}
    usual = {"agent_id": "aria", "memory_kind": kind, "retrieved": 1, "cited": 0, "ignored": 0}
    day = pl.lit(end_of(NIGHT).date()) - pl.duration(days="days_ago")
    return drawn(text, columns, usual=usual).with_columns(day=day.cast(pl.Date)).drop("days_ago")


def days_before(days: int) -> datetime:
    """Return the moment so many days before the end of the night."""
    return end_of(NIGHT) - timedelta(days=days)


def undone(kind: str, *targets: str) -> pl.DataFrame:
    """Return that a person undid a proposal."""
    return pl.DataFrame([{"agent_id": "aria", "kind": kind, "targets": list(targets)}], schema=UNDONE)
