"""The results of batches as they came: apart for each agent, thrown away after a month, erased with their agent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from batch_answers import answering
from batch_life import AT_NINE, NINE, VERDICTS, bring_home, send_all
from conftest import ScriptedJudge, WordEmbedder
from night_runs import remember

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.erasure import Erased, erase_everywhere
from nous_pipelines.batches.batch_rows import FOLDER, results_root
from nous_pipelines.batches.collecting import LOST_AFTER
from nous_pipelines.orchestration.night_erasure import erase_nights
from nous_pipelines.orchestration.retention import Retention, throw_away

KEPT = "results of batches"


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def night(
    database_url: str, api: LocalAnthropic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Database
) -> Iterator[Database]:
    """Two agents with a pair each, in a home of their own with a key for the local API."""
    known = {"NOUS_HOME": str(tmp_path), "DAGSTER_HOME": str(tmp_path / "dagster")}
    for name, value in {**known, "ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": api.url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NOUS_DAGSTER_DB_URL", raising=False)
    settings.cache_clear()
    for name in ("aria", "ben/../ben"):
        remember(
            Heart.open(
                name, database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
            ),
            NINE,
            AT_NINE,
        )
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()
    settings.cache_clear()


def collected(night: Database, api: LocalAnthropic, home: Path) -> list[Path]:
    """Send and bring home for both agents, and return the files that are there."""
    send_all(night, api.url, "aria", "ben/../ben")
    bring_home(night, api.url, results_root(home, night))
    return files(home)


def files(home: Path) -> list[Path]:
    return sorted(path for path in (home / FOLDER).rglob("*") if path.is_file())


def erase(database_url: str, *, is_dry_run: bool = False) -> Erased:
    return erase_everywhere(database_url, "aria", reason="asked for", erasers=[erase_nights], is_dry_run=is_dry_run)


def test_each_agent_has_a_folder_of_its_own_below_the_home(night, api, tmp_path):
    found = collected(night, api, tmp_path)

    assert len({path.parent for path in found}) == len(found) == 2
    assert {path.parent.parent.parent for path in found} == {tmp_path / FOLDER}


def test_results_are_thrown_away_after_a_month(night, api, tmp_path):
    old, young = collected(night, api, tmp_path)
    now = datetime.now(UTC)
    for path, days in ((old, 31), (young, 29)):
        os.utime(path, ((now - timedelta(days=days)).timestamp(),) * 2)

    with dg.DagsterInstance.ephemeral() as instance:
        thrown = throw_away(instance, tmp_path / "snapshots", Retention(), now=now)

    assert (thrown.raw_results, files(tmp_path)) == (1, [young])


def test_an_agent_that_is_erased_takes_its_results_along(night, api, tmp_path, database_url):
    collected(night, api, tmp_path)

    would, erased = erase(database_url, is_dry_run=True), erase(database_url)

    assert would.copies[KEPT] == erased.copies[KEPT] == 1
    assert len(files(tmp_path)) == 1


def test_its_open_batches_are_cancelled_and_deleted_from_the_api(night, api, tmp_path, database_url, owner):
    api.play_batches(BatchPlay(looks=100))
    send_all(night, api.url, "aria", "ben/../ben")
    mine, others = api.batches

    erased = erase(database_url)

    assert erased.copies["batches deleted from the API"] == 1
    assert mine not in api.batches
    assert others in api.batches
    assert owner.execute("select agent_id from heart.llm_requests").fetchall() == [("ben/../ben",)]


def test_a_batch_that_can_not_be_reached_is_named(night, api, tmp_path, database_url, owner):
    send_all(night, api.url)
    (batch_id,) = api.batches
    api.play_always(Play(status=403))

    erased = erase(database_url)

    assert erased.copies[f"batch {batch_id} could not be reached: the API keeps it for 29 days"] == 1
    assert owner.execute("select count(*) from heart.llm_requests").fetchone() == (0,)


def test_a_batch_that_was_given_up_and_is_still_kept_is_deleted_with_its_agent(
    night, api, tmp_path, database_url, owner
):
    send_all(night, api.url)
    api.play(Play(status=403), route=PlayRoute.BATCH_RESULTS)
    api.play(*[Play(status=500)] * 3, route=PlayRoute.DELETE_BATCH)
    given_up = bring_home(night, api.url, results_root(tmp_path, night), after=LOST_AFTER)
    kept = len(api.batches)

    erased = erase(database_url)

    assert (given_up.failed, kept, api.batches) == (1, 1, {})
    assert erased.copies["batches deleted from the API"] == 1
