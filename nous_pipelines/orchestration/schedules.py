"""What runs by itself: every night, the check that it did, and throwing away what is no longer asked for."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime

import dagster as dg
from pydantic import Field

from nous_online.core.settings import Settings, settings
from nous_online.database import postgres
from nous_online.database.connection import Database, open_url
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.night_assets import OWNERS
from nous_pipelines.orchestration.planning_assets import applied
from nous_pipelines.orchestration.resources import as_metadata
from nous_pipelines.orchestration.retention import Retention, purge, throw_away

KEPT = Retention()
HOURS = Settings()
BY_ITSELF = dg.DefaultScheduleStatus.RUNNING if HOURS.nights else dg.DefaultScheduleStatus.STOPPED
"""A memory that nobody looks after is to be kept in order all the same; a switch set by hand goes before it."""


@dg.schedule(
    job_name="nightly",
    cron_schedule=HOURS.night_cron,
    execution_timezone=HOURS.night_zone,
    default_status=BY_ITSELF,
    description="Every day at 03:00 (NOUS_NIGHT_CRON, NOUS_NIGHT_ZONE): the last night (UTC) that is over.",
)
def every_night(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    night = last_night(context.scheduled_execution_time).isoformat()
    yield dg.RunRequest(run_key=night, partition_key=night)


# --- the last night exists ---

LAST_NIGHT = dg.AssetSpec(
    "last_night",
    deps=[applied],
    group_name="watch",
    owners=OWNERS,
    description="The last night that is over. Nothing makes it: its check says whether `applied` has it.",
)
"""Whether a night is missing is said here: a check on `applied` would be part of every run that makes it."""


@dg.asset_check(
    asset=LAST_NIGHT.key,
    name="freshness_check",
    description="The last night that is over was applied. Backfilling an old one does not make up for it.",
)
def last_night_applied(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    night = last_night(datetime.now(UTC)).isoformat()
    exists = night in context.instance.get_materialized_partitions(applied.key)
    said = "was applied" if exists else f"was not applied; run it with: nous night --date {night}"
    return dg.AssetCheckResult(
        passed=exists, severity=dg.AssetCheckSeverity.WARN, description=f"the last night, {night}, {said}"
    )


last_night_asked = dg.define_asset_job(
    "last_night_asked",
    selection=dg.AssetSelection.checks(last_night_applied),
    executor_def=dg.in_process_executor,
    description="Asks whether the last night that is over was applied.",
)
last_night_exists = dg.ScheduleDefinition(
    name="last_night_exists",
    job=last_night_asked,
    cron_schedule=HOURS.night_deadline_cron,
    execution_timezone=HOURS.night_zone,
    default_status=BY_ITSELF,
    description="Every day at 06:00 (NOUS_NIGHT_DEADLINE_CRON): a warning on `last_night` when it is missing.",
)


# --- retention ---


class KeptDays(dg.Config):
    """For how many days what nights leave behind is kept."""

    runs_kept_days: int = Field(default=KEPT.runs_kept_days, description="Runs of Dagster.")
    snapshots_kept_days: int = Field(default=KEPT.snapshots_kept_days, description="Snapshots of nights.")
    set_aside_kept_days: int = Field(default=KEPT.set_aside_kept_days, description="Folders that no night reads.")
    raw_results_kept_days: int = Field(
        default=KEPT.raw_results_kept_days, description="What Claude answered, as it came."
    )


@dg.op(description="Deletes runs, snapshots and what the policy purges, once they are older than they are kept.")
def throw_away_what_is_old(context: dg.OpExecutionContext, config: KeptDays) -> None:
    now = datetime.now(UTC)
    home = settings().home or postgres.default_home()
    thrown = throw_away(context.instance, home / "snapshots", Retention(**config.model_dump()), now=now)
    database = Database(open_url(), role="nous_purge", max_connections=1)
    try:
        purged = purge(database, NightPolicy(), now=now)
    finally:
        database.close()
    context.add_output_metadata(as_metadata({**asdict(thrown), **asdict(purged)}))


@dg.job(
    executor_def=dg.in_process_executor,
    description="Throws away runs, snapshots and purged rows that are older than they are kept. No memory is deleted.",
)
def retention() -> None:
    throw_away_what_is_old()


every_week = dg.ScheduleDefinition(
    name="every_week",
    job=retention,
    cron_schedule="30 4 * * 0",
    execution_timezone=HOURS.night_zone,
    default_status=BY_ITSELF,
    description="Sundays at 04:30: throws away what is older than it is kept.",
)
