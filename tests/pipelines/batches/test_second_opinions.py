"""Nights with a key for Claude: what the offline judge may be wrong about is asked, waits, and counts a night later."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from batch_answers import MODEL, answer_json, answering, is_canary
from batch_life import AT_NINE, CATS, FISH, NINE, VERDICTS, rows_in, states, verdicts_in
from night_runs import NIGHT, everything, options, remember
from typer.testing import CliRunner

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from benchmarks.anthropic_server.answers import pairs_in
from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.interfaces.cli import application
from nous_pipelines.orchestration.automation import batch_results, let_go
from nous_pipelines.orchestration.running import NightOutcome, folder_of, run_night
from nous_pipelines.orchestration.unrecorded import unrecorded
from nous_pipelines.plan.night_files import NightFiles

NEXT = NIGHT + timedelta(days=1)
AFTER = NEXT + timedelta(days=1)


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with unrecorded() as one:
        yield one


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def key(api: LocalAnthropic, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment with a key for the local API."""
    known = {"NOUS_DATABASE_URL": database_url, "NOUS_HOME": str(tmp_path)}
    for name, value in {**known, "ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": api.url}.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    yield
    let_go()
    settings.cache_clear()


@pytest.fixture
def run(database_url: str, instance: dg.DagsterInstance, tmp_path: Path) -> Any:
    """Run a night of this test's database."""

    def run_it(night: date = NIGHT, **changes: Any) -> NightOutcome:
        return run_night(night, options(database_url, tmp_path, **changes), instance=instance)

    return run_it


def active(owner: psycopg.Connection) -> list[str]:
    return sorted(row[0] for row in owner.execute("select content from heart.facts where state = 'active'"))


def judged(database_url: str, home: Path, night: date) -> set[tuple[str, str, str]]:
    """Return verdict, model and reason of every pair of a night."""
    files = NightFiles(folder_of(night, options(database_url, home)))
    return set(files.read_table("judgements").select("verdict", "model", "reason").iter_rows())


def pairs_asked(api: LocalAnthropic) -> int:
    requests = [item["params"] for body in api.asked(PlayRoute.CREATE_BATCH) for item in body["requests"]]
    return sum(len(pairs_in(request)) for request in requests if not is_canary(request))


@pytest.mark.usefixtures("key")
def test_the_first_night_asks_and_the_second_acts_by_the_verdicts(heart, run, api, owner, database_url, tmp_path):
    remember(heart, NINE, AT_NINE)

    first = run()
    between = active(owner)
    waiting = judged(database_url, tmp_path, NIGHT)
    second = run(NEXT)

    assert (first.is_success, first.failures, second.is_success, second.failures) == (True, (), True, ())
    assert (between, waiting) == (sorted([NINE, AT_NINE]), {("unsure", "none", f"waits for {MODEL}")})
    assert judged(database_url, tmp_path, NEXT) == {("same", MODEL, "So says the test.")}
    assert len(active(owner)) == 1
    assert (len(api.asked(PlayRoute.CREATE_BATCH)), states(owner)) == (1, ["imported"])


@pytest.mark.usefixtures("key")
def test_a_night_run_again_asks_nothing_again(heart, run, api, owner):
    remember(heart, NINE, AT_NINE)
    run()
    run(NEXT)
    before = everything(owner)

    again = run(NEXT)

    assert again.is_success
    assert everything(owner) == before
    assert len(api.asked(PlayRoute.CREATE_BATCH)) == 1


@pytest.mark.usefixtures("key")
def test_a_past_night_run_again_after_its_verdicts_came_home_acts_by_them(heart, run, api, owner):
    remember(heart, NINE, AT_NINE)
    first = run()
    batch_results()

    again = run()

    assert (first.report.counts["merges"], again.report.counts["merges"], again.failures) == (0, 1, ())
    assert len(active(owner)) == 1


def test_without_a_key_the_offline_judge_decides_alone_and_nothing_is_sent(
    heart, run, api, owner, database_url, tmp_path
):
    remember(heart, NINE, NINE, "The office opens at nine", CATS)

    outcome = run()

    assert (outcome.is_success, outcome.failures, outcome.asking) == (True, (), "")
    assert {model.partition(":")[0] for _, model, _ in judged(database_url, tmp_path, NIGHT)} <= {"offline"}
    assert (api.requests, rows_in(owner)) == ([], [])
    assert len(active(owner)) == 2


