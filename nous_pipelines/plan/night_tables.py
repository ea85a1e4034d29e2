"""Runs SQL over the Parquet of all nights, in a DuckDB that can open only the rows it may read."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from functools import cache, reduce
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, TypeVar

import duckdb
import polars as pl

from nous_online.core.errors import InvalidInput, NotFound, NousError, Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_pipelines.nights import FIRST_NIGHT
from nous_pipelines.phases.merging import CLUSTERS, JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND
from nous_pipelines.phases.tiers import SUMMARIES
from nous_pipelines.phases.usage import RANKS
from nous_pipelines.snapshots.copy_binary import read_parts, write_parquet_as_read
from nous_pipelines.snapshots.parts import FACT_ROWS, PART_PREFIX
from nous_pipelines.snapshots.snapshot import NIGHT_PREFIX, night_of_folder, open_snapshot, parts_of, to_stored_types
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema

# --- queries and the tables they may read ---


@dataclass(frozen=True)
class QueriedTable:
    """A table of the nights: its file in a night's folder, the meaning of a row and of each column."""

    file: str | None
    """None for a table read from the database."""
    meaning: str
    columns: Mapping[str, str]

    def meaning_of(self, column: str) -> str:
        """Return the meaning of a column, empty for an unknown one."""
        return self.columns.get(column, "the night the row is of" if column == "night" else "")


def of_schema(schema: TableSchema, file: str) -> QueriedTable:
    """Return a table as its schema describes it."""
    return QueriedTable(file, schema.meaning, schema.meanings)


TABLES: Mapping[str, QueriedTable] = {
    **{name: of_schema(schema, f"{name}.parquet") for name, schema in SNAPSHOT_TABLES.items()},
    "pairs": of_schema(FOUND, "run/neighbours.parquet"),
    "judgements": of_schema(JUDGED, "run/judgements.parquet"),
    "copies": of_schema(COPY, "run/copies.parquet"),
    "clusters": of_schema(CLUSTERS, "run/duplicate_clusters.parquet"),
    "usage_ranks": of_schema(RANKS, "run/usage_ranks.parquet"),
    "episode_summaries": of_schema(SUMMARIES, "run/episode_summaries.parquet"),
    "proposals": QueriedTable(
        None,
        "What nights proposed, and what became of it by now.",
        {
            "id": "which one it is",
            "agent_id": "whose memories it is about",
            "targets": "the memories it is about (list of ids)",
            "reason": "why",
            "kind": "merge, supersede, contradiction, archive, share, tier, promote, demote, link, censor or procedure",
            "state": "proposed, applied, stale, refused or undone",
            "outcome": "why it went stale, was refused or was undone",
            "evidence": "what it rests on (JSON)",
            "changes": "what it changes (JSON)",
            "cost_usd": "what deciding it cost, in US dollars",
            "decided_at": "when it was applied, found stale, refused or undone",
            "plan_hash": "the plan it is of",
        },
    ),
}
"""Every table that a query may read, by name."""
BLOCKS = statements("nous_pipelines.snapshots", "night_tables.sql")
NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Nodes of DuckDB's syntax tree that only read; the others insert, update or delete."""
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "repeat", "json_each", "json_tree"})
"""Functions in a FROM that make rows from their arguments; others read files, settings or other queries."""
POSITIONAL = frozenset({"PIVOT", "POSITIONAL_REFERENCE"})
"""Nodes that use columns which the query does not name."""


@dataclass(frozen=True)
class NightQuery:
    """One SELECT with the tables of the nights that it reads, and all words in it."""

    sql: str
    tables: frozenset[str]
    words: frozenset[str]
    starred: frozenset[str]
    """The tables of which it may read columns without naming them."""

    def columns_of(self, table: str, known: Sequence[str]) -> list[str]:
        """Return the columns of a table that the query may read: all, or the night and those it names."""
        if table in self.starred:
            return list(known)
        return [name for name in known if name == "night" or name.lower() in self.words]


@cache
def parser() -> duckdb.DuckDBPyConnection:
    """Return an engine that parses and runs nothing, made once a process, as that takes longer than any statement.

    It has no threads of its own: a fork would not take them along.
    """
    return duckdb.connect(config={"threads": 1})


