"""Batches of the local Anthropic API, driven by the SDK: their life, their results, and all that may become of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import anthropic
import httpx2
import pytest
from local_api import HAIKU, NOW, Clock, client_of, question

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def local(clock: Clock) -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=lambda request: request["messages"][0]["content"].upper(), clock=clock) as server:
        yield server


@pytest.fixture
def client(local: LocalAnthropic) -> Iterator[anthropic.Anthropic]:
    with client_of(local) as opened:
        yield opened


def item(custom_id: str, **more: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "params": question(custom_id or "nameless", **more)}


def created(client: anthropic.Anthropic, names: Sequence[str] = ("a", "b", "c")) -> str:
    return client.messages.batches.create(requests=[item(name) for name in names]).id


def ended(client: anthropic.Anthropic, batch_id: str) -> anthropic.types.messages.MessageBatch:
    batch = client.messages.batches.retrieve(batch_id)
    assert batch.processing_status == "ended"
    return batch


def outcomes(client: anthropic.Anthropic, batch_id: str) -> dict[str, Any]:
    ended(client, batch_id)
    return {each.custom_id: each.result for each in client.messages.batches.results(batch_id)}


def test_a_batch_is_in_progress_and_then_ended(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play_batches(BatchPlay(looks=2))

    batch = client.messages.batches.create(requests=[item("a"), item("b")])
    seen = [client.messages.batches.retrieve(batch.id) for _ in range(3)]

    assert [each.processing_status for each in (batch, *seen)] == [*["in_progress"] * 3, "ended"]
    assert [each.request_counts.processing for each in seen] == [2, 2, 0]
    assert [each.request_counts.succeeded for each in seen] == [0, 0, 2]
    assert [bool(each.results_url) for each in seen] == [False, False, True]
    assert batch.expires_at - batch.created_at == timedelta(hours=24)


def test_each_item_is_answered_as_if_it_had_been_asked_alone(client: anthropic.Anthropic) -> None:
    answered = outcomes(client, created(client))

    assert {name: result.message.content[0].text for name, result in answered.items()} == {"a": "A", "b": "B", "c": "C"}
    assert {result.message.usage.service_tier for result in answered.values()} == {"batch"}


def test_items_have_the_outcomes_written_down(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play_batches(
        BatchPlay(
            items={
                0: Play(outcome="errored", status=529, message="busy"),
                1: Play(outcome="expired"),
                2: Play(outcome="canceled"),
                3: Play(outcome="abandoned"),
                4: Play(stop_reason="refusal", stop_category="bio"),
            },
            each=lambda custom_id, request: Play(text=f"{custom_id} of {request['model']}"),
        )
    )

    batch_id = created(client, "abcdef")
    batch = ended(client, batch_id)
    raw = {line["custom_id"]: line["result"] for line in lines_of(client, batch_id)}

    assert raw["a"]["error"]["error"] == {"type": "overloaded_error", "message": "busy"}
    assert [raw[name]["type"] for name in "abcd"] == ["errored", "expired", "canceled", "abandoned"]
    assert raw["e"]["message"]["stop_details"]["category"] == "bio"
    assert raw["f"]["message"]["content"][0]["text"] == f"f of {HAIKU}"
    counts = batch.request_counts
    assert (counts.succeeded, counts.errored, counts.expired, counts.canceled, counts.processing) == (2, 2, 1, 1, 0)


def lines_of(client: anthropic.Anthropic, batch_id: str) -> list[dict[str, Any]]:
    """The raw lines of the results: the SDK can't read what the API does not know."""
    raw = client.get(f"/v1/messages/batches/{batch_id}/results", cast_to=str)
    return [json.loads(line) for line in raw.splitlines()]


def test_one_wrong_request_fails_alone(client: anthropic.Anthropic) -> None:
    wrong = [item("unknown", model="claude-haiku-9"), item("sampled", temperature=0), item("fine")]
    batch_id = client.messages.batches.create(requests=wrong).id

    answered = outcomes(client, batch_id)

    assert answered["unknown"].error.error.type == "not_found_error"
    assert answered["sampled"].error.error.type == "invalid_request_error"
    assert answered["fine"].type == "succeeded"


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([], "from 1 to"),
        ([item("a b")], "does not match"),
        ([item("x" * 65)], "does not match"),
        ([item("")], "does not match"),
        ([item("a"), item("a")], "not unique"),
        ([{"custom_id": "a"}], "params"),
    ],
)
def test_a_batch_that_is_wrong_as_a_whole_is_not_created(
    client: anthropic.Anthropic, local: LocalAnthropic, requests: list[Any], message: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message):
        client.messages.batches.create(requests=requests)

    assert local.batches == {}


def test_results_may_be_shuffled_repeated_missing_unknown_and_broken(
    client: anthropic.Anthropic, local: LocalAnthropic
) -> None:
    local.play_batches(
        BatchPlay(is_shuffled=True, duplicated=[0, 2], missing=[1], unknown=["stranger"], extra_lines=[b'{"custom'])
    )
    names = [f"item-{number}" for number in range(30)]
    batch_id = created(client, names)

    raw = client.get(f"{ended(client, batch_id).results_url}", cast_to=str).splitlines()
    ids = [json.loads(line)["custom_id"] for line in raw if line != '{"custom']

    assert '{"custom' in raw
    assert sorted(ids) == sorted([*names[:1], *names[2:], "item-0", "item-2", "stranger"])
    assert ids != sorted(ids, key=lambda name: (len(name), name))


