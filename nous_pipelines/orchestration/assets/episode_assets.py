"""Episodes that have aged: snapshot → episode_summaries → episode_tiers."""

from datetime import date

import dagster as dg
import polars as pl

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.orchestration.summaries import episode_summaries_of
from nous_pipelines.phases.tiers import COLUMNS, SUMMARIES, due_episodes, tier_phase_of
from nous_pipelines.snapshots.chunks import Chunk


@night_asset(
    deps=[judgements],
    kinds={"parquet"},
    description="Title, summary, line and index word for episodes that are due for a tier and lack what it keeps.",
)
def episode_summaries(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    undone = night_run.snapshot(night).table("undone")
    parts = [episode_summaries_of(due_in(chunk, undone, night)) for chunk in night_run.chunks(night)]
    table = pl.concat(parts) if parts else pl.DataFrame(schema=SUMMARIES)
    night_run.files(night).write_table("episode_summaries", table)
    return dg.MaterializeResult(metadata={"written": len(table), "titles": len(table.drop_nulls("title"))})


@night_asset(
    deps=[episode_summaries],
    kinds={"json"},
    description="Which episodes become a summary, a line or a title by their age; what leaves them can be restored.",
)
def episode_tiers(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files, undone = night_run.files(night), night_run.snapshot(night).table("undone")
    summaries = files.read_table("episode_summaries")
    parts = [tier_phase_of(due_in(chunk, undone, night), summaries, night=night) for chunk in night_run.chunks(night)]
    return kept(files, "episode_tiers", parts)


def due_in(chunk: Chunk, undone: pl.DataFrame, night: date) -> pl.DataFrame:
    """Return the episodes of some agents whose age asks for another tier."""
    episodes, uses = chunk.table("episodes", columns=COLUMNS), chunk.table("uses")
    return due_episodes(episodes, uses=uses, undone=undone, policy=chunk.policy, night=night)
