"""Which facts of a snapshot lie in earlier parts, and which are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
from psycopg.sql import SQL

from nous_online.database.statements import statements
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.parts import GAP, KEY
from nous_pipelines.snapshots.table_schemas import FACTS

if TYPE_CHECKING:
    from nous_pipelines.snapshots.snapshot import SnapshotTransaction

BLOCKS = statements("nous_pipelines.snapshots", "snapshot.sql")
COUNTS = ("retrieved_count", "cited_count", "ignored_count")
USAGE = FACTS.only(*COUNTS, "last_used_at")
MOST_CHANGED = 0.5
"""Share of changed rows above which everything is read again."""


@dataclass(frozen=True)
class KnownFacts:
    """The facts that are read (agent_id, id), and the part in which each of the others lies: agent_id, id, lies_in."""

    read: pl.DataFrame | None = None
    """None for all."""
    kept: pl.DataFrame = field(default_factory=pl.DataFrame)

    @classmethod
    def of(cls, reading: SnapshotTransaction) -> KnownFacts:
        """Compare the facts with those of the base; all are read where there is none, or more than half changed."""
        if reading.base is None or reading.base.snapshot.is_undivided:
            return cls()
        before, base = reading.base.snapshot, reading.base
        query = SQL(BLOCKS["fact_changes"]).format(written=SQL(BLOCKS["written"]))
        now = reading.rows(query, since=base.since, base=before.night, dated=end_of(before.night))
        changed, others = now.filter(pl.col("id").is_not_null()), now.filter(pl.col("id").is_null())
        known = before.table("facts", columns=[*KEY, *USAGE], agent_ids=reading.agent_ids)
        old = known.join(changed, on=KEY, how="anti", maintain_order="left")
        stay = stayed(reading, old.select(KEY), changed, others)
        # Their counts are compared: whether a recall was recorded late, or passes out of reach, no row of a fact tells.
        used = usage_of(old, reading.usage)
        same = old.filter(pl.all_horizontal(old[name].eq_missing(used[name]) for name in USAGE))
        lie = before.fact_rows(reading.agent_ids).join(same, on=KEY, how="semi", maintain_order="left")
        # Small agents are read whole: of many of them each file would be opened as often, in all nights that follow.
        kept = lie.join(stay, on=KEY, how="semi", maintain_order="left").filter(pl.len().over("agent_id") > GAP)
        if len(kept) <= (1 - MOST_CHANGED) * sum(now["size"]):
            return cls()
        return cls(pl.concat([changed.select(KEY), stay.join(kept, on=KEY, how="anti")]).sort(KEY), kept)


def stayed(
    reading: SnapshotTransaction, old: pl.DataFrame, changed: pl.DataFrame, others: pl.DataFrame
) -> pl.DataFrame:
    """Return the facts (agent_id, id) of the store beside the `changed`: those of the base, where as many are left.

    `others` counts them by agent. Where some of the `old` are gone, their ids are read.
    """
    counts = old.group_by("agent_id").len().join(others, on="agent_id", how="full", coalesce=True)
    lost = counts.filter(pl.col("len").ne_missing(pl.col("size")))["agent_id"].to_list()
    if not lost:
        return old
    there = reading.rows(BLOCKS["fact_ids"], agent_ids=lost).join(changed, on=KEY, how="anti")
    return pl.concat([old.filter(~pl.col("agent_id").is_in(lost)), there])


def usage_of(memories: pl.DataFrame, usage: pl.DataFrame) -> pl.DataFrame:
    """Return the usage counters of each memory (`USAGE`), in order."""
    if usage.is_empty():
        return pl.DataFrame([
            pl.Series(name, [None if name == "last_used_at" else 0], dtype=dtype).new_from_index(0, len(memories))
            for name, dtype in USAGE.items()
        ])  # fmt: skip
    found = memories.select(KEY).join(usage, on=KEY, how="left", maintain_order="left")
    return found.select(pl.col(*COUNTS).fill_null(0), "last_used_at")
