"""The code location of Dagster: all assets, checks, jobs, schedules, sensors and resources, and what these do.

Sensors do their work inside the tick, in the code server, where the models stay loaded: a run would take longer to
start than an episode takes to complete, wait for a night to end, and leave thirty events in Dagster's log.
"""

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, date, datetime
from functools import cache

import dagster as dg
from pydantic import Field

from nous_online.core.errors import DeadlineExceeded, NotFound, Refused, Unavailable
from nous_online.core.files import keep_private
from nous_online.core.settings import Settings, settings
from nous_online.database.connection import Database, open_url, register_space
from nous_online.language.embedding import Embedder, default_embedder
from nous_online.language.pairs.judging import OfflineJudge
from nous_online.memories.erasure import shared_copies_lock
from nous_online.queue.worker import Round, Staff, open_staff
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import FIRST_NIGHT, last_night, nights_between, parse_night
from nous_pipelines.orchestration.fresh_facts import Scanned, scan_fresh_facts
from nous_pipelines.orchestration.instance import home_folder
from nous_pipelines.orchestration.night_assets import (
    NIGHTS,
    OWNERS,
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
from nous_pipelines.orchestration.reembedding import BUCKETS, embedder_named, fill_vectors, switch_agents
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.orchestration.retention import Retention, purge, throw_away
from nous_pipelines.orchestration.running import NightOptions, run_night
from nous_pipelines.plan.undo import Selection, undo_range
from nous_pipelines.reports.text_reports import markdown_of

DEFAULTS = Retention()
SETTINGS = Settings()
SCHEDULE_STATUS = dg.DefaultScheduleStatus.RUNNING if SETTINGS.nights else dg.DefaultScheduleStatus.STOPPED
"""Schedules run unless NOUS_NIGHTS says otherwise: a memory that nobody looks after needs its nights as well.

A schedule that was switched by hand in the interface stays as it is.
"""


@dg.schedule(
    job_name="nightly",
    cron_schedule=SETTINGS.night_cron,
    execution_timezone=SETTINGS.night_zone,
    default_status=SCHEDULE_STATUS,
    description="Every day at 03:00 (NOUS_NIGHT_CRON, NOUS_NIGHT_ZONE): the last night (UTC) that is over.",
)
def every_night(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    night = last_night(context.scheduled_execution_time).isoformat()
    yield dg.RunRequest(run_key=night, partition_key=night)


# --- whether the last night was applied ---

# A check on `applied` would be part of every run that materialises `applied`, so the check has an asset of its own.
LAST_NIGHT = dg.AssetSpec(
    "last_night",
    deps=[applied],
    group_name="watch",
    owners=OWNERS,
    description="The last night that is over. Nothing makes it: its check says whether `applied` has it.",
)


@dg.asset_check(
    asset=LAST_NIGHT.key,
    name="freshness_check",
    description="The last night that is over was applied. Backfilling an old one does not make up for it.",
)
def last_night_applied(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    night = last_night(datetime.now(UTC)).isoformat()
    exists = night in context.instance.get_materialized_partitions(applied.key)
    outcome = "was applied" if exists else f"was not applied; run it with: nous night --date {night}"
    return dg.AssetCheckResult(
        passed=exists, severity=dg.AssetCheckSeverity.WARN, description=f"the last night, {night}, {outcome}"
    )


last_night_asked = dg.define_asset_job(
    "last_night_asked",
    selection=dg.AssetSelection.checks(last_night_applied),
    executor_def=dg.in_process_executor,
    description="Checks whether the last night that is over was applied.",
)
last_night_exists = dg.ScheduleDefinition(
    name="last_night_exists",
    job=last_night_asked,
    cron_schedule=SETTINGS.night_deadline_cron,
    execution_timezone=SETTINGS.night_zone,
    default_status=SCHEDULE_STATUS,
    description="Every day at 06:00 (NOUS_NIGHT_DEADLINE_CRON): a warning on `last_night` when it is missing.",
)


# --- retention ---


class KeptDays(dg.Config):
    """How many days the traces of nights are kept."""

    runs_kept_days: int = Field(default=DEFAULTS.runs_kept_days, description="Runs of Dagster.")
    snapshots_kept_days: int = Field(default=DEFAULTS.snapshots_kept_days, description="Snapshots of nights.")
    set_aside_kept_days: int = Field(default=DEFAULTS.set_aside_kept_days, description="Folders that no night reads.")
    raw_results_kept_days: int = Field(
        default=DEFAULTS.raw_results_kept_days, description="What Claude answered, as it came."
    )


@dg.op(description="Deletes runs, snapshots and what the policy purges, once they are older than they are kept.")
def throw_away_what_is_old(context: dg.OpExecutionContext, config: KeptDays) -> None:
    now = datetime.now(UTC)
    deleted = throw_away(context.instance, home_folder() / "snapshots", Retention(**config.model_dump()), now=now)
    with closing(Database(open_url(), role="nous_purge", max_connections=1)) as database:
        purged = purge(database, NightPolicy(), now=now)
    context.add_output_metadata(as_metadata({**asdict(deleted), **asdict(purged)}))


@dg.job(
    executor_def=dg.in_process_executor,
    description="Deletes runs, snapshots and purged rows that are older than they are kept; never a memory.",
)
def retention() -> None:
    throw_away_what_is_old()


every_week = dg.ScheduleDefinition(
    name="every_week",
    job=retention,
    cron_schedule="30 4 * * 0",
    execution_timezone=SETTINGS.night_zone,
    default_status=SCHEDULE_STATUS,
    description="Sundays at 04:30: deletes runs, snapshots and rows that are older than they are kept.",
)


# --- sensors ---

TICK_S = 20.0  # Dagster ends a tick after 60 s; the rest is done at the next tick
COLLECT_S = 15.0  # sensors run one after the other, so this delays the others
ERASURE_WAIT_S = 2.0  # for an erasure in progress; the sensor tries again after a minute
OPENED = ExitStack()


@dg.sensor(
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Completes closed episodes (title, summary, facts, procedures, censors) and delivers events.",
)
def closed_episodes(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    with kept_staff() as staff:
        done = staff.look(seconds=TICK_S)
    if done.failed:
        raise dg.Failure(round_in_words(done))
    return dg.SkipReason(round_in_words(done))


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Compares facts learned since its last look with those near them, and opens the contradictions found.",
)
def fresh_facts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    with kept_staff() as staff:
        scanned = scan_fresh_facts(staff.night, OfflineJudge(), seconds=TICK_S)
    if scanned.delayed:
        raise dg.Failure(scan_in_words(scanned))
    return dg.SkipReason(scan_in_words(scanned))


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fetches what Claude answered about pairs: verdicts for the next night. It changes no memory.",
)
def batch_results() -> dg.SkipReason:
    second = SecondJudge.collector(settings())
    if second is None:
        return dg.SkipReason("Claude is not asked: there is no key")
    with kept_staff() as staff, ExitStack() as held:
        if not unfinished(staff.night):
            return dg.SkipReason("no batch is open")
        try:
            held.enter_context(shared_copies_lock(staff.night.url, wait_s=ERASURE_WAIT_S))
        except DeadlineExceeded:
            return dg.SkipReason("memories are being erased; what Claude answered is fetched afterwards")
        return dg.SkipReason(second.look(staff.night, home_folder(), seconds=COLLECT_S).words)


def scan_in_words(scanned: Scanned) -> str:
    """Return the outcome of a scan of fresh facts in words, with the agents that have to wait and why."""
    outcome = f"{scanned.facts} fresh facts in {scanned.pairs} pairs, {scanned.opened} contradictions opened"
    waiting = [
        f"the facts of agent {agent_id!r} have to wait: {why}" for agent_id, why in sorted(scanned.delayed.items())
    ]
    return "; ".join([outcome if scanned.facts else "no fresh facts", *waiting])


def round_in_words(done: Round) -> str:
    """Return the outcome of a round of the worker in words, with the agents that were skipped or failed and why."""
    outcome = f"{done.completed} episodes completed, {done.delivered} events delivered"
    skipped = [f"agent {agent_id!r} was passed over: {why}" for agent_id, why in done.skipped.items()]
    failed = [
        f"the work of agent {agent_id!r} failed and is tried again: {why}" for agent_id, why in done.failed.items()
    ]
    return "; ".join([outcome if done.worked else "nothing is due", *skipped, *failed])


@cache
def staff_of_this_process() -> Staff:
    """Return connections and models, opened by the first tick and kept for the next ones."""
    return OPENED.enter_context(open_staff())


@contextmanager
def kept_staff() -> Iterator[Staff]:
    """Yield them for a block, and close them after `Unavailable`: the server may come back at another address."""
    try:
        yield staff_of_this_process()
    except Unavailable:
        close_staff()
        raise


def close_staff() -> None:
    """Close the connections; the next tick opens them again."""
    staff_of_this_process.cache_clear()
    OPENED.close()


atexit.register(close_staff)


# --- what an operator launches: a dry run, undo, another embedding space ---


@dg.op(description="Makes the assets of a night up to the plan and its checks, without recording them.")
def what_a_night_would_do(context: dg.OpExecutionContext, night_run: NightRun) -> None:
    options = NightOptions(
        night_run.address,
        night_run.home_folder,
        agent_ids=night_run.agent_ids,
        policy=night_run.policy,
        is_dry_run=True,
        is_full=night_run.is_full,
    )
    outcome = run_night(parse_night(context.partition_key), options, instance=context.instance, tell=context.log.info)
    if outcome.report is not None:
        figures = {"hash": outcome.report.plan_hash, **outcome.report.counts, "checks": list(outcome.report.checks)}
        report = dg.MetadataValue.md(markdown_of(outcome.report))
        context.add_output_metadata({**as_metadata(figures), "report": report})
    if outcome.is_stopped:
        raise dg.Failure("; ".join(outcome.failures))


@dg.graph
def dry_run() -> None:
    what_a_night_would_do()


class NightRange(dg.Config):
    """The nights to take back."""

    first_night: str = Field(description="The first night to take back, such as 2026-11-01.")
    last_night: str = Field(description="The last one. The newest is taken back first.")
    agent_id: str = Field(default="", description="Of this agent alone; empty means all.")
    kind: str = Field(default="", description="One kind of proposal alone, such as merge; empty means all.")
    reason: str = Field(default="taken back by the operator", description="The reason, which every event keeps.")


@dg.op(description="Restores what the nights changed, an event for each row; ends at the first night that refuses.")
def take_nights_back(context: dg.OpExecutionContext, config: NightRange) -> None:
    nights = list(nights_between(parse_night(config.first_night), parse_night(config.last_night)))[::-1]
    selection = Selection(agent_id=config.agent_id or None, kind=config.kind or None)
    try:
        with closing(Database(open_url(), role="nous_night", max_connections=2)) as database:
            results = undo_range(database, selection, nights, reason=config.reason)
    except NotFound as missing:
        raise dg.Failure(str(missing)) from missing
    undone = {night.isoformat(): len(result.undone) for night, result in results.items()}
    refused = {str(proposal): why for result in results.values() for proposal, why in result.refused.items()}
    context.add_output_metadata(as_metadata({"undone": undone, "refused": refused}))
    for night, count in undone.items():
        context.log.info("night %s: %d proposals taken back", night, count)
    if refused:
        why = "; ".join(f"{proposal}: {reason}" for proposal, reason in refused.items())
        raise dg.Failure(f"ended at night {list(undone)[-1]}, earlier nights are not taken back: {why}")


@dg.job(
    executor_def=dg.in_process_executor,
    description="Takes back a range of nights, newest first, every row as it was; nothing of it is proposed again.",
)
def undo_nights() -> None:
    take_nights_back()


PARTS = dg.StaticPartitionsDefinition(list(BUCKETS))
"""The last digits of memory ids."""


class NextSpace(dg.ConfigurableResource):
    """The embedding space to move agents to; its fields can be set in the launchpad."""

    model: str = Field(
        default="",
        description="multilingual-e5-small, minilm, or one of the server in NOUS_EMBEDDING_URL; empty: of new agents.",
    )
    dimensions: int = Field(default=0, description="The model's width; 0 means NOUS_EMBEDDING_DIMENSIONS.")

    def embedder(self) -> Embedder:
        """Return the embedder of the space."""
        return embedder_named(self.model, self.dimensions or None) if self.model else default_embedder()


@dg.asset(
    partitions_def=PARTS,
    group_name="reembedding",
    owners=OWNERS,
    tags={"changes": "vectors"},
    kinds={"postgres"},
    description="Vectors of the next embedding space, beside those in use; only missing ones are made.",
)
def next_embeddings(
    context: dg.AssetExecutionContext, night_run: NightRun, next_space: NextSpace
) -> dg.MaterializeResult:
    embedder = next_space.embedder()
    register_space(night_run.database, embedder.space, is_indexed=False)
    made = fill_vectors(night_run.database, embedder, night_run.agents(), buckets=[context.partition_key])
    return dg.MaterializeResult(metadata={"made": made, "space": embedder.space.id})


@dg.asset(
    deps=[next_embeddings],
    group_name="reembedding",
    owners=OWNERS,
    tags={"changes": "vectors"},
    kinds={"postgres"},
    description="Agents moved to the next space, each at once; refused while vectors are missing.",
)
def embedding_space_switched(
    context: dg.AssetExecutionContext, night_run: NightRun, next_space: NextSpace
) -> dg.MaterializeResult:
    embedder = next_space.embedder()
    register_space(night_run.database, embedder.space, is_indexed=False)
    try:
        moves = switch_agents(night_run.database, embedder, night_run.agents(), run_id=context.run.run_id)
    except Refused as refusal:
        raise dg.Failure(str(refusal)) from refusal
    return dg.MaterializeResult(
        metadata=as_metadata({"space": embedder.space.id, "moves": [asdict(move) for move in moves]})
    )


# --- all definitions ---


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
    trial = dry_run.to_job(
        partitions_def=nights,
        executor_def=dg.in_process_executor,
        description="A night up to the checks: reports what it would change, materialises no partition.",
    )

    def with_nights(spec: dg.AssetSpec) -> dg.AssetSpec:
        return spec.replace_attributes(partitions_def=nights) if spec.partitions_def == NIGHTS else spec

    return dg.Definitions(
        assets=dg.map_asset_specs(with_nights, [*ASSETS, LAST_NIGHT, next_embeddings, embedding_space_switched]),
        asset_checks=[plan_checks, last_night_applied],
        jobs=[nightly, trial, undo_nights, last_night_asked, retention],
        schedules=[every_night, last_night_exists, every_week],
        sensors=[closed_episodes, fresh_facts, batch_results],
        resources=RESOURCES,
        executor=dg.in_process_executor,
    )


defs = definitions_from(FIRST_NIGHT)
