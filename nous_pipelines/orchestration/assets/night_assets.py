"""What all assets of a night have in common: their partitions, what they read, and from where."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import polars as pl

from nous_pipelines.engines.engine import Engine, OnDone
from nous_pipelines.nights import FIRST_NIGHT, parse_night
from nous_pipelines.orchestration.chunk_work import ChunkOutput, ChunkWork, Table, do_work
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.links import CHANGED
from nous_pipelines.phases.phase import Tables
from nous_pipelines.phases.phase_table import PHASES, Reads
from nous_pipelines.plan.left_out import left_out_by
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.chunks import Chunk
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema


def nights_from(first: date) -> dg.DailyPartitionsDefinition:
    """Return the partitions: a night for all agents each; tonight is among them, and can be run before it is over."""
    return dg.DailyPartitionsDefinition(start_date=first.isoformat(), timezone="UTC", end_offset=1)


NIGHTS = nights_from(FIRST_NIGHT)
"""Every night there may be; what Dagster's interface shows begins at the first memory."""
OWNERS = ["team:memory"]
"""Whom Dagster's catalogue names to turn to; a deployment has one team for its memory."""
CHANGING = tuple(phase.name for phase in PHASES if CHANGED.name not in phase.reads)
"""The phases whose proposals the others are told of, as the table `changed`."""
MADE_BY: Mapping[str, tuple[str, ...]] = {"copies": ("neighbours",), CHANGED.name: CHANGING}
"""The assets that a table comes from, where it is not the one of its name."""


def sources_of(reads: Reads) -> tuple[str, ...]:
    """Return the assets that tables come from; the agents and their policies are always of the snapshot."""
    made = (MADE_BY.get(name, (name,)) for name in reads if name not in SNAPSHOT_TABLES)
    return ("snapshot", *dict.fromkeys(asset for assets in made for asset in assets))


def night_asset(
    *,
    reads: Reads | None = None,
    makes: TableSchema | None = None,
    deps: Iterable[Any] = (),
    changes_memories: bool = False,
    **details: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return what makes a function an asset of a night that depends on what it reads, and on `deps`.

    The columns of the table it `makes` are shown in Dagster's catalogue, which finds by tag what changes memories;
    `details` are those of `dagster.asset`.
    """
    told: dict[str, Any] = {}
    if reads is not None:
        told["reads"] = dg.MetadataValue.json({name: columns and list(columns) for name, columns in reads.items()})
    if makes is not None:
        told["dagster/column_schema"] = catalogued(makes)
    sources = () if reads is None else sources_of(reads)
    return dg.asset(
        partitions_def=NIGHTS,
        group_name="night",
        deps=[*sources, *deps],
        metadata=told,
        owners=OWNERS,
        tags={"changes": "memories" if changes_memories else "nothing"},
        **details,
    )


def catalogued(schema: TableSchema) -> dg.TableSchema:
    """Return the columns of a table as Dagster's catalogue shows them."""
    columns = [dg.TableColumn(name, str(dtype), description=schema.meanings[name]) for name, dtype in schema.items()]
    return dg.TableSchema(columns)


def row_count(rows: Sized) -> dict[str, int]:
    """Return how many rows there are, under the name by which Dagster's catalogue plots it."""
    return {"dagster/row_count": len(rows)}


def night_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> date:
    """Return the night a step works on."""
    return parse_night(context.partition_key)


@dataclass(frozen=True)
class Inputs:
    """The tables an asset reads, some agents of one policy at a time: no other row is held in memory."""

    reads: Reads
    chunks: Sequence[Chunk]
    made: Mapping[str, Table]
    """The tables that other assets of the night have made; for other processes, where they lie."""
    files: NightFiles
    engine: Engine

    @classmethod
    def of(cls, night_run: NightRun, night: date, reads: Reads) -> "Inputs":
        """Open the tables of a night."""
        files, engine = night_run.files(night), night_run.engine
        made = {
            name: read_whole(files, name, reads[name])
            if engine.shares_memory or name == CHANGED.name
            else files.folder / f"{name}.parquet"
            for name in reads
            if name not in SNAPSHOT_TABLES
        }
        return cls(reads, night_run.chunks(night), made, files, engine)

    def __iter__(self) -> Iterator[tuple[Chunk, Tables]]:
        for chunk in self.chunks:
            yield chunk, ChunkWork("", ChunkOutput, chunk, self.reads, self.made, {}).tables(chunk)

    def beside(self, name: str, table: pl.DataFrame) -> "Inputs":
        """Return the same with one more table, of all agents."""
        return replace(self, reads={**self.reads, name: None}, made={**self.made, name: table})

    def each(
        self, step: str, function: Callable[..., ChunkOutput], *, on_done: OnDone | None = None, **options: Any
    ) -> list[ChunkOutput]:
        """Return what is made of each chunk; an agent for which alone that fails is left out from here on.

        Raises the first such fault when it fails for all.
        """
        with self._between(step) as (scratch, made):
            is_elsewhere = not self.engine.shares_settings
            works = [
                ChunkWork(step, function, chunk, self.reads, made, options, scratch, is_elsewhere=is_elsewhere)
                for chunk in self.chunks
            ]
            done = self.engine.map(do_work, works, on_done=on_done)
            found = [part.read() for each in done for part in each.parts]
        faults = {agent_id: fault for each in done for agent_id, fault in each.faults.items()}
        if faults and not found:
            raise next(iter(faults.values()))
        self.files.leave_out(left_out_by(step, faults))
        return found

    @contextmanager
    def _between(self, step: str) -> Iterator[tuple[Path | None, Mapping[str, Table]]]:
        """Yield how files between processes begin, and all tables as files; they are gone afterwards."""
        if self.engine.shares_memory:
            yield None, self.made
            return
        scratch = self.files.folder / f"{step}.{uuid4().hex}"
        try:
            in_memory = {name: table for name, table in self.made.items() if isinstance(table, pl.DataFrame)}
            yield scratch, {**self.made, **ChunkOutput(in_memory).write(scratch).tables}
        finally:
            for path in self.files.folder.glob(f"{scratch.name}.*.part"):
                path.unlink(missing_ok=True)


def join_parts(parts: Iterable[ChunkOutput], name: str, schema: TableSchema) -> pl.DataFrame:
    """Return one table from those of all chunks."""
    return pl.concat([schema.empty(), *(part.table(name) for part in parts)])


def chunk_log(context: dg.AssetExecutionContext, engine: Engine) -> OnDone | None:
    """Return a callback that writes a line to the run log for each chunk that another process has done."""
    if engine.shares_memory:
        return None
    return lambda done, total: context.log.info("%d of %d chunks of agents", done, total)


def read_whole(files: NightFiles, name: str, columns: Sequence[str] | None) -> pl.DataFrame:
    """Read a table that other assets have made."""
    if name != CHANGED.name:
        return files.read_table(name, columns=columns)
    rows = [
        (proposal["agent_id"], change["id"])
        for phase in CHANGING
        for proposal in files.read_json(phase)["proposals"]
        for change in proposal["changes"]
    ]
    return pl.DataFrame(rows, schema=CHANGED, orient="row").unique()
