"""What all assets of a night have in common: their partitions, what they read, and from where."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeVar

import dagster as dg
import polars as pl

from nous_pipelines.nights import FIRST_NIGHT, parse_night
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.orchestration.resting import Rested
from nous_pipelines.phases.links import CHANGED
from nous_pipelines.phases.phase import Tables
from nous_pipelines.phases.phase_table import PHASES, Reads
from nous_pipelines.plan.left_out import each_apart, left_out_by
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.chunks import Chunk
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema

T = TypeVar("T")
NIGHTS = dg.DailyPartitionsDefinition(start_date=FIRST_NIGHT.isoformat(), timezone="UTC", end_offset=1)
"""One partition is one night for all agents; tonight is among them, so that it can be run before it is over."""
CHANGING = tuple(phase.name for phase in PHASES if CHANGED.name not in phase.reads)
"""The phases whose proposals the others are told of, as the table `changed`."""
MADE_BY: Mapping[str, tuple[str, ...]] = {"copies": ("neighbours",), CHANGED.name: CHANGING}
"""The assets that a table comes from, where it is not the one of its name."""


def sources_of(reads: Reads) -> tuple[str, ...]:
    """Return the assets that tables come from; the agents and their policies are always of the snapshot."""
    made = (MADE_BY.get(name, (name,)) for name in reads if name not in SNAPSHOT_TABLES)
    return ("snapshot", *dict.fromkeys(asset for assets in made for asset in assets))


def night_asset(
    *, reads: Reads | None = None, makes: TableSchema | None = None, deps: Iterable[Any] = (), **details: Any
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return what makes a function an asset of a night that depends on what it reads, and on `deps`.

    The columns of the table it `makes` are shown in Dagster's catalogue; `details` are those of `dagster.asset`.
    """
    told: dict[str, Any] = {}
    if reads is not None:
        told["reads"] = dg.MetadataValue.json({name: columns and list(columns) for name, columns in reads.items()})
    if makes is not None:
        told["dagster/column_schema"] = catalogued(makes)
    sources = () if reads is None else sources_of(reads)
    return dg.asset(partitions_def=NIGHTS, group_name="night", deps=[*sources, *deps], metadata=told, **details)


def catalogued(schema: TableSchema) -> dg.TableSchema:
    """Return the columns of a table as Dagster's catalogue shows them."""
    columns = [dg.TableColumn(name, str(dtype), description=schema.meanings[name]) for name, dtype in schema.items()]
    return dg.TableSchema(columns)


def row_count(table: pl.DataFrame) -> dict[str, int]:
    """Return how many rows a table has, under the name by which Dagster's catalogue plots it."""
    return {"dagster/row_count": len(table)}


def night_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> date:
    """Return the night a step works on."""
    return parse_night(context.partition_key)


@dataclass(frozen=True)
class Inputs:
    """The tables an asset reads, some agents of one policy at a time: no other row is held in memory."""

    reads: Reads
    chunks: Sequence[Chunk]
    whole: Tables
    """The tables that other assets of the night have made."""
    files: NightFiles
    rested: Rested
    """The agents that are in no chunk, since what is known of their pairs is taken over."""

    @classmethod
    def of(cls, night_run: NightRun, night: date, reads: Reads, *, finds_pairs: bool = False) -> "Inputs":
        """Open the tables of a night; what reads the snapshot alone makes sure that it is settled."""
        files = night_run.files(night)
        whole = {
            name: read_whole(files, name, columns) for name, columns in reads.items() if name not in SNAPSHOT_TABLES
        }
        if not whole:
            night_run.settle(night)
        rested = night_run.rested(night) if finds_pairs or "judgements" in reads or "neighbours" in reads else Rested()
        return cls(reads, night_run.chunks(night, without=rested.agent_ids), whole, files, rested)

    def __iter__(self) -> Iterator[tuple[Chunk, Tables]]:
        for chunk in self.chunks:
            yield chunk, self.tables(chunk)

    def tables(self, chunk: Chunk) -> Tables:
        """Return the rows of a chunk's agents."""
        return {
            name: chunk.own(self.whole[name]) if name in self.whole else chunk.table(name, columns=columns)
            for name, columns in self.reads.items()
        }

    def united(self, schema: TableSchema, parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Return what was made of the chunks as one table by agent, with the rows that are taken over."""
        return pl.concat([self.rested.rows(schema), *parts]).sort("agent_id", maintain_order=True)

    def each(self, step: str, work: Callable[[Chunk, Tables], T]) -> list[T]:
        """Return what is made of each chunk; an agent for which alone that fails is left out from here on.

        Raises the first such fault when it fails for all.
        """
        found: list[T] = []
        faults: dict[str, Exception] = {}
        for chunk in self.chunks:

            def worked(agent_ids: Sequence[str], chunk: Chunk = chunk) -> T:
                part = replace(chunk, agent_ids=tuple(agent_ids))
                return work(part, self.tables(part))

            results, faulty = each_apart(chunk.agent_ids, worked)
            found, faults = found + results, faults | faulty
        if faults and not found:
            raise next(iter(faults.values()))
        self.files.leave_out(left_out_by(step, faults))
        return found


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
