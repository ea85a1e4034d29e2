"""A night builds on what earlier ones kept, and plans what a night plans that compares and judges all again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from conftest import WordEmbedder
from dagster import DagsterInstance
from examples import examples
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from night_runs import POLICY, options
from psycopg.conninfo import conninfo_to_dict
from turns import in_turn

from nous_online.core.errors import NousError
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import OfflineJudge
from nous_pipelines.night_policy import Policies
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.earlier_nights import OUTPUT_FILES, decision_basis, was_planned_from
from nous_pipelines.orchestration.running import NightOptions, NightOutcome, run_night
from nous_pipelines.plan.checks import CHECKS, CheckResult
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.snapshot import open_snapshot
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES

FIRST = date(2026, 3, 2)
AGENTS = ("aria", "ben", "cleo")
TEXTS = (
    "The office opens at nine.",
    "The office opens at nine",
    "The office opens at ten.",
    "Backups are kept for 30 days.",
    "Backups are kept for 14 days.",
    "Cats like fish.",
    "Cats like fresh fish.",
)
CHANGES: dict[str, Callable[[Heart, psycopg.Connection, object], object]] = {
    "confirm": lambda heart, _, fact: heart.confirm_fact(fact),
    "forget": lambda heart, _, fact: heart.forget(fact, reason="a drawn change"),
    "undo": lambda heart, _, fact: heart.undo(fact, reason="a drawn change"),
    "pin": lambda heart, _, fact: heart.pin(fact),
    "erase": lambda heart, owner, fact: erased(owner, heart.agent.id, fact),
    "recall": lambda heart, _, __: heart.recall("who likes fish?"),
    "resolve": lambda heart, owner, _: resolved(heart, owner),
}
SAYING = st.sampled_from(["learn", "import"])
LEARNING = st.tuples(st.sampled_from(AGENTS), SAYING, st.integers(0, len(TEXTS) - 1), st.integers(-3, 0))
CHANGING = st.tuples(st.sampled_from(AGENTS), st.sampled_from(sorted(CHANGES)), st.integers(0, 9), st.just(0))
DAYS = st.lists(st.lists(st.one_of(LEARNING, CHANGING), max_size=6), min_size=2, max_size=2)
EVERYTHING = [(name, "import", number, 0) for name in AGENTS for number in range(len(TEXTS))]
"""What the first day begins with: a store in which most is new is compared anew as a whole, whoever asks for it."""


@pytest.fixture(scope="module")
def instance() -> Iterator[DagsterInstance]:
    with unrecorded() as one:
        yield one


def erased(owner: psycopg.Connection, agent_id: str, fact: object) -> None:
    """Remove a fact that none gave way to, as an erasure leaves a store: without a trace."""
    named = owner.execute("select from heart.facts where agent_id = %s and superseded_by = %s", [agent_id, fact])
    if named.fetchone() is not None:
        return
    with owner.transaction():
        owner.execute("set local session_replication_role = replica")
        for statement in (
            "delete from heart.postings where agent_id = %s and memory_id = %s",
            "delete from heart.statements where agent_id = %s and fact_id = %s",
            "delete from lifecycle.events where agent_id = %s and memory_id = %s",
            "delete from heart.contradictions where agent_id = %s and %s in (memory_a, memory_b)",
            "delete from heart.links where agent_id = %s and %s in (from_id, to_id)",
            "delete from heart.usage where agent_id = %s and memory_id = %s",
            "delete from heart.facts where agent_id = %s and id = %s",
        ):
            owner.execute(statement, [agent_id, fact])


def lived(
    hearts: dict[str, Heart], owner: psycopg.Connection, day: list[tuple[str, str, int, int]], night: date
) -> None:
    """Let the agents go through one day; what can't be done to a fact as it is, is not done."""
    for place, (name, what, number, days) in enumerate(day):
        heart = hearts[name]
        at = datetime(night.year, night.month, night.day, 9, place, tzinfo=UTC) + timedelta(days=days)
        if what == "import":
            heart.learn_deferred([(TEXTS[number], {"learned_at": at})])
            continue
        if what == "learn":
            heart.learn(TEXTS[number], learned_at=at)
            continue
        facts = owner.execute("select id from heart.facts where agent_id = %s order by id", [name]).fetchall()
        if facts:
            try:
                CHANGES[what](heart, owner, facts[number % len(facts)][0])
            except NousError:
                continue


