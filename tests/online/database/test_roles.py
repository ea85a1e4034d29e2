"""Who may see and write what: row-level security, grants and the rules that hold whoever writes."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from inserted_rows import INSERT_EVENT, INSERT_FACT, INSERT_STATEMENT
from psycopg.sql import SQL, Identifier
from rows_of_agents import AgentTable, agent_tables

from nous_online.core.errors import Refused
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart


@pytest.fixture
def ben(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> Heart:
    """The memory of another agent in the same database."""
    return Heart.open("ben", database=database, embedder=embedder, judge=judge)


def counts(connection: psycopg.Connection, tables: list[AgentTable], *, but_of: str | None = None) -> dict[str, int]:
    """How many rows of each table are visible, those of one agent left out."""
    found = {
        each.name: connection.execute(
            each.sql("select count(*) from {table} where {agent} is distinct from %s"), [but_of]
        )
        for each in tables
    }
    return {name: (cursor.fetchone() or [0])[0] for name, cursor in found.items()}


def test_without_an_agent_every_table_is_empty(heart: Heart, database: Database, owner: psycopg.Connection) -> None:
    heart.learn("The api is deployed on Fridays", subject="deploys", idempotency_key="k")
    tables = agent_tables(owner)

    with database.transaction(None) as connection:
        seen = counts(connection, tables)

    assert set(seen.values()) == {0}
    assert counts(owner, tables)["facts"] == 1


def test_an_empty_agent_setting_is_no_agent_at_all(heart: Heart, database_url: str) -> None:
    heart.learn("The api is deployed on Fridays")

    with psycopg.connect(database_url, options="-c role=nous_app -c nous.agent_id=") as connection:
        seen = connection.execute("select count(*) from heart.facts").fetchone()

    assert seen == (0,)


def test_an_agent_never_sees_rows_of_another(
    heart: Heart, ben: Heart, database: Database, owner: psycopg.Connection
) -> None:
    heart.learn("Aria likes tea", idempotency_key="same")
    ben.learn("Ben likes coffee", idempotency_key="same")
    tables = agent_tables(owner)

    with database.transaction("ben") as connection:
        foreign = counts(connection, tables, but_of="ben")
        own = counts(connection, tables)

    assert set(foreign.values()) == {0}
    assert own["facts"] == own["requests"] == own["memories"] == 1


def test_nothing_tells_an_agent_of_the_plans_of_others(database: Database) -> None:
    with pytest.raises(Refused), database.transaction("aria") as connection:
        connection.execute("select agent_ids from lifecycle.plans")


def test_an_agent_cannot_change_the_embedding_space_all_share(heart: Heart, database: Database) -> None:
    with pytest.raises(Refused), database.transaction(heart.agent.id) as connection:
        connection.execute("update heart.embedding_spaces set dimensions = 8")


def test_writing_for_another_agent_is_refused(heart: Heart, ben: Heart, database: Database) -> None:
    with pytest.raises(Refused) as refused, database.transaction("ben") as connection:
        connection.execute(INSERT_FACT, [uuid4(), "aria"])

    assert isinstance(refused.value.__cause__, psycopg.errors.InsufficientPrivilege)
    assert refused.value.__cause__.sqlstate == "42501"


def test_a_row_cannot_be_handed_to_another_agent(heart: Heart, ben: Heart, database: Database) -> None:
    ben.learn("Ben likes coffee")

    with pytest.raises(Refused), database.transaction("ben") as connection:
        connection.execute("update heart.facts set agent_id = 'aria'")


def test_an_agent_cannot_learn_which_ids_another_has(heart: Heart, ben: Heart, database: Database) -> None:
    taken = heart.learn("Aria likes tea").memory.id

    with database.transaction("ben") as connection:
        connection.execute(INSERT_FACT, [taken, "ben"])
        connection.execute(INSERT_STATEMENT, ["ben", taken])
        connection.execute(INSERT_EVENT, ["ben", taken, "new", "active", 1])

    assert ben.get(taken).content == "written by hand"
    assert heart.get(taken).content == "Aria likes tea"


@pytest.mark.parametrize("role", ["nous_app", "nous_night"])
@pytest.mark.parametrize(
    "statement",
    [
        "update lifecycle.events set reason = 'rewritten'",
        "delete from lifecycle.events",
        "truncate lifecycle.events",
        "delete from heart.facts",
        "insert into lifecycle.transitions values ('fact', 'new', 'superseded')",
    ],
)
def test_history_and_memories_are_beyond_deletion(heart: Heart, database_url: str, role: str, statement: str) -> None:
    heart.learn("The api is deployed on Fridays")

    with (
        psycopg.connect(database_url, options=f"-c role={role} -c nous.agent_id=aria") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement)


def test_not_even_the_owner_rewrites_an_event(heart: Heart, owner: psycopg.Connection) -> None:
    heart.learn("The api is deployed on Fridays")

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
        owner.execute("update lifecycle.events set reason = 'rewritten'")


def test_a_memory_written_without_an_event_is_refused_at_commit(heart: Heart, database: Database) -> None:
    with pytest.raises(Refused, match="without an event"), database.transaction("aria") as connection:
        connection.execute(INSERT_FACT, [uuid4(), "aria"])

    assert heart.count() == {}


def test_a_memory_changed_without_an_event_is_refused_at_commit(heart: Heart, database: Database) -> None:
    fact = heart.learn("The api is deployed on Fridays").memory

    with pytest.raises(Refused, match="version 2 of fact"), database.transaction("aria") as connection:
        connection.execute("update heart.facts set confidence = 0.5")

    assert heart.get(fact.id) == fact


@pytest.mark.parametrize(
    ("from_state", "to_state"), [("new", "superseded"), ("superseded", "quarantined"), ("gone", "active")]
)
def test_an_illegal_move_of_state_is_refused(heart: Heart, database: Database, from_state: str, to_state: str) -> None:
    fact = heart.learn("The api is deployed on Fridays").memory

    with pytest.raises(Refused) as refused, database.transaction("aria") as connection:
        connection.execute(INSERT_EVENT, ["aria", fact.id, from_state, to_state, 2])

    assert isinstance(refused.value.__cause__, psycopg.errors.ForeignKeyViolation)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("state = 'superseded'", "superseded_has_a_successor"),
        ("state = 'archived'", "archived_says_when"),
        ("state = 'superseded', superseded_by = id, superseded_at = now()", "not_its_own_successor"),
        ("valid_from = now(), valid_to = now() - interval '1 day'", "valid_interval"),
        ("confidence = 1.5", "facts_confidence_check"),
        ("rank_weight = 100", "facts_rank_weight_check"),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(
    heart: Heart, owner: psycopg.Connection, change: str, rule: str
) -> None:
    heart.learn("The api is deployed on Fridays")

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        owner.execute(SQL("update heart.facts set " + change))  # noqa: S608 (the changes above)

    assert refused.value.diag.constraint_name == rule


def test_a_successor_belongs_to_the_same_agent(heart: Heart, ben: Heart, owner: psycopg.Connection) -> None:
    heart.learn("Aria likes tea")
    foreign: UUID = ben.learn("Ben likes coffee").memory.id

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        owner.execute(
            "update heart.facts set state = 'superseded', superseded_by = %s, superseded_at = now(), "
            "succession = 'replaced' "
            "where agent_id = 'aria'",
            [foreign],
        )


def test_the_agent_of_one_call_does_not_leak_to_the_next_borrower(database_url: str) -> None:
    narrow = Database(database_url, max_connections=1)
    with narrow.transaction("aria") as connection:
        first = connection.execute("select pg_backend_pid(), heart.current_agent()").fetchone()

    with narrow._pool.connection() as bare:
        second = bare.execute("select pg_backend_pid(), heart.current_agent()").fetchone()
        rest = bare.execute("select current_user, current_setting('statement_timeout')").fetchone()
    narrow.close()

    assert first is not None
    assert first[1] == "aria"
    assert second == (first[0], None)
    assert rest == ("nous_app", "0")


def test_a_call_that_failed_leaves_no_agent_behind(database_url: str) -> None:
    narrow = Database(database_url, max_connections=1)

    with pytest.raises(Refused), narrow.transaction("aria") as connection:
        connection.execute("select policy from lifecycle.plans")
    with narrow._pool.connection() as bare:
        outside = bare.execute("select heart.current_agent()").fetchone()
    narrow.close()

    assert outside == (None,)


def test_the_night_sees_every_agent(heart: Heart, ben: Heart, database_url: str) -> None:
    heart.learn("Aria likes tea")
    ben.learn("Ben likes coffee")

    night = Database(database_url, role="nous_night")
    with night.transaction(None) as connection:
        agents = connection.execute("select agent_id from heart.facts order by 1").fetchall()
    night.close()

    assert agents == [("aria",), ("ben",)]


def test_a_night_event_names_its_night_and_its_proposal(heart: Heart, owner: psycopg.Connection) -> None:
    fact = heart.learn("The api is deployed on Fridays").memory

    with pytest.raises(psycopg.errors.CheckViolation, match="a_night_names_its_proposal"):
        owner.execute(
            INSERT_EVENT.replace("'agent', 'by hand'", "'night', 'by hand'"), ["aria", fact.id, "active", "active", 2]
        )


def test_filtered_vector_searches_keep_scanning_until_they_are_full(database: Database) -> None:
    """Read back from the extension's own registry: a misspelt setting is silently off."""
    with database.transaction("aria") as connection:
        connection.execute("select '[1]'::vector <-> '[2]'::vector")
        setting = connection.execute(
            "select setting, vartype from pg_settings where name = 'hnsw.iterative_scan'"
        ).fetchone()

    assert setting == ("strict_order", "enum")


def test_an_owner_without_special_rights_prepares_and_serves_a_database(server: postgres.Server) -> None:
    """Row-level security is forced on the owner, too; references and triggers must not stumble over it."""
    name = f"owner_{uuid4().hex[:8]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as admin:
        admin.execute(SQL("create role {} login password 'x'").format(Identifier(name)))
        admin.execute(SQL("grant nous_app, nous_night, nous_purge to {}").format(Identifier(name)))
        admin.execute(SQL("create database {} owner {}").format(Identifier(name), Identifier(name)))
    with psycopg.connect(server.dsn(name), autocommit=True) as admin:
        admin.execute("create extension vector")  # the one thing that takes a superuser
    url = re.sub(r"//.*@", f"//{name}:x@", server.dsn(name))

    database = Database(url)
    heart = Heart.open("aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
    actions = [heart.learn("Tea helps").action, heart.learn("Tea helps").action]
    database.close()
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as admin:
        admin.execute(SQL("drop database {} with (force)").format(Identifier(name)))
        admin.execute(SQL("drop role {}").format(Identifier(name)))
    assert actions == ["stored", "confirmed"]
