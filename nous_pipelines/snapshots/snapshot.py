"""The state of the store at the end of a night, read in one transaction and kept as immutable Parquet.

A night reads the rows of the agents that have changed since an earlier one; the others' lie in parts that both share.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import polars as pl
from psycopg.sql import SQL

from nous_online.core.errors import NousError, Unavailable
from nous_online.database.connection import Database
from nous_pipelines.failpoints import reach
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.copy_binary import write_parquet_as_read
from nous_pipelines.snapshots.parts import PREFIX, SnapshotPart, describe_part, open_part, rows_of_runs, stamp
from nous_pipelines.snapshots.snapshot_tables import BLOCKS, TABLES, SnapshotTransaction, write_tables
from nous_pipelines.snapshots.table_schemas import PLACED, SNAPSHOT_TABLES

FORMAT = 5
"""Raised whenever a table or a column is added: an older snapshot is made again before a night runs over it."""
UNDIVIDED = 4
"""The format of snapshots that earlier versions wrote, with the same tables: all in the folder of their night."""
READ_TIMEOUT_S = 600.0
ABANDONED_AFTER_S = 2 * READ_TIMEOUT_S  # without a byte: whoever wrote it was killed, or has long been timed out
MOST_PARTS = 32
"""So many parts share the rows of a snapshot before the next one reads all again, into one."""
MOST_CHANGED = 0.5
"""With more of the rows changed, reading all again is cheaper."""
MOST_BASES = 16
"""How many earlier snapshots are looked at for one to build on: the latest are not of the past of a restored backup."""


@dataclass(frozen=True)
class Snapshot:
    """Where the tables of one night lie; `taken_at` tells whether the night was over when it was read."""

    folder: Path
    night: date
    taken_at: datetime
    checksums: Mapping[str, int]
    """CRC-32 of each file in its folder."""
    format: int = FORMAT
    """Which tables and columns it has."""
    mark: str | None = None
    """The row of the database that says it was taken of it."""
    probe_days: int | None = None
    late: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many memories of each agent came only after its night had run, and are in this one."""
    undivided: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many rows each table has, of one that an earlier version wrote into its folder."""

    @property
    def is_final(self) -> bool:
        """Whether nothing more could be said in this night when the snapshot was taken, and it has all tables."""
        return self.taken_at >= end_of(self.night) and self.format >= UNDIVIDED

    @property
    def is_undivided(self) -> bool:
        """Whether an earlier version wrote it, all tables into the folder of the night."""
        return self.format <= UNDIVIDED

    @cached_property
    def own(self) -> SnapshotPart:
        """The files in its own folder."""
        return SnapshotPart(self.folder, self.undivided, self.checksums)

    @cached_property
    def placed(self) -> pl.DataFrame:
        """In which part the rows of each agent lie: `PLACED`, by agent; raises `OSError` or `ValueError`."""
        return PLACED.checked(pl.read_parquet(self.own.file("placed")))

    @property
    def parts(self) -> Mapping[str, SnapshotPart]:
        """The parts its agents' rows lie in, by name; raises what opening one raises."""
        if self.is_undivided:
            return {"": self.own}
        names = self.placed["part"].unique(maintain_order=True)
        return {name: open_part(self.folder.parent / f"{PREFIX}{name}") for name in names}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many rows each table has."""
        if self.is_undivided:
            return self.undivided
        return {name: sum(self.sizes(name).values()) for name in (*TABLES, "agents")}

    def sizes(self, name: str) -> Mapping[str, int]:
        """Return how many rows of a table each agent has that has any; raises `Unavailable` as `table` does."""
        if name == "agents" or self.is_undivided:
            return dict(self.table(name, columns=["agent_id"]).group_by("agent_id").len().iter_rows())
        with self._read(name):
            parts = {key: part for key, part in self.parts.items() if part.has_rows(name)}
            places = [part.places(name).with_columns(part=pl.lit(key)) for key, part in parts.items()]
            if not places:
                return {}
            found = self.placed.join(pl.concat(places), on=["agent_id", "part"], how="inner")
            return dict(found.select("agent_id", "size").iter_rows())

    def table(
        self, name: str, *, columns: Sequence[str] | None = None, agent_ids: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Read one table, or some columns of some agents' rows, in its order: no other row is held in memory.

        Raises `Unavailable` when its file is missing or is not the one that was written.
        """
        if self.format < UNDIVIDED:
            message = (
                f"{self.folder} was taken by an older version of Nous and lacks tables or columns; "
                "run the night again: it is moved aside and rebuilt as of its night"
            )
            raise Unavailable(message)
        with self._read(name):
            if name == "agents" or self.is_undivided:
                read = self._undivided(name, columns, agent_ids)
            else:
                mine = pl.lit(value=True) if agent_ids is None else pl.col("agent_id").is_in(list(agent_ids))
                none = SNAPSHOT_TABLES[name].only(*columns or SNAPSHOT_TABLES[name]).empty()
                read = pl.concat(rows_of_runs(self.parts, name, columns, self.placed.filter(mine)) or [none])
            return SNAPSHOT_TABLES[name].checked(read, columns)

    @contextmanager
    def _read(self, name: str) -> Iterator[None]:
        """Raise `Unavailable`, with the way out, for what reading a table in the block raises."""
        try:
            yield
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            message = (
                f"{name}.parquet of {self.folder} can't be read ({error}); "
                f"move {self.folder} aside and run the night again to rebuild it"
            )
            raise Unavailable(message) from error

    def _undivided(self, name: str, columns: Sequence[str] | None, agent_ids: Sequence[str] | None) -> pl.DataFrame:
        rows = pl.scan_parquet(self.own.file(name))
        rows = rows if agent_ids is None else rows.filter(pl.col("agent_id").is_in(list(agent_ids)))
        return (rows if columns is None else rows.select(columns)).collect()

    def move_aside(self) -> None:
        """Give its folder, with all a night made of it, a name that no night reads."""
        self.folder.rename(self.folder.with_name(f"{self.folder.name}.taken-{self.taken_at:%Y%m%dT%H%M%S%f}"))


