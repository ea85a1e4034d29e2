"""Nights are taken back in Dagster as on the command line."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest
from night_runs import NIGHT, facts_in, options, proposals_in, remember

from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.code_location import defs
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import run_night


def take_back(**config: str) -> dg.ExecuteInProcessResult:
    """Launch the job over two nights, as its launchpad does."""
    nights = {"first_night": NIGHT.isoformat(), "last_night": (NIGHT + timedelta(days=1)).isoformat()}
    told = {"ops": {"take_nights_back": {"config": {**nights, **config}}}}
    with unrecorded() as instance:
        job = defs.resolve_job_def("undo_nights")
        return job.execute_in_process(run_config=told, instance=instance, raise_on_error=False)


@pytest.fixture
def before(heart: Heart, owner, database_url, tmp_path, monkeypatch):
    """What the facts were before two nights, each of which merged one of them."""
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()
    remember(heart, *["Cats like fish."] * 2)
    remember(heart, "Cats like fish.", learned_at=end_of(NIGHT) + timedelta(hours=9))
    found = facts_in(owner)
    with unrecorded() as instance:
        for night in (NIGHT, NIGHT + timedelta(days=1)):
            assert run_night(night, options(database_url, tmp_path), instance=instance).is_success
    return found


def test_a_range_of_nights_is_taken_back_whole_and_what_has_nothing_to_take_back_says_so(before, owner):
    nothing = take_back(kind="archive")

    (failed,) = [event for event in nothing.all_events if event.is_step_failure]
    assert "no applied proposal is left of these nights" in failed.step_failure_data.error.message
    assert "applied" in proposals_in(owner).values()
    assert facts_in(owner) != before

    undone = take_back()

    assert undone.success
    assert facts_in(owner) == before
    assert set(proposals_in(owner).values()) == {"undone"}
