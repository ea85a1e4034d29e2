"""The self-test of row-level security: each property is broken for real, and the database refuses to serve agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from examples import examples
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as drawing
from hypothesis import strategies as st
from rows_of_agents import (
    HASHED,
    ON_VIEWS,
    OUTWARD,
    RLS_REFUSAL,
    SHARED,
    WAYS,
    AgentTable,
    Attempt,
    agent_tables,
    as_calls_log_in,
    bare_policies,
    rows_of,
    seed,
    tried,
)

from nous_online.core.errors import NotIsolated, NousError
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.database.schema import find_isolation_gaps
from nous_online.heart import Heart
from nous_online.interfaces import doctor

LONGEST_S = 0.003
PATIENCE_S = 20.0
"""How long a lull of a busy machine is waited for, in which it can be told how long something takes."""


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
    "lifecycle.tombstones has no policy one_agent": "alter policy one_agent on lifecycle.tombstones using (true)",
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
        openings = find_isolation_gaps(connection)

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

        def is_quick() -> bool:
            bare = min(seconds(connection, list) for _ in range(5))
            return seconds(connection, lambda: find_isolation_gaps(connection)) < max(LONGEST_S, 40 * bare)

        # A machine that is busy makes some of them slow, a slow query makes all of them so.
        until = time.monotonic() + PATIENCE_S
        while not (was_quick := is_quick()) and time.monotonic() < until:
            time.sleep(0.02)
        assert was_quick


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


# --- the property: whatever two agents try on whichever table, by the policies alone ---

AGENTS = ("aria", "boris")
ATTEMPTS = st.lists(
    st.tuples(st.sampled_from((*AGENTS, "")), st.integers(0), st.sampled_from(list(WAYS)), st.sampled_from(AGENTS)),
    min_size=12,
    max_size=24,
)
"""Who tries (an agent, or nobody), on which table by its place in the catalogue, what, and whose rows are aimed at."""


@pytest.fixture
def tables(owner: psycopg.Connection) -> list[AgentTable]:
    """Every table of agents, guarded by its policies and by nothing else."""
    found = agent_tables(owner)
    bare_policies(owner, found)
    return found


def require_apart(owner: psycopg.Connection, calls: psycopg.Connection, attempt: Attempt) -> None:
    """Try it, and fail if it sees, changes, locks or leaves anything but rows of whoever tries."""
    table, actor = attempt.table, attempt.actor
    before = rows_of(owner, table)

    reached = tried(calls, attempt)

    after = rows_of(owner, table)
    own_count = len(before.pop(actor, ()))
    after.pop(actor, None)
    assert after == before, attempt
    if isinstance(reached, list):
        is_aimed_elsewhere = attempt.aim != actor and not attempt.way.endswith("all") and attempt.way not in OUTWARD
        wanted = 1 if attempt.way == "insert" else 0 if is_aimed_elsewhere else own_count
        assert reached == [actor] * wanted, attempt
        assert not (wanted and attempt.way in OUTWARD and attempt.aim != actor), attempt
    elif attempt.way == "truncate":
        assert "permission denied" in reached, attempt
    else:
        assert attempt.way in OUTWARD, (attempt, reached)
        assert (RLS_REFUSAL if attempt.aim != actor else "unique") in reached, (attempt, reached)


def attempts_on(table: AgentTable) -> list[Attempt]:
    """Everything that nobody and aria may try on one table, on her own rows last."""
    ways = [way for way in WAYS if not table.is_view or way in ON_VIEWS]
    aimed = [("", "aria"), ("aria", "boris"), ("aria", "aria")]
    return [Attempt(actor, table, way, aim) for actor, aim in aimed for way in ways]


def test_on_every_table_an_agent_reaches_its_own_rows_and_no_others(
    database_url: str, owner: psycopg.Connection, tables: list[AgentTable]
) -> None:
    seed(owner, tables, AGENTS)

    with as_calls_log_in(database_url) as calls:
        for attempt in (attempt for table in tables for attempt in attempts_on(table)):
            require_apart(owner, calls, attempt)


@drawing(
    max_examples=examples(12),
    deadline=None,
    phases=[Phase.generate],  # the message names the statement; a shorter sequence would take minutes to find
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(drawn=ATTEMPTS)
def test_no_sequence_of_statements_reaches_the_rows_of_another_agent(
    drawn: list[tuple[str, int, str, str]], database_url: str, owner: psycopg.Connection, tables: list[AgentTable]
) -> None:
    seed(owner, tables, AGENTS)
    attempts = [Attempt(actor, tables[place % len(tables)], way, aim) for actor, place, way, aim in drawn]

    with as_calls_log_in(database_url) as calls:
        for attempt in attempts:
            if not attempt.table.is_view or attempt.way in ON_VIEWS:
                require_apart(owner, calls, attempt)


OWN_ROWS = "(agent_id = heart.current_agent())"
BREACHES = {
    "open to all": "create policy one_agent on heart.notes using (true)",
    "written by all": f"create policy one_agent on heart.notes using {OWN_ROWS} with check (true)",
    "read by all": f"""
        create policy one_agent on heart.notes using {OWN_ROWS};
        create policy reading on heart.notes for select using (true)""",
    "no policy": "select",
    "no row-level security": "alter table heart.notes disable row level security",
}


@pytest.mark.parametrize("breach", BREACHES.values(), ids=BREACHES)
def test_the_property_fails_for_a_new_table_that_is_not_guarded(
    database_url: str, owner: psycopg.Connection, breach: str
) -> None:
    owner.execute("create table heart.notes (agent_id text not null, note text not null)")
    owner.execute("alter table heart.notes enable row level security, force row level security")
    owner.execute(breach)
    notes = [table for table in agent_tables(owner) if table.name == "notes"]
    bare_policies(owner, notes)
    seed(owner, notes, AGENTS)

    with as_calls_log_in(database_url) as calls:
        found = [attempt for attempt in attempts_on(*notes) if not is_apart(owner, calls, attempt)]

    assert found != []


def is_apart(owner: psycopg.Connection, calls: psycopg.Connection, attempt: Attempt) -> bool:
    try:
        require_apart(owner, calls, attempt)
    except AssertionError:
        return False
    return True


def test_every_table_belongs_to_agents_and_is_guarded_or_is_named_as_shared(owner: psycopg.Connection) -> None:
    found = owner.execute("""
        select n.nspname || '.' || c.relname, c.relrowsecurity and c.relforcerowsecurity from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind in ('r', 'p', 'm', 'f')
    """).fetchall()
    of_agents = {str(table) for table in agent_tables(owner) if not table.is_view}

    assert {name for name, is_guarded in found if is_guarded} == of_agents | HASHED
    assert {name for name, is_guarded in found if not is_guarded} == SHARED
