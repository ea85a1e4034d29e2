"""The self-test of row-level security: each property is broken for real, and the database refuses to serve agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.core.errors import NotIsolated, NousError
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.database.isolation import find_openings
from nous_online.heart import Heart
from nous_online.interfaces import doctor

LONGEST_S = 0.003


@pytest.fixture
def role(server, owner: psycopg.Connection) -> Iterator[str]:
    """The role of agents; roles belong to the server, so what a test gave it is taken back."""
    yield "nous_app"
    owner.execute("alter role nous_app nosuperuser nobypassrls")


OPENINGS = {
    "heart.facts has row-level security off": "alter table heart.facts disable row level security",
    "brain.decisions does not force row-level security": "alter table brain.decisions no force row level security",
    "role nous_app owns heart.recalls": "alter table heart.recalls owner to nous_app",
    "heart.usage has no policy one_agent": "drop policy one_agent on heart.usage",
    "lifecycle.events has no policy one_agent": "alter policy one_agent on lifecycle.events with check (true)",
    "heart.agents has no policy one_agent": "alter policy one_agent on heart.agents using (true)",
    "policy everything on heart.requests opens it": "create policy everything on heart.requests using (1=1)",
    "view heart.memories reads with the rights of its owner": "alter view heart.memories reset (security_invoker)",
    "function heart.current_agent() runs with the rights of": "alter function heart.current_agent() security definer",
    "a new table heart.notes has row-level security off": "create table heart.notes (agent_id text, note text)",
}


@pytest.mark.parametrize(("opening", "breach"), OPENINGS.items())
def test_a_database_that_does_not_keep_agents_apart_is_not_served(
    heart: Heart, database_url: str, owner: psycopg.Connection, opening: str, breach: str
) -> None:
    heart.learn("Aria likes tea")
    owner.execute(breach)

    with pytest.raises(NotIsolated) as refused:
        Database(database_url)

    assert opening.removeprefix("a new table ") in str(refused.value)


@pytest.mark.parametrize("right", ["bypassrls", "superuser"])
def test_a_role_that_passes_row_level_security_is_not_served(
    heart: Heart, database_url: str, owner: psycopg.Connection, role: str, right: str
) -> None:
    heart.learn("Aria likes tea")
    owner.execute(f"alter role {role} {right}")

    with pytest.raises(NotIsolated, match=f"(?i){right}.*alter role nous_app no{right}"):
        Database(database_url)


def test_the_statements_of_the_message_close_what_is_open(
    heart: Heart, database_url: str, owner: psycopg.Connection
) -> None:
    for breach in list(OPENINGS.values())[:3]:
        owner.execute(breach)
    owner.execute("alter view heart.memories reset (security_invoker)")
    with psycopg.connect(database_url, options="-c role=nous_app") as connection:
        openings = find_openings(connection)

    for each in openings:
        owner.execute(each.fix)

    assert len(openings) == 4
    Database(database_url).close()


def test_no_row_is_seen_through_a_function_that_was_replaced(
    heart: Heart, database_url: str, owner: psycopg.Connection
) -> None:
    """The policies look as they should, and yet let everything through: only the probe sees it."""
    heart.learn("Aria likes tea")
    owner.execute(
        "create or replace function heart.current_agent() returns text language sql stable as $$ select 'aria' $$"
    )

    with pytest.raises(NotIsolated, match=r"does not exist sees rows of heart\.agents"):
        Database(database_url)


def test_the_refusal_gives_the_connections_back(database_url: str, owner: psycopg.Connection) -> None:
    owner.execute("alter table heart.facts disable row level security")
    with pytest.raises(NotIsolated):
        Database(database_url)

    until = time.monotonic() + 5
    left = "select count(*) from pg_stat_activity where application_name = 'nous' and datname = current_database()"
    while owner.execute(left).fetchone() != (0,) and time.monotonic() < until:
        time.sleep(0.01)

    assert owner.execute(left).fetchone() == (0,)


def test_the_self_test_takes_a_moment(heart: Heart, database_url: str) -> None:
    heart.learn("Aria likes tea")
    with psycopg.connect(database_url, options="-c role=nous_app", autocommit=True) as connection:
        bare = min(seconds(connection, list) for _ in range(40))
        took = min(seconds(connection, lambda: find_openings(connection)) for _ in range(40))

    assert took < max(LONGEST_S, 40 * bare), f"{took * 1000:.1f} ms, an empty transaction {bare * 1000:.1f} ms"


def seconds(connection: psycopg.Connection, work: Callable[[], list[object]]) -> float:
    """How long a transaction takes in which `work` finds nothing."""
    began = time.perf_counter()
    with connection.transaction():
        assert work() == []
    return time.perf_counter() - began


def test_the_self_test_runs_once_a_database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[psycopg.Connection] = []
    monkeypatch.setattr("nous_online.database.connection.require_isolation", asked.append)

    database = Database(database_url)
    for agent_id in ("aria", "ben"):
        Heart.open(agent_id, database=database, embedder=WordEmbedder(), judge=ScriptedJudge()).learn("Tea helps")
    database.close()

    assert len(asked) == 1


def test_the_doctor_shows_what_is_open(
    database_url: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()
    kept_apart = doctor.checked("isolation", doctor.look_at_isolation)
    owner.execute("alter table heart.facts disable row level security")

    opened = doctor.checked("isolation", doctor.look_at_isolation)
    settings.cache_clear()

    assert (kept_apart.is_ok, opened.is_ok) == (True, False)
    assert "close it: alter table heart.facts enable row level security" in opened.message


def test_the_refusal_is_one_of_ours() -> None:
    assert issubclass(NotIsolated, NousError)
