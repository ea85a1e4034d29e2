"""A wrapped client: the real packages of both makers, against a server on this machine that speaks their APIs."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from nous_online import Episode, Heart, close_conversations
from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.database.connection import Database
from nous_online.interfaces.adapters import wrapping
from nous_online.memories.erasure import Part, erase_some
from nous_online.processes import child_environment

if TYPE_CHECKING:
    import openai

ROOT = Path(__file__).parents[3]
KNOWN = "The staging database is called heron and lives in Frankfurt"
ASKED = "What is the staging database called?"
ANSWER = "It is called heron."
USAGE = {"input_tokens": 1, "output_tokens": 1}


class Model(ThreadingHTTPServer):
    """Answers whatever it is asked with one sentence, as a whole or in pieces, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), Asked)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Asked(BaseHTTPRequestHandler):
    server: Model  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        whole, events = ANSWERS[self.path.removeprefix("/v1")]
        if body.get("stream"):
            lines = [f"event: {each.get('type', 'message')}\ndata: {json.dumps(each)}\n\n" for each in events]
            done = "" if self.path.endswith("/messages") else "data: [DONE]\n\n"
            self.answer("".join(lines) + done, "text/event-stream")
        else:
            self.answer(json.dumps(whole), "application/json")

    def answer(self, text: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 (the base class calls it so)


MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "stop_sequence": None, "usage": USAGE,
}  # fmt: skip
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "tools": [],
    "error": None, "parallel_tool_calls": True, "tool_choice": "auto", "output": [
        {"id": "o", "type": "message", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": ANSWER, "annotations": []}]}],
}  # fmt: skip
PIECES = (ANSWER[:7], ANSWER[7:])
ANSWERS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "/messages": (
        {**MESSAGE, "content": [{"type": "text", "text": ANSWER}]},
        [
            {"type": "message_start", "message": {**MESSAGE, "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": x}} for x in PIECES),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE},
            {"type": "message_stop"},
        ],
    ),
    "/chat/completions": (
        {**CHUNK, "object": "chat.completion", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}]},
        [{**CHUNK, "choices": [{"index": 0, "delta": {"content": each}, "finish_reason": None}]} for each in PIECES],
    ),
    "/responses": (
        RESPONSE,
        [{"type": "response.created", "response": {**RESPONSE, "id": "resp_2"}, "sequence_number": 0}] + [
         {"type": "response.output_text.delta", "item_id": "o", "output_index": 0, "content_index": 0, "delta": each,
          "sequence_number": place, "logprobs": []} for place, each in enumerate(PIECES, 1)],
    ),
}  # fmt: skip


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        yield server
        server.shutdown()


def wrap(client: Any, heart: Heart | str, **reach: str) -> Any:
    """Wrap a client; what its checker does not know of it is asked for too."""
    return wrapping.wrap(client, heart, **reach)


def spoken(*texts: str) -> list[dict[str, str]]:
    """Return the messages of a conversation in which the user begins."""
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


def claude(model: Model) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=model.url, api_key="none", max_retries=0)


def gpt(model: Model) -> openai.OpenAI:
    import openai  # a second to load, in each worker that collects this file

    return openai.OpenAI(base_url=f"{model.url}/v1", api_key="none", max_retries=0)


def by_message(client: Any, turns: list[dict[str, str]]) -> str:
    return client.messages.create(model="m", max_tokens=9, messages=turns).content[0].text


def by_message_in_pieces(client: Any, turns: list[dict[str, str]]) -> str:
    with client.messages.create(model="m", max_tokens=9, messages=turns, stream=True) as events:
        return "".join(each.delta.text for each in events if each.type == "content_block_delta")


def by_helper(client: Any, turns: list[dict[str, str]]) -> str:
    with client.messages.stream(model="m", max_tokens=9, messages=turns) as stream:
        return "".join(stream.text_stream)


def by_completion(client: Any, turns: list[dict[str, str]]) -> str:
    return client.chat.completions.create(model="m", messages=turns).choices[0].message.content


def by_completion_in_pieces(client: Any, turns: list[dict[str, str]]) -> str:
    return "".join(
        each.choices[0].delta.content for each in client.chat.completions.create(model="m", messages=turns, stream=True)
    )


def by_response(client: Any, turns: list[dict[str, str]]) -> str:
    return client.responses.create(model="m", input=turns).output_text


def by_response_in_pieces(client: Any, turns: list[dict[str, str]]) -> str:
    events = client.responses.create(model="m", input=turns, stream=True)
    return "".join(each.delta for each in events if each.type == "response.output_text.delta")


