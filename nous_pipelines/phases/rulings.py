"""What people decided, which no night proposes again: of a memory that gave way it holds for what says so now."""

from __future__ import annotations

import polars as pl

from nous_pipelines.phases.arrays import ends_of
from nous_pipelines.snapshots.table_schemas import MEMORY, TableSchema

PAIRING = ("merge", "supersede", "contradiction", "share")
"""The kinds of change that say of several memories what they are to each other."""
FOLLOWED = ("id", "agent_id", "state", "superseded_by")
"""The columns of a fact that tell what it gave way to."""
MOVES = TableSchema("moves", "What each superseded fact leads to.", {
    **MEMORY,
    "now_id": (pl.String, "the last fact one comes to from it"),
})  # fmt: skip
MOVED = ["agent_id", "id"]


def taken_back(undone: pl.DataFrame, *kinds: str) -> pl.DataFrame:
    """Return the memories to which a change of these kinds was undone (agent_id, id), marked `is_taken_back`."""
    return (
        undone.filter(pl.col("kind").is_in(list(kinds)))
        .explode("targets", empty_as_null=False)
        .select("agent_id", id="targets", is_taken_back=pl.lit(value=True))
        .unique()
    )


def memberships(undone: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, group, id): which memories stand together in something a person undid."""
    groups = undone.filter(pl.col("kind").is_in(list(PAIRING))).with_row_index("group")
    return groups.explode("targets", empty_as_null=False).select("agent_id", "group", id="targets")


def parted(pairs: pl.DataFrame, undone: pl.DataFrame, *, sides: tuple[str, str]) -> pl.DataFrame:
    """Return the pairs (agent_id and both `sides`) that occur together in something a person took back, each once.

    Memory by memory, not pair by pair: an undone merge of thousands of copies must not become millions of pairs.
    """
    one, other = sides
    groups = memberships(undone)
    return (
        pairs.select("agent_id", one, other)
        .unique(maintain_order=True)
        .join(groups, left_on=["agent_id", one], right_on=["agent_id", "id"])
        .join(groups, left_on=["agent_id", other, "group"], right_on=["agent_id", "id", "group"], how="semi")
        .select("agent_id", one, other)
        .unique(maintain_order=True)
    )


def successors(facts: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, id, now_id) of each superseded fact: the last one comes to from it; `facts` need `FOLLOWED`."""
    edges = facts.filter(pl.col("state") == "superseded", pl.col("superseded_by").is_not_null())
    if edges.is_empty():
        return MOVES.empty()
    last = ends_of(edges, "id", "superseded_by")
    return pl.DataFrame({"agent_id": edges["agent_id"], "id": edges["id"], "now_id": last}, schema=MOVES)


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
    if undone.is_empty():
        return undone
    each = undone.with_row_index("row").explode("targets", empty_as_null=True).rename({"targets": "id"})
    grouped = moved(each, "id", moves).group_by("row", maintain_order=True).agg(pl.col("id").drop_nulls())
    return undone.with_columns(targets=grouped["id"])


def contradictions_with(contradictions: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Return contradictions, moved facts replaced; one whose sides came together is none any more."""
    if contradictions.is_empty():
        return contradictions
    both = moved(moved(contradictions, "memory_a", moves), "memory_b", moves)
    return both.filter(pl.col("memory_a") != pl.col("memory_b"))


def moved(table: pl.DataFrame, column: str, moves: pl.DataFrame) -> pl.DataFrame:
    """Return a table, moved facts replaced in one column."""
    joined = table.join(moves, left_on=["agent_id", column], right_on=MOVED, how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("now_id", column).alias(column)).drop("now_id")
