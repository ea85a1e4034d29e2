"""Decisions of people that no night may repeat; one about a superseded fact holds for its successor."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_pipelines.snapshots.table_schemas import MEMORY, TableSchema

PAIRING = ("merge", "supersede", "contradiction", "share")
"""The kinds of proposals that relate several memories to each other."""
FOLLOWED = ("id", "agent_id", "state", "superseded_by")
"""The columns of a fact from which its successor is found."""
OPEN_STATUS = pl.col("status") == "open"
MOVES = TableSchema("moves", "The last successor of each superseded fact.", {
    **MEMORY,
    "now_id": (pl.String, "its last successor"),
})  # fmt: skip


def taken_back(undone: pl.DataFrame, *kinds: str) -> pl.DataFrame:
    """Return the memories of which a change of these kinds was undone (agent_id, id), marked `is_taken_back`."""
    return (
        undone.filter(pl.col("kind").is_in(list(kinds)))
        .explode("targets", empty_as_null=False)
        .select("agent_id", id="targets", is_taken_back=pl.lit(value=True))
        .unique()
    )


def undone_groups(undone: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, group, id): the memories of each undone proposal that related them to each other."""
    groups = undone.filter(pl.col("kind").is_in(list(PAIRING))).with_row_index("group")
    return groups.explode("targets", empty_as_null=False).select("agent_id", "group", id="targets")


def separated_pairs(pairs: pl.DataFrame, undone: pl.DataFrame, *, sides: tuple[str, str]) -> pl.DataFrame:
    """Return the distinct pairs (agent_id and both `sides`) of which both occur in one undone proposal.

    Joins memories, not pairs of them: an undone merge of thousands of copies must not become millions of pairs.
    """
    one, other = sides
    groups = undone_groups(undone)
    return (
        pairs.select("agent_id", one, other)
        .unique(maintain_order=True)
        .join(groups, left_on=["agent_id", one], right_on=["agent_id", "id"])
        .join(groups, left_on=["agent_id", other, "group"], right_on=["agent_id", "id", "group"], how="semi")
        .select("agent_id", one, other)
        .unique(maintain_order=True)
    )


def successors(facts: pl.DataFrame) -> pl.DataFrame:
    """Return the last successor of each superseded fact (`MOVES`); `facts` needs the columns `FOLLOWED`."""
    edges = facts.filter(pl.col("state") == "superseded", pl.col("superseded_by").is_not_null())
    if edges.is_empty():
        return MOVES.empty()
    last = chain_ends(edges, "id", "superseded_by")
    return pl.DataFrame({"agent_id": edges["agent_id"], "id": edges["id"], "now_id": last}, schema=MOVES)


def follow_successors(
    undone: pl.DataFrame, contradictions: pl.DataFrame, *, facts: pl.DataFrame, copies: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return undone proposals and contradictions with the ids of the facts that a night compares.

    A superseded fact is replaced by its last successor (`facts` needs `FOLLOWED`), and that by the representative of
    its copies (`copies` as in `Neighbours`).
    """
    now, spoken_for = successors(facts), copies.select("agent_id", id="member_id", now_id="speaker_id")
    followed = replace_in_contradictions(replace_in_contradictions(contradictions, now), spoken_for)
    return replace_in_undone(replace_in_undone(undone, now), spoken_for), followed


def replace_in_undone(undone: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Return undone proposals with the facts of `moves` replaced among their targets."""
    if undone.is_empty():
        return undone
    each = undone.with_row_index("row").explode("targets", empty_as_null=True).rename({"targets": "id"})
    grouped = replace_moved(each, "id", moves).group_by("row", maintain_order=True).agg(pl.col("id").drop_nulls())
    return undone.with_columns(targets=grouped["id"])


def without_settled(contradictions: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Return contradictions without the open ones of which a side is no longer active: nobody is asked about those."""
    gone = facts.filter(pl.col("state") != "active").select("agent_id", "id")
    waiting, decided = (contradictions.filter(condition) for condition in (OPEN_STATUS, ~OPEN_STATUS))
    for side in ("memory_a", "memory_b"):
        waiting = waiting.join(gone, left_on=["agent_id", side], right_on=["agent_id", "id"], how="anti")
    return pl.concat([waiting, decided])


def replace_in_contradictions(contradictions: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Return contradictions with the facts of `moves` replaced, without those whose two sides became one fact."""
    if contradictions.is_empty():
        return contradictions
    both = replace_moved(replace_moved(contradictions, "memory_a", moves), "memory_b", moves)
    return both.filter(pl.col("memory_a") != pl.col("memory_b"))


def replace_moved(table: pl.DataFrame, column: str, moves: pl.DataFrame) -> pl.DataFrame:
    """Return a table with the facts of `moves` replaced in one column."""
    joined = table.join(
        moves, left_on=["agent_id", column], right_on=["agent_id", "id"], how="left", maintain_order="left"
    )
    return joined.with_columns(pl.coalesce("now_id", column).alias(column)).drop("now_id")


# --- chains of ids ---


def row_numbers(
    pairs: pl.DataFrame, left: str, right: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], pl.DataFrame]:
    """Return two columns of ids as places in the sorted table (agent_id, id) of all of them.

    The same id of two agents is two memories.
    """
    sides = [pairs.select("agent_id", id=side) for side in (left, right)]
    every = pl.concat(sides).unique().sort("agent_id", "id")
    places = every.with_row_index("place")
    first, second = (
        side.join(places, on=["agent_id", "id"], maintain_order="left")["place"].to_numpy().astype(np.int64)
        for side in sides
    )
    return first, second, every


def chain_ends(steps: pl.DataFrame, old: str, new: str) -> pl.Series:
    """Return the end of the chain `old` → `new` → … that starts at each row."""
    first, second, named = row_numbers(steps, old, new)
    following = np.arange(len(named))
    following[first] = second
    for _ in range(len(named).bit_length()):  # pointer doubling: log2(n) rounds reach every end, and stop in a circle
        following = following[following]
    return named["id"].gather(following[first])
