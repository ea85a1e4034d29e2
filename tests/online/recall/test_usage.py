"""What was recalled is counted: exactly, whoever asks at once, and even when the asker dies right after."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from twins import Say, Twin

from nous_online.core.errors import DeadlineExceeded, InvalidInput
from nous_online.database.connection import Database
from nous_online.heart import Heart


def counters(owner: psycopg.Connection) -> list[tuple[int, int, int]]:
    return owner.execute(
        "select retrieved_count, cited_count, ignored_count from heart.usage order by memory_id"
    ).fetchall()


@pytest.mark.skipif(os.name != "posix", reason="processes are killed with a signal")
def test_a_process_killed_right_after_its_recall_loses_nothing(
    heart: Heart, database_url: str, owner: psycopg.Connection, embedder: WordEmbedder, judge: ScriptedJudge
):
    learned = heart.learn("The harbour opens at six").memory

    def ask_and_die(say: Say) -> None:
        asker = Heart.open("aria", database=Database(database_url), embedder=embedder, judge=judge)
        say(asker.recall("harbour").id)
        os.kill(os.getpid(), signal.SIGKILL)

    code, said = Twin(ask_and_die).end()

    logged = owner.execute("select id, result_ids from heart.recalls").fetchall()
    assert code == -signal.SIGKILL
    assert logged == [(each, [learned.id]) for each in said]
    assert len(said) == 1
    assert counters(owner) == [(1, 0, 0)]


def test_recalls_and_feedback_from_many_threads_are_all_counted(heart: Heart, owner: psycopg.Connection):
    for city in ("Lima", "Oslo", "Rome"):
        heart.learn(f"The harbour of {city} opens early")

    def ask_and_say(number: int) -> None:
        found = heart.recall("harbour")
        (heart.cite if number % 2 else heart.ignore)(found.id, [each.id for each in found])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask_and_say, range(40)))

    assert counters(owner) == [(40, 20, 20)] * 3
    assert owner.execute("select count(*) from heart.recalls where cardinality(result_ids) = 3").fetchone() == (40,)


def test_saying_twice_that_an_answer_was_used_counts_once(heart: Heart, owner: psycopg.Connection):
    heart.learn("The harbour opens at six")
    found = heart.recall("harbour")

    assert heart.cite(found.id, [found[0].id]) == 1
    assert heart.cite(found.id, [found[0].id]) == 0
    assert counters(owner) == [(1, 1, 0)]


def test_a_recall_that_finds_nothing_is_logged_too(heart: Heart, owner: psycopg.Connection):
    found = heart.recall("harbour")

    assert list(found) == []
    assert owner.execute("select id, query, result_ids from heart.recalls").fetchall() == [(found.id, "harbour", [])]


def test_a_recall_that_fails_counts_nothing_and_the_next_one_works(heart: Heart, owner: psycopg.Connection):
    heart.learn("The harbour opens at six")
    with owner.transaction():
        owner.execute("lock table heart.usage in exclusive mode")
        with pytest.raises(DeadlineExceeded):
            heart.recall("harbour", deadline_s=0.3)

    assert (counters(owner), owner.execute("select count(*) from heart.recalls").fetchone()) == ([], (0,))
    assert len(heart.recall("harbour")) == 1
    assert counters(owner) == [(1, 0, 0)]


@pytest.mark.parametrize("options", [{"is_pipelined": True}, {}])
@pytest.mark.parametrize("failing", ["select 1 / 0", "select * from heart.absent", None])
def test_a_transaction_that_fails_leaves_nothing_behind_and_the_connection_usable(
    database: Database, failing: str | None, options: dict[str, bool]
):
    def write_and_fail() -> None:
        with database.transaction("aria", **options) as connection:
            connection.execute("select set_config('nous.mark', 'left behind', false)")
            connection.execute(failing or "select 1")  # type: ignore[arg-type]
            raise InvalidInput("enough")

    raises_any(write_and_fail)

    with database.transaction("aria", **options) as connection:
        row = connection.execute("select coalesce(current_setting('nous.mark', true), '')").fetchone()
    assert row == ("",)


def test_a_transaction_whose_last_statement_fails_unseen_is_not_committed(database: Database):
    def write_and_fail() -> None:
        with database.transaction("aria", is_pipelined=True) as connection:
            connection.execute("select set_config('nous.mark', 'left behind', false)")
            connection.execute("select 1 / 0")

    raises_any(write_and_fail)

    with database.transaction("aria", is_pipelined=True) as connection:
        row = connection.execute("select coalesce(current_setting('nous.mark', true), '')").fetchone()
    assert row == ("",)


def raises_any(act: Callable[[], None]) -> None:
    with pytest.raises(Exception, match=r"enough|zero|absent|failed|incomplete|hold"):
        act()


def test_a_recall_waits_for_no_disk_and_other_verbs_do(heart: Heart, database: Database):
    with database.transaction("aria") as connection:
        usual = connection.execute("show synchronous_commit").fetchone()
    heart.recall("harbour")
    with database.transaction("aria") as connection:
        afterwards = connection.execute("show synchronous_commit").fetchone()

    assert usual == afterwards == ("on",)
