"""Nights over HTTP: counted before they run, started, watched, and reported."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from api_client import PROBLEM, app_over, bearer, client_of, key_of
from conftest import WordEmbedder
from night_runs import remember
from postgres_homes import wait_for
from starlette.testclient import TestClient

from nous_online import processes
from nous_online.core.errors import Conflict, NotFound, Unavailable
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.server_routes import planned
from nous_pipelines.orchestration.consolidating import (
    NightPrograms,
    ended_night,
    last_object,
    planned_night,
    run_command,
)

NIGHT = "2026-06-01"
TELLING = """
import json, sys
print(json.dumps({"error": {"kind": sys.argv[1], "message": "night 2026-06-01 has nothing to take back"}}))
"""
"""A program that ends as `nous undo --json` does where it can't take a night back."""
DEADLINE_S = 120.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of the test's own, for nights and what runs in the background."""
    monkeypatch.setenv("NOUS_HOME", str(tmp_path))
    monkeypatch.setenv("NOUS_AGENT", "nobody")  # calls say themselves whom they are about
    for name in ("DAGSTER_HOME", "NOUS_DAGSTER_DB_URL"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.fixture
def client(database_url: str, embedder: WordEmbedder, database: Database, home: Path) -> Iterator[TestClient]:
    """A client of an administrator, where nights can be run."""
    app = app_over(database_url, embedder, consolidator=NightPrograms())
    with client_of(app, bearer(key_of(database, "*"))) as client:
        yield client


@pytest.mark.integration
def test_a_night_is_counted_then_run_then_reported(client: TestClient, heart: Heart, database: Database) -> None:
    remember(heart, "The staging database is Postgres", "The staging database is Postgres", "Deploys need approvals")

    counted = client.post("/consolidate", json={"dry_run": True, "night": NIGHT})
    before = heart.count()
    started = client.post("/consolidate", json={"night": NIGHT})
    also = client.post("/consolidate", json={"night": NIGHT})
    done = watched(client, started.json()["watch"])
    report = client.get("/report", params={"night": NIGHT}, headers=bearer(key_of(database, "aria")))

    assert (counted.status_code, counted.json()["deduped"], counted.json()["is_success"]) == (200, 1, True)
    assert counted.json()["was_applied"] is False
    assert before == {"active": 3}
    assert (started.status_code, started.json()["state"], also.status_code) == (202, "running", 409)
    assert (done["state"], done["counts"]["retired"]) == ("succeeded", 1)
    assert heart.count() == {"active": 2, "superseded": 1}
    assert (report.json()["night"], report.json()["counts"]["retired"]) == (NIGHT, 1)
    back = client.post("/consolidate/undo", json={"first": NIGHT, "last": NIGHT, "reason": "a mistake"})

    assert back.json() == {"undone": {NIGHT: 1}, "refused": {}}
    assert heart.count() == {"active": 3}


def watched(client: TestClient, address: str) -> dict:
    """How a night stands when it is over."""
    ends_at = time.monotonic() + DEADLINE_S
    while (found := client.get(address).json())["state"] == "running" and time.monotonic() < ends_at:
        time.sleep(0.2)
    return found


def test_without_the_extra_nights_are_not_there(database_url: str, embedder: WordEmbedder, database: Database) -> None:
    app = app_over(database_url, embedder)
    app.state.consolidator = None

    with client_of(app, bearer(key_of(database, "*"))) as client:
        answer = client.post("/consolidate", json={"dry_run": True})

    assert (answer.status_code, answer.headers["content-type"]) == (501, PROBLEM)
    assert "pip install 'nous-pipelines[pipelines]'" in answer.json()["detail"]


@pytest.mark.parametrize("night", ["2019-12-31", (datetime.now(UTC) + timedelta(days=2)).date().isoformat()])
def test_a_night_that_can_not_be_is_not_run(client: TestClient, night: str) -> None:
    assert client.post("/consolidate", json={"night": night}).status_code == 409
    assert client.post("/consolidate", json={"night": night, "dry_run": True}).status_code == 409
    assert client.get("/report", params={"night": night}).status_code == 404


def test_a_run_nobody_started_is_not_found(client: TestClient) -> None:
    assert client.get("/consolidate/0123456789ab").status_code == 404
    assert client.get("/consolidate/none").status_code == 404
    assert client.get("/consolidate/..%2F..%2Fetc").status_code in (404, 422)


@pytest.mark.integration
def test_a_run_that_was_ended_is_still_told_by_its_own_night(home: Path, database_url: str) -> None:
    programs, night = NightPrograms(), date(2026, 5, 1)

    started = programs.start(database_url, night=night, agent_id=None)
    under_way = programs.state(started.run)
    (record,) = (home / "background").glob("*.json")
    psutil.Process(json.loads(record.read_text())["pid"]).kill()
    wait_for(lambda: "killed" in record.with_suffix(".log").read_text())
    over = programs.state(started.run)

    assert (under_way.state, under_way.night) == ("running", night)
    assert (over.state, over.night) == ("failed", night)
    assert over.failures[0].endswith("the night was killed by signal 9 (SIGKILL); run it again")


@pytest.mark.integration
def test_of_nights_started_at_once_one_runs(home: Path, database_url: str) -> None:
    together, answers = threading.Barrier(4), []

    def start() -> None:
        together.wait()
        try:
            answers.append(NightPrograms().start(database_url, night=date(2026, 5, 1), agent_id=None).state)
        except Conflict as error:
            answers.append("refused" if "is under way" in str(error) else str(error))

    callers = [threading.Thread(target=start) for _ in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    processes.stop_all(home)

    assert sorted(answers) == ["refused", "refused", "refused", "running"]


def test_counts_go_by_the_names_people_ask_for() -> None:
    counts = {"merges": 2, "retired": 3, "condensed": 5, "archived": 7, "contradictions": 11}

    found = planned(date(2026, 6, 1), "9f2c", counts, is_success=True, failures=(), notices=())

    assert (found.deduped, found.compressed, found.forgotten, found.contradictions_found) == (3, 5, 7, 11)
    assert (found.superseded, found.promoted, found.is_success) == (0, 0, True)


def test_a_plan_tells_what_its_dry_run_says() -> None:
    said = "check nobody_left_out: left out of the night, 1: ben (budget: it would cost too much)"
    outcome = {"night": NIGHT, "plan_hash": None, "counts": {"retired": 0, "archived": 2}, "failures": [said]}

    applied, new, stopped = (
        planned_night({**outcome, "was_applied": was_applied, "is_stopped": is_stopped})
        for was_applied, is_stopped in ((True, False), (False, False), (False, True))
    )

    assert (applied.night, applied.plan_hash, applied.deduped, applied.forgotten) == (date(2026, 6, 1), "", 0, 2)
    assert [each.was_applied for each in (applied, new, stopped)] == [True, False, False]
    assert [each.is_success for each in (applied, new, stopped)] == [True, True, False]
    assert (applied.failures, applied.notices) == ((), (said,))
    assert (stopped.failures, stopped.notices) == ((said,), ())


def test_a_run_that_died_says_what_it_said_last() -> None:
    night = date(2026, 5, 1)

    found = ended_night("0123456789ab", night, "starting\nkilled: out of memory\n", "http://127.0.0.1:3000/runs")

    assert (found.state, found.night, found.counts) == ("failed", night, None)
    assert found.failures == ("starting\nkilled: out of memory",)


def test_a_night_that_left_agents_out_is_done_and_says_whom() -> None:
    said = "check nobody_left_out: left out of the night, 1: ben (budget: it would cost too much)"
    outcome = {"is_success": False, "failures": [said], "counts": {"retired": 2}}
    night = date(2026, 5, 1)

    done, stopped = (
        ended_night("0123456789ab", night, json.dumps({"nights": [{**outcome, "is_stopped": each}]}), "")
        for each in (False, True)
    )

    assert (done.state, done.failures, done.notices) == ("succeeded", (), (said,))
    assert (stopped.state, stopped.failures, stopped.notices) == ("failed", (said,), ())


def test_only_an_administrator_takes_nights_back(client: TestClient, database: Database) -> None:
    body, swapped = {"first": NIGHT, "last": NIGHT}, {"first": "2026-06-02", "last": NIGHT}

    assert client.post("/consolidate/undo", json=body, headers=bearer(key_of(database, "aria"))).status_code == 403
    assert client.post("/consolidate/undo", json=swapped).status_code == 422
    unknown = client.post("/consolidate/undo", json={**body, "kind": "merges"})
    assert unknown.status_code == 422
    assert "kind must be one of merge, supersede, " in unknown.json()["detail"]


def test_a_result_is_the_last_object_whatever_was_printed_before() -> None:
    assert last_object('warning: {\n{"a": 1}\n{"b": 2}\nnote') == {"b": 2}
    assert last_object("no object {at all}") is None


def test_errors_of_a_program_are_errors_here(home: Path, database_url: str) -> None:
    programs = NightPrograms()

    with pytest.raises(Conflict, match="the first one is 2020-01-01"):
        programs.plan(database_url, night=date(2019, 1, 1), agent_id=None, seconds=60)
    with pytest.raises(NotFound):
        programs.state("0123456789ab")
    for told, kind in (("NotFound", NotFound), ("Conflict", Conflict), ("Corrupted", Unavailable)):
        with pytest.raises(kind, match=r"^night 2026-06-01 has nothing to take back$"):
            run_command([sys.executable, "-c", TELLING, told], database_url, seconds=60)