def episodes(heart: Heart) -> list[Episode]:
    with heart.agent.database.transaction(heart.agent.id) as connection:
        found = connection.execute("select id from heart.episodes order by started_at, id").fetchall()
    return [heart.get_episode(each) for (each,) in found]


WAYS = [
    (claude, by_message), (claude, by_message_in_pieces), (claude, by_helper), (gpt, by_completion),
    (gpt, by_completion_in_pieces), (gpt, by_response), (gpt, by_response_in_pieces),
]  # fmt: skip


@pytest.mark.parametrize(("maker", "way"), WAYS)
def test_what_is_known_goes_in_and_what_was_said_becomes_one_episode(
    maker: Any, way: Any, model: Model, heart: Heart
) -> None:
    heart.learn(KNOWN)
    client = wrap(maker(model), heart)
    turns = [{"role": "user", "content": ASKED}]

    assert way(client, turns) == ANSWER
    later = [*turns, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "Thank you, that was all"}]
    assert way(client, later) == ANSWER
    assert client.nous.close()

    first, second = map(json.dumps, model.asked)
    assert (KNOWN in first, "not instructions" in first, KNOWN in second) == (True, True, False)
    (episode,) = episodes(heart)
    assert episode.detail == (f"user: {ASKED}\nassistant: {ANSWER}\nuser: Thank you, that was all\nassistant: {ANSWER}")
    assert episode.ended_at is not None
    assert later[0] == {"role": "user", "content": ASKED}  # what the caller holds is not changed


def test_two_conversations_that_begin_alike_are_two_episodes(model: Model, heart: Heart) -> None:
    client = wrap(gpt(model), heart)

    for _ in range(2):
        by_completion(client, [{"role": "user", "content": "hello there"}])
    client.nous.close()

    assert [each.detail for each in episodes(heart)] == [f"user: hello there\nassistant: {ANSWER}"] * 2


def test_a_conversation_is_never_anothers_that_ends_alike(model: Model, heart: Heart) -> None:
    client = wrap(claude(model), heart)

    by_message(client, spoken("I am Ben, of ticket 77"))
    by_message(client, spoken("I am Ana, of ticket 12", ANSWER, "I can't eat nuts"))  # begun by an earlier process
    by_message(client, spoken("I am Ben, of ticket 77", ANSWER, "hello"))
    by_message(client, spoken("hello", ANSWER, "I am Cleo"))
    by_message(client, [{"role": "assistant", "content": ANSWER}, *spoken("I am Dora")])
    client.nous.close()

    assert [each.detail for each in episodes(heart)] == [
        f"user: I am Ben, of ticket 77\nassistant: {ANSWER}\nuser: hello\nassistant: {ANSWER}",
        f"user: I can't eat nuts\nassistant: {ANSWER}",
        f"user: I am Cleo\nassistant: {ANSWER}",
        f"user: I am Dora\nassistant: {ANSWER}",
    ]


def test_what_is_said_in_place_of_an_earlier_message_begins_an_episode_of_its_own(model: Model, heart: Heart) -> None:
    client = wrap(gpt(model), heart)

    for way in (by_completion, by_completion_in_pieces):
        way(client, spoken("hello there"))
    by_completion(client, spoken("hello there", ANSWER, "where is order 1?"))
    by_completion(client, spoken("hello there", ANSWER, "where is order 2?"))
    by_completion(client, spoken("hello there", ANSWER, "where is order 3?"))
    by_completion(client, spoken("hello there", ANSWER, "where is order 1?", f" {ANSWER}\n", "thank you"))
    client.nous.close()

    greeting, ending = f"user: hello there\nassistant: {ANSWER}\n", f"\nassistant: {ANSWER}"
    assert [each.detail for each in episodes(heart)] == [
        f"{greeting}user: where is order 1?{ending}\nuser: thank you{ending}",
        f"{greeting}user: where is order 2?{ending}",
        f"user: where is order 3?{ending}",
    ]


def test_the_last_messages_are_enough_among_the_conversations_of_one_user(model: Model, heart: Heart) -> None:
    ana, anyone = wrap(claude(model), heart, user_id="ana"), wrap(claude(model), heart)

    for client in (ana, anyone):
        by_message(client, spoken("I moved to Rome"))
        by_message(client, spoken("I moved to Rome", ANSWER, "the flat is small"))
        by_message(client, spoken("the flat is small", ANSWER, "but it is bright"))
        by_message(client, spoken("I moved to Rome", ANSWER, "the flat is large"))  # a branch
        client.nous.close()

    lengths = [(each.user_id, str(each.detail).count("user: ")) for each in episodes(heart)]
    assert lengths == [("ana", 3), ("ana", 1), (None, 2), (None, 1), (None, 1)]


