"""Censors that were mostly wrong: judgements → censor_proposals."""

import dagster as dg

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.censoring import censor_phase_of


@night_asset(
    deps=[judgements],
    kinds={"polars", "json"},
    description="Censors that were mostly wrong, or have run out: retired, all but the absolute ones.",
)
def censor_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    parts = [
        censor_phase_of(chunk.table("censors"), undone=chunk.table("undone"), policy=chunk.policy, night=night)
        for chunk in night_run.chunks(night)
    ]
    return kept(night_run.files(night), "censor_proposals", parts)