@settings(
    max_examples=examples(1),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a week of nights smaller takes minutes
)
@given(days=DAYS)
def test_a_night_plans_what_a_full_night_plans(
    days: list[list[tuple[str, str, int, int]]],
    copy_of: Callable[[str], AbstractContextManager[str]],
    template: str,
    instance: DagsterInstance,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assume(any(days))  # Hypothesis begins with a week in which nothing happens
    home, other = tmp_path_factory.mktemp("nights"), tmp_path_factory.mktemp("full")
    days = [EVERYTHING, *days, []]
    nights = [*(FIRST + timedelta(days=place) for place in range(len(days) - 1)), datetime.now(UTC).date()]
    with (
        copy_of(template) as url,
        closing(Database(url)) as database,
        psycopg.connect(url, autocommit=True) as owner,
        ExitStack() as opened,
    ):
        hearts = {name: opened.enter_context(heart_of(name, database)) for name in AGENTS}
        for night, day in zip(nights, days, strict=True):
            lived(hearts, owner, day, night)

            if night == FIRST:  # nothing is kept of a night before it
                assert run_night(night, options(url, home), instance=instance).failures == ()
                continue
            run = options(url, other, is_full=True, is_dry_run=True)
            assert run_night(night, run, instance=instance).failures == ()
            by_full = found_in(other, night, is_dry_run=True)
            assert run_night(night, options(url, home), instance=instance).failures == ()

            assert found_in(home, night) == by_full
            assert_same_snapshot(night, home, other)


def resolved(heart: Heart, owner: psycopg.Connection) -> None:
    """Decide the first open contradiction, if there is one."""
    query = "select id from heart.contradictions where agent_id = %s and status = 'open' order by id limit 1"
    row = owner.execute(query, [heart.agent.id]).fetchone()
    if row is not None:
        heart.resolve_contradiction(row[0], "both_valid")


def assert_same_snapshot(night: date, home: Path, other: Path) -> None:
    """What was put together of several nights reads as what was read at once."""
    built, whole = (open_snapshot(folder_in(each, night)) for each in (home, other))
    assert built is not None
    assert whole is not None
    for name in SNAPSHOT_TABLES:
        assert built.table(name).equals(whole.table(name)), (night, name)


def heart_of(name: str, database: Database) -> Heart:
    """Open the memory of one agent; it learns with the judge that nights have."""
    return Heart.open(name, database=database, embedder=WordEmbedder(), judge=OfflineJudge())


def folder_in(home: Path, night: date) -> Path:
    """Return the folder of a night of the only database that has any there."""
    (folder,) = home.glob(f"snapshots/*/night={night}")
    return folder


def found_in(home: Path, night: date, *, is_dry_run: bool = False) -> tuple[str, list[tuple[object, ...]]]:
    """Return the hash of what a night planned, and its pairs with their verdicts."""
    files = NightFiles(folder_in(home, night), is_dry_run=is_dry_run)
    return files.read_plan().hash, files.read_table("judgements").rows()


def test_a_night_takes_what_learning_has_read_and_plans_the_same(
    database: Database, database_url: str, owner: psycopg.Connection, instance: DagsterInstance, tmp_path: Path
) -> None:
    at = datetime(FIRST.year, FIRST.month, FIRST.day, 9, tzinfo=UTC)
    with heart_of("aria", database) as heart:
        for minutes, text in enumerate(TEXTS):
            heart.learn(text, learned_at=at + timedelta(minutes=minutes))
    by_learning = kept(owner)

    run, full = (options(database_url, tmp_path, is_dry_run=True, is_full=is_full) for is_full in (False, True))
    assert run_night(FIRST, run, instance=instance).failures == ()
    found, by_night = found_in(tmp_path, FIRST, is_dry_run=True), kept(owner) - by_learning
    assert run_night(FIRST, full, instance=instance).failures == ()

    asked = len({row[:3] for row in found[1]})
    assert len(by_night) < asked <= len(by_learning | by_night)
    assert found_in(tmp_path, FIRST, is_dry_run=True) == found
    assert kept(owner) == by_learning | by_night


def test_the_last_night_reads_what_an_import_after_it_tells_of_long_ago(
    database: Database, database_url: str, instance: DagsterInstance, tmp_path: Path
) -> None:
    told = ["Priyanka owns the booking service.", "Handover: booking went to Tomasz."]
    last = datetime.now(UTC).date() - timedelta(days=1)
    run = options(database_url, tmp_path)
    with heart_of("aria", database) as heart:
        heart.learn_deferred([
            (text, {"learned_at": datetime(2024, month, 1, tzinfo=UTC)}) for month, text in enumerate(told, start=1)
        ])  # fmt: skip
        assert run_night(date(2024, 6, 1), run, instance=instance).failures == ()
        of_then = NightFiles(folder_in(tmp_path, date(2024, 6, 1))).read_table("judgements")

        assert run_night(last, run, instance=instance).failures == ()

    assert of_then.is_empty(), "a night of those days takes the history as if it had been there then"
    assert len(NightFiles(folder_in(tmp_path, last)).read_table("judgements")) == 1


def kept(owner: psycopg.Connection) -> set[tuple[object, ...]]:
    """Return the verdicts that are kept, as they are."""
    said = "select pair_hash, model, prompt_version, verdict, confidence, slot, later, reason from heart.judgements"
    return {*owner.execute(said)}


# --- agents at rest ---

AT_REST = FIRST - timedelta(days=5)


@pytest.fixture
def told(database: Database) -> dict[str, Heart]:
    """Three agents who were told two things each, days ago."""
    hearts = {name: heart_of(name, database) for name in AGENTS}
    for name, heart in hearts.items():
        learn(heart, f"{name} likes fish.", f"{name} lives in Rome.")
    return hearts


def learn(heart: Heart, *texts: str, day: date = AT_REST) -> None:
    at = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
    heart.learn_deferred([(text, {"learned_at": at}) for text in texts])


def compared(home: Path, night: date) -> list[str]:
    """Return the agents whose facts a night compared."""
    return NightFiles(folder_in(home, night)).read_json("compared")["agents"]


def test_facts_of_agents_at_rest_are_not_compared_again_and_what_is_known_of_them_stays(
    told, database_url, instance, tmp_path
):
    learn(told["aria"], "Cats like fish.", "Cats like fresh fish.")
    run, nights = options(database_url, tmp_path), [FIRST + timedelta(days=days) for days in (0, 1, 2, 4, 5)]

    for night in nights:
        if night == nights[2]:
            learn(told["ben"], "The office opens at nine.", day=night)
        assert run_night(night, run, instance=instance).is_success

    # What the first night did to one of them is most of what there is.
    assert [compared(tmp_path, night) for night in nights] == [list(AGENTS), list(AGENTS), ["ben"], ["ben"], []]
    before, last = (NightFiles(folder_in(run.home, night)) for night in nights[-2:])
    for name in ("neighbours", "copies", "judgements", "duplicate_clusters"):
        assert last.read_table(name).equals(before.read_table(name)), name
    assert len(last.read_table("copies")) == 9


def test_nothing_is_taken_over_from_a_night_that_was_decided_otherwise_or_damaged(
    told, database_url, instance, tmp_path, monkeypatch
):
    """The second night is asked again under each change who is at rest."""
    usual, second = options(database_url, tmp_path), FIRST + timedelta(days=1)
    for night in (FIRST, second):
        assert run_night(night, usual, instance=instance).is_success

    def at_rest(run: NightOptions) -> set[str]:
        with run.night_run().opened() as night_run:
            return {*night_run.agents_at_rest(second).agent_ids}

    assert at_rest(usual) == {*AGENTS}
    assert at_rest(options(database_url, tmp_path, policy={"candidate_similarity": 0.8})) == set()
    assert at_rest(replace(usual, is_full=True)) == set()
    with monkeypatch.context() as patched:
        patched.setattr("nous_online.language.pairs.judging.OfflineJudge.prompt_version", "another")
        assert at_rest(usual) == set()
    NightFiles(folder_in(usual.home, FIRST)).write_json("link_proposals", {"proposals": []})
    assert at_rest(usual) == set()


# --- the same night again ---


@pytest.fixture(scope="module")
def first(
    copy_of: Callable[[str], AbstractContextManager[str]],
    template: str,
    instance: DagsterInstance,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[NightOptions, NightOutcome]]:
    """Three agents and their first night, which merged two facts, for tests that go on from there in copies of it."""
    with copy_of(template) as url:
        with closing(Database(url)) as database:
            for name in AGENTS:
                with heart_of(name, database) as heart:
                    learn(heart, f"{name} likes fish.", f"{name} lives in Rome.")
                    if name == "aria":
                        learn(heart, "Cats like fish.", "Cats like fish")
        run = options(url, tmp_path_factory.mktemp("first"))
        outcome = run_night(FIRST, run, instance=instance)
        assert outcome.is_success
        yield run, outcome


@pytest.fixture
def run(
    first: tuple[NightOptions, NightOutcome], copy_of: Callable[[str], AbstractContextManager[str]], tmp_path: Path
) -> Iterator[NightOptions]:
    """The options of nights of a copy in which the first one has run."""
    original, _ = first
    shutil.copytree(original.home, tmp_path, dirs_exist_ok=True)
    with copy_of(str(conninfo_to_dict(original.database_url)["dbname"])) as url:
        yield options(url, tmp_path)


def again(run: NightOptions, instance: DagsterInstance) -> set[str]:
    """Run the first night once more, and return which of the files that follow from its rows were made again."""
    folder = NightFiles(folder_in(run.home, FIRST)).folder
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert run_night(FIRST, run, instance=instance).is_success
    changed = {path.name for path in folder.iterdir() if path.stat().st_mtime_ns != before.get(path)}
    return changed & {*OUTPUT_FILES, "kept.json", "checks.json"}


def test_a_night_that_reads_the_same_rows_makes_nothing_again(first, run, instance):
    found, made = found_in(run.home, FIRST), NightFiles(folder_in(run.home, FIRST)).read_plan()
    assert "merge" in {proposal.kind for proposal in made.proposals}

    assert again(run, instance) == set()

    second = run_night(FIRST, run, instance=instance)
    assert first[1].report is not None
    assert second.report == first[1].report  # made by the night itself, and read back from what it left
    assert found_in(run.home, FIRST) == found
    assert again(replace(run, is_full=True), instance) == {*OUTPUT_FILES, "kept.json", "checks.json"}
    assert found_in(run.home, FIRST) == found


def test_a_plan_stands_for_the_rows_code_policy_judge_and_agents_it_was_made_of(run, monkeypatch):
    taken = open_snapshot(folder_in(run.home, FIRST))
    assert taken is not None
    files, judge, policy = NightFiles(taken.folder), OfflineJudge(), Policies(POLICY).default
    basis = decision_basis(judge, policy, POLICY)

    assert was_planned_from(files, basis, taken, AGENTS)
    assert not was_planned_from(files, decision_basis(judge, policy, {}), taken, AGENTS)
    assert not was_planned_from(files, decision_basis(judge, policy, POLICY, ["a model"]), taken, AGENTS)
    assert not was_planned_from(files, {**basis, "judge": [judge.name, "another prompt"]}, taken, AGENTS)
    assert not was_planned_from(files, basis, taken, AGENTS[1:])
    assert not was_planned_from(files, basis, replace(taken, taken_at=datetime.now(UTC)), AGENTS)
    assert not was_planned_from(files, basis, replace(taken, checksums={"facts": 1}), AGENTS)
    with monkeypatch.context() as patched:
        patched.setattr("nous_pipelines.orchestration.earlier_nights.code_digest", lambda: "of other code")
        assert not was_planned_from(files, decision_basis(judge, policy, POLICY), taken, AGENTS)
    for name in ("plan", "link_proposals"):
        whole = files.read_json(name)
        files.write_json(name, {"proposals": []})
        assert not was_planned_from(files, basis, taken, AGENTS), name
        files.write_json(name, whole)
        assert was_planned_from(files, basis, taken, AGENTS), name


def test_files_kept_for_the_next_run_may_be_damaged_or_missing(first, run, instance):
    """The night runs again for some of them in each run of the tests; that it has to is asked of all of them."""
    folder = NightFiles(folder_in(run.home, FIRST)).folder

    def is_carried_through() -> bool:
        with run.night_run().opened() as night_run:
            return night_run.finished_run(FIRST) is not None

    kept = ("checks.json", "finished.json", "kept.json", "neighbours.parquet")
    for name in kept:
        assert is_carried_through()
        whole = (folder / name).read_bytes()
        (folder / name).unlink()
        assert not is_carried_through(), name
        (folder / name).write_text('{"hash"', "utf-8")
        assert not is_carried_through(), name

        if name in in_turn(kept, of=2):
            assert again(run, instance) >= {"checks.json", "neighbours.parquet", "link_proposals.json"}, name
        else:
            (folder / name).write_bytes(whole)

    second = run_night(FIRST, run, instance=instance)
    assert again(run, instance) == set()
    assert first[1].report is not None
    assert second.report is not None
    assert second.report.plan_hash == first[1].report.plan_hash


def test_a_night_that_a_restored_database_has_not_applied_is_run_again(run, instance):
    assert again(run, instance) == set()
    with psycopg.connect(run.database_url, autocommit=True) as owner:
        owner.execute("update lifecycle.plans set state = 'planned', applied_at = null where night = %s", [FIRST])

        assert "checks.json" in again(run, instance)

        assert owner.execute("select state from lifecycle.plans where night = %s", [FIRST]).fetchall() == [("applied",)]


def test_a_night_that_failed_or_stopped_half_way_is_run_again(told, database_url, instance, tmp_path, monkeypatch):
    run = options(database_url, tmp_path)
    with monkeypatch.context() as patched:
        patched.setitem(CHECKS, "budget", lambda _: CheckResult(passed=False, description="no", is_about_all=True))
        assert not run_night(FIRST, run, instance=instance).is_success

    assert "checks.json" in again(run, instance)
    assert again(run, instance) == set()
