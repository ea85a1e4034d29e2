"""What is thrown away of the nights' own traces: Dagster's runs and snapshots that are older than anyone asks for."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from nous_online.core.errors import InvalidInput
from nous_pipelines.batches.batch_rows import old_results
from nous_pipelines.night_policy import MOST_DAYS
from nous_pipelines.nights import end_of

if TYPE_CHECKING:
    from dagster import DagsterInstance, RunRecord

PAGE = 200
PREFIX = "night="


@dataclass(frozen=True)
class Retention:
    """For how many days the traces of nights are kept; opinions, each the default of a field in the launchpad."""

    runs_kept_days: int = 90
    """A run of Dagster, counted from its end; one that holds the latest materialisation of a partition stays."""
    snapshots_kept_days: int = 365
    """A night's snapshot and working files, counted from the night's end; one of an older night can be rebuilt."""
    set_aside_kept_days: int = 7
    """A folder that was moved aside, replaced or never finished; no snapshot written more recently is thrown away."""
    raw_results_kept_days: int = 30
    """What Claude answered in batches, as it came; the verdicts are in the database. The API keeps it for 29 days."""

    def __post_init__(self) -> None:
        for name, days in vars(self).items():
            if not 1 <= days <= MOST_DAYS:
                raise InvalidInput(f"{name} must be between 1 and {MOST_DAYS} days, got {days!r}")


@dataclass(frozen=True)
class ThrownAway:
    """How many runs, folders and files were thrown away."""

    runs: int
    snapshots: int
    set_aside: int
    raw_results: int = 0


def throw_away(instance: DagsterInstance, root: Path, kept: Retention, *, now: datetime) -> ThrownAway:
    """Delete what is older than it is kept; `root` is where the snapshots of all databases lie, under the home."""
    snapshots, set_aside = old_folders(root, kept, now=now)
    for folder in (*snapshots, *set_aside):
        remove(folder)
    results = old_results(root.parent, kept_days=kept.raw_results_kept_days, now=now)
    for path in results:
        path.unlink(missing_ok=True)
    runs = prune_runs(instance, ended_before=now - timedelta(days=kept.runs_kept_days))
    return ThrownAway(runs, len(snapshots), len(set_aside), len(results))


# --- snapshots ---


def old_folders(root: Path, kept: Retention, *, now: datetime) -> tuple[list[Path], list[Path]]:
    """Return the folders to throw away: snapshots of old nights, and those that no night reads.

    A folder that was written to within `set_aside_kept_days` stays: a backfill of old nights may be at work on it.
    """
    untouched_since = now - timedelta(days=kept.set_aside_kept_days)
    folders = [path for path in sorted(root.glob(f"*/*{PREFIX}*")) if path.is_dir()]
    untouched = [path for path in folders if written_at(path) < untouched_since.timestamp()]
    nights = {path: night_named(path) for path in untouched}
    old = now - timedelta(days=kept.snapshots_kept_days)
    snapshots = [path for path, night in nights.items() if night is not None and end_of(night) < old]
    return snapshots, [path for path, night in nights.items() if night is None]


def night_named(folder: Path) -> date | None:
    """Return the night whose snapshot a folder is; None for one moved aside, replaced or never finished."""
    try:
        return date.fromisoformat(folder.name.removeprefix(PREFIX))
    except ValueError:
        return None


def written_at(folder: Path) -> float:
    """Return when something in a folder was written last, in seconds since 1970."""
    return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))


def remove(folder: Path) -> None:
    """Take a folder out of sight at once, then delete it: a process killed meanwhile leaves no half of a snapshot."""
    hidden = folder if folder.name.startswith(".") else folder.rename(folder.with_name(f".{folder.name}.{uuid4().hex}"))
    shutil.rmtree(hidden)


# --- Dagster's runs ---


def prune_runs(instance: DagsterInstance, *, ended_before: datetime) -> int:
    """Delete the runs that ended before a moment with their events; return their number.

    A run whose materialisation is the latest of a partition is kept: deleting it would turn the partition grey, and
    the interface would say that a night never ran.
    """
    old = [record for record in finished_runs(instance) if (record.end_time or 0) < ended_before.timestamp()]
    shown = latest_materialisations(instance)
    deleted = [record.dagster_run.run_id for record in old if not is_shown(instance, record, shown)]
    for run_id in deleted:
        instance.delete_run(run_id)
    return len(deleted)


def finished_runs(instance: DagsterInstance) -> list[RunRecord]:
    """Return all runs that have ended, the latest first."""
    from dagster import DagsterRunStatus, RunsFilter

    ended = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]
    found: list[RunRecord] = []
    while len(found) % PAGE == 0:
        cursor = found[-1].dagster_run.run_id if found else None
        page = instance.get_run_records(RunsFilter(statuses=ended), limit=PAGE, cursor=cursor)
        found += page
        if not page:
            break
    return found


def latest_materialisations(instance: DagsterInstance) -> set[int]:
    """Return the storage ids of the events that colour the partitions of all assets."""
    from dagster import DagsterEventType

    kind = DagsterEventType.ASSET_MATERIALIZATION
    return {
        storage_id
        for key in instance.all_asset_keys()
        for storage_id in instance.get_latest_storage_id_by_partition(key, kind).values()
    }


def is_shown(instance: DagsterInstance, record: RunRecord, shown: set[int]) -> bool:
    """Tell whether a run holds the latest materialisation of any partition."""
    from dagster import DagsterEventType

    kinds = {DagsterEventType.ASSET_MATERIALIZATION}
    events = instance.get_records_for_run(record.dagster_run.run_id, of_type=kinds).records
    return any(event.storage_id in shown for event in events)
