"""The tables links are found in, drawn in a test."""

from __future__ import annotations

from typing import Any

import polars as pl
from drawn import NIGHT, drawn
from drawn_pairs import USUAL_PAIR

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.links import CHANGED, COLUMNS, link_phase
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.phase import Phase
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES

SCHEMAS = {name: SNAPSHOT_TABLES[name].only(*columns) for name, columns in COLUMNS.items()}
USUAL = {
    "facts": {"state": "active"},
    "episodes": {"state": "closed"},
    "procedures": {"state": "active"},
    "undone": {"kind": "link"},
    "links": {"kind": "related"},
}
USUAL_MEMORY = {"agent_id": "aria", "is_rewound": False, "row_version": 1}
FOUR = """
    id
    --
    a
    b
    c
    d
"""
CITED_TWICE = """
    id | cited_ids
    ---|----------
    r1 | a, b
    r2 | a, b, c
    r3 | b
"""


def phase_of(judged: str = "", *, most: int = 5, changed: str = "", **tables: str) -> Phase:
    """Draw what is given of the snapshot, leave the rest empty, and look for links."""
    rows = {
        name: drawn(tables[name], schema, usual={"agent_id": "aria", **memory_of(name), **USUAL.get(name, {})})
        if name in tables
        else schema.empty()
        for name, schema in SCHEMAS.items()
    }
    pairs = drawn(judged, JUDGED, usual={**USUAL_PAIR, "verdict": "compatible"}) if judged else None
    tonight = [("aria", memory) for memory in changed.split()]
    return link_phase(
        {
            **rows,
            "judgements": JUDGED.empty() if pairs is None else pairs,
            "changed": pl.DataFrame(tonight, schema=CHANGED, orient="row"),
        },
        policy=NightPolicy(links_per_memory=most),
        night=NIGHT,
    )


def memory_of(table: str) -> dict[str, Any]:
    return USUAL_MEMORY if "row_version" in SCHEMAS[table] else {}


def linked(phase: Phase) -> list[tuple[str, str, str, float]]:
    """Return from, to, kind and weight of every new link."""
    return [
        (change.id, change.set["to_id"], change.set["kind"], change.set["weight"])
        for proposal in phase.proposals
        for change in proposal.changes
    ]
