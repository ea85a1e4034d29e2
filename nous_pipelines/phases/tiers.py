"""Episodes condensed by age: full text, summary, one line, title. Removed texts are kept in cold storage.

Age sets the tier, and an episode moves one tier a night towards it. Below the summary its age counts from when a writer
completed it here, where that came after its end: a backfill over an import of old episodes leaves their summaries. An
episode cited within `probe_days` stays one tier more detailed, since it is in use. One that no writer has completed
keeps its summary: the extractive one of the night may miss what mattered. Each removed text is stored under the tier
that the episode had.

Recall by meaning is unaffected, as the vector stays. Recall by words no longer finds words that only the removed texts
have; title, lessons and tags stay at every tier. Facts extracted from an episode are memories of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import polars as pl

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.phase import KEY, PINNED, REWOUND, Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import taken_back
from nous_pipelines.snapshots.table_schemas import EPISODES, MEMORY, TableSchema

TIERS = ("raw", "summary", "compressed", "fossil")
SUMMARY = TIERS.index("summary")
LEVELS = ("title", "summary", "compressed", "index_word")
KEPT: Mapping[str, tuple[str, ...]] = {
    "summary": LEVELS,
    "compressed": ("title", "compressed", "index_word"),
    "fossil": ("title", "index_word"),
}
"""The texts an episode keeps at each tier; tags, lessons, outcome, decisions, artifacts, procedures always stay."""
ESSENTIAL: Mapping[str, str] = {"summary": "summary", "compressed": "compressed", "fossil": "title"}
"""The text that recall shows at a tier; without it an episode does not move there."""
LEAVING = ("detail", "summary", "compressed")
"""The texts that may move to cold storage."""
NAMES: Mapping[str, str] = {"detail": "detail", "summary": "summary", "compressed": "compressed line", "title": "title"}
"""The texts that recall can show of an episode, the most detailed first, with their names for people."""

SUMMARIES = TableSchema("episode_summaries", "Shorter texts made for episodes that move a tier and lack them.", {
    **MEMORY,
    **{name: EPISODES.column(name) for name in LEVELS},
})  # fmt: skip
COLUMNS = (
    "id", "agent_id", "state", "title", "summary", "compressed", "index_word", "detail", "compression_tier", "ended_at",
    "completed_at", "completion_note", "participants", "is_pinned", "row_version", "is_rewound",
)  # fmt: skip


def due_episodes(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the closed episodes due for another tier, with `age_days`, `target` and the reason in `waits`, by id.

    `tables`: episodes, uses, undone. `waits` is null for those that move.
    """
    is_sure = pl.col("completed_at").is_not_null() & pl.col("completion_note").is_null()
    age = pl.lit(end_of(night)) - pl.col("ended_at")
    # `completed_at` is by the store's own clock, whatever day the episode is dated.
    here = pl.when(is_sure).then(pl.min_horizontal(age, pl.lit(end_of(night)) - pl.col("completed_at"))).otherwise(age)
    to_summary, *below = (timedelta(days=days) for days in ages(policy))
    asked = pl.sum_horizontal(age >= to_summary, *(here >= days for days in below)).cast(pl.Int8)
    place = pl.col("compression_tier").replace_strict(TIERS, list(range(len(TIERS))), return_dtype=pl.Int8)
    least = pl.min_horizontal(pl.col("asked") - pl.col("is_cited").cast(pl.Int8), pl.col("place") + 1)
    target = pl.when(is_sure).then(least).otherwise(pl.min_horizontal(least, pl.lit(SUMMARY, pl.Int8)))
    return (
        tables["episodes"]
        .filter(pl.col("state") == "closed", pl.col("ended_at").is_not_null())
        .with_columns(asked=asked, place=place, age_days=age.dt.total_days())
        .filter(pl.col("asked") > pl.col("place"))
        .join(cited_lately(tables["uses"], policy=policy, night=night), on=KEY, how="left")
        .join(taken_back(tables["undone"], "tier"), on=KEY, how="left")
        .with_columns(pl.col("is_cited", "is_taken_back").fill_null(value=False))
        .with_columns(target=target.clip(0, None), waits=reason_to_wait(target > pl.col("place"), is_sure, policy))
        .with_columns(pl.col("target").replace_strict(list(range(len(TIERS))), TIERS, return_dtype=pl.String))
        .sort(KEY)
    )


def has_ageing_episodes(tables: Tables, *, policy: NightPolicy, night: date) -> bool:
    """Return whether an episode may move a tier by age alone."""
    episodes = tables["episodes"]
    return bool(((episodes["state"] == "closed") & (episodes["compression_tier"] != TIERS[-1])).any())


def ages(policy: NightPolicy) -> tuple[int, int, int]:
    """Return the ages in days at which an episode moves to each tier after the first."""
    return (policy.summary_after_days, policy.compressed_after_days, policy.fossil_after_days)


