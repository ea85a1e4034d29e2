"""Opening a database and losing it: down, read-only, half-migrated, full; a clear error, and the next call is right."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import InvalidInput, NotFound, Refused, Unavailable, Unsupported
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import (
    Database,
    Role,
    Watchdog,
    open_url,
    prepare,
    register_space,
    was_closed_by_server,
)
from nous_online.heart import Heart

SPACE = EmbeddingSpace(id="a-space", model="m", weights_sha256="x", dimensions=3)


def opened(url: str) -> Heart:
    return Heart.open("aria", database=Database(url), embedder=WordEmbedder(), judge=ScriptedJudge())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://nous@127.0.0.1:9/nous", r"can't connect.*NOUS_DATABASE_URL.*nous up"),
        ("postgresql://nous@127.0.0.1:port/nous", "can't connect"),
        ("nonsense", "can't connect"),
    ],
)
def test_a_database_that_cannot_be_reached_is_unavailable(url: str, said: str) -> None:
    with pytest.raises(Unavailable, match=f"(?s){said}"):
        Database(url)


def test_a_wrong_password_is_unavailable_and_never_shown(database_url: str) -> None:
    wrong = database_url.replace("//nous@", "//nous:sesame@")

    with pytest.raises(Unavailable) as refused:
        Database(wrong)

    assert "sesame" not in str(refused.value)


def test_a_database_that_does_not_exist_is_unavailable(server: postgres.Server) -> None:
    with pytest.raises(Unavailable, match="it has no such database"):
        Database(server.dsn("absent"))


def test_a_call_after_closing_is_unavailable(database_url: str) -> None:
    database = Database(database_url)
    database.close()

    with pytest.raises(Unavailable), database.transaction("aria"):
        pass


@pytest.mark.parametrize("role", ["nous_app", "nous_night"])
def test_a_database_is_opened_and_used_over_one_connection(
    database_url: str, owner: psycopg.Connection, role: Role
) -> None:
    owner.execute("""
        create table public.logins (backend int);
        create function public.record_login() returns event_trigger language plpgsql security definer as $$
        begin insert into public.logins values (pg_backend_pid()); end $$;
        create event trigger record_login on login execute function public.record_login()
    """)

    database = Database(database_url, role=role)
    with database.transaction() as connection:
        connection.execute("select 1")
    database.close()

    assert owner.execute("select count(*) from public.logins").fetchone() == (1,)


def test_a_database_whose_connection_ended_before_the_first_call_makes_another(
    database_url: str, owner: psycopg.Connection
) -> None:
    database = Database(database_url, role="nous_night")
    owner.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'nous'")

    with database.transaction() as connection:
        answer = connection.execute("select current_user").fetchone()

    database.close()
    assert answer == ("nous_night",)


def test_the_configured_server_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://somewhere/nous")
    settings.cache_clear()

    url = open_url()

    settings.cache_clear()
    assert url == "postgresql://somewhere/nous"


@pytest.fixture
def read_only(database_url: str, owner: psycopg.Connection) -> str:
    """A database that already knows the agent and a fact, and then stops taking writes."""
    heart = opened(database_url)
    heart.learn("Tea helps")
    heart.agent.database.close()
    name = owner.info.dbname
    owner.execute(f"alter database {name} set default_transaction_read_only = on")  # type: ignore[arg-type]
    return database_url


def test_a_read_only_database_is_said_to_be_one_and_works_again_when_it_is_not(
    read_only: str, owner: psycopg.Connection
) -> None:
    with pytest.raises(Unavailable, match=r"can't be written to.*read-only.*nothing was stored"):
        opened(read_only).learn("Coffee helps")

    owner.execute(f"alter database {owner.info.dbname} reset default_transaction_read_only")  # type: ignore[arg-type]
    assert opened(read_only).learn("Coffee helps").action == "stored"


def test_a_read_only_database_is_recalled_from_without_a_note(read_only: str, owner: psycopg.Connection) -> None:
    heart = opened(read_only)

    found, context = heart.recall("tea"), heart.assemble_context(query="does tea help?")

    assert [answer.content for answer in found] == ["Tea helps"]
    assert "Tea helps" in context.text
    assert owner.execute("select count(*) from heart.recalls").fetchone() == (0,)
    with pytest.raises(Unavailable, match="can't be written to"):
        heart.cite(found.id, [found[0].id])


def test_a_new_agent_is_not_made_in_a_read_only_database(read_only: str) -> None:
    database = Database(read_only)

    with pytest.raises(Unavailable, match="can't be written to"):
        Heart.open("boris", database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
    database.close()


def test_an_empty_read_only_database_cannot_be_prepared(server: postgres.Server) -> None:
    name = f"empty_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name}")  # type: ignore[arg-type]
        connection.execute(f"alter database {name} set default_transaction_read_only = on")  # type: ignore[arg-type]

        with pytest.raises(Unavailable, match="can't be written to"):
            Database(server.dsn(name))

        connection.execute(f"alter database {name} reset default_transaction_read_only")  # type: ignore[arg-type]
        prepare(server.dsn(name))
        connection.execute(f"drop database {name} with (force)")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "damage",
    [
        "drop table heart.requests cascade",
        "drop table heart.facts cascade",
        "alter table heart.facts drop column slot cascade",
        "drop schema lifecycle cascade",
        "drop function heart.require_event() cascade; drop function heart.current_agent() cascade",
    ],
)
def test_a_damaged_schema_is_said_to_be_incomplete(heart: Heart, owner: psycopg.Connection, damage: str) -> None:
    owner.execute(damage)  # type: ignore[arg-type]

    with pytest.raises((Unsupported, Refused, NotFound)):  # without its policies, an agent is not even to be found
        heart.learn("Tea helps", idempotency_key="k")


def test_a_user_without_rights_is_told_so(server: postgres.Server, database_url: str) -> None:
    name = f"user_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login password 'x'")  # type: ignore[arg-type]
    stranger = database_url.replace("//nous@", f"//{name}:x@")

    with pytest.raises(Refused, match="as its owner"):
        Database(stranger)

    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"drop role {name}")  # type: ignore[arg-type]


@pytest.fixture
def tiny_disk(owner: psycopg.Connection) -> Iterator[Path]:
    """A file system of 24 MB that the server may write to."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    place = Path(tempfile.gettempdir()) / f"nous-tiny-{uuid.uuid4().hex[:8]}"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], check=False).returncode:
        place.rmdir()
        pytest.skip("this machine does not allow to mount a file system")
    (data,) = owner.execute("show data_directory").fetchone() or ("/",)
    shutil.chown(place, Path(data).stat().st_uid, Path(data).stat().st_gid)
    yield place
    subprocess.run(["umount", place], check=True)
    place.rmdir()


