"""The local Anthropic API on demand: scripted answers, every error, slow and broken connections, and its end."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import anthropic
import pytest
from local_api import client_of, question
from stopwatch import stopwatch

from benchmarks.anthropic_server import LocalAnthropic, Play, PlayRoute


@pytest.fixture
def local() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=lambda _request: "It is so.") as server:
        yield server


@pytest.fixture
def client(local: LocalAnthropic) -> Iterator[anthropic.Anthropic]:
    with client_of(local) as opened:
        yield opened


def test_plays_answer_the_next_requests_one_each(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play(Play(status=529), Play(text="at last"))

    with pytest.raises(anthropic.OverloadedError):
        client.messages.create(**question())
    told = [client.messages.create(**question()).content[0].text for _ in range(2)]

    assert told == ["at last", "It is so."]


def test_a_play_names_what_is_out_of_the_ordinary() -> None:
    assert [str(play) for play in (Play(), Play(status=529, drip=2.5))] == ["a proper answer", "status=529, drip=2.5"]


def test_a_play_may_be_for_one_route_or_for_what_a_request_says(
    client: anthropic.Anthropic, local: LocalAnthropic
) -> None:
    local.play_always(Play(status=503), route=PlayRoute.LIST_MODELS)
    local.play_always(Play(text="No."), when=lambda request: "doubt" in json.dumps(request))

    told = [client.messages.create(**question(text)).content[0].text for text in ("a doubt", "a fact")]

    assert told == ["No.", "It is so."]
    with pytest.raises(anthropic.ServiceUnavailableError):
        client.models.list()
    local.stop_playing()
    assert client.models.list().data


def test_the_text_may_depend_on_the_request(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play(Play(text=lambda request: request["messages"][0]["content"].upper()))

    assert client.messages.create(**question("loud")).content[0].text == "LOUD"


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "model_context_window_exceeded", "pause_turn", "tired"])
def test_an_answer_ends_for_the_reason_written_down(
    client: anthropic.Anthropic, local: LocalAnthropic, reason: str
) -> None:
    local.play(Play(stop_reason=reason, stop_category="cyber", usage={"output_tokens": 7}))

    message = client.messages.create(**question())

    assert (message.stop_reason, message.usage.output_tokens) == (reason, 7)
    assert (message.stop_details is not None) is (reason == "refusal")
    if message.stop_details:
        assert message.stop_details.category == "cyber"


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, None, anthropic.BadRequestError),
        (401, None, anthropic.AuthenticationError),
        (402, None, anthropic.PaymentRequiredError),
        (403, None, anthropic.PermissionDeniedError),
        (404, None, anthropic.NotFoundError),
        (413, None, anthropic.ContentTooLargeError),
        (429, "enforced_spend_limit_reached", anthropic.RateLimitError),
        (500, None, anthropic.InternalServerError),
        (529, None, anthropic.OverloadedError),
    ],
)
def test_an_error_reads_as_the_api_would_put_it(
    client: anthropic.Anthropic, local: LocalAnthropic, status: int, code: str | None, error: type[Exception]
) -> None:
    local.play(Play(status=status, error_code=code, message="not now", headers={"retry-after": "7"}))

    with pytest.raises(error) as refused:
        client.messages.create(**question())

    assert isinstance(refused.value, anthropic.APIStatusError)
    assert (refused.value.api_message, refused.value.error_code) == ("not now", code)
    assert refused.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    "play", [Play(is_lost=True), Play(cut_at=0), Play(cut_at=20), Play(body=b'{"id":', cut_at=3)], ids=str
)
def test_an_answer_may_break_off(client: anthropic.Anthropic, local: LocalAnthropic, play: Play) -> None:
    local.play(play)

    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**question())

    assert client.messages.create(**question()).stop_reason == "end_turn"


def test_an_answer_may_be_something_else_entirely(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play(Play(body=b"<html>maintenance</html>"))

    with pytest.raises(json.JSONDecodeError):
        client.messages.create(**question())


@pytest.mark.parametrize(
    ("play", "least_s", "most_s"), [(Play(delay_s=0.3), 0.3, 2), (Play(drip=2000), 0.2, 3)], ids=["delay", "drip"]
)
def test_an_answer_may_be_slow(
    client: anthropic.Anthropic, local: LocalAnthropic, play: Play, least_s: float, most_s: float
) -> None:
    local.play(play)
    began, took_s = time.monotonic(), stopwatch()

    client.messages.create(**question())

    assert time.monotonic() - began >= least_s
    assert took_s() < most_s


def test_slow_answers_don_t_hold_up_the_others(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    all_here = threading.Barrier(4, timeout=5)
    local.answer_with(lambda _request: f"number {all_here.wait()}")
    asking = [threading.Thread(target=client.messages.create, kwargs=question()) for _ in range(4)]

    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()

    assert not all_here.broken


def test_it_listens_on_this_machine_and_nothing_is_left_when_it_ends() -> None:
    before = threading.active_count()
    with LocalAnthropic() as local, client_of(local) as client:
        local.play(Play(stall_at=5), Play(delay_s=60), Play(drip=1))
        waiting = [threading.Thread(target=hopeless, args=(client,)) for _ in range(3)]
        for thread in waiting:
            thread.start()
        while len(local.requests) < 3:
            time.sleep(0.01)
        took_s = stopwatch()
        address = local.url.removeprefix("http://")
    for thread in waiting:
        thread.join()

    assert address.startswith("127.0.0.1:")
    assert took_s() < 2
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(address.partition(":")[2])))


def hopeless(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**question())
