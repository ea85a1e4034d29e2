"""Message Batches against the local server: sent once, found again, brought home whole or not at all."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401 (what is loaded already is open at once)
import pytest
from endless_server import speaking
from stopwatch import stopwatch

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from nous_online.core.errors import InvalidInput
from nous_online.language.claude.anthropic_api import (
    Batch,
    batches_since,
    cancel_batch,
    create_batch,
    delete_batch,
    download_results,
    get_batch,
)
from nous_online.language.claude.client import Claude
from nous_online.language.claude.replies import Failure, LLMError, Request

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 500,
    "messages": [{"role": "user", "content": "the tide table of Husum"}],
}


@pytest.fixture
def server() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=lambda _request: "yes") as server:
        yield server


@pytest.fixture
def claude(server: LocalAnthropic) -> Claude:
    return Claude("sk-ant-of-this-test", base_url=server.url)


def questions(count: int) -> list[tuple[str, Request]]:
    return [(f"n-{number}", QUESTION) for number in range(count)]


def ended(claude: Claude, count: int = 3) -> Batch:
    return get_batch(claude, create_batch(claude, questions(count)).id)


def told(batch: Batch, *, results_url: str | None = None) -> dict[str, Any]:
    """Return a batch that has ended as a server tells of it."""
    created_at = batch.created_at.isoformat()
    return {"id": batch.id, "processing_status": "ended", "created_at": created_at, "results_url": results_url}


def test_a_batch_is_told_from_its_beginning_to_its_end(server: LocalAnthropic, claude: Claude):
    server.play_batches(BatchPlay(looks=1))

    created = create_batch(claude, questions(3))
    looks = [get_batch(claude, created.id) for _ in range(2)]

    assert (created.request_count, created.is_ended, created.has_results) == (3, False, False)
    assert [(look.is_ended, look.has_results, look.request_count) for look in looks] == [
        (False, False, 3),
        (True, True, 3),
    ]
    assert abs(created.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert server.asked(PlayRoute.CREATE_BATCH)[0]["requests"][2] == {"custom_id": "n-2", "params": QUESTION}


@pytest.mark.parametrize(
    ("play", "kind", "exist"),
    [
        (Play(is_lost=True), Failure.TRANSIENT, 1),
        (Play(cut_at=30), Failure.TRANSIENT, 1),
        (Play(body=b"<html>"), Failure.TRANSIENT, 1),
        (Play(body=b'{"id": "msgbatch_1"}'), Failure.TRANSIENT, 1),
        (Play(stall_at=10), Failure.TRANSIENT, 1),
        (Play(status=529), Failure.TRANSIENT, 0),
        (Play(status=429, headers={"retry-after": "0"}), Failure.TRANSIENT, 0),
        (Play(status=429), Failure.QUOTA, 0),
        (Play(status=400, message="Your credit balance is too low"), Failure.QUOTA, 0),
        (Play(status=401), Failure.PERMANENT, 0),
        (Play(status=413), Failure.PERMANENT, 0),
    ],
)
def test_a_batch_is_sent_once_and_one_that_may_exist_is_told_by_a_passing_failure(
    play: Play, kind: Failure, exist: int, server: LocalAnthropic, claude: Claude
):
    server.play(play, route=PlayRoute.CREATE_BATCH)

    with pytest.raises(LLMError) as raised:
        create_batch(claude, questions(2), deadline_s=1)

    assert raised.value.kind is kind
    assert len(server.asked(PlayRoute.CREATE_BATCH)) == 1
    assert [batch.request_count for batch in batches_since(claude, LONG_AGO)] == [2] * exist


@pytest.mark.parametrize(
    ("custom_ids", "says"),
    [
        ([], "1 to 100000 requests, got 0"),
        ([str(number) for number in range(100_001)], "got 100001"),
        (["fine", "not fine"], "'not fine' is not"),
        (["x" * 65], "is not 1 to 64"),
        (["line\n"], "is not 1 to 64"),
        (["one", "two", "one"], "'one' comes 2 times"),
    ],
)
def test_ids_the_api_would_refuse_are_refused_before_anything_is_sent(
    custom_ids: list[str], says: str, server: LocalAnthropic, claude: Claude
):
    with pytest.raises(InvalidInput, match=says):
        create_batch(claude, [(custom_id, QUESTION) for custom_id in custom_ids])

    assert server.requests == []


class Clock:
    """The server's clock, set by the test."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_batches_are_found_on_every_page_back_to_the_moment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nous_online.language.claude.anthropic_api.PAGE", 2)
    clock, created = Clock(), list[str]()
    with LocalAnthropic(clock=clock) as server:
        claude = Claude("key", base_url=server.url)
        for _ in range(7):
            created.append(create_batch(claude, questions(1)).id)
            clock.now += timedelta(hours=1)
        everything = batches_since(claude, LONG_AGO)
        since = batches_since(claude, datetime(2026, 11, 1, 3, tzinfo=UTC))
        pages = [request.query for request in server.requests if request.route is PlayRoute.LIST_BATCHES]

    assert [batch.id for batch in everything] == created[::-1]
    assert [batch.id for batch in since] == created[:2:-1]
    assert len(pages) == 4 + 3
    assert pages[1] == {"limit": "2", "after_id": created[5]}


