"""What nights leave behind is thrown away when it is old, and only then."""

import logging
import os
import shutil
from datetime import UTC, date, datetime, timedelta

import dagster as dg
import pytest
from night_runs import options, remember

from nous_online.core.errors import InvalidInput
from nous_online.core.settings import settings
from nous_pipelines.orchestration.code_location import retention
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.night_assets import NIGHTS
from nous_pipelines.orchestration.retention import Retention, old_folders, prune_runs, throw_away
from nous_pipelines.orchestration.running import run_night

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)


def made(root, name, *, written=LONG_AGO):
    """Make a folder with a file in a folder in it, all last written at one moment."""
    folder = root / "0b6d" / name
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "plan.json").write_text("{}")
    for path in (folder / "run" / "plan.json", folder / "run", folder):
        os.utime(path, (written.timestamp(), written.timestamp()))
    return folder


def names(folders):
    return [folder.name for folder in folders]


def test_only_nights_older_than_the_days_kept_go(tmp_path):
    for night in ("2025-06-13", "2025-06-14", "2025-06-15", "2026-06-14"):
        made(tmp_path, f"night={night}")

    snapshots, set_aside = old_folders(tmp_path, Retention(), now=NOW)

    assert (names(snapshots), set_aside) == (["night=2025-06-13", "night=2025-06-14"], [])


def test_what_no_night_reads_goes_after_a_week(tmp_path):
    aside = [".night=2026-06-01.0f", "night=2026-06-01.before-erasing", "night=2026-06-01.taken-20260601T120000000000"]
    for name in aside:
        made(tmp_path, name)
    made(tmp_path, ".night=2026-06-14.ab", written=NOW - timedelta(days=6))

    snapshots, set_aside = old_folders(tmp_path, Retention(), now=NOW)

    assert (snapshots, names(set_aside)) == ([], aside)


def test_an_old_night_that_is_being_backfilled_stays(tmp_path):
    folder = made(tmp_path, "night=2021-01-01")
    os.utime(folder / "run" / "plan.json", (NOW.timestamp(), NOW.timestamp()))

    assert old_folders(tmp_path, Retention(), now=NOW) == ([], [])


def test_folders_that_are_no_nights_and_the_locks_beside_them_stay(tmp_path):
    made(tmp_path, "night=2021-01-01")
    stays = [made(tmp_path, "mine"), tmp_path / "0b6d" / ".night=2021-01-01.lock"]
    stays[1].write_text("")

    with dg.DagsterInstance.ephemeral() as instance:
        thrown = throw_away(instance, tmp_path, Retention(), now=NOW)

    assert (thrown.runs, thrown.snapshots, thrown.set_aside) == (0, 1, 0)
    assert sorted((tmp_path / "0b6d").iterdir()) == sorted(stays)


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_days_that_make_no_sense_are_refused(days):
    with pytest.raises(InvalidInput, match=f"runs_kept_days must be between 1 and 36500 days, got {days}"):
        Retention(runs_kept_days=days)


@dg.asset(partitions_def=NIGHTS)
def night_of_a_test(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    if context.run.tags.get("fails"):
        raise dg.Failure("as asked")
    return dg.MaterializeResult()


def test_a_run_goes_unless_a_partition_would_turn_grey():
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    with dg.DagsterInstance.ephemeral() as instance:

        def ran(night, **tags):
            return dg.materialize(
                [night_of_a_test], instance=instance, partition_key=night, tags=tags, raise_on_error=False
            ).run_id  # fmt: skip

        replaced, failed = ran("2026-06-01"), ran("2026-06-02", fails="yes")
        latest, other = ran("2026-06-01"), ran("2026-06-03")

        before_any = prune_runs(instance, ended_before=datetime.now(UTC) - timedelta(days=1))
        pruned = prune_runs(instance, ended_before=datetime.now(UTC) + timedelta(days=1))

        assert (before_any, pruned) == (0, 2)
        assert {run.run_id for run in instance.get_runs()} == {latest, other}
        assert not {replaced, failed} & {latest, other}
        assert instance.get_materialized_partitions(night_of_a_test.key) == {"2026-06-01", "2026-06-03"}


def test_the_job_throws_away_runs_snapshots_and_what_is_purged(heart, database_url, owner, tmp_path, monkeypatch):
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path))
    settings.cache_clear()
    remember(heart, "cats like fish", "cats like fish")
    old, recent = date(2025, 1, 1), datetime.now(UTC).date() - timedelta(days=3)
    with unrecorded() as instance:
        assert run_night(recent, options(database_url, tmp_path), instance=instance).is_success
    (folder,) = tmp_path.glob("snapshots/*/night=*")
    shutil.copytree(folder, aged := folder.with_name(f"night={old}"))
    for path in (*aged.rglob("*"), aged):
        os.utime(path, (LONG_AGO.timestamp() - 10**7, LONG_AGO.timestamp() - 10**7))
    facts = owner.execute("select count(*) from heart.facts").fetchone()

    with dg.DagsterInstance.ephemeral() as instance:
        done = retention.execute_in_process(instance=instance)

    settings.cache_clear()
    assert done.success
    assert [path.name for path in tmp_path.glob("snapshots/*/night=*")] == [f"night={recent}"]
    assert owner.execute("select count(*) from heart.facts").fetchone() == facts
