"""Parses a query over the nights with DuckDB's own parser, and limits it to the tables it may read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import duckdb

from nous_online.core.errors import InvalidInput
from nous_online.database.statements import statements
from nous_pipelines.phases.merging import CLUSTERS
from nous_pipelines.phases.neighbours import COPY, FOUND
from nous_pipelines.phases.tiers import SUMMARIES
from nous_pipelines.phases.usage import RANKS
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema


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


JUDGED = {
    **FOUND.meanings,
    "verdict": "same, updates, contradicts, compatible or unsure",
    "confidence": "how sure the judge is, 0 to 1",
    "slot": "which attribute both give a value for, where that could be read off",
    "reason": "why",
    "model": "who judged",
    "pair_hash": "the hash of the two texts, by which a verdict is known again",
}
TABLES: Mapping[str, QueriedTable] = {
    **{name: of_schema(schema, f"{name}.parquet") for name, schema in SNAPSHOT_TABLES.items()},
    "pairs": of_schema(FOUND, "run/neighbours.parquet"),
    "judgements": QueriedTable("run/judgements.parquet", "Those pairs, each with its verdict.", JUDGED),
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


def parsed_query(sql: str) -> NightQuery:
    """Read one SELECT; raise `InvalidInput` for anything else, and for a table or a table function it may not read."""
    with duckdb.connect() as parser:
        try:
            found = parser.extract_statements(sql)
        except duckdb.Error as error:
            raise InvalidInput(message_of(error)) from error
        if [statement.type for statement in found] != [duckdb.StatementType.SELECT]:
            kinds = ", ".join(statement.type.name for statement in found) or "nothing"
            raise InvalidInput(
                f"expected one statement that reads (SELECT, FROM, WITH, VALUES, DESCRIBE, SUMMARIZE), got {kinds}; "
                "export with --csv or --json, and write a pivot as FROM … PIVOT (…)"
            )
        statement = found[0].query
        row = parser.execute(BLOCKS["parse"], [statement]).fetchone()
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
