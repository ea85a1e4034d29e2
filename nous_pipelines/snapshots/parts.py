"""The parts of snapshots: each holds all rows of some agents, is written once and shared by later nights.

Facts that did not change stay in the part they lie in: a later one names them in its table `fact_rows`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import polars as pl

from nous_pipelines.snapshots.copy_binary import ROW_GROUP_SIZE

PART_PREFIX = "part="
"""The prefix of a part's folder: DuckDB reads `part=NAME` in a path as a column."""
DESCRIPTION = "part.json"
FACTS, FACT_ROWS = "facts", "fact_rows"
KEY = ("agent_id", "id")
GAP = ROW_GROUP_SIZE
"""Rows between two runs up to which both are read together, rather than opening the file again."""

Stamp: TypeAlias = tuple[Path, int, int]
Run: TypeAlias = tuple[int, int]
"""The first row of a run, and how many it has."""


@dataclass(frozen=True)
class SnapshotPart:
    """A folder with the tables of some agents, how many rows each has, and the CRC-32 of its file."""

    folder: Path
    counts: Mapping[str, int]
    checksums: Mapping[str, int]
    others: tuple[str, ...] = ()
    """The names of the earlier parts in which some of its facts lie."""

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
            return all(self.file(table).is_file() for table in self.checksums) and all(
                self.beside(name).file(FACTS).is_file() for name in self.others
            )
        except (OSError, ValueError):
            return False

    def beside(self, name: str) -> SnapshotPart:
        """Return another part, or this one; raise what `open_part` raises."""
        return open_part(self.folder.with_name(f"{PART_PREFIX}{name}")) if name != self.name else self

    def is_spread(self, table: str) -> bool:
        """Whether rows of a table lie in other parts."""
        return table == FACTS and bool(self.others)

    def has_rows(self, table: str) -> bool:
        """Whether a table has any, once its file is known to be the one that was written."""
        return self.file(table).is_file() and self.counts.get(FACT_ROWS if self.is_spread(table) else table) != 0

    def places(self, table: str) -> pl.DataFrame:
        """Return first row and number of rows of each agent in a table: agent_id, first, size."""
        return places_at(*stamp(self.file(FACT_ROWS if self.is_spread(table) else table)))

    def fact_rows(self) -> pl.DataFrame:
        """Return the facts of its agents and the part each lies in: agent_id, id, lies_in."""
        if not self.others:
            return pl.read_parquet(self.file(FACTS), columns=list(KEY)).with_columns(lies_in=pl.lit(self.name))
        return pl.read_parquet(self.file(FACT_ROWS)).with_columns(pl.col("lies_in").fill_null(self.name))

    def no_rows(self, table: str, columns: Sequence[str] | None) -> pl.DataFrame:
        """Return a table, or some of its columns, without a row."""
        rows = none_at(*stamp(self.file(table)))
        return rows if columns is None else rows.select(columns)

    def _fact_places(self) -> pl.DataFrame:
        """Return for each fact the part it lies in, and its row in that file, in order: agent_id, lies_in, at."""
        files = {name: stamp(self.beside(name).file(FACTS)) for name in (*self.others, self.name)}
        return fact_places_at(stamp(self.file(FACT_ROWS)), tuple(files.items()))

    def slices(self, table: str, columns: Sequence[str] | None, runs: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield the rows of each run (first, size; in order), reading only those and gaps of up to `GAP` rows."""
        places = runs.select("first", "size").rows()
        if self.is_spread(table):
            rows = self._fact_places()
            for first, size in places:
                yield self._gathered(rows.slice(first, size), columns)
            return
        yield from self._own_slices(table, columns, places)

    def _gathered(self, wanted: pl.DataFrame, columns: Sequence[str] | None) -> pl.DataFrame:
        """Return these facts (agent_id, lies_in, at), in order, from the parts they lie in."""
        read, order, start = [self.no_rows(FACTS, columns)], list[pl.DataFrame](), 0
        for (name,), own in wanted.with_row_index("place").group_by("lies_in"):
            part = self.beside(str(name))
            places = places_at(*stamp(part.file(FACTS))).join(own, on="agent_id", how="semi", maintain_order="left")
            read += part._own_slices(FACTS, columns, places.select("first", "size").rows())
            begins = places.select(
                "agent_id", begin=start + pl.col("size").cum_sum() - pl.col("size") - pl.col("first")
            )
            order.append(own.join(begins, on="agent_id").select("place", at=pl.col("at") + pl.col("begin")))
            start += int(places["size"].sum())
        return pl.concat(read)[pl.concat(order).sort("place")["at"]] if order else read[0]

    def _own_slices(self, table: str, columns: Sequence[str] | None, runs: Sequence[Run]) -> Iterator[pl.DataFrame]:
        for near in near_runs(runs):
            start, end = near[0][0], sum(near[-1])
            rows = pl.scan_parquet(self.file(table)).slice(start, end - start)
            read = (rows if columns is None else rows.select(columns)).collect()
            yield from (read.slice(first - start, size) for first, size in near)


def near_runs(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield runs, in order, in groups without a gap of more than `GAP` rows between two of them."""
    group: list[Run] = []
    for run in runs:
        if group and run[0] - sum(group[-1]) > GAP:
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def open_part(folder: Path) -> SnapshotPart:
    """Return the part in a folder; raise `OSError` or `ValueError` if its description can't be read."""
    try:
        return described_at(*stamp(folder / DESCRIPTION))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / DESCRIPTION} is damaged ({error!r})") from error


