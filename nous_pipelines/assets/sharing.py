"""What several users of a project hold becomes the project's."""

import dagster as dg

from nous_pipelines.assets.facts import judgements, of_agents
from nous_pipelines.assets.nights import night_asset, night_of
from nous_pipelines.phases import united
from nous_pipelines.resources import NightRun, as_metadata
from nous_pipelines.transforms.sharing import HELD, share_phase


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
            *of_agents(chunk.agent_ids, judged, copies),
            policy=chunk.policy,
            night=night,
        )
        for chunk in night_run.chunks(night)
    ]
    phase = united("shared_proposals", parts)
    files.write_phase(phase)
    return dg.MaterializeResult(metadata=as_metadata(phase.metadata()))
