"""Whole nights, through Dagster itself."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, timedelta

import filelock
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from dagster import AssetKey, DagsterInstance
from night_runs import NIGHT, POLICY, SAID, everything, facts_in, options, remember

from nous_online.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.orchestration.code_location import defs
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import NightOptions, NightOutcome, folder_of, read_report, run_night
from nous_pipelines.phases.phase_table import NIGHT_TABLES
from nous_pipelines.plan.checks import CHECKS, NOBODY_LEFT_OUT, CheckResult
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.plan.undo import Selection, undo
from nous_pipelines.snapshots.snapshot import take_snapshot

NINE = "The office opens at nine."
BACKUPS = ("Backups are kept for 30 days.", "Backups are kept for 14 days.")


@pytest.fixture(scope="module")
def instance():
    with unrecorded() as one:
        yield one


@pytest.fixture
def run(database_url, instance, tmp_path):
    """Run a night of this test's database."""

    def run_it(night=NIGHT, **changes):
        return run_night(night, options(database_url, tmp_path, **changes), instance=instance)

    return run_it


@pytest.fixture
def folder(database_url, tmp_path):
    """Where the files of the night lie."""
    return folder_of(NIGHT, options(database_url, tmp_path))


@pytest.fixture
def opened(database, embedder, judge):
    """Open the memory of an agent by name."""
    return lambda agent_id: Heart.open(agent_id, database=database, embedder=embedder, judge=judge)


def active(owner, agent_id="aria"):
    rows = owner.execute(
        "select content from heart.facts where state = 'active' and agent_id = %s", [agent_id]
    ).fetchall()
    return sorted(content for (content,) in rows)


@dataclass(frozen=True)
class Slept:
    """A night after a dry run of it: the store and its records, and all that a night may change as each found it."""

    owner: psycopg.Connection
    options: NightOptions
    instance: DagsterInstance
    dry: NightOutcome
    outcome: NightOutcome
    seen: tuple[object, object]


@pytest.fixture(scope="module")
def slept(copy_of, template, tmp_path_factory):
    """One night for all tests that look at what it left, in records of its own."""
    with (
        copy_of(template) as url,
        closing(Database(url)) as database,
        psycopg.connect(url, autocommit=True) as owner,
        DagsterInstance.ephemeral() as instance,
        Heart.open(
            "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
        ) as heart,
    ):
        remember(heart, NINE, NINE, "The office opens at nine", *BACKUPS, "Cats like fish.")
        tonight = options(url, tmp_path_factory.mktemp("slept"))
        untouched = everything(owner)
        dry = run_night(NIGHT, replace(tonight, is_dry_run=True), instance=instance)
        tried = everything(owner)
        assert owner.execute("select count(*) from lifecycle.plans").fetchone() == (0,)
        outcome = run_night(NIGHT, tonight, instance=instance)
        yield Slept(owner, tonight, instance, dry, outcome, (untouched, tried))


def test_a_night_does_what_a_dry_run_of_it_says(slept):
    dry, outcome, owner = slept.dry, slept.outcome, slept.owner
    untouched, tried = slept.seen
    assert dry.is_success
    assert tried == untouched
    assert (dry.report.counts["merges"], dry.report.counts["active_before"]) == (1, 6)

    assert outcome.is_success, outcome.failures
    assert outcome.failures == ()
    assert outcome.report.plan_hash == dry.report.plan_hash
    assert active(owner) == sorted([BACKUPS[-1], "Cats like fish.", NINE])
    assert (outcome.report.counts["merges"], outcome.report.counts["retired"]) == (1, 2)
    (replaced,) = outcome.report.of_kind("supersede")
    assert set(replaced.told) == set(BACKUPS)
    assert "30" in replaced.reason
    recorded = slept.instance.get_run_by_id(outcome.run_id)
    assert recorded.is_success
    assert recorded.tags["dagster/partition"] == NIGHT.isoformat()
    assert owner.execute("select memory_count from heart.corpus_stats").fetchone() == (6,), "words are counted after it"
    assert owner.execute("select lexeme from heart.term_stats where lexeme = 'offic'").fetchone() == ("offic",)


