"""Rows for an agent to be erased, put where no verb would put them, and a look for what is left of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import psycopg
from psycopg.sql import SQL, Identifier


def insert(owner: psycopg.Connection, agent_id: str, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Insert rows of an agent past the triggers and foreign keys."""
    owner.execute("set session_replication_role = replica")
    for name, values in rows.items():
        statement = SQL("insert into {} (agent_id, {}) values (%s, {})").format(
            Identifier(*name.split(".")),
            SQL(", ").join(map(Identifier, values)),
            SQL(", ").join(SQL("%s") for _ in values),
        )
        owner.execute(statement, [agent_id, *values.values()])
    owner.execute("set session_replication_role = default")


def dump(owner: psycopg.Connection) -> dict[str, str]:
    """Every row of every table of every schema of ours as text, and what the planner remembers of their values."""
    found = owner.execute("""
        select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('heart', 'brain', 'lifecycle', 'migration') and c.relkind in ('r', 'p', 'm')
    """).fetchall()
    texts = {
        f"{schema}.{table}": json.dumps(
            owner.execute(SQL("select to_jsonb(t) from {} t").format(Identifier(schema, table))).fetchall()
        )
        for schema, table in found
    }
    # Without the names of tables and columns: "tombstones", analysed by an earlier test, would be a mention of Tom.
    statistics = owner.execute("""
        select coalesce(jsonb_agg(to_jsonb(s) - array['schemaname', 'tablename', 'attname']), '[]')
        from pg_stats s where schemaname <> 'pg_catalog'
    """)
    return {**texts, "pg_stats": json.dumps(statistics.fetchone())}


def mentions(texts: Mapping[str, str], *words: str) -> set[tuple[str, str]]:
    return {(name, word) for name, text in texts.items() for word in words if word in text.casefold()}


def recorded(records: psycopg.Connection) -> dict[str, str]:
    """Every row of Dagster's database as text."""
    names = records.execute(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    )
    return {
        name: json.dumps(records.execute(SQL("select to_jsonb(t) from {} t").format(Identifier(name))).fetchall())
        for (name,) in names.fetchall()
    }


def written(home: Path) -> dict[str, str]:
    """Every file under the home as text, tables row by row."""
    return {
        str(path.relative_to(home)): json.dumps(pl.read_parquet(path, memory_map=False).to_dicts(), default=str)
        if path.suffix == ".parquet"
        else path.read_bytes().decode("utf-8", "replace")
        for path in home.rglob("*")
        if path.is_file()
    }
