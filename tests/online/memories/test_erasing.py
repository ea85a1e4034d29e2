"""Erasing an agent: nothing of it can be found afterwards, and nothing of the others is missing."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from click.testing import Result
from conftest import ScriptedJudge, WordEmbedder
from erased_rows import dump, insert, mentions
from psycopg.sql import SQL, Composed, Identifier
from typer.testing import CliRunner

from nous_online.core.errors import Conflict, NotFound, NousError, Refused
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.memories import erasure
from nous_online.memories.erasure import (
    AgentTable,
    Erasure,
    count_rows,
    erase_agent,
    erase_everywhere,
    purge_transaction,
)

NAME = "aria-7"
SECRETS = ("zinfandel", "kumquat", "ocelot", "xylophone", NAME)
"""Words that occur in nothing but the memories, questions and history of the agent to be erased."""
A, B = UUID(int=1), UUID(int=2)
ROWS: dict[str, dict[str, object]] = {
    "heart.episodes": {"id": A, "title": "the ocelot", "state": "open"},
    "heart.episode_artifacts": {"episode_id": A, "kind": "file", "reference": "ocelot.py"},
    "heart.completions": {"episode_id": A, "draft": '{"of": "the ocelot"}'},
    "heart.procedures": {"name": "feed the ocelot"},
    "heart.censors": {"trigger": "ocelot", "reason": "it bites"},
    "heart.working_memory": {"session_id": "s", "task": "find the ocelot"},
    "heart.term_stats": {"lexeme": "ocelot", "document_count": 1},
    "heart.corpus_stats": {
        "memory_kind": "fact", "memory_count": 1, "context_count": 1, "average_length": 1, "average_context_length": 1
    },
    "heart.word_changes": {
        "memory_kind": "fact", "memory_count": 1, "context_count": 0, "length": 1, "context_length": 0,
        "longer_count": 0, "come": ["ocelot"], "gone": [],
    },
    "heart.contradictions": {"memory_a": A, "memory_b": B, "note": "which ocelot?"},
    "heart.links": {"from_id": A, "to_id": B, "kind": "ocelot", "weight": 1},
    "heart.judgements": {
        "pair_hash": "h", "model": "m", "prompt_version": "1", "verdict": "same", "confidence": 1, "reason": "ocelots"
    },
    "heart.llm_requests": {"purpose": "judge", "model": "m", "request": '{"of": "the ocelot"}'},
    "heart.cold_texts": {"memory_id": A, "tier": "raw", "detail": "the old ocelot"},
    "heart.next_embeddings": {
        "memory_id": A, "memory_kind": "fact", "embedding_space_id": "words-64", "embedding": "[1]", "row_version": 1
    },
    "heart.outbox_cursors": {"consumer": "ocelot"},
    "brain.decisions": {"title": "keep the ocelot"},
    "lifecycle.agent_policies": {"policy": '{"of": "the ocelot"}'},
    "lifecycle.health": {"night": "2026-06-01", "figures": '{"of": "the ocelot"}'},
    "lifecycle.proposals": {
        "id": UUID(int=3), "night": "2026-06-01", "plan_hash": "own", "kind": "merge", "targets": [A], "read_set": "[]",
        "changes": "[]", "reason": "the same ocelot",
    },
    "heart.sightings": {"signal": "file:zinfandel.py", "session_id": "kumquat"},
    "heart.api_keys": {"id": "k1", "secret_sha256": "0" * 64, "name": "the xylophone's"},
    "heart.webhooks": {"url": "https://example.org/ocelot", "names": ["*"], "secret": "whsec_ocelot"},
}  # fmt: skip
"""What no verb of these tests leaves behind: a row in every table that can hold something of an agent."""
PLANS = """
    insert into lifecycle.plans (hash, night, agent_ids, policy)
    values ('own', '2026-06-01', array[%(agent_id)s], '{}'), ('shared', '2026-06-01', array[%(agent_id)s, 'ben'], '{}')
