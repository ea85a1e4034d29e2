"""A process killed at any step of a batch loses no answer, asks nothing twice and pays nothing twice."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
from batch_answers import answering
from batch_crashes import killed_at
from batch_life import AT_NINE, FISH, NINE, VERDICTS, bring_home, rows_in, send_all, verdicts_in, wanted_of
from night_runs import remember
from turns import in_turn

from benchmarks.anthropic_server import LocalAnthropic, PlayRoute
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines import failpoints
from nous_pipelines.batches.collecting import LOST_AFTER

BATCH_POINTS = (
    "batch intended",
    "batch created",
    "batch submitted",
    "batch ended",
    "results saved",
    "results known",
    "verdicts stored",
    "verdicts committed",
    "batch deleted",
)
"""The steps of a batch of questions to Claude: the first three when it is sent, the others when it is collected."""
HOME = ["compatible", "same"]


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def night(database_url: str, heart: Heart) -> Iterator[Database]:
    remember(heart, NINE, AT_NINE, FISH)
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


def test_a_batch_comes_by_every_numbered_step_in_their_order(night, api, tmp_path, monkeypatch):
    reached: list[str] = []
    monkeypatch.setattr(failpoints, "on_reach", reached.append)

    send_all(night, api.url)
    bring_home(night, api.url, tmp_path)

    assert tuple(reached) == BATCH_POINTS


@pytest.mark.parametrize("point", in_turn(BATCH_POINTS, of=2))
def test_a_process_killed_at_a_step_is_continued_by_the_next(night, api, owner, tmp_path, database_url, point):
    code = killed_at(point, database_url=database_url, api_url=api.url, root=tmp_path)
    made = len(api.asked(PlayRoute.CREATE_BATCH))
    never_sent = point == "batch intended"

    bring_home(night, api.url, tmp_path, after=LOST_AFTER if never_sent else LOST_AFTER * 0)
    send_all(night, api.url)
    bring_home(night, api.url, tmp_path)

    assert code == -signal.SIGKILL
    assert made == (0 if never_sent else 1)
    assert len(api.asked(PlayRoute.CREATE_BATCH)) == 1
    assert verdicts_in(owner) == HOME
    assert [row["state"] for row in rows_in(owner)] == (["failed", "imported"] if never_sent else ["imported"])
    assert sum(row["cost_usd"] > 0 for row in rows_in(owner)) == 1
    assert api.batches == {}


def test_two_who_send_at_once_send_each_pair_once(night, api, owner):
    wanted = wanted_of(night)
    threads = [threading.Thread(target=send_all, args=(night, api.url)) for _ in range(4)]

    for each in threads:
        each.start()
    for each in threads:
        each.join()

    hashes = [home[0] for row in rows_in(owner) for home in row["request"]["pairs"]]
    assert sorted(hashes) == sorted(question.pair_hash for question in wanted.questions)


def test_two_who_bring_home_at_once_pay_once(night, api, owner, tmp_path):
    send_all(night, api.url)
    found = []
    threads = [threading.Thread(target=lambda: found.append(bring_home(night, api.url, tmp_path))) for _ in range(4)]

    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sum(each.imported for each in found) == 1
    assert verdicts_in(owner) == HOME
    assert len(rows_in(owner)) == 1