def parsed_query(sql: str) -> NightQuery:
    """Read one SELECT; raise `InvalidInput` for anything else, and for a table or a table function it may not read."""
    with parser().cursor() as own:
        try:
            found = own.extract_statements(sql)
        except duckdb.Error as error:
            raise InvalidInput(message_of(error)) from error
        if [statement.type for statement in found] != [duckdb.StatementType.SELECT]:
            kinds = ", ".join(statement.type.name for statement in found) or "nothing"
            raise InvalidInput(
                f"expected one statement that reads (SELECT, FROM, WITH, VALUES, DESCRIBE, SUMMARIZE), got {kinds}; "
                "export with --csv or --json, and write a pivot as FROM … PIVOT (…)"
            )
        statement = found[0].query
        row = own.execute(BLOCKS["parse"], [statement]).fetchone()
    tree = json.loads(row[0]) if row else {"error": True, "error_message": "not parsed"}
    if tree["error"]:
        raise InvalidInput(f"the statement can't be read ({tree['error_message']}); write it as a SELECT")
    parts = list(walk(tree))
    tables = read_tables(parts)
    # Without a semicolon: the statement is put into others, as a subquery.
    return NightQuery(statement.strip().rstrip(";"), tables, words_in(parts), starred_in(parts, tables))


def read_tables(parts: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the tables of the nights that a query reads; raise `InvalidInput` for any other source of rows."""
    ctes = [entry["key"].lower() for part in parts for entry in part.get("cte_map", {}).get("map", ())]
    # DuckDB reads a name like 'x.parquet' as a file, and a CTE of that name hides it only within its own scope.
    named = {name for name in ctes if not {".", "/", "\\"} & {*name}}
    tables: set[str] = set()
    for part in parts:
        kind = part.get("type")
        path = part.get("qualified_name", {}).get("path", [])
        if kind == "BASE_TABLE":
            name = path[-1].lower()
            if path[:-1] not in ([], ["main"]) or name not in {*TABLES, *named}:
                raise InvalidInput(
                    f"there is no table {'.'.join(path)!r}{nearest(name, TABLES)}: `nous query` lists all"
                )
            tables |= {name} & {*TABLES}
        elif kind == "TABLE_FUNCTION":
            name = part["function"]["qualified_name"]["path"][-1].lower()
            if name not in TABLE_FUNCTIONS:
                allowed = ", ".join(sorted(TABLE_FUNCTIONS))
                raise InvalidInput(f"{name}() can't be read from: write a table `nous query` lists, or {allowed}")
        elif (kind == "SHOW_REF" and path) or (str(kind).endswith("_NODE") and kind not in NODES):
            raise InvalidInput("a query reads and changes nothing; `nous query` without SQL lists tables and columns")
    return frozenset(tables)


def starred_in(parts: Sequence[dict[str, Any]], tables: frozenset[str]) -> frozenset[str]:
    """Return the tables whose columns a query may read without naming them: by a star, a whole row or a position.

    Where that can't be limited to single tables, all of them are returned.
    """
    aliases = tables | {part["alias"].lower() for part in parts if part.get("type") == "BASE_TABLE"}
    for part in parts:
        is_row = part.get("class") == "COLUMN_REF" and len(part["column_names"]) == 1
        if (
            part.get("type") in POSITIONAL
            or part.get("ref_type") in {"NATURAL", "POSITIONAL"}
            or part.get("column_name_alias")
            or (is_row and part["column_names"][0].lower() in aliases)
        ):
            return tables
    starred: set[str] = set()
    for part in parts:
        if part.get("type") == "SELECT_NODE":
            beside = {name: value for name, value in part.items() if name not in {"from_table", "cte_map"}}
            if any(each.get("class") == "STAR" for each in walk(beside)):
                starred |= {name.lower() for name in joined_tables(part["from_table"])}
    return frozenset(starred) & tables


def joined_tables(source: dict[str, Any]) -> Iterator[str]:
    """Yield the tables of a FROM, without those of subqueries."""
    if source.get("type") == "BASE_TABLE":
        yield source["qualified_name"]["path"][-1]
    for side in ("left", "right", "source"):
        if isinstance(source.get(side), dict):
            yield from joined_tables(source[side])


def words_in(parts: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return every string in a parsed statement in lower case, a superset of the column names it uses."""
    found: set[str] = set()
    for part in parts:
        for value in part.values():
            texts: list[Any] = value if isinstance(value, list) else [value]
            found |= {text.lower() for text in texts if isinstance(text, str)}
    return frozenset(found)


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a JSON value, outer ones first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from walk(each)


def nearest(name: str, known: Collection[str]) -> str:
    """Return a hint with the nearest known name, empty if none is near."""
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def message_of(error: duckdb.Error) -> str:
    """Return DuckDB's message without the quoted statement and its advice on settings, which are locked."""
    return str(error).partition("\n\nLINE ")[0].partition("\n\nPossible solutions")[0].strip()


# --- running a query ---

Thing = TypeVar("Thing")

WORK = f".{NIGHT_PREFIX}query-"
"""The prefix of a query's temporary folder, by which erasing and the job `retention` find those of killed processes."""
ROWS_AT_ONCE = 2048
READ_TIMEOUT_S = 600.0
POLL_S = 0.1
SIZE = re.compile(r"\d{1,9}(\.\d{1,3})? ?[KMGT]i?B", re.IGNORECASE)


@dataclass(frozen=True)
class StoredNights:
    """The complete nights of one database under `root`, earliest first, and why others were left out."""

    root: Path
    nights: tuple[date, ...]
    left_out: Mapping[date, str] = field(default_factory=dict[date, str])
    first: date = FIRST_NIGHT
    last: date = date.max
    """The range of nights asked for, which also limits the rows read from the database."""

    def has(self, table: str) -> bool:
        """Return whether any night has a file of a table."""
        return bool(self.files(table) or self.parts(table))

    def files(self, table: str) -> list[str]:
        """Return the files of a table in the folders of nights."""
        name = TABLES[table].file or ""
        return [str(path) for night in self.nights if (path := self.folder(night) / name).is_file()]

    def parts(self, table: str) -> list[str]:
        """Return the files of a table in parts of snapshots."""
        if TABLES[table].file != f"{table}.parquet":
            return []
        found = {part.folder for night in self.nights for part in parts_of(self.folder(night))}
        found -= {self.folder(night) for night in self.nights}
        return sorted(str(path) for folder in found if (path := folder / f"{table}.parquet").is_file())

    def fact_row_files(self) -> list[str]:
        """Return the files that say in which part each fact lies, of the parts that have one."""
        found = {part.folder for night in self.nights for part in parts_of(self.folder(night)) if part.others}
        return sorted(str(folder / f"{FACT_ROWS}.parquet") for folder in found)

    def placement_files(self) -> list[str]:
        """Return the files with the part of each agent's rows, one a night."""
        return [str(path) for night in self.nights if (path := self.folder(night) / "placed.parquet").is_file()]

    def folder(self, night: date) -> Path:
        """Return the folder of a night."""
        return self.root / f"{NIGHT_PREFIX}{night}"


@dataclass(frozen=True)
class QueryScope:
    """What a query may use: the rows of one agent or, for None, of all, and the memory before it spills to disk."""

    agent_id: str | None
    memory: str = "1GB"
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not SIZE.fullmatch(self.memory):
            raise InvalidInput(f"not a size of memory: {self.memory!r} (want a number and a unit, such as 512MB)")


@dataclass(frozen=True)
class Answer:
    """The columns of a query's result and its rows, fetched lazily."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    engine: duckdb.DuckDBPyConnection
    query: NightQuery
    parameters: Mapping[str, Any]

    def count(self) -> int:
        """Return the total number of rows; this runs the query again, so rows not fetched yet are lost."""
        counting = BLOCKS["count"].format(query=self.query.sql)
        row = run_interruptible(self.engine, lambda: self.engine.execute(counting, dict(self.parameters)).fetchone())
        return int(row[0]) if row else 0


def stored_nights(
    root: Path, tables: Collection[str], *, first: date = FIRST_NIGHT, last: date = date.max
) -> StoredNights:
    """Return the nights from `first` to `last` under `root` of which the files of these tables can be read."""
    whole: list[date] = []
    left_out: dict[date, str] = {}
    for folder in sorted(root.glob(f"{NIGHT_PREFIX}*")):
        night = night_of_folder(folder)
        if night is not None and first <= night <= last:
            why = damage(folder, tables)
            whole, left_out = ([*whole, night], left_out) if why is None else (whole, {**left_out, night: why})
    return StoredNights(root, tuple(whole), left_out, first, last)


def damage(folder: Path, tables: Collection[str]) -> str | None:
    """Return why the files of a night can't be read, None if they can."""
    path = folder
    try:
        taken = open_snapshot(folder)
        if taken is None:
            return "its snapshot was never finished"
        parts = parts_of(folder)
        for name in tables:
            path = folder / (TABLES[name].file or "snapshot.json")
            if path.suffix == ".parquet" and path.is_file():
                row_count(path)
            for part in parts:
                path = part.folder / f"{name}.parquet"
                if name in part.counts and (rows := row_count(path)) != part.counts[name]:
                    return f"{path.name} has {rows} rows, not {part.counts[name]}"
    except NousError as error:
        return str(error)
    except (OSError, pl.exceptions.PolarsError) as error:
        return f"{path.name} can't be read ({str(error).splitlines()[0]})"
    return None


def row_count(path: Path) -> int:
    """Return the number of rows of a file from its footer; raises for a damaged file."""
    return pl.scan_parquet(path).select(pl.len()).collect().item()


@contextmanager
def run_query(query: NightQuery, nights: StoredNights, database: Database, scope: QueryScope) -> Generator[Answer]:
    """Run a query and yield its result.

    For one agent, its rows of the columns named are copied first, and the engine that runs the query may open no other
    file, so no query can see the rows of another agent. For all agents the engine reads the files of the nights. It
    uses `scope.memory`, then spills to a folder that is removed with the block. Raises `InvalidInput` for a query that
    fails, `NotFound` if no night has its tables, `Unavailable` for files that can't be read or written.
    """
    missing = sorted(name for name in query.tables if TABLES[name].file and not nights.has(name))
    if missing:
        raise NotFound(f"no night here has the table {missing[0]!r}; `nous query` lists nights and tables")
    with working_folder(nights.root) as folder, duckdb_errors(scope):
        if "proposals" in query.tables:
            write_proposals(database, nights, scope.agent_id, folder)

        def fill_empty(engine: duckdb.DuckDBPyConnection) -> None:
            for name in query.tables:
                rows_of(engine, name, nights, folder).limit(0).create(name)

        # A view that filters by agent is not enough: read_parquet() beside it, or an error about another agent's row,
        # would show what it hides.
        def fill(engine: duckdb.DuckDBPyConnection) -> None:
            for name in query.tables:
                rows = rows_of(engine, name, nights, folder)
                if scope.agent_id is None:
                    rows.create_view(name)
                else:
                    is_own = duckdb.ColumnExpression("agent_id") == duckdb.ConstantExpression(scope.agent_id)
                    columns = query.columns_of(name, rows.columns)
                    rows.filter(is_own).select(*map(duckdb.ColumnExpression, columns)).create(name)

        # Planned over empty tables first: a mistake in the query is reported before anything is copied.
        with locked_engine(folder, scope, fill_empty) as engine:
            engine.execute(BLOCKS["plan"].format(query=query.sql), dict(scope.parameters))
        with locked_engine(folder, scope, fill, readable=[nights.root] if scope.agent_id is None else []) as engine:
            run_interruptible(engine, lambda: engine.execute(query.sql, dict(scope.parameters)))
            columns = tuple(column[0] for column in engine.description or [])
            # Most queries that fail do so at their first rows: fetched now, nothing of the answer is printed before.
            first = run_interruptible(engine, lambda: engine.fetchmany(ROWS_AT_ONCE))
            yield Answer(columns, chain(first, rows_read(engine)), engine, query, scope.parameters)


@contextmanager
def locked_engine(
    folder: Path,
    scope: QueryScope,
    fill: Callable[[duckdb.DuckDBPyConnection], None],
    *,
    readable: Collection[Path] = (),
) -> Generator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB that was filled and then locked: it can open only its own file and those in `readable`."""
    path = Path(mkdtemp(dir=folder)) / "rows.duckdb"
    with closing(duckdb.connect(path)) as engine:
        engine.execute(BLOCKS["limit"].format(memory=quoted(scope.memory), spill=quoted(f"{folder}/spilled")))
        run_interruptible(engine, lambda: fill(engine))
        engine.execute(BLOCKS["lock"].format(readable=f"[{', '.join(quoted(f'{each}/') for each in readable)}]"))
        yield engine


def rows_of(
    engine: duckdb.DuckDBPyConnection, name: str, nights: StoredNights, folder: Path
) -> duckdb.DuckDBPyRelation:
    """Return the rows of a table in all nights, with the columns of all of them, the night first."""
    if TABLES[name].file is None:
        return engine.read_parquet(str(folder / f"{name}.parquet"))
    found = list[duckdb.DuckDBPyRelation]()
    if files := nights.files(name):
        found.append(engine.read_parquet(files, union_by_name=True, hive_partitioning=True))
    if parts := nights.parts(name):
        rows = engine.read_parquet(parts, union_by_name=True, hive_partitioning=True)
        placed = engine.read_parquet(nights.placement_files(), union_by_name=True, hive_partitioning=True)
        placed = placed.select(*map(duckdb.ColumnExpression, ("night", "agent_id", "part")))
        if name == "facts" and (spread := nights.fact_row_files()):
            lies = engine.read_parquet(spread, hive_partitioning=True).join(placed, "agent_id, part")
            part = duckdb.CoalesceOperator(duckdb.ColumnExpression("lies_in"), duckdb.ColumnExpression("part"))
            lies = lies.select(*map(duckdb.ColumnExpression, ("night", "agent_id", "id")), part.alias("part"))
            found.append(rows.join(lies, "agent_id, id, part"))
            names = (Path(path).parent.name.removeprefix(PART_PREFIX) for path in spread)
            placed = placed.filter(duckdb.ColumnExpression("part").isnotin(*map(duckdb.ConstantExpression, names)))
        found.append(rows.join(placed, "agent_id, part"))
    columns = dict.fromkeys(["night", *(column for each in found for column in each.columns if column != "part")])
    first, *others = (each.select(*(column_of(each, column) for column in columns)) for each in found)
    return reduce(duckdb.DuckDBPyRelation.union, others, first)


def column_of(rows: duckdb.DuckDBPyRelation, name: str) -> duckdb.Expression:
    """Return a column by name, null where the rows have none of that name."""
    return duckdb.ColumnExpression(name) if name in rows.columns else duckdb.ConstantExpression(None).alias(name)


def rows_read(engine: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the last statement, `ROWS_AT_ONCE` at a time."""
    while rows := run_interruptible(engine, lambda: engine.fetchmany(ROWS_AT_ONCE)):
        yield from rows


def run_interruptible(engine: duckdb.DuckDBPyConnection, work: Callable[[], Thing]) -> Thing:
    """Return the result of `work`, run in another thread, so that Ctrl-C here interrupts the engine at once."""
    ended, found, failed = threading.Event(), list[Thing](), list[BaseException]()

    def attempt() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=attempt, name="query", daemon=True)
    try:
        thread.start()
        # With a time limit: once Polars has read a file, no signal ends a wait without one.
        while not ended.wait(POLL_S):
            pass
    except BaseException:
        engine.interrupt()
        # Again and again: between two statements an interrupt has no effect. A thread without an ident never started.
        while not ended.wait(POLL_S) and thread.ident is not None:
            engine.interrupt()
        raise
    for error in failed:
        raise error
    return found[0]


