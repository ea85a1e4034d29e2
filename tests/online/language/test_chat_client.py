"""The client for servers that speak chat completions: what they are asked, what comes back, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai_server import LocalOpenAI
from stopwatch import stopwatch

from benchmarks.anthropic_server import Play
from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.core.settings import Settings, settings
from nous_online.language.claude.chat import Chat, completion_of, reply_of
from nous_online.language.claude.client import model_client
from nous_online.language.claude.pair_prompt import PairAnswer, pairs_request, read_answers
from nous_online.language.claude.replies import Failure, LLMError, Reply, Usage
from nous_online.language.pairs.judging import JudgedStatement, Pair

MODEL, KEY = "qwen3", "sk-of-this-test"
MEMORY = "the tide table of Husum"
QUESTION: dict[str, Any] = {"model": MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": MEMORY}]}
PAIR = Pair(JudgedStatement("The office is in Bonn"), JudgedStatement("The office is in Porto"), 0.9)
ABOUT_A_PAIR = pairs_request([PAIR], model=MODEL)
SOON = {"retry-after": "0"}


@pytest.fixture
def server() -> Iterator[LocalOpenAI]:
    with LocalOpenAI() as server:
        yield server


@pytest.fixture
def chat(server: LocalOpenAI) -> Chat:
    chat = Chat(KEY, base_url=server.url)
    chat.open()
    return chat


def failed(chat: Chat, request: dict[str, Any] = QUESTION, *, deadline_s: float = 5) -> LLMError:
    with pytest.raises(LLMError) as raised:
        chat.ask(request, deadline_s=deadline_s)
    return raised.value


def test_an_answer_comes_back_with_its_tokens(server: LocalOpenAI, chat: Chat):
    cached = {"prompt_tokens_details": {"cached_tokens": 40}}
    server.play(Play(text="four words, no more", usage={"prompt_tokens": 50, "completion_tokens": 7, **cached}))

    assert chat.ask(QUESTION, deadline_s=5) == Reply("four words, no more", MODEL, Usage(10, 7, 40))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_question_says_the_same_in_the_other_form():
    said = completion_of({**ABOUT_A_PAIR, "system": [{"type": "text", "text": "Judge.", "cache_control": {}}]})

    schema = ABOUT_A_PAIR["output_config"]["format"]["schema"]
    assert (said["model"], said["max_completion_tokens"]) == (MODEL, ABOUT_A_PAIR["max_tokens"])
    assert [each["role"] for each in said["messages"]] == ["system", "user"]
    assert said["messages"][0]["content"].startswith("Judge.")
    assert said["messages"][0]["content"].endswith(json.dumps(schema))
    assert said["messages"][1]["content"] == ABOUT_A_PAIR["messages"][0]["content"]
    assert said["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize(
    "unknown", [(), ("response_format",), ("max_completion_tokens",), ("response_format", "max_completion_tokens")]
)
def test_what_a_server_does_not_know_is_left_out_once_it_has_said_so(unknown: tuple[str, ...]):
    with LocalOpenAI(unknown=unknown) as server:
        chat = Chat(base_url=server.url)
        chat.open()

        answers = [read_answers(chat.ask(ABOUT_A_PAIR, deadline_s=20).text)[1] for _ in range(2)]

    assert [isinstance(answer, PairAnswer) for answer in answers] == [True, True]
    assert len(server.raw) == 2 + len(unknown)
    assert not set(unknown) & set(server.raw[-1])
    assert server.requests[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "<think>Let me see. {{</think>\n\n{}", " {}\n"])
def test_json_is_read_out_of_what_stands_around_it(around: str):
    text = json.dumps({"verdicts": []})
    body = {"choices": [{"finish_reason": "stop", "message": {"content": around.format(text)}}]}

    assert reply_of(body, model=MODEL).text == text


ANSWERS = [
    # status, play, kind, how many requests were made
    (307, {"headers": {"location": "http://192.0.2.1/"}}, Failure.PERMANENT, 1),
    (400, {}, Failure.PERMANENT, 1),
    (401, {}, Failure.PERMANENT, 1),
    (402, {}, Failure.QUOTA, 1),
    (404, {"message": "model 'qwen3' not found"}, Failure.PERMANENT, 1),
    (429, {}, Failure.TRANSIENT, 3),
    (429, {"headers": SOON}, Failure.TRANSIENT, 3),
    (429, {"headers": {"retry-after": "60"}}, Failure.TRANSIENT, 1),
    (429, {"error": "insufficient_quota"}, Failure.QUOTA, 1),
    (500, {}, Failure.TRANSIENT, 3),
    (503, {"body": b"<html>loading model</html>"}, Failure.TRANSIENT, 3),
    (200, {"stop_reason": "refusal"}, Failure.REFUSED, 1),
    (200, {"stop_reason": "max_tokens"}, Failure.TRUNCATED, 1),
    (200, {"stop_reason": "tool_use"}, Failure.MALFORMED, 1),
    (200, {"text": ""}, Failure.MALFORMED, 1),
    (200, {"body": b"null"}, Failure.MALFORMED, 1),
    (200, {"body": b"[]"}, Failure.MALFORMED, 1),
    (200, {"body": b'{"choices": [{"message": 7}], "usage": "much"}'}, Failure.MALFORMED, 1),
    (200, {"body": b'{"choices": "many"}'}, Failure.MALFORMED, 1),
    (200, {"body": b"<html>Log in to the network</html>"}, Failure.MALFORMED, 1),
    (200, {"cut_at": 20}, Failure.TRANSIENT, 3),
    (200, {"is_lost": True}, Failure.TRANSIENT, 3),
]


@pytest.mark.parametrize(("status", "play", "kind", "requests"), ANSWERS)
def test_every_way_to_fail_has_its_kind_and_only_what_passes_is_asked_again(
    status: int, play: dict[str, Any], kind: Failure, requests: int, server: LocalOpenAI, chat: Chat
):
    server.answer_with(lambda _request: "yes")
    server.play_always(Play(status=status, **play))

    error = failed(chat)

    assert (error.kind, len(server.requests)) == (kind, requests)
    assert MEMORY not in str(error)
    assert KEY not in str(error)


@pytest.mark.parametrize("play", [Play(delay_s=60), Play(stall_at=40), Play(drip=10), Play(status=529)], ids=str)
def test_a_call_ends_by_its_deadline_whatever_the_server_does(play: Play, server: LocalOpenAI, chat: Chat):
    server.play_always(play)
    took_s = stopwatch()

    error = failed(chat, deadline_s=0.5)

    assert took_s() < 1.5
    assert error.kind is Failure.TRANSIENT


def test_openai_itself_needs_a_key_and_an_address_needs_a_host():
    with pytest.raises(InvalidInput, match="NOUS_LLM_KEY is empty"):
        Chat()
    with pytest.raises(InvalidInput, match="NOUS_LLM_URL names no host"):
        Chat(base_url="localhost:11434")


def test_the_settings_name_provider_model_address_and_key(server: LocalOpenAI, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"NOUS_LLM": f"openai:{MODEL}", "NOUS_LLM_URL": server.url, "NOUS_LLM_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    chosen = Settings()

    client = model_client(chosen)

    assert isinstance(client, Chat)
    assert client.models(deadline_s=20) == [MODEL]
    assert (chosen.judge_model, chosen.writer_model, chosen.asks_model, chosen.is_local) == (MODEL, MODEL, True, True)
    monkeypatch.setenv("NOUS_WRITER_MODEL", "larger")
    monkeypatch.setenv("NOUS_JUDGE", "offline")
    assert (Settings().writer_model, Settings().asks_model) == ("larger", False)


def test_claude_is_named_the_same_way(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOUS_LLM", "anthropic:claude-opus-5-5")
    monkeypatch.setenv("NOUS_LLM_KEY", KEY)
    chosen = Settings()

    assert (chosen.judge_model, chosen.provider) == ("claude-opus-5-5", "anthropic")
    assert chosen.anthropic_api_key.get_secret_value() == KEY


def test_without_its_package_a_model_by_name_is_refused_and_a_key_alone_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    for module in ("nous_online.language.claude.client", "nous_online.core.settings"):
        monkeypatch.setattr(f"{module}.find_spec", lambda _name: None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    by_key_alone = Settings().asks_model
    monkeypatch.setenv("NOUS_LLM", f"openai:{MODEL}")
    monkeypatch.setenv("NOUS_LLM_URL", "http://127.0.0.1:9/v1")

    assert (by_key_alone, Settings().asks_model) == (False, True)
    with pytest.raises(Unsupported, match=r"pip install 'nous-pipelines\[openai\]'"):
        model_client(Settings())


def test_a_model_without_a_provider_is_no_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOUS_LLM", "gpt-6")

    settings.cache_clear()
    with pytest.raises(InvalidInput, match=r"NOUS_LLM: .* \(want anthropic:MODEL or openai:MODEL\)$"):
        settings()
    settings.cache_clear()
