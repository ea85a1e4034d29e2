"""Learning the same thing more than once: retries, races, kills and imports, on the real database."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from multiprocessing.synchronize import Barrier
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge
from test_learn import MAY, NEW, OLD, events, opened
from twins import TWINS, Say, Twin

from nous_online.core.details import FactDetails
from nous_online.core.errors import Conflict, InvalidInput, NousError
from nous_online.database.connection import Database
from nous_online.heart import Heart


def test_a_retry_with_the_same_key_returns_the_first_answer_and_changes_nothing(
    database: Database, owner: psycopg.Connection
) -> None:
    heart = opened(database, 0.99)
    first = heart.learn(OLD, idempotency_key="k")
    before = (heart.get(first.memory.id), events(owner))

    again = heart.learn(OLD, idempotency_key="k")

    assert (again.action, again.memory.id) == (first.action, first.memory.id)
    assert (heart.get(first.memory.id), events(owner)) == before


def test_a_retry_of_a_confirmation_counts_once(database: Database) -> None:
    heart = opened(database, 0.99)
    heart.learn(OLD)

    answers = [heart.learn(NEW, idempotency_key="k") for _ in range(3)]

    assert {answer.action for answer in answers} == {"confirmed"}
    assert answers[-1].memory.confirmation_count == 1


def test_a_key_that_returns_with_another_content_is_a_conflict(database: Database) -> None:
    heart = opened(database, 0.1)
    heart.learn(OLD, idempotency_key="k")

    with pytest.raises(Conflict, match="'k'"):
        heart.learn(NEW, idempotency_key="k")

    assert heart.count() == {"active": 1}


@pytest.mark.parametrize("teachers", [2, 8])
def test_threads_that_learn_one_statement_at_once_leave_one_row(database: Database, teachers: int) -> None:
    heart = opened(database, 1.0)

    with ThreadPoolExecutor(teachers) as pool:
        answers = [pool.submit(heart.learn, OLD) for _ in range(teachers)]
    actions = sorted(answer.result().action for answer in answers)

    assert actions == ["confirmed"] * (teachers - 1) + ["stored"]
    assert heart.count() == {"active": 1}
    assert heart.learn(OLD).memory.confirmation_count == teachers


def test_threads_that_retry_one_request_at_once_change_one_row_once(database: Database) -> None:
    heart = opened(database, 1.0)

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(heart.learn, OLD, idempotency_key="k") for _ in range(4)]

    assert len({answer.result().memory.id for answer in answers}) == 1
    assert {answer.result().memory.confirmation_count for answer in answers} == {0}


def learner(url: str, texts: Iterable[str], start: Barrier) -> Twin:
    """Start a process that opens the memory, waits for the others, then learns and says so each time."""

    def learn(say: Say) -> None:
        heart = opened(Database(url), 1.0)
        start.wait(60)
        for text in texts:
            heart.learn(text, deadline_s=30)
            say("learned")

    return Twin(learn)


def test_processes_that_learn_one_statement_at_once_leave_one_row(database: Database) -> None:
    start = TWINS.Barrier(2)
    learners = [learner(database.url, [OLD] * 3, start) for _ in range(2)]

    assert [each.end() for each in learners] == [(0, ["learned"] * 3)] * 2

    heart = opened(database, 1.0)
    assert heart.count() == {"active": 1}
    assert heart.learn(OLD).memory.confirmation_count == 6


def test_a_process_killed_while_it_learns_leaves_nothing_half_written(
    database: Database, owner: psycopg.Connection
) -> None:
    other = learner(database.url, (f"statement {number}" for number in count()), TWINS.Barrier(1))
    for _ in range(5):
        assert other.hears() == "learned"

    other.process.kill()

    assert other.end()[0] == -signal.SIGKILL
    facts, born, words = owner.execute("""
        select (select count(*) from heart.facts),
               (select count(*) from lifecycle.events where action = 'learned'),
               (select count(distinct memory_id) from heart.postings)
    """).fetchone() or (0, 0, 0)
    assert facts >= 5
    assert facts == born == words
    assert opened(database, 1.0).learn(OLD).action == "stored"


def test_deferred_facts_are_stored_as_they_are(database: Database, owner: psycopg.Connection) -> None:
    judge = ScriptedJudge()
    heart = opened(database, 1.0, judge)

    stored = heart.learn_deferred([(OLD, {"learned_at": MAY}), (NEW, {}), (OLD, {})])

    assert (stored, heart.count(), judge.asked) == (3, {"active": 3}, [])
    assert {actor for *_, actor in events(owner)} == {"import"}


@pytest.mark.parametrize("entry", ["ab", ("Tea helps",), ("Tea helps", None), ("Tea helps", {}, {}), 5])
def test_an_entry_that_is_no_pair_is_refused_by_its_place_and_nothing_stored(database: Database, entry: Any) -> None:
    heart = opened(database, 1.0)

    with pytest.raises(InvalidInput, match="entry 1, counted from 0, must be a pair"):
        heart.learn_deferred([(NEW, {}), entry])

    assert heart.count() == {}


def test_deferring_again_with_the_same_keys_changes_nothing(database: Database) -> None:
    heart = opened(database, 1.0)
    entries: list[tuple[str, FactDetails]] = [(OLD, {"idempotency_key": "1"}), (NEW, {"idempotency_key": "2"})]

    first = heart.learn_deferred(entries[:1])
    second = heart.learn_deferred(entries)
    third = heart.learn_deferred(entries)

    assert (first, second, third) == (1, 1, 0)
    assert heart.count() == {"active": 2}


def test_a_key_twice_in_one_batch_is_stored_once(database: Database) -> None:
    heart = opened(database, 1.0)

    stored = heart.learn_deferred([(OLD, {"idempotency_key": "1"}), (OLD, {"idempotency_key": "1"})])

    assert (stored, heart.count()) == (1, {"active": 1})


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (("", {}), InvalidInput),
        (("late", {"confidence": 2.0}), InvalidInput),
        (("another content", {"idempotency_key": "1"}), Conflict),
    ],
)
def test_a_bad_entry_keeps_the_whole_batch_out(database: Database, last: Any, error: type[NousError]) -> None:
    heart = opened(database, 1.0)

    with pytest.raises(error):
        heart.learn_deferred([(OLD, {"idempotency_key": "1"}), (NEW, {}), last])

    assert heart.count() == {}


def test_deferring_nothing_is_no_mistake(heart: Heart) -> None:
    assert heart.learn_deferred([]) == 0