def write_proposals(database: Database, nights: StoredNights, agent_id: str | None, folder: Path) -> None:
    """Write the proposals of the nights in range, with their present states, from the database into a folder."""
    bounds = {"first": nights.first, "last": nights.last, "agent_id": agent_id}
    with (
        database.transaction(timeout_s=READ_TIMEOUT_S) as connection,
        closing(read_parts(connection, BLOCKS["proposals"], bounds)) as parts,
    ):
        first = to_stored_types(next(parts))
        write_parquet_as_read(chain([first], map(to_stored_types, parts)), first.schema, folder / "proposals.parquet")


def stored_columns(nights: StoredNights, database: Database) -> dict[str, dict[str, str]]:
    """Return the columns of each available table, with their SQL types."""
    none = replace(nights, nights=(), first=date.max, last=date.max)
    with working_folder(nights.root) as folder, duckdb_errors(QueryScope(None)), closing(duckdb.connect()) as engine:
        write_proposals(database, none, None, folder)
        found = {
            name: rows_of(engine, name, nights, folder)
            for name in TABLES
            if TABLES[name].file is None or nights.has(name)
        }
        return {
            name: {column: str(kind).lower() for column, kind in zip(rows.columns, rows.types, strict=True)}
            for name, rows in found.items()
        }


@contextmanager
def working_folder(root: Path) -> Generator[Path]:
    """Yield a temporary folder for a query's files, removed when the block ends."""
    try:
        folder = Path(mkdtemp(prefix=WORK, dir=root))
    except OSError as error:
        raise Unavailable(f"{root} can't be written to ({error}); is there space left, and may this user?") from error
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


@contextmanager
def duckdb_errors(scope: QueryScope) -> Generator[None]:
    """Turn errors of DuckDB in the block into `InvalidInput` or `Unavailable`."""
    try:
        yield
    except duckdb.PermissionException as error:
        message = "a query reads the tables that `nous query` lists, and no file, setting or extension"
        raise InvalidInput(f"{message} ({message_of(error)})") from error
    except duckdb.OutOfMemoryException as error:
        message = f"the query needs more than --memory {scope.memory}; give it more, or ask for fewer rows or nights"
        raise InvalidInput(f"{message} ({message_of(error)})") from error
    except (duckdb.IOException, duckdb.InternalException, duckdb.FatalException) as error:
        message = "a file of the nights or of the query can't be read or written"
        raise Unavailable(f"{message} ({message_of(error)}); is there space left? Else ask again") from error
    except duckdb.Error as error:
        raise InvalidInput(message_of(error)) from error


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
