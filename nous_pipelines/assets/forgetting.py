"""What leaves an agent's reach: judgements → forgetting_proposals."""

import dagster as dg

from nous_pipelines.assets.facts import judgements
from nous_pipelines.assets.nights import kept, night_asset, night_of
from nous_pipelines.resources import NightRun
from nous_pipelines.transforms.forgetting import COLUMNS, forgetting_phase_of


@night_asset(
    deps=[judgements],
    kinds={"polars", "json"},
    description="Facts superseded for longer than the grace and memories nobody used: archived, and restorable.",
)
def forgetting_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    parts = [
        forgetting_phase_of(
            {name: chunk.table(name, columns=columns) for name, columns in COLUMNS.items()},
            policy=chunk.policy,
            night=night,
        )
        for chunk in night_run.chunks(night)
    ]
    return kept(night_run.files(night), "forgetting_proposals", parts)
