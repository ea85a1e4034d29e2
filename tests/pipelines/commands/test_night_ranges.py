"""Many nights in one command: what is lost on the way is tried again, and Ctrl-C ends between two of them."""

from __future__ import annotations

import os
import signal
import time
from datetime import date

import pytest
from night_commands import NINE, as_json, dagster_of_no_events, typed
from night_runs import proposals_in, remember

from nous_online.core.errors import Unavailable
from nous_pipelines import failpoints
from nous_pipelines.orchestration import running
from nous_pipelines.orchestration.running import run_nights, time_left

TWO = ("--from", "2026-05-02", "--to", "2026-05-03", "--policy", "candidate_similarity=0.7")


@pytest.fixture(scope="module")
def dagster_home():
    with dagster_of_no_events() as home:
        yield home


@pytest.fixture
def nous(database_url, dagster_home, tmp_path):
    """Run a command over this test's database, in process."""
    with typed(database_url, tmp_path / "home", dagster_home) as command:
        yield command


def losing(owner, point, *, times):
    """Return what is to be done at the steps of a night: end every other connection of the database at one of them."""
    left = [None] * times

    def at(name):
        if name == point and left:
            left.pop()
            owner.execute(
                """select pg_terminate_backend(pid) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()"""
            )

    return at


def test_a_range_survives_a_database_that_is_lost_on_the_way(heart, nous, owner, monkeypatch):
    remember(heart, NINE, NINE)
    monkeypatch.setattr(running, "WAITS_S", (0.01, 0.01))
    monkeypatch.setattr(failpoints, "on_reach", losing(owner, "night held", times=1))

    ended = nous("night", *TWO, "--json")

    assert ended.exit_code == 0, ended.output
    assert [night["is_success"] for night in as_json(ended)["nights"]] == [True] * 2
    assert "lost the database" in ended.stderr
    assert "tried again in 0.01 s" in ended.stderr
    assert list(proposals_in(owner).values()) == ["applied"]


def test_a_database_that_stays_away_ends_the_range(heart, nous, owner, monkeypatch):
    remember(heart, NINE, NINE)
    monkeypatch.setattr(running, "WAITS_S", (0.01,))
    monkeypatch.setattr(failpoints, "on_reach", losing(owner, "night held", times=9))

    ended = nous("night", *TWO)

    assert ended.exit_code == 1
    assert ended.stderr.count("tried again") == 1
    assert "2026-05-03" not in ended.stdout


def test_asking_to_stop_while_a_lost_database_is_waited_for_ends_the_range_without_another_attempt():
    attempts = []

    class AskedWhileWaiting:
        is_resting = False

        def is_asked(self):
            return self.is_resting

        def rest(self, seconds):
            self.is_resting = True

    def lose(night):
        attempts.append(night)
        raise Unavailable("the database is gone")

    nights = [date(2026, 5, 2), date(2026, 5, 3)]
    outcomes = list(run_nights(nights, lose, stop=AskedWhileWaiting(), tell=lambda _: None, waits_s=(1, 1)))

    assert (outcomes, attempts) == ([], nights[:1])


def test_ctrl_c_ends_a_range_when_the_night_under_way_is_whole(heart, nous, owner, monkeypatch):
    remember(heart, *(NINE, "Cats like fish.") * 2)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3 * running.POLL_S)  # the night goes on for longer than it takes to look for a request to stop

    at_the_plan = {"plan stored": interrupt}
    monkeypatch.setattr(failpoints, "on_reach", lambda point: at_the_plan.get(point, int)())

    ended = nous("night", "--from", "2026-05-04", "--to", "2026-05-06", "--policy", "candidate_similarity=0.7")

    assert ended.exit_code == 130, ended.output
    assert "ending when this night is whole" in ended.stderr
    assert "1 of 3 nights, about" in ended.stderr
    assert "2 are left: run it again and it goes on" in ended.stderr
    assert "✓ night 2026-05-04" in ended.stdout
    assert [*proposals_in(owner).values()] == ["applied"] * 2


@pytest.mark.parametrize(
    ("done", "total", "seconds", "said"),
    [
        (1, 3, 10.0, "1 of 3 nights, about 20 s left"),
        (30, 90, 120.0, "30 of 90 nights, about 4 min left"),
        (1, 1000, 30.0, "1 of 1000 nights, about 8.3 h left"),
    ],
)
def test_the_time_left_is_told_at_the_pace_so_far(done, total, seconds, said):
    assert time_left(done, total, seconds=seconds) == said
