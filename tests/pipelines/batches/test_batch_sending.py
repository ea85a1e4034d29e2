"""What is sent, once and for no more than it may cost, whatever happens between two looks at what is open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from batch_answers import MODEL, answer_json, answering, is_canary
from batch_life import AT_NINE, CATS, FISH, MODELS, NIGHT, NINE, VERDICTS, bring_home, send_all, states, wanted_of
from conftest import ScriptedJudge, WordEmbedder
from night_runs import remember

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from nous_online.core.settings import Settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.claude.client import Claude
from nous_pipelines import failpoints
from nous_pipelines.batches import second_judge as judging
from nous_pipelines.batches.batch_requests import Models
from nous_pipelines.batches.second_judge import SecondJudge, Sender, agent_figures


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def night(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


@pytest.fixture
def ben(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> Heart:
    return Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False)


@pytest.fixture
def facts(heart: Heart) -> None:
    """Four facts of one agent: three pairs to ask about."""
    remember(heart, NINE, AT_NINE, FISH, CATS)


@pytest.mark.usefixtures("facts")
def test_a_batch_that_comes_home_between_two_looks_at_what_is_open_is_not_paid_twice(night, api, tmp_path, monkeypatch):
    send_all(night, api.url)
    done: list[int] = []

    def then_home(look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*given: Any) -> Any:
            found = look(*given)
            if not done:
                done.append(bring_home(night, api.url, tmp_path).imported)
            return found

        return looked

    for name in ("answered_pairs", "open_pairs", "prior_attempts"):
        monkeypatch.setattr(judging, name, then_home(getattr(judging, name)))
    again = agent_figures(night, wanted_of(night), night=NIGHT, models=MODELS)

    assert (done, again.pairs) == ([1], 0)


@pytest.mark.usefixtures("facts")
@pytest.mark.parametrize("status", [429, 529])
def test_a_batch_that_was_turned_away_is_asked_for_again_at_once(night, api, owner, status):
    api.play(Play(status=status, headers={"retry-after": "1"}), route=PlayRoute.CREATE_BATCH)

    turned_away, again = send_all(night, api.url), send_all(night, api.url)

    assert (turned_away.batches, again.pairs) == (0, 3)
    assert states(owner) == ["failed", "submitted"]


# --- what one agent or model stands in the way of ---


@pytest.mark.usefixtures("facts")
def test_a_fallback_without_a_price_is_told_and_stops_nobody_else(night, api, owner, tmp_path, ben):
    remember(ben, NINE, AT_NINE)
    api.play_batches(BatchPlay(each=lambda _, request: Play(stop_reason=None if is_canary(request) else "refusal")))
    send_all(night, api.url, "aria")
    bring_home(night, api.url, tmp_path)
    unpriced = Models(MODEL, "claude-unheard-of")
    wanted = [wanted_of(night, agent_id) for agent_id in ("aria", "ben")]

    sent = Sender(night, Claude("a-key", base_url=api.url), NIGHT, unpriced).send(wanted)

    assert (sent.batches, sent.pairs) == (1, 1)
    assert [told.partition(";")[0] for told in sent.obstacles] == [
        "no price is known for the model 'claude-unheard-of'"
    ]


@pytest.mark.usefixtures("facts")
def test_a_fallback_that_can_not_be_asked_is_found_out_before_anything_is_sent_to_it(night, api, owner, tmp_path):
    api.play_batches(BatchPlay(each=lambda _, request: Play(stop_reason=None if is_canary(request) else "refusal")))
    send_all(night, api.url)
    bring_home(night, api.url, tmp_path)
    api.play_always(Play(status=404), route=PlayRoute.GET_MODEL)

    sent = send_all(night, api.url)

    assert MODELS.fallback in sent.obstacles[0]
    assert (sent.batches, states(owner)) == (0, ["imported"])


# --- a judge that is not believed ---


def second_judge(api: LocalAnthropic, **others: str) -> SecondJudge:
    known = {"ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": api.url}
    return SecondJudge(Settings.model_validate({**known, **others}))


@pytest.mark.usefixtures("facts")
def test_a_judge_that_is_not_believed_gets_one_batch_a_night_until_it_is(night, api, tmp_path, ben):
    remember(ben, NINE, AT_NINE)
    api.answer_with(lambda _request: answer_json("same", later="b"))
    for _ in range(2):
        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)
    wanted = [wanted_of(night, agent_id) for agent_id in ("aria", "ben")]

    distrusted = second_judge(api).send(night, wanted, night=NIGHT)
    api.answer_with(answering(VERDICTS))
    bring_home(night, api.url, tmp_path)
    second_judge(api).send(night, wanted, night=NIGHT)
    bring_home(night, api.url, tmp_path)
    believed = second_judge(api).send(night, wanted, night=NIGHT)

    assert (distrusted.batches, believed.obstacles) == (1, [])
    assert "2 batches of claude-haiku-5-5 in a row were not believed" in distrusted.obstacles[0]
    assert "set NOUS_JUDGE_MODEL to another model, or NOUS_JUDGE=offline" in distrusted.obstacles[0]
    assert "at most one batch" in distrusted.obstacles[1]


@pytest.mark.usefixtures("facts")
def test_results_of_a_type_nobody_knows_are_told_by_each_night_until_one_is_understood(night, api, tmp_path):
    api.play_batches(BatchPlay(each=lambda *_: Play(outcome="postponed")), BatchPlay())
    obstacles = []

    for _ in range(3):
        bring_home(night, api.url, tmp_path)
        obstacles.append(second_judge(api).send(night, [wanted_of(night)], night=NIGHT).obstacles)

    assert (obstacles[0], obstacles[2]) == ([], [])
    assert "results of the unknown type postponed; update Nous" in obstacles[1][0]


@pytest.mark.usefixtures("facts")
def test_a_judge_without_a_price_is_not_asked(night, api):
    unpriced = second_judge(api, judge_model="claude-sonnet-4-5")

    sent = unpriced.send(night, [wanted_of(night)], night=NIGHT)

    assert "no price is known for the model 'claude-sonnet-4-5'" in sent.obstacles[0]
    assert api.asked(PlayRoute.CREATE_BATCH) == []


@pytest.mark.usefixtures("facts")
def test_what_comes_home_unbelieved_within_a_sitting_is_not_sent_again_in_it(night, api, tmp_path, monkeypatch):
    api.answer_with(lambda _request: answer_json("same", later="b"))

    def at_home_at_once(point: str) -> None:
        if point == "batch submitted" and len(api.asked(PlayRoute.CREATE_BATCH)) < 4:
            bring_home(night, api.url, tmp_path)

    monkeypatch.setattr(failpoints, "on_reach", at_home_at_once)
    sent = send_all(night, api.url)

    assert (sent.batches, sent.pairs) == (1, 3)


# --- what is told ---


@pytest.mark.usefixtures("facts")
def test_what_a_failure_keeps_from_being_sent_is_not_held_back_by_the_budget(night, api, monkeypatch):
    monkeypatch.setattr("nous_pipelines.batches.batch_requests.MOST_REQUESTS", 17)
    api.play(Play(status=503), route=PlayRoute.CREATE_BATCH)

    sent = send_all(night, api.url)

    assert (len(sent.obstacles), sent.figures["held_back"]) == (1, 0)


@pytest.mark.usefixtures("facts")
def test_a_model_that_retires_soon_is_told(night, api):
    soon = datetime.now(UTC) + timedelta(days=9)
    body = json.dumps({"id": MODEL, "lifecycle": "active", "retires_at": soon.isoformat()}).encode()
    api.play(Play(body=body), route=PlayRoute.GET_MODEL)

    sent = send_all(night, api.url)

    assert (sent.batches, sent.obstacles) == (1, [])
    assert [told for told in sent.warnings if f"retires on {soon:%Y-%m-%d}" in told] == sent.figures["warnings"] != []
