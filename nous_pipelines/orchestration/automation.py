"""What runs by itself: the night, the check that it did, throwing away, and the sensors between the nights.

The work of a sensor is done inside the tick, in the code server, where the models stay loaded: a run would take longer
to start than an episode takes to complete, wait for a night to end, and leave thirty events in Dagster's log.
"""

import atexit
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache

import dagster as dg
from pydantic import Field

from nous_online.core.errors import DeadlineExceeded, Unavailable
from nous_online.core.settings import Settings, settings
from nous_online.database import postgres
from nous_online.database.connection import Database, open_url
from nous_online.language.pairs.judging import OfflineJudge
from nous_online.memories.erasure import shared_copies_lock
from nous_online.queue.worker import Round, Staff, open_staff
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.fresh_facts import Scanned, scan_fresh_facts
from nous_pipelines.orchestration.instance import home_folder
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


# --- sensors ---

EVERY_S = 5
TICK_S = 20.0  # Dagster ends a tick after 60 s; what is not done by then is due at the next one
COLLECT_S = 15.0  # as short, for the sensors take turns
ERASING_S = 2.0
"""How long an erasing at work is waited for; the next look is a minute away."""
OPENED = ExitStack()


@dg.sensor(
    minimum_interval_seconds=EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Completes closed episodes (title, summary, facts, procedures, censors) and delivers events.",
)
def closed_episodes(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    try:
        done = staff_of_this_process().look(seconds=TICK_S)
    except Unavailable:
        let_go()  # the server may come back elsewhere
        raise
    if done.failed:
        raise dg.Failure(in_words(done))
    return dg.SkipReason(in_words(done))


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Compares facts learned since its last look with those near them, and opens the contradictions found.",
)
def fresh_facts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    try:
        scanned = scan_fresh_facts(staff_of_this_process().night, OfflineJudge(), seconds=TICK_S)
    except Unavailable:
        let_go()  # the server may come back elsewhere
        raise
    if scanned.delayed:
        raise dg.Failure(told(scanned))
    return dg.SkipReason(told(scanned))


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings home what Claude answered about pairs: verdicts for the next night. It changes no memory.",
)
def batch_results() -> dg.SkipReason:
    second = SecondJudge.collector(settings())
    if second is None:
        return dg.SkipReason("Claude is not asked: there is no key")
    try:
        night = staff_of_this_process().night
        if not unfinished(night):
            return dg.SkipReason("no batch is open")
        with ExitStack() as held:
            try:
                held.enter_context(shared_copies_lock(night.url, wait_s=ERASING_S))
            except DeadlineExceeded:
                return dg.SkipReason("memories are being erased; what Claude answered is brought home afterwards")
            return dg.SkipReason(second.look(night, home_folder(), seconds=COLLECT_S).words)
    except Unavailable:
        let_go()  # the server may come back elsewhere
        raise


def told(scanned: Scanned) -> str:
    """Return what a look at fresh facts came to, and whose have to wait and why."""
    found = f"{scanned.facts} fresh facts in {scanned.pairs} pairs, {scanned.opened} contradictions opened"
    said = [found if scanned.facts else "no fresh facts"]
    said += [
        f"the facts of agent {agent_id!r} have to wait: {why}" for agent_id, why in sorted(scanned.delayed.items())
    ]
    return "; ".join(said)


def in_words(done: Round) -> str:
    """Return what a look did, and whose work failed and why."""
    said = (
        [f"{done.completed} episodes completed, {done.delivered} events delivered"]
        if done.worked
        else ["nothing is due"]
    )
    said += [f"agent {agent_id!r} was passed over: {why}" for agent_id, why in done.skipped.items()]
    said += [
        f"the work of agent {agent_id!r} failed and is tried again: {why}" for agent_id, why in done.failed.items()
    ]
    return "; ".join(said)


@cache
def staff_of_this_process() -> Staff:
    """Return connections and models, opened by the first tick and kept for the next."""
    return OPENED.enter_context(open_staff())


def let_go() -> None:
    """Give the connections back; the next tick opens them anew."""
    staff_of_this_process.cache_clear()
    OPENED.close()


atexit.register(let_go)