def test_only_so_many_conversations_are_known(model: Model, heart: Heart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapping, "MOST_KNOWN", 1)
    client = wrap(claude(model), heart)

    for text in ("one", "two", "two"):
        by_message(client, spoken(text))
    by_message(client, spoken("one", ANSWER, "more of one"))
    client.nous.close()

    assert [str(each.detail).count("user: ") for each in episodes(heart)] == [1, 1, 1, 1]


def test_a_response_that_names_the_one_before_belongs_to_its_conversation(model: Model, heart: Heart) -> None:
    client = wrap(gpt(model), heart)

    answer = client.responses.create(model="m", input="where is the key?")
    list(client.responses.create(model="m", input="and the other?", previous_response_id=answer.id, stream=True))
    client.responses.create(model="m", input="and a third?", previous_response_id=answer.id)  # a branch
    client.responses.create(model="m", input="thank you", previous_response_id="resp_2")
    client.nous.close()

    first, second, third, branch = "where is the key?", "and the other?", "thank you", "and a third?"
    said = [f"user: {text}\nassistant: {ANSWER}" for text in (first, second, third)]
    assert [each.detail for each in episodes(heart)] == ["\n".join(said), f"user: {branch}\nassistant: {ANSWER}"]


def test_notes_stand_beside_what_the_caller_says_itself(model: Model, heart: Heart) -> None:
    heart.learn(KNOWN)
    one, other = wrap(claude(model), heart), wrap(gpt(model), heart)
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    asked: Any = [{"role": "user", "content": [{"type": "text", "text": ASKED}]}]

    one.messages.create(model="m", max_tokens=9, system=system, messages=iter(asked))
    one.messages.create(model="m", max_tokens=9, system="Be brief.", messages=asked)
    other.chat.completions.create(model="m", messages=[{"role": "system", "content": "Be brief."}, *asked])
    other.responses.create(model="m", instructions="Be brief.", input=ASKED)
    assert one.nous.close()
    assert other.nous.close()

    blocks, text, turns, instructions = model.asked
    assert (blocks["system"][0], KNOWN in blocks["system"][1]["text"], blocks["messages"]) == (system[0], True, asked)
    assert text["system"].startswith("Be brief.\n\n")
    assert KNOWN in text["system"]
    assert [each["role"] for each in turns["messages"]] == ["system", "system", "user"]
    assert instructions["instructions"].startswith("Be brief.\n\n")


def test_what_a_tool_returns_asks_nothing_and_is_not_kept(model: Model, heart: Heart) -> None:
    heart.learn(KNOWN)
    client = wrap(claude(model), heart)
    turns: Any = [
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ASKED}]},
    ]

    by_message(client, turns)
    client.nous.close()

    assert "system" not in model.asked[0]
    assert [each.detail for each in episodes(heart)] == [f"assistant: {ANSWER}"]


def left_by_break(events: Any) -> None:
    for event in events:
        if getattr(event, "delta", None) or getattr(event, "choices", None):
            break


def left_by_error(events: Any) -> None:
    with contextlib.suppress(ZeroDivisionError):
        for event in events:
            if getattr(event, "delta", None) or getattr(event, "choices", None):
                1 / 0  # noqa: B018 (raises)


LEAVING = [left_by_break, left_by_error]


@pytest.mark.parametrize("leave", LEAVING)
def test_of_a_stream_that_is_left_what_arrived_is_kept(leave: Any, model: Model, heart: Heart) -> None:
    one, other = wrap(claude(model), heart), wrap(gpt(model), heart)
    ask = {"model": "m", "messages": spoken(ASKED), "stream": True}

    leave(one.messages.create(max_tokens=9, **ask))
    leave(other.chat.completions.create(**ask))
    leave(other.responses.create(model="m", input=ASKED, stream=True))
    closed, held = (one.messages.create(max_tokens=9, **ask) for _ in range(2))
    leave(closed)
    closed.close()
    leave(held)
    one.messages.create(max_tokens=9, **ask)  # none of it is read
    with one.messages.stream(model="m", max_tokens=9, messages=spoken(ASKED)):
        pass
    assert one.nous.close()
    assert other.nous.close()

    assert [each.detail for each in episodes(heart)] == [f"user: {ASKED}\nassistant: {PIECES[0].strip()}"] * 5


