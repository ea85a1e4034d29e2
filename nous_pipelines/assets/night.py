"""snapshot → duplicate_candidates → duplicate_clusters → merge_proposals → plan → applied → report."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, date, datetime

import dagster as dg
import polars as pl

from nous_online.recall import refresh_statistics
from nous_pipelines.apply import apply_plan, proposals_of
from nous_pipelines.nights import FIRST_NIGHT, parse_night
from nous_pipelines.proposals import planned
from nous_pipelines.report import night_report
from nous_pipelines.resources import NightRun, as_metadata
from nous_pipelines.snapshot import take_snapshot
from nous_pipelines.transforms.merging import (
    CANDIDATES,
    CLUSTERS,
    duplicate_clusters_of,
    judged_candidates,
    merge_proposals_of,
)

NIGHTS = dg.DailyPartitionsDefinition(start_date=FIRST_NIGHT.isoformat(), timezone="UTC", end_offset=1)
"""One partition is one night for all agents; tonight is among them, so that it can be run before it is over."""

YESTERDAY = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)


def night_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> date:
    """Return the night a step works on."""
    return parse_night(context.partition_key)


@dg.asset(
    partitions_def=NIGHTS,
    deps=[dg.AssetDep("snapshot", partition_mapping=YESTERDAY)],
    group_name="night",
    kinds={"postgres", "parquet"},
    description="The store at the end of the night, read in one transaction; immutable once the night is over.",
)
def snapshot(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    policy = night_run.night_policy
    taken = take_snapshot(
        night_run.database, night_run.folder(night), night=night, probe_days=policy.probe_days, now=datetime.now(UTC)
    )
    return dg.MaterializeResult(
        metadata={**taken.counts, "folder": str(taken.folder), "taken_at": taken.taken_at.isoformat()}
    )


@dg.asset(
    partitions_def=NIGHTS,
    deps=[snapshot],
    group_name="night",
    kinds={"numpy", "parquet"},
    description="Pairs of facts similar enough to be looked at, each with its verdict and the reason for it.",
)
def duplicate_candidates(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, policy = night_of(context), night_run.night_policy
    taken = night_run.settled_snapshot(night)
    apart = taken.table("undone_merges")
    parts = [
        judged_candidates(facts, policy=policy, judge=night_run.judge, undone_merges=apart)
        for facts in by_agent(taken.table("facts"), night_run.agents())
    ]
    table = pl.concat(parts) if parts else pl.DataFrame(schema=CANDIDATES)
    night_run.files(night).write_table("duplicate_candidates", table)
    return dg.MaterializeResult(metadata={"pairs": len(table), **dict(table.group_by("verdict").len().iter_rows())})


@dg.asset(
    partitions_def=NIGHTS,
    deps=[duplicate_candidates],
    group_name="night",
    kinds={"parquet"},
    description="Facts that say the same, in clusters where every two were judged the same: no chaining.",
)
def duplicate_clusters(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    candidates = files.read_table("duplicate_candidates")
    taken = night_run.snapshot(night)
    apart = taken.table("undone_merges")
    parts = [
        duplicate_clusters_of(facts, candidates, undone_merges=apart)
        for facts in by_agent(taken.table("facts"), night_run.agents())
    ]
    table = pl.concat(parts) if parts else pl.DataFrame(schema=CLUSTERS)
    files.write_table("duplicate_clusters", table)
    return dg.MaterializeResult(metadata={"clusters": table["cluster_id"].n_unique(), "members": len(table)})


@dg.asset(
    partitions_def=NIGHTS,
    deps=[duplicate_clusters],
    group_name="night",
    kinds={"json"},
    description="One merge for each cluster: which memory stays, which point to it, and why.",
)
def merge_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    candidates, clusters = files.read_table("duplicate_candidates"), files.read_table("duplicate_clusters")
    proposals = [
        proposal
        for facts in by_agent(night_run.snapshot(night).table("facts"), night_run.agents())
        for proposal in merge_proposals_of(facts, candidates, clusters, night=night)
    ]
    files.write_proposals("merge_proposals", proposals)
    return dg.MaterializeResult(metadata={"proposals": len(proposals)})


@dg.asset(
    partitions_def=NIGHTS,
    deps=[merge_proposals],
    group_name="night",
    kinds={"json"},
    description="Everything the night would change, free of conflicts, known by its hash. Nothing has changed yet.",
)
def plan(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    made = planned(
        night,
        files.read_proposals("merge_proposals"),
        agent_ids=night_run.agent_ids,
        policy=night_run.night_policy.as_dict(),
    )
    files.write_json("plan", made.as_dict())
    return dg.MaterializeResult(
        metadata=as_metadata(
            {
                "hash": made.hash,
                "proposals": len(made.proposals),
                "waiting": len(made.waiting),
                "policy": dict(made.policy),
            }
        )
    )


@dg.asset(
    partitions_def=NIGHTS,
    deps=[plan],
    group_name="night",
    kinds={"postgres"},
    description="The plan that passed its checks, carried out: versions compared, one event a change, undoable.",
)
def applied(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    checked = files.read_checked_plan()
    outcome = apply_plan(
        night_run.database,
        checked.plan,
        run_id=context.run.run_id,
        checks=checked.results,
        on_progress=progress(context),
    )
    metadata = {"hash": checked.plan.hash, **asdict(outcome)}
    files.write_json("applied", metadata)
    return dg.MaterializeResult(metadata=as_metadata(metadata))


@dg.asset(
    partitions_def=NIGHTS,
    deps=[applied],
    group_name="night",
    kinds={"postgres"},
    description="How often each word occurs in an agent's memories: what makes a rare word count in recall.",
)
def word_statistics(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    agents = night_run.agents()
    for agent_id in agents:
        with night_run.database.transaction(agent_id) as connection:
            refresh_statistics(connection, agent_id)
    return dg.MaterializeResult(metadata={"agents": len(agents)})


@dg.asset(
    partitions_def=NIGHTS,
    deps=[applied],
    group_name="night",
    kinds={"markdown"},
    description="What the night changed and why, what it kept apart and why, and how to take it back.",
)
def report(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    decided = proposals_of(night_run.database, night)
    made = night_report(night_run.snapshot(night), night_run.files(night), decided)
    return dg.MaterializeResult(metadata={**made.counts, "report": dg.MetadataValue.md(made.markdown)})


def by_agent(facts: pl.DataFrame, agent_ids: list[str]) -> list[pl.DataFrame]:
    """Return the facts of each agent this run is for: one agent is one unit of work."""
    return [facts.filter(pl.col("agent_id") == agent_id) for agent_id in agent_ids]


def progress(context: dg.AssetExecutionContext, every: int = 500) -> Callable[[int, int], None]:
    """Return a callback that writes a line to the run log now and then."""

    def tell(done: int, total: int) -> None:
        if done % every == 0 or done == total:
            context.log.info("applied %d of %d proposals", done, total)

    return tell
