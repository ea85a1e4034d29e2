"""Shorter texts for episodes that lack them: what an import brought along, or what no worker ever came to complete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from nous_online.language.writing.lexrank import index_word
from nous_online.language.writing.writer import EndedEpisode, levels_by_words
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.phase import Tables
from nous_pipelines.phases.phase_table import NightTable
from nous_pipelines.phases.tiers import COLUMNS, KEY, LEVELS, SUMMARIES, due_episodes, lacking


def episode_summaries(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return shorter texts for the episodes of `due_episodes` that move and lack one: shape `SUMMARIES`.

    `tables`: episodes, uses, undone. They are lifted from the detail, or from the summary where that is all there is,
    by their words alone: the same wherever the night runs. A text that was told stays in front of what is made here.
    """
    due = due_episodes(tables, policy=policy, night=night)
    rows = lacking(due).select(*KEY, *LEVELS, "detail", "participants").to_dicts()
    return pl.DataFrame([{**{key: row[key] for key in KEY}, **shortened(row)} for row in rows], schema=SUMMARIES)


def shortened(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the levels of one episode, None for what can't be drawn from anything it has."""
    text: str = row["detail"] or row["summary"] or row["compressed"] or ""
    if not text.strip():
        return {"index_word": index_word(row["title"]) if row["title"] else None}
    levels = levels_by_words(EndedEpisode(text, title=row["title"], participants=row["participants"] or ()))
    return {name: row[name] or getattr(levels, name) or None for name in LEVELS}


EPISODE_SUMMARIES = NightTable(
    SUMMARIES,
    "Title, summary, line and index word for episodes that are due for a tier and lack what it keeps.",
    {"episodes": COLUMNS, "uses": None, "undone": None},
    episode_summaries,
    {"written": pl.len(), "titles": pl.col("title").count()},
)