"""


@pytest.fixture
def aria(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> Heart:
    """An agent with facts of several versions, a question, and feedback."""
    heart = Heart.open(NAME, database=database, embedder=embedder, judge=judge)
    first = heart.learn("The zinfandel is in the cellar", subject="kumquat", encoded_censors=["xylophone"]).memory
    heart.learn("The zinfandel is in the cellar")
    heart.learn("The xylophone is tuned in May", context="said the ocelot", idempotency_key="ocelot")
    asked = heart.recall("where is the zinfandel?")
    heart.cite(asked.id, [first.id])
    return heart


@pytest.fixture
def ben(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> Heart:
    heart = Heart.open("ben", database=database, embedder=embedder, judge=judge)
    heart.learn("Ben likes coffee")
    heart.recall("what does Ben like?")
    return heart


def tables(owner: psycopg.Connection) -> list[AgentTable]:
    with owner.transaction():
        return erasure.tables_in_order(owner)


def rows_of(owner: psycopg.Connection, agent_id: str) -> dict[str, int]:
    return {table.name: one(owner, table.composed("count_rows"), agent_id) for table in tables(owner)}


def one(owner: psycopg.Connection, statement: Composed, agent_id: str) -> int:
    return (owner.execute(statement, {"agent_id": agent_id}).fetchone() or (0,))[0]


@pytest.fixture
def filled(aria: Heart, owner: psycopg.Connection) -> Heart:
    """The agent with a row in every table, and statistics the planner drew from them."""
    insert(owner, NAME, ROWS)
    owner.execute(PLANS, {"agent_id": NAME})
    owner.execute("analyze")
    return aria


def test_nothing_of_an_erased_agent_is_left(filled: Heart, owner: psycopg.Connection, database_url: str) -> None:
    before = dump(owner)

    erased = erase_agent(database_url, NAME, reason="asked for")

    assert {word for _, word in mentions(before, *SECRETS)} == set(SECRETS)
    assert mentions(dump(owner), *SECRETS) == set()
    assert erased.rows["heart.facts"] == 2
    assert erased.rows["lifecycle.plans"] == 2


def test_every_table_that_names_an_agent_was_emptied_of_it(
    filled: Heart, owner: psycopg.Connection, database_url: str
) -> None:
    """A new table fails here until a row of it stands in `ROWS`."""
    before = rows_of(owner, NAME)

    erased = erase_agent(database_url, NAME, reason="asked for")

    assert [name for name, count in before.items() if not count] == []
    assert erased.rows == {**before, "lifecycle.plans": 2}
    assert set(rows_of(owner, NAME).values()) == {0}


def test_a_table_nobody_thought_of_is_found_in_the_catalogue(
    aria: Heart, owner: psycopg.Connection, database_url: str
) -> None:
    owner.execute("create table heart.notes (agent_id text references heart.agents, note text)")
    owner.execute("grant select, delete, maintain on heart.notes to nous_purge")
    owner.execute("insert into heart.notes values (%s, 'the ocelot')", [NAME])

    erased = erase_agent(database_url, NAME, reason="asked for")

    assert erased.rows["heart.notes"] == 1


def test_others_keep_everything(filled: Heart, ben: Heart, owner: psycopg.Connection, database_url: str) -> None:
    before = rows_of(owner, "ben")

    erase_agent(database_url, NAME, reason="asked for")

    assert rows_of(owner, "ben") == before
    assert next(iter(ben.recall("what does Ben like?"))).content == "Ben likes coffee"
    assert owner.execute("select hash, agent_ids from lifecycle.plans").fetchall() == [("shared", ["ben"])]


def test_a_hash_stays_by_which_a_restored_backup_is_recognised(
    aria: Heart, owner: psycopg.Connection, database_url: str
) -> None:
    erase_agent(database_url, NAME, reason="asked for")

    found = owner.execute("select agent_hash, content_hash from lifecycle.tombstones").fetchall()
    words = [f"{NAME}\nfact\n{text}" for text in ("The zinfandel is in the cellar", "The xylophone is tuned in May")]
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in (NAME, *words)]
    assert sorted(found) == sorted((hashes[0], content) for content in ("", hashes[1], hashes[2]))


def test_erasing_twice_leaves_what_the_first_time_left(
    aria: Heart, owner: psycopg.Connection, database_url: str
) -> None:
    erase_agent(database_url, NAME, reason="asked for")
    left = owner.execute("select count(*) from lifecycle.tombstones").fetchone()

    again = erase_agent(database_url, NAME, reason="asked for")

    assert not again
    assert owner.execute("select count(*) from lifecycle.tombstones").fetchone() == left


def test_an_agent_erased_and_met_again_begins_anew(aria: Heart, database: Database, database_url: str) -> None:
    erase_agent(database_url, NAME, reason="asked for")

    with pytest.raises(NotFound, match="not known here"):
        aria.learn("The zinfandel is back")
    again = Heart.open(NAME, database=database, embedder=WordEmbedder(), judge=ScriptedJudge())

    assert again.count() == {}
    assert list(again.recall("zinfandel")) == []


@pytest.mark.parametrize(
    "verb",
    [
        lambda heart: heart.learn("The ocelot is here"),
        lambda heart: heart.recall("where is the ocelot?"),
        lambda heart: heart.learn_deferred([("The ocelot is there", {})]),
    ],
)
def test_a_call_at_work_is_waited_for_and_what_comes_later_leaves_nothing(
    aria: Heart, owner: psycopg.Connection, database_url: str, verb: Callable[[Heart], object]
) -> None:
    """The call holds a transaction open while the erasing begins; another begins meanwhile."""
    outcomes: list[object] = []
    eraser = threading.Thread(target=lambda: outcomes.append(erase_agent(database_url, NAME, reason="asked for")))
    late = threading.Thread(target=lambda: outcomes.append(outcome_of(verb, aria)))
    with aria.agent.transaction(aria.agent.deadline(20)) as connection:
        connection.execute("insert into heart.term_stats values (%s, 'ocelot', 1)", [NAME])
        eraser.start()
        wait_for_waiting(owner, 1)
        late.start()
        wait_for_waiting(owner, 2)
        was_waiting = eraser.is_alive() and late.is_alive()
    eraser.join(30)
    late.join(30)

    assert was_waiting
    assert len(outcomes) == 2
    assert set(rows_of(owner, NAME).values()) == {0}


def outcome_of(verb: Callable[[Heart], object], heart: Heart) -> object:
    try:
        return verb(heart)
    except NousError as error:
        return error


def wait_for_waiting(owner: psycopg.Connection, count: int) -> None:
    """Wait until so many connections queue for an advisory lock."""
    until = time.monotonic() + 20
    waiting = """
        select count(*) from pg_locks l join pg_database d on d.oid = l.database
        where l.locktype = 'advisory' and not l.granted and d.datname = current_database()"""
    while owner.execute(waiting).fetchone() < (count,):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_night_at_work_for_too_long_keeps_the_agent(
    aria: Heart, owner: psycopg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "WAIT_S", 1)
    before = rows_of(owner, NAME)

    with owner.transaction():
        owner.execute("select pg_advisory_xact_lock(hashtextextended('night:' || %s, 0))", [NAME])
        with pytest.raises(Conflict, match="a night or a call has been at work"):
            erase_agent(database_url, NAME, reason="asked for")

    assert rows_of(owner, NAME) == before


def test_an_agent_cannot_erase_itself(aria: Heart, database: Database) -> None:
    for table in ("heart.facts", "heart.agents", "lifecycle.events"):
        with pytest.raises(Refused), database.transaction(NAME) as connection:
            connection.execute(SQL("delete from {}").format(Identifier(*table.split("."))))

    assert not [name for name in dir(aria) if "erase" in name]


def test_copies_are_erased_before_and_after_the_rows(aria: Heart, database_url: str) -> None:
    seen: list[tuple[bool, dict[str, int]]] = []

    def eraser(erasure: Erasure) -> dict[str, int]:
        with purge_transaction(database_url) as connection:
            seen.append(("The zinfandel is in the cellar" in erasure.quotations, count_rows(connection, NAME)))
        return {"copies": 1}

    erased = erase_everywhere(database_url, NAME, reason="asked for", erasers=[eraser])

    assert [knows_the_words for knows_the_words, _ in seen] == [True, True]
    assert (bool(seen[0][1]), bool(seen[1][1])) == (True, False)
    assert erased.copies == {"copies": 2}


def test_erasing_an_agent_nobody_knows_is_refused(database_url: str) -> None:
    with pytest.raises(NotFound, match="agent 'nobody' is not known"):
        erase_everywhere(database_url, "nobody", reason="asked for", erasers=[])


# --- the command ---


@pytest.fixture
def nous(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(erasure, "installed_erasers", list)
    settings.cache_clear()
    yield lambda *arguments, **options: CliRunner().invoke(application(), arguments, **options)
    settings.cache_clear()


def test_a_dry_run_says_what_would_go_and_changes_nothing(
    aria: Heart, owner: psycopg.Connection, nous: Callable[..., Result]
) -> None:
    before = rows_of(owner, NAME)

    said = json.loads(nous("erase", NAME, "--dry-run", "--json").stdout)

    assert said["is_dry_run"] is True
    assert said["rows"] == {name: count for name, count in before.items() if count}
    assert rows_of(owner, NAME) == before


def test_the_command_asks_before_it_erases(aria: Heart, owner: psycopg.Connection, nous: Callable[..., Result]) -> None:
    before = rows_of(owner, NAME)

    refused = nous("erase", NAME, input="n\n")
    kept = rows_of(owner, NAME)
    agreed = nous("erase", NAME, input="y\n")

    assert (refused.exit_code, agreed.exit_code) == (1, 0)
    assert kept == before
    assert "rows erased" in agreed.stdout
    assert set(rows_of(owner, NAME).values()) == {0}


def test_a_machine_must_say_that_it_means_it(aria: Heart, nous: Callable[..., Result]) -> None:
    asked = nous("erase", NAME, "--json")
    done = nous("erase", NAME, "--json", "--yes")

    assert json.loads(asked.stdout)["error"]["kind"] == "InvalidInput"
    assert json.loads(done.stdout)["rows"]["heart.facts"] == 2
    assert aria.count() == {}


def test_the_help_says_what_is_not_erased(nous: Callable[..., Result]) -> None:
    said = " ".join(nous("erase", "--help").stdout.replace("│", "").split())

    assert "Not erased: backups and the server's write-ahead log" in said
