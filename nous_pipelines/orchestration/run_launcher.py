"""How the queue starts runs: the nights of a backfill in order, and no run whose process is gone holds up the rest."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from datetime import date

import dagster as dg
import psutil
from dagster._core.launcher.base import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARTITION_NAME_TAG, PRIORITY_TAG, WILL_RETRY_TAG
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster_shared.serdes import deserialize_value

from nous_pipelines.nights import parse_night

PROCESS_TAG = "nous/process"
"""What tells the process in which `nous night` runs a night: no code server knows of it."""
ANSWER_S = 10
NOBODY_THERE = "UNAVAILABLE"
"""What gRPC says where no server listens; one that takes too long to answer is busy."""
STOPPED = {dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}


class NightLauncher(dg.DefaultRunLauncher):
    """Starts a run in the code server, as Dagster does by default, and knows whether its process is still there.

    A night of a backfill begins when the earlier ones of it are applied: it goes back into the queue while one of them
    is to be tried again, and is cancelled with all later ones where one has stopped.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Start a run, put it back into the queue, or cancel it."""
        run, others = context.dagster_run, nights_beside(self._instance, context.dagster_run)
        night = run.tags.get(PARTITION_NAME_TAG, "")
        before = [others[key] for key in sorted(others) if key < night]
        waiting = [each for each in before if may_still_end_well(each, is_retried=self._instance.run_retries_enabled)]
        if waiting:
            self._instance.add_run_tags(run.run_id, {PRIORITY_TAG: str(-date.fromisoformat(night).toordinal())})
            self._instance.report_dagster_event(dg.DagsterEvent.job_enqueue(run), run_id=run.run_id)
        elif stopped := [each for each in before if each.status in STOPPED]:
            why = f"night {stopped[0].tags[PARTITION_NAME_TAG]} of this backfill was not applied"
            later = [others[key] for key in sorted(others) if key > night]
            for each in (run, *(each for each in later if each.status is dg.DagsterRunStatus.QUEUED)):
                self._instance.report_run_canceled(each, f"{why}; mend it, then launch the rest of the range again")
        else:
            super().launch_run(context)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Dagster's monitoring asks, and fails a run that has ended without a word."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Tell whether a run is still worked on; where that can't be found out, it is."""
        if PROCESS_TAG in run.tags:
            return health(is_there=process_lives(json.loads(run.tags[PROCESS_TAG])))
        client = self._get_grpc_client_for_termination(run.run_id)
        if client is None:
            return health(is_there=True)
        try:
            asked = CanCancelExecutionRequest(run_id=run.run_id)
            answer = client.can_cancel_execution(asked, timeout=ANSWER_S)
        except dg.DagsterError as error:
            return health(is_there=NOBODY_THERE not in str(error))
        result = deserialize_value(answer, CanCancelExecutionResult)
        has_ended = self._instance.get_run_by_id(run.run_id)
        return health(is_there=result.can_cancel or has_ended is None or has_ended.is_finished)


def health(*, is_there: bool) -> CheckRunHealthResult:
    """Return what Dagster's monitoring is told of a run."""
    if is_there:
        return CheckRunHealthResult(WorkerStatus.RUNNING)
    return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the process that worked on it is gone")


def nights_beside(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Mapping[str, dg.DagsterRun]:
    """Return the latest run of every night of the same backfill; none for what is no night of one."""
    backfill = run.tags.get(BACKFILL_ID_TAG)
    if backfill is None or not is_night(run):
        return {}
    latest_first: Sequence[dg.DagsterRun] = instance.get_runs(dg.RunsFilter(tags={BACKFILL_ID_TAG: backfill}))
    return {each.tags[PARTITION_NAME_TAG]: each for each in reversed(latest_first) if is_night(each)}


def is_night(run: dg.DagsterRun) -> bool:
    """Tell whether the partition of a run is a night."""
    try:
        parse_night(run.tags.get(PARTITION_NAME_TAG, ""))
    except ValueError:
        return False
    return True


def may_still_end_well(run: dg.DagsterRun, *, is_retried: bool) -> bool:
    """Tell whether a run goes on, or is to be tried again; of one that has just failed it is not decided yet."""
    is_undecided = is_retried and run.status is dg.DagsterRunStatus.FAILURE and WILL_RETRY_TAG not in run.tags
    return not run.is_finished or run.is_complete_and_waiting_to_retry or is_undecided


def process_tag() -> dict[str, str]:
    """Return the tag of a run that this process works on."""
    own = psutil.Process()
    return {PROCESS_TAG: json.dumps({"host": platform.node(), "pid": own.pid, "created": own.create_time()})}


def process_lives(told: Mapping[str, object]) -> bool:
    """Tell whether the process of such a tag is there; of another machine's it is taken to be."""
    if told["host"] != platform.node():
        return True
    try:
        return psutil.Process(int(str(told["pid"]))).create_time() == told["created"]
    except psutil.NoSuchProcess:
        return False
