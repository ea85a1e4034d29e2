"""Who injects a statement into a call of an agent stays that agent: the user it logs in as can become nothing else."""

from __future__ import annotations

import logging
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from nous_online.database import postgres
from nous_online.database.connection import Database, as_login
from nous_online.heart import Heart

STATEMENTS = {
    "read all agents": "select count(*) from heart.facts",
    "act as the night": "set role nous_night",
    "act as the purge": "set role nous_purge",
    "act as the owner": "set role nous",
    "run a program": "copy (select 1) to program 'true'",
    "read a file": "select pg_read_file('postgresql.conf')",
    "make a superuser": "create role thief superuser",
    "read a password": "select rolpassword from pg_authid",
    "switch isolation off": "alter table heart.facts disable row level security",
    "end another's call": "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'nous'",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_no_statement_of_a_call_gets_beyond_its_agent(heart: Heart, database: Database, statement: str) -> None:
    heart.learn("Tea helps")
    with psycopg.connect(postgres.login_url(database.url, postgres.LOGIN)) as connection:
        connection.execute("set role none; select set_config('nous.agent_id', 'boris', true)")

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)  # type: ignore[arg-type]


def test_calls_of_agents_log_in_as_somebody_who_may_be_an_agent_and_nothing_else(database: Database) -> None:
    with database.transaction("aria") as connection:
        who = connection.execute("select session_user, current_user").fetchone()
        may = connection.execute(
            "select rolsuper, rolinherit, rolcreaterole, rolbypassrls, pg_has_role(rolname, 'nous_night', 'member'), "
            "pg_has_role(rolname, 'nous_purge', 'member') from pg_roles where rolname = session_user"
        ).fetchone()

    assert who == ("nous_login", "nous_app")
    assert may == (False,) * 6


def test_a_prepared_memory_is_opened_and_used_without_the_password_of_the_owner(
    heart: Heart, server: postgres.Server, caplog: pytest.LogCaptureFixture
) -> None:
    passwords = server.home / "server.pgpass"
    both = passwords.read_text()
    passwords.write_text(both.splitlines()[1])
    try:
        with caplog.at_level(logging.WARNING, "nous_online"):
            again = Database(heart.agent.database.url)
            opened = Heart.open("aria", database=again, embedder=heart.agent.embedder, judge=heart.agent.judge)
            stored = opened.learn("Tea helps").action
            opened.close()
            again.close()
    finally:
        passwords.write_text(both)

    assert (stored, caplog.messages) == ("stored", [])


def test_a_server_of_your_own_whose_user_may_more_is_warned_of(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    passwords = Path(str(conninfo_to_dict(database_url)["passfile"])).read_text()
    plain = database_url.replace("//nous@", f"//nous:{passwords.splitlines()[0].rpartition(':')[2]}@")

    with caplog.at_level(logging.WARNING, "nous_online"):
        Database(plain).close()

    assert [message for message in caplog.messages if "calls log in as nous, a superuser" in message]


def test_a_login_of_your_own_that_is_nothing_but_an_agent_opens_a_prepared_database_in_silence(
    database_url: str, owner: psycopg.Connection, caplog: pytest.LogCaptureFixture, heart: Heart
) -> None:
    owner.execute("create role my_agents login noinherit password 'sesame'; grant nous_app to my_agents")
    url = database_url.replace("//nous@", "//my_agents:sesame@")
    try:
        with caplog.at_level(logging.WARNING, "nous_online"):
            database = Database(url)
            opened = Heart.open("aria", database=database, embedder=heart.agent.embedder, judge=heart.agent.judge)
            stored = opened.learn("Tea helps").action
            opened.close()
            database.close()
        with as_login(url) as connection:
            who = connection.execute("select session_user").fetchone()
    finally:
        owner.execute("drop role my_agents")

    assert (stored, who, caplog.messages) == ("stored", ("my_agents",), [])


def test_a_server_that_an_earlier_version_made_gets_the_login_when_it_is_opened(
    server: postgres.Server, database_url: str, owner: psycopg.Connection
) -> None:
    owner.execute("revoke nous_app from nous_login; revoke select on migration.applied from public")

    database = Database(database_url)
    with database.transaction("aria") as connection:
        who = connection.execute("select session_user").fetchone()
    database.close()

    assert who == ("nous_login",)
