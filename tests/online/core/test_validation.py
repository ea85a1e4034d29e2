"""Bad input: a clear typed error, nothing half-written, and the next call is right."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.core.errors import InvalidInput
from nous_online.core.fields import Share
from nous_online.core.policy import MAX_CONTENT_BYTES, MAX_CONTEXT_BYTES
from nous_online.core.validation import (
    checked_agent,
    checked_choice,
    checked_flag,
    checked_id,
    checked_moment,
    checked_names,
    checked_optional,
    checked_text,
)
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.facts import new_fact

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "content is empty"),
        (" \t\n\u2003", "content is empty"),
        ("Tea\x00helps", "NUL character at position 3"),
        ("Tea \ud800 helps", "lone surrogate at position 4"),
        ("x" * 10_000_000, "content has 10,000,000 bytes, the limit is 32,768"),
        ("ü" * (MAX_CONTENT_BYTES // 2 + 1), "content has 32,770 bytes.*; split it, or store an episode$"),
        (None, "content must be text, got NoneType"),
        (b"Tea helps", "content must be text, got bytes"),
        (7, "content must be text, got int"),
    ],
)
def test_content_that_cannot_be_remembered_is_refused(content: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        new_fact(content, {}, now=NOW)


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"confidence": float("nan")}, "confidence must be a number between 0 and 1, got nan"),
        ({"confidence": float("inf")}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": 1.0001}, "confidence"),
        ({"confidence": "0.5"}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"confidence": None}, "confidence"),
        ({"trust": 101}, "trust must be a whole number between 0 and 100, got 101"),
        ({"trust": 0.5}, "trust"),
        ({"trust": True}, "trust"),
        ({"is_pinned": "no"}, "is_pinned must be True or False, got 'no'"),
        ({"tags": "ops"}, "tags must be a list of names, got 'ops'"),
        ({"tags": [""]}, "an entry of tags is empty"),
        ({"tags": [1]}, "an entry of tags must be text"),
        ({"tags": ["x\x00"]}, "NUL"),
        ({"tags": ["x"] * 101}, "tags has 101 entries, the limit is 100"),
        ({"tags": {"a", "b"}}, "tags must be a list"),
        ({"subject": "s" * 501}, "subject has 501 characters, the limit is 500"),
        ({"subject": "s" * 5000}, "subject has 5,000 characters, the limit is 500: 's+'…; shorten it$"),
        ({"tags": ["t" * 500]}, "an entry of tags has 500 bytes, the limit is 400: 't+'…; shorten it$"),
        ({"subject": 5}, "subject must be text"),
        ({"category": "c" * 101}, "category"),
        ({"context": "x" * (MAX_CONTEXT_BYTES + 1)}, "context has 65,537 bytes"),
        ({"context": "x\x00"}, "context holds a NUL"),
        ({"source_kind": "rumour"}, "source_kind must be one of user, agent"),
        ({"scope": None}, "scope must be one of private"),
        ({"learned_at": "yesterday"}, "learned_at 'yesterday' is no ISO 8601 moment"),
        ({"learned_at": "2026-05-01T09:00:00"}, "names no time zone"),
        ({"learned_at": datetime(2026, 5, 1)}, "names no time zone"),  # noqa: DTZ001 (what is to be refused)
        ({"learned_at": 1_770_000_000}, "learned_at must be a moment"),
        ({"learned_at": "0001-01-01T00:00:00+05:00"}, "outside the years"),
        ({"valid_from": "2026-05-02T00:00:00Z", "valid_to": "2026-05-01T00:00:00Z"}, "lies before valid_from"),
        ({"encoded_frame": "f" * 101}, "encoded_frame"),
        ({"encoded_censors": "no-friday"}, "encoded_censors must be a list"),
        ({"idempotency_key": "k" * 201}, "idempotency_key has 201"),
        ({"idempotency_key": "\ud800"}, "lone surrogate"),
        ({"sujbect": "deploys"}, "unknown detail 'sujbect'; known: subject"),
    ],
)
def test_a_detail_that_cannot_be_stored_is_refused_by_name(details: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        new_fact("Tea helps", details, now=NOW)


def test_a_refused_fact_leaves_nothing_and_the_next_is_stored(heart: Heart, owner: psycopg.Connection) -> None:
    with pytest.raises(InvalidInput):
        heart.learn("Tea \x00 helps")
    with pytest.raises(InvalidInput):
        heart.learn("Tea helps", confidence=float("nan"))

    left = owner.execute(
        "select (select count(*) from heart.facts) + (select count(*) from lifecycle.events)"
    ).fetchone()
    assert left == (0,)
    assert heart.learn("Tea helps").action == "stored"


def test_a_detail_at_its_limit_is_stored(heart: Heart) -> None:
    limits: list[dict[str, Any]] = [
        {"confidence": 1e-50},
        {"confidence": np.float32(0.5)},
        {"confidence": 0},
        {"subject": "s" * 500},
        {"tags": ["t" * 400] * 100},
        {"valid_to": "9999-12-31T23:59:59Z"},
        {"learned_at": "0001-01-01T00:00:00Z"},
        {"encoded_censors": []},
        {"context": "ü" * (MAX_CONTEXT_BYTES // 2)},
        {"user_id": "🧠" * 100},
    ]

    stored = heart.learn_deferred([(f"Door {n} of the house is blue", details) for n, details in enumerate(limits)])  # type: ignore[misc]

    assert stored == len(limits)


def test_content_at_its_limit_comes_back_as_it_went_in(heart: Heart) -> None:
    contents = [
        "x" * MAX_CONTENT_BYTES,
        "🧠" * (MAX_CONTENT_BYTES // 4),
        " ".join(f"w{number:x}" for number in range(4000)),
        "'; drop table heart.facts; --",
        "%s %(agent_id)s {} \\ \" '",
        "עברית and العربية \u202e reversed",
        "e\u0301 and é",
        "\ufeff\u200btea\u2028helps",
        " ".join(["word" * 8] * 36) + " is blue",
    ]

    returned = [heart.get(heart.learn(content).memory.id).content for content in contents]

    assert returned == contents


@pytest.mark.parametrize(
    ("agent_id", "said"),
    [
        ("", "agent_id is empty"),
        (None, "agent_id is empty"),
        ("   ", "agent_id is empty"),
        ("a" * 101, "agent_id has 101 characters"),
        ("a\x00b", "NUL"),
        ("\udfff", "lone surrogate"),
        (7, "agent_id must be text"),
    ],
)
def test_an_agent_id_that_names_nobody_is_refused(agent_id: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Heart.open(agent_id)


def test_an_odd_agent_id_is_an_agent_of_its_own(heart: Heart, database: Database, embedder: WordEmbedder) -> None:
    heart.learn("Tea helps")
    odd = ["🧠" * 100, "'; drop schema heart --", "%s", " leading", "\uff21ria", "a\nb", "ARIA"]

    hearts = [Heart.open(agent_id, database=database, embedder=embedder, judge=ScriptedJudge()) for agent_id in odd]

    assert [each.learn("Tea helps").action for each in hearts] == ["stored"] * len(odd)
    assert [each.count() for each in [heart, *hearts]] == [{"active": 1}] * (len(odd) + 1)


@pytest.mark.parametrize("memory_id", ["nonsense", 7, None, ""])
def test_an_id_that_is_none_is_refused(memory_id: Any) -> None:
    with pytest.raises(InvalidInput, match="fact_id must be the UUID"):
        checked_id("fact_id", memory_id)


def test_an_id_may_be_given_as_text(heart: Heart) -> None:
    fact = heart.learn("Tea helps").memory

    assert heart.get(str(fact.id)) == fact


def test_every_verb_that_takes_an_id_says_in_its_types_that_it_takes_a_text() -> None:
    hints = {
        f"{name}({parameter.name})": str(parameter.annotation)
        for name, verb in inspect.getmembers(Heart, inspect.isfunction)
        for parameter in inspect.signature(verb).parameters.values()
        if not name.startswith("_") and "UUID" in str(parameter.annotation)
    }

    assert len(hints) > 30
    assert {name: hint for name, hint in hints.items() if "str" not in hint} == {}


def test_a_moment_is_kept_in_utc() -> None:
    assert checked_moment("m", "2026-05-01T02:00:00+02:00") == datetime(2026, 5, 1, tzinfo=UTC)
    assert checked_moment("m", "2026-05-01T00:00:00Z") == datetime(2026, 5, 1, tzinfo=UTC)
    assert checked_moment("m", None) is None


def test_an_error_shows_no_more_than_the_beginning_of_a_long_text() -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_text("content", "secret " * 1000, max_bytes=100)

    assert len(str(refused.value)) < 200


def test_an_empty_optional_text_counts_as_none() -> None:
    assert checked_optional("subject", "", max_characters=5) is None
    assert checked_optional("subject", "tea", max_characters=5) == "tea"


def test_what_passes_is_returned_as_it_came() -> None:
    assert checked_choice("scope", "private", ("private", "project")) == "private"
    assert checked_flag("is_pinned", value=True) is True
    assert checked_id("id", str(UUID(int=7))) == UUID(int=7)
    assert checked_names("tags", ("a", "b")) == ["a", "b"]
    assert Share("").check("confidence", 0.123_456_789) == 0.123_457
    assert checked_agent("aria") == "aria"
