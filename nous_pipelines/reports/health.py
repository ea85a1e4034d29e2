"""How the store stands after each night, in figures that can be plotted over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import polars as pl
from psycopg.types.json import Jsonb

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.nights import end_of
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.report import NightFigures

SQL = statements("nous_pipelines.reports", "health.sql")
NIGHTS = 90
"""How far back the history goes that a report plots."""
SIMILARITIES = {"092": 0.92, "097": 0.97}
"""Cosines from which duplicates left are counted (the nightly candidates, and what is nearly word for word)."""
ALIKE = (Verdict.SAME.value, Verdict.UNSURE.value)
"""What may still be said twice; a pair of another verdict differs in something and only looks alike."""
TIMEOUT_S = 120.0


def measure_health(
    database: Database, files: NightFiles, night: date, *, seen_at: datetime, agent_ids: Sequence[str] = ()
) -> None:
    """Write the figures of some agents, or all, after a night; again only while no later night has been measured.

    `seen_at` is a moment from which on the night may have missed what came.
    Raises `Unavailable` when the night's judgements can't be read.
    """
    pairs = pair_figures(candidates_left(database, files))
    values = {
        "night": night,
        "seen_at": seen_at,
        "ends_at": end_of(night),
        "agent_ids": list(agent_ids),
        "pairs": Jsonb(pairs),
        "no_pairs": Jsonb({f"{what}_{name}": 0 for name in SIMILARITIES for what in ("duplicates", "look_alikes")}),
    }
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        connection.execute(SQL["measure_health"], values)


def candidates_left(database: Database, files: NightFiles) -> pl.DataFrame:
    """Return the similar pairs of one place whose two facts are both active still: agent_id, similarity, verdict."""
    path = files.folder / "judgements.parquet"
    wanted = pl.col("similarity") >= min(SIMILARITIES.values()), ~pl.col("is_across_users")
    try:
        pairs = pl.scan_parquet(path).filter(wanted).select("agent_id", "left_id", "right_id", "similarity", "verdict")
        found = pairs.collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"judgements.parquet in {files.folder} can't be read ({error}); run the night again"
        raise Unavailable(message) from error
    agents = found["agent_id"].unique().to_list()
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        gone = [row[0] for row in connection.execute(SQL["inactive_facts"], {"agent_ids": agents})]
    return found.filter(~pl.col("left_id").is_in(gone), ~pl.col("right_id").is_in(gone))


def pair_figures(left: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Return for each agent how many similar pairs are left: those that may be duplicates, and apart from them those
    that only look alike, from each cosine on.
    """
    is_alike = pl.col("verdict").is_in(list(ALIKE))
    counts = left.group_by("agent_id").agg(
        ((pl.col("similarity") >= similarity) & which).sum().alias(f"{what}_{name}")
        for name, similarity in SIMILARITIES.items()
        for what, which in {"duplicates": is_alike, "look_alikes": ~is_alike}.items()
    )
    return {row.pop("agent_id"): row for row in counts.to_dicts()}


def health_history(database: Database, night: date, *, agent_ids: Sequence[str] = ()) -> tuple[NightFigures, ...]:
    """Return the figures of the last nights up to one, oldest first, summed over some agents or all."""
    values = {"night": night, "nights": NIGHTS, "agent_ids": list(agent_ids)}
    return tuple(database.rows(NightFigures, SQL["health_history"], values, timeout_s=TIMEOUT_S))


def stale_ratio(figures: Mapping[str, float]) -> float:
    """Return which share of the active facts a later fact of the same slot has overtaken."""
    return figures.get("facts_stale", 0) / max(1.0, figures.get("facts_active", 0))


def tokens_saved(figures: Mapping[str, float]) -> float:
    """Return how many tokens the nights took out of active memory."""
    return sum(figures.get(f"tokens_saved_by_{way}", 0) for way in ("tiers", "merges", "archiving"))
