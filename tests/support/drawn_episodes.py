"""Episodes of a snapshot drawn in a test, and the phase that condenses them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
from drawn import drawn

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.chunk_work import episode_summaries
from nous_pipelines.phases.phase import Phase, Tables
from nous_pipelines.phases.tiers import due_episodes, tier_phase
from nous_pipelines.snapshots.table_schemas import EPISODES, UNDONE, USES

NIGHT = date(2026, 6, 30)
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
    "completed_at": datetime(2026, 6, 20, tzinfo=UTC),
    "completion_note": None,
    "participants": [],
    "is_pinned": False,
    "row_version": 3,
    "is_rewound": False,
}
STORY = (
    "Ada: The billing database moved from MySQL to Postgres 18 on 12 May. Ben: I checked 4,200 invoices by hand. "
    "Ada: Two of them had lost their currency. Ben: Cleo mended both the same evening. Ada: The old cluster is "
    "switched off in June. Ben: Backups of it are kept until the end of the year. Ada: Nobody noticed the move."
)


def episodes(text, **usual):
    """Episodes completed as soon as they ended, unless `completed_at` is drawn or told."""
    table = drawn(text, EPISODES, usual={**USUAL, **usual})
    is_told = "completed_at" in usual or "completed_at" in text
    return table if is_told else table.with_columns(completed_at="ended_at")


def uses(*cited):
    rows = [("aria", memory, "episode", day, 1, count, 0) for memory, day, count in cited]
    return pl.DataFrame(rows, schema=USES, orient="row")


def undone(*taken_back):
    return pl.DataFrame([("aria", kind, [target]) for kind, target in taken_back], schema=UNDONE, orient="row")


def tables_of(table, *, cited=(), back=()) -> Tables:
    return {"episodes": table, "uses": uses(*cited), "undone": undone(*back)}


def due(table, *, policy=None, night=NIGHT, **others):
    return due_episodes(tables_of(table, **others), policy=policy or NightPolicy(), night=night)


def phase_of(table, *, policy=None, night=NIGHT, **others) -> Phase:
    tables, at = tables_of(table, **others), {"policy": policy or NightPolicy(), "night": night}
    return tier_phase({**tables, "episode_summaries": episode_summaries(tables, **at)}, **at)


def moves(table, **options):
    return {p.targets[0]: p.evidence["to"] for p in phase_of(table, **options).proposals}


def only(table, **options):
    (proposal,) = phase_of(table, **options).proposals
    return proposal


def cold(proposal):
    return {c.set["tier"]: c.set["columns"] for c in proposal.changes if c.kind == "cold_text"}