@pytest.mark.usefixtures("key")
def test_what_is_surely_compatible_is_not_asked_about(heart, run, api, owner, database_url, tmp_path):
    remember(heart, "The cat sleeps on the red sofa.", "The dog sleeps on the red sofa in the kitchen by night.")

    run(policy={"candidate_similarity": 0.5, "neighbour_similarity": 0.5})

    found = judged(database_url, tmp_path, NIGHT)
    waiting = [reason for _, model, reason in found if model == "none"]
    assert found
    assert pairs_asked(api) == len(waiting)


@pytest.mark.usefixtures("key")
def test_an_api_that_can_not_be_reached_fails_a_check_and_nothing_else(heart, run, api, owner, monkeypatch):
    remember(heart, NINE, NINE, AT_NINE)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    settings.cache_clear()

    outcome = run()

    (failure,) = outcome.failures
    assert outcome.is_success
    assert failure.startswith("check judge_batches_sent: Claude at 127.0.0.1:9 can't be reached")
    assert states(owner) == []
    assert outcome.report.counts["merges"] == 1


@pytest.mark.usefixtures("key")
def test_a_lost_answer_leaves_the_pairs_to_the_batch_that_was_made(heart, run, api, owner):
    remember(heart, NINE, AT_NINE)
    api.play(Play(is_lost=True), route=PlayRoute.CREATE_BATCH)

    first, second = run(), run(NEXT)

    assert "judge_batches_sent" in first.failures[0]
    assert (second.failures, states(owner), len(active(owner))) == ((), ["imported"], 1)
    assert len(api.asked(PlayRoute.CREATE_BATCH)) == 1


@pytest.mark.usefixtures("key")
def test_a_dry_run_says_what_would_be_asked_and_sends_nothing(heart, run, api, owner):
    remember(heart, NINE, AT_NINE, FISH, CATS)

    outcome = run(is_dry_run=True)

    assert outcome.asking.startswith(f"2 pairs wait for {MODEL}; 17 requests would be sent, for at most 0.0")
    assert (api.requests, rows_in(owner)) == ([], [])


@pytest.mark.usefixtures("key")
def test_a_dry_run_says_what_the_budget_holds_back(heart, run, api):
    remember(heart, NINE, AT_NINE, FISH, CATS)

    outcome = run(is_dry_run=True, policy={"candidate_similarity": 0.7, "max_cost_usd": 0})

    assert outcome.asking == (
        f"2 pairs wait for {MODEL}; 0 requests would be sent, for at most 0.00 USD; 2 are held back by max_cost_usd"
    )


@pytest.mark.usefixtures("key")
def test_the_budget_of_a_night_is_never_exceeded(heart, run, api, owner):
    remember(heart, NINE, AT_NINE, FISH, CATS)

    for night in (NIGHT, NIGHT, NEXT):
        run(night, policy={"candidate_similarity": 0.7, "max_cost_usd": 0.009})

    spent = dict(
        owner.execute("select night, sum(greatest(estimated_usd, cost_usd)) from heart.llm_requests group by 1")
    )
    assert spent
    assert all(0 < usd <= 0.009 for usd in spent.values())


@pytest.mark.usefixtures("key")
def test_a_model_without_a_price_is_not_asked(heart, run, api, monkeypatch):
    remember(heart, NINE, AT_NINE)
    monkeypatch.setenv("NOUS_JUDGE_MODEL", "claude-sonnet-4-5")
    settings.cache_clear()

    outcome = run()

    assert outcome.is_success
    assert "no price is known for the model" in outcome.failures[0]
    assert api.asked(PlayRoute.CREATE_BATCH) == []


@pytest.mark.usefixtures("key")
def test_two_batches_in_a_row_that_are_not_believed_fail_the_check_with_what_to_do(heart, run, api, owner):
    remember(heart, NINE, AT_NINE)
    api.answer_with(lambda _request: answer_json("same", later="b"))

    outcomes = [run(night) for night in (NIGHT, NEXT, AFTER)]

    assert outcomes[1].failures == ()
    assert "set NOUS_JUDGE_MODEL to another model, or NOUS_JUDGE=offline" in outcomes[2].failures[0]
    assert all(outcome.is_success for outcome in outcomes)
    assert len(active(owner)) == 2