def test_a_full_disk_loses_the_call_but_nothing_else(
    server: postgres.Server, database_url: str, owner: psycopg.Connection, tiny_disk: Path
) -> None:
    space, filler = f"tiny_{uuid.uuid4().hex[:8]}", tiny_disk / "filler"
    owner.execute(f"create tablespace {space} location '{tiny_disk}'")  # type: ignore[arg-type]
    owner.execute(f"alter table heart.facts set tablespace {space}")  # type: ignore[arg-type]
    heart = opened(database_url)
    heart.learn("Tea helps")
    free = os.statvfs(tiny_disk)
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize))

    with pytest.raises(Unavailable, match="can't be written to"):
        heart.learn_deferred([(f"statement {n} " + "long " * 500, {}) for n in range(100)], deadline_s=20)
    full = heart.count()
    filler.unlink()
    after = heart.learn_deferred([(f"statement {n} " + "long " * 500, {}) for n in range(100)], deadline_s=20)

    assert (full, after, heart.count()) == ({"active": 1}, 100, {"active": 101})
    heart.agent.database.close()
    owner.execute("alter table heart.facts set tablespace pg_default")
    owner.execute(f"drop tablespace {space}")  # type: ignore[arg-type]


def test_a_space_is_registered_once_and_recognised_again(database: Database, owner: psycopg.Connection) -> None:
    register_space(database, SPACE)
    register_space(database, SPACE)

    stored = owner.execute(
        "select id, weights_sha256, dimensions from heart.embedding_spaces where id <> 'words-64'"
    ).fetchall()
    indexes = owner.execute(
        "select count(*) from pg_indexes where schemaname = 'heart' and indexdef like '%hnsw%halfvec(3)%'"
    ).fetchone()
    assert stored == [("a-space", "x", 3)]
    assert indexes == (8,)


