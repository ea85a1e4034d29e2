"""What tokens cost: the shipped list, the operator's own, and models nobody has a price for."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import date

import pytest

from benchmarks.anthropic_server import LocalAnthropic, Play
from nous_online.core.errors import InvalidInput
from nous_online.core.settings import Settings, settings
from nous_online.database.connection import Database
from nous_online.language.claude.client import Claude
from nous_online.language.claude.judge import ModelJudge
from nous_online.language.claude.replies import Usage
from nous_online.language.claude.spending import PRICES_AS_OF, Spent, cost_of, meter_of, price_list
from nous_online.language.pairs.judging import JudgedStatement, Pair

MILLION = 1_000_000
OWN = """
[models.house-model]
input = 8.0
output = 40.0
cache_read = 0.8
cache_write = 10.0
"""


@pytest.fixture
def own_prices(tmp_path, monkeypatch):
    """Return a function that makes a text the operator's own price file."""

    def written(text):
        path = tmp_path / "prices.toml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv("NOUS_PRICES", str(path))
        settings.cache_clear()
        price_list.cache_clear()
        return path

    yield written
    monkeypatch.undo()
    settings.cache_clear()
    price_list.cache_clear()


def test_each_sort_of_token_has_its_price():
    usage = Usage(input_tokens=MILLION, output_tokens=MILLION, cache_read_tokens=MILLION, cache_write_tokens=MILLION)

    assert cost_of("claude-haiku-5-5", usage, is_batch=False) == pytest.approx(0.10 + 0.50 + 0.01 + 0.125)
    assert cost_of("claude-sonnet-5-5", Usage(output_tokens=3), is_batch=False) == pytest.approx(30e-6)
    assert cost_of("claude-opus-5-5", Usage(), is_batch=False) == 0


def test_a_batch_costs_half():
    usage = Usage(700, 60, 300, 20)

    assert cost_of("claude-haiku-5-5", usage, is_batch=True) == cost_of("claude-haiku-5-5", usage, is_batch=False) / 2


def test_a_dated_snapshot_costs_what_its_model_does():
    usage = Usage(1000, 100)

    assert cost_of("claude-haiku-4-5-20251001", usage, is_batch=False) == cost_of(
        "claude-haiku-4-5", usage, is_batch=False
    )


def test_every_model_that_is_asked_by_default_has_a_price():
    asked = {Settings.model_fields[name].default for name in ("judge_model", "writer_model")}

    assert asked <= price_list().models.keys()
    assert PRICES_AS_OF.year >= 2026


def test_reading_the_cache_is_cheaper_than_reading_anew_and_writing_it_dearer():
    for model, price in price_list().models.items():
        assert 0 < price.cache_read < price.input < price.cache_write < price.output, model


def test_a_model_without_a_price_is_refused_with_the_file_to_name():
    with pytest.raises(InvalidInput, match=r"'claude-novel-7'; write \[models\.claude-novel-7\].*NOUS_PRICES"):
        cost_of("claude-novel-7", Usage(1, 1), is_batch=False)


@pytest.mark.parametrize(
    ("environment", "costs"),
    [
        ({"NOUS_LLM": "openai:qwen3", "NOUS_LLM_URL": "http://127.0.0.1:11434/v1"}, 0),
        ({"NOUS_LLM": "openai:qwen3", "NOUS_LLM_URL": "http://192.168.1.7:8000/v1"}, 0),
        ({"NOUS_LLM": "openai:gpt-6"}, 0),
        ({"NOUS_LLM": "anthropic:qwen3", "NOUS_LLM_URL": "http://localhost:11434"}, 0),
        ({"NOUS_LLM": "anthropic:house-model", "NOUS_LLM_URL": "https://gateway.example"}, None),
    ],
)
def test_a_model_of_unknown_price_is_free_unless_it_is_anthropic_s(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], costs: float | None
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()

    try:
        found = cost_of(settings().judge_model, Usage(MILLION, MILLION), is_batch=False)
    except InvalidInput:
        found = None

    assert found == costs


def test_the_operators_prices_go_before_the_shipped_ones(own_prices):
    own_prices("batch_share = 0.4\n" + OWN + OWN.replace("house-model", "claude-haiku-5-5"))

    assert cost_of("house-model", Usage(MILLION), is_batch=False) == 8
    assert cost_of("claude-haiku-5-5", Usage(MILLION), is_batch=True) == pytest.approx(3.2)
    assert cost_of("claude-sonnet-5-5", Usage(MILLION), is_batch=False) == 2


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (OWN.replace("8.0", "-8.0"), "models.house-model.input"),
        (OWN.replace("8.0", "nan"), "models.house-model.input"),
        (OWN.replace("input = 8.0", ""), "models.house-model.input"),
        (OWN + "discount = 0.1", "models.house-model.discount"),
        ("batch_share = 0", "batch_share"),
        ("models = 3", "not a mapping|mapping"),
        ("models = [", "can't be used"),
    ],
)
def test_a_price_file_that_makes_no_sense_is_refused_with_its_name_and_place(own_prices, text, wrong):
    path = own_prices(text)

    with pytest.raises(InvalidInput, match=wrong) as refused:
        cost_of("claude-haiku-5-5", Usage(1), is_batch=False)

    assert str(path) in str(refused.value)


def test_a_price_file_that_is_missing_is_refused(own_prices):
    own_prices("").unlink()

    with pytest.raises(InvalidInput, match="NOUS_PRICES, can't be used"):
        cost_of("claude-haiku-5-5", Usage(1), is_batch=False)


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