@dataclass(frozen=True)
class EarlierSnapshot:
    """An earlier snapshot that another is built on, and the first transaction it may not have seen."""

    snapshot: Snapshot
    since: int


def night_folder(root: Path, database: Database, night: date) -> Path:
    """Return where the files of a night lie: apart for each database, so that none is taken for another's."""
    return root / identity_of(database) / f"night={night.isoformat()}"


def identity_of(database: Database) -> str:
    """Return what tells a database from all others."""
    with database.transaction() as connection:
        row = connection.execute(BLOCKS["identity"]).fetchone()
    return str(row[0] if row else "unknown")


def take_snapshot(  # noqa: PLR0913 (each is said by name)
    database: Database,
    folder: Path,
    *,
    night: date,
    probe_days: int,
    now: datetime | None = None,
    late: Mapping[str, int] = MappingProxyType({}),
    is_whole: bool = False,
) -> Snapshot:
    """Return the snapshot of a night, reading the store only when there is no final one yet.

    A final snapshot is never read again. One taken while its night still lasted, or by a version of Nous that knew
    fewer tables, is moved aside, not overwritten; what takes its place is the store as it was when the night ended.
    Of agents whose rows an earlier snapshot has as they are, none is read, unless `is_whole`.
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
        part = folder.with_name(f"{PREFIX}{night}.{uuid4().hex[:12]}")
        with unless_finished(part), unfinished(folder) as own:
            reach("snapshot begins")
            bases = [] if is_whole else earlier_snapshots(folder.parent, night, probe_days)
            with database.transaction(timeout_s=READ_TIMEOUT_S, is_snapshot=True) as connection:
                reading = SnapshotTransaction(connection, night, probe_days)
                since = connection.execute(BLOCKS["since"]).fetchall()[0][0]
                checksums = write_snapshot(reading, own, part, base_among(reading, bases))
            with database.transaction() as connection:
                marked = connection.execute(BLOCKS["mark"], {"night": night, "since": since}).fetchall()[0][0]
            made = Snapshot(own, night, taken_at, checksums, mark=marked, probe_days=probe_days, late=late)
            describe(made)
        reach("snapshot in place")
    except (OSError, pl.exceptions.PolarsError) as error:
        made = open_snapshot(folder)  # by another run that was quicker
        if made is not None and made.is_final:
            return made
        message = (
            f"the snapshot {folder} can't be written ({error}); is there space left, and may this user write there?"
        )
        raise Unavailable(message) from error
    return described(folder)


def earlier_snapshots(root: Path, night: date, probe_days: int) -> list[Snapshot]:
    """Return the latest snapshots of a night and of those before, whether or not a later one took their place."""
    names = [path.name for path in root.glob("night=????-??-??*") if path.name[6:16] <= night.isoformat()]
    found = list[Snapshot]()
    for name in sorted(names, key=lambda name: name[6:16], reverse=True)[:MOST_BASES]:
        with suppress(NousError):
            taken = open_snapshot(root / name)
            if taken is not None and taken.mark is not None and taken.probe_days == probe_days:
                found.append(taken)
    return sorted(found, key=lambda taken: (taken.night, taken.taken_at), reverse=True)


def base_among(reading: SnapshotTransaction, snapshots: Sequence[Snapshot]) -> EarlierSnapshot | None:
    """Return the first of some snapshots that is of the history of this database, and of which no file is damaged.

    One is of another history where a backup from before it was restored, or a dump: see `lifecycle.snapshots`.
    """
    marks = {"ids": [taken.mark for taken in snapshots]}
    known = dict(reading.connection.execute(BLOCKS["bases"], marks).fetchall()) if snapshots else {}
    for taken in snapshots:
        with suppress(OSError, ValueError, pl.exceptions.PolarsError):
            parts = taken.parts.values() if taken.mark in known and taken.own.is_whole else ()
            if parts and len(parts) < MOST_PARTS and all(part.is_whole for part in parts):
                return EarlierSnapshot(taken, known[taken.mark])
    return None


def write_snapshot(
    reading: SnapshotTransaction, own: Path, part: Path, base: EarlierSnapshot | None
) -> Mapping[str, int]:
    """Write who there is and where their rows lie, after a part with the rows that no earlier one has as they are.

    Returns the CRC-32 of each file in the night's own folder.
    """
    standing, name = standing_since(reading, base), part.name.removeprefix(PREFIX)
    changed = standing.filter(pl.col("part").is_null())
    if sum(changed["row_count"]) > MOST_CHANGED * sum(standing["row_count"]):
        changed = standing.with_columns(part=pl.lit(None, pl.String))
    if len(changed):
        with unfinished(part) as new:
            agent_ids = None if len(changed) == len(standing) else changed["agent_id"].to_list()
            describe_part(new, write_tables(replace(reading, agent_ids=agent_ids), new))
            reach("snapshot part described")
    part_of = pl.when(pl.col("agent_id").is_in(changed["agent_id"].implode())).then(pl.lit(name)).otherwise("part")
    tables = {
        "agents": reading.rows(BLOCKS["agents"]),
        "placed": standing.select("agent_id", part_of.alias("part"), "row_count"),
    }
    return {
        table: write_parquet_as_read([rows], rows.schema, own / f"{table}.parquet") for table, rows in tables.items()
    }


def standing_since(reading: SnapshotTransaction, base: EarlierSnapshot | None) -> pl.DataFrame:
    """Return the agents there are, how many rows each has, and in which part of the base its rows lie as they are now.

    `part` is null where none has them so; `PLACED`, by agent.
    """
    query = SQL(BLOCKS["standing"]).format(written=SQL(BLOCKS["written"]))
    if base is None:
        none = dict.fromkeys(("since", "dated", "base", "used_before", "probed_before"))
        return reading.rows(query, **none).select("agent_id", pl.lit(None, pl.String).alias("part"), "row_count")
    before = replace(reading, night=base.snapshot.night).bounds
    moments = {"dated": before["ends_at"], "used_before": before["uses_from"], "probed_before": before["probes_from"]}
    now = reading.rows(query, since=base.since, base=base.snapshot.night, **moments)
    found = now.join(base.snapshot.placed, on="agent_id", how="left", suffix="_before", maintain_order="left")
    is_same = ~pl.col("is_changed").fill_null(value=False) & (pl.col("row_count") == pl.col("row_count_before"))
    return found.select("agent_id", pl.when(is_same).then("part").alias("part"), "row_count")


def late_rows(late: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return how many memories came late, an agent a row, so that erasing finds it."""
    return [{"agent_id": agent_id, "memories": count} for agent_id, count in sorted(late.items())]


