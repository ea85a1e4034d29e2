"""Nights with a key for Claude: what the offline judge may be wrong about is asked, waits, and counts a night later."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from batch_answers import MODEL, answering, is_canary, shown_texts
from batch_life import AT_NINE, CATS, FISH, NINE, VERDICTS, rows_in, send_all, states, verdicts_in
from conftest import ScriptedJudge, WordEmbedder
from night_runs import NIGHT, everything, facts_in, options, remember
from psycopg.types.json import Jsonb
from typer.testing import CliRunner

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from benchmarks.anthropic_server.answers import pairs_in
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.language.claude.replies import Request
from nous_pipelines.commands.night_commands import show_outcome
from nous_pipelines.orchestration.code_location import batch_results, close_staff
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import NightOutcome, run_night
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.report import PutOff

NEXT = NIGHT + timedelta(days=1)
LONG = "The office opens at nine and the cellar opens at ten. " * 150
SOFAS = ("The cat sleeps on the red sofa.", "The dog sleeps on the red sofa in the kitchen by night.")
REFUSED = ("The shop closes at ten.", "At ten the shop closes.")
STATEMENT_COLUMNS = {"aria": (NINE, AT_NINE), "ben": (NINE, AT_NINE, FISH, CATS), "cleo": REFUSED,
        "dora": (LONG, f"{LONG}Indeed."), "eva": SOFAS}  # fmt: skip
"""What each agent of the nights that are looked at below was told."""
BUDGET_USD = 0.0053
"""Enough to ask about one pair."""
POLICIES = {"ben": {"max_cost_usd": BUDGET_USD}, "eva": {"candidate_similarity": 0.5, "neighbour_similarity": 0.5}}


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
    set_key(monkeypatch, api.url, database_url, tmp_path)
    yield
    close_staff()
    settings.cache_clear()


def set_key(patch: pytest.MonkeyPatch, api_url: str, database_url: str, home: Path) -> None:
    known = {"NOUS_DATABASE_URL": database_url, "NOUS_HOME": str(home)}
    for name, value in {**known, "ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": api_url}.items():
        patch.setenv(name, value)
    settings.cache_clear()


@pytest.fixture
def run(database_url: str, instance: dg.DagsterInstance, tmp_path: Path) -> Any:
    """Run a night of this test's database."""

    def run_it(night: date = NIGHT, **changes: Any) -> NightOutcome:
        return run_night(night, options(database_url, tmp_path, **changes), instance=instance)

    return run_it


def active(owner: psycopg.Connection, agent_id: str = "aria") -> list[str]:
    query = "select content from heart.facts where state = 'active' and agent_id = %s"
    return sorted(row[0] for row in owner.execute(query, [agent_id]))


def judged(home: Path, night: date, agent_id: str = "aria") -> set[tuple[str, str, str]]:
    """Return verdict, model and reason of every pair of an agent's night."""
    (folder,) = home.glob(f"snapshots/*/night={night}")
    files = NightFiles(folder)
    own = files.read_table("judgements").filter(agent_id=agent_id)
    return set(own.select("verdict", "model", "reason").iter_rows())


def texts_asked(api: LocalAnthropic) -> list[tuple[str, str]]:
    """Return the pairs that batches asked about."""
    requests = [item["params"] for body in api.asked(PlayRoute.CREATE_BATCH) for item in body["requests"]]
    return [(p.a["text"], p.b["text"]) for request in requests if not is_canary(request) for p in pairs_in(request)]


# --- five agents through two nights, each of them run twice ---


@dataclass(frozen=True)
class Moment:
    """How a night ended, what it judged and what was active then, by agent; and how many batches there were."""

    outcome: NightOutcome
    judged: dict[str, set[tuple[str, str, str]]]
    active: dict[str, list[str]]
    batches: int


@dataclass(frozen=True)
class Lived:
    """Two nights, each run twice: in the first one's first run Claude's answer to aria's batch is lost."""

    asked: Moment
    again: Moment
    following: Moment
    last: Moment
    api: LocalAnthropic
    rows: list[dict[str, Any]]
    spent_usd: dict[tuple[str, date], float]
    is_settled: bool
    """Whether the last run changed no fact of aria and cleo."""


