"""Tables drawn in a test, parsed with the dtypes of a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl

from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.snapshots.table_schemas import FACTS, MOMENT, UNDONE

NIGHT = date(2026, 6, 1)
USUAL_FACT = {
    "agent_id": "aria",
    "state": "active",
    "tags": [],
    "confidence": 1.0,
    "source_kind": "agent",
    "sources": [],
    "trust": 50,
    "is_pinned": False,
    "learned_at": datetime(2026, 5, 1, tzinfo=UTC),
    "confirmation_count": 0,
    "contradiction_status": "none",
    "scope": "private",
    "embedding_space_id": "words-64",
    "rank_weight": 1.0,
    "row_version": 1,
    "is_rewound": False,
    "retrieved_count": 0,
    "cited_count": 0,
    "ignored_count": 0,
}


NONE_UNDONE = UNDONE.empty()


def drawn(text: str, schema: Mapping[str, Any], *, usual: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Parse `a | b` over dashes; `-` is null, a list is written `x, y`, and columns left out hold `usual` or null."""
    header, _, *rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    unknown = set(header) - set(schema)
    assert not unknown, f"the schema has no column {unknown}"
    values = [
        {**(usual or {}), **{name: parsed(cell, schema[name]) for name, cell in zip(header, row, strict=True)}}
        for row in rows
    ]
    return pl.DataFrame(values, schema=dict(schema))


def parsed(cell: str, dtype: Any) -> Any:
    """Read one cell as a value of `dtype`."""
    if cell == "-":
        return None
    if dtype == MOMENT:
        return datetime.fromisoformat(cell).replace(tzinfo=UTC)
    if dtype == pl.Boolean:
        return {"yes": True, "no": False}[cell]
    if isinstance(dtype, pl.List):
        return [entry.strip() for entry in cell.split(",") if entry.strip()]
    return float(cell) if dtype.is_float() else int(cell) if dtype.is_integer() else cell


def drawn_facts(text: str, *, vectors: Mapping[str, Sequence[float]] | None = None) -> pl.DataFrame:
    """Draw facts of the snapshot; `vectors` by id, for those that shall have one."""
    table = drawn(text, FACTS, usual=USUAL_FACT)
    known = vectors or {}
    rows = [known.get(memory) for memory in table["id"]]
    return table.with_columns(embedding=pl.Series(rows, dtype=pl.List(pl.Float32)))


def embedded_facts(text: str, embedder: Any) -> pl.DataFrame:
    """Draw facts of the snapshot, each with the vector of its content."""
    table = drawn(text, FACTS, usual=USUAL_FACT)
    vectors = embedder.embed_documents(table["content"].to_list())
    return table.with_columns(embedding=pl.Series(np.asarray(vectors).tolist(), dtype=pl.List(pl.Float32)))


def merge(*targets: str, agent_id: str = "aria", **changes: Any) -> Proposal:
    """Return a merge of `targets` into the first of them; `changes` replace what a sound one would hold."""
    kept, *retired = targets
    away = {"state": "superseded", "superseded_by": kept, "succession": "merged"}
    gone = [Change("fact", memory, set=away) for memory in retired]
    values = {
        "night": NIGHT,
        "agent_id": agent_id,
        "kind": "merge",
        "targets": targets,
        "read_set": tuple(Read("fact", memory, 1) for memory in targets),
        "changes": (Change("fact", kept, set={"confirmation_count": len(retired)}), *gone),
        "reason": "said twice",
        "evidence": {},
    }
    return Proposal(**{**values, **changes})