def came_late(database: Database, taken: Snapshot, *, agent_ids: Sequence[str] = ()) -> dict[str, int]:
    """Return how many memories of its night a snapshot lacks, by agent, of some agents or all: they came after it.

    Counted, since a slow transaction stores rows that look older than a snapshot which could not see them.
    """
    counted = SQL(BLOCKS["memories_by_then"]).format(then_there=SQL(BLOCKS["then_there"]))
    with database.transaction(timeout_s=READ_TIMEOUT_S) as connection:
        stored = connection.execute(counted, {"ends_at": end_of(taken.night), "agent_ids": None}).fetchall()
    held = {
        (table, agent_id): count
        for table in {table for table, _, _ in stored}
        for agent_id, count in taken.sizes(table).items()
    }
    late = Counter[str]()
    for table, agent_id, count in stored:
        if not agent_ids or agent_id in agent_ids:
            late[agent_id] += max(0, count - held.get((table, agent_id), 0))
    return dict(+late)


@contextmanager
def unless_finished(folder: Path) -> Iterator[None]:
    """Remove a folder unless the block succeeds."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


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


def open_snapshot(folder: Path) -> Snapshot | None:
    """Return the snapshot that lies in `folder`, or None; raise `Unavailable` when its description is damaged."""
    return described(folder) if (folder / "snapshot.json").exists() else None


def parts_of(folder: Path) -> list[SnapshotPart]:
    """Return the parts of the snapshot in a folder, if there is one; raise `Unavailable` when that can't be read."""
    taken = open_snapshot(folder)
    try:
        return [] if taken is None else list(taken.parts.values())
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise Unavailable(f"{folder} can't be read ({error}); move it aside and run the night again") from error


