"""Our classes in Dagster instances: storage over kept connections, a launcher of nights in order, and no storage."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import dagster as dg
import psutil
from dagster import DagsterInstance, EventLogEntry, EventRecordsResult
from dagster._core.instance.types import InstanceType
from dagster._core.launcher.base import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.run_coordinator import DefaultRunCoordinator
from dagster._core.storage.config import PostgresStorageConfig
from dagster._core.storage.event_log import InMemoryEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.root import TemporaryLocalArtifactStorage
from dagster._core.storage.runs import InMemoryRunStorage
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARTITION_NAME_TAG, PRIORITY_TAG, WILL_RETRY_TAG
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster._serdes import ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config
from dagster_shared.serdes import deserialize_value
from sqlalchemy import event

from nous_online.database.statements import statements
from nous_pipelines.nights import parse_night

INSTANCE = statements("nous_pipelines.orchestration", "instance.sql")

# --- storage ---

STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, MAX_OVERFLOW = 60_000, 3600, 8


class PostgresOverKeptConnections(DagsterPostgresStorage):
    """Dagster's storage in Postgres, over a pool of connections in every process."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: PostgresStorageConfig
    ) -> PostgresOverKeptConnections:
        storage = cls(
            inst_data=inst_data,
            postgres_url=pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
        )
        # Dagster pools connections in its webserver alone. Elsewhere it opens one for every query: 440 a night, which
        # take 2 s of its 5.
        storages: tuple[Any, ...] = (storage.run_storage, storage.event_log_storage, storage.schedule_storage)
        for each in storages:
            each.optimize_for_webserver(STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, MAX_OVERFLOW)
            event.listen(each._engine, "connect", commit_without_waiting)
        # Which tables and columns there are is looked up once, not at every step of every run. What is missing is
        # looked up again: the storage may be upgraded while it is open.
        events: Any = storage.event_log_storage
        for name in ("has_table", "has_asset_key_col", "_has_asset_key_col_on_connection"):
            setattr(events, name, once_true(getattr(events, name)))
        look_up_tags_once(events)
        return storage


def commit_without_waiting(connection: Any, _: object) -> None:
    """Let the transactions of a new connection commit before they are on disk.

    A night stores 150 events, each in transactions of its own. If the server crashes, the last second of what Dagster
    recorded is lost, and of the memories nothing: those are written over other connections. A night that is run again
    finds there what it has applied.
    """
    with connection, connection.cursor() as cursor:  # committed: what is not would be taken back with the connection
        cursor.execute(INSTANCE["commit_without_waiting"])


def once_true(ask: Callable[..., bool]) -> Callable[..., bool]:
    """Return a function that keeps the answer `True` by its last argument, the name of what is asked for."""
    known: set[str] = set()

    def asked(*arguments: Any) -> bool:
        if arguments[-1] not in known and ask(*arguments):
            known.add(arguments[-1])
        return arguments[-1] in known

    return asked


def look_up_tags_once(events: Any) -> None:
    """Let an event storage keep the tags of an asset's partitions while a run goes on here, until the asset is made.

    Before each step Dagster looks up the version of every asset it depends on, one by one: 90 queries a night, most of
    them for the same few. Who runs nothing, as the webserver, keeps nothing: other processes make the assets.
    """
    ask, store = events.get_latest_tags_by_partition, events.store_event
    known: dict[Any, dict[Any, Any]] = {}
    running: set[str] = set()

    def asked(
        key: Any, kind: Any, tags: Sequence[str], asset_partitions: Sequence[str] | None = None, **more: Any
    ) -> Any:
        if more or not running:
            return ask(key, kind, tags, asset_partitions, **more)
        own, place = known.setdefault(key, {}), (kind, *tags, None, *(asset_partitions or ()))
        if place not in own:
            own[place] = ask(key, kind, tags, asset_partitions)
        return own[place]

    def stored(entry: EventLogEntry) -> None:
        store(entry)
        happened = entry.dagster_event
        if happened is None:
            return
        known.pop(happened.asset_key, None)
        if happened.event_type is dg.DagsterEventType.RUN_START:
            running.add(entry.run_id)
        elif happened.is_job_event and entry.run_id in running:  # it has ended, or is about to
            running.discard(entry.run_id)
            known.clear()

    events.get_latest_tags_by_partition, events.store_event = asked, stored