@pytest.fixture(scope="module")
def lived(server, admin, template, instance, tmp_path_factory) -> Iterator[Lived]:
    name, home = f"asked_{uuid.uuid4().hex[:12]}", tmp_path_factory.mktemp("asked")
    admin.execute(f"create database {name} template {template} strategy file_copy")
    tell_all(server.dsn(name))
    with (
        LocalAnthropic(answer=answering({**VERDICTS, REFUSED: "same"})) as api,
        pytest.MonkeyPatch.context() as patch,
        psycopg.connect(server.dsn(name), autocommit=True) as owner,
    ):
        set_key(patch, api.url, server.dsn(name), home)
        api.play(Play(is_lost=True), route=PlayRoute.CREATE_BATCH)
        api.play_batches(BatchPlay(each=lambda _, asked: Play(stop_reason="refusal" if is_refused(asked) else None)))
        found = live(owner, server.dsn(name), home, instance, api)
    settings.cache_clear()
    yield found
    admin.execute(f"drop database {name} with (force)")


def is_refused(request: Request) -> bool:
    """Tell whether a request is one of those that the judge refuses, and the other model does not."""
    return request["model"] == MODEL and {*shown_texts(request)} == {*REFUSED}


def live(owner: psycopg.Connection, url: str, home: Path, instance: dg.DagsterInstance, api: LocalAnthropic) -> Lived:
    def night(night: date) -> Moment:
        outcome = run_night(night, options(url, home), instance=instance)
        verdicts = {agent_id: judged(home, night, agent_id) for agent_id in STATEMENT_COLUMNS}
        left = {agent_id: active(owner, agent_id) for agent_id in STATEMENT_COLUMNS}
        return Moment(outcome, verdicts, left, len(api.asked(PlayRoute.CREATE_BATCH)))

    moments = [night(NIGHT), night(NIGHT), night(NEXT)]
    settled = {agent_id: facts_in(owner, agent_id=agent_id, without=()) for agent_id in ("aria", "cleo")}
    moments.append(night(NEXT))
    after = {agent_id: facts_in(owner, agent_id=agent_id, without=()) for agent_id in settled}
    query = "select agent_id, night, sum(greatest(estimated_usd, cost_usd)) from heart.llm_requests group by 1, 2"
    spent = {(agent_id, date_): float(usd) for agent_id, date_, usd in owner.execute(query)}
    return Lived(*moments, api, rows_in(owner), spent, after == settled)


