"""What is to be done about two facts of which the later updates, or contradicts, the earlier: a table of decisions."""

from __future__ import annotations

from datetime import date

import polars as pl

from nous_online.language.pairs.judging import SURE_FROM, Verdict
from nous_pipelines.nights import end_of
from nous_pipelines.phases.neighbours import PLACE, said_at
from nous_pipelines.phases.phase import first_reason
from nous_pipelines.phases.rulings import parted

STATED = ("learned_at", "last_confirmed_at", "valid_from", "valid_to")
STANDING = ("trust", "is_pinned", "key", "state", "is_rewound")
OLD_AND_NEW = ("old_id", "new_id")
NO, YES = pl.lit(False), pl.lit(True)  # noqa: FBT003 (polars)


def decided(
    judged: pl.DataFrame, facts: pl.DataFrame, *, contradictions: pl.DataFrame, undone: pl.DataFrame, night: date
) -> pl.DataFrame:
    """Return each pair judged an update or a contradiction, the older statement first, with what to do and why."""
    asked = judged.filter(
        pl.col("verdict").is_in([Verdict.UPDATES.value, Verdict.CONTRADICTS.value]), ~pl.col("is_across_users")
    )
    pairs = _in_order(asked, facts).with_columns(
        first_id=pl.min_horizontal("old_id", "new_id"), second_id=pl.max_horizontal("old_id", "new_id")
    )
    apart = parted(pairs, undone, sides=OLD_AND_NEW)
    return (
        pairs.join(standings(contradictions, judged), on=["agent_id", "first_id", "second_id"], how="left")
        .join(apart.with_columns(is_apart=YES), on=["agent_id", "old_id", "new_id"], how="left")
        .with_columns(stays=_stays(night))
        .with_columns(decision=_decision(), why=pl.coalesce("stays", _doubt()))
        .sort("agent_id", "old_stated_at", "old_id", "new_id")
    )


def standings(contradictions: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, first_id, second_id, standing): whether the contradiction of two facts is open or resolved.

    While it is open it stands between all that says the same as the one and all that says the same as the other.
    """
    known = contradictions.select("agent_id", "memory_a", "memory_b", standing="status")
    same = judged.filter(pl.col("verdict") == Verdict.SAME.value, ~pl.col("is_across_users"))
    either_way = (("left_id", "right_id"), ("right_id", "left_id"))
    kin = pl.concat(same.select("agent_id", id=one, kin_id=other) for one, other in either_way)
    waiting = known.filter(pl.col("standing") == "open")
    for side in ("memory_a", "memory_b"):
        others = waiting.join(kin, left_on=["agent_id", side], right_on=["agent_id", "id"])
        waiting = pl.concat([waiting, others.with_columns(pl.col("kin_id").alias(side)).drop("kin_id")])
    ends = {
        "first_id": pl.min_horizontal("memory_a", "memory_b"),
        "second_id": pl.max_horizontal("memory_a", "memory_b"),
    }
    every = pl.concat([waiting, known]).select("agent_id", **ends, standing="standing")
    return every.unique(["agent_id", "first_id", "second_id"], keep="first", maintain_order=True)


def _in_order(asked: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Put the older statement of each pair first; the columns of both begin with old_ and new_."""
    said = facts.select("agent_id", "id", *PLACE, *STATED, *STANDING).with_columns(
        since=pl.coalesce("valid_from", "learned_at"),
        stated_at=said_at(),
    )
    columns = [name for name in said.columns if name != "agent_id"]
    both = asked
    for side in ("left", "right"):
        own = said.rename({name: f"{side}_{name}" for name in columns})
        both = both.join(own, on=["agent_id", f"{side}_id"], how="left")
    is_same_moment = pl.col("left_stated_at") == pl.col("right_stated_at")
    is_swapped = (pl.col("left_stated_at") > pl.col("right_stated_at")).fill_null(NO) | (
        is_same_moment & (pl.col("left_learned_at") > pl.col("right_learned_at"))
    ).fill_null(NO)
    is_told_apart = ~is_same_moment | (pl.col("left_learned_at") != pl.col("right_learned_at"))
    return both.select(
        "agent_id", "similarity", "verdict", "confidence", "slot", "reason", "model",
        pl.col("is_ordered") & is_told_apart,
        *(pl.when(is_swapped).then(f"right_{name}").otherwise(f"left_{name}").alias(f"old_{name}") for name in columns),
        *(pl.when(is_swapped).then(f"left_{name}").otherwise(f"right_{name}").alias(f"new_{name}") for name in columns),
    )  # fmt: skip


def _stays(night: date) -> pl.Expr:
    """Say why a pair is left as it is; null where something is to be decided."""
    is_active = (pl.col("old_state") == "active") & (pl.col("new_state") == "active")
    in_one_place = pl.all_horizontal(pl.col(f"old_{name}").eq_missing(pl.col(f"new_{name}")) for name in PLACE)
    never_together = (pl.col("old_valid_to") <= pl.col("new_valid_from")) | (
        pl.col("new_valid_to") <= pl.col("old_valid_from")
    )
    moment = pl.max_horizontal("old_learned_at", "new_learned_at")
    is_update = (pl.col("verdict") == Verdict.UPDATES.value) & pl.col("is_ordered")
    is_over = (pl.col("new_valid_to") <= moment) & ~(pl.col("old_valid_to") <= moment).fill_null(NO)
    return first_reason(
        (~is_active.fill_null(NO), "one of the two is no longer active"),
        (pl.col("old_is_rewound") | pl.col("new_is_rewound"), "one of the two changed after the end of the night"),
        (~in_one_place, "the two live in different places"),
        ("is_apart", "a person took the two apart"),
        (pl.col("standing") == "open", "their contradiction is open and waits for a person"),
        (pl.col("standing").is_not_null(), "a person resolved their contradiction"),
        (never_together, "each holds in its own time"),
        (pl.col("new_valid_from") > end_of(night), "the later value has not begun"),
        (is_update & is_over, "the later value is over already, so each holds in its own time"),
    )


def _doubt() -> pl.Expr:
    """Say why a pair that contradicts itself can't be settled by order; null for an update that can."""
    is_update = pl.col("verdict") == Verdict.UPDATES.value
    return first_reason(
        (~is_update, "they can't both be so"),
        (~pl.col("is_ordered"), "nobody knows which was stated later"),
        (pl.col("confidence") < SURE_FROM, "the judge is not sure that the later one takes its place"),
        ("old_is_pinned", "the earlier one is pinned"),
        (pl.col("old_key").is_not_null(), "the earlier one has a key, and gives way to a later value of it alone"),
        (pl.col("new_trust") < pl.col("old_trust"), "the later one comes from a source that is trusted less"),
    )


def _decision() -> pl.Expr:
    return (
        pl.when(pl.col("stays").is_not_null())
        .then(pl.lit("leave"))
        .when(_doubt().is_not_null())
        .then(pl.lit("contradict"))
        .otherwise(pl.lit("supersede"))
    )
