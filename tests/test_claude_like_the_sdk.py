"""Anthropic's own SDK as the yardstick: what it sends for a call is what our client sends for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from nous_online.claude.batches import (
    batches_since,
    cancel_batch,
    create_batch,
    delete_batch,
    download_results,
    get_batch,
)
from nous_online.claude.client import Claude
from nous_online.claude.preflight import checked_model
from nous_online.claude.reading import moment_of
from nous_pipelines.demo.anthropic_server import BatchPlay, LocalAnthropic
from nous_pipelines.demo.anthropic_server.requests import Arrived

KEY = "sk-ant-of-this-test"
QUESTION: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 500,
    "thinking": {"type": "disabled"},
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": False}}},
    "system": [{"type": "text", "text": "Judge.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "“Tide”, ½ metre, 潮"}],
}
LONG_AGO = moment_of("2026-01-01")


@pytest.fixture
def server() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=lambda _request: "yes") as server:
        yield server


@pytest.fixture
def claude(server: LocalAnthropic) -> Claude:
    return Claude(KEY, base_url=server.url)


@pytest.fixture
def sdk(server: LocalAnthropic) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=KEY, base_url=server.url, max_retries=0) as sdk:
        yield sdk


@pytest.fixture
def batch(server: LocalAnthropic, claude: Claude) -> str:
    """The id of a batch that goes on."""
    server.play_batches(BatchPlay(looks=None))
    return create_batch(claude, [("n-0", QUESTION)]).id


def shown(request: Arrived) -> tuple[object, ...]:
    """Return what the API looks at in a request; the type of a body that is not there means nothing."""
    names = ("authorization", "anthropic-version", *(["content-type"] if request.body else []))
    headers = {name: request.headers.get(name) for name in names}
    return request.route, request.target, headers, request.params, request.query.get("after_id")


def both(server: LocalAnthropic, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Make both calls and hold what they sent against each other."""
    server.requests.clear()
    ours()
    theirs()

    sent, expected = server.requests
    assert shown(sent) == shown(expected)


def test_a_question(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic):
    both(server, lambda: claude.ask(QUESTION, deadline_s=5), lambda: sdk.messages.create(**QUESTION))


def test_a_batch(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic):
    requests: Any = [{"custom_id": "n-0", "params": QUESTION}, {"custom_id": "n-1", "params": QUESTION}]

    both(
        server,
        lambda: create_batch(claude, [("n-0", QUESTION), ("n-1", QUESTION)]),
        lambda: sdk.messages.batches.create(requests=requests),
    )


def test_a_look_at_a_batch(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic, batch: str):
    both(server, lambda: get_batch(claude, batch), lambda: sdk.messages.batches.retrieve(batch))


def test_a_list_of_batches(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic, batch: str):
    assert LONG_AGO is not None

    both(server, lambda: batches_since(claude, LONG_AGO), sdk.messages.batches.list)


def test_the_end_of_a_batch(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic, batch: str):
    both(server, lambda: cancel_batch(claude, batch), lambda: sdk.messages.batches.cancel(batch))


def test_its_results(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic, batch: str, tmp_path: Path):
    server.end_batches()
    ended = get_batch(claude, batch)
    server.requests.clear()

    download_results(claude, ended, tmp_path / "results.jsonl")
    lines = list(sdk.messages.batches.results(batch))

    ours, _, theirs = server.requests
    assert shown(ours) == shown(theirs)
    assert [line.custom_id for line in lines] == ["n-0"]


def test_that_it_is_forgotten(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic, batch: str):
    server.end_batches()
    other = create_batch(claude, [("n-0", QUESTION)]).id
    server.end_batches()
    server.requests.clear()

    delete_batch(claude, batch)
    sdk.messages.batches.delete(other)

    ours, theirs = server.requests
    assert (ours.route, ours.target, theirs.target) == (theirs.route, batch, other)


def test_a_model(server: LocalAnthropic, claude: Claude, sdk: anthropic.Anthropic):
    both(
        server,
        lambda: checked_model(claude, "claude-haiku-4-5", for_batches=True),
        lambda: sdk.models.retrieve("claude-haiku-4-5"),
    )