class NoEvents(InMemoryEventLogStorage):
    """Event storage that drops every event."""

    def store_event(self, event: EventLogEntry) -> None:
        """Drop an event."""

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Drop events."""

    def get_asset_records(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def fetch_materializations(self, *_: Any, **__: Any) -> EventRecordsResult:
        return EventRecordsResult([], cursor="", has_more=False)

    fetch_observations = fetch_materializations


class NoPlans(InMemoryRunStorage):
    """Run storage without the execution plans, of which every night has another."""

    def has_execution_plan_snapshot(self, execution_plan_snapshot_id: str) -> bool:
        return True


def unrecorded() -> DagsterInstance:
    """Return an instance that records nothing, for dry runs; close it like any other.

    To store and look up the events of its steps takes half of the time of a night.
    """
    return DagsterInstance(
        instance_type=InstanceType.EPHEMERAL,
        local_artifact_storage=TemporaryLocalArtifactStorage(),
        run_storage=NoPlans(),
        event_storage=NoEvents(),
        compute_log_manager=NoOpComputeLogManager(),
        run_coordinator=DefaultRunCoordinator(),
        run_launcher=SyncInMemoryRunLauncher(),
    )


# --- launching ---

PROCESS_TAG = "nous/process"
"""The tag that names the process in which `nous night` runs a night, since no code server knows of that run."""
ANSWER_S = 10
UNAVAILABLE = "UNAVAILABLE"
"""The gRPC status where no server listens; a server that does not answer in time is busy, and has another."""
STOPPED = {dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}


class NightLauncher(dg.DefaultRunLauncher):
    """Dagster's default launcher, which also runs the nights of a backfill in order and finds runs without a process.

    A night of a backfill starts once the earlier ones are applied: it goes back into the queue while one of them runs
    or is to be retried, and is cancelled with all later ones if one of them has failed.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Start a run, put it back into the queue, or cancel it."""
        run, others = context.dagster_run, nights_of_backfill(self._instance, context.dagster_run)
        night = run.tags.get(PARTITION_NAME_TAG, "")
        before = [others[key] for key in sorted(others) if key < night]
        waiting = [each for each in before if may_still_succeed(each, is_retried=self._instance.run_retries_enabled)]
        if waiting:
            # Dagster takes the highest priority from the queue first, else the run that was created first: this night,
            # if an earlier one is retried.
            self._instance.add_run_tags(run.run_id, {PRIORITY_TAG: str(-date.fromisoformat(night).toordinal())})
            self._instance.report_dagster_event(dg.DagsterEvent.job_enqueue(run), run_id=run.run_id)
        elif stopped := [each for each in before if each.status in STOPPED]:
            why = f"night {stopped[0].tags[PARTITION_NAME_TAG]} of this backfill was not applied"
            later = [others[key] for key in sorted(others) if key > night]
            for each in (run, *(each for each in later if each.status is dg.DagsterRunStatus.QUEUED)):
                self._instance.report_run_canceled(each, f"{why}; repair that night, then launch the rest of the range")
        else:
            super().launch_run(context)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether Dagster's monitoring may ask for the health of a run: it fails a run whose process is gone."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return whether the process of a run is alive; it counts as alive where that can't be found out."""
        if PROCESS_TAG in run.tags:
            return worker_health(is_alive=is_process_alive(json.loads(run.tags[PROCESS_TAG])))
        client = self._get_grpc_client_for_termination(run.run_id)
        if client is None:
            return worker_health(is_alive=True)
        try:
            request = CanCancelExecutionRequest(run_id=run.run_id)
            answer = client.can_cancel_execution(request, timeout=ANSWER_S)
        except dg.DagsterError as error:
            return worker_health(is_alive=UNAVAILABLE not in str(error))
        result = deserialize_value(answer, CanCancelExecutionResult)
        # Read after the server answered: a run that ended in between is no lost one.
        run_now = self._instance.get_run_by_id(run.run_id)
        return worker_health(is_alive=result.can_cancel or run_now is None or run_now.is_finished)


def worker_health(*, is_alive: bool) -> CheckRunHealthResult:
    """Return the health of a run as Dagster's monitoring wants it."""
    if is_alive:
        return CheckRunHealthResult(WorkerStatus.RUNNING)
    return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the process that worked on it is gone")


def nights_of_backfill(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Mapping[str, dg.DagsterRun]:
    """Return the latest run of every night of the backfill a run belongs to, by night; none for other runs."""
    backfill = run.tags.get(BACKFILL_ID_TAG)
    if backfill is None or not is_night(run):
        return {}
    latest_first: Sequence[dg.DagsterRun] = instance.get_runs(dg.RunsFilter(tags={BACKFILL_ID_TAG: backfill}))
    return {each.tags[PARTITION_NAME_TAG]: each for each in reversed(latest_first) if is_night(each)}


def is_night(run: dg.DagsterRun) -> bool:
    """Return whether the partition of a run is a night."""
    try:
        parse_night(run.tags.get(PARTITION_NAME_TAG, ""))
    except ValueError:
        return False
    return True


def may_still_succeed(run: dg.DagsterRun, *, is_retried: bool) -> bool:
    """Return whether a run goes on or may be retried."""
    # Dagster sets the tag a moment after a run failed, when it has decided about a retry.
    is_undecided = is_retried and run.status is dg.DagsterRunStatus.FAILURE and WILL_RETRY_TAG not in run.tags
    return not run.is_finished or run.is_complete_and_waiting_to_retry or is_undecided


def process_tag() -> dict[str, str]:
    """Return the tag of a run that this process works on."""
    own = psutil.Process()
    return {PROCESS_TAG: json.dumps({"host": platform.node(), "pid": own.pid, "created": own.create_time()})}


def is_process_alive(tag: Mapping[str, object]) -> bool:
    """Return whether the process of a `process_tag` is alive; one of another machine counts as alive."""
    if tag["host"] != platform.node():
        return True
    try:
        # The time as well: the system may have given the number to another process.
        return psutil.Process(int(str(tag["pid"]))).create_time() == tag["created"]
    except psutil.NoSuchProcess:
        return False