@pytest.mark.parametrize("other", [EmbeddingSpace("a-space", "m", "y", 3), EmbeddingSpace("a-space", "m", "x", 4)])
def test_a_space_of_that_name_with_other_weights_or_width_is_refused(database: Database, other: EmbeddingSpace) -> None:
    register_space(database, SPACE)

    with pytest.raises(InvalidInput, match="'a-space'"):
        register_space(database, other)


def test_the_widest_space_has_its_indexes_too(database: Database, owner: psycopg.Connection) -> None:
    register_space(database, EmbeddingSpace("wide", "m", "", 4000))

    assert owner.execute("select count(*) from pg_indexes where indexdef like '%halfvec(4000)%'").fetchone() == (8,)


def test_episodes_of_one_day_are_condensed_in_place(database: Database, owner: psycopg.Connection) -> None:
    """Their next versions lie on their pages, so no index hears of them: a vector index takes ten times as long."""
    register_space(database, EmbeddingSpace("usual", "m", "", 384))
    with owner.transaction():
        owner.execute("set local session_replication_role = replica")  # no events
        owner.execute("insert into heart.agents (id, embedding_space_id) values ('aria', 'usual')")
        owner.execute("""
            insert into heart.episodes (
                agent_id, state, title, detail, started_at, ended_at, embedding, embedding_space_id)
            select 'aria', 'closed', 'a talk', string_agg(md5(n::text || random()), ' '), now(), now(),
                   array_agg(random())::vector, 'usual'
            from generate_series(1, 40) n cross join generate_series(1, 384) width group by n""")
        pages = "select id, (ctid::text::point)[0] from heart.episodes order by id"
        before = owner.execute(pages).fetchall()
        owner.execute("update heart.episodes set detail = null, compression_tier = 'summary'")

        assert owner.execute(pages).fetchall() == before


@pytest.mark.parametrize("dimensions", [0, -1, 4001])
def test_a_space_of_impossible_width_is_refused(database: Database, dimensions: int) -> None:
    with pytest.raises(Refused, match="rule of the schema"):
        register_space(database, EmbeddingSpace("odd", "m", "", dimensions))


def test_a_snapshot_sees_one_moment_and_changes_nothing(heart: Heart, database: Database) -> None:
    with database.transaction("aria", is_snapshot=True) as connection:
        before = connection.execute("select count(*) from heart.facts").fetchone()
        heart.learn("Tea helps")
        after = connection.execute("select count(*) from heart.facts").fetchone()

    assert before == after == (0,)
    with (
        pytest.raises(Unavailable, match="can't be written to"),
        database.transaction("aria", is_snapshot=True) as connection,
    ):
        connection.execute("delete from heart.links")
    assert heart.learn("Tea helps").action == "confirmed"


def test_an_idle_connection_shows_when_the_server_has_ended_it(database_url: str, owner: psycopg.Connection) -> None:
    with psycopg.connect(database_url) as connection:
        alive = was_closed_by_server(connection)
        owner.execute("select pg_terminate_backend(%s, 1000)", [connection.info.backend_pid])

        assert not alive
        assert was_closed_by_server(connection)
    assert was_closed_by_server(connection)


# --- the watchdog ---


def test_what_is_late_is_cut_once_and_the_block_learns_of_it():
    watchdog, cut = Watchdog(), threading.Event()

    with watchdog.watching(0.05, cut.set) as watch:
        assert cut.wait(5)

    assert watch.has_expired


def test_what_ends_in_time_is_never_cut():
    watchdog, cut = Watchdog(), threading.Event()

    with watchdog.watching(0.3, cut.set) as watch:  # a busy machine may take a tenth of a second to leave the block
        pass
    time.sleep(0.4)

    assert (cut.is_set(), watch.has_expired) == (False, False)


def test_a_short_wait_inside_a_long_one_is_cut_in_its_own_time():
    watchdog, late, early = Watchdog(), threading.Event(), threading.Event()

    with watchdog.watching(60, late.set), watchdog.watching(0.05, early.set):
        assert early.wait(5)

    assert not late.is_set()


def test_one_thread_watches_any_number():
    watchdog, before = Watchdog(), threading.active_count()

    for _ in range(20):
        with watchdog.watching(60, lambda: None), watchdog.watching(30, lambda: None):
            pass

    assert threading.active_count() == before + 1


def test_a_closed_database_says_that_it_is_closed(database_url: str) -> None:
    database = Database(database_url)
    database.close()

    with pytest.raises(Unavailable, match="this Heart is closed"), database.transaction("aria"):
        pass