def test_a_stream_that_is_read_in_two_loops_is_kept_whole(model: Model, heart: Heart) -> None:
    client = wrap(gpt(model), heart)

    events = client.chat.completions.create(model="m", messages=spoken(ASKED), stream=True)
    left_by_break(events)
    assert [each.choices[0].delta.content for each in events] == [PIECES[1]]
    client.nous.close()

    assert [each.detail for each in episodes(heart)] == [f"user: {ASKED}\nassistant: {ANSWER}"]


def test_of_an_asynchronous_stream_that_is_left_what_arrived_is_kept(model: Model, heart: Heart) -> None:
    import openai

    ask: Any = {"model": "m", "messages": spoken(ASKED), "stream": True}

    async def talk() -> None:
        one = wrap(anthropic.AsyncAnthropic(base_url=model.url, api_key="none"), heart)
        other = wrap(openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key="none"), heart)
        async for event in await one.messages.create(max_tokens=9, **ask):
            if event.type == "content_block_delta":
                break
        closed, also, held = [await other.chat.completions.create(**ask) for _ in range(3)]
        for events in (closed, also, held):
            async for _ in events:
                break
        await closed.close()
        await also.aclose()
        assert one.nous.close()
        assert other.nous.close()

    asyncio.run(talk())

    assert [each.detail for each in episodes(heart)] == [f"user: {ASKED}\nassistant: {PIECES[0].strip()}"] * 4


def test_an_asynchronous_client_remembers_as_well(model: Model, heart: Heart) -> None:
    import openai

    heart.learn(KNOWN)
    turns: Any = [{"role": "user", "content": ASKED}]

    async def talk() -> None:
        one = wrap(anthropic.AsyncAnthropic(base_url=model.url, api_key="none"), heart)
        other = wrap(openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key="none"), heart)
        await one.messages.create(model="m", max_tokens=9, messages=turns)
        async with one.messages.stream(model="m", max_tokens=9, messages=turns) as stream:
            assert "".join([each async for each in stream.text_stream]) == ANSWER
        async for _ in await other.chat.completions.create(model="m", messages=turns, stream=True):
            pass
        assert one.nous.close()
        assert other.nous.close()

    asyncio.run(talk())

    assert [KNOWN in json.dumps(each) for each in model.asked] == [True] * 3
    assert [each.detail for each in episodes(heart)] == [f"user: {ASKED}\nassistant: {ANSWER}"] * 3


def test_a_memory_that_fails_leaves_the_call_as_it_is_and_what_was_said_waits(
    model: Model, heart: Heart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrapping, "RETRY_S", 0.01)
    client = wrap(gpt(model), heart)
    real = heart.start_episode
    failures = iter([Unavailable("the server is away"), Unavailable("still")])

    def failing(*told: Any, **more: Any) -> Any:
        if failure := next(failures, None):
            raise failure
        return real(*told, **more)

    monkeypatch.setattr(heart, "start_episode", failing)
    monkeypatch.setattr(heart, "recall", lambda *_, **__: failing())

    assert by_completion(client, [{"role": "user", "content": ASKED}]) == ANSWER
    assert client.nous.close()

    assert model.asked[0]["messages"] == [{"role": "user", "content": ASKED}]
    assert [each.detail for each in episodes(heart)] == [f"user: {ASKED}\nassistant: {ANSWER}"]


def test_the_end_of_the_program_tells_what_was_said(model: Model, database_url: str) -> None:
    program = (
        "import openai, nous_online, sys\n"
        "client = nous_online.wrap(openai.OpenAI(base_url=sys.argv[1], api_key='none'), 'aria')\n"
        "client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'mind the gap'}])\n"
    )
    command = [sys.executable, "-c", program, f"{model.url}/v1"]

    subprocess.run(command, env=child_environment(NOUS_DATABASE_URL=database_url), check=True, timeout=60)

    heart = Heart.open("aria", database=Database(database_url))
    assert [each.detail for each in episodes(heart)] == [f"user: mind the gap\nassistant: {ANSWER}"]
    heart.close()