def describe_part(folder: Path, written: Mapping[str, tuple[int, int]], others: Sequence[str] = ()) -> None:
    """Write the description of a part: number of rows and CRC-32 of each table, and where else facts of it lie."""
    description = {
        "counts": {name: count for name, (count, _) in written.items()},
        "checksums": {name: checksum for name, (_, checksum) in written.items()},
        "others": list(others),
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


def stamp(path: Path) -> Stamp:
    """Return a path with time and size of its file, a cache key that changes when the file is written again."""
    written = path.stat()
    return path, written.st_mtime_ns, written.st_size


@lru_cache(maxsize=1024)
def described_at(path: Path, _modified_ns: int, _size: int) -> SnapshotPart:
    """Return the part described by a file."""
    values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    others = tuple(values.get("others", ()))
    return SnapshotPart(path.parent, dict(values["counts"]), dict(values["checksums"]), others)


@lru_cache(maxsize=1024)
def places_at(path: Path, _modified_ns: int, _size: int) -> pl.DataFrame:
    """Return first row and number of rows of each agent in a file sorted by agent."""
    runs = pl.read_parquet(path, columns=["agent_id"])["agent_id"].rle().struct.unnest()
    size = pl.col("len").cast(pl.Int64)
    return runs.select(agent_id="value", first=size.cum_sum() - size, size=size)


@lru_cache(maxsize=64)
def fact_places_at(path: Stamp, files: tuple[tuple[str, Stamp], ...]) -> pl.DataFrame:
    """Return the part of each fact named in a file of `fact_rows`, and its row there; `files` are those of parts.

    Raises `ValueError` where a part lacks one of them: the rows of agents are counted off in this order.
    """
    own, _ = files[-1]
    keys = (
        pl.read_parquet(file, columns=list(KEY)).with_row_index("at").with_columns(lies_in=pl.lit(name))
        for name, (file, *_) in files
    )
    named = pl.read_parquet(path[0]).with_columns(pl.col("lies_in").fill_null(own))
    rows = named.join(pl.concat(keys), on=[*KEY, "lies_in"], how="inner", maintain_order="left")
    if len(rows) != len(named):  # an erasure that did not end removes a fact from one file before the other
        raise ValueError(f"{path[0]} names {len(named) - len(rows)} facts that the parts lack")
    return rows.select("agent_id", "lies_in", pl.col("at").cast(pl.Int64))


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
