"""The tables of a snapshot, written while they are read; memories are as they were when the night ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import polars.selectors as cs
from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier

from nous_online.core.domain import CENSOR, EPISODE, FACT, PROCEDURE, Kind
from nous_online.database.statements import statements
from nous_pipelines.failpoints import reach
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.copy_binary import ROW_GROUP_SIZE, Query, read_parts, read_rows, write_parquet_as_read
from nous_pipelines.snapshots.table_schemas import FACTS, SNAPSHOT_TABLES, TEXTS

BLOCKS = statements("nous_pipelines.snapshots", "snapshot.sql")
LISTS = tuple({name for table in SNAPSHOT_TABLES.values() for name, dtype in table.items() if dtype == TEXTS})
"""Columns that Postgres sends as JSON."""
COUNTS = ("retrieved_count", "cited_count", "ignored_count")
USAGE = FACTS.only(*COUNTS, "last_used_at")
KEY = ("agent_id", "id")
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
    table = to_stored_types(reading.rows(BLOCKS[path.stem]))
    return len(table), write_parquet_as_read([table], table.schema, path)


def write_facts(reading: SnapshotTransaction, path: Path) -> Written:
    """Write the facts by agent and id while they are read."""
    rewound = reading.rows(memories_query(FACT, "rewound"), kind=FACT.name)
    # They come in order as long as the database goes agent by agent; where it does not, the file is sorted below.
    with closing(read_parts(reading.connection, memories_query(FACT, "present"), reading.bounds)) as present:
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
    rows = to_stored_types(reading.rows(memories_query(CENSOR, "as_of"), kind=CENSOR.name))
    return len(rows), write_parquet_as_read([rows], rows.schema, path)


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
    if usage.is_empty():
        counts = pl.DataFrame([
            pl.Series(name, [None if name == "last_used_at" else 0], dtype=dtype).new_from_index(0, len(memories))
            for name, dtype in USAGE.items()
        ])  # fmt: skip
    else:
        found = memories.select(KEY).join(usage, on=KEY, how="left", maintain_order="left")
        counts = found.select(pl.col(*COUNTS).fill_null(0), "last_used_at")
    return memories.drop("embedding").hstack(counts).hstack([memories["embedding"]])


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
