"""The client for Claude, against the local server and real sockets: what comes back, how it fails, and when it ends."""

from __future__ import annotations

import json
import logging
import socket
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from endless_server import speaking
from stopwatch import stopwatch

from benchmarks.anthropic_server import LocalAnthropic, Play
from nous_online.core.errors import InvalidInput
from nous_online.core.settings import Settings
from nous_online.language.claude.anthropic_api import get_batch
from nous_online.language.claude.client import Claude, claude_of
from nous_online.language.claude.replies import Failure, LLMError, Reply, Usage

KEY = "sk-ant-of-this-test"
MODEL = "claude-haiku-5-5"
MEMORY = "the tide table of Husum"
QUESTION: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 500,
    "thinking": {"type": "disabled"},
    "messages": [{"role": "user", "content": MEMORY}],
}
GRACE_S = 1.0  # a busy machine wakes a thread late; what is tested for would take five seconds and more


@pytest.fixture
def server() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=lambda _request: "four words, no more") as server:
        yield server


@pytest.fixture
def claude(server: LocalAnthropic) -> Claude:
    claude = Claude(KEY, base_url=server.url)
    claude.open()
    return claude


def failed(claude: Claude, request: Mapping[str, Any] = QUESTION, *, deadline_s: float = 5) -> LLMError:
    with pytest.raises(LLMError) as raised:
        claude.ask(request, deadline_s=deadline_s)
    return raised.value


