"""Procedures that fail: judgements → procedure_proposals."""

import dagster as dg

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.reviewing import procedure_phase_of


@night_asset(
    deps=[judgements],
    kinds={"polars", "json"},
    description="Procedures that fail too often: flagged for review, and trusted again once they work.",
)
def procedure_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    parts = [
        procedure_phase_of(chunk.table("procedures"), undone=chunk.table("undone"), policy=chunk.policy, night=night)
        for chunk in night_run.chunks(night)
    ]
    return kept(night_run.files(night), "procedure_proposals", parts)
