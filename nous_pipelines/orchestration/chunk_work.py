"""The work of a step on a chunk of agents, in this process or in another: plain values and Parquet files in and out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from nous_online.core.errors import Refused, Unavailable
from nous_online.database.connection import Database, open_url
from nous_online.language.pairs.judging import Judge
from nous_online.language.writing.lexrank import index_word
from nous_online.language.writing.writer import EndedEpisode, levels_by_words
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
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.earlier_nights import KeptComparison, compared_in, earlier_verdicts
from nous_pipelines.phases.asking import STATEMENT_COLUMNS, judged, pairs_to_judge, person_rulings, with_hashes
from nous_pipelines.phases.neighbours import neighbours_of
from nous_pipelines.phases.phase import KEY, Tables
from nous_pipelines.phases.phase_table import SCHEMAS, FindsProposals, MakesTable, NightTable, Reads
from nous_pipelines.phases.rulings import follow_successors
from nous_pipelines.phases.tiers import COLUMNS, LEVELS, SUMMARIES, due_episodes, lacking
from nous_pipelines.plan.checks import isolate_failures
from nous_pipelines.plan.night_files import NightFiles, writing
from nous_pipelines.snapshots.agent_chunks import Chunk
from nous_pipelines.snapshots.snapshot import identity_of

Table = pl.DataFrame | Path
"""Rows, or for another process the file they are in."""


@dataclass(frozen=True)
class ChunkOutput:
    """The output of a step for some agents: tables, and a value that is small beside them."""

    tables: Mapping[str, Table] = field(default_factory=dict[str, Table])
    value: Any = None

    def table(self, name: str) -> pl.DataFrame:
        """Return one of the tables; raise `Unavailable` when its file can't be read."""
        table = self.tables[name]
        if isinstance(table, pl.DataFrame):
            return table
        try:
            return pl.read_parquet(table, memory_map=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            message = f"{table}, which another process wrote, can't be read ({error})"
            raise Unavailable(f"{message}; all workers need the folder of the snapshots under the same path") from error

    def write(self, scratch: Path) -> ChunkOutput:
        """Return the same with its tables in files; raise `Unavailable` when they can't be written."""
        # `.part` says that nobody reads the file once the night is over: erasing an agent deletes what a kill left.
        paths = {name: scratch.with_name(f"{scratch.name}.{name}.{uuid4().hex}.part") for name in self.tables}
        for name, path in paths.items():
            with writing(path):
                self.table(name).write_parquet(path, compression="uncompressed", statistics=False)
        return ChunkOutput(paths, self.value)

    def read(self) -> ChunkOutput:
        """Return the same with its tables in memory; raise `Unavailable` when a file can't be read."""
        return ChunkOutput({name: self.table(name) for name in self.tables}, self.value)


@dataclass(frozen=True)
class ChunkWork:
    """A function to call for some agents, and where their rows are read and written; it can be pickled."""

    step: str
    function: Callable[..., ChunkOutput]
    """A function of a module: takes the tables, the chunk and `options`."""
    chunk: Chunk
    reads: Reads
    made: Mapping[str, Table]
    """The tables that other assets of the night made."""
    options: Mapping[str, Any] = field(repr=False)
    scratch: Path | None = None
    """The beginning of the names of files for other processes; None where all work is done in this one."""
    is_elsewhere: bool = False
    """Whether a worker may outlive the night, so that it takes the lock against erasure itself."""

    def __str__(self) -> str:
        agents = self.chunk.agent_ids
        return f"{self.step} of {len(agents)} agents ({agents[0]} to {agents[-1]})"


def do_work(work: ChunkWork) -> tuple[list[ChunkOutput], dict[str, Exception]]:
    """Return the outputs for the agents of a chunk, several if it failed for an agent, and errors by failing agent."""

    def output_for(agent_ids: Sequence[str]) -> ChunkOutput:
        chunk = replace(work.chunk, agent_ids=tuple(agent_ids))
        output = work.function(tables_of_chunk(chunk, work.reads, work.made), chunk, **work.options)
        return output if work.scratch is None else output.write(work.scratch)

    with shared_copies_lock(open_url()) if work.is_elsewhere else nullcontext():
        parts, faults = isolate_failures(work.chunk.agent_ids, output_for)
    if work.scratch is not None:
        faults = {agent_id: picklable_error(fault) for agent_id, fault in faults.items()}
    return parts, faults


def tables_of_chunk(chunk: Chunk, reads: Reads, made: Mapping[str, Table]) -> Tables:
    """Return the rows of a chunk's agents, in tables of the snapshot and those that other assets made.

    Raises `Unavailable` when a file is missing or damaged.
    """
    return {
        name: rows_of_chunk(made[name], name, columns, chunk) if name in made else chunk.table(name, columns=columns)
        for name, columns in reads.items()
    }


def rows_of_chunk(table: Table, name: str, columns: Sequence[str] | None, chunk: Chunk) -> pl.DataFrame:
    """Return the rows of a chunk's agents in a table of all agents; raise `Unavailable` when it can't be read."""
    if isinstance(table, pl.DataFrame):
        return chunk.own(table)
    try:
        rows = pl.scan_parquet(table).filter(pl.col("agent_id").is_in(list(chunk.agent_ids)))
        own = (rows if columns is None else rows.select(columns)).collect()
        return SCHEMAS[name].checked(own, columns) if name in SCHEMAS else own
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise Unavailable(f"{table} can't be read ({error}); run the night again") from error


# --- the functions of steps ---


def make_table(tables: Tables, chunk: Chunk, *, name: str, make: MakesTable, night: date) -> ChunkOutput:
    """Return the table that `make` returns."""
    return ChunkOutput({name: make(tables, policy=chunk.policy, night=night)})


def find_proposals(tables: Tables, chunk: Chunk, *, find: FindsProposals, night: date) -> ChunkOutput:
    """Return the result of a phase."""
    return ChunkOutput(value=find(tables, policy=chunk.policy, night=night))


def find_neighbours(
    tables: Tables, chunk: Chunk, *, earlier: Sequence[KeptComparison], fresh: tuple[datetime, datetime]
) -> ChunkOutput:
    """Return candidate pairs of facts, exact copies, and the compared pairs; the value is the number of facts cut.

    `fresh`: facts learned from its first moment on, or stored from it on and before its second, meet their nearest.
    """
    # What is told of the past, as an imported history is, no night has read; one of the days it tells of takes it as
    # if it had been there then.
    stored = tables["statements"].group_by("agent_id", id="fact_id").agg(pl.col("recorded_at").min())
    found = neighbours_of(
        tables["facts"],
        policy=chunk.policy,
        undone=tables["undone"],
        earlier=compared_in(earlier, chunk.agent_ids),
        fresh_from=fresh[0],
        stored=stored.filter(pl.col("recorded_at").is_between(*fresh, closed="left")),
    )
    compared = {"compared_rows": found.compared.rows, "compared_pairs": found.compared.pairs}
    return ChunkOutput({"neighbours": found.pairs, "copies": found.copies, **compared}, found.cut)


@dataclass(frozen=True)
class Judges:
    """The judges of pairs, the earlier verdicts they take over, and the database that stores verdicts."""

    judge: Judge
    second: Models | None
    earlier: NightFiles | None
    """Files of a night; verdicts are taken over from it and nights before it. None to judge all pairs again."""
    database: Database | WorkerDatabase
    on_progress: Progress | None = None


def judge_pairs(tables: Tables, chunk: Chunk, *, judges: Judges) -> ChunkOutput:
    """Return the pairs with a verdict each (`JUDGED`); the value counts where the verdicts came from."""
    facts = tables["facts"].select(STATEMENT_COLUMNS)
    pairs = with_hashes(tables["neighbours"], facts)
    undone, contradictions = follow_successors(
        tables["undone"], tables["contradictions"], facts=tables["facts"], copies=tables["copies"]
    )
    rules = person_rulings(pairs, undone=undone, contradictions=contradictions)
    known = None if judges.earlier is None else earlier_verdicts(judges.earlier, judges.judge, chunk.agent_ids)
    asked = pairs_to_judge(pairs, rules)
    with worker_database(judges.database, chunk) as database:
        verdicts, counts = verdicts_for(
            database, judges.judge, asked, facts, earlier=known, on_progress=judges.on_progress
        )
        by_second = SecondOpinionCounts()
        if judges.second is not None:
            too_long = too_long_among(asked, facts)
            verdicts, by_second = second_opinions(database, verdicts, judges.second, too_long=too_long)
    return ChunkOutput({"judgements": judged(pairs, rules, verdicts)}, (counts, by_second))


# Not in `phases`, whose contract excludes clients of databases and models: the writer imports httpx with its embedder.
# Not beside the assets either: another process that makes this table would load Dagster for it.
def episode_summaries(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return shorter texts (`SUMMARIES`) for the episodes of `due_episodes` that change their tier and lack one.

    `tables`: episodes, uses, undone. The texts are extracted from the detail, or else from the summary, without a
    model: they are the same wherever the night runs. A text that an episode has already is kept.
    """
    due = due_episodes(tables, policy=policy, night=night)
    rows = lacking(due).select(*KEY, *LEVELS, "detail", "participants").to_dicts()
    return pl.DataFrame([{**{key: row[key] for key in KEY}, **texts_of_levels(row)} for row in rows], schema=SUMMARIES)


def texts_of_levels(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the texts of one episode by level, None for those that can't be made from what is left of it."""
    text: str = row["detail"] or row["summary"] or row["compressed"] or ""
    if not text.strip():
        return {"index_word": index_word(row["title"]) if row["title"] else None}
    levels = levels_by_words(EndedEpisode(text, title=row["title"], participants=row["participants"] or ()))
    return {name: row[name] or getattr(levels, name) or None for name in LEVELS}


EPISODE_SUMMARIES = NightTable(
    SUMMARIES,
    "Title, summary, line and index word for episodes that are due for a tier and lack what it keeps.",
    {"episodes": COLUMNS, "uses": None, "undone": None},
    episode_summaries,
    {"written": pl.len(), "titles": pl.col("title").count()},
)


# --- the database of a worker ---


@dataclass(frozen=True)
class WorkerDatabase:
    """A database for a worker to open: at `url`, or by its own settings if that is None."""

    url: str | None = field(default=None, repr=False)


@contextmanager
def worker_database(database: Database | WorkerDatabase, chunk: Chunk) -> Generator[Database]:
    """Yield a database as the role of nights, opened for the block unless it is open.

    Raises `Refused` when it is not the one that the chunk's snapshot was taken of.
    """
    if isinstance(database, Database):
        yield database
        return
    url = database.url or open_url()
    with closing(Database(url, role="nous_night", max_connections=1)) as own:
        expected, found = chunk.snapshot.folder.parent.name, identity_of(own)
        if found != expected:
            message = f"a worker opened database {found}, but the night is of database {expected}"
            raise Refused(f"{message}; set NOUS_DATABASE_URL to the same value for all workers, or for none of them")
        yield own