@pytest.mark.parametrize(("maker", "way"), [(claude, by_message), (gpt, by_completion)])
def test_a_copy_of_a_wrapped_client_continues_its_conversations(
    maker: Any, way: Any, model: Model, heart: Heart
) -> None:
    heart.learn(KNOWN)
    client = wrap(maker(model), heart)

    way(client.with_options(timeout=30), spoken(ASKED))
    way(client.copy(max_retries=1).with_options(timeout=20), spoken(ASKED, ANSWER, "thank you"))
    way(client, spoken(ASKED, ANSWER, "thank you", ANSWER, "bye"))
    assert client.nous.close()

    assert KNOWN in json.dumps(model.asked[0])
    said = [f"user: {text}\nassistant: {ANSWER}" for text in (ASKED, "thank you", "bye")]
    assert [each.detail for each in episodes(heart)] == ["\n".join(said)]


def test_conversations_are_closed_by_a_function_that_type_checkers_know(
    model: Model, heart: Heart, tmp_path: Path
) -> None:
    client = wrap(claude(model), heart)
    by_message(client, spoken(ASKED))

    assert close_conversations(client)

    assert [each.ended_at is not None for each in episodes(heart)] == [True]
    with pytest.raises(InvalidInput, match=r"not a wrapped client: Anthropic \(want what `wrap` returned\)"):
        close_conversations(claude(model))
    shown = (ROOT / "docs" / "clients.md").read_text().partition("```python\n")[2].partition("```")[0]
    (tmp_path / "shown.py").write_text(shown)
    options = {"include": ["shown.py"], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    checker = [Path(sys.executable).with_name("basedpyright"), "--pythonpath", sys.executable, "-p", tmp_path]
    checked = subprocess.run(checker, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stdout


def test_a_client_wrapped_again_has_the_new_memory_alone(model: Model, heart: Heart) -> None:
    first = wrap(claude(model), heart, user_id="ana")
    second = wrap(first, heart, user_id="ben")

    by_message(second.with_options(timeout=30), spoken(ASKED))
    assert first.nous.close()
    assert second.nous.close()

    assert [each.user_id for each in episodes(heart)] == ["ben"]


def test_a_client_of_a_derived_class_is_wrapped(model: Model, heart: Heart) -> None:
    class OurClient(anthropic.Anthropic):
        """A client with a name of its own."""

    client = wrap(OurClient(base_url=model.url, api_key="none"), heart)

    assert isinstance(client, OurClient)
    by_message(client, spoken(ASKED))
    client.nous.close()
    assert len(episodes(heart)) == 1


def test_another_client_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"can't wrap a dict: want a client of `anthropic` or `openai`"):
        wrap({}, "aria")


@pytest.mark.parametrize(
    ("name", "reach", "problem"),
    [
        ("", {}, "agent_id is empty"),
        ("*", {}, "stands for administrators"),
        ("a" * 101, {}, "the limit is 100"),
        (None, {}, "agent_id is empty"),
        ("aria", {"user_id": "u" * 101}, "user_id has 101 characters"),
        ("aria", {"project_id": " "}, "project_id is empty"),
    ],
)
def test_a_name_that_nothing_can_have_is_refused_at_once(name: Any, reach: Any, problem: str, model: Model) -> None:
    with pytest.raises(InvalidInput, match=problem):
        wrap(claude(model), name, **reach)


def test_an_exchange_that_could_not_be_stored_is_counted(
    model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    client = wrap(claude(model), "aria")

    by_message(client, spoken("mind the gap"))

    assert not client.nous.close(within_s=0.1)
    assert "not stored in the memory of aria within 0.1 s: 1 of the exchanges" in caplog.text
    atexit.unregister(client.nous.close)  # the tests end without another five seconds


def test_a_memory_that_can_never_be_opened_is_not_tried_again(
    model: Model, database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", "nobody-made-this")
    client = wrap(claude(model), "aria")

    assert by_message(client, spoken("mind the gap")) == ANSWER

    assert not client.nous.close(within_s=60)  # at once
    assert "the memory of aria can't be opened, and nothing is remembered: " in caplog.text
    assert "1 of the exchanges" in caplog.text


def test_an_episode_that_was_erased_is_begun_again(model: Model, heart: Heart, database_url: str) -> None:
    client = wrap(claude(model), heart)
    by_message(client, spoken("mind the gap"))
    while not (found := episodes(heart)) or not found[0].detail:
        time.sleep(0.01)

    part = Part((found[0].id,))
    erase_some(database_url, "aria", part, reason="asked for", erasers=[], embedder_of=lambda _: heart.agent.embedder)
    by_message(client, spoken("mind the gap", ANSWER, "which gap?"))

    assert client.nous.close()
    assert [each.detail for each in episodes(heart)] == [f"user: which gap?\nassistant: {ANSWER}"]
