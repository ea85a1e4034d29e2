"""The parts of snapshots: each holds all rows of some agents, is written once and shared by later nights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl

from nous_pipelines.snapshots.copy_binary import ROW_GROUP_SIZE

PART_PREFIX = "part="
"""The prefix of a part's folder: DuckDB reads `part=NAME` in a path as a column."""
DESCRIPTION = "part.json"
GAP = ROW_GROUP_SIZE
"""Rows between two runs up to which both are read together, rather than opening the file again."""


@dataclass(frozen=True)
class SnapshotPart:
    """A folder with the tables of some agents, how many rows each has, and the CRC-32 of its file."""

    folder: Path
    counts: Mapping[str, int]
    checksums: Mapping[str, int]

    @property
    def name(self) -> str:
        """The name of the part in the table `placed` of snapshots."""
        return self.folder.name.removeprefix(PART_PREFIX)

    def file(self, table: str) -> Path:
        """Return the file of a table after comparing its checksum; raise `ValueError` if it is not as written."""
        path = self.folder / f"{table}.parquet"
        if checksum_at(*stamp(path)) != self.checksums.get(table):
            raise ValueError(f"the checksum of {path} is not the one it was written with")
        return path

    @property
    def is_whole(self) -> bool:
        """Whether all its files are as written; Parquet itself would not notice a damaged byte in a vector."""
        try:
            return all(self.file(table).is_file() for table in self.checksums)
        except (OSError, ValueError):
            return False

    def has_rows(self, table: str) -> bool:
        """Whether a table has any, once its file is known to be the one that was written."""
        return self.file(table).is_file() and self.counts.get(table) != 0

    def places(self, table: str) -> pl.DataFrame:
        """Return first row and number of rows of each agent in a table: agent_id, first, size."""
        return places_at(*stamp(self.file(table)))

    def no_rows(self, table: str, columns: Sequence[str] | None) -> pl.DataFrame:
        """Return a table, or some of its columns, without a row."""
        rows = none_at(*stamp(self.file(table)))
        return rows if columns is None else rows.select(columns)

    def slices(self, table: str, columns: Sequence[str] | None, runs: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield the rows of each run (first, size; in order), reading only those and gaps of up to `GAP` rows."""
        ends = pl.col("first") + pl.col("size")
        is_far = (pl.col("first") - ends.shift() > GAP).fill_null(value=False)
        for near in runs.with_columns(near=is_far.cum_sum()).partition_by("near", maintain_order=True):
            start = near["first"][0]
            rows = pl.scan_parquet(self.file(table)).slice(start, near["first"][-1] + near["size"][-1] - start)
            read = (rows if columns is None else rows.select(columns)).collect()
            yield from (read.slice(first - start, size) for first, size in near.select("first", "size").iter_rows())


def open_part(folder: Path) -> SnapshotPart:
    """Return the part in a folder; raise `OSError` or `ValueError` if its description can't be read."""
    try:
        return described_at(*stamp(folder / DESCRIPTION))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / DESCRIPTION} is damaged ({error!r})") from error


def describe_part(folder: Path, written: Mapping[str, tuple[int, int]]) -> None:
    """Write the description of a part: number of rows and CRC-32 of each table."""
    description = {
        "counts": {name: count for name, (count, _) in written.items()},
        "checksums": {name: checksum for name, (_, checksum) in written.items()},
    }
    (folder / DESCRIPTION).write_text(json.dumps(description), "utf-8")


def rows_of_runs(
    parts: Mapping[str, SnapshotPart], table: str, columns: Sequence[str] | None, placed: pl.DataFrame
) -> list[pl.DataFrame]:
    """Return the rows of agents in a table, in the order of `placed` (agent_id, part), in as few pieces as possible.

    Without rows it is one empty piece with the columns of the table, or nothing where there is no part at all.
    """
    named = [parts[name] for name in placed["part"].unique(maintain_order=True)]
    used = [part for part in named if part.has_rows(table)]
    if not used:
        return [part.no_rows(table, columns) for part in (*named, *parts.values())][:1]
    places = pl.concat([part.places(table).with_columns(part=pl.lit(part.name)) for part in used])
    found = placed.select("agent_id", "part").join(places, on=["agent_id", "part"], how="inner", maintain_order="left")
    ends = pl.col("first") + pl.col("size")
    begins = (pl.col("part") != pl.col("part").shift()) | (pl.col("first") != ends.shift())
    run = begins.fill_null(value=True).cum_sum().alias("run")
    runs = found.group_by(run, maintain_order=True).agg(pl.col("part", "first").first(), pl.col("size").sum())
    if runs.is_empty():
        return [used[0].no_rows(table, columns)]
    pieces: dict[int, pl.DataFrame] = {}
    for part in used:
        own = runs.filter(part=part.name)
        pieces.update(zip(own["run"], part.slices(table, columns, own), strict=True))
    return [pieces[number] for number in runs["run"]]


# --- files, each read once in a process while it does not change ---


def stamp(path: Path) -> tuple[Path, int, int]:
    """Return a path with time and size of its file, a cache key that changes when the file is written again."""
    written = path.stat()
    return path, written.st_mtime_ns, written.st_size


@lru_cache(maxsize=1024)
def described_at(path: Path, _modified_ns: int, _size: int) -> SnapshotPart:
    """Return the part described by a file."""
    values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return SnapshotPart(path.parent, dict(values["counts"]), dict(values["checksums"]))


@lru_cache(maxsize=1024)
def places_at(path: Path, _modified_ns: int, _size: int) -> pl.DataFrame:
    """Return first row and number of rows of each agent in a file sorted by agent."""
    runs = pl.read_parquet(path, columns=["agent_id"])["agent_id"].rle().struct.unnest()
    size = pl.col("len").cast(pl.Int64)
    return runs.select(agent_id="value", first=size.cum_sum() - size, size=size)


@lru_cache(maxsize=1024)
def none_at(path: Path, _modified_ns: int, _size: int) -> pl.DataFrame:
    """Return a table without its rows."""
    return pl.scan_parquet(path).head(0).collect()


@lru_cache(maxsize=4096)
def checksum_at(path: Path, _modified_ns: int, _size: int) -> int:
    """Return the CRC-32 of a file, cached by time and size."""
    return checksum(path)


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = crc32(chunk, value)
    return value
