"""A Dagster instance that keeps no record of what it runs: for dry runs, of which memories, files and outcome are read.

Storing and looking up the events of its steps takes a night half of its time.
"""

from __future__ import annotations

from typing import Any

from dagster import DagsterInstance, EventLogEntry, EventRecordsResult
from dagster._core.instance.types import InstanceType
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.run_coordinator import DefaultRunCoordinator
from dagster._core.storage.event_log import InMemoryEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.root import TemporaryLocalArtifactStorage
from dagster._core.storage.runs import InMemoryRunStorage


class NoEvents(InMemoryEventLogStorage):
    """Takes every event and keeps none: what a run yields itself is all there is to read."""

    def store_event(self, event: EventLogEntry) -> None:
        """Forget it."""

    def get_asset_records(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def fetch_materializations(self, *_: Any, **__: Any) -> EventRecordsResult:
        return EventRecordsResult([], cursor="", has_more=False)

    fetch_observations = fetch_materializations


class NoPlans(InMemoryRunStorage):
    """Keeps each run without the plan of its steps, which is another every night."""

    def has_execution_plan_snapshot(self, execution_plan_snapshot_id: str) -> bool:
        return True


def unrecorded() -> DagsterInstance:
    """Return an instance to be closed like any other."""
    return DagsterInstance(
        instance_type=InstanceType.EPHEMERAL,
        local_artifact_storage=TemporaryLocalArtifactStorage(),
        run_storage=NoPlans(),
        event_storage=NoEvents(),
        compute_log_manager=NoOpComputeLogManager(),
        run_coordinator=DefaultRunCoordinator(),
        run_launcher=SyncInMemoryRunLauncher(),
    )
