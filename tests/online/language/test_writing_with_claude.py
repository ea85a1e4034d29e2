"""A closed episode while Claude writes, from the socket to the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from closed_episodes import make_due, waiting
from conftest import WordEmbedder
from test_claude_writer import FALLBACK, MILL, MODEL, SAID, says

from benchmarks.anthropic_server import LocalAnthropic, Play
from nous_online.core.deadline import WORKERS
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.queue.worker import open_staff


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAnthropic]:
    """The API the environment names, with a key for it."""
    with LocalAnthropic() as local:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", local.url)
        settings.cache_clear()
        yield local
    monkeypatch.undo()
    settings.cache_clear()


def closed(database: Database) -> Heart:
    """The heart of an agent that has just closed an episode; it writes with whom the environment names."""
    heart = Heart.open("aria", database=database, embedder=WordEmbedder(), works_in_background=False)
    heart.record_episode(MILL, outcome="failure")
    return heart


def requests(owner: psycopg.Connection) -> list[tuple[Any, ...]]:
    return owner.execute(
        "select agent_id, purpose, model, state, input_tokens > 0 and cost_usd > 0 from heart.llm_requests "
        "where purpose = 'write' order by created_at, id"
    ).fetchall()


def completed_by(owner: psycopg.Connection) -> list[str]:
    found = owner.execute("select reason from lifecycle.events where action = 'completed' order by id").fetchall()
    return [reason for (reason,) in found]


def test_a_closed_episode_is_written_by_claude_and_paid_for_by_its_agent(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection
):
    named.play(says())

    worked = closed(database).work()

    told = owner.execute("select title, summary, compressed, index_word from heart.episodes").fetchone()
    assert worked.completed == 1
    assert told == (SAID["title"], SAID["summary"], SAID["line"], "mill-wheel")
    assert completed_by(owner) == [f"drawn by {MODEL}"]
    assert requests(owner) == [("aria", "write", MODEL, "imported", True)]
    learned = owner.execute("select content from heart.facts order by content").fetchall()
    assert learned == [(each["content"],) for each in reversed(SAID["facts"])]
    assert owner.execute("select trigger, severity from heart.censors").fetchall() == [
        ("rebuild the wheel in larch", "warn")
    ]


def test_a_refusal_by_both_models_completes_the_episode_offline(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection
):
    named.play(*[Play(stop_reason="refusal")] * 2)

    assert closed(database).work().completed == 1
    assert completed_by(owner) == [f"drawn by offline:lexrank ({MODEL}: refused)"]
    assert [row[2:4] for row in requests(owner)] == [(MODEL, "failed"), (FALLBACK, "failed")]


def test_while_claude_is_down_the_episode_waits_and_is_then_completed(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection
):
    named.play(*[Play(status=529)] * 3)
    heart = closed(database)

    assert heart.work().completed == 0
    attempts, wait_s, error = waiting(owner) or (0, 0.0, None)
    assert (attempts, wait_s > 5) == (1, True)
    assert "529" in (error or "")

    make_due(owner)
    named.stop_playing()
    named.play(says())
    assert heart.work().completed == 1
    assert completed_by(owner) == [f"drawn by {MODEL}"]


def test_a_worker_for_all_agents_writes_for_each_at_its_own_cost(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection
):
    closed(database)

    with open_staff(database.url, embedder=WordEmbedder()) as opened:
        assert opened.look().completed == 1

    assert [row[:2] for row in requests(owner)] == [("aria", "write")]


def test_without_a_key_nothing_is_asked(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    settings.cache_clear()

    assert closed(database).work().completed == 1
    assert completed_by(owner) == ["drawn by offline:lexrank"]
    assert (named.requests, requests(owner)) == ([], [])


def test_who_asked_for_the_offline_judge_is_written_for_offline(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NOUS_JUDGE", "offline")
    settings.cache_clear()

    assert closed(database).work().completed == 1
    assert named.requests == []
    assert completed_by(owner) == ["drawn by offline:lexrank"]


def test_an_answer_that_came_too_late_is_not_paid_for_twice(
    named: LocalAnthropic, database: Database, owner: psycopg.Connection
):
    named.play(Play(text=says().text, delay_s=3.0))
    heart = closed(database)

    assert heart.work(deadline_s=2.0).completed == 0
    while WORKERS.is_any_busy():
        time.sleep(0.1)
    make_due(owner)
    assert heart.work().completed == 1
    assert len(requests(owner)) == 1
    assert completed_by(owner) == [f"drawn by {MODEL}"]
