"""A backfill as the interface launches it, over the real queue: in order, past a crash, no further than a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._core.test_utils import create_run_for_test, instance_for_test
from night_runs import facts_in, remember

from nous_online.heart import Heart
from nous_pipelines.orchestration.dagster_classes import PROCESS_TAG, process_tag

# The loops of Dagster's daemon over our own settings, without its pauses. In a process of its own, since Dagster leaves
# coroutines behind that nobody awaits. The first night is killed as soon as its process begins, the third is cancelled
# in the queue.
DAEMON = """
import json, logging, os, re, signal, sys, time
from sqlalchemy import text
from dagster import RunsFilter
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.auto_run_reexecution.event_log_consumer import EventLogConsumerDaemon
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from nous_pipelines.orchestration.definitions import ASSETS
from nous_pipelines.orchestration.instance import dagster_instance

killed, cancelled, *nights = sys.argv[1:]
target = ModuleTarget("nous_pipelines.definitions", attribute=None, working_directory=None, location_name=None)
logger, partition = logging.getLogger("daemon"), "dagster/partition"
with (
    dagster_instance() as instance,
    create_test_daemon_workspace_context(target, instance) as workspace,
):
    instance.add_backfill(
        PartitionBackfill.from_asset_partitions(
            backfill_id="range", asset_graph=workspace.create_request_context().asset_graph, partition_names=nights,
            asset_selection=[asset.key for asset in ASSETS], backfill_timestamp=time.time(), tags={},
            dynamic_partitions_store=instance, all_partitions=False, title=None, description=None, run_config=None,
        )
    )
    queue, retries = QueuedRunCoordinatorDaemon(interval_seconds=1), EventLogConsumerDaemon()
    is_killed, ends_at = False, time.time() + 200
    while instance.get_backfill("range").status.value not in ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "CANCELED"):
        assert time.time() < ends_at, [(r.tags.get(partition), r.status) for r in instance.get_runs()]
        for tick in (
            execute_backfill_iteration(workspace, logger), queue.run_iteration(workspace),
            execute_run_monitoring_iteration(workspace, logger), retries.run_iteration(workspace),
        ):
            errors = [error for error in tick if error]
            assert not errors, errors
        for run in instance.get_runs(RunsFilter(tags={partition: cancelled})):
            if run.status.value == "QUEUED":
                instance.report_run_canceled(run)
        for run in instance.get_runs(RunsFilter(tags={partition: killed})):
            if run.status.value == "STARTED" and not is_killed:
                said = " ".join(event.message for event in instance.all_logs(run.run_id))
                os.kill(int(re.search(r"process for run [(]pid: ([0-9]+)[)]", said)[1]), signal.SIGKILL)
                is_killed = True
        time.sleep(0.5)
    runs = sorted(instance.get_run_records(), key=lambda run: (run.start_time or 0, run.dagster_run.tags[partition]))
    told = [(bool(run.start_time), run.dagster_run.tags[partition], run.dagster_run.status.value) for run in runs]
    status, backends = instance.get_backfill("range").status.value, set()
    for _ in range(3):
        with instance.event_log_storage.index_connection() as connection:
            backends.add(connection.execute(text("select pg_backend_pid()")).scalar())
parts = {name: [rest for began, *rest in told if began == (name == "started")] for name in ("started", "never")}
print(json.dumps({"status": status, "backends": len(backends), **parts}))
"""


@pytest.mark.timeout(300)
def test_a_range_waits_for_a_night_that_is_tried_again_and_ends_where_one_stops(
    heart: Heart, database_url: str, owner: psycopg.Connection, tmp_path: Path
) -> None:
    remember(heart, *["Cats like fish."] * 4)
    nights = ["2026-05-03", "2026-05-04", "2026-05-05", "2026-05-06"]
    environment = {**os.environ, "NOUS_DATABASE_URL": database_url, "NOUS_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", DAEMON, "2026-05-03", "2026-05-05", *nights]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)

    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert said == {
        "status": "COMPLETED_FAILED",
        "started": [
            ["2026-05-03", "FAILURE"],
            ["2026-05-03", "SUCCESS"],
            ["2026-05-04", "SUCCESS"],
        ],
        "never": [["2026-05-05", "CANCELED"], ["2026-05-06", "CANCELED"]],
        "backends": 1,
    }
    retired = [columns["superseded_at"] for columns in facts_in(owner).values() if columns["state"] == "superseded"]
    assert sorted(moment[:10] for moment in retired) == ["2026-05-04", "2026-05-04", "2026-05-05"]


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's records, with the launcher that compose and `nous dev` have."""
    launcher = {"module": "nous_pipelines.orchestration.dagster_classes", "class": "NightLauncher"}
    with instance_for_test(overrides={"run_launcher": launcher}) as one:
        yield one


def ended() -> dict[str, str]:
    """Return the tag of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return {PROCESS_TAG: json.dumps({**json.loads(process_tag()[PROCESS_TAG]), "pid": process.pid})}


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ({GRPC_INFO_TAG: json.dumps({"host": "localhost", "socket": "/nonexistent/code.sock"})}, "NOT_FOUND"),
        (ended(), "NOT_FOUND"),
        (process_tag(), "RUNNING"),
        ({PROCESS_TAG: json.dumps({"host": "another", "pid": 1, "created": 0.0})}, "RUNNING"),
        ({}, "RUNNING"),
    ],
    ids=["server gone", "process gone", "this process", "another machine", "nothing known"],
)
def test_a_run_is_given_up_when_its_process_is_gone(
    instance: dg.DagsterInstance, tags: dict[str, str], status: str
) -> None:
    run = create_run_for_test(instance, "nightly", tags=tags, status=dg.DagsterRunStatus.STARTED)

    assert instance.run_launcher.supports_check_run_worker_health
    assert instance.run_launcher.check_run_worker_health(run).status.value == status
