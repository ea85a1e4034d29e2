"""What became of each request of a batch, whatever the file of its results looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from batch_answers import answer_json
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.claude.replies import Usage
from nous_pipelines.batches.batch_requests import outcomes_of
from nous_pipelines.batches.collecting import AnswerStatus

IDS = ("x-0-s", "x-0-w", "x-1-s")
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}


def message(text: str = "", stop_reason: str | None = "end_turn", **changes: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text or answer_json("same")}]
    said = {"type": "message", "model": "claude-haiku-5-5", "content": content, "stop_reason": stop_reason}
    return {"type": "succeeded", "message": {**said, "usage": USAGE, **changes}}


def errored(kind: str) -> dict[str, Any]:
    return {"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": "no"}}}


def line(custom_id: str, result: Any) -> bytes:
    return json.dumps({"custom_id": custom_id, "result": result}).encode()


def fate(result: Any) -> AnswerStatus:
    return outcomes_of([line("x", result)], ["x"]).by_id["x"].status


def test_answers_come_home_in_any_order():
    lines = [line(custom_id, message()) for custom_id in IDS]

    assert outcomes_of(reversed(lines), IDS) == outcomes_of(lines, IDS)
    assert all(outcome.answers for outcome in outcomes_of(lines, IDS).by_id.values())


def test_of_two_lines_about_one_request_the_first_counts_and_is_paid_once():
    lines = [line("x-0-s", message(answer_json("same"))), line("x-0-s", message(answer_json("updates")))]

    found = outcomes_of(lines, ["x-0-s"])

    assert found.by_id["x-0-s"].for_pair(1).answer.verdict == "same"
    assert found.duplicate_count == 1
    assert found.usage == Usage(10, 5, 3, 2)


def test_lines_about_requests_nobody_sent_are_counted_and_nothing_else():
    found = outcomes_of([line("y-0-s", message()), line("x-0-s", message())], ["x-0-s"])

    assert (set(found.by_id), found.unknown_count) == ({"x-0-s"}, 1)
    assert found.usage == Usage(10, 5, 3, 2)


def test_a_request_without_a_line_is_lost():
    found = outcomes_of([line("x-0-s", message())], IDS)

    assert [found.by_id[each].status for each in IDS] == [AnswerStatus.ANSWERED, AnswerStatus.LOST, AnswerStatus.LOST]
    assert found.failed_count == 2


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (message(), AnswerStatus.ANSWERED),
        (message(stop_reason="stop_sequence"), AnswerStatus.ANSWERED),
        (message(stop_reason="refusal"), AnswerStatus.REFUSED),
        (message(stop_reason="max_tokens"), AnswerStatus.TRUNCATED),
        (message(stop_reason="model_context_window_exceeded"), AnswerStatus.TRUNCATED),
        (message(stop_reason="tool_use"), AnswerStatus.MALFORMED),
        (message(stop_reason=None), AnswerStatus.MALFORMED),
        (message("Both are the same."), AnswerStatus.MALFORMED),
        (message(content="no list"), AnswerStatus.MALFORMED),
        ({"type": "succeeded"}, AnswerStatus.MALFORMED),
        (errored("invalid_request_error"), AnswerStatus.INVALID),
        (errored("request_too_large"), AnswerStatus.INVALID),
        (errored("api_error"), AnswerStatus.LOST),
        (errored("overloaded_error"), AnswerStatus.LOST),
        (errored("authentication_error"), AnswerStatus.LOST),
        ({"type": "errored"}, AnswerStatus.LOST),
        ({"type": "expired"}, AnswerStatus.LOST),
        ({"type": "canceled"}, AnswerStatus.LOST),
        ({"type": "postponed"}, AnswerStatus.UNKNOWN),
        ({}, AnswerStatus.UNKNOWN),
        ("nothing", AnswerStatus.UNKNOWN),
    ],
)
def test_every_result_has_a_fate(result: Any, expected: AnswerStatus):
    assert fate(result) is expected


@pytest.mark.parametrize(
    "error",
    [
        {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."},
        {"type": "invalid_request_error", "message": "You have reached your specified API usage limits."},
        {"type": "billing_error", "message": "no"},
    ],
)
def test_what_a_limit_of_the_account_kept_from_an_answer_is_asked_again_and_told(error: dict[str, str]):
    result = {"type": "errored", "error": {"type": "error", "error": error}}

    found = outcomes_of([line("x-0-s", result), line("x-0-w", message())], ["x-0-s", "x-0-w"])

    assert found.by_id["x-0-s"].status is AnswerStatus.LOST
    assert found.unpaid == [f"{error['type']}: {error['message']}"]


def test_types_nobody_knows_are_named():
    found = outcomes_of([line("x-0-s", {"type": "postponed\0"}), line("x-0-w", {"type": ["?"]})], IDS)

    assert found.unknown_types == ("['?']", "postponed�")


def test_refused_answers_are_paid_for():
    assert outcomes_of([line("x", message(stop_reason="refusal"))], ["x"]).usage == Usage(10, 5, 3, 2)


@pytest.mark.parametrize(
    "cut", [b'{"custom_id": "x-0-s", "result": {"type": "succ', b'{"custom_id":"x-0-s"', b"[1]", b"\xff"]
)
def test_a_broken_line_is_one_request_to_ask_again(cut: bytes):
    found = outcomes_of([cut, line("x-0-w", message()), b"  \n"], ("x-0-s", "x-0-w"))

    assert found.broken_count == 1
    assert found.by_id["x-0-s"].status is (AnswerStatus.MALFORMED if b"x-0-s" in cut else AnswerStatus.LOST)
    assert found.by_id["x-0-w"].status is AnswerStatus.ANSWERED


@given(st.lists(st.binary(max_size=80)))
def test_no_file_of_results_is_too_strange_to_read(lines: list[bytes]):
    assert set(outcomes_of(lines, IDS).by_id) == set(IDS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "error", "usage", "content", "stop_reason"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_no_result_is_too_strange_to_have_a_fate(result: Any):
    assert fate(result) in AnswerStatus
