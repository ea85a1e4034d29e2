"""Later values and contradictions: judgements → update_proposals."""

import dagster as dg

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.successors import carried
from nous_pipelines.phases.updates import FACT_COLUMNS, update_phase_of


@night_asset(
    deps=[judgements],
    kinds={"polars", "json"},
    description="Facts that give way to a later value of their slot, and facts that contradict each other; those stay.",
)
def update_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    judged, parts = files.read_table("judgements"), []
    copies = files.read_table("copies")
    for chunk in night_run.chunks(night):
        facts = chunk.table("facts", columns=FACT_COLUMNS)
        undone, contradictions = carried(
            chunk.table("undone"), chunk.table("contradictions"), facts=facts, copies=copies
        )
        parts.append(
            update_phase_of(chunk.own(judged), facts, contradictions=contradictions, undone=undone, night=night)
        )
    return kept(files, "update_proposals", parts)
