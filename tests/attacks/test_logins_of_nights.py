"""Who injects a statement into a night, into what an operator asks for or into Dagster's records gets no further."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import Result
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder
from night_commands import BACKUPS, HERE, NINE
from night_runs import NIGHT, remember
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database, operator_database
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.queue.worker import open_staff
from nous_pipelines.orchestration.instance import dagster_url

OF_THE_SERVER = (
    "set role nous",
    "set session authorization nous",
    "copy (select 1) to program 'true'",
    "select pg_read_file('postgresql.conf')",
    "create role thief superuser",
    "select rolpassword from pg_authid",
    "alter system set jit = on",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'nous'",
    "select * from heart.facts",
    "alter table heart.facts disable row level security",
    "create table heart.mine ()",
)
"""What a user who logs in may do nowhere, whatever it may become."""
BEYOND = {
    postgres.NIGHT_LOGIN: ("set role nous_app", "set role nous_purge", "set role nous_dagster_login"),
    postgres.OPERATOR_LOGIN: ("set role nous_dagster_login",),
    postgres.DAGSTER_LOGIN: ("set role nous_app", "set role nous_night", "set role nous_purge"),
}
RECORDING = """
create table public.logins (login text, backend int);
create function public.record_login() returns event_trigger language plpgsql security definer as $$
begin
    insert into public.logins values (session_user, pg_backend_pid());
end $$;
create event trigger record_login on login execute function public.record_login();
"""


@pytest.mark.parametrize("login", BEYOND)
def test_no_statement_makes_more_of_who_logged_in(heart: Heart, database_url: str, login: str) -> None:
    heart.learn("Tea helps")
    done: list[str] = []
    with psycopg.connect(postgres.login_url(database_url, login), autocommit=True) as connection:
        connection.execute("set role none")
        for statement in (*OF_THE_SERVER, *BEYOND[login]):
            try:
                connection.execute(statement)  # type: ignore[arg-type]
                done.append(statement)
            except psycopg.errors.InsufficientPrivilege:
                pass
        may = connection.execute(
            "select session_user, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolbypassrls "
            "from pg_roles where rolname = session_user"
        ).fetchone()

    assert (done, may) == ([], (login, *(False,) * 5))


@pytest.fixture
def dagster_of(database_url: str, admin: psycopg.Connection) -> Iterator[str]:
    """The name of Dagster's database beside that of the test, which goes with it."""
    name = f"{psycopg.conninfo.conninfo_to_dict(database_url)['dbname']}_dagster"
    yield name
    admin.execute(f"drop database if exists {name} with (force)")  # type: ignore[arg-type]


@pytest.fixture
def nous(
    database_url: str, dagster_of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Result]]:
    """Run a command with Dagster's records in PostgreSQL, as they are kept for real."""
    for name, value in (("NOUS_DATABASE_URL", database_url), ("NOUS_HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    for name in ("NOUS_DAGSTER_DB_URL", "DAGSTER_HOME", "NOUS_AGENT"):
        monkeypatch.setenv(name, "")  # put back afterwards, for the commands set them
        monkeypatch.delenv(name)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), arguments)
    settings.cache_clear()


