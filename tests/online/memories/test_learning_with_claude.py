"""Learning while Claude judges, from the socket to the database: whatever it says or fails to say, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anthropic  # noqa: F401 (what is loaded already is open at once)
import psycopg
import pytest
from conftest import ScriptedWriter, WordEmbedder
from stopwatch import stopwatch
from test_claude_judge import later, says
from test_learn import JUNE, MAY, NEW, OLD, TableEmbedder

from benchmarks.anthropic_server import LocalAnthropic, Play
from benchmarks.anthropic_server.answers import pairs_in
from nous_online.core.errors import InvalidInput
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.claude.pair_prompt import PROMPT_VERSION
from nous_online.language.claude.replies import Request
from nous_online.language.pairs.judging import JudgedStatement, Pair
from nous_online.queue.worker import open_staff

DEADLINE_S = 10.0
CLAUDE_DEADLINE_S = 3.0


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAnthropic]:
    """The API the environment names, with a key for it."""
    with LocalAnthropic(answer=says("compatible")) as local:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", local.url)
        monkeypatch.setenv("NOUS_CLAUDE_DEADLINE_S", str(CLAUDE_DEADLINE_S))
        settings.cache_clear()
        yield local
    monkeypatch.undo()
    settings.cache_clear()


@dataclass(frozen=True)
class Case:
    """What Claude does, and what learning another wording of a fact then comes to."""

    name: str
    does: Play
    action: str = "stored"
    active: int = 2
    contradictions: int = 0
    trust: int = 50


def answers(verdict: str, **more: Any) -> Play:
    return Play(text=says(verdict, **more))


def first_order_only(request: Request) -> str:
    """A model that is led by the order it is shown two statements in."""
    return says("same" if later(pairs_in(request)[0]) == "b" else "compatible")(request)


CASES = (
    Case("says same", answers("same"), action="confirmed", active=1),
    Case("says same in one order", Play(text=first_order_only)),
    Case("says updates", answers("updates"), action="superseded", active=1),
    Case("says updates of what is trusted more", answers("updates"), contradictions=1, trust=49),
    Case("says updates the wrong way round", answers("updates", later="a")),
    Case("says contradicts", answers("contradicts"), contradictions=1),
    Case("says compatible", answers("compatible")),
    Case("says unsure", answers("unsure")),
    Case("says something", Play(text="Happy to help! They are the same.")),
    Case("says a verdict of its own", answers("delete")),
    Case("says it and more", answers("same", also="delete everything")),
    Case("refuses", Play(stop_reason="refusal")),
    Case("is cut short", Play(stop_reason="max_tokens")),
    Case("is slow", Play(delay_s=60)),
    Case("drips", Play(drip=5)),
    Case("stops in the middle", Play(stall_at=40)),
    Case("hangs up", Play(is_lost=True)),
    Case("hangs up in the middle", Play(cut_at=40)),
    Case("is overloaded", Play(status=529, headers={"retry-after": "86400"})),
    Case("is down", Play(status=503)),
    Case("is something else", Play(body=b"<html>It works!</html>")),
    Case("knows no such key", Play(status=401)),
    Case("knows no such model", Play(status=404)),
    Case("is paid no longer", Play(status=402)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_whatever_claude_does_nothing_is_lost_and_learning_ends_in_time(
    database: Database, owner: psycopg.Connection, api: LocalAnthropic, case: Case
) -> None:
    api.play_always(case.does)
    with Heart.open("aria", database=database, embedder=TableEmbedder({OLD: 1.0, NEW: 0.9})) as heart:
        heart.learn(OLD, learned_at=MAY)
        took_s = stopwatch()

        learned = heart.learn(NEW, learned_at=JUNE, trust=case.trust, deadline_s=DEADLINE_S)

        assert took_s() < DEADLINE_S
        assert learned.action == case.action
        assert heart.count()["active"] == case.active
        assert len(heart.contradictions()) == case.contradictions
    kept = {content for (content,) in owner.execute("select content from heart.facts")}
    assert kept == {OLD} if case.action == "confirmed" else {OLD, NEW}


def test_every_request_is_in_the_account_of_the_agent(
    database: Database, owner: psycopg.Connection, api: LocalAnthropic
) -> None:
    api.answer_with(says("same"))
    with Heart.open("aria", database=database, embedder=TableEmbedder({OLD: 1.0, NEW: 0.9})) as heart:
        heart.learn(OLD, learned_at=MAY)
        heart.learn(NEW, learned_at=JUNE)

    rows = owner.execute(
        "select agent_id, purpose, model, prompt_version, state, is_batch, cost_usd > 0 from heart.llm_requests"
    ).fetchall()

    assert rows == [("aria", "judge", "claude-haiku-5-5", PROMPT_VERSION, "imported", False, True)] * 2


def test_no_word_of_a_memory_is_in_the_account(
    database: Database, owner: psycopg.Connection, api: LocalAnthropic
) -> None:
    api.answer_with(lambda request: json.dumps({"verdict": pairs_in(request)[0].a["text"], "reason": OLD}))
    with Heart.open("aria", database=database, embedder=TableEmbedder({OLD: 1.0, NEW: 0.9})) as heart:
        heart.learn(OLD, learned_at=MAY)
        heart.learn(NEW, learned_at=JUNE)

    rows = [str(row) for row in owner.execute("select * from heart.llm_requests")]

    assert len(rows) == 1
    assert not [row for row in rows if "Friday" in row]


def test_a_worker_lets_each_agent_pay_for_itself(
    database: Database, owner: psycopg.Connection, api: LocalAnthropic
) -> None:
    for name in ("ada", "ben"):
        Heart.open(name, database=database, embedder=WordEmbedder(), works_in_background=False)
    pair = Pair(JudgedStatement(OLD), JudgedStatement(NEW), 0.9)

    with open_staff(database.url, embedder=WordEmbedder(), writer=ScriptedWriter()) as opened:
        for name in ("ada", "ben", "ben"):
            opened.agent(name, WordEmbedder()).judge.judge([pair])

    counted = owner.execute("select agent_id, count(*) from heart.llm_requests group by 1 order by 1").fetchall()
    assert counted == [("ada", 1), ("ben", 2)]


def test_a_key_that_is_no_key_is_refused_at_once(
    database: Database, api: LocalAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-…")
    settings.cache_clear()

    with pytest.raises(InvalidInput, match="ANTHROPIC_API_KEY has no usable character at place 4"):
        Heart.open("aria", database=database, embedder=WordEmbedder())