def test_a_list_that_has_no_end_is_no_list(server: LocalAnthropic, claude: Claude):
    batch = create_batch(claude, questions(1))
    page = {"data": [told(batch)], "has_more": True}
    server.play_always(Play(body=json.dumps(page).encode()), route=PlayRoute.LIST_BATCHES)

    with pytest.raises(LLMError) as raised:
        batches_since(claude, LONG_AGO, deadline_s=5)

    assert raised.value.kind is Failure.MALFORMED


def test_a_batch_is_cancelled_and_ends(server: LocalAnthropic, claude: Claude):
    server.play_batches(BatchPlay(looks=None))
    batch = create_batch(claude, questions(2))

    cancelled = cancel_batch(claude, batch.id)

    assert not cancelled.is_ended
    assert get_batch(claude, batch.id).is_ended
    with pytest.raises(LLMError, match="has ended"):
        cancel_batch(claude, batch.id)


def test_deleting_a_batch_again_is_deleting_it(server: LocalAnthropic, claude: Claude):
    batch = ended(claude)
    server.play(Play(is_lost=True), route=PlayRoute.DELETE_BATCH)

    delete_batch(claude, batch.id)
    delete_batch(claude, batch.id)

    assert server.batches == {}
    with pytest.raises(LLMError, match="was not found"):
        get_batch(claude, batch.id)


def test_a_batch_that_goes_on_is_not_deleted(server: LocalAnthropic, claude: Claude):
    server.play_batches(BatchPlay(looks=None))

    with pytest.raises(LLMError, match="still being processed"):
        delete_batch(claude, create_batch(claude, questions(1)).id)

    assert len(server.batches) == 1


def test_an_id_is_a_name_and_no_path(server: LocalAnthropic, claude: Claude):
    with pytest.raises(LLMError, match=r"404|not found"):
        get_batch(claude, "../models?x=/claude-haiku-5-5")

    assert all(request.route is not PlayRoute.GET_MODEL for request in server.requests)