@pytest.mark.usefixtures("key")
def test_results_of_a_type_nobody_knows_fail_the_check_until_one_is_understood(heart, run, api):
    remember(heart, NINE, AT_NINE)
    api.play_batches(BatchPlay(each=lambda *_: Play(outcome="postponed")), BatchPlay())

    outcomes = [run(night) for night in (NIGHT, NEXT, AFTER)]

    assert [len(outcome.failures) for outcome in outcomes] == [0, 1, 0]
    assert "results of the unknown type postponed; update Nous" in outcomes[1].failures[0]


@pytest.mark.usefixtures("key")
def test_what_one_model_refuses_the_other_decides(heart, run, api, owner, database_url, tmp_path):
    remember(heart, NINE, AT_NINE)
    api.play_batches(
        BatchPlay(each=lambda _, asked: Play() if is_canary(asked) else Play(stop_reason="refusal")), BatchPlay()
    )

    for night in (NIGHT, NEXT, AFTER):
        run(night)

    assert [row["model"] for row in rows_in(owner)] == [MODEL, "claude-sonnet-5-5"]
    assert judged(database_url, tmp_path, AFTER) == {("same", "claude-sonnet-5-5", "So says the test.")}
    assert len(active(owner)) == 1


@pytest.mark.usefixtures("key")
def test_statements_too_long_to_be_asked_about_say_so(heart, run, api, owner, database_url, tmp_path):
    long = "The office opens at nine and the cellar opens at ten. " * 150
    remember(heart, long, f"{long}Indeed.")

    outcome = run()

    assert judged(database_url, tmp_path, NIGHT) == {
        ("unsure", "none", f"too long to ask {MODEL} about: more than 12,000 bytes")
    }
    assert "1 are too long to be asked about" in outcome.asking
    assert pairs_asked(api) == 0


# --- between the nights ---


@pytest.mark.usefixtures("key")
def test_the_sensor_brings_verdicts_home_and_changes_no_memory(heart, run, api, owner):
    remember(heart, NINE, AT_NINE)
    idle = batch_results()
    run()
    before = everything(owner)

    said = [batch_results().skip_message for _ in range(2)]

    assert idle.skip_message == "no batch is open"
    assert said == ["1 batches came home with 1 verdicts", "no batch is open"]
    assert (everything(owner), verdicts_in(owner)) == (before, ["same"])


def test_without_a_key_the_sensor_asks_nobody():
    settings.cache_clear()

    assert batch_results().skip_message == "Claude is not asked: there is no key"


@pytest.mark.usefixtures("key")
def test_the_command_shows_what_is_on_its_way_and_brings_it_home(heart, run, api, owner):
    nous = lambda *arguments: CliRunner().invoke(application(), ["batches", *arguments])  # noqa: E731
    empty = nous()
    remember(heart, NINE, AT_NINE)
    run()

    shown, collected, done = nous(), nous("--collect", "--wait", "--json"), nous("--json")

    assert "no batch was sent yet" in empty.stdout
    assert "submitted" in shown.stdout
    assert '"imported": 1, "verdicts": 1' in collected.stdout
    assert '"state": "imported"' in done.stdout
    assert (shown.exit_code, collected.exit_code, done.exit_code) == (0, 0, 0)
    assert verdicts_in(owner) == ["same"]


def test_the_command_says_when_there_is_nobody_to_collect_from(database_url, monkeypatch):
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()

    alone, waiting = (CliRunner().invoke(application(), ["batches", *asked]) for asked in (["--collect"], ["--wait"]))

    assert "ANTHROPIC_API_KEY" in alone.stderr
    assert "--collect --wait" in waiting.stderr


@pytest.mark.usefixtures("key")
def test_hearts_opened_with_a_key_learn_as_before(database, embedder):
    heart = Heart.open("aria", database=database, embedder=embedder, works_in_background=False)

    assert heart.learn(NINE).action == "stored"