def test_results_before_the_end_and_of_a_deleted_batch_are_refused(
    client: anthropic.Anthropic, local: LocalAnthropic
) -> None:
    local.play_batches(BatchPlay(looks=None))
    batch_id = created(client)

    with pytest.raises(anthropic.AnthropicError, match="No `results_url`"):
        client.messages.batches.results(batch_id)
    with pytest.raises(anthropic.BadRequestError, match="still being processed"):
        client.messages.batches.delete(batch_id)
    local.end_batches()
    assert client.messages.batches.delete(batch_id).id == batch_id
    for gone in (client.messages.batches.retrieve, client.messages.batches.results, client.messages.batches.cancel):
        with pytest.raises(anthropic.NotFoundError):
            gone(batch_id)


def test_results_may_be_gone_or_break_off_on_the_way(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    batch_id = created(client)
    local.play(Play(status=404), Play(cut_at=30), route=PlayRoute.BATCH_RESULTS)

    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.results(batch_id)
    with pytest.raises(httpx2.RemoteProtocolError, match="received 30 bytes"):
        list(client.messages.batches.results(batch_id))

    assert len(outcomes(client, batch_id)) == 3


def test_a_cancelled_batch_ends_with_what_was_done_before(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play_batches(BatchPlay(looks=None, done_before_cancel=1))
    batch_id = created(client)

    cancelling = client.messages.batches.cancel(batch_id)
    types = [result.type for result in outcomes(client, batch_id).values()]

    assert cancelling.processing_status == "canceling"
    assert cancelling.cancel_initiated_at == NOW
    assert types == ["succeeded", "canceled", "canceled"]
    with pytest.raises(anthropic.BadRequestError, match="has ended"):
        client.messages.batches.cancel(batch_id)


def test_a_batch_of_which_nobody_asks_for_a_day_has_expired(
    client: anthropic.Anthropic, local: LocalAnthropic, clock: Clock
) -> None:
    local.play_batches(BatchPlay(looks=None))
    batch_id = created(client)

    clock.now += timedelta(hours=24)

    assert {result.type for result in outcomes(client, batch_id).values()} == {"expired"}


def test_results_are_kept_for_29_days(client: anthropic.Anthropic, clock: Clock) -> None:
    batch_id = created(client)
    ended(client, batch_id)

    clock.now += timedelta(days=29)

    archived = ended(client, batch_id)
    assert (archived.archived_at, archived.results_url) == (clock.now, None)
    with pytest.raises(anthropic.NotFoundError, match="archived"):
        client.get(f"/v1/messages/batches/{batch_id}/results", cast_to=str)


def test_every_batch_can_be_forgotten(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    batch_id = created(client)

    local.forget_batches()

    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch_id)


def test_a_batch_whose_creation_was_never_answered_exists(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play(Play(is_lost=True), route=PlayRoute.CREATE_BATCH)

    with pytest.raises(anthropic.APIConnectionError):
        created(client)

    (found,) = client.messages.batches.list().data
    assert list(outcomes(client, found.id)) == ["a", "b", "c"]


def test_a_refused_creation_leaves_no_batch(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play(Play(status=529), route=PlayRoute.CREATE_BATCH)

    with pytest.raises(anthropic.OverloadedError):
        created(client)

    assert client.messages.batches.list().data == []


def test_batches_are_listed_in_pages_the_newest_first(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    ids = [created(client, "a") for _ in range(5)][::-1]

    page = client.messages.batches.list(limit=2)

    assert ([each.id for each in page.data], page.has_more, page.last_id) == (ids[:2], True, ids[1])
    assert [each.id for each in page] == ids
    assert len(local.asked(PlayRoute.LIST_BATCHES)) == 3


def test_a_look_at_the_list_is_a_look(client: anthropic.Anthropic, local: LocalAnthropic) -> None:
    local.play_batches(BatchPlay(looks=1))
    created(client)

    seen = [client.messages.batches.list().data[0].processing_status for _ in range(2)]

    assert seen == ["in_progress", "ended"]


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1001}, {"after_id": "msgbatch_unknown"}])
def test_a_page_that_does_not_exist_is_refused(client: anthropic.Anthropic, query: dict[str, Any]) -> None:
    with pytest.raises(anthropic.BadRequestError, match=next(iter(query))):
        client.messages.batches.list(**query)


def test_a_play_holds_for_one_batch_and_the_last_for_all_that_follow(
    client: anthropic.Anthropic, local: LocalAnthropic
) -> None:
    local.play_batches(BatchPlay(each=lambda *_: Play(outcome="expired")), BatchPlay())

    types = [{result.type for result in outcomes(client, created(client)).values()} for _ in range(3)]

    assert types == [{"expired"}, {"succeeded"}, {"succeeded"}]


def test_items_of_a_batch_share_the_cache_one_after_the_other(client: anthropic.Anthropic) -> None:
    rules = [{"type": "text", "text": "r" * 4 * 512, "cache_control": {"type": "ephemeral"}}]
    batch_id = client.messages.batches.create(requests=[item(name, system=rules) for name in "abc"]).id

    usages = [result.message.usage for result in outcomes(client, batch_id).values()]

    assert [each.cache_creation_input_tokens for each in usages] == [512, 0, 0]
    assert [each.cache_read_input_tokens for each in usages] == [0, 512, 512]
