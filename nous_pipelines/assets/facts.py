"""Facts that say the same: snapshot → judgements → duplicate_clusters → merge_proposals."""

import dagster as dg
import polars as pl

from nous_pipelines.assets.nights import night_asset, night_of
from nous_pipelines.assets.store import snapshot
from nous_pipelines.phases import united
from nous_pipelines.resources import NightRun, as_metadata
from nous_pipelines.transforms.merging import (
    CLUSTERS,
    JUDGED,
    duplicate_clusters_of,
    judged_candidates,
    merge_phase_of,
)


@night_asset(
    deps=[snapshot],
    kinds={"numpy", "parquet"},
    description="Pairs of facts similar enough to be looked at, each with its verdict and the reason for it.",
)
def judgements(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    taken = night_run.settled_snapshot(night)
    undone = taken.table("undone")
    parts = [
        judged_candidates(facts, policy=chunk.policy, judge=night_run.judge, undone=undone)
        for chunk in night_run.chunks(night)
        for facts in by_agent(chunk.table("facts"))
    ]
    table = pl.concat(parts) if parts else pl.DataFrame(schema=JUDGED)
    night_run.files(night).write_table("judgements", table)
    return dg.MaterializeResult(metadata={"pairs": len(table), **dict(table.group_by("verdict").len().iter_rows())})


@night_asset(
    deps=[judgements],
    kinds={"parquet"},
    description="Facts that say the same, in clusters where every two were judged the same: no chaining.",
)
def duplicate_clusters(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    judged, undone = files.read_table("judgements"), night_run.snapshot(night).table("undone")
    parts = [
        duplicate_clusters_of(facts, judged, undone=undone)
        for chunk in night_run.chunks(night)
        for facts in by_agent(chunk.table("facts"))
    ]
    table = pl.concat(parts) if parts else pl.DataFrame(schema=CLUSTERS)
    files.write_table("duplicate_clusters", table)
    return dg.MaterializeResult(metadata={"clusters": table["cluster_id"].n_unique(), "members": len(table)})


@night_asset(
    deps=[duplicate_clusters],
    kinds={"json"},
    description="One merge for each cluster: which memory stays, which point to it, and why.",
)
def merge_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    judged, clusters = files.read_table("judgements"), files.read_table("duplicate_clusters")
    parts = [
        merge_phase_of(facts, judged, clusters.filter(agent_id=facts["agent_id"][0]), night=night)
        for chunk in night_run.chunks(night)
        for facts in by_agent(chunk.table("facts"))
    ]
    phase = united("merge_proposals", parts)
    files.write_phase(phase)
    return dg.MaterializeResult(metadata=as_metadata(phase.metadata()))


def by_agent(facts: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the facts of each agent."""
    return [own for _, own in facts.group_by(["agent_id"], maintain_order=True)]
