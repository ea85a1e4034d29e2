"""The state of the store at the end of a night, read in one transaction and kept as immutable Parquet.

A night reads only the agents that changed since an earlier snapshot, and of their facts those that did; the others lie
in parts that both share. See docs/decisions/0032-parts-by-transaction.md.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias
from uuid import uuid4

import polars as pl
import polars.selectors as cs
from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier

from nous_online.core.domain import CENSOR, EPISODE, FACT, PROCEDURE, Kind
from nous_online.core.errors import NousError, Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_pipelines.failpoints import reach
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.copy_binary import ROW_GROUP_SIZE, Query, read_parts, read_rows, write_parquet_as_read
from nous_pipelines.snapshots.known_facts import MOST_CHANGED, KnownFacts, usage_of
from nous_pipelines.snapshots.parts import (
    FACT_ROWS,
    KEY,
    PART_PREFIX,
    SnapshotPart,
    describe_part,
    open_part,
    rows_of_runs,
    stamp,
)
from nous_pipelines.snapshots.table_schemas import PLACED, SNAPSHOT_TABLES, TEXTS

BLOCKS = statements("nous_pipelines.snapshots", "snapshot.sql")
LISTS = tuple({name for table in SNAPSHOT_TABLES.values() for name, dtype in table.items() if dtype == TEXTS})
"""Columns that Postgres sends as JSON."""
USES_DAYS = 365
EPISODES_AT_ONCE = 256
"""Rows of episodes encoded together: each may hold a text of a hundred pages."""
Written: TypeAlias = tuple[int, int]  # how many rows, and the CRC-32 of their file


@dataclass(frozen=True)
class SnapshotTransaction:
    """One transaction that reads the store as it was at the end of a night."""

    connection: Connection
    night: date
    probe_days: int
    agent_ids: Sequence[str] | None = None
    """The agents to read; None for all."""
    base: EarlierSnapshot | None = None
    """The snapshot whose facts are not read again where they stayed as they were; None to read all."""

    @cached_property
    def bounds(self) -> dict[str, Any]:
        """The parameters of the statements in `snapshot.sql`."""
        ends_at = end_of(self.night)
        return {
            "night": self.night,
            "ends_at": ends_at,
            "probes_from": ends_at - timedelta(days=self.probe_days),
            "uses_from": ends_at - timedelta(days=USES_DAYS),
            "agent_ids": None if self.agent_ids is None else list(self.agent_ids),
        }

    @cached_property
    def facts(self) -> KnownFacts:
        """Which facts are to be read, and where the others lie."""
        return KnownFacts.of(self)

    @cached_property
    def usage(self) -> pl.DataFrame:
        """The usage counters of all memories that were ever used, as of the end of the night."""
        return self.rows(BLOCKS["usage"])

    def rows(self, query: Query, **more: Any) -> pl.DataFrame:
        """Return the rows of a query."""
        return read_rows(self.connection, query, {**self.bounds, **more})


def write_tables(reading: SnapshotTransaction, folder: Path) -> Mapping[str, Written]:
    """Write the rows of the agents into a folder, a file for each table, sorted by agent."""
    written: dict[str, Written] = {}
    for name, write in TABLES.items():
        written[name] = write(reading, folder / f"{name}.parquet")
        reach("snapshot table written")
    if reading.facts.read is not None:
        own = pl.read_parquet(folder / "facts.parquet", columns=list(KEY)).with_columns(lies_in=pl.lit(None, pl.String))
        rows = pl.concat([reading.facts.kept, own]).sort(KEY)
        written[FACT_ROWS] = len(rows), write_parquet_as_read([rows], rows.schema, folder / f"{FACT_ROWS}.parquet")
    return written


def to_stored_types(table: pl.DataFrame) -> pl.DataFrame:
    """Convert JSON lists to lists of text, and reals to doubles."""
    return table.with_columns(
        # By way of text: 0.1 stays 0.1, where a cast of the real would make 0.10000000149 of it.
        pl.col(pl.Float32).cast(pl.String).cast(pl.Float64),
        cs.by_name(*LISTS, require_all=False).str.json_decode(pl.List(pl.String)),
    )


def write_small(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the rows of the query with the name of the file."""
    return write_whole(reading.rows(BLOCKS[path.stem]), path)


