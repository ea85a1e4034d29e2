"""What is done with a chunk of agents, in this process or in another: functions of plain values, Parquet in and out.

What earlier nights left beside their snapshots is built on; what of it can not be trusted is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from nous_online.core.errors import Refused, Unavailable
from nous_online.database.connection import Database, open_url
from nous_online.language.pairs.judging import Judge
from nous_online.memories.erasure import shared_copies_lock
from nous_pipelines.batches.batch_requests import Models
from nous_pipelines.batches.verdict_cache import (
    Progress,
    SecondOpinionCounts,
    second_opinions,
    too_long_among,
    verdicts_for,
)
from nous_pipelines.engines.engine import picklable_error
from nous_pipelines.phases.asking import (
    STATEMENT_COLUMNS,
    VERDICTS,
    judged,
    pairs_to_judge,
    person_rulings,
    with_hashes,
)
from nous_pipelines.phases.incremental_join import NOTHING, PAIRS, ROWS, Compared
from nous_pipelines.phases.neighbours import neighbours_of
from nous_pipelines.phases.phase import Tables
from nous_pipelines.phases.phase_table import SCHEMAS, FindsProposals, MakesTable, Reads
from nous_pipelines.phases.rulings import follow_successors
from nous_pipelines.plan.left_out import isolate_failures
from nous_pipelines.plan.night_files import NightFiles, writing
from nous_pipelines.snapshots.chunks import Chunk
from nous_pipelines.snapshots.parts import checksum, checksum_at
from nous_pipelines.snapshots.snapshot import identity_of

FORMAT = 2
"""Counts how `Compared` is meant; what an older version of the code wrote is not read."""
COMPARED = {"compared_rows": ROWS, "compared_pairs": PAIRS}


def write_compared(files: NightFiles, parts: Sequence[Compared]) -> None:
    """Keep what was compared, chunk by chunk, beside a night's files; raise `Unavailable` when that is not possible."""
    start, numbered = 0, list[Compared]()
    for part in parts or [NOTHING]:
        numbered.append(part.renumbered(start))
        start += len(part.rows)
    tables = {
        "compared_rows": pl.concat([part.rows for part in numbered]),
        "compared_pairs": pl.concat([part.pairs for part in numbered]),
    }
    checksums = {name: checksum(files.write_table(name, table)) for name, table in tables.items()}
    agent_ids = sorted({agent_id for part in numbered for agent_id in part.rows["agent_id"].unique()})
    files.write_json("compared", {"format": FORMAT, "agents": agent_ids, "checksums": checksums})


def write_judged_by(files: NightFiles, judge: Judge, judgements: Path) -> None:
    """Keep whose verdicts a night's judgements are; raise `Unavailable` when that is not possible."""
    files.write_json("judged_by", {**_named(judge), "checksums": {"judgements": checksum(judgements)}})


@dataclass(frozen=True)
class Kept:
    """A folder in which a night kept what it compared, and of which agents."""

    folder: Path
    agent_ids: frozenset[str]
    checksums: Mapping[str, str]

    @cached_property
    def is_whole(self) -> bool:
        """Whether its tables are what the night wrote."""
        with suppress(OSError):
            return _are_whole(self.folder, self.checksums)
        return False


def earlier_compared(files: NightFiles) -> list[Kept]:
    """Return what nights, this one included, kept of what they compared, the latest first."""
    return [
        Kept(folder, frozenset(document["agents"]), document["checksums"])
        for folder, document in _documents(files, "compared", {"format": FORMAT})
    ]


def compared_in(nights: Sequence[Kept], agent_ids: Sequence[str]) -> Compared:
    """Return what was compared of each of some agents by the latest night that holds it whole."""
    missing, parts, start = set(agent_ids), list[Compared](), 0
    for kept in nights:
        own = missing & kept.agent_ids
        if own and kept.is_whole:
            part = _compared_of(kept.folder, sorted(own)).renumbered(start)
            start = max([start, *(part.rows["row"].sort().tail(1) + 1)])
            parts, missing = [*parts, part], missing - own
    if not parts:
        return NOTHING
    return Compared(pl.concat([part.rows for part in parts]), pl.concat([part.pairs for part in parts]))


def _compared_of(folder: Path, agent_ids: Sequence[str]) -> Compared:
    rows, pairs = (_own(folder / f"{name}.parquet", agent_ids) for name in COMPARED)
    is_known = rows.schema == pl.Schema(ROWS) and pairs.schema == pl.Schema(PAIRS)
    return Compared(rows, pairs) if is_known else NOTHING


def earlier_verdicts(files: NightFiles, judge: Judge, agent_ids: Sequence[str]) -> pl.DataFrame:
    """Return the verdicts of this judge in the judgements of the latest night, this one included, that it judged."""
    for folder in _trusted(files, "judged_by", _named(judge)):
        table = _own(folder / "judgements.parquet", agent_ids)
        if {*VERDICTS, "model"} <= {*table.columns}:
            own = table.filter(pl.col("model") == judge.name)
            return own.select(list(VERDICTS)).unique(["agent_id", "pair_hash"], keep="first", maintain_order=True)
    return pl.DataFrame(schema=VERDICTS)