def test_results_come_home_byte_by_byte(server: LocalAnthropic, claude: Claude, tmp_path: Path):
    odd = (b'{"custom_id": "n-0", "resu', b"\xff\xfe", b"")
    server.play_batches(BatchPlay(extra_lines=odd, is_shuffled=True))
    batch = ended(claude)

    digest = download_results(claude, batch, tmp_path / "results.jsonl")

    raw = (tmp_path / "results.jsonl").read_bytes()
    assert raw == server.batches[batch.id].lines
    assert digest == hashlib.sha256(raw).hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_the_key_goes_to_no_other_host_than_it_was_given_for(server: LocalAnthropic, claude: Claude, tmp_path: Path):
    batch = ended(claude)
    elsewhere = told(batch, results_url="http://192.0.2.1/v1/results")
    server.play(Play(body=json.dumps(elsewhere).encode()), route=PlayRoute.GET_BATCH)
    batch = get_batch(claude, batch.id)
    server.play(Play(status=302, headers={"location": "http://192.0.2.1/v1/results"}), route=PlayRoute.BATCH_RESULTS)

    with pytest.raises(LLMError, match="redirects are not followed"):
        download_results(claude, batch, tmp_path / "results.jsonl", deadline_s=3)
    download_results(claude, batch, tmp_path / "results.jsonl", deadline_s=3)

    assert server.requests[-1].route is PlayRoute.BATCH_RESULTS


def test_a_download_that_broke_begins_anew(server: LocalAnthropic, claude: Claude, tmp_path: Path):
    batch = ended(claude)
    server.play(Play(cut_at=200), Play(is_lost=True), route=PlayRoute.BATCH_RESULTS)

    digest = download_results(claude, batch, tmp_path / "results.jsonl")

    assert digest == hashlib.sha256(server.batches[batch.id].lines).hexdigest()
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        (Play(cut_at=200), Failure.TRANSIENT),
        (Play(cut_at=0), Failure.TRANSIENT),
        (Play(stall_at=200), Failure.TRANSIENT),
        (Play(drip=50), Failure.TRANSIENT),
        (Play(status=404), Failure.PERMANENT),
        (Play(status=529), Failure.TRANSIENT),
    ],
)
def test_a_download_that_stays_broken_leaves_what_was_there(
    play: Play, kind: Failure, server: LocalAnthropic, claude: Claude, tmp_path: Path
):
    batch, path = ended(claude), tmp_path / "results.jsonl"
    path.write_text("what was there")
    server.play_always(play, route=PlayRoute.BATCH_RESULTS)
    took_s = stopwatch()

    with pytest.raises(LLMError) as raised:
        download_results(claude, batch, path, deadline_s=1)

    assert took_s() < 2
    assert raised.value.kind is kind
    assert path.read_text() == "what was there"
    eventually(lambda: [each.name for each in tmp_path.iterdir()] == ["results.jsonl"])


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for a thread that was cut off to tidy up."""
    until = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < until
        threading.Event().wait(0.01)


def test_results_that_tell_no_end_are_not_taken_for_whole(tmp_path: Path, claude: Claude):
    batch = ended(claude)
    answer = b'HTTP/1.1 200 OK\r\n\r\n{"custom_id": "n-0"}\n'

    with (
        speaking(answer, pause_s=0.01, count=1) as (url, _),
        pytest.raises(LLMError, match="without a length") as raised,
    ):
        download_results(Claude("key", base_url=url), batch, tmp_path / "results.jsonl", deadline_s=2)

    assert raised.value.kind is Failure.MALFORMED
    assert list(tmp_path.iterdir()) == []


def test_a_folder_nobody_can_write_to_is_named(claude: Claude, tmp_path: Path):
    batch = ended(claude)

    with pytest.raises(LLMError, match=r"missing/results\.jsonl can't be written") as raised:
        download_results(claude, batch, tmp_path / "missing" / "results.jsonl")

    assert raised.value.kind is Failure.PERMANENT


def test_a_batch_of_many_requests_goes_up_and_comes_home(server: LocalAnthropic, claude: Claude, tmp_path: Path):
    server.play_batches(BatchPlay(each=lambda _custom_id, _request: Play(outcome="expired")))
    batch = create_batch(claude, questions(20_000))

    download_results(claude, get_batch(claude, batch.id), tmp_path / "results.jsonl")

    with (tmp_path / "results.jsonl").open() as lines:
        assert sum(1 for line in lines if json.loads(line)["result"] == {"type": "expired"}) == 20_000