def described(folder: Path) -> Snapshot:
    """Return the snapshot in a folder as its description has it; the same while that stays as it is."""
    path = folder / "snapshot.json"
    try:
        return described_at(*stamp(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error!r}); move {folder} aside and run the night again to rebuild it"
        raise Unavailable(message) from error


@lru_cache(maxsize=64)
def described_at(path: Path, _modified_ns: int, _size: int) -> Snapshot:
    """Return the snapshot that a description describes."""
    values = json.loads(path.read_text("utf-8"))
    return Snapshot(
        path.parent,
        date.fromisoformat(values["night"]),
        datetime.fromisoformat(values["taken_at"]),
        checksums=dict(values["checksums"]),
        format=known_format(path, values.get("format", 1)),
        mark=values.get("mark"),
        probe_days=values.get("probe_days"),
        late={row["agent_id"]: row["memories"] for row in values.get("late", ())},
        undivided=dict(values.get("counts", {})),
    )


def known_format(path: Path, number: int) -> int:
    """Return the format of a snapshot; raise `Unavailable` for one that a later version of Nous made."""
    if number > FORMAT:
        message = f"{path} was written by a newer version of Nous (format {number}, known here: {FORMAT}); upgrade Nous"
        raise Unavailable(message)
    return number


def describe(taken: Snapshot) -> None:
    """Write the description of a snapshot into its folder."""
    description = {
        "format": taken.format,
        "night": taken.night.isoformat(),
        "taken_at": taken.taken_at.isoformat(),
        "mark": taken.mark,
        "probe_days": taken.probe_days,
        "checksums": dict(taken.checksums),
        "late": late_rows(taken.late),
    }
    (taken.folder / "snapshot.json").write_text(json.dumps(description), "utf-8")
    reach("snapshot described")
