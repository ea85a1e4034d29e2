"""What people decided about memories that gave way since: it holds for the memories that say so now."""

from __future__ import annotations

import numpy as np
import polars as pl

from nous_pipelines.phases.numbering import numbered
from nous_pipelines.snapshots.table_schemas import MEMORY, TableSchema

FOLLOWED = ("id", "agent_id", "state", "superseded_by")
"""The columns of a fact that tell what it gave way to."""
MOVES = TableSchema("moves", "What each superseded fact leads to.", {
    **MEMORY,
    "now_id": (pl.String, "the last fact one comes to from it"),
})  # fmt: skip
MOVED = ["agent_id", "id"]


def successors(facts: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, id, now_id) of each superseded fact: the last one comes to from it; `facts` need `FOLLOWED`."""
    edges = facts.filter(pl.col("state") == "superseded", pl.col("superseded_by").is_not_null())
    last = ends_of(edges, "id", "superseded_by")
    return pl.DataFrame({"agent_id": edges["agent_id"], "id": edges["id"], "now_id": last}, schema=MOVES)


def ends_of(steps: pl.DataFrame, old: str, new: str) -> pl.Series:
    """Return what one comes to from each `old` by going on to `new` as often as that leads on."""
    first, second, named = numbered(steps, old, new)
    following = np.arange(len(named))
    following[first] = second
    for _ in range(len(named).bit_length()):  # each round doubles the step, and a circle ends too
        following = following[following]
    return named["id"].gather(following[first])


def carried(
    undone: pl.DataFrame, contradictions: pl.DataFrame, *, facts: pl.DataFrame, copies: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what was undone and what contradicts itself as if it had been said of the facts a night compares.

    A fact that gave way is replaced by the one it gave way to (`facts` need `FOLLOWED`), and that by the one that
    stands for its copies (`copies` as the neighbours have them).
    """
    now, spoken_for = successors(facts), copies.select("agent_id", id="member_id", now_id="speaker_id")
    followed = contradictions_with(contradictions_with(contradictions, now), spoken_for)
    return undone_with(undone_with(undone, now), spoken_for), followed


def undone_with(undone: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Return what was undone, moved facts replaced among its targets."""
    each = undone.with_row_index("row").explode("targets", empty_as_null=True).rename({"targets": "id"})
    grouped = moved(each, "id", moves).group_by("row", maintain_order=True).agg(pl.col("id").drop_nulls())
    return undone.with_columns(targets=grouped["id"])


def contradictions_with(contradictions: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Return contradictions, moved facts replaced; one whose sides came together is none any more."""
    both = moved(moved(contradictions, "memory_a", moves), "memory_b", moves)
    return both.filter(pl.col("memory_a") != pl.col("memory_b"))


def moved(table: pl.DataFrame, column: str, moves: pl.DataFrame) -> pl.DataFrame:
    """Return a table, moved facts replaced in one column."""
    joined = table.join(moves, left_on=["agent_id", column], right_on=MOVED, how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("now_id", column).alias(column)).drop("now_id")
