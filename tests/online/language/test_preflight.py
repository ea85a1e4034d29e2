"""Models that can't be asked are refused before anything is sent to them, with what to set instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import anthropic  # noqa: F401 (what is loaded already is open at once)
import pytest

from benchmarks.anthropic_server import MODELS, LocalAnthropic, Model, Play, PlayRoute
from nous_online.core.settings import settings
from nous_online.interfaces import doctor
from nous_online.language.claude.anthropic_api import ModelFacts, checked_model, facts_of
from nous_online.language.claude.client import Claude
from nous_online.language.claude.replies import Failure, LLMError

RELEASED = datetime(2026, 1, 1, tzinfo=UTC)
TODAY = datetime(2026, 11, 22, tzinfo=UTC)
LIMITED = (
    Model("claude-plain", "haiku", RELEASED, has_structured_outputs=False),
    Model("claude-one-by-one", "haiku", RELEASED, has_batches=False),
)


@pytest.fixture
def server() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(models=(*MODELS, *LIMITED)) as server:
        yield server


@pytest.fixture
def claude(server: LocalAnthropic) -> Claude:
    return Claude("sk-ant-of-this-test", base_url=server.url)


ONE_BY_ONE, IN_BATCHES = {"for_batches": False}, {"for_batches": True}


@pytest.mark.parametrize(
    ("model", "use"),
    [
        ("claude-haiku-5-5", IN_BATCHES),
        ("claude-haiku-4-5", IN_BATCHES),
        ("claude-sonnet-4-5", IN_BATCHES),
        ("claude-one-by-one", ONE_BY_ONE),
    ],
)
def test_a_model_that_can_is_taken_until_it_is_retired(model: str, use: dict[str, bool], claude: Claude):
    assert checked_model(claude, model, **use).lifecycle in {"active", "deprecated"}


@pytest.mark.parametrize(
    ("model", "use", "why"),
    [
        ("claude-one-by-one", IN_BATCHES, "takes no batches"),
        ("claude-plain", ONE_BY_ONE, "does not answer in the form of a schema"),
        ("claude-opus-4-0", ONE_BY_ONE, "is retired since 2026-06-15"),
        ("claude-haiku-9", ONE_BY_ONE, "is unknown"),
        ("../messages/batches", ONE_BY_ONE, "is unknown"),
    ],
)
def test_a_model_is_refused_for_what_it_lacks(model: str, use: dict[str, bool], why: str, claude: Claude):
    with pytest.raises(LLMError, match=f"the model {model} {why}") as raised:
        checked_model(claude, model, **use)

    assert raised.value.kind is Failure.PERMANENT
    assert "set NOUS_JUDGE_MODEL or NOUS_WRITER_MODEL to one of claude-haiku-5-5, claude-son" in str(raised.value)


def test_what_is_named_instead_can_do_what_is_needed(claude: Claude):
    with pytest.raises(LLMError) as raised:
        checked_model(claude, "claude-haiku-9", for_batches=True)

    assert not any(model in str(raised.value) for model in ("plain", "one-by-one", "sonnet-4-5", "opus-4-2"))


def test_an_alias_stands_for_a_model(claude: Claude):
    assert checked_model(claude, "claude-haiku-4-5", for_batches=True).id == "claude-haiku-4-5-20251001"


def test_a_catalogue_that_can_t_be_asked_says_nothing_of_a_model(server: LocalAnthropic, claude: Claude):
    server.play_always(Play(status=529))

    with pytest.raises(LLMError) as raised:
        checked_model(claude, "claude-haiku-5-5", for_batches=True, deadline_s=1)

    assert raised.value.kind is Failure.TRANSIENT


def test_a_list_that_names_nothing_fit_says_so(server: LocalAnthropic, claude: Claude):
    server.play(Play(body=json.dumps({"data": None}).encode()), route=PlayRoute.LIST_MODELS)

    with pytest.raises(LLMError, match="one the catalogue of this key knows; it names none"):
        checked_model(claude, "claude-haiku-9", for_batches=False)


@pytest.mark.parametrize("retires_on", ["2026-12-21", "2026-11-30", "2026-11-01"])
def test_a_retirement_is_told_thirty_days_before(retires_on: str):
    facts = facts_of({"id": "claude-old", "lifecycle": "deprecated", "retires_at": retires_on})

    told = f"the model claude-old retires on {retires_on}; set NOUS_JUDGE_MODEL or NOUS_WRITER_MODEL to another"
    assert str(facts.warning(TODAY)).startswith(told)


@pytest.mark.parametrize("retires_on", [None, "2026-12-23"])
def test_a_retirement_far_off_is_not_told(retires_on: str | None):
    assert facts_of({"id": "claude-new", "retires_at": retires_on}).warning(TODAY) is None


@pytest.mark.parametrize(
    "told",
    [
        {"id": "m"},
        {"id": "m", "lifecycle": 3, "capabilities": None, "retires_at": "one day"},
        {"id": "m", "capabilities": {"batch": True, "structured_outputs": {"supported": "yes"}}},
    ],
)
def test_what_a_catalogue_leaves_open_is_open(told: Any):
    facts = facts_of(told)

    assert facts == ModelFacts("m", "active", retires_at=None, has_batches=None, has_structured_outputs=None)
    assert facts.missing(for_batches=True) is None


@pytest.mark.parametrize("told", [{"lifecycle": "active"}, [], None, "a model"])
def test_what_is_no_model_is_malformed(told: object):
    with pytest.raises(LLMError) as raised:
        facts_of(told)

    assert raised.value.kind is Failure.MALFORMED


@pytest.fixture
def asked_by_doctor(server: LocalAnthropic, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Claude is asked, and nothing else is looked at."""
    monkeypatch.setattr(doctor, "LOOKS", {})
    monkeypatch.setattr(doctor, "SERVER_LOOKS", {})
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nobody@127.0.0.1/none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-this-test")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    settings.cache_clear()
    yield monkeypatch
    settings.cache_clear()


def test_doctor_looks_both_models_up(asked_by_doctor: pytest.MonkeyPatch):
    asked_by_doctor.setenv("NOUS_WRITER_MODEL", "claude-sonnet-4-5")

    (check,) = doctor.checks()

    assert check.is_ok
    assert check.message.startswith(
        "claude-haiku-5-5 judges, claude-sonnet-4-5-20250929 writes; the model claude-sonnet-4"
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("NOUS_JUDGE_MODEL", "claude-one-by-one", "takes no batches"),
        ("NOUS_WRITER_MODEL", "claude-opus-4-0", "is retired"),
        ("ANTHROPIC_API_KEY", "two words", "ANTHROPIC_API_KEY"),
    ],
)
def test_doctor_says_which_model_or_key_to_change(
    name: str, value: str, says: str, asked_by_doctor: pytest.MonkeyPatch
):
    asked_by_doctor.setenv(name, value)

    (check,) = doctor.checks()

    assert not check.is_ok
    assert says in check.message


def test_doctor_asks_nobody_without_a_key(asked_by_doctor: pytest.MonkeyPatch, server: LocalAnthropic):
    asked_by_doctor.delenv("ANTHROPIC_API_KEY")

    assert list(doctor.checks()) == []
    assert server.requests == []