def _named(judge: Judge) -> dict[str, str]:
    return {"model": judge.name, "prompt_version": judge.prompt_version}


def _trusted(files: NightFiles, name: str, wanted: Mapping[str, object]) -> Iterator[Path]:
    """Yield the folders, latest night first, whose document has what is wanted and tables with its checksums."""
    for folder, document in _documents(files, name, wanted):
        with suppress(OSError, AttributeError):
            if _are_whole(folder, document["checksums"]):
                yield folder


def _documents(files: NightFiles, name: str, wanted: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield folder and document, latest night first, of those that have what is wanted, and checksums.

    Dry runs are passed over: their policy may have been a trial.
    """
    night = files.folder.parent
    nights = sorted(path for path in night.parent.glob("night=????-??-??") if path.name <= night.name)
    for folder in (path / "run" for path in reversed(nights)):
        with suppress(Unavailable, OSError, AttributeError):
            kept = NightFiles(folder.parent).read_json(name)
            if wanted.items() <= kept.items() and "checksums" in kept:
                yield folder, kept


def _are_whole(folder: Path, checksums: Mapping[str, str]) -> bool:
    paths = {name: folder / f"{name}.parquet" for name in checksums}
    written = {name: path.stat() for name, path in paths.items()}
    return all(
        checksum_at(paths[name], written[name].st_mtime_ns, written[name].st_size) == sum_
        for name, sum_ in checksums.items()
    )


def _own(path: Path, agent_ids: Sequence[str]) -> pl.DataFrame:
    return pl.scan_parquet(path).filter(pl.col("agent_id").is_in(list(agent_ids))).collect()


# --- the work on a chunk ---

Table = pl.DataFrame | Path
"""Rows, or the file they are in where they are for another process."""


@dataclass(frozen=True)
class ChunkOutput:
    """What was made of some agents: tables, and values that are small beside them."""

    tables: Mapping[str, Table] = field(default_factory=dict[str, Table])
    value: Any = None

    def table(self, name: str) -> pl.DataFrame:
        """Return one of the tables; raise `Unavailable` when its file can't be read."""
        return rows_of(self.tables[name])

    def write(self, scratch: Path) -> ChunkOutput:
        """Return the same with its tables in files; raise `Unavailable` when they can't be written."""
        paths = {name: beside(scratch, name) for name in self.tables}
        for name, path in paths.items():
            with writing(path):
                self.table(name).write_parquet(path, compression="uncompressed", statistics=False)
        return ChunkOutput(paths, self.value)

    def read(self) -> ChunkOutput:
        """Return the same with its tables in memory; raise `Unavailable` when a file can't be read."""
        return ChunkOutput({name: rows_of(table) for name, table in self.tables.items()}, self.value)


@dataclass(frozen=True)
class ChunkWork:
    """A function, some agents, and where it finds and leaves their rows: plain values, so that it can be sent."""

    step: str
    function: Callable[..., ChunkOutput]
    """Takes the tables, the chunk and `options`: a function of a module."""
    chunk: Chunk
    reads: Reads
    made: Mapping[str, Table]
    """The tables that other assets of the night have made."""
    options: Mapping[str, Any] = field(repr=False)
    scratch: Path | None = None
    """The beginning of the names of files for another process; None where it is this one."""
    is_elsewhere: bool = False
    """Whether a worker may outlive who runs the night, so that it has to keep erasing away itself."""

    def __str__(self) -> str:
        agents = self.chunk.agent_ids
        return f"{self.step} of {len(agents)} agents ({agents[0]} to {agents[-1]})"

    def tables(self, chunk: Chunk) -> Tables:
        """Return the rows of a chunk's agents; raise `Unavailable` when a file is missing or damaged."""
        return {
            name: rows_of_chunk(self.made[name], name, columns, chunk)
            if name in self.made
            else chunk.table(name, columns=columns)
            for name, columns in self.reads.items()
        }


@dataclass(frozen=True)
class ChunkResult:
    """What was made of a chunk, in parts where it failed for an agent, and for whom alone it failed."""

    parts: list[ChunkOutput]
    faults: dict[str, Exception]


def do_work(work: ChunkWork) -> ChunkResult:
    """Do the work of a chunk; where it fails for all together, an agent for which alone it fails is left out."""

    def made_of(agent_ids: Sequence[str]) -> ChunkOutput:
        chunk = replace(work.chunk, agent_ids=tuple(agent_ids))
        made = work.function(work.tables(chunk), chunk, **work.options)
        return made if work.scratch is None else made.write(work.scratch)

    with shared_copies_lock(open_url()) if work.is_elsewhere else nullcontext():
        parts, faults = isolate_failures(work.chunk.agent_ids, made_of)
    if work.scratch is not None:
        faults = {agent_id: picklable_error(fault) for agent_id, fault in faults.items()}
    return ChunkResult(parts, faults)


def beside(scratch: Path, name: str) -> Path:
    """Return a new name for a file between two processes; what ends in `.part` is nobody's once its night is over."""
    return scratch.with_name(f"{scratch.name}.{name}.{uuid4().hex}.part")


def rows_of(table: Table) -> pl.DataFrame:
    """Return the rows of a table; raise `Unavailable` when its file can't be read."""
    if isinstance(table, pl.DataFrame):
        return table
    try:
        return pl.read_parquet(table, memory_map=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"{table}, which another process wrote, can't be read ({error})"
        raise Unavailable(f"{message}; all workers need the folder of the snapshots under the same path") from error


def rows_of_chunk(table: Table, name: str, columns: Sequence[str] | None, chunk: Chunk) -> pl.DataFrame:
    """Return the rows a chunk's agents have in a table of all agents."""
    if isinstance(table, pl.DataFrame):
        return chunk.own(table)
    try:
        rows = pl.scan_parquet(table).filter(pl.col("agent_id").is_in(list(chunk.agent_ids)))
        own = (rows if columns is None else rows.select(columns)).collect()
        return SCHEMAS[name].checked(own, columns) if name in SCHEMAS else own
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise Unavailable(f"{table} can't be read ({error}); run the night again") from error


# --- what steps do with a chunk ---


def make_table(tables: Tables, chunk: Chunk, *, name: str, make: MakesTable, night: date) -> ChunkOutput:
    """Return a table on the way to proposals."""
    return ChunkOutput({name: make(tables, policy=chunk.policy, night=night)})


def find_proposals(tables: Tables, chunk: Chunk, *, find: FindsProposals, night: date) -> ChunkOutput:
    """Return what a phase found."""
    return ChunkOutput(value=find(tables, policy=chunk.policy, night=night))


def find_neighbours(tables: Tables, chunk: Chunk, *, earlier: Sequence[Kept], fresh_from: datetime) -> ChunkOutput:
    """Return the pairs of facts worth a look, and what was compared."""
    known, undone = compared_in(earlier, chunk.agent_ids), tables["undone"]
    found = neighbours_of(tables["facts"], policy=chunk.policy, undone=undone, earlier=known, fresh_from=fresh_from)
    compared = {"compared_rows": found.compared.rows, "compared_pairs": found.compared.pairs}
    return ChunkOutput({"neighbours": found.pairs, "copies": found.copies, **compared}, found.cut)


@dataclass(frozen=True)
class Judges:
    """Who decides about pairs, what of earlier nights counts, and where verdicts are kept."""

    judge: Judge
    second: Models | None
    earlier: NightFiles | None
    """A night's files whose verdicts, and those of nights before it, are taken over; None: all is judged again."""
    database: Database | OwnDatabase
    on_progress: Progress | None = None


def judge_pairs(tables: Tables, chunk: Chunk, *, judges: Judges) -> ChunkOutput:
    """Return the pairs with a verdict each, and where the verdicts came from."""
    facts = tables["facts"].select(STATEMENT_COLUMNS)
    found = with_hashes(tables["neighbours"], facts)
    undone, contradictions = follow_successors(
        tables["undone"], tables["contradictions"], facts=tables["facts"], copies=tables["copies"]
    )
    rules = person_rulings(found, undone=undone, contradictions=contradictions)
    known = None if judges.earlier is None else earlier_verdicts(judges.earlier, judges.judge, chunk.agent_ids)
    asked = pairs_to_judge(found, rules)
    with worker_database(judges.database, chunk) as database:
        verdicts, counts = verdicts_for(
            database, judges.judge, asked, facts, earlier=known, on_progress=judges.on_progress
        )
        by_second = SecondOpinionCounts()
        if judges.second is not None:
            too_long = too_long_among(asked, facts)
            verdicts, by_second = second_opinions(database, verdicts, judges.second, too_long=too_long)
    return ChunkOutput({"judgements": judged(found, rules, verdicts)}, (counts, by_second))


# --- the database of a worker ---


@dataclass(frozen=True)
class OwnDatabase:
    """The database that a worker opens itself, by what it was told or by its own settings."""

    url: str | None = field(default=None, repr=False)


@contextmanager
def worker_database(database: Database | OwnDatabase, chunk: Chunk) -> Generator[Database]:
    """Yield a database as the role of nights.

    Raises `Refused` when it is not the one that the chunk's snapshot was taken of.
    """
    if isinstance(database, Database):
        yield database
        return
    url = database.url or open_url()
    with closing(Database(url, role="nous_night", max_connections=1)) as own:
        wanted, found = chunk.snapshot.folder.parent.name, identity_of(own)
        if found != wanted:
            message = f"a worker was told another database ({found}) than the night's ({wanted})"
            raise Refused(f"{message}; set NOUS_DATABASE_URL alike for all workers, or leave it out for none")
        yield own
