"""The local Anthropic API, driven by the SDK over real sockets: what it answers, refuses and counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anthropic
import httpx
import pytest
from local_api import HAIKU, Clock, client_of, question

from benchmarks.anthropic_server import MODELS, LocalAnthropic, PlayRoute

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["same", "unsure"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def local(clock: Clock) -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=lambda _request: "It is so.", clock=clock) as server:
        yield server


@pytest.fixture
def client(local: LocalAnthropic) -> Iterator[anthropic.Anthropic]:
    with client_of(local) as opened:
        yield opened


def block(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text} | more


def test_a_question_is_answered(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**question())

    assert (message.type, message.role, message.model, message.stop_reason) == (
        "message",
        "assistant",
        HAIKU,
        "end_turn",
    )
    assert [(each.type, each.text) for each in message.content] == [("text", "It is so.")]


def test_it_is_asked_as_the_sdk_asks(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    client.messages.create(**question())

    (arrived,) = local.requests
    assert arrived.route is PlayRoute.MESSAGE
    assert arrived.headers["authorization"] == "Bearer any"
    assert arrived.headers["anthropic-version"] == "2026-10-21"
    assert local.asked() == [question()]


def test_an_alias_is_answered_by_the_model_it_stands_for(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**question(model="claude-haiku-4-5"))

    assert message.model == "claude-haiku-4-5-20251001"


def test_a_model_that_is_not_told_otherwise_thinks_first(client: anthropic.Anthropic) -> None:
    asked = {name: value for name, value in question(max_tokens=200).items() if name != "thinking"}

    message = client.messages.create(**asked)

    assert [each.type for each in message.content] == ["thinking", "text"]
    assert message.usage.output_tokens_details is not None
    assert message.usage.output_tokens == message.usage.output_tokens_details.thinking_tokens + 3


def test_an_answer_longer_than_max_tokens_is_cut(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**question(max_tokens=1))

    assert (message.content[0].text, message.stop_reason, message.usage.output_tokens) == ("It i", "max_tokens", 1)


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "an unknown model": (question(model="claude-haiku-9"), 404),
    "a retired model": (question(model="claude-opus-4-0"), 404),
    "more tokens than the model gives": (question(max_tokens=200_000), 400),
    "no tokens": (question(max_tokens=0), 400),
    "a prefill": (
        question(messages=[block("x", role="user", content="a"), {"role": "assistant", "content": "{"}]),
        400,
    ),
    "no message": (question(messages=[]), 400),
    "an empty block": (question(system=[block(" ")]), 400),
    "an image": (question(messages=[{"role": "user", "content": [{"type": "image"}]}]), 400),
    "a role of its own": (question(messages=[{"role": "system", "content": "a"}]), 400),
    "five marks": (question(system=[block("a", cache_control={"type": "ephemeral"})] * 5), 400),
    "a lasting cache": (question(system=[block("a", cache_control={"type": "lasting"})]), 400),
    "thinking the model can't leave out so": (question(model="claude-sonnet-5-5"), 400),
    "an effort nobody knows": (question(output_config={"effort": "huge"}), 400),
    "a format without a schema": (question(output_config={"format": {"type": "json_schema"}}), 400),
}


@pytest.mark.filterwarnings("ignore:The model 'claude-opus-4-0' is deprecated")
@pytest.mark.parametrize(("request_of", "status"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_refused(client: anthropic.Anthropic, request_of: dict[str, Any], status: int) -> None:
    with pytest.raises(anthropic.APIStatusError) as refused:
        client.messages.create(**request_of)

    assert refused.value.status_code == status
    assert refused.value.type == ("not_found_error" if status == 404 else "invalid_request_error")
    assert refused.value.request_id is not None


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA | {"additionalProperties": True},
        {name: value for name, value in SCHEMA.items() if name != "additionalProperties"},
        SCHEMA | {"properties": {"share": {"type": "number", "maximum": 1}}},
        SCHEMA | {"properties": {"reason": {"type": "string", "maxLength": 200}}},
        SCHEMA | {"properties": {"parts": {"type": "array", "items": {"type": "object"}}}},
        SCHEMA | {"properties": {"parts": {"type": "array", "minItems": 2}}},
    ],
)
def test_a_schema_that_could_not_be_enforced_is_refused(client: anthropic.Anthropic, schema: dict[str, Any]) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"output_config\.format\.schema"):
        client.messages.create(**question(output_config={"format": {"type": "json_schema", "schema": schema}}))


def test_a_schema_of_the_right_kind_is_taken(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**question(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}))

    assert message.stop_reason == "end_turn"


@pytest.mark.parametrize("field", ["temperature", "top_p", "top_k", "verbosity"])
def test_sampling_and_unknown_parameters_are_refused_even_at_their_defaults(
    client: anthropic.Anthropic, field: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=field):
        client.messages.create(**question(), extra_body={field: 1})


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Authorization": "Bearer any"}, 400), ({"anthropic-version": "2026-10-21"}, 401), ({}, 401)],
)
def test_a_request_without_key_or_version_is_refused(
    local: LocalAnthropic, headers: dict[str, str], status: int
) -> None:
    assert httpx.post(f"{local.url}/v1/messages", json=question(), headers=headers).status_code == status


def test_a_body_that_is_no_json_is_refused(local: LocalAnthropic) -> None:
    headers = {"authorization": "Bearer any", "anthropic-version": "2026-10-21"}

    assert httpx.post(f"{local.url}/v1/messages", content=b'{"model":', headers=headers).status_code == 400


def test_a_path_nobody_serves_is_not_found(local: LocalAnthropic) -> None:
    assert httpx.get(f"{local.url}/v1/complete").status_code == 404


def test_a_message_of_more_than_32_megabytes_is_refused(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.APIStatusError) as refused:
        client.messages.create(**question("x" * (32 * 1024 * 1024)))

    assert refused.value.status_code == 413


def test_tokens_are_a_quarter_of_the_characters_rounded_up(client: anthropic.Anthropic) -> None:
    usage = client.messages.create(**question("a" * 9, system="b" * 8)).usage

    assert (usage.input_tokens, usage.output_tokens) == (5, 3)


def test_tokens_can_be_counted_without_asking(client: anthropic.Anthropic) -> None:
    asked = {name: value for name, value in question("a" * 9).items() if name != "max_tokens"}

    assert client.messages.count_tokens(**asked).input_tokens == 3


def test_what_is_marked_is_written_to_the_cache_and_read_for_five_minutes_more(
    client: anthropic.Anthropic, clock: Clock
) -> None:
    rules = [block("r" * 4 * 512, cache_control={"type": "ephemeral"})]
    seen = []

    for wait in (0, 4, 4, 6):
        clock.now += timedelta(minutes=wait)
        usage = client.messages.create(**question("a" * 8, system=rules)).usage
        seen.append((usage.cache_creation_input_tokens, usage.cache_read_input_tokens, usage.input_tokens))

    assert seen == [(512, 0, 2), (0, 512, 2), (0, 512, 2), (512, 0, 2)]


@pytest.mark.parametrize(
    ("changed", "written"), [({}, 0), ({"model": "claude-opus-5-5"}, 512), ({"system": "other"}, 0)]
)
def test_another_model_or_beginning_does_not_share_the_cache(
    client: anthropic.Anthropic, changed: dict[str, Any], written: int
) -> None:
    asked = question(system=[block("r" * 4 * 512, cache_control={"type": "ephemeral"})])
    client.messages.create(**asked)

    usage = client.messages.create(**(asked | changed)).usage

    assert usage.cache_creation_input_tokens == written
    assert bool(usage.cache_read_input_tokens) is (not changed)


def test_a_beginning_too_short_for_the_model_is_never_cached(client: anthropic.Anthropic) -> None:
    asked = question(system=[block("r" * 4 * 511, cache_control={"type": "ephemeral"})])

    usages = [client.messages.create(**asked).usage for _ in range(2)]

    assert [(each.cache_creation_input_tokens, each.cache_read_input_tokens) for each in usages] == [(0, 0)] * 2


def test_models_tell_their_life_and_what_they_can(client: anthropic.Anthropic) -> None:
    models = {model.id: model for model in client.models.list()}

    assert models[HAIKU].lifecycle == "active"
    assert models["claude-sonnet-4-5-20250929"].lifecycle == "deprecated"
    assert models["claude-sonnet-4-5-20250929"].retires_at == datetime(2026, 11, 30, tzinfo=UTC)
    assert models["claude-opus-4-20250514"].lifecycle == "retired"
    capabilities = models[HAIKU].capabilities
    assert capabilities is not None
    assert capabilities.batch.supported
    assert capabilities.structured_outputs.supported
    assert not capabilities.thinking.types.between_tools.supported


def test_a_model_is_found_by_its_alias_and_an_unknown_one_is_not(client: anthropic.Anthropic) -> None:
    assert client.models.retrieve("claude-sonnet-4-5").id == "claude-sonnet-4-5-20250929"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-haiku-9")


def test_models_come_in_pages_forwards_and_backwards(client: anthropic.Anthropic) -> None:
    ids = [model.id for model in MODELS]

    forwards = client.models.list(limit=4)
    backwards = client.models.list(limit=2, before_id=ids[4])

    assert [model.id for model in forwards.data] == ids[:4]
    assert forwards.has_more
    assert [model.id for model in forwards] == ids
    assert [model.id for model in backwards.data] == ids[2:4]
    assert backwards.has_more


def test_a_server_has_the_models_it_is_given() -> None:
    gone = replace(MODELS[0], lifecycle="retired")

    with LocalAnthropic(models=[gone]) as local, client_of(local) as client, pytest.raises(anthropic.NotFoundError):
        client.messages.create(**question())
