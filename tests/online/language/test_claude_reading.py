"""What the API may send, read as values: messages, figures, errors and times to wait, whatever their form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from nous_online.language.claude.client import asked_to_wait
from nous_online.language.claude.replies import Failure, LLMError, Usage, kind_of_error, moment_of, reply_of, said

MODEL = "claude-haiku-5-5"
MESSAGES = [
    # the JSON of a message, what came of it
    (
        {
            "model": MODEL,
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        "ab",
    ),
    (
        {
            "model": MODEL,
            "stop_reason": "end_turn",
            "content": [{"type": "thinking"}, 3, {"type": "text", "text": "a"}],
        },
        "a",
    ),
    ({"model": MODEL, "stop_reason": "end_turn", "content": [{"type": "text", "text": ["a"]}]}, Failure.MALFORMED),
    ({"model": MODEL, "stop_reason": "end_turn", "content": None}, Failure.MALFORMED),
    ({"model": MODEL, "stop_reason": ["end_turn"], "content": []}, Failure.MALFORMED),
    ({"model": None, "stop_reason": "end_turn", "content": [{"type": "text", "text": "a"}]}, Failure.MALFORMED),
    ({"model": MODEL, "stop_reason": None, "content": []}, Failure.MALFORMED),
    ("a message", Failure.MALFORMED),
    (None, Failure.MALFORMED),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_message_is_read_without_trust(message: object, expected: str | Failure):
    try:
        found = reply_of(message).text
    except LLMError as error:
        found = error.kind

    assert found == expected


def test_what_is_no_count_of_tokens_counts_nothing():
    usage = {
        "input_tokens": "7",
        "output_tokens": -1,
        "cache_read_input_tokens": True,
        "cache_creation_input_tokens": 10**30,
    }
    message = {"model": MODEL, "stop_reason": "end_turn", "content": [{"type": "text", "text": "a"}], "usage": usage}

    assert reply_of(message).usage == Usage()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "invalid_request_error"}, Failure.PERMANENT),
        ({"type": "not_found_error"}, Failure.PERMANENT),
        ({"type": "billing_error"}, Failure.QUOTA),
        ({"type": "rate_limit_error"}, Failure.TRANSIENT),
        ({"type": "overloaded_error"}, Failure.TRANSIENT),
        ({"type": "api_error"}, Failure.TRANSIENT),
        ({"type": "never_heard_of"}, Failure.PERMANENT),
        ({}, Failure.PERMANENT),
    ],
)
def test_an_item_of_a_batch_fails_by_the_type_of_its_error(error: dict[str, Any], kind: Failure):
    assert kind_of_error(error) is kind


def test_a_wait_is_read_in_each_of_its_forms():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)

    assert asked_to_wait({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert asked_to_wait({"retry-after": "-3"}) == 0
    assert asked_to_wait({"retry-after": soon}) == pytest.approx(30, abs=2)
    assert asked_to_wait({"retry-after": "Mon, 99 Foo 99999 25:61:61 GMT"}) is None
    assert asked_to_wait({}) is None


def test_words_from_outside_become_one_short_line():
    assert said("  two\n lines\t") == "two lines"
    assert said("a\x1b[31mred") == "a�[31mred"
    assert said("x" * 300) == "x" * 200 + "…"
    assert said(None) == ""


def test_a_moment_has_a_zone():
    assert (
        moment_of("2026-11-22T10:00:00Z") == moment_of("2026-11-22T10:00:00") == datetime(2026, 11, 22, 10, tzinfo=UTC)
    )
    assert [moment_of(odd) for odd in ("soon", None, 7)] == [None] * 3
