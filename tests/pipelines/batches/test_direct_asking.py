"""A night that asks a model without batches: bounded, within its budget, and whatever fails is asked again later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from batch_answers import answer_json, answering, is_canary, shown_texts
from batch_life import AT_NINE, CATS, FISH, NIGHT, NINE, VERDICTS, verdicts_in, wanted_of
from conftest import WordEmbedder
from night_runs import remember
from openai_server import LocalOpenAI
from transcripts import TRANSCRIPT

from benchmarks.anthropic_server import Play
from benchmarks.anthropic_server.answers import answer as honest_answer
from nous_online.core.errors import Unavailable, Unsupported
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.interfaces.doctor import look_at_model
from nous_online.language.claude.chat import Chat
from nous_online.language.claude.judge import CANARIES, ModelJudge, judge_factory
from nous_online.language.claude.model_writer import ModelWriter, writer_factory
from nous_online.language.claude.replies import Failure
from nous_online.language.claude.spending import Spent
from nous_online.language.pairs.judging import JudgedStatement, Pair, Verdict
from nous_online.language.writing.writer import EndedEpisode
from nous_pipelines.batches.batch_requests import Models
from nous_pipelines.batches.second_judge import AT_ONCE, Asker, SecondJudge, SentBatches

MODEL = "qwen3"
PAIRS = 3


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalOpenAI]:
    """A server the environment names, which is right about every canary."""
    with LocalOpenAI(names=(MODEL,), answer=answering(VERDICTS)) as server:
        monkeypatch.setenv("NOUS_LLM", f"openai:{MODEL}")
        monkeypatch.setenv("NOUS_LLM_URL", server.url)
        settings.cache_clear()
        Chat(base_url=server.url).open()
        yield server
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def night(database_url: str, heart) -> Iterator[Database]:
    """The database as the night, with four facts of one agent: three pairs to ask about."""
    remember(heart, NINE, AT_NINE, FISH, CATS)
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


def ask(night: Database, api: LocalOpenAI, *, limit_usd: float = 5.0) -> SentBatches:
    wanted = [wanted_of(night, limit_usd=limit_usd)]
    return Asker(night, Chat(base_url=api.url), NIGHT, Models(MODEL, MODEL)).ask(wanted)


def test_verdicts_are_stored_at_once_and_never_asked_for_again(night, api, owner):
    sent = SecondJudge.of(settings()).send(night, [wanted_of(night)], night=NIGHT)
    asked = len(api.asked())
    again = ask(night, api)

    assert (sent.pairs, sent.requests, sent.obstacles, sent.warnings) == (PAIRS, PAIRS + len(CANARIES), [], [])
    assert verdicts_in(owner, models=[MODEL]) == ["compatible", "same", "same"]
    assert asked == len(CANARIES) + PAIRS + 2, "two of them would retire a memory"
    assert (again.pairs, len(api.asked())) == (0, asked)


def test_every_request_is_metered_under_the_night_and_costs_nothing(night, api, owner):
    ask(night, api)

    rows = owner.execute("select night, model, is_batch, cost_usd from heart.llm_requests").fetchall()
    assert rows == [(NIGHT, MODEL, False, 0)] * len(api.asked())


def test_a_model_that_is_wrong_about_a_canary_is_asked_nothing(night, api, owner):
    api.answer_with(lambda _request: answer_json("same", later="b"))

    sent = ask(night, api)

    assert (sent.pairs, verdicts_in(owner, models=[MODEL])) == (0, [])
    assert "nothing was asked of qwen3: “" in sent.obstacles[0]
    assert "whose answer is known" in sent.obstacles[0]
    assert all(map(is_canary, api.asked()))


@pytest.mark.parametrize(
    "play",
    [
        Play(status=503, headers={"x-should-retry": "false"}),
        Play(status=401),
        Play(status=429, error="insufficient_quota"),
        Play(is_lost=True),
        Play(body=b"<html>"),
    ],
    ids=str,
)
def test_what_fails_is_told_and_asked_again_by_the_next_night(night, api, owner, play):
    api.play_always(play)
    failed = ask(night, api)
    api.stop_playing()

    later = ask(night, api)

    assert failed.obstacles
    assert failed.pairs == 0
    assert (later.pairs, later.obstacles) == (PAIRS, [])
    assert verdicts_in(owner, models=[MODEL]) == ["compatible", "same", "same"]


def test_a_failure_in_the_middle_loses_nothing_that_was_answered(night, api, owner):
    is_about_cats = lambda request: "messages" in request and CATS in shown_texts(request)  # noqa: E731
    api.play_always(Play(status=500, headers={"x-should-retry": "false"}), when=is_about_cats)
    first = ask(night, api)
    api.stop_playing()

    second = ask(night, api)

    assert (first.pairs, second.pairs) == (PAIRS - 1, 1)
    assert "answered 500" in first.obstacles[0]


@pytest.mark.parametrize("text", ["Both are the same.", json.dumps({"verdicts": []}), answer_json("delete")])
def test_a_pair_it_never_answers_is_asked_alone_and_then_kept_as_unsure(night, api, owner, text):
    api.play_always(Play(text=text), when=lambda request: "messages" in request and CATS in shown_texts(request))

    sent = ask(night, api)

    assert sent.pairs == PAIRS
    assert verdicts_in(owner, models=[MODEL]) == ["compatible", "same", "unsure"]
    assert ask(night, api).pairs == 0


def test_no_more_questions_are_under_way_than_are_allowed(night, api):
    api.play_always(Play(delay_s=0.3))

    ask(night, api)

    arrivals = sorted(request.at for request in api.requests)
    assert (arrivals[AT_ONCE] - arrivals[0]).total_seconds() >= 0.3


def test_a_price_of_ones_own_makes_the_budget_hold(night, api, monkeypatch, tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text(f"[models.{MODEL}]\ninput = 500\noutput = 500\ncache_read = 500\ncache_write = 500\n")
    monkeypatch.setenv("NOUS_PRICES", str(prices))
    settings.cache_clear()

    sent = ask(night, api, limit_usd=1.0)

    assert (sent.pairs, sent.held_back, api.asked()) == (0, {"aria": PAIRS}, [])


def test_a_model_elsewhere_of_unknown_price_is_told_to_be_unlimited(monkeypatch):
    monkeypatch.setenv("NOUS_LLM", "openai:gpt-6")
    settings.cache_clear()

    (told,) = SecondJudge(settings()).unpriced()

    assert "no price is known for gpt-6, so it counts as 0 and max_cost_usd does not limit it" in told
    settings.cache_clear()


def test_by_day_it_judges_and_writes_as_claude_does(api):
    spent = list[Spent]()
    api.answer_with(honest_answer)
    judge, writer = judge_factory(None)(spent.append), writer_factory(None, WordEmbedder())(spent.append)

    (judgement,) = judge.judge([Pair(JudgedStatement("Backups are kept"), JudgedStatement("Backups are kept."), 0.99)])
    draft = writer.write(EndedEpisode(TRANSCRIPT, participants=["Ada", "Basil"], outcome="failure"))

    assert isinstance(judge, ModelJudge)
    assert isinstance(writer, ModelWriter)
    assert (judgement.verdict, judgement.model) == (Verdict.SAME, MODEL)
    assert draft.writer.startswith(MODEL)
    assert {each.purpose for each in spent} == {"judge", "write"}


def test_while_its_package_is_being_loaded_the_offline_judge_answers(api):
    judge = judge_factory(None)(lambda _spent: None)
    closed = replace(judge, client=Chat(base_url=api.url))

    (judgement,) = closed.judge(
        [Pair(JudgedStatement("Ana speaks French"), JudgedStatement("Ana plays the piano"), 0.5)]
    )

    assert judgement.model.startswith("offline:")
    assert api.requests == []


def test_the_doctor_says_which_models_the_server_has(api, monkeypatch):
    assert look_at_model().startswith(f"{MODEL} at 127.0.0.1")
    monkeypatch.setenv("NOUS_LLM", "openai:missing")
    settings.cache_clear()

    with pytest.raises(Unsupported, match=f"does not name the model missing; set NOUS_LLM to one of {MODEL}"):
        look_at_model()


def test_a_server_that_is_down_is_an_outage_like_any_other(api):
    api.play_always(Play(is_lost=True))
    judge: Any = judge_factory(None)(lambda _spent: None)

    for _ in range(2):
        with pytest.raises(Unavailable, match=f"{Failure.TRANSIENT}|can't be reached"):
            judge.judge([Pair(JudgedStatement("a"), JudgedStatement("b"), 0.9)])
    with pytest.raises(Unavailable, match="asked again in"):
        judge.judge([Pair(JudgedStatement("a"), JudgedStatement("b"), 0.9)])
