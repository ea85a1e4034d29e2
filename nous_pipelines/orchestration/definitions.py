"""The Dagster code location: assets, checks, the nightly job and its schedule."""

import dagster as dg

from nous_online.core.home import keep_private
from nous_pipelines.orchestration.assets.check_assets import plan_checks
from nous_pipelines.orchestration.assets.judging_assets import judge_batches, judge_requests
from nous_pipelines.orchestration.assets.night_assets import NIGHTS
from nous_pipelines.orchestration.assets.pair_assets import judgements, neighbours
from nous_pipelines.orchestration.assets.phase_assets import PHASE_ASSETS, TABLE_ASSETS
from nous_pipelines.orchestration.assets.planning_assets import applied, plan, report, word_statistics
from nous_pipelines.orchestration.assets.reembedding_assets import NextSpace, embedding_space_switched, next_embeddings
from nous_pipelines.orchestration.assets.store_assets import snapshot
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.orchestration.schedules import (
    every_night,
    every_week,
    last_night_applied,
    last_night_asked,
    last_night_exists,
    retention,
)
from nous_pipelines.orchestration.sensors import batch_results, closed_episodes, fresh_facts

keep_private()  # of a code location this is the entry point

PROPOSING = [snapshot, neighbours, judgements, *TABLE_ASSETS, *PHASE_ASSETS, plan, judge_requests]
"""Up to here nothing changes."""
ASSETS = [*PROPOSING, judge_batches, applied, word_statistics, report]

nightly = dg.define_asset_job(
    "nightly",
    selection=(dg.AssetSelection.assets(*ASSETS) | dg.AssetSelection.checks(plan_checks))
    - dg.AssetSelection.checks(last_night_applied),
    executor_def=dg.in_process_executor,
    description="A whole night: snapshot, proposals, plan, checks, applied, report.",
)
dry_run = dg.define_asset_job(
    "dry_run",
    selection=dg.AssetSelection.assets(*PROPOSING) | dg.AssetSelection.checks(plan_checks),
    executor_def=dg.in_process_executor,
    config={"resources": {"night_run": {"config": {"is_dry_run": True}}}},
    description="The same night up to the checks: says what it would change, and changes nothing.",
)


defs = dg.Definitions(
    assets=[*ASSETS, next_embeddings, embedding_space_switched],
    asset_checks=[plan_checks, last_night_applied],
    jobs=[nightly, dry_run, last_night_asked, retention],
    schedules=[every_night, last_night_exists, every_week],
    sensors=[closed_episodes, fresh_facts, batch_results],
    resources={"night_run": NightRun.configure_at_launch(), "next_space": NextSpace.configure_at_launch()},
    executor=dg.in_process_executor,
)

__all__ = ["NIGHTS", "defs"]
