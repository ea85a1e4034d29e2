"""The definitions of the Dagster code location: assets, checks, jobs, schedules, sensors and resources."""

from datetime import date

import dagster as dg

from nous_online.core.files import keep_private
from nous_pipelines.nights import FIRST_NIGHT
from nous_pipelines.orchestration.automation import (
    LAST_NIGHT,
    NextSpace,
    batch_results,
    closed_episodes,
    dry_run_job,
    embedding_space_switched,
    every_night,
    every_week,
    fresh_facts,
    last_night_applied,
    last_night_asked,
    last_night_exists,
    next_embeddings,
    retention,
    undo_nights,
)
from nous_pipelines.orchestration.night_assets import (
    NIGHTS,
    PHASE_ASSETS,
    TABLE_ASSETS,
    judge_batches,
    judge_requests,
    judgements,
    neighbours,
    nights_from,
    snapshot,
)
from nous_pipelines.orchestration.planning_assets import applied, plan, plan_checks, report, word_statistics
from nous_pipelines.orchestration.resources import NightRun

keep_private()  # Dagster starts the processes of a code location: no module of ours is loaded there before this one

PROPOSING = [snapshot, neighbours, judgements, *TABLE_ASSETS, *PHASE_ASSETS, plan, judge_requests]
"""The assets of a dry run; none of them changes a memory."""
ASSETS = [*PROPOSING, judge_batches, applied, word_statistics, report]

nightly = dg.define_asset_job(
    "nightly",
    selection=dg.AssetSelection.assets(*ASSETS),
    executor_def=dg.in_process_executor,
    description="A whole night: snapshot, proposals, plan, checks, applied, report.",
)

RESOURCES = {"night_run": NightRun.configure_at_launch(), "next_space": NextSpace.configure_at_launch()}
trials = dg.Definitions(
    assets=PROPOSING,
    asset_checks=[plan_checks],
    jobs=[dg.define_asset_job("trial", executor_def=dg.in_process_executor)],
    resources=RESOURCES,
)
"""The definitions that `nous night --dry-run` and the job `dry_run` run, apart from the assets of `defs`."""


def definitions_from(first: date) -> dg.Definitions:
    """Return all definitions, with partitions for the nights from `first` on."""
    nights = nights_from(first)

    def with_nights(spec: dg.AssetSpec) -> dg.AssetSpec:
        return spec.replace_attributes(partitions_def=nights) if spec.partitions_def == NIGHTS else spec

    return dg.Definitions(
        assets=dg.map_asset_specs(with_nights, [*ASSETS, LAST_NIGHT, next_embeddings, embedding_space_switched]),
        asset_checks=[plan_checks, last_night_applied],
        jobs=[nightly, dry_run_job(nights), undo_nights, last_night_asked, retention],
        schedules=[every_night, last_night_exists, every_week],
        sensors=[closed_episodes, fresh_facts, batch_results],
        resources=RESOURCES,
        executor=dg.in_process_executor,
    )


defs = definitions_from(FIRST_NIGHT)

__all__ = ["NIGHTS", "defs"]
