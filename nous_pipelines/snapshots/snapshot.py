"""The state of the store at the end of a night, read in one transaction and kept as immutable Parquet."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4
from zlib import crc32

import polars as pl
from psycopg.sql import SQL

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_pipelines.failpoints import reach
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.snapshot_tables import BLOCKS, FORMAT, SnapshotTransaction, Written, write_tables
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES

READ_TIMEOUT_S = 600.0
ABANDONED_AFTER_S = 2 * READ_TIMEOUT_S  # without a byte: whoever wrote it was killed, or has long been timed out


@dataclass(frozen=True)
class Snapshot:
    """Where the tables of one night lie; `taken_at` tells whether the night was over when it was read."""

    folder: Path
    night: date
    taken_at: datetime
    counts: dict[str, int]
    checksums: dict[str, int]
    """CRC-32 of each table's file: a spoilt byte in a vector would be read without complaint."""
    format: int = FORMAT
    """Which tables and columns it has."""
    late: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many memories of each agent came only after its night had run, and are in this one."""

    @property
    def is_final(self) -> bool:
        """Whether nothing more could be said in this night when the snapshot was taken, and it has all tables."""
        return self.taken_at >= end_of(self.night) and self.format == FORMAT

    def table(
        self, name: str, *, columns: Sequence[str] | None = None, agent_ids: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Read one table, or some columns of some agents' rows, in its order: no other row is held in memory.

        Raises `Unavailable` when its file is missing or is not the one that was written.
        """
        path = self.folder / f"{name}.parquet"
        if self.format != FORMAT:
            message = (
                f"{self.folder} was taken by an older version of Nous and lacks tables or columns; "
                "run the night again: it is moved aside and rebuilt as of its night"
            )
            raise Unavailable(message)
        try:
            written = path.stat()
            if checksum_at(path, written.st_mtime_ns, written.st_size) != self.checksums.get(name):
                raise ValueError("its checksum is not the one it was written with")
            rows = pl.scan_parquet(path)
            if agent_ids is not None:
                rows = of_agents(rows, agent_ids, places(path, written.st_mtime_ns, written.st_size))
            return SNAPSHOT_TABLES[name].checked(
                (rows.select(columns) if columns is not None else rows).collect(), columns
            )
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            message = f"{path} can't be read ({error}); move {self.folder} aside and run the night again to rebuild it"
            raise Unavailable(message) from error

    def move_aside(self) -> None:
        """Give its folder, with all a night made of it, a name that no night reads."""
        self.folder.rename(self.folder.with_name(f"{self.folder.name}.taken-{self.taken_at:%Y%m%dT%H%M%S%f}"))


def night_folder(root: Path, database: Database, night: date) -> Path:
    """Return where the files of a night lie: apart for each database, so that none is taken for another's."""
    return root / identity_of(database) / f"night={night.isoformat()}"


def identity_of(database: Database) -> str:
    """Return what tells a database from all others."""
    with database.transaction() as connection:
        row = connection.execute(BLOCKS["identity"]).fetchone()
    return str(row[0] if row else "unknown")


def take_snapshot(
    database: Database,
    folder: Path,
    *,
    night: date,
    probe_days: int,
    now: datetime | None = None,
    late: Mapping[str, int] = MappingProxyType({}),
) -> Snapshot:
    """Return the snapshot of a night, reading the store only when there is no final one yet.

    A final snapshot is never read again. One taken while its night still lasted, or by a version of Nous that knew
    fewer tables, is moved aside, not overwritten; what takes its place is the store as it was when the night ended.
    Either all files appear under `folder`, or none. `late` is kept in its description.
    Raises `Unavailable` when they can't be written.
    """
    existing = open_snapshot(folder)
    if existing is not None and existing.is_final:
        return existing
    taken_at = now or datetime.now(UTC)
    try:
        if existing is not None:
            existing.move_aside()
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with unfinished(folder) as part:
            reading = _read(database, part, night=night, probe_days=probe_days)
            _describe(part, night, taken_at, reading, late)
        reach("snapshot in place")
    except (OSError, pl.exceptions.PolarsError) as error:
        made = open_snapshot(folder)  # by another run that was quicker
        if made is not None and made.is_final:
            return made
        message = (
            f"the snapshot {folder} can't be written ({error}); is there space left, and may this user write there?"
        )
        raise Unavailable(message) from error
    return _described(folder)


