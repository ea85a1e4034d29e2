"""Drills: a filled store is lost and comes back whole, in each way docs/operating.md names. `make drills` runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder
from lived_agents import exported_rows, live
from postgres_homes import lives, one, scratch, wait_for
from psycopg.sql import SQL, Identifier

from nous_online.core.errors import Unsupported
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database, prepare
from nous_online.database.postgres_home import program
from nous_online.database.schema import known_migrations, migrate
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.interfaces.exporting import export_agent, restore_agent

pytestmark = [
    pytest.mark.skipif("NOUS_DRILLS" not in os.environ, reason="takes about a minute: `make drills`"),
    pytest.mark.integration,
]
SCHEMAS = ("heart", "brain", "lifecycle", "migration")
LOOKS = ("server", "schema", "roles", "isolation", "episodes")


def rows(url: str, *, but: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return every row of every table of ours as text, without some columns, in a fixed order."""
    with psycopg.connect(url, autocommit=True) as owner:
        tables = owner.execute(
            "select schemaname, tablename from pg_tables where schemaname = any(%s) order by 1, 2", [list(SCHEMAS)]
        ).fetchall()
        query = SQL("select (to_jsonb(t) - %s::text[])::text from {} t order by 1")
        return {
            ".".join(table): [row for (row,) in owner.execute(query.format(Identifier(*table)), [list(but)])]
            for table in tables
        }


def opened(url: str, agent_id: str = "aria") -> Heart:
    return Heart.open(
        agent_id,
        database=Database(url),
        embedder=WordEmbedder(),
        judge=ScriptedJudge(),
        writer=ScriptedWriter(),
        works_in_background=False,
    )


def filled(url: str, folder: Path) -> dict[str, list[str]]:
    """Let two agents live in a database; return all of its rows."""
    heart, other = opened(url), opened(url, "boris")
    live(heart, heart.agent.judge, url, folder)
    other.learn("The boat is slow", idempotency_key="same")
    for each in (heart, other):
        each.agent.database.close()
    found = rows(url)
    assert min(len(found[f"heart.{name}"]) for name in ("facts", "statements", "episodes", "censors")) > 0
    return found