def write_whole(rows: pl.DataFrame, path: Path) -> Written:
    """Write a table that fits into memory."""
    table = to_stored_types(rows)
    return len(table), write_parquet_as_read([table], table.schema, path)


def write_facts(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the facts by agent and id while they are read."""
    read = reading.facts.read
    names = {} if read is None else {"fact_agents": read["agent_id"].to_list(), "fact_ids": read["id"].to_list()}
    query = memories_query(FACT, "present" if read is None else "present_named")
    rewound = reading.rows(memories_query(FACT, "rewound"), kind=FACT.name)
    rewound = rewound if read is None else rewound.join(read, on=KEY, how="semi", maintain_order="left")
    # They come in order as long as the database goes agent by agent; where it does not, the file is sorted below.
    with closing(read_parts(reading.connection, query, {**reading.bounds, **names})) as present:
        # Without changes since the night, as in most, the join is left out: it would copy every vector.
        unchanged = (
            part.join(rewound, on=KEY, how="anti", maintain_order="left") if len(rewound) else part for part in present
        )
        # Merged as they come: appended, they would have the whole file sorted again in memory.
        written = write_used(merged_in_order(unchanged, rewound), reading.usage, path)
    keys = pl.read_parquet(path, columns=list(KEY)).select(pl.struct(KEY)).to_series()
    if not keys.is_sorted():
        in_order = pl.read_parquet(path, memory_map=False).sort(KEY)
        written = write_parquet_as_read([in_order], in_order.schema, path)
    return len(keys), written


def write_statements(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the statements while they are read; a heart has more of them than facts."""
    with closing(read_parts(reading.connection, BLOCKS["statements"], reading.bounds)) as parts:
        first = to_stored_types(next(parts))
        written = write_parquet_as_read(chain([first], map(to_stored_types, parts)), first.schema, path)
    return pl.scan_parquet(path).select(pl.len()).collect().item(), written


def write_episodes(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the episodes while they are read: their texts together may not fit into memory."""
    source = memories_query(EPISODE, "episodes_as_of")
    with closing(read_parts(reading.connection, source, {**reading.bounds, "kind": EPISODE.name})) as parts:
        written = write_used(parts, reading.usage, path, row_group_size=EPISODES_AT_ONCE)
    return pl.scan_parquet(path).select(pl.len()).collect().item(), written


def write_procedures(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the procedures."""
    rows = reading.rows(memories_query(PROCEDURE, "as_of"), kind=PROCEDURE.name)
    return len(rows), write_used([rows], reading.usage, path)


def write_censors(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the censors."""
    return write_whole(reading.rows(memories_query(CENSOR, "as_of"), kind=CENSOR.name), path)


def memories_query(kind: Kind[Any], block: str) -> Composed:
    """Return the query of a kind's columns over its rows in `block` of `snapshot.sql`."""
    later = SQL(BLOCKS["later"]).format()
    then_there = SQL(BLOCKS["then_there"])
    memories = SQL(BLOCKS[block]).format(table=Identifier("heart", kind.table), later=later, then_there=then_there)
    return SQL(BLOCKS[kind.table]).format(memories=memories)


def merged_in_order(parts: Iterable[pl.DataFrame], others: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the parts of a table with the rows of `others` merged in, both sorted by agent and id."""
    for part in parts:
        if part.is_empty() or others.is_empty():
            yield part
            continue
        agent_id, last = part.select(KEY).row(-1)
        is_due = (pl.col("agent_id") < agent_id) | ((pl.col("agent_id") == agent_id) & (pl.col("id") < last))
        due = others.filter(is_due)
        others = others.slice(len(due))
        yield pl.concat([part, due]).sort(KEY)
    yield others


def write_used(
    parts: Iterable[pl.DataFrame], usage: pl.DataFrame, path: Path, *, row_group_size: int = ROW_GROUP_SIZE
) -> int:
    """Write memories with their usage while they are read; return the CRC-32 of the file."""
    used = (with_usage(to_stored_types(part), usage) for part in parts)
    first = next(used)
    return write_parquet_as_read(chain([first], used), first.schema, path, row_group_size=row_group_size)


def with_usage(memories: pl.DataFrame, usage: pl.DataFrame) -> pl.DataFrame:
    """Add the usage counters of each memory, before the column of vectors, which is kept out of the join."""
    return memories.drop("embedding").hstack(usage_of(memories, usage)).hstack([memories["embedding"]])


TABLES: dict[str, Callable[[SnapshotTransaction, Path], Written]] = {
    "facts": write_facts,
    "statements": write_statements,
    "episodes": write_episodes,
    "procedures": write_procedures,
    "censors": write_censors,
    "uses": write_small,
    "recalls": write_small,
    "contradictions": write_small,
    "links": write_small,
    "cold_texts": write_small,
    "undone": write_small,
}
"""The tables of a part; the table of agents is small and written whole every night."""


# --- snapshots ---


FORMAT = 6
"""Raised whenever a table or a column is added: an older snapshot is made again before a night runs over it."""
UNDIVIDED = 4
"""The last format without parts: the same tables, all in the folder of the night. Still readable."""
NIGHT_PREFIX = "night="
"""The prefix of a night's folder: DuckDB reads `night=DATE` in a path as a column."""
READ_TIMEOUT_S = 600.0
ABANDONED_AFTER_S = 2 * READ_TIMEOUT_S  # without a byte: whoever wrote it was killed, or has long been timed out
MOST_PARTS = 32
"""Parts of a snapshot at which the next one reads everything again, into a single part."""
MOST_BASES = 16
"""Earlier snapshots tried as a base: after a backup was restored, the latest are not of the database's history."""


@dataclass(frozen=True)
class Snapshot:
    """The snapshot of one night: where its tables lie, and when it was taken."""

    folder: Path
    night: date
    taken_at: datetime
    checksums: Mapping[str, int]
    """CRC-32 of each file in its folder."""
    format: int = FORMAT
    """The set of tables and columns, see `FORMAT`."""
    mark: str | None = None
    """The id of its row in `lifecycle.snapshots`, by which a later snapshot knows it is of the same history."""
    probe_days: int | None = None
    late: Mapping[str, int] = field(default_factory=dict[str, int])
    """Memories of each agent that arrived after the night had run, and for which it was taken again."""
    undivided: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of rows of each table of a snapshot without parts."""

    @property
    def is_final(self) -> bool:
        """Whether the night was over when the snapshot was taken, and it has all tables."""
        return self.taken_at >= end_of(self.night) and self.format >= UNDIVIDED

    @property
    def is_undivided(self) -> bool:
        """Whether all its tables lie in its own folder, as earlier versions wrote them."""
        return self.format <= UNDIVIDED

    @cached_property
    def own(self) -> SnapshotPart:
        """The files in its own folder."""
        return SnapshotPart(self.folder, self.undivided, self.checksums)

    @cached_property
    def placed(self) -> pl.DataFrame:
        """The part that holds the rows of each agent (`PLACED`), by agent; raises `OSError` or `ValueError`."""
        return PLACED.checked(pl.read_parquet(self.own.file("placed")))

    @property
    def parts(self) -> Mapping[str, SnapshotPart]:
        """The parts that hold its rows, by name; raises what `open_part` raises."""
        if self.is_undivided:
            return {"": self.own}
        names = self.placed["part"].unique(maintain_order=True)
        placed = [open_part(self.folder.parent / f"{PART_PREFIX}{name}") for name in names]
        others = (part.beside(name) for part in placed for name in part.others)
        return {part.name: part for part in (*placed, *others)}

    def fact_rows(self, agent_ids: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the part in which each fact lies, of some agents or all: agent_id, id, lies_in."""
        placed = self.placed if agent_ids is None else self.placed.filter(pl.col("agent_id").is_in(list(agent_ids)))
        parts = (
            self.parts[name]
            .fact_rows()
            .join(placed.filter(part=name), on="agent_id", how="semi", maintain_order="left")
            for name in placed["part"].unique()
        )
        return pl.concat([pl.DataFrame(schema=dict.fromkeys((*KEY, "lies_in"), pl.String)), *parts])

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows of each table."""
        if self.is_undivided:
            return self.undivided
        return {name: sum(self.sizes(name).values()) for name in (*TABLES, "agents")}

    def sizes(self, name: str) -> Mapping[str, int]:
        """Return the number of rows in a table by agent, without agents that have none; raises `Unavailable`."""
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
        """Read one table, or some columns of some agents' rows, without holding other rows in memory.

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
                pieces = rows_of_runs(self.parts, name, columns, self.placed.filter(mine))
                read = pl.concat(pieces or [SNAPSHOT_TABLES[name].only(*columns or SNAPSHOT_TABLES[name]).empty()])
            return SNAPSHOT_TABLES[name].checked(read, columns)

    @contextmanager
    def _read(self, name: str) -> Iterator[None]:
        """Turn errors of reading a table in the block into `Unavailable`."""
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
        """Rename its folder, with the working files of the night, to a name that no night reads."""
        self.folder.rename(self.folder.with_name(f"{self.folder.name}.taken-{self.taken_at:%Y%m%dT%H%M%S%f}"))


@dataclass(frozen=True)
class EarlierSnapshot:
    """The snapshot that a new one is built on, and the first transaction id whose rows it may not have."""

    snapshot: Snapshot
    since: int


def night_folder(root: Path, database: Database, night: date) -> Path:
    """Return the folder of a night's files; each database has its own, so that two never share one."""
    return root / identity_of(database) / f"{NIGHT_PREFIX}{night.isoformat()}"


def night_of_folder(folder: Path) -> date | None:
    """Return the night of a folder, None for folders that were moved aside, replaced or never finished."""
    try:
        return date.fromisoformat(folder.name.removeprefix(NIGHT_PREFIX))
    except ValueError:
        return None


def identity_of(database: Database) -> str:
    """Return the id of a database (`migration.identity`)."""
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

    A final snapshot is never taken again. One taken before its night was over, or in an older format, is moved aside,
    not overwritten, and replaced by the store as it was when the night ended. Agents that did not change since an
    earlier snapshot are not read, unless `is_whole`. Either all files appear under `folder`, or none. `late` goes into
    the description. Raises `Unavailable` when the files can't be written.

    The oldest running transaction is read first: the next snapshot reads rows from it on, which this one may not have
    seen. The mark is a row of a later transaction: whatever history has it has all that the snapshot saw.
    """
    existing = open_snapshot(folder)
    if existing is not None and existing.is_final:
        return existing
    taken_at = now or datetime.now(UTC)
    try:
        if existing is not None:
            existing.move_aside()
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = folder.with_name(f"{PART_PREFIX}{night}.{uuid4().hex[:12]}")
        with removed_on_failure(part), temporary_folder(folder) as own:
            reach("snapshot begins")
            bases = [] if is_whole else earlier_snapshots(folder.parent, night, probe_days)
            with database.transaction(timeout_s=READ_TIMEOUT_S, is_snapshot=True) as connection:
                reading = SnapshotTransaction(connection, night, probe_days)
                since = connection.execute(BLOCKS["since"]).fetchall()[0][0]
                checksums = write_snapshot(reading, own, part, choose_base(reading, bases))
            with database.transaction() as connection:
                marked = connection.execute(BLOCKS["mark"], {"night": night, "since": since}).fetchall()[0][0]
            made = Snapshot(own, night, taken_at, checksums, mark=marked, probe_days=probe_days, late=late)
            write_description(made)
        reach("snapshot in place")
    except (OSError, pl.exceptions.PolarsError) as error:
        made = open_snapshot(folder)  # renaming fails, too, when another run has just finished the same snapshot
        if made is not None and made.is_final:
            return made
        message = (
            f"the snapshot {folder} can't be written ({error}); is there space left, and may this user write there?"
        )
        raise Unavailable(message) from error
    return read_description(folder)


def earlier_snapshots(root: Path, night: date, probe_days: int) -> list[Snapshot]:
    """Return the latest snapshots up to a night, including those moved aside, latest first."""
    # `night=2026-11-20`, or with `.taken-…` behind it where a snapshot was moved aside; [6:16] is the date in both.
    names = [path.name for path in root.glob(f"{NIGHT_PREFIX}????-??-??*") if path.name[6:16] <= night.isoformat()]
    found = list[Snapshot]()
    for name in sorted(names, key=lambda name: name[6:16], reverse=True)[:MOST_BASES]:
        with suppress(NousError):  # one that can't be read is no base, and no reason to stop this night
            taken = open_snapshot(root / name)
            if taken is not None and taken.mark is not None and taken.probe_days == probe_days:
                found.append(taken)
    return sorted(found, key=lambda taken: (taken.night, taken.taken_at), reverse=True)


def choose_base(reading: SnapshotTransaction, snapshots: Sequence[Snapshot]) -> EarlierSnapshot | None:
    """Return the first snapshot that is of this database's history and has no damaged file, None for none.

    None, too, where that one has as many parts as one may have. One is of another history if a backup from before it,
    or a dump, was restored since: see `lifecycle.snapshots`.
    """
    marks = {"ids": [taken.mark for taken in snapshots]}
    known = dict(reading.connection.execute(BLOCKS["bases"], marks).fetchall()) if snapshots else {}
    for taken in snapshots:
        with suppress(OSError, ValueError, pl.exceptions.PolarsError):
            parts = taken.parts.values() if taken.mark in known and taken.own.is_whole else ()
            if parts and all(part.is_whole for part in parts):
                return EarlierSnapshot(taken, known[taken.mark]) if len(parts) < MOST_PARTS else None
    return None


def write_snapshot(
    reading: SnapshotTransaction, own: Path, part: Path, base: EarlierSnapshot | None
) -> Mapping[str, int]:
    """Write a part with the rows of changed agents, then the tables of agents and of the part each agent lies in.

    Returns the CRC-32 of each file in the night's own folder.
    """
    standing, name = agent_placements(reading, base), part.name.removeprefix(PART_PREFIX)
    changed = standing.filter(pl.col("part").is_null())
    if sum(changed["row_count"]) > MOST_CHANGED * sum(standing["row_count"]):
        changed = standing.with_columns(part=pl.lit(None, pl.String))
    if len(changed):
        with temporary_folder(part) as new:
            # None, not the names of all, which every query would have to compare.
            agent_ids = None if len(changed) == len(standing) else changed["agent_id"].to_list()
            own_reading = replace(reading, agent_ids=agent_ids, base=base)
            written = write_tables(own_reading, new)
            kept = own_reading.facts.kept
            describe_part(new, written, sorted(kept["lies_in"].unique()) if len(kept) else ())
            reach("snapshot part described")
    part_of = pl.when(pl.col("agent_id").is_in(changed["agent_id"].implode())).then(pl.lit(name)).otherwise("part")
    tables = {
        "agents": reading.rows(BLOCKS["agents"]),
        "placed": standing.select("agent_id", part_of.alias("part"), "row_count"),
    }
    return {
        table: write_parquet_as_read([rows], rows.schema, own / f"{table}.parquet") for table, rows in tables.items()
    }


def agent_placements(reading: SnapshotTransaction, base: EarlierSnapshot | None) -> pl.DataFrame:
    """Return each agent with its number of rows and the part of the base that has these rows unchanged (`PLACED`).

    `part` is null for agents that changed or are new. By agent.
    """
    query = SQL(BLOCKS["standing"]).format(written=SQL(BLOCKS["written"]))
    if base is None:
        none = dict.fromkeys(("since", "dated", "base", "used_before", "probed_before"))
        return reading.rows(query, **none).select("agent_id", pl.lit(None, pl.String).alias("part"), "row_count")
    before = replace(reading, night=base.snapshot.night).bounds
    moments = {"dated": before["ends_at"], "used_before": before["uses_from"], "probed_before": before["probes_from"]}
    now = reading.rows(query, since=base.since, base=base.snapshot.night, **moments)
    found = now.join(base.snapshot.placed, on="agent_id", how="left", suffix="_before", maintain_order="left")
    # A deleted row leaves no transaction id behind: it shows in the number of rows alone.
    is_same = ~pl.col("is_changed").fill_null(value=False) & (pl.col("row_count") == pl.col("row_count_before"))
    return found.select("agent_id", pl.when(is_same).then("part").alias("part"), "row_count")


def unchanged_agents_at(database: Database, taken: Snapshot, night: date) -> set[str]:
    """Return the agents whose rows are in a snapshot as they would be in one of another night, taken now."""
    with database.transaction(timeout_s=READ_TIMEOUT_S, is_snapshot=True) as connection:
        reading = SnapshotTransaction(connection, night, taken.probe_days or 0)
        base = choose_base(reading, [taken])
        return set() if base is None else {*agent_placements(reading, base).drop_nulls("part")["agent_id"]}


def late_rows(late: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the counts of late memories as rows with an `agent_id`, the form in which erasing finds them."""
    return [{"agent_id": agent_id, "memories": count} for agent_id, count in sorted(late.items())]


def late_memories(database: Database, taken: Snapshot, *, agent_ids: Sequence[str] = ()) -> dict[str, int]:
    """Return by agent how many memories dated before its end a snapshot lacks, of some agents or all.

    By number, not by time stored: a slow transaction commits rows that look older than a snapshot without them.
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
def removed_on_failure(folder: Path) -> Iterator[None]:
    """Remove `folder` if the block fails."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder that is renamed to `folder` when the block succeeds, and removed when it fails."""
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
    """Remove the temporary folders of killed processes next to a new one."""
    now = beside.stat().st_mtime  # by the clock of the file system, which on a network share may differ from ours
    for part in beside.parent.glob(f".*.{'[0-9a-f]' * 32}"):
        with suppress(FileNotFoundError):  # another run has just finished or removed it
            if now - max(path.stat().st_mtime for path in (part, *part.iterdir())) > ABANDONED_AFTER_S:
                shutil.rmtree(part, ignore_errors=True)


def open_snapshot(folder: Path) -> Snapshot | None:
    """Return the snapshot in `folder`, None if there is none; raise `Unavailable` when its description is damaged."""
    return read_description(folder) if (folder / "snapshot.json").exists() else None


def parts_of(folder: Path) -> list[SnapshotPart]:
    """Return the parts of the snapshot in a folder, none without one; raise `Unavailable` when it can't be read."""
    taken = open_snapshot(folder)
    try:
        return [] if taken is None else list(taken.parts.values())
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise Unavailable(f"{folder} can't be read ({error}); move it aside and run the night again") from error


def read_description(folder: Path) -> Snapshot:
    """Return the snapshot in a folder from its description, cached while the file does not change."""
    path = folder / "snapshot.json"
    try:
        return described_at(*stamp(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error!r}); move {folder} aside and run the night again to rebuild it"
        raise Unavailable(message) from error


@lru_cache(maxsize=64)
def described_at(path: Path, _modified_ns: int, _size: int) -> Snapshot:
    """Return the snapshot described by a file; the other arguments are the cache key (see `stamp`).

    Raises `Unavailable` for one of a later version of Nous.
    """
    values = json.loads(path.read_text("utf-8"))
    night = date.fromisoformat(values["night"])
    number: int = values.get("format", 1)
    if number > FORMAT:
        message = f"{path} was written by a newer version of Nous (format {number}, known here: {FORMAT}); upgrade Nous"
        raise Unavailable(message)
    return Snapshot(
        path.parent,
        night,
        datetime.fromisoformat(values["taken_at"]),
        checksums=dict(values["checksums"]),
        format=number,
        mark=values.get("mark"),
        probe_days=values.get("probe_days"),
        late={row["agent_id"]: row["memories"] for row in values.get("late", ())},
        undivided=dict(values.get("counts", {})),
    )


def write_description(taken: Snapshot) -> None:
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
