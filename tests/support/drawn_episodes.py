"""Episodes of a snapshot drawn in a test, and the phase that condenses them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
from drawn import MOMENT, drawn

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.summaries import episode_summaries_of
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.tiers import due_episodes, tier_phase_of

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
    "completed_at": MOMENT,
    "completion_note": pl.String,
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
    "completed_at": datetime(2026, 6, 20, tzinfo=UTC),
    "completion_note": None,
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
