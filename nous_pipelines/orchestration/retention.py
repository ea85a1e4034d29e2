"""What is thrown away by age: Dagster's runs, snapshots and saved answers, and rows that a policy lets go.

Purging is the one job that deletes rows, and never a memory, an event or a proposal."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from psycopg import Connection

from nous_online.core.errors import InvalidInput, NousError
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.queue.outbox import HEART
from nous_pipelines.batches.batch_rows import old_results
from nous_pipelines.night_policy import MOST_DAYS, NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.parts import PREFIX as PART
from nous_pipelines.snapshots.snapshot import parts_of

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
    for part in unused_parts(root, kept, now=now):
        remove(part)
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


def unused_parts(root: Path, kept: Retention, *, now: datetime) -> list[Path]:
    """Return the parts in which no snapshot that is kept has rows; none of a database one of whose can't be read.

    One written within `set_aside_kept_days` stays: the snapshot it is for may not have its name yet.
    """
    untouched_since = now - timedelta(days=kept.set_aside_kept_days)
    unused = list[Path]()
    for home in sorted(path for path in root.glob("*") if path.is_dir()):
        with suppress(NousError, OSError, ValueError):
            used = {part.folder for folder in home.glob(f"{PREFIX}*") for part in parts_of(folder)}
            found = [path for path in sorted(home.glob(f"*{PART}*")) if path.is_dir() and path not in used]
            unused += [path for path in found if written_at(path) < untouched_since.timestamp()]
    return unused


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


# --- purging ---

logger = logging.getLogger(__name__)
SQL = statements("nous_pipelines.orchestration", "purging.sql")
PURGE_TIMEOUT_S = 3600.0
KEPT = {
    "cold_texts": "cold_texts_kept_days",
    "outbox": "outbox_kept_days",
    "completions": "completions_kept_days",
    "requests": "requests_kept_days",
}
"""What is purged, each with the field of the policy that says for how many days it is kept."""


@dataclass(frozen=True)
class Purged:
    """How many rows were deleted, or would be."""

    cold_texts: int
    """Texts of condensed episodes, which can't be restored afterwards."""
    outbox: int
    """Announcements that every consumer has heard."""
    completions: int
    """What is known of how closed episodes were completed."""
    requests: int
    """Idempotency keys, but for those of imports."""
    is_dry_run: bool = False


def purge(database: Database, policy: NightPolicy, *, now: datetime, is_dry_run: bool = False) -> Purged:
    """Delete what is older than the policy keeps, in one transaction; with `is_dry_run` only count it.

    What an agent's own policy says comes before `policy`. `database` must have been opened as `nous_purge`. Raises
    `InvalidInput`, naming the agent, when its policy makes no sense; nothing was deleted then.
    """
    with (
        database.transaction(timeout_s=PURGE_TIMEOUT_S) as connection,
        connection.transaction(force_rollback=is_dry_run),
    ):
        policies = policies_of(connection, policy)
        counts = {name: purge_one(connection, name, policies, now=now) for name in KEPT}
    purged = Purged(**counts, is_dry_run=is_dry_run)
    logger.info("%s", asdict(purged))
    return purged


def policies_of(connection: Connection, policy: NightPolicy) -> dict[str, NightPolicy]:
    """Return the policy of each agent; raise `InvalidInput`, naming the agent, for one that makes no sense."""
    found: dict[str, NightPolicy] = {}
    own: Mapping[str, Any]
    for agent_id, own in connection.execute(SQL["policies"]):
        try:
            found[agent_id] = policy.overridden(own)
        except InvalidInput as error:
            raise InvalidInput(f"the policy of agent {agent_id!r} makes no sense: {error}") from error
    return found


def purge_one(connection: Connection, name: str, policies: Mapping[str, NightPolicy], *, now: datetime) -> int:
    """Delete what is too old of one table and return how many rows that was."""
    days = [getattr(policy, KEPT[name]) for policy in policies.values()]
    parameters = {"agent_ids": list(policies), "days": days, "now": now, "heart": HEART}
    return connection.execute(SQL[f"purge_{name}"], parameters).rowcount
