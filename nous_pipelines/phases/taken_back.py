"""What a person took back, and no night proposes again."""

from __future__ import annotations

import polars as pl

PAIRING = ("merge", "supersede", "contradiction", "share")
"""The kinds of change that say of several memories what they are to each other."""


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
