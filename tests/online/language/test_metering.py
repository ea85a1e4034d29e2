"""Every request to a language model leaves a row with its tokens and its price, and metering never gets in the way."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import date

import pytest

from nous_online.database.connection import Database
from nous_online.language.claude.client import Claude
from nous_online.language.claude.judge import ModelJudge
from nous_online.language.claude.metering import meter_of
from nous_online.language.claude.replies import Usage
from nous_online.language.claude.spending import Spent
from nous_online.language.pairs.judging import JudgedStatement, Pair
from nous_pipelines.demo.anthropic_server import LocalAnthropic, Play

HAIKU = "claude-haiku-5-5"
ASKED = Spent("judge", HAIKU, "pairs-1", Usage(150, 60, 700, 0))
REFUSED = Spent("judge", HAIKU, "pairs-1", Usage(850, 4, 0, 700), error="refused: cyber")
ROWS = """
    select purpose, model, state, request_count, failed_count, input_tokens, output_tokens, cache_read_tokens,
           cache_write_tokens, cost_usd::float8, error from heart.llm_requests order by created_at, id"""


def test_a_request_is_stored_with_its_tokens_and_what_they_cost(database, owner):
    meter_of(database, "aria")(ASKED)

    (row,) = owner.execute(ROWS).fetchall()
    assert row == (
        "judge", "claude-haiku-5-5", "imported", 1, 0, 150, 60, 700, 0,
        pytest.approx((150 * 0.10 + 60 * 0.50 + 700 * 0.01) / 1e6, abs=5e-7), None,
    )  # fmt: skip


def test_no_request_goes_unmetered_whatever_came_of_it(database, owner):
    meter = meter_of(database, "aria", date(2026, 6, 1))

    for number in range(30):
        meter(REFUSED if number % 3 else ASKED)

    found = owner.execute("""
        select count(*), sum(request_count), sum(failed_count), count(error), sum(cost_usd) > 0, min(night)
        from heart.llm_requests where agent_id = 'aria' and not is_batch and request is null""").fetchone()
    assert found == (30, 30, 20, 20, True, date(2026, 6, 1))


def test_every_token_the_api_charges_for_is_in_a_row(database, owner):
    """Refused, cut short and unreadable answers are charged for; what the server could not answer is not."""
    answers = [
        Play(stop_reason="refusal"), Play(text="no JSON"), Play(stop_reason="max_tokens"), Play(status=400), Play(),
    ]  # fmt: skip
    charged = {"input_tokens": 100, "output_tokens": 7}
    with LocalAnthropic() as api:
        api.play(*(replace(play, usage=charged) for play in answers))
        api.play_always(Play(usage=charged))
        claude = Claude("key", base_url=api.url)
        claude.open()
        judge = ModelJudge(claude, meter_of(database, "aria"), HAIKU, "claude-sonnet-5-5", deadline_s=20)
        judge.judge([Pair(JudgedStatement(f"Rack {n}"), JudgedStatement(f"Rack {n + 20}"), 0.9) for n in range(6)])
        asked = len(api.asked())

    rows, failed, tokens_in, tokens_out = owner.execute("""
        select count(*), sum(failed_count), sum(input_tokens), sum(output_tokens) from heart.llm_requests""").fetchone()
    assert (rows, failed) == (asked, 4)
    assert (tokens_in, tokens_out) == (100 * (asked - 1), 7 * (asked - 1))


def test_what_an_agent_spent_is_seen_by_itself_alone(database):
    meter_of(database, "aria")(ASKED)

    with database.transaction("cleo") as connection:
        seen = connection.execute("select count(*) from heart.llm_requests").fetchone()

    assert seen == (0,)


def test_the_night_meters_with_its_own_role(database_url, owner):
    night = Database(database_url, role="nous_night")
    try:
        meter_of(night, "aria", date(2026, 6, 1))(ASKED)
    finally:
        night.close()

    assert owner.execute("select agent_id, night from heart.llm_requests").fetchall() == [("aria", date(2026, 6, 1))]


def test_a_model_without_a_price_is_metered_with_its_tokens_and_a_warning(database, owner, caplog):
    meter_of(database, "aria")(Spent("write", "claude-novel-7", "writing-1", Usage(10, 20)))

    (row,) = owner.execute(ROWS).fetchall()
    assert row[5:10] == (10, 20, 0, 0, 0)
    assert "'claude-novel-7'" in caplog.text
    assert "NOUS_PRICES" in caplog.text


def test_an_error_that_postgresql_can_not_hold_costs_no_row(database, owner):
    meter_of(database, "aria")(Spent("judge", "claude-haiku-5-5", "pairs-1", Usage(), error="\0\ud800" + "x" * 9999))

    ((error,),) = owner.execute("select error from heart.llm_requests").fetchall()
    assert error == "?" + "x" * 499


def test_a_database_that_is_gone_is_a_warning_with_the_tokens_and_no_error(database_url, caplog):
    gone = Database(database_url)
    gone.close()

    with caplog.at_level(logging.WARNING):
        meter_of(gone, "aria")(ASKED)

    assert "not metered" in caplog.text
    assert "150 tokens in, 60 out, 700 read from the cache" in caplog.text