def test_a_night_is_recorded_asset_by_asset_with_its_checks_policy_and_plan(slept):
    outcome = slept.outcome
    made = {
        name: slept.instance.get_latest_materialization_event(AssetKey(name)).asset_materialization
        for name in ("plan", "report", "neighbours", "judgements", *(table.name for table in NIGHT_TABLES))
    }

    plan, report = made.pop("plan"), made.pop("report")
    assert plan.partition == NIGHT.isoformat()
    assert plan.metadata["hash"].value == outcome.report.plan_hash
    assert plan.metadata["policy"].data["candidate_similarity"] == 0.7
    assert "nous undo --night 2026-06-01" in report.metadata["report"].value
    assert {check["name"] for check in outcome.report.checks} == {*CHECKS, NOBODY_LEFT_OUT}
    assert all(check["passed"] for check in outcome.report.checks)
    files = NightFiles(folder_of(NIGHT, slept.options))
    graph = defs.resolve_asset_graph()
    for name, materialization in made.items():
        assert materialization.metadata["dagster/row_count"].value == len(files.read_table(name))
        columns = graph.get(AssetKey(name)).metadata["dagster/column_schema"].columns
        assert [column.name for column in columns] == files.read_table(name).columns


def test_a_night_does_nothing_when_it_is_run_again(slept):
    before = everything(slept.owner)

    again = run_night(NIGHT, slept.options, instance=slept.instance)
    assert again.is_success
    assert again.report == slept.outcome.report
    assert everything(slept.owner) == before

    folder = folder_of(NIGHT, slept.options)
    folder.rename(folder.with_name("aside"))
    without_files = run_night(NIGHT, slept.options, instance=slept.instance)
    assert without_files.is_success, without_files.failures
    assert everything(slept.owner) == before


def test_failed_checks_stop_the_night_before_anything_changes(heart, run, owner, monkeypatch):
    """That each of them blocks alone, the definitions say: see `test_every_check_is_there_and_blocks_but_…`."""
    remember(heart, NINE, NINE)
    before = everything(owner)
    for name in CHECKS:
        monkeypatch.setitem(CHECKS, name, lambda _, name=name: CheckResult(passed=False, description=f"no {name}"))

    outcome = run()

    assert not outcome.is_success
    assert sorted(outcome.failures) == sorted(f"check {name}: no {name}" for name in CHECKS)
    assert everything(owner) == before
    assert owner.execute("select count(*) from lifecycle.plans").fetchone() == (0,)
    assert {check["name"] for check in outcome.report.checks if not check["passed"]} == {*CHECKS}


def test_a_night_that_would_retire_too_much_can_be_run_again_with_a_higher_limit(heart, run, owner):
    remember(heart, *[NINE] * 25)
    before = everything(owner)

    stopped = run()
    assert stopped.failures[0].startswith("check blast_radius: aria: 24 of 25 memories would leave, the limit is 40%")
    assert everything(owner) == before

    assert run(policy={**POLICY, "max_leaving_share": 1}).is_success
    assert active(owner) == [NINE]


def test_what_was_recalled_and_used_may_not_get_harder_to_find(heart, run, owner):
    remember(heart, "Cats like fish", "Cats like fish.", "Cats like milk")
    found = heart.recall("Cats like fish", limit=3, at=SAID + timedelta(days=9))
    heart.cite(found.id, [answer.memory.id for answer in found], at=SAID + timedelta(days=9))

    outcome = run()

    assert outcome.is_success, outcome.failures
    (check,) = [check for check in outcome.report.checks if check["name"] == "recall_does_not_regress"]
    assert check["metadata"] == {"probes": 1}


