"""What tokens cost: the shipped list, the operator's own, and models nobody has a price for."""

from __future__ import annotations

import pytest

from nous_online.core.errors import InvalidInput
from nous_online.core.settings import Settings, settings
from nous_online.language.claude.prices import PRICES_AS_OF, cost_of, price_list
from nous_online.language.claude.replies import Usage

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
