"""A dry run launched in Dagster's interface tells what a night would do, and leaves its partition alone."""

from __future__ import annotations

import dagster as dg
import psycopg
import pytest
from night_runs import NIGHT, everything, options, remember

from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_pipelines.orchestration.code_location import ASSETS, defs
from nous_pipelines.orchestration.running import run_night

NINE = "The office opens at nine."


@pytest.fixture(autouse=True)
def settings_of_the_interface(database_url, tmp_path, monkeypatch):
    """Where a run that is launched finds database and home: it may not be told."""
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path))
    settings.cache_clear()


def launched(instance: dg.DagsterInstance, **config: object) -> dg.ExecuteInProcessResult:
    """Run the job as its launchpad does."""
    told = {"resources": {"night_run": {"config": config}}}
    job = defs.resolve_job_def("dry_run")
    return job.execute_in_process(
        run_config=told, partition_key=NIGHT.isoformat(), instance=instance, raise_on_error=False
    )


def test_a_dry_run_tells_what_the_night_would_do_and_leaves_memories_and_the_status_of_partitions_alone(
    heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path
) -> None:
    remember(heart, NINE, NINE)
    before = everything(owner)

    with dg.DagsterInstance.ephemeral() as instance:
        dry = launched(instance, policy={"candidate_similarity": 0.8})
        run_night(NIGHT, options(database_url, tmp_path, is_dry_run=True), instance=instance)
        coloured = [asset.key for asset in ASSETS if instance.get_materialized_partitions(asset.key)]
        keys = list(defs.resolve_asset_graph().asset_check_keys)
        checked = instance.event_log_storage.get_asset_check_summary_records(keys).values()

    (output,) = [event.step_output_data for event in dry.all_events if event.is_successful_output]
    assert output.metadata["merges"].value == 1
    assert f"{NIGHT}" in output.metadata["report"].value
    assert {check["name"]: check["passed"] for check in output.metadata["checks"].value}["conservation"]
    assert dry.success
    assert (coloured, [each for each in checked if each.last_check_execution_record]) == ([], [])
    assert everything(owner) == before


def test_a_dry_run_tells_which_questions_wait_for_a_person(
    heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path
) -> None:
    remember(heart, NINE, "Cats like fish.")
    owner.execute(
        """insert into heart.contradictions (agent_id, memory_a, memory_b, detected_at)
           select 'aria', a.id, b.id, a.learned_at from heart.facts a join heart.facts b on a.id < b.id"""
    )

    with dg.DagsterInstance.ephemeral() as instance:
        dry = run_night(NIGHT, options(database_url, tmp_path, is_dry_run=True), instance=instance)

    assert dry.report.needs[0].startswith("1 contradiction is open: ")


def test_it_may_lift_no_limit_of_a_check(heart: Heart) -> None:
    remember(heart, NINE, NINE)

    with dg.DagsterInstance.ephemeral() as instance:
        lifted = launched(instance, policy={"max_leaving_share": 1})

    assert not lifted.success
