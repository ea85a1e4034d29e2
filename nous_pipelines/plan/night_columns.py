"""The tables a query over the nights may read: where each lies, what a row is, and what each column means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nous_pipelines.phases.merging import CLUSTERS
from nous_pipelines.phases.neighbours import COPY, FOUND
from nous_pipelines.phases.tiers import SUMMARIES
from nous_pipelines.phases.usage import RANKS
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema


@dataclass(frozen=True)
class QueriedTable:
    """A table of the nights: its file in a night's folder, what a row is, and the meaning of its columns."""

    file: str | None
    """None for what is read from the database."""
    meaning: str
    columns: Mapping[str, str]

    def meaning_of(self, column: str) -> str:
        """Return what a column means; nothing for one of a later version."""
        return self.columns.get(column, "the night the row is of" if column == "night" else "")


def of_schema(schema: TableSchema, file: str) -> QueriedTable:
    """Return a table as its schema describes it."""
    return QueriedTable(file, schema.meaning, schema.meanings)


JUDGED = {
    **FOUND.meanings,
    "verdict": "same, updates, contradicts, compatible or unsure",
    "confidence": "how sure the judge is, 0 to 1",
    "slot": "which attribute both give a value for, where that could be read off",
    "reason": "why",
    "model": "who judged",
    "pair_hash": "the hash of the two texts, by which a verdict is known again",
}
TABLES: Mapping[str, QueriedTable] = {
    **{name: of_schema(schema, f"{name}.parquet") for name, schema in SNAPSHOT_TABLES.items()},
    "pairs": of_schema(FOUND, "run/neighbours.parquet"),
    "judgements": QueriedTable("run/judgements.parquet", "Those pairs, each with its verdict.", JUDGED),
    "copies": of_schema(COPY, "run/copies.parquet"),
    "clusters": of_schema(CLUSTERS, "run/duplicate_clusters.parquet"),
    "usage_ranks": of_schema(RANKS, "run/usage_ranks.parquet"),
    "episode_summaries": of_schema(SUMMARIES, "run/episode_summaries.parquet"),
    "proposals": QueriedTable(
        None,
        "What nights proposed, and what became of it by now.",
        {
            "id": "which one it is",
            "agent_id": "whose memories it is about",
            "targets": "the memories it is about (list of ids)",
            "reason": "why",
            "kind": "merge, supersede, contradiction, archive, share, tier, promote, demote, link, censor or procedure",
            "state": "proposed, applied, stale, refused or undone",
            "outcome": "why it went stale, was refused or was undone",
            "evidence": "what it rests on (JSON)",
            "changes": "what it changes (JSON)",
            "cost_usd": "what deciding it cost, in US dollars",
            "decided_at": "when it was applied, found stale, refused or undone",
            "plan_hash": "the plan it is of",
        },
    ),
}
