"""A snapshot is taken anew for a night that was never applied, and never moved from under one that was."""

from __future__ import annotations

from datetime import timedelta

import pytest
from night_runs import NIGHT, everything, options, proposals_in, remember

from nous_online.heart import Heart
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import folder_of, read_report, run_night
from nous_pipelines.plan.checks import CHECKS, CheckResult

NEXT = NIGHT + timedelta(days=1)
NINE = "The office opens at nine."
ENDING = ("plan", "plan_checks", "applied", "report")


@pytest.fixture(scope="module")
def instance():
    with unrecorded() as one:
        yield one


@pytest.fixture
def run(database_url, instance, tmp_path):
    """Run a night of this test's database."""
    return lambda night, **changes: run_night(night, options(database_url, tmp_path, **changes), instance=instance)


@pytest.fixture
def opened(database, embedder, judge):
    """Open the memory of an agent by name."""
    return lambda agent_id: Heart.open(agent_id, database=database, embedder=embedder, judge=judge)


@pytest.fixture
def folder(database_url, tmp_path):
    """Where the files of the later night lie."""
    return folder_of(NEXT, options(database_url, tmp_path))


def files_in(folder):
    """Return every file of a night but those of dry runs, with what it holds."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and "dry_run" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_night_that_was_applied_keeps_its_snapshot_when_it_runs_after_an_earlier_one_and_all_its_files_in_a_dry_run(
    opened, run, owner, database_url, tmp_path, folder
):
    remember(opened("aria"), NINE, NINE)
    remember(opened("ben"), "Rain falls down.", "Rain falls down.")
    assert run(NEXT, agent_ids=("aria",)).is_success
    taken = (folder / "snapshot.json").read_bytes()
    assert run(NIGHT).is_success

    assert run(NEXT).is_success

    assert (folder / "snapshot.json").read_bytes() == taken

    remember(opened("cleo"), "Cats like fish.")  # late: a night that is applied would be taken again
    before, report, kept = files_in(folder), read_report(NEXT, options(database_url, tmp_path)), everything(owner)

    assert run(NEXT, is_dry_run=True).is_success

    assert files_in(folder) == before
    assert list(folder.parent.glob("*.taken-*")) == []
    assert read_report(NEXT, options(database_url, tmp_path)).plan_hash == report.plan_hash
    assert everything(owner) == kept


def test_a_night_that_its_checks_stopped_sees_what_an_earlier_night_did_since(opened, run, owner, folder, monkeypatch):
    remember(opened("aria"), NINE, NINE)
    monkeypatch.setitem(CHECKS, "effect", lambda _: CheckResult(passed=False, description="this can't be"))
    assert not run(NEXT).is_success
    monkeypatch.undo()
    assert (folder / "run" / "plan.json").exists()
    assert run(NIGHT).is_success

    assert run(NEXT).is_success

    (aside,) = folder.parent.glob(f"{folder.name}.taken-*")
    assert (aside / "run" / "plan.json").exists()
    assert set(proposals_in(owner).values()) == {"applied"}


def test_steps_are_told_as_they_end_and_what_they_made_stays_where_it_is_while_an_earlier_night_is_applied(
    opened, run, database_url, instance, tmp_path, folder
):
    remember(opened("aria"), NINE, NINE)
    remember(opened("ben"), "Rain falls down.", "Rain falls down.")
    steps = list[str]()

    def tell(step):
        steps.append(step)
        if len(steps) == 2:  # the snapshot is taken, and the first table made of it
            assert run(NIGHT, agent_ids=("ben",)).is_success

    outcome = run_night(NEXT, options(database_url, tmp_path, agent_ids=("aria",)), instance=instance, tell=tell)

    assert outcome.failures == ()
    assert outcome.report.counts["merges"] == 1
    assert list(folder.parent.glob("*.taken-*")) == []
    assert steps[0] == "snapshot"
    assert {"judgements", "merge_proposals"} <= set(steps)
    assert [step for step in steps if step in ENDING] == list(ENDING)