def test_nights_workers_and_operators_never_log_in_as_the_owner(
    heart: Heart, owner: psycopg.Connection, database_url: str, dagster_of: str, server: postgres.Server,
    nous: Callable[..., Result],
) -> None:  # fmt: skip
    remember(heart, NINE, NINE, *BACKUPS)
    dagster_url(database_url)
    seen: dict[str, set[str]] = {}
    with psycopg.connect(server.dsn(dagster_of), autocommit=True) as records:
        for connection in (owner, records):
            connection.execute(RECORDING)

        def logins(connection: psycopg.Connection) -> set[str]:
            rows = connection.execute("with gone as (delete from logins returning login) select * from gone").fetchall()
            return {login for (login,) in rows}

        for words in (
            ("doctor",), ("night", *HERE), ("undo", "--night", NIGHT.isoformat()), ("purge",), ("status",),
            ("export", str(Path(settings().home or "") / "aria.jsonl"), "--agent", "aria"), ("erase", "aria", "--yes"),
        ):  # fmt: skip
            done = nous(*words)
            assert done.exit_code == 0, done.output.splitlines()
            seen[words[0]] = logins(owner)
            seen.setdefault("dagster", set()).update(logins(records))
        with open_staff(
            url=database_url, embedder=WordEmbedder(), judge=ScriptedJudge(), writer=ScriptedWriter()
        ) as hired:
            hired.look()
        seen["worker"] = logins(owner)

    assert seen["night"] == seen["undo"] == {postgres.NIGHT_LOGIN}
    assert seen["worker"] == {postgres.LOGIN, postgres.NIGHT_LOGIN}
    assert seen["purge"] == {postgres.OPERATOR_LOGIN}
    assert seen["erase"] == {postgres.NIGHT_LOGIN, postgres.OPERATOR_LOGIN}
    assert seen["doctor"] == {postgres.LOGIN, postgres.NIGHT_LOGIN, postgres.OPERATOR_LOGIN}
    assert seen["dagster"] == {postgres.DAGSTER_LOGIN}
    assert postgres.LOGIN in seen["status"]
    assert "nous" not in set[str]().union(*seen.values())
    swept = owner.execute("select vacuum_count > 0 from pg_stat_user_tables where relid = 'heart.facts'::regclass")
    assert swept.fetchone() == (True,)  # without the right it would have been a warning


def test_an_operator_may_take_each_role_and_a_night_its_own(database_url: str) -> None:
    acted: list[tuple[str, str] | None] = []
    with operator_database(database_url) as database, database.transaction() as connection:
        for role in ("nous_app", "nous_night", "nous_purge"):
            connection.execute(f"set local role {role}")  # type: ignore[arg-type]
            acted.append(connection.execute("select session_user, current_user").fetchone())
    night = Database(database_url, role="nous_night", max_connections=1)
    with night.transaction() as connection:
        acted.append(connection.execute("select session_user, current_user").fetchone())
    night.close()

    assert acted == [
        *((postgres.OPERATOR_LOGIN, role) for role in ("nous_app", "nous_night", "nous_purge")),
        (postgres.NIGHT_LOGIN, "nous_night"),
    ]


def test_records_that_an_earlier_version_made_are_handed_to_the_login_of_dagster(
    database_url: str, dagster_of: str, server: postgres.Server, admin: psycopg.Connection
) -> None:
    admin.execute(f"create database {dagster_of}")  # type: ignore[arg-type]
    with psycopg.connect(server.dsn(dagster_of), autocommit=True) as earlier:
        earlier.execute(
            "create table runs (id serial primary key, body text); create sequence apart; "
            "create view every as table runs; create type state as enum ('on', 'off'); "
            "insert into runs (body) values ('kept')"
        )

    urls = [dagster_url(database_url), dagster_url(database_url)]
    engine = create_engine(urls[0])
    with engine.begin() as connection:
        connection.execute(text("insert into runs (body) values ('new')"))
        connection.execute(text("alter table runs add column more state"))
        bodies = connection.execute(text("select body, session_user from every order by 1")).all()
        connection.execute(text("select nextval('apart')"))
        connection.execute(text("create table made_by_the_next_version ()"))
    engine.dispose()

    assert urls[0] == urls[1]
    assert [*map(tuple, bodies)] == [("kept", postgres.DAGSTER_LOGIN), ("new", postgres.DAGSTER_LOGIN)]


@pytest.mark.parametrize(
    "lost",
    ["revoke nous_night from nous_night_login", "revoke nous_purge from nous_operator_login",
     "revoke maintain on heart.facts from nous_purge"],
    ids=["night", "operator", "sweep"],
)  # fmt: skip
def test_a_database_that_another_server_prepared_gets_the_rights_it_lacks_here(
    database_url: str, owner: psycopg.Connection, lost: str
) -> None:
    owner.execute(lost)  # type: ignore[arg-type]

    night = Database(database_url, role="nous_night", max_connections=1)
    with night.transaction() as connection:
        acts = connection.execute("select session_user, current_user").fetchone()
    night.close()
    has = owner.execute(
        "select pg_has_role('nous_operator_login', 'nous_purge', 'member'), "
        "has_table_privilege('nous_purge', 'heart.facts', 'maintain')"
    ).fetchone()

    assert (acts, has) == ((postgres.NIGHT_LOGIN, "nous_night"), (True, True))