def test_naming_an_agent_leaves_the_others_alone_until_their_turn(opened, run, owner):
    for agent_id in ("aria", "ben"):
        remember(opened(agent_id), NINE, NINE)

    narrowed = run(agent_ids=("ben",))
    assert narrowed.report.active_by_agent == {"ben": 2}
    assert (len(active(owner, "aria")), len(active(owner, "ben"))) == (2, 1)

    assert run().is_success
    assert (len(active(owner, "aria")), len(active(owner, "ben"))) == (1, 1)


def test_the_same_statement_of_two_agents_users_projects_and_scopes_is_never_merged(opened, run, owner):
    places = [
        {"scope": "private"}, {"scope": "private", "user_id": "u1"}, {"scope": "private", "user_id": "u2"},
        {"scope": "project", "project_id": "p1"}, {"scope": "project", "project_id": "p2"}, {"scope": "system"},
    ]  # fmt: skip
    for agent_id in ("aria", "ben"):
        for place in places:
            remember(opened(agent_id), NINE, **place)

    outcome = run()

    assert outcome.is_success, outcome.failures
    assert outcome.report.counts["merges"] == 0
    assert active(owner, "aria") == active(owner, "ben") == [NINE] * len(places)


@pytest.mark.parametrize(
    "case",
    [
        (NIGHT, {"agent_ids": ("aria", "nobody")}, NotFound, "agent 'nobody' is not known here"),
        (NIGHT, {"policy": {"candidate_similarity": 7}}, InvalidInput, "between 0.5 and 1, got 7"),
        (NIGHT, {"policy": {"candidate_similarity": float("nan")}}, InvalidInput, "must be a number, got nan"),
        (NIGHT, {"policy": {"max_leaving_share": 0}}, InvalidInput, "above 0 and at most 1, got 0"),
        (NIGHT, {"policy": {"max_leaving_count": -1}}, InvalidInput, "max_leaving_count .* got -1"),
        (NIGHT, {"policy": {"max_leaving_jump": float("inf")}}, InvalidInput, "max_leaving_jump .* got inf"),
        (NIGHT, {"policy": {"probe_days": 1e9}}, InvalidInput, "probe_days must be between 0 and 36500"),
        (NIGHT, {"policy": {"boldness": 1}}, InvalidInput, "the policy has no field 'boldness'; it has: candidate_"),
        (NIGHT, {"policy": {"probe_days": True}}, InvalidInput, "probe_days must be a number, got True"),
        (date(2099, 1, 1), {}, InvalidInput, "night 2099-01-01 can't be run"),
        (date(2019, 12, 31), {}, InvalidInput, "night 2019-12-31 can't be run: the first one is 2020-01-01"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(heart, run, instance, tmp_path, case):
    night, changes, raised, said = case
    runs = instance.get_runs_count()

    with pytest.raises(raised, match=said):
        run(night, **changes)

    assert instance.get_runs_count() == runs
    assert not (tmp_path / "snapshots").exists()


def test_a_night_with_nothing_to_do_is_a_success(heart, run):
    outcome = run(date(2020, 1, 1))

    assert outcome.is_success, outcome.failures
    assert set(outcome.report.counts.values()) == {0}


def test_a_night_of_a_store_without_agents_is_a_success(run, owner):
    outcome = run()

    assert owner.execute("select count(*) from heart.agents").fetchone() == (0,)
    assert outcome.failures == ()
    assert outcome.is_success


def test_two_processes_never_run_one_night_at_once(heart, run, instance, folder):
    folder.parent.mkdir(parents=True)
    runs, lock = instance.get_runs_count(), filelock.FileLock(folder.with_name(f".{folder.name}.lock"))

    with lock, pytest.raises(Conflict, match="2026-06-01 is being run"):
        run()

    assert instance.get_runs_count() == runs
    with lock.acquire(timeout=0):
        assert not folder.exists()


def test_a_night_that_meets_another_one_of_its_agent_changes_nothing_and_is_right_the_next_time(heart, run, owner):
    remember(heart, NINE, NINE)
    before = everything(owner)
    with psycopg.connect(owner.info.dsn, password=owner.info.password) as other:
        other.execute("select pg_advisory_xact_lock(hashtextextended('night:aria', 0))")

        outcome = run()

    assert not outcome.is_success
    (failure,) = outcome.failures
    assert failure.startswith("applied: another night is being applied for agent 'aria'; wait for it to end")
    assert everything(owner) == before
    assert run().is_success
    assert active(owner) == [NINE]


def test_a_damaged_snapshot_is_named_with_the_way_out_and_nothing_is_applied(heart, run, owner, folder, night_database):
    """Of a damaged table `test_bad_nights.py` tells."""
    remember(heart, NINE, NINE)
    before = everything(owner)
    take_snapshot(night_database, folder, night=NIGHT, probe_days=30)
    spoil(folder / "snapshot.json")

    outcome = run()

    assert not outcome.is_success
    (failure,) = outcome.failures
    assert f"{folder / 'snapshot.json'} " in failure
    assert f"move {folder} aside and run the night again" in failure
    assert everything(owner) == before
    folder.rename(folder.with_name("aside"))
    assert run().is_success
    assert active(owner) == [NINE]


def test_a_plan_that_is_damaged_after_its_checks_is_not_applied(heart, run, owner, folder, monkeypatch):
    remember(heart, NINE, NINE)
    before = everything(owner)
    monkeypatch.setitem(CHECKS, "effect", lambda _: spoil(folder / "run" / "plan.json"))

    (failure,) = run().failures

    assert failure.startswith("applied: plan.json in ")
    assert failure.endswith("; run the night again")
    assert everything(owner) == before
    monkeypatch.undo()
    assert run().is_success
    assert active(owner) == [NINE]


def test_a_plan_that_is_not_the_one_the_checks_saw_is_not_applied(heart, run, owner, folder, monkeypatch):
    remember(heart, NINE, NINE)
    before = everything(owner)
    monkeypatch.setitem(CHECKS, "effect", lambda evidence: exchange(folder, evidence.plan))

    (failure,) = run().failures

    assert "the checks saw plan" in failure
    assert "run the checks again" in failure
    assert everything(owner) == before


def exchange(folder, plan):
    NightFiles(folder).write_json("plan", {**plan.as_dict(), "policy": {"candidate_similarity": 0.5}})
    return CheckResult(passed=True, description="all is well")


def spoil(path):
    path.write_bytes(path.read_bytes()[:20])
    return CheckResult(passed=True, description="all is well")


def test_a_home_that_cannot_be_written_to_is_named(heart, run, owner, tmp_path):
    remember(heart, NINE, NINE)
    before = everything(owner)
    (tmp_path / "snapshots").write_text("a file where a folder should be")

    with pytest.raises(Unavailable, match=r"snapshots.* can't be written to .*NOUS_HOME"):
        run()

    assert everything(owner) == before


def test_a_night_that_is_undone_stays_undone_when_it_is_run_again_and_in_the_next_ones(
    database_url, heart, run, owner, night_database, tmp_path
):
    remember(heart, NINE, NINE)
    before = facts_in(owner)
    run()
    undo(night_database, Selection(night=NIGHT), reason="no")

    again, following = run(), run(NIGHT + timedelta(days=1))

    assert again.is_success
    assert following.is_success
    assert facts_in(owner) == before
    assert again.report.counts["undone"] == 1
    assert [entry.state for entry in read_report(NIGHT, options(database_url, tmp_path)).entries] == ["undone"]


def test_a_night_that_has_not_run_has_no_report(database_url, heart, tmp_path):
    with pytest.raises(NotFound, match="night 2026-06-01 has not run here; run it with: nous night --date 2026-06-01"):
        read_report(NIGHT, options(database_url, tmp_path))