def require_alive(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor finds nothing, what was known is recalled, and what is new is kept and found."""
    monkeypatch.setenv("NOUS_DATABASE_URL", url)
    settings.cache_clear()
    found = {each.name: each for each in doctor.checks()}
    assert [found[name] for name in LOOKS if not found[name].is_ok] == []
    heart = opened(url)
    assert "office" in heart.recall("when does the office open?")[0].content
    stored = heart.learn("The lighthouse is lit at dusk")
    assert (stored.action, heart.recall("lighthouse at dusk")[0].id) == ("stored", stored.memory.id)
    heart.agent.database.close()


@pytest.fixture
def new_database(server: postgres.Server, admin: psycopg.Connection) -> Iterator[Callable[[str], str]]:
    names: list[str] = []

    def made(name: str) -> str:
        names.append(f"drill_{name}_{os.getpid()}")
        admin.execute(SQL("create database {}").format(Identifier(names[-1])))
        return server.dsn(names[-1])

    yield made
    for name in names:
        admin.execute(SQL("drop database {} with (force)").format(Identifier(name)))


def dumped_and_restored(source: str, target: str, folder: Path) -> None:
    """Back up and restore as docs/operating.md says."""
    dump = folder / "nous.dump"
    subprocess.run([program("pg_dump", account=None), "--format=custom", f"--file={dump}", source], check=True)
    prepare(target)
    restore = [program("pg_restore", account=None), "--clean", "--if-exists", "--exit-on-error"]
    subprocess.run([*restore, f"--dbname={target}", str(dump)], check=True)


def test_a_dump_brings_everything_back(database_url, new_database, tmp_path, monkeypatch) -> None:
    before = filled(database_url, tmp_path)

    dumped_and_restored(database_url, restored := new_database("restored"), tmp_path)

    assert rows(restored) == before
    require_alive(restored, monkeypatch)


def test_a_base_backup_and_the_log_since_bring_everything_back_that_was_answered(tmp_path, monkeypatch) -> None:
    with scratch() as home:
        server = postgres.ensure(home)
        url, data = server.dsn(), postgres.data_directory(home)
        assert data is not None
        base, log = home / "base", home / "log"
        log.mkdir()
        receive = [program("pg_receivewal", account=None), "--no-loop", "--synchronous", "--directory", str(log)]
        receiver = subprocess.Popen([*receive, "--dbname", url], stderr=subprocess.PIPE)
        wait_for(lambda: one(server, "select count(*) from pg_stat_replication where state = 'streaming'"))
        backup = [program("pg_basebackup", account=None), "--wal-method=none", "--checkpoint=fast", "--no-sync"]
        subprocess.run([*backup, "--pgdata", str(base), "--dbname", url], check=True, capture_output=True)
        before = filled(url, tmp_path)
        caught_up = "select pg_current_wal_flush_lsn() <= flush_lsn from pg_stat_replication"
        wait_for(lambda: one(server, caught_up))
        psutil.Process(server.pid).kill()
        receiver.communicate(timeout=20)
        wait_for(lambda: not lives(server.pid))

        lose_and_restore(data, base, log)
        again = postgres.ensure(home)

        assert again.pid != server.pid
        assert rows(again.dsn()) == before
        require_alive(again.dsn(), monkeypatch)


def lose_and_restore(data: Path, base: Path, log: Path) -> None:
    """Delete the data of a server; put a base backup there that replays the log it is given."""
    owner = data.stat()
    shutil.rmtree(data)
    shutil.move(base, data)
    for partial in log.glob("*.partial"):
        partial.rename(partial.with_suffix(""))
    (data / "recovery.signal").touch()
    with (data / "postgresql.auto.conf").open("a", encoding="utf-8") as conf:
        conf.write(f'restore_command = \'cp "{log}/%f" "%p"\'\nhot_standby = off\n')
    log.chmod(0o755)
    for path in (data, *data.rglob("*"), *log.iterdir()):
        os.chown(path, owner.st_uid, owner.st_gid)


def test_an_export_brings_an_agent_back(database_url, new_database, tmp_path, monkeypatch) -> None:
    filled(database_url, tmp_path)
    before = exported_rows(database_url, "aria")
    export_agent(source := Database(database_url), "aria", path := tmp_path / "aria.jsonl.gz")
    source.close()
    prepare(restored := new_database("imported"))

    restore_agent(target := Database(restored), path)

    target.close()
    assert exported_rows(restored, "aria") == before
    require_alive(restored, monkeypatch)


def test_a_home_that_was_copied_while_its_server_was_down_brings_everything_back(tmp_path, monkeypatch) -> None:
    with scratch() as home:
        before = filled(postgres.ensure(home).dsn(), tmp_path)
        postgres.stop(home)
        copy = home.with_name(f"{home.name}-copy")
        subprocess.run(["cp", "-a", str(home), str(copy)], check=True)
        try:
            shutil.rmtree(home)
            shutil.move(copy, home)
            again = postgres.ensure(home)

            assert rows(again.dsn()) == before
            require_alive(again.dsn(), monkeypatch)
        finally:
            shutil.rmtree(copy, ignore_errors=True)


OLDEST = 1
RULES = {"migration.applied", "lifecycle.transitions"}
"""Tables of the schema itself, to which upgrades add rows."""


def store_in_the_oldest_schema(url: str) -> None:
    """Fill a database of the first schema by its own SQL: memories of every kind and state, with their history."""
    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection, known=[each for each in known_migrations() if each.number <= OLDEST])
        connection.execute((Path(__file__).parents[2] / "support" / "oldest_store.sql").read_bytes())


def test_a_store_of_the_oldest_schema_is_upgraded_whole_and_the_backup_is_the_way_back(
    new_database, tmp_path, monkeypatch
) -> None:
    store_in_the_oldest_schema(url := new_database("oldest"))
    before = rows(url)
    backup = tmp_path / "before.dump"
    subprocess.run([program("pg_dump", account=None), "--format=custom", f"--file={backup}", url], check=True)

    prepare(url)

    after = rows(url)
    for name in set(before) - RULES:
        assert with_columns_of(before[name], after[name]) == with_columns_of(before[name], before[name]), name
    assert len(after["heart.statements"]) == len(after["heart.facts"])
    require_alive(url, monkeypatch)
    back = new_database("back")
    restore = [program("pg_restore", account=None), "--exit-on-error", f"--dbname={back}", str(backup)]
    subprocess.run(restore, check=True)
    assert rows(back) == before


def with_columns_of(old: list[str], found: list[str]) -> list[str]:
    """Return rows with the columns that the old ones had, in a fixed order."""
    columns = set(json.loads(old[0])) if old else set[str]()
    return sorted(
        json.dumps({name: value for name, value in json.loads(row).items() if name in columns}) for row in found
    )


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(database_url, owner, tmp_path) -> None:
    before = filled(database_url, tmp_path)
    owner.execute("insert into migration.applied (number, name, sha256) values (9999, 'from_the_future', 'x')")

    with pytest.raises(Unsupported, match="schema 9999"):
        Database(database_url)

    owner.execute("delete from migration.applied where number = 9999")
    assert rows(database_url) == before
