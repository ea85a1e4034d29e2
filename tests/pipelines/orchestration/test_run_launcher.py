"""What may begin in the queue: no night of a range before those ahead of it; and which runs are given up.

A whole range on real programs, with a night that is killed, is in `test_browser.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from uuid import uuid4

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status
from dagster._core.launcher.base import LaunchRunContext
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import (
    AUTO_RETRY_RUN_ID_TAG,
    BACKFILL_ID_TAG,
    GRPC_INFO_TAG,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
    WILL_RETRY_TAG,
)
from dagster._core.test_utils import create_run_for_test, instance_for_test

from nous_pipelines.orchestration.dagster_classes import PROCESS_TAG, process_tag


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's records, with the launcher that compose and `nous dev` have, and runs that are tried again."""
    launcher = {"module": "nous_pipelines.orchestration.dagster_classes", "class": "NightLauncher"}
    with instance_for_test(overrides={"run_launcher": launcher, "run_retries": {"enabled": True}}) as one:
        yield one


ORIGIN = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("nous"), "__repository__"), "nightly")
NIGHTS = ("2026-05-03", "2026-05-04", "2026-05-05", "2026-05-06")


def range_of(instance: dg.DagsterInstance, *statuses: Status, tags: Mapping[str, str]) -> list[dg.DagsterRun]:
    """Return the runs of a backfill of nights, one after the other; the first has tags of its own."""
    backfill_id = uuid4().hex
    return [
        create_run_for_test(
            instance,
            "nightly",
            tags={BACKFILL_ID_TAG: backfill_id, PARTITION_NAME_TAG: night, **(tags if night == NIGHTS[0] else {})},
            status=status,
            remote_job_origin=ORIGIN,
        )
        for night, status in zip(NIGHTS, statuses, strict=True)
    ]


@pytest.mark.parametrize(
    ("status", "tags"),
    [
        (Status.STARTED, {}),
        (Status.QUEUED, {}),
        (Status.FAILURE, {}),
        (Status.FAILURE, {WILL_RETRY_TAG: "true"}),
    ],
    ids=["runs", "waits itself", "failed just now", "is to be tried again"],
)
def test_a_night_goes_back_into_the_queue_while_an_earlier_one_of_its_range(
    instance: dg.DagsterInstance, status: Status, tags: dict[str, str]
) -> None:
    runs = range_of(instance, status, Status.STARTING, Status.STARTING, Status.QUEUED, tags=tags)

    for run in runs[1:3]:
        instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))

    found = {run.run_id: run for run in instance.get_runs()}
    queued = [found[run.run_id] for run in runs[1:]]
    assert [found[runs[0].run_id].status, *(run.status for run in queued)] == [status, *[Status.QUEUED] * 3]
    assert int(queued[0].tags[PRIORITY_TAG]) > int(queued[1].tags[PRIORITY_TAG])


@pytest.mark.parametrize(
    ("status", "tags"),
    [
        (Status.CANCELED, {}),
        (Status.FAILURE, {WILL_RETRY_TAG: "false"}),
        (Status.FAILURE, {WILL_RETRY_TAG: "true", AUTO_RETRY_RUN_ID_TAG: "the run that failed too"}),
    ],
    ids=["was cancelled", "is not tried again", "was tried again"],
)
def test_a_night_is_cancelled_with_all_later_ones_where_an_earlier_one_of_its_range(
    instance: dg.DagsterInstance, status: Status, tags: dict[str, str]
) -> None:
    runs = range_of(instance, status, Status.SUCCESS, Status.STARTING, Status.QUEUED, tags=tags)
    (alone, *_) = range_of(instance, Status.QUEUED, Status.QUEUED, Status.QUEUED, Status.QUEUED, tags={})

    instance.run_launcher.launch_run(LaunchRunContext(runs[2], workspace=None))

    found = {run.run_id: run.status for run in instance.get_runs()}
    assert [found[run.run_id] for run in runs] == [status, Status.SUCCESS, Status.CANCELED, Status.CANCELED]
    assert found[alone.run_id] is Status.QUEUED
    said = [event.message for event in instance.all_logs(runs[3].run_id)]
    assert any("night 2026-05-03 of this backfill was not applied; repair that night" in message for message in said)


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
