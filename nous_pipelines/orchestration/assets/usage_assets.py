"""What use makes of each memory's weight: judgements → usage_ranks → rank_proposals."""

import dagster as dg
import polars as pl

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.usage import COLUMNS, FACT_COLUMNS, RANKS, rank_phase_of, usage_ranks_of


@night_asset(
    deps=[judgements],
    kinds={"polars", "parquet"},
    description="How much each memory is used, against how much its agent uses any, and the weight that asks for.",
)
def usage_ranks(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    parts = [
        usage_ranks_of(
            chunk.table("facts", columns=FACT_COLUMNS),
            chunk.table("episodes", columns=COLUMNS),
            chunk.table("procedures", columns=COLUMNS),
            chunk.table("uses"),
            policy=chunk.policy,
            night=night,
        )
        for chunk in night_run.chunks(night)
    ]
    table = pl.concat(parts) if parts else pl.DataFrame(schema=RANKS)
    night_run.files(night).write_table("usage_ranks", table)
    return dg.MaterializeResult(metadata={"ranked": len(table), "used": len(table.drop_nulls("last_used_at"))})


@night_asset(
    deps=[usage_ranks],
    kinds={"json"},
    description="Memories whose use earns them another weight: cited ones rise, ignored ones sink, all of it fades.",
)
def rank_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    ranks = files.read_table("usage_ranks")
    parts = [
        rank_phase_of(
            chunk.own(ranks),
            undone=chunk.table("undone"),
            policy=chunk.policy,
            night=night,
        )
        for chunk in night_run.chunks(night)
    ]
    return kept(files, "rank_proposals", parts)