def late_rows(late: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return how many memories came late, an agent a row, so that erasing finds it."""
    return [{"agent_id": agent_id, "memories": count} for agent_id, count in sorted(late.items())]


def came_late(database: Database, taken: Snapshot, *, agent_ids: Sequence[str] = ()) -> dict[str, int]:
    """Return how many memories of its night a snapshot lacks, by agent, of some agents or all: they came after it.

    Counted, since a slow transaction stores rows that look older than a snapshot which could not see them.
    """
    counted = SQL(BLOCKS["memories_by_then"]).format(then_there=SQL(BLOCKS["then_there"]))
    with database.transaction(timeout_s=READ_TIMEOUT_S) as connection:
        stored = connection.execute(counted, {"ends_at": end_of(taken.night)}).fetchall()
    held = {
        (table, agent_id): count
        for table in {table for table, _, _ in stored}
        for agent_id, count in taken.table(table, columns=["agent_id"]).group_by("agent_id").len().iter_rows()
    }
    late = Counter[str]()
    for table, agent_id, count in stored:
        if not agent_ids or agent_id in agent_ids:
            late[agent_id] += max(0, count - held.get((table, agent_id), 0))
    return dict(+late)


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `folder` when the block succeeds, and vanishes when it does not."""
    part = folder.with_name(f".{folder.name}.{uuid4().hex}")
    part.mkdir(mode=0o700)
    remove_abandoned(beside=part)
    try:
        yield part
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def remove_abandoned(*, beside: Path) -> None:
    """Remove the unfinished folders that killed processes left beside a new one, which tells the disk's own time."""
    now = beside.stat().st_mtime
    for part in beside.parent.glob(f".*.{'[0-9a-f]' * 32}"):
        with suppress(FileNotFoundError):  # another run has just finished or removed it
            if now - max(path.stat().st_mtime for path in (part, *part.iterdir())) > ABANDONED_AFTER_S:
                shutil.rmtree(part, ignore_errors=True)


def of_agents(rows: pl.LazyFrame, agent_ids: Sequence[str], runs: Mapping[str, tuple[int, int]] | None) -> pl.LazyFrame:
    """Return the rows of some agents, reading only those between the first and the last of theirs."""
    mine = pl.col("agent_id").is_in(list(agent_ids))
    if runs is None:
        return rows.filter(mine)
    found = [runs[agent_id] for agent_id in set(agent_ids) if agent_id in runs]
    first, end = min((start for start, _ in found), default=0), max((start + size for start, size in found), default=0)
    between = rows.slice(first, end - first)
    return between if end - first == sum(size for _, size in found) else between.filter(mine)


@lru_cache(maxsize=64)
def places(path: Path, _modified_ns: int, _size: int) -> Mapping[str, tuple[int, int]] | None:
    """Return where each agent's rows begin in a file and how many they are; None where they don't lie together."""
    runs = pl.read_parquet(path, columns=["agent_id"])["agent_id"].rle().struct.unnest()
    if runs["value"].n_unique() < len(runs):
        return None
    starts = runs["len"].cum_sum() - runs["len"]
    return dict(zip(runs["value"], zip(starts, runs["len"], strict=True), strict=True))


@lru_cache(maxsize=256)
def checksum_at(path: Path, _modified_ns: int, _size: int) -> int:
    """Return the CRC-32 of a file as it was last written, reading it once for all steps of a night."""
    return checksum(path)


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = crc32(chunk, value)
    return value


def open_snapshot(folder: Path) -> Snapshot | None:
    """Return the snapshot that lies in `folder`, or None; raise `Unavailable` when its description is damaged."""
    return _described(folder) if (folder / "snapshot.json").exists() else None


def _described(folder: Path) -> Snapshot:
    path = folder / "snapshot.json"
    try:
        values = json.loads(path.read_text("utf-8"))
        return Snapshot(
            folder,
            date.fromisoformat(values["night"]),
            datetime.fromisoformat(values["taken_at"]),
            counts=dict(values["counts"]),
            checksums=dict(values["checksums"]),
            format=known_format(path, values.get("format", 1)),
            late={row["agent_id"]: row["memories"] for row in values.get("late", ())},
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error!r}); move {folder} aside and run the night again to rebuild it"
        raise Unavailable(message) from error


def known_format(path: Path, number: int) -> int:
    """Return the format of a snapshot; raise `Unavailable` for one that a later version of Nous made."""
    if number > FORMAT:
        message = f"{path} was written by a newer version of Nous (format {number}, known here: {FORMAT}); upgrade Nous"
        raise Unavailable(message)
    return number


def _read(database: Database, folder: Path, *, night: date, probe_days: int) -> Mapping[str, Written]:
    reach("snapshot begins")
    with database.transaction(timeout_s=READ_TIMEOUT_S, is_snapshot=True) as connection:
        return write_tables(SnapshotTransaction(connection, night, probe_days), folder)


def _describe(
    folder: Path, night: date, taken_at: datetime, written: Mapping[str, Written], late: Mapping[str, int]
) -> None:
    description = {
        "format": FORMAT,
        "night": night.isoformat(),
        "taken_at": taken_at.isoformat(),
        "counts": {name: count for name, (count, _) in written.items()},
        "checksums": {name: checksum for name, (_, checksum) in written.items()},
        "late": late_rows(late),
    }
    (folder / "snapshot.json").write_text(json.dumps(description), "utf-8")
    reach("snapshot described")
