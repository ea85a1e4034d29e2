"""Deletes by age: Dagster's runs, snapshots, saved answers of models, and rows that the policy keeps for some days.

Purging is the only job that deletes rows, and never a memory, an event or a proposal.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
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
from nous_pipelines.snapshots.parts import PART_PREFIX
from nous_pipelines.snapshots.snapshot import NIGHT_PREFIX, night_of_folder, parts_of

if TYPE_CHECKING:
    from dagster import DagsterInstance


@dataclass(frozen=True)
class Retention:
    """How many days the traces of nights are kept; defaults of fields in the launchpad."""

    runs_kept_days: int = 90
    """Runs of Dagster, from their end; runs with the latest materialisation of a partition are always kept."""
    snapshots_kept_days: int = 365
    """Snapshots and working files of nights, from the end of the night; they can be rebuilt."""
    set_aside_kept_days: int = 7
    """Folders that were moved aside, replaced or never finished; no snapshot written more recently is deleted."""
    raw_results_kept_days: int = 30
    """Raw answers of Claude in batches, whose verdicts are in the database; the API keeps them for 29 days."""

    def __post_init__(self) -> None:
        for name, days in vars(self).items():
            if not 1 <= days <= MOST_DAYS:
                raise InvalidInput(f"{name} must be between 1 and {MOST_DAYS} days, got {days!r}")


@dataclass(frozen=True)
class ThrownAway:
    """Numbers of deleted runs, folders and files."""

    runs: int
    snapshots: int
    set_aside: int
    raw_results: int = 0


def throw_away(instance: DagsterInstance, root: Path, kept: Retention, *, now: datetime) -> ThrownAway:
    """Delete what is older than it is kept; `root` is the folder of the snapshots of all databases, in the home."""
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
    """Return the folders to delete: snapshots of old nights, and folders that no night reads.

    None that was written to within `set_aside_kept_days`: a backfill of old nights may be working on it.
    """
    untouched_since = now - timedelta(days=kept.set_aside_kept_days)
    folders = [path for path in sorted(root.glob(f"*/*{NIGHT_PREFIX}*")) if path.is_dir()]
    untouched = [path for path in folders if written_at(path) < untouched_since.timestamp()]
    nights = {path: night_of_folder(path) for path in untouched}
    old = now - timedelta(days=kept.snapshots_kept_days)
    snapshots = [path for path, night in nights.items() if night is not None and end_of(night) < old]
    return snapshots, [path for path, night in nights.items() if night is None]


def unused_parts(root: Path, kept: Retention, *, now: datetime) -> list[Path]:
    """Return the parts in which no snapshot has rows, except for databases with a snapshot that can't be read.

    None written within `set_aside_kept_days`: its snapshot may not be finished yet.
    """
    untouched_since = now - timedelta(days=kept.set_aside_kept_days)
    unused = list[Path]()
    for home in sorted(path for path in root.glob("*") if path.is_dir()):
        with suppress(NousError, OSError, ValueError):
            used = {part.folder for folder in home.glob(f"{NIGHT_PREFIX}*") for part in parts_of(folder)}
            others = [path for path in sorted(home.glob(f"*{PART_PREFIX}*")) if path.is_dir() and path not in used]
            unused += [path for path in others if written_at(path) < untouched_since.timestamp()]
    return unused


def written_at(folder: Path) -> float:
    """Return the time of the last write in a folder, in seconds since 1970."""
    return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))


def remove(folder: Path) -> None:
    """Rename a folder to a hidden name, then delete it: a process that is killed leaves no half of a snapshot."""
    hidden = folder if folder.name.startswith(".") else folder.rename(folder.with_name(f".{folder.name}.{uuid4().hex}"))
    shutil.rmtree(hidden)


# --- Dagster's runs ---


def prune_runs(instance: DagsterInstance, *, ended_before: datetime) -> int:
    """Delete the runs that ended before a moment, with their events; return their number.

    Runs with the latest materialisation of a partition are kept: without it the interface would show that the night
    never ran.
    """
    from dagster import DagsterEventType, DagsterRunStatus, RunsFilter

    kind = DagsterEventType.ASSET_MATERIALIZATION
    latest = {
        storage_id
        for key in instance.all_asset_keys()
        for storage_id in instance.get_latest_storage_id_by_partition(key, kind).values()
    }
    ended = RunsFilter(statuses=[DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED])
    deleted = 0
    for record in instance.get_run_records(ended):
        if (record.end_time or 0) < ended_before.timestamp():
            run_id = record.dagster_run.run_id
            events = instance.get_records_for_run(run_id, of_type={kind}).records
            if not any(event.storage_id in latest for event in events):
                instance.delete_run(run_id)
                deleted += 1
    return deleted


# --- purging ---

logger = logging.getLogger(__name__)
SQL = statements("nous_pipelines.orchestration", "retention.sql")
PURGE_TIMEOUT_S = 3600.0
KEPT = ("cold_texts", "outbox", "completions", "requests")
"""What is purged; the policy field `…_kept_days` has the days it is kept."""


@dataclass(frozen=True)
class Purged:
    """Numbers of rows that were deleted, or would be."""

    cold_texts: int
    """Texts of condensed episodes, which can't be restored afterwards."""
    outbox: int
    """Events that were delivered to every consumer."""
    completions: int
    """Records of the completion of closed episodes."""
    requests: int
    """Idempotency keys, except those of imports."""
    is_dry_run: bool = False


def purge(database: Database, policy: NightPolicy, *, now: datetime, is_dry_run: bool = False) -> Purged:
    """Delete the rows that are older than the policy keeps them, in one transaction; with `is_dry_run` count them.

    An agent's own policy overrides `policy`. `database` must have been opened as `nous_purge`. Raises `InvalidInput`,
    before anything is deleted, if an agent's policy is invalid.
    """
    with (
        database.transaction(timeout_s=PURGE_TIMEOUT_S) as connection,
        connection.transaction(force_rollback=is_dry_run),
    ):
        policies = policies_of(connection, policy)
        agents = {"agent_ids": list(policies), "now": now, "heart": HEART}
        counts: dict[str, int] = {}
        for name in KEPT:
            days = [getattr(own, f"{name}_kept_days") for own in policies.values()]
            counts[name] = connection.execute(SQL[f"purge_{name}"], {**agents, "days": days}).rowcount
    purged = Purged(**counts, is_dry_run=is_dry_run)
    logger.info("%s", asdict(purged))
    return purged


def policies_of(connection: Connection, policy: NightPolicy) -> dict[str, NightPolicy]:
    """Return the policy of each agent; raise `InvalidInput`, naming the agent, for an invalid one."""
    policies: dict[str, NightPolicy] = {}
    own: Mapping[str, Any]
    for agent_id, own in connection.execute(SQL["policies"]):
        try:
            policies[agent_id] = policy.overridden(own)
        except InvalidInput as error:
            raise InvalidInput(f"the policy of agent {agent_id!r} makes no sense: {error}") from error
    return policies