def tell_all(url: str) -> None:
    database = Database(url)
    for agent_id, contents in STATEMENT_COLUMNS.items():
        heart = Heart.open(agent_id, database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
        remember(heart, *contents)
    database.close()
    with psycopg.connect(url, autocommit=True) as owner:
        for agent_id, policy in POLICIES.items():
            insert = "insert into lifecycle.agent_policies (agent_id, policy) values (%s, %s)"
            owner.execute(insert, [agent_id, Jsonb(policy)])


def test_the_first_night_asks_and_changes_nothing(lived: Lived):
    waiting = {("unsure", "none", f"waits for {MODEL}")}

    assert (lived.asked.judged["aria"], lived.asked.judged["cleo"]) == (waiting, waiting)
    assert lived.asked.active == {agent_id: sorted(contents) for agent_id, contents in STATEMENT_COLUMNS.items()}
    assert lived.asked.outcome.is_success


def test_a_lost_answer_leaves_the_pairs_to_the_batch_that_was_made(lived: Lived):
    assert "judge_batches_sent" in lived.asked.outcome.failures[0]
    assert lived.again.outcome.failures == ()
    assert [row["state"] for row in lived.rows if row["agent_id"] == "aria"] == ["imported"]


def test_a_past_night_run_again_after_its_verdicts_came_home_acts_by_them(lived: Lived):
    assert lived.asked.outcome.report.counts["merges"] == 0
    assert lived.again.outcome.report.counts["merges"] > 0
    assert lived.again.judged["aria"] == {("same", MODEL, "So says the test.")}
    assert len(lived.again.active["aria"]) == 1


def test_what_one_model_refuses_the_other_decides_and_the_next_night_acts_by_it(lived: Lived):
    of_cleo = [(row["model"], row["state"]) for row in lived.rows if row["agent_id"] == "cleo"]

    assert of_cleo == [(MODEL, "imported"), ("claude-sonnet-5-5", "imported")]
    assert len(lived.again.active["cleo"]) == 2
    assert lived.following.outcome.failures == ()
    assert lived.following.judged["cleo"] == {("same", "claude-sonnet-5-5", "So says the test.")}
    assert len(lived.following.active["cleo"]) == 1


def test_a_night_run_again_asks_nothing_again(lived: Lived):
    assert lived.last.outcome.is_success
    assert lived.is_settled
    assert lived.last.batches == lived.following.batches


def test_the_budget_of_a_night_is_never_exceeded(lived: Lived):
    of_ben = {night: usd for (agent_id, night), usd in lived.spent_usd.items() if agent_id == "ben"}

    assert {*of_ben} == {NIGHT, NEXT}
    assert all(0 < usd <= BUDGET_USD for usd in of_ben.values())


def test_statements_too_long_to_be_asked_about_say_so(lived: Lived):
    assert lived.asked.judged["dora"] == {("unsure", "none", f"too long to ask {MODEL} about: more than 12,000 bytes")}
    assert "1 are too long to be asked about" in lived.asked.outcome.asking
    assert [pair for pair in texts_asked(lived.api) if LONG in pair] == []


def test_what_is_surely_compatible_is_not_asked_about(lived: Lived):
    assert {verdict for verdict, _, _ in lived.asked.judged["eva"]} == {"compatible"}
    assert [pair for pair in texts_asked(lived.api) if {*pair} & {*SOFAS}] == []


# --- nights of other settings ---


def test_without_a_key_the_offline_judge_decides_alone_and_nothing_is_sent(
    heart, run, api, owner, database_url, tmp_path
):
    remember(heart, NINE, NINE, "The office opens at nine", CATS)

    outcome = run()

    assert (outcome.is_success, outcome.failures, outcome.asking) == (True, (), "")
    assert {model.partition(":")[0] for _, model, _ in judged(tmp_path, NIGHT)} <= {"offline"}
    assert (api.requests, rows_in(owner)) == ([], [])
    assert len(active(owner)) == 2


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
def test_pairs_that_a_night_could_not_ask_about_are_told_at_its_end_and_in_the_head_of_its_report(
    heart, run, api, monkeypatch, capsys
):
    remember(heart, NINE, AT_NINE, FISH, CATS)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    settings.cache_clear()

    outcome = run()
    show_outcome(outcome)

    waiting = "pairs wait for the judge: Claude at 127.0.0.1:9 can't be reached"
    printed = capsys.readouterr()
    assert waiting in printed.out.splitlines()[-1]
    assert printed.out.startswith("! night")
    assert "✓" not in printed.out
    assert outcome.is_success
    assert waiting in outcome.report.needs[0]
    assert outcome.report.put_off.pairs == {"aria": int(outcome.report.needs[0].split()[0])}


@pytest.mark.usefixtures("key")
def test_a_night_that_asked_puts_nothing_off(heart, run, api):
    remember(heart, NINE, AT_NINE, FISH, CATS)

    outcome = run()

    assert (outcome.report.put_off, outcome.report.needs) == (PutOff({}), [])


@pytest.mark.usefixtures("key")
def test_a_dry_run_says_what_would_be_asked_and_what_the_budget_holds_back_and_sends_nothing(
    heart, run, api, owner, database
):
    remember(heart, NINE, AT_NINE, FISH, CATS)
    ben = Heart.open("ben", database=database, embedder=heart.agent.embedder, judge=heart.agent.judge)
    remember(ben, NINE, AT_NINE, FISH, CATS)
    owner.execute("insert into lifecycle.agent_policies values ('ben', '{\"max_cost_usd\": 0}')")

    outcome = run(is_dry_run=True)

    assert outcome.asking.startswith(f"4 pairs wait for {MODEL}; 17 requests would be sent, for at most 0.0")
    assert outcome.asking.endswith("; 2 are held back by max_cost_usd")
    assert (api.requests, rows_in(owner)) == ([], [])


# --- between the nights ---


@pytest.fixture
def on_its_way(heart: Heart, database_url: str, api: LocalAnthropic) -> Callable[[], None]:
    """Send a batch about a pair, as a night does."""

    def send() -> None:
        remember(heart, NINE, AT_NINE)
        night = Database(database_url, role="nous_night")
        send_all(night, api.url)
        night.close()

    return send


@pytest.mark.usefixtures("key")
def test_the_sensor_brings_verdicts_home_and_changes_no_memory(on_its_way, owner):
    idle = batch_results()
    on_its_way()
    before = everything(owner)

    said = [batch_results().skip_message for _ in range(2)]

    assert idle.skip_message == "no batch is open"
    assert said == ["1 batches were imported with 1 verdicts", "no batch is open"]
    assert (everything(owner), verdicts_in(owner)) == (before, ["same"])


def test_without_a_key_the_sensor_asks_nobody():
    settings.cache_clear()

    assert batch_results().skip_message == "Claude is not asked: there is no key"


@pytest.mark.usefixtures("key")
def test_the_command_shows_what_is_on_its_way_and_brings_it_home(on_its_way, owner):
    nous = lambda *arguments: CliRunner().invoke(application(), ["batches", *arguments])  # noqa: E731
    empty = nous()
    on_its_way()

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
