"""What several users of a project hold becomes the project's."""

import dagster as dg

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.sharing import HELD, share_phase


@night_asset(
    deps=[judgements],
    kinds={"json"},
    description="Facts that several users of a project hold, each for themselves: one of them becomes the project's.",
)
def shared_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    judged, copies = files.read_table("judgements"), files.read_table("copies")
    parts = [
        share_phase(
            chunk.table("facts", columns=HELD),
            chunk.own(judged),
            chunk.own(copies),
            policy=chunk.policy,
            night=night,
        )
        for chunk in night_run.chunks(night)
    ]
    return kept(files, "shared_proposals", parts)
