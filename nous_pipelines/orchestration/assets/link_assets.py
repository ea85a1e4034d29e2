"""Memories that belong together: everything else the night wants → link_proposals."""

import dagster as dg
import polars as pl

from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.links import link_phase_of
from nous_pipelines.phases.phase import PHASES
from nous_pipelines.plan.night_files import NightFiles

OTHERS = [name for name in PHASES if name != "link_proposals"]
MEMORY = ("agent_id", "id", "state", "user_id", "is_rewound", "row_version")
COLUMNS = {
    "facts": (*MEMORY, "source_episode_id"),
    "episodes": MEMORY,
    "procedures": MEMORY,
    "recalls": ("agent_id", "id", "cited_ids"),
    "links": ("agent_id", "from_id", "to_id", "kind"),
    "undone": ("agent_id", "kind", "targets"),
}


@night_asset(
    deps=[dg.AssetKey(name) for name in OTHERS],
    kinds={"polars", "json"},
    description="Memories that are alike, were cited together, or of which one was drawn from the other.",
)
def link_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    judged, changed = files.read_table("judgements"), changed_tonight(files)
    parts = [
        link_phase_of(
            chunk.own(judged),
            {name: chunk.table(name, columns=columns) for name, columns in COLUMNS.items()},
            changed=changed,
            policy=chunk.policy,
            night=night,
        )
        for chunk in night_run.chunks(night)
    ]
    return kept(files, "link_proposals", parts)


def changed_tonight(files: NightFiles) -> pl.DataFrame:
    """Return the memories that other phases want to change (agent_id, id)."""
    rows = [
        (proposal["agent_id"], change["id"])
        for name in OTHERS
        for proposal in files.read_json(name)["proposals"]
        for change in proposal["changes"]
    ]
    return pl.DataFrame(rows, schema={"agent_id": pl.String, "id": pl.String}, orient="row").unique()