def test_an_answer_comes_back_with_its_model_and_tokens(server: LocalAnthropic, claude: Claude):
    server.play(Play(usage={"output_tokens": 7, "cache_read_input_tokens": 4200, "cache_creation_input_tokens": 5}))

    reply = claude.ask(QUESTION, deadline_s=5)

    assert reply == Reply("four words, no more", MODEL, Usage(6, 7, 4200, 5))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_what_is_sent_is_what_was_asked_for_byte_by_byte_up_to_the_mark_for_the_cache(
    server: LocalAnthropic, claude: Claude
):
    fixed = {
        "model": MODEL,
        "max_tokens": 500,
        "thinking": {"type": "disabled"},
        "output_config": {
            "format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": False}}
        },
        "system": [{"type": "text", "text": "Judge. " * 3000, "cache_control": {"type": "ephemeral"}}],
    }

    written, read = (
        claude.ask({**fixed, "messages": [{"role": "user", "content": text}]}, deadline_s=5).usage
        for text in ("first", "second")
    )

    bodies = [request.body for request in server.requests]
    assert bodies[0].partition(b'"messages"')[0] == bodies[1].partition(b'"messages"')[0]
    assert json.loads(bodies[0])["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert written.cache_write_tokens == read.cache_read_tokens > 5000


STOPS = [
    # stop reason, text, kind
    ("end_turn", "yes", None),
    ("stop_sequence", "yes", None),
    ("end_turn", "", Failure.MALFORMED),
    ("end_turn", "half a letter \ud800", Failure.MALFORMED),
    ("max_tokens", "yes", Failure.TRUNCATED),
    ("model_context_window_exceeded", "yes", Failure.TRUNCATED),
    ("refusal", None, Failure.REFUSED),
    ("refusal", "well, yes", Failure.REFUSED),
    ("tool_use", "yes", Failure.MALFORMED),
    ("pause_turn", "yes", Failure.MALFORMED),
    ("something_new", "yes", Failure.MALFORMED),
]


@pytest.mark.parametrize(("stop_reason", "text", "kind"), STOPS)
def test_only_an_answer_that_came_to_its_end_is_one(
    stop_reason: str, text: str | None, kind: Failure | None, server: LocalAnthropic, claude: Claude
):
    server.play(Play(text=text, stop_reason=stop_reason, stop_category="cyber", usage={"output_tokens": 11}))

    try:
        found, usage = None, claude.ask(QUESTION, deadline_s=5).usage
    except LLMError as error:
        found, usage = error.kind, error.usage

    assert (found, usage.output_tokens) == (kind, 11)
    assert len(server.requests) == 1


def test_a_refusal_names_its_category_and_a_cut_answer_its_tokens(server: LocalAnthropic, claude: Claude):
    server.play(
        Play(stop_reason="refusal", stop_category="bio"), Play(stop_reason="max_tokens", usage={"output_tokens": 9})
    )

    assert str(failed(claude)) == f"{MODEL} declined to answer (bio); ask another model"
    assert str(failed(claude)).startswith(f"{MODEL} stopped after 9 tokens (max_tokens)")


SOON, LATE = {"retry-after": "0"}, {"retry-after": "60"}
ANSWERS = [
    # status, play, kind, how many requests were made
    (307, {"headers": {"location": "http://192.0.2.1/"}}, Failure.PERMANENT, 1),
    (400, {}, Failure.PERMANENT, 1),
    (400, {"message": "Your credit balance is too low to access the Anthropic API."}, Failure.QUOTA, 1),
    (400, {"message": "You have reached your specified API usage limits."}, Failure.QUOTA, 1),
    (400, {"message": "This workspace has reached its spend limit"}, Failure.QUOTA, 1),
    (400, {"error_code": "organization_on_hold"}, Failure.PERMANENT, 1),
    (401, {}, Failure.PERMANENT, 1),
    (402, {}, Failure.QUOTA, 1),
    (402, {"headers": SOON}, Failure.QUOTA, 1),
    (403, {}, Failure.PERMANENT, 1),
    (404, {}, Failure.PERMANENT, 1),
    (408, {}, Failure.TRANSIENT, 3),
    (409, {}, Failure.TRANSIENT, 3),
    (412, {}, Failure.PERMANENT, 1),
    (413, {}, Failure.PERMANENT, 1),
    (422, {}, Failure.PERMANENT, 1),
    (429, {}, Failure.QUOTA, 1),
    (429, {"headers": SOON}, Failure.TRANSIENT, 3),
    (429, {"headers": {"retry-after-ms": "1"}}, Failure.TRANSIENT, 3),
    (429, {"headers": LATE}, Failure.TRANSIENT, 1),
    (429, {"headers": {"retry-after": "4233600"}}, Failure.TRANSIENT, 1),
    (429, {"headers": {"retry-after": "soon"}}, Failure.QUOTA, 1),
    (429, {"headers": {"retry-after": "nan"}}, Failure.QUOTA, 1),
    (429, {"headers": SOON, "error_code": "enforced_spend_limit_reached"}, Failure.QUOTA, 1),
    (429, {"headers": SOON, "error_code": "ramp_limit_exceeded"}, Failure.TRANSIENT, 3),
    (431, {}, Failure.PERMANENT, 1),
    (499, {}, Failure.TRANSIENT, 3),
    (500, {}, Failure.TRANSIENT, 3),
    (500, {"headers": {"x-should-retry": "false"}}, Failure.TRANSIENT, 1),
    (501, {}, Failure.PERMANENT, 1),
    (503, {"body": b"<html>a gateway</html>"}, Failure.TRANSIENT, 3),
    (504, {"body": b""}, Failure.TRANSIENT, 3),
    (529, {}, Failure.TRANSIENT, 3),
    (529, {"headers": LATE}, Failure.TRANSIENT, 1),
    (200, {"body": b'{"type": "message", "stop_re'}, Failure.MALFORMED, 1),
    (200, {"body": b"<html>Log in to the network</html>"}, Failure.MALFORMED, 1),
    (200, {"body": b""}, Failure.MALFORMED, 1),
    (200, {"body": b"[]"}, Failure.MALFORMED, 1),
    (200, {"body": b"null"}, Failure.MALFORMED, 1),
    (200, {"body": b"\xff\xfe"}, Failure.MALFORMED, 1),
    (200, {"body": b"[" * 200_000}, Failure.MALFORMED, 1),
    (200, {"body": b'{"model": 1, "stop_reason": "end_turn", "content": "text", "usage": [1]}'}, Failure.MALFORMED, 1),
    (200, {"body": b"no gzip", "headers": {"content-encoding": "gzip"}}, Failure.TRANSIENT, 3),
    (200, {"cut_at": 20}, Failure.TRANSIENT, 3),
    (200, {"is_lost": True}, Failure.TRANSIENT, 3),
]


@pytest.mark.parametrize(("status", "play", "kind", "requests"), ANSWERS)
def test_every_way_to_fail_has_its_kind_and_only_what_passes_is_asked_again(
    status: int, play: dict[str, Any], kind: Failure, requests: int, server: LocalAnthropic, claude: Claude
):
    server.play_always(Play(status=status, **play))

    error = failed(claude)

    assert (error.kind, len(server.requests)) == (kind, requests)
    assert "127.0.0.1" in str(error) or status == 200
    assert "; " in str(error)
    assert MEMORY not in str(error)


REQUESTS = [
    {**QUESTION, "temperature": 0},
    {**QUESTION, "messages": []},
    {**QUESTION, "max_tokens": float("nan")},
    {**QUESTION, "messages": [{"role": "user", "content": "half a letter \ud800"}]},
    {**QUESTION, "messages": [{"role": "user", "content": b"bytes"}]},
    {**QUESTION, "messages": object()},
    {},
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_that_can_never_be_answered_is_a_permanent_failure(request_: dict[str, Any], claude: Claude):
    assert failed(claude, request_).kind is Failure.PERMANENT


ADDRESSES = [
    ("http://127.0.0.1:9", Failure.TRANSIENT, "127.0.0.1:9 can't be reached"),
    ("http://127.0.0.1:1/prefix/", Failure.TRANSIENT, "127.0.0.1:1 can't be reached"),
    ("http://user:hidden-word@127.0.0.1:9", Failure.TRANSIENT, "127.0.0.1:9 can't be reached"),
    ("http://127.0.0.1:9/\0", Failure.PERMANENT, "nothing can be sent"),
]


@pytest.mark.parametrize(("url", "kind", "says"), ADDRESSES)
def test_an_address_nobody_answers_at_is_named_without_its_password(url: str, kind: Failure, says: str):
    error = failed(Claude(KEY, base_url=url))

    assert error.kind is kind
    assert says in str(error)
    assert "hidden-word" not in str(error)


@pytest.mark.parametrize("url", ["api.anthropic.com", "ftp://host", "https://", "http://host:port", "http://[::1"])
def test_an_address_without_a_host_is_refused_before_anything_is_sent(url: str):
    with pytest.raises(InvalidInput, match="ANTHROPIC_BASE_URL"):
        Claude(KEY, base_url=url)


@pytest.mark.parametrize("key", ["", " \n", "sk-ant-ü", "two words", "line\nbreak", "nul\0"])
def test_a_key_no_header_can_carry_is_refused_without_showing_it(key: str):
    with pytest.raises(InvalidInput, match="ANTHROPIC_API_KEY") as raised:
        Claude(key)

    assert not key.strip() or key not in str(raised.value)


def test_the_settings_name_the_key_and_the_address(server: LocalAnthropic, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)

    claude_of(Settings()).ask(QUESTION, deadline_s=5)

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_what_passes_is_asked_again_until_it_is_answered(server: LocalAnthropic, claude: Claude):
    server.play(Play(status=529), Play(is_lost=True))

    assert claude.ask(QUESTION, deadline_s=5).text == "four words, no more"
    assert len(server.requests) == 3


STUCK = [
    Play(delay_s=60),
    Play(stall_at=0),
    Play(stall_at=40),
    Play(drip=10),
    Play(status=529, headers={"retry-after": "1"}, drip=10),
    Play(status=529),
]


@pytest.mark.parametrize("play", STUCK)
def test_a_call_ends_by_its_deadline_whatever_the_server_does(play: Play, server: LocalAnthropic, claude: Claude):
    server.play_always(play)
    took_s = stopwatch()

    error = failed(claude, deadline_s=0.5)

    assert took_s() < 0.5 + GRACE_S
    assert error.kind is Failure.TRANSIENT


ENDLESS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "early hints": (b"HTTP/1.1 100 Continue\r\n\r\n",),
    "chunks": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_server_that_never_stops_speaking_is_hung_up_on(name: str):
    with speaking(*ENDLESS[name], pause_s=0.02) as (url, hung_up):
        took_s = stopwatch()
        error = failed(Claude(KEY, base_url=url), deadline_s=0.5)

        assert took_s() < 0.5 + GRACE_S
        assert hung_up.wait(5)
    assert error.kind is Failure.TRANSIENT
    assert "did not answer within 0.5 s" in str(error)


def test_only_calls_that_a_setting_gives_more_time_name_the_setting(server: LocalAnthropic, claude: Claude):
    server.play_always(Play(delay_s=2))

    online = failed(claude, deadline_s=0.1)
    with pytest.raises(LLMError) as of_batches:
        get_batch(claude, "msgbatch_1", deadline_s=0.1)

    assert "NOUS_CLAUDE_DEADLINE_S" in str(online)
    assert "NOUS_CLAUDE_DEADLINE_S" not in str(of_batches.value)


def test_a_call_whose_time_others_used_up_is_not_made_and_may_be_later(server: LocalAnthropic, claude: Claude):
    with pytest.raises(LLMError, match="there was no time left to ask Claude") as raised:
        get_batch(claude, "msgbatch_1", deadline_s=-0.11)

    assert (raised.value.kind, server.requests) == (Failure.TRANSIENT, [])


def test_a_late_call_ends_no_other(server: LocalAnthropic, claude: Claude):
    server.play_always(Play(drip=10), when=lambda request: request["max_tokens"] == 499)
    server.play_always(Play(delay_s=0.8))
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(claude.ask, QUESTION, deadline_s=5) for _ in range(3)]
        error = failed(claude, {**QUESTION, "max_tokens": 499}, deadline_s=0.3)
        texts = [each.result().text for each in slow]

    assert error.kind is Failure.TRANSIENT
    assert texts == ["four words, no more"] * 3


def test_a_connection_serves_one_call_after_the_other(claude: Claude, monkeypatch: pytest.MonkeyPatch):
    connected: list[object] = []
    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda *args, **kw: connected.append(args) or connect(*args, **kw))

    for _ in range(3):
        claude.ask(QUESTION, deadline_s=5)

    assert len(connected) == 1


def test_a_deadline_is_a_number_of_seconds(claude: Claude):
    for seconds in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="deadline"):
            claude.ask(QUESTION, deadline_s=seconds)


def test_neither_the_key_nor_a_memory_is_told_to_anyone(server: LocalAnthropic, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    claude = Claude(KEY, base_url=server.url)
    server.play(Play(), Play(status=401, message=f"the key {KEY} is unknown"), Play(status=500, body=KEY.encode()))
    told = [repr(claude), str(claude)]

    claude.ask(QUESTION, deadline_s=5)
    errors = [failed(claude), failed(claude, deadline_s=0.1), failed(Claude(KEY, base_url="http://127.0.0.1:9"))]
    for error in errors:
        told += [repr(error), *traceback.format_exception(error)]
        seen: BaseException | None = error
        while seen is not None:
            told += [repr(vars(seen))]
            seen = seen.__cause__ or seen.__context__

    everything = "\n".join([*told, caplog.text])
    assert "the key [the key] is unknown" in everything
    assert KEY not in everything
    assert MEMORY not in everything
