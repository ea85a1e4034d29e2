"""What each role may do with each table: no more than its verbs do, and as the page about it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL

from nous_online.core.domain import KINDS, Kind
from nous_online.core.errors import Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart

ROLES = ("nous_app", "nous_night", "nous_purge")
VERBS = ("select", "insert", "update", "delete", "truncate", "references", "trigger")
ROLES_PAGE = Path(__file__).parents[3] / "docs" / "roles.md"


def stated_rights(owner: psycopg.Connection) -> list[str]:
    """The tables of the page, from the catalogue: what each role may do, and which columns `update *` reaches."""
    tables = owner.execute("""
        select n.nspname || '.' || c.relname, array_agg(a.attname::text order by a.attnum)
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind in ('r', 'p', 'v') group by 1 order by 1
    """).fetchall()
    whole = ["| table | `nous_app` | `nous_night` | `nous_purge` |", "|---|---|---|---|"]
    whole += [f"| `{table}` | {' | '.join(rights(owner, role, table) for role in ROLES)} |" for table, _ in tables]
    limited = {(table, role): limits(owner, role, table, columns) for table, columns in tables for role in ROLES}
    reach = ["| table | `update *` by | reaches |", "|---|---|---|"]
    for table, _ in tables:
        for columns in sorted({limited[table, role] for role in ROLES} - {()}):
            roles = ", ".join(f"`{role}`" for role in ROLES if limited[table, role] == columns)
            reach.append(f"| `{table}` | {roles} | {', '.join(columns)} |")
    return ["\n".join(whole), "\n".join(reach)]


def rights(owner: psycopg.Connection, role: str, table: str) -> str:
    """What one role may do with one table, `none` for nothing; with a star where it may update some columns only."""
    held = owner.execute(
        """select v, has_table_privilege(%(role)s, %(table)s, v) from unnest(%(verbs)s::text[]) v
           where has_table_privilege(%(role)s, %(table)s, v)
              or (v = 'update' and has_any_column_privilege(%(role)s, %(table)s, v))""",
        {"role": role, "table": table, "verbs": list(VERBS)},
    ).fetchall()
    return ", ".join(verb if is_whole else f"{verb} *" for verb, is_whole in held) or "none"


def limits(owner: psycopg.Connection, role: str, table: str, columns: list[str]) -> tuple[str, ...]:
    """The columns one role may update where it may not update all of them."""
    found = owner.execute(
        """select c from unnest(%(columns)s::text[]) with ordinality u(c, place)
           where has_column_privilege(%(role)s, %(table)s, c, 'update') order by place""",
        {"role": role, "table": table, "columns": columns},
    ).fetchall()
    return tuple(row[0] for row in found) if len(found) < len(columns) else ()


def test_the_page_about_roles_says_what_the_database_says(owner: psycopg.Connection) -> None:
    stated = re.findall(r"^\| table .*?(?=\n\n|\n\Z)", ROLES_PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)

    assert stated == stated_rights(owner)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_agent_may_change_what_a_change_may_touch_and_nothing_that_was_said(
    owner: psycopg.Connection, kind: Kind[Any]
) -> None:
    granted = owner.execute(
        """select array_agg(attname::text) from pg_attribute where attrelid = %s::regclass and attnum > 0
           and has_column_privilege('nous_app', attrelid, attnum, 'update')""",
        [f"heart.{kind.table}"],
    ).fetchone()

    assert granted is not None
    assert set(granted[0]) >= kind.changeable
    assert not {"id", "agent_id", "content", "source_kind", "learned_at", "started_at", "created_at"} & set(granted[0])


@pytest.mark.parametrize(
    "statement",
    [
        "update heart.facts set content = 'rewritten'",
        "update heart.recalls set query = 'another question'",
        "update heart.outbox set payload = '{}'",
        "update heart.requests set memory_id = heart.new_id()",
        "update heart.agents set embedding_space_id = 'other'",
        "update brain.decisions set title = 'another'",
        "insert into heart.embedding_spaces values ('other', 'other', '', 8)",
        "update heart.judgements set verdict = 'same'",
        "delete from heart.judgements",
        "delete from heart.outbox",
        "delete from heart.completions",
        "delete from heart.recalls",
        "delete from heart.agents",
        "delete from lifecycle.proposals",
        "truncate heart.postings",
        "create table heart.mine (agent_id text)",
        "alter table heart.facts disable row level security",
        "drop policy one_agent on heart.facts",
    ],
)
def test_an_agent_can_do_what_its_verbs_do_and_no_more(heart: Heart, database: Database, statement: str) -> None:
    heart.learn("The api is deployed on Fridays")

    with pytest.raises(Refused, match="may not do this"), database.transaction("aria") as connection:
        connection.execute(SQL(statement))
