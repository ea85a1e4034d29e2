"""The schema, and the migrations that lead to it, on the real server."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import psycopg
import pytest
from erased_rows import insert
from psycopg.types.json import Jsonb
from twins import Say, Twin

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import Unsupported
from nous_online.database import postgres
from nous_online.database.connection import Database, prepare, register_space
from nous_online.database.postgres_home import program
from nous_online.database.schema import (
    ROLES,
    Migration,
    applied_checksums,
    is_current,
    known_migrations,
    migrate,
    pending_migrations,
)

NewDatabase = Callable[[], str]


@pytest.fixture
def empty_database(server: postgres.Server) -> Iterator[NewDatabase]:
    """Makes databases with nothing in them and returns their URLs."""
    names: list[str] = []

    def make() -> str:
        names.append(f"empty_{uuid.uuid4().hex[:12]}")
        with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"create database {names[-1]}")
        return server.dsn(names[-1])

    yield make
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for name in names:
            connection.execute(f"drop database {name} with (force)")


def shipped(name: str) -> str:
    return files("nous_sql").joinpath(name).read_text("utf-8")


def dump(url: str) -> list[str]:
    """What pg_dump says of the three schemas, without its own version and random tokens."""
    schemas = ["-n", "heart", "-n", "brain", "-n", "lifecycle"]
    command = [program("pg_dump", account=None), "--schema-only", "--no-owner", *schemas, url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in text.splitlines() if not line.startswith(("--", "\\"))]


def test_schema_and_migrations_arrive_at_the_same_place(empty_database: NewDatabase) -> None:
    described, migrated = empty_database(), empty_database()
    with psycopg.connect(described, autocommit=True) as connection, connection.transaction():
        connection.execute(shipped("bootstrap.sql"))
        connection.execute(shipped("schema.sql"))
        connection.execute(shipped("roles.sql"))

    prepare(migrated)

    assert dump(migrated) == dump(described)
    assert len(dump(migrated)) > 500


def test_migrating_twice_changes_nothing(empty_database: NewDatabase) -> None:
    url = empty_database()

    with psycopg.connect(url, autocommit=True) as connection:
        first, before = migrate(connection), dump(url)
        second, after = migrate(connection), dump(url)

    assert [migration.number for migration in first] == list(range(1, len(first) + 1))
    assert second == []
    assert after == before


def test_triggers_plan_their_queries_once_a_session(database: Database) -> None:
    with database.transaction() as connection:
        found = connection.execute("""
            select proname, coalesce(proconfig, '{}') from pg_proc
            where prorettype = 'trigger'::regtype and pronamespace in ('heart'::regnamespace, 'lifecycle'::regnamespace)
              and prosrc ~ '(from|into) (heart|lifecycle)[.]'
        """).fetchall()

    assert {"index_words", "require_event", "require_statement"} <= {name for name, _ in found}
    assert all("plan_cache_mode=force_generic_plan" in settings for _, settings in found)


def test_condensed_episodes_that_were_there_are_indexed_by_what_stayed_of_them(empty_database: NewDatabase) -> None:
    texts = {"closed": {"compressed": "Ada moved the invoices"}, "archived": {"lessons_learned": ["Count twice"]}}
    with psycopg.connect(empty_database(), autocommit=True) as connection:
        migrate(connection, known=[migration for migration in known_migrations() if migration.number < 8])
        for state, given in {**texts, "open": {"compressed": "Ben waits"}}.items():
            row = {"title": f"Notes, {state}", "state": state, "archived_at": "now" if state == "archived" else None}
            ended = {"ended_at": None if state == "open" else "now"}
            insert(connection, "aria", {"heart.episodes": {**row, **ended, **given}})
        stale = {"lexeme": "stale", "memory_kind": "episode", "term_count": 1, "context_term_count": 0}
        for (memory,) in connection.execute("select id from heart.episodes where state <> 'open'").fetchall():
            insert(connection, "aria", {"heart.postings": {**stale, "memory_id": memory}})
        before = connection.execute("select to_jsonb(e) from heart.episodes e order by id").fetchall()

        migrate(connection)

        found = connection.execute("""
            select e.state, array_agg(lexeme order by lexeme)
            from heart.postings p join heart.episodes e on e.id = p.memory_id group by 1 order by 1
        """).fetchall()
        assert found == [
            ("archived", ["archiv", "count", "note", "twice"]),
            ("closed", ["ada", "close", "invoic", "move", "note"]),
        ]
        assert (
            connection.execute("select to_jsonb(e) - 'is_forgotten' from heart.episodes e order by id").fetchall()
            == before
        )


def store_as_before_statements(
    connection: psycopg.Connection, kept: uuid.UUID, gone: uuid.UUID, old: uuid.UUID
) -> None:
    """Store a fact that changed since it was imported, one merged into it and one it replaced, with their events."""
    connection.execute("insert into heart.embedding_spaces values ('drawn', 'drawn', '', 8)")
    connection.execute("insert into heart.agents (id, embedding_space_id) values ('aria', 'drawn')")
    said = {"learned_at": "2026-05-01", "source": "mail", "trust": 30, "encoded_frame": "debug"}
    away = {"state": "superseded", "superseded_by": kept, "superseded_at": "2026-06-01"}
    insert(connection, "aria", {"heart.facts": {"id": kept, "content": "kept", **said, "trust": 90}})
    insert(connection, "aria", {"heart.facts": {"id": gone, "content": "gone", **said, **away}})
    insert(connection, "aria", {"heart.facts": {"id": old, "content": "old", **said, **away}})
    for memory, action, actor, version, before, after in (
        (kept, "learned", "import", 0, {}, {}),
        (kept, "confirmed", "agent", 1, {"trust": 30, "user_id": "ana"}, {"trust": 50, "user_id": None}),
        (kept, "confirmed", "agent", 2, {"trust": 50}, {"trust": 90}),
        (gone, "learned", "agent", 0, {}, {}),
        (gone, "merged", "agent", 1, {"superseded_by": None}, {"superseded_by": str(kept)}),
        (old, "superseded", "agent", 1, {"superseded_by": None}, {"superseded_by": str(kept)}),
    ):
        row = {"memory_kind": "fact", "memory_id": memory, "action": action, "actor": actor, "reason": "drawn"}
        states = {"from_state": "active", "to_state": "active", "effective_at": "now"}
        versions = {"version_before": version, "version_after": version + 1}
        images = {"before": Jsonb(before), "after": Jsonb(after)}
        insert(connection, "aria", {"lifecycle.events": {**row, **states, **versions, **images}})


def test_facts_that_were_there_stand_on_the_statement_they_were_learned_from(empty_database: NewDatabase) -> None:
    with psycopg.connect(empty_database(), autocommit=True) as connection:
        migrate(connection, known=[migration for migration in known_migrations() if migration.number < 12])
        store_as_before_statements(connection, *(uuid.UUID(int=number) for number in (1, 2, 3)))

        migrate(connection)

        found = connection.execute("""
            select s.content, s.trust, s.user_id, s.source, s.frame, s.reason, s.said_at = f.learned_at, f.succession,
                   f.row_version
            from heart.statements s join heart.facts f on f.id = s.fact_id order by f.id
        """).fetchall()
        assert found == [
            ("kept", 30, "ana", "mail", "debug", "imported", True, None, 1),
            ("gone", 30, None, "mail", "debug", "first", True, "merged", 1),
            ("old", 30, None, "mail", "debug", "first", True, "replaced", 1),
        ]


def test_decisions_that_memories_named_by_their_ids_are_named_so_still(empty_database: NewDatabase) -> None:
    with psycopg.connect(empty_database(), autocommit=True) as connection:
        migrate(connection, known=[migration for migration in known_migrations() if migration.number < 12])
        store_as_before_statements(connection, *(uuid.UUID(int=number) for number in (1, 2, 3)))
        migrate(connection, known=[migration for migration in known_migrations() if migration.number < 18])
        decision = uuid.UUID(int=7)
        with connection.transaction():
            for table in ("facts", "statements"):
                connection.execute(f"alter table heart.{table} no force row level security")  # type: ignore[arg-type]
                connection.execute(f"alter table heart.{table} disable trigger user")  # type: ignore[arg-type]
            connection.execute("update heart.facts set source_decision_id = %s", [decision])
            connection.execute("update heart.statements set decision_id = %s", [decision])

        migrate(connection)

        connection.execute("alter table heart.facts no force row level security")
        connection.execute("alter table heart.statements no force row level security")
        found = connection.execute("""
            select distinct f.source_decision_id, s.decision_id, f.row_version
            from heart.facts f join heart.statements s on s.fact_id = f.id
        """).fetchall()
        assert found == [(str(decision), str(decision), 1)]


def test_keys_and_facts_that_were_there_keep_what_they_were_and_may_what_their_holders_may(
    empty_database: NewDatabase,
) -> None:
    with psycopg.connect(empty_database(), autocommit=True) as connection:
        migrate(connection, known=[migration for migration in known_migrations() if migration.number < 17])
        connection.execute("insert into heart.embedding_spaces values ('drawn', 'drawn', '', 8)")
        connection.execute("insert into heart.agents (id, embedding_space_id) values ('aria', 'drawn')")
        for holder in ("aria", "*"):
            insert(connection, holder, {"heart.api_keys": {"id": "0" * 11 + "1", "secret_sha256": "0" * 64}})
        insert(connection, "aria", {"heart.procedures": {"name": "Deploy", "source_kind": "tool", "trust": 50}})

        migrate(connection)

        keys = connection.execute(
            "select agent_id, max_trust, may_pin, is_read_only, last_used_at from heart.api_keys order by agent_id"
        ).fetchall()
        assert keys == [("*", 100, True, False, None), ("aria", 60, False, False, None)]
        assert connection.execute("select source_kind, trust from heart.procedures").fetchall() == [("tool", 50)]


def test_a_prepared_database_is_recognised_with_one_look(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert is_current(connection)
        assert set(applied_checksums(connection)) == {ROLES} | {migration.number for migration in known_migrations()}


def test_grants_that_changed_without_a_migration_are_given_anew(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update migration.applied set sha256 = 'of an older release' where number = %s", [ROLES])
        connection.execute("revoke select on heart.facts from nous_app")
        assert not is_current(connection)

        migrate(connection)

        assert is_current(connection)
        granted = connection.execute("select has_table_privilege('nous_app', 'heart.facts', 'select')").fetchone()
        assert granted == (True,)


def test_an_empty_database_is_not_current(empty_database: NewDatabase) -> None:
    with psycopg.connect(empty_database(), autocommit=True) as connection:
        assert not is_current(connection)


def test_four_processes_that_meet_an_empty_database_all_succeed(empty_database: NewDatabase) -> None:
    url = empty_database()

    def race(say: Say) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            say(len(migrate(connection)))

    ended = [racer.end() for racer in [Twin(race) for _ in range(4)]]

    assert sorted(ended) == [(0, [0]), (0, [0]), (0, [0]), (0, [len(known_migrations())])]
    with psycopg.connect(url, autocommit=True) as connection:
        assert is_current(connection)


def test_threads_that_open_one_new_embedding_space_at_once_all_succeed(database: Database) -> None:
    space = EmbeddingSpace(id="raced", model="raced", weights_sha256="", dimensions=8)

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(register_space, database, space) for _ in range(4)]

    assert [future.result() for future in found] == [None] * 4


def test_an_edited_migration_is_refused_by_name(owner: psycopg.Connection) -> None:
    owner.execute("update migration.applied set sha256 = 'another' where number = 1")

    with pytest.raises(Unsupported, match="0001_create_schema was edited"):
        migrate(owner)


def test_a_database_of_a_newer_version_is_refused_with_the_fix(database_url: str, owner: psycopg.Connection) -> None:
    owner.execute("insert into migration.applied (number, name, sha256) values (9999, 'from_the_future', 'x')")

    with pytest.raises(Unsupported, match=r"schema 9999.*upgrade nous-pipelines"):
        Database(database_url)


def test_a_migration_that_fails_leaves_nothing_and_the_next_run_is_right(empty_database: NewDatabase) -> None:
    url = empty_database()
    broken = Migration(9998, "break", "create table heart.half_made (id int); select 1 / 0;")

    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(connection, known=[*known_migrations(), broken])
        left = connection.execute(
            "select to_regnamespace('heart'), to_regnamespace('lifecycle'), to_regnamespace('migration')"
        ).fetchone()
        migrate(connection)

        assert left == (None, None, None)
        assert is_current(connection)


def test_only_what_a_database_lacks_is_missing() -> None:
    one, two = Migration(1, "one", "a"), Migration(2, "two", "b")

    assert pending_migrations({}, [one, two]) == [one, two]
    assert pending_migrations({1: one.sha256}, [one, two]) == [two]
    assert pending_migrations({1: one.sha256, 2: two.sha256}, [one, two]) == []


def test_numbers_and_names_of_migrations_are_read_from_their_files() -> None:
    numbers = [migration.number for migration in known_migrations()]

    assert numbers == sorted(set(numbers))
    assert known_migrations()[0].name == "create_schema"


def test_roles_lost_in_a_restore_come_back(server: postgres.Server, database_url: str) -> None:
    """A dump holds no roles; a database restored on a fresh server still gets its grants."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("revoke all on all tables in schema heart from nous_app")
        migrate(connection)
        granted = connection.execute("select has_table_privilege('nous_app', 'heart.facts', 'select')").fetchone()

    assert granted == (True,)