def cited_lately(uses: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the episodes cited in the `probe_days` up to the night, marked `is_cited`."""
    is_late = pl.col("day") > night - timedelta(days=policy.probe_days)
    return (
        uses.filter(pl.col("memory_kind") == "episode", pl.col("cited") > 0, is_late)
        .select("agent_id", id="memory_id", is_cited=pl.lit(value=True))
        .unique()
    )


def reason_to_wait(is_moving: pl.Expr, is_sure: pl.Expr, policy: NightPolicy) -> pl.Expr:
    """Return the reason why an episode stays as it is, null where it moves."""
    return first_reason(
        PINNED,
        REWOUND,
        ("is_taken_back", "a person took its condensing back"),
        (~is_moving & ~is_sure, "no writer has completed it, so it keeps its summary"),
        (~is_moving, f"cited within {policy.probe_days} days, so it stays one tier more detailed"),
    )


def lacking(due: pl.DataFrame) -> pl.DataFrame:
    """Return the episodes of `due_episodes` that move and lack a text of their target tier."""
    lacks = pl.lit(value=False)
    for tier, kept in KEPT.items():
        lacks |= (pl.col("target") == tier) & pl.any_horizontal(pl.col(name).is_null() for name in kept)
    return due.filter(pl.col("waits").is_null() & lacks)


def tier_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a proposal for each episode of `due_episodes` that moves, and for the others why they stay.

    `tables`: episodes, uses, undone, episode_summaries.
    """
    phase, due = Phase("episode_tiers"), due_episodes(tables, policy=policy, night=night)
    phase.add_eligible_rows(due)
    phase.leave_all(due, why="waits")
    made = tables["episode_summaries"].rename({name: f"made_{name}" for name in LEVELS})
    words = [pl.col(name).str.count_matches(r"\S+").alias(f"{name}_words") for name in NAMES]
    moving = due.filter(pl.col("waits").is_null()).join(made, on=KEY, how="left", maintain_order="left")
    for row in moving.with_columns(words).drop("detail").iter_rows(named=True):
        if row[ESSENTIAL[row["target"]]] or row[f"made_{ESSENTIAL[row['target']]}"]:
            phase.propose(tier_proposal(row, night=night))
        else:
            phase.leave(row["agent_id"], "nothing could be drawn from it yet")
    return phase


def tier_proposal(row: Mapping[str, Any], *, night: date) -> Proposal:
    """Return the proposal that moves one episode to its target: texts to cold storage, new summaries into the row."""
    episode_id, kept = row["id"], KEPT[row["target"]]
    drawn = {name: row[f"made_{name}"] for name in kept if row[name] is None and row[f"made_{name}"]}
    moved = [name for name in LEAVING if name not in kept and row[f"{name}_words"] is not None]
    values = {"compression_tier": row["target"], **dict.fromkeys(moved), **drawn}
    cold = {"tier": row["compression_tier"], "columns": moved, "purge_after": None}
    leaving = [Change("cold_text", episode_id, set=cold)] if moved else []
    return Proposal(
        night=night,
        agent_id=row["agent_id"],
        kind="tier",
        targets=(episode_id,),
        read_set=(Read("episode", episode_id, row["row_version"]),),
        changes=(*leaving, Change("episode", episode_id, set=values, action="condensed")),
        reason=reason_of(row, moved, drawn),
        evidence={
            "age_days": row["age_days"],
            "from": row["compression_tier"],
            "to": row["target"],
            "drawn": list(drawn),
            "words_before": shown_words(row, moved=(), drawn={}),
            "words_after": shown_words(row, moved=moved, drawn=drawn),
        },
    )


def shown_words(row: Mapping[str, Any], *, moved: Sequence[str], drawn: Mapping[str, str]) -> int:
    """Return the words of the most detailed text an episode shows once `moved` has left and `drawn` has come."""
    for name in NAMES:
        if name in drawn:
            return len(drawn[name].split())
        if row[f"{name}_words"] is not None and name not in moved:
            return row[f"{name}_words"]
    return 0


def reason_of(row: Mapping[str, Any], moved: Sequence[str], drawn: Mapping[str, str]) -> str:
    """Return the reason in words: the episode's age, what it keeps, and what can be restored."""
    essential = ESSENTIAL[row["target"]]
    keeps = f"closed {row['age_days']} days ago: keeps its {NAMES[essential]}"
    if essential in drawn:
        keeps += ", drawn from it tonight"
    left = " and ".join(f"its {NAMES[name]} of {word_count_text(row[f'{name}_words'])}" for name in moved)
    return f"{keeps}; {left} can be restored" if left else keeps


def word_count_text(words: int) -> str:
    """Return a number of words as text, such as `1,200 words`."""
    return "1 word" if words == 1 else f"{words:,} words"
