"""Batches sent with another address or key than is set now: each is named and waits, and none is paid twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from batch_answers import answering
from batch_life import AT_NINE, NINE, VERDICTS, bring_home, rows_in, send_all, states, verdicts_in
from night_runs import remember

from benchmarks.anthropic_server import LocalAnthropic, Play, PlayRoute
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.claude.client import Claude
from nous_pipelines.batches.collecting import KEPT_FOR, LOST_AFTER, collect


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def other() -> Iterator[LocalAnthropic]:
    with LocalAnthropic() as server:
        yield server


@pytest.fixture
def night(database_url: str, heart: Heart) -> Iterator[Database]:
    remember(heart, NINE, AT_NINE)
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


def test_an_account_is_told_by_host_and_key_and_gives_no_key_away():
    here = Claude("a-key", base_url="http://127.0.0.1:1").account

    assert here != Claude("b-key", base_url="http://127.0.0.1:1").account
    assert here != Claude("a-key", base_url="http://127.0.0.1:2").account
    assert "a-key" not in here


@pytest.mark.parametrize("after", [timedelta(), LOST_AFTER * 2])
def test_at_another_address_a_batch_waits_and_is_not_sent_again(night, api, other, owner, tmp_path, after):
    send_all(night, api.url)

    away = bring_home(night, other.url, tmp_path, after=after)
    again = send_all(night, other.url)
    home = bring_home(night, api.url, tmp_path)

    assert (away.waiting, away.failed, again.batches) == (1, 0, 0)
    assert "ANTHROPIC_BASE_URL" in away.troubles[0]
    assert (home.imported, verdicts_in(owner)) == (1, ["same"])


def test_a_batch_that_may_have_been_made_elsewhere_waits_too(night, api, other, owner, tmp_path):
    api.play(Play(is_lost=True), route=PlayRoute.CREATE_BATCH)
    send_all(night, api.url)

    away = bring_home(night, other.url, tmp_path, after=LOST_AFTER * 2)
    home = bring_home(night, api.url, tmp_path)

    assert (away.waiting, away.failed, len(away.troubles), home.imported) == (1, 0, 1, 1)


def test_what_waited_longer_than_the_api_keeps_it_is_asked_again(night, api, other, owner, tmp_path):
    send_all(night, api.url)

    done = bring_home(night, other.url, tmp_path, after=KEPT_FOR)

    assert (done.failed, states(owner)) == (1, ["failed"])


def test_a_new_key_of_the_same_account_brings_batches_home(night, api, owner, tmp_path):
    send_all(night, api.url)

    done = collect(night, Claude("b-key", base_url=api.url), tmp_path, now=datetime.now(UTC), seconds=30)

    assert (done.imported, done.troubles, api.batches) == (1, (), {})


def test_what_is_kept_at_another_address_does_not_count_as_deleted(night, api, other, owner, tmp_path):
    api.play(*[Play(status=500)] * 3, route=PlayRoute.DELETE_BATCH)
    send_all(night, api.url)
    bring_home(night, api.url, tmp_path)

    away = bring_home(night, other.url, tmp_path)
    kept = rows_in(owner)[0]["request"]
    bring_home(night, api.url, tmp_path)

    assert (len(away.troubles), "is_deleted" in kept, api.batches) == (1, False, {})