def test_every_unique_key_of_a_table_with_agents_begins_with_the_agent(owner: psycopg.Connection) -> None:
    """Otherwise a refused insert would tell one agent what another one has; identities are never chosen by a caller."""
    leaks = owner.execute("""
        select t.relname, i.indexrelid::regclass::text
        from pg_index i
        join pg_class t on t.oid = i.indrelid
        join pg_namespace n on n.oid = t.relnamespace
        join pg_attribute a on a.attrelid = t.oid and a.attname = 'agent_id'
        join pg_attribute first on first.attrelid = t.oid and first.attnum = i.indkey[0]
        where n.nspname in ('heart', 'brain', 'lifecycle') and i.indisunique
          and first.attname <> 'agent_id' and first.attidentity = ''
          and t.relname <> 'llm_requests'
    """).fetchall()

    assert leaks == []


def test_a_reference_between_memories_never_crosses_agents(owner: psycopg.Connection) -> None:
    """Each foreign key to a table with agents carries the agent."""
    crossing = owner.execute("""
        select c.conrelid::regclass::text, c.conname
        from pg_constraint c
        join pg_attribute a on a.attrelid = c.confrelid and a.attname = 'agent_id'
        where c.contype = 'f' and not a.attnum = any(c.confkey) and c.confrelid <> 'lifecycle.events'::regclass
    """).fetchall()

    assert crossing == []
