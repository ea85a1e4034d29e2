"""`nous cost` and what the run of a night says of its cost: every request, by night, purpose, model, agent and way."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.interfaces.cli.command_line import application
from nous_online.language.claude.replies import Usage
from nous_online.language.claude.spending import Spent, meter_of
from nous_pipelines.batches.batch_rows import set_state
from nous_pipelines.reports.costs import Dimension, cost_metadata, costs_of, usd_in_words

FIRST, SECOND = date(2026, 6, 1), date(2026, 6, 2)
HAIKU, SONNET = "claude-haiku-5-5", "claude-sonnet-5-5"
BATCH = """
    insert into heart.llm_requests (agent_id, night, purpose, model, state, is_batch, request_count, failed_count,
                                    input_tokens, cost_usd, estimated_usd)
    values (%s, %s, 'judge', 'claude-haiku-5-5', %s, true, %s, %s, 1000, %s, %s)"""


@pytest.fixture
def nous(heart, database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), ["cost", *arguments], env={"COLUMNS": "160"})
    settings.cache_clear()


@pytest.fixture
def spent(heart, database, owner):
    """Two nights of two agents: batches collected, failed and under way, and one online request."""
    rows = [
        ("aria", FIRST, "imported", 100, 3, 0.25, 0.5), ("aria", SECOND, "submitted", 40, 0, 0, 0.1),
        ("cleo", FIRST, "failed", 10, 0, 0, 0.05), ("cleo", SECOND, "imported", 20, 0, 0.125, 0.2),
    ]  # fmt: skip
    owner.execute(
        "insert into heart.agents (id, embedding_space_id) select 'cleo', embedding_space_id from heart.agents"
    )
    for row in rows:
        owner.execute(BATCH, row)
    meter_of(database, "aria", FIRST)(Spent("write", SONNET, "writing-1", Usage(500, 100, 20, 10)))


def figures(costs, *names):
    return [tuple(getattr(cost, name) for name in names) for cost in costs]


def test_every_request_is_counted_under_its_night_purpose_model_agent_and_way(spent, night_database):
    costs = costs_of(night_database)

    assert figures(costs, "night", "purpose", "model", "agent_id", "way", "requests", "failed", "under_way") == [
        (FIRST, "judge", HAIKU, "aria", "batch", 100, 3, 0),
        (FIRST, "write", SONNET, "aria", "online", 1, 0, 0),
        (FIRST, "judge", HAIKU, "cleo", "batch", 10, 10, 0),
        (SECOND, "judge", HAIKU, "cleo", "batch", 20, 0, 0),
        (SECOND, "judge", HAIKU, "aria", "batch", 40, 0, 40),
    ]
    assert figures(costs, "usd", "expected_usd")[-2:] == [(0.125, 0), (0, pytest.approx(0.1))]
    assert costs[1].tokens == 630


def test_sums_agree_whatever_they_are_broken_down_by(spent, night_database):
    (total,) = costs_of(night_database, [])

    assert (total.night, total.purpose, total.model, total.agent_id, total.way) == (None,) * 5
    assert (total.requests, total.failed, total.under_way) == (171, 13, 40)
    for by in Dimension:
        parts = costs_of(night_database, [by])
        assert len(parts) > 1
        assert sum(part.usd for part in parts) == pytest.approx(total.usd)
        assert sum(part.requests for part in parts) == total.requests


def test_a_request_outside_of_a_night_counts_for_its_day_and_not_for_the_night(database, night_database):
    meter_of(database, "aria")(Spent("judge", HAIKU, "pairs-1", Usage(100, 10)))
    today = datetime.now(UTC).date()

    assert figures(costs_of(night_database, first=today), "night", "requests") == [(today, 1)]
    assert costs_of(night_database, first=today, nights_only=True) == []


def test_a_run_says_what_its_night_cost_by_purpose_and_agent(spent, night_database):
    assert cost_metadata(night_database, SECOND) == {
        "cost_by_purpose": {"judge": 0.125},
        "cost_by_agent": {"cleo": 0.125, "aria": 0},
        "cost_expected_usd": pytest.approx(0.1),
    }
    assert cost_metadata(night_database, SECOND, agent_ids=["aria"])["cost_by_purpose"] == {"judge": 0}


@pytest.mark.parametrize(("batch_id", "usd"), [("msgbatch_1", 0.1), (None, 0)])
def test_a_batch_that_never_came_home_is_counted_at_its_estimate_if_it_was_made(night_database, owner, batch_id, usd):
    owner.execute(BATCH, ["aria", FIRST, "submitted", 40, 0, 0, 0.1])
    ((row_id,),) = owner.execute("update heart.llm_requests set batch_id = %s returning id", [batch_id]).fetchall()

    set_state(night_database, "set_failed", row_id, error="the API has no results of it")

    assert figures(costs_of(night_database), "failed", "usd", "expected_usd") == [(40, pytest.approx(usd), 0)]


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        (0, "0.00 USD"), (3e-5, "under 0.0001 USD"), (0.0123, "0.0123 USD"), (0.5, "0.5000 USD"), (1, "1.00 USD"),
        (1234.5, "1,234.50 USD"),
    ],
)  # fmt: skip
def test_a_small_amount_never_reads_as_nothing(amount, told):
    assert usd_in_words(amount) == told


def test_the_command_shows_every_figure_and_the_sum(spent, nous):
    shown = nous().stdout

    for part in ("2026-06-01", "2026-06-02", "judge", "write", HAIKU, SONNET, "cleo", "≤ 0.1000", "0.2500"):
        assert part in shown
    assert "for 171 requests and 4,630 tokens, 13 failed; 40 under way, 0.1000 USD at the most" in shown


def test_the_command_tells_machines_the_same(spent, nous):
    told = json.loads(nous("--json", "--by", "agent", "--from", "2026-06-02").stdout)

    assert told["by"] == ["agent"]
    assert [(cost["agent_id"], cost["usd"], cost["night"]) for cost in told["costs"]] == [
        ("cleo", 0.125, None), ("aria", 0, None)
    ]  # fmt: skip
    assert told["total"]["requests"] == 60


def test_one_agent_or_some_nights_alone(spent, nous):
    assert json.loads(nous("--agent", "cleo", "--json").stdout)["total"]["requests"] == 30
    assert json.loads(nous("--to", "2026-06-01", "--json").stdout)["total"]["requests"] == 111
    assert "cleo" not in nous("--agent", "aria").stdout


def test_batches_are_told_from_online_requests_on_demand(spent, nous):
    told = json.loads(nous("--by", "way", "--json").stdout)

    assert [(cost["way"], cost["requests"]) for cost in told["costs"]] == [("batch", 170), ("online", 1)]


def test_a_column_of_nothing_is_left_out(nous, database):
    meter_of(database, "aria")(Spent("judge", HAIKU, "pairs-1", Usage(100, 10)))

    headings = nous().stdout.splitlines()[0].split()

    assert headings == ["night", "purpose", "model", "agent", "requests", "tokens", "USD"]


def test_nothing_spent_says_so(nous):
    assert "nothing was spent" in nous().stdout
    assert json.loads(nous("--json").stdout) == {
        "by": ["night", "purpose", "model", "agent"], "costs": [], "total": None
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "yesterday"), "not a night"),
        (("--from", "2026-06-02", "--to", "2026-06-01"), "after"),
        (("--by", "weather"), "weather"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(nous, arguments, said):
    result = nous(*arguments)

    assert result.exit_code != 0
    assert said in result.output + str(result.exception)
