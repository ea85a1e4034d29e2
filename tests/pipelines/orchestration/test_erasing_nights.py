"""Erasing an agent from what nights leave behind: files, logs and Dagster's records; the others keep theirs."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from dagster import AssetKey, DagsterInstance
from erased_rows import dump, recorded, written
from night_runs import NIGHT, everything, options, remember
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb
from sqlalchemy import text

from nous_online.core.errors import Conflict, NotFound, Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import erasure
from nous_online.memories.erasure import Erased, Part, erase_everywhere, erase_some
from nous_pipelines import failpoints
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.instance import dagster_instance, dagster_url
from nous_pipelines.orchestration.night_erasure import ERASED, erase_nights, night_folders
from nous_pipelines.orchestration.resources import CommandedNight
from nous_pipelines.orchestration.running import read_report, run_night
from nous_pipelines.reports.report import NightReport
from nous_pipelines.snapshots.snapshot import open_snapshot

NAME = "aria-7"
SECRETS = (NAME, "zinfandel", "kumquat", "ocelot")
MEMORIES = (
    "The zinfandel is in the cellar.", "The zinfandel is in the cellar", "Kumquats are fed to 3 ocelots.",
    "Kumquats are fed to 4 ocelots.",
)  # fmt: skip
AT_WORK = ("snapshot begins", "phases read", "plan made")
"""Where a night holds what it will write later on."""
OF_BEN = ("The office opens at nine.", "The office opens at nine", "Backups are kept for 30 days.")


@contextmanager
def living_at(home: Path, url: str) -> Iterator[None]:
    """The home of Nous, with Dagster's records in PostgreSQL, as they are kept for real."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOUS_DATABASE_URL", url)
        patch.setenv("NOUS_HOME", str(home))
        patch.setenv("DAGSTER_HOME", str(home / "dagster"))
        patch.setenv("NOUS_DAGSTER_DB_URL", dagster_url(url))
        settings.cache_clear()
        yield
    settings.cache_clear()


@dataclass(frozen=True)
class Nights:
    """The names of both databases without what tells them apart, the files, and where erasing was refused meanwhile."""

    name: str
    home: Path
    refused: list[str]


@pytest.fixture(scope="module")
def nights(server: postgres.Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Two agents and three nights: one for both, one a check stops, one for the agent to be erased alone."""
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    home = tmp_path_factory.mktemp("nights")
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"create database nights template {template}")
    url = server.dsn("nights")
    with living_at(home, url):
        dagster_url(url)
        database = Database(url)
        for name, contents in ((NAME, MEMORIES), ("ben", OF_BEN)):
            heart = Heart.open(name, database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
            remember(heart, *contents)
            heart.recall("what do kumquats eat?" if name == NAME else "when does the office open?")
            heart.close()
        database.close()
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("insert into lifecycle.agent_policies values (%s, %s)", [NAME, Jsonb({"probe_days": 29})])
        strict = {"candidate_similarity": 0.7, "free_leaving_count": 0, "max_leaving_count": 0}
        with dagster_instance() as instance:
            stopped = run_night(NIGHT.replace(day=2), options(url, home, policy=strict), instance=instance)
            with erased_meanwhile(url) as refused:
                whole = run_night(NIGHT, options(url, home), instance=instance)
            alone = run_night(NIGHT.replace(day=3), options(url, home, agent_ids=(NAME,)), instance=instance)
        assert (stopped.is_success, whole.is_success, alone.is_success) == (False, True, True)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:  # a template must have no sessions
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'nights_dagster'")
    return Nights("nights", home, refused)


@contextmanager
def erased_meanwhile(url: str) -> Iterator[list[str]]:
    """Try to erase the agent at some steps of a night that runs meanwhile; yield those at which it was refused."""
    refused: list[str] = []

    def erase_at(point: str) -> None:
        if point in AT_WORK:
            with psycopg.connect(url, autocommit=True) as owner:
                before = everything(owner)
                with pytest.raises(Conflict, match=r"a night has been at work for 0\.1 s"):
                    erase(url)
                assert everything(owner) == before
            refused.append(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasure, "WAIT_S", 0.1)
        patch.setattr(failpoints, "on_reach", erase_at)
        yield refused


@contextmanager
def copied(server: postgres.Server, nights: Nights, home: Path) -> Iterator[str]:
    """Copy both databases and all files for the length of a block; yield the URL."""
    name = f"nights_{uuid4().hex[:12]}"
    shutil.copytree(nights.home, home, dirs_exist_ok=True)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for suffix in ("", "_dagster"):
            connection.execute(f"create database {name}{suffix} template {nights.name}{suffix} strategy file_copy")
        yield server.dsn(name)
        for suffix in ("", "_dagster"):
            connection.execute(f"drop database {name}{suffix} with (force)")


@pytest.fixture
def database_url(server: postgres.Server, nights: Nights, tmp_path: Path) -> Iterator[str]:
    with copied(server, nights, tmp_path) as url:
        yield url


@pytest.fixture
def home(database_url: str, tmp_path: Path) -> Iterator[Path]:
    with living_at(tmp_path, database_url):
        yield tmp_path


@contextmanager
def records_of(url: str) -> Iterator[psycopg.Connection]:
    """A connection to Dagster's own database."""
    name = f"{conninfo_to_dict(url)['dbname']}_dagster"
    with psycopg.connect(url, dbname=name, autocommit=True) as connection:
        yield connection


@pytest.fixture
def records(home: Path, database_url: str) -> Iterator[psycopg.Connection]:
    with records_of(database_url) as connection:
        yield connection


def erase(database_url: str, *, is_dry_run: bool = False) -> Erased:
    return erase_everywhere(database_url, NAME, reason="asked for", erasers=[erase_nights], is_dry_run=is_dry_run)


def mentions(texts: dict[str, str]) -> set[tuple[str, str]]:
    return {(name, word) for name, text in texts.items() for word in SECRETS if word in text.casefold()}


# --- a whole agent ---


@dataclass(frozen=True)
class ErasedAgent:
    """A store from which the agent was erased, with what a killed process had begun to write and a log lying about."""

    url: str
    home: Path
    ids: set[str]
    """Of its memories and of what was proposed for it."""
    runs: set[str]
    report: NightReport
    """Of the other agent's night, as it was before."""
    before: dict[str, str]
    """Every row of Dagster and every file as text; also after a dry run, and after the erasing."""
    untouched: dict[str, str]
    after: dict[str, str]
    counted: Erased
    erased: Erased


BEGUN = ("run/plan.4711.part", "run/.judgements.parquet.4711.part", ".report.html.part")
LOG = "background/dagster.log"


@pytest.fixture(scope="module")
def gone(server: postgres.Server, nights: Nights, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedAgent]:
    """The agent erased, after a dry run of it."""
    home = tmp_path_factory.mktemp("gone")
    with copied(server, nights, home) as url:
        with (
            living_at(home, url),
            dagster_instance() as instance,
            records_of(url) as records,
            psycopg.connect(url, autocommit=True) as owner,
        ):
            found = owner.execute(
                "select id::text from heart.facts where agent_id = %(a)s union "
                "select id::text from lifecycle.proposals where agent_id = %(a)s", {"a": NAME},
            ).fetchall()  # fmt: skip
            report = read_report(NIGHT, options(url, home, agent_ids=("ben",)))
            runs = {run.run_id for run in instance.get_runs()}
            leave_behind(home, url)
            before = {**recorded(records), **written(home)}
            counted = erase(url, is_dry_run=True)
            untouched = {**recorded(records), **written(home)}
            with (home / LOG).open("a") as writing:
                done = erase(url)
                writing.write("and goes on\n")
            after = {**recorded(records), **written(home)}
        ids = {row[0] for row in found}
        yield ErasedAgent(url, home, ids, runs, report, before, untouched, after, counted, done)


def nights_of(url: str) -> list[Path]:
    """Return the folders of nights, without the parts of their snapshots."""
    return [folder for folder in night_folders(url) if "night=" in folder.name]


def leave_behind(home: Path, url: str) -> None:
    """Write files as a process does that is killed before it has put them in their place, and a log."""
    for folder in nights_of(url):
        for name in BEGUN:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("The zinfandel")
    (home / LOG).parent.mkdir()
    (home / LOG).write_text(f"agent '{NAME}' learned: The zinfandel is in the cellar. At nine.\nben stayed\n")


@pytest.fixture
def there(gone: ErasedAgent) -> Iterator[DagsterInstance]:
    """Be where the agent is gone."""
    with living_at(gone.home, gone.url), dagster_instance() as instance:
        yield instance


def test_a_connection_to_the_records_is_kept_for_the_next_query(there: DagsterInstance) -> None:
    backends = set()
    for _ in range(3):
        with there.event_log_storage.index_connection() as connection:
            backends.add(connection.execute(text("select pg_backend_pid()")).scalar())

    assert len(backends) == 1


def test_nothing_of_an_erased_agent_is_left_in_files_and_records(gone: ErasedAgent, there: DagsterInstance) -> None:
    with psycopg.connect(gone.url) as owner:
        plans = owner.execute("select count(*) from lifecycle.plans p where p::text ~ %s", [NAME]).fetchone()

    assert {word for _, word in mentions(gone.before)} == set(SECRETS)
    assert {"event_logs", "asset_keys", "asset_check_executions", "runs", "run_tags"} <= {
        n for n, _ in mentions(gone.before)
    }
    assert mentions(gone.after) == set()
    assert plans == (0,)
    assert gone.erased.copies["files of nights"] > 10
    assert {run.run_id for run in there.get_runs()} == gone.runs


def test_no_id_of_an_erased_memory_is_left(gone: ErasedAgent) -> None:
    assert len(gone.ids) > len(MEMORIES)
    assert [name for name, text in gone.before.items() if any(each in text for each in gone.ids)]
    assert [name for name, text in gone.after.items() if any(each in text for each in gone.ids)] == []


def test_the_records_of_the_others_can_still_be_read(gone: ErasedAgent, there: DagsterInstance) -> None:
    assert gone.report.entries
    assert read_report(NIGHT, options(gone.url, gone.home, agent_ids=("ben",))).entries == gone.report.entries
    shown = there.get_latest_materialization_event(AssetKey("report"))
    assert shown is not None
    assert shown.asset_materialization is not None
    texts = [text for text in recorded_reports(there) if "The office opens at nine." in text]
    assert texts
    assert all(ERASED in text for text in texts)


def recorded_reports(instance: DagsterInstance) -> list[str]:
    found = []
    for run in instance.get_runs():
        for entry in instance.all_logs(run.run_id):
            event = entry.dagster_event
            if event is not None and event.asset_key == AssetKey("report") and event.is_step_materialization:
                found.append(str(event.step_materialization_data.materialization.metadata["report"].value))
    return found


def test_what_a_killed_process_had_begun_to_write_is_removed(gone: ErasedAgent, there: DagsterInstance) -> None:
    begun = len(BEGUN) * len(nights_of(gone.url))

    assert begun == 9
    assert (gone.counted.copies["unfinished files"], gone.erased.copies["unfinished files"]) == (begun, begun)
    assert not list(gone.home.rglob("*.part"))
    with pytest.raises(NotFound):
        erase(gone.url)


def test_a_dry_run_counts_the_copies_and_leaves_them(gone: ErasedAgent) -> None:
    assert gone.counted.copies["files of nights"] > 10
    assert gone.counted.copies["records of runs (event_logs)"] > 0
    assert gone.untouched == gone.before


def test_logs_are_rewritten_where_they_are(gone: ErasedAgent) -> None:
    assert (gone.home / LOG).read_text() == f"agent '{ERASED}' learned: {ERASED} At nine.\nben stayed\nand goes on\n"


def test_a_night_that_begins_during_an_erasing_waits_for_its_end(gone: ErasedAgent, there: DagsterInstance) -> None:
    step, begun = CommandedNight(database_url=gone.url, home=str(gone.home)), threading.Event()

    def begin() -> None:
        with step.opened():
            begun.set()

    with erasure.exclusive_copies_lock(gone.url):
        waiting = threading.Thread(target=begin)
        waiting.start()
        assert not begun.wait(1)
    waiting.join(30)

    assert begun.is_set()
    with erasure.exclusive_copies_lock(gone.url):
        assert not waiting.is_alive()


def test_snapshots_are_whole_and_their_night_runs_again_without_a_change(
    gone: ErasedAgent, there: DagsterInstance
) -> None:
    folders = [folder for folder in night_folders(gone.url) if open_snapshot(folder)]
    tables = [
        snapshot.table(name)
        for folder in folders
        if (snapshot := open_snapshot(folder))
        for name in ("facts", "recalls")
    ]
    with psycopg.connect(gone.url, autocommit=True) as owner:
        before = everything(owner)
        again = run_night(NIGHT, options(gone.url, gone.home), instance=there)

        assert len(folders) == 3
        assert {agent for table in tables for agent in table["agent_id"]} == {"ben"}
        assert again.is_success, again.failures
        assert everything(owner) == before


def test_a_night_at_work_is_not_erased_under_its_hands(nights: Nights) -> None:
    """It holds in memory what was read, and writes it to files and records later on."""
    assert nights.refused == list(AT_WORK)


def test_copies_that_outlived_the_rows_are_erased_too(home: Path, database_url: str, owner: psycopg.Connection) -> None:
    """An erasing was killed after the rows were gone: the files are found by the name in them."""
    erase_everywhere(database_url, NAME, reason="asked for", erasers=[])
    left = {path for path, _ in mentions(written(home)) if path.endswith(".parquet")}

    erase(database_url)

    assert left
    assert {path for path, _ in mentions(written(home)) if path.endswith(".parquet")} == set()


def test_a_swap_that_was_killed_is_finished(home: Path, database_url: str) -> None:
    (folder,) = [path for path in night_folders(database_url) if path.name == f"night={NIGHT}"]
    folder.rename(folder.with_name(f"{folder.name}.erased"))
    (folder.parent / f".night={NIGHT}.left").mkdir()

    erase(database_url)

    assert open_snapshot(folder) is not None
    assert [path.name for path in folder.parent.glob(f"*night={NIGHT}*") if path.is_dir()] == [folder.name]


def test_a_damaged_file_stops_the_erasing_before_the_rows_are_gone(
    home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    before = everything(owner)
    (folder, *_) = night_folders(database_url)
    (folder / "facts.parquet").write_bytes(b"no table")

    with pytest.raises(Unavailable, match="can't be rewritten"):
        erase(database_url)

    assert everything(owner) == before


# --- a part of an agent ---


def erase_fact(database_url: str, owner: psycopg.Connection, content: str) -> Erased:
    rows = owner.execute("select id from heart.facts where content = %s", [content]).fetchall()
    part = Part(tuple(row[0] for row in rows))
    return erase_some(
        database_url, NAME, part, reason="asked for", erasers=[erase_nights], embedder_of=lambda _: WordEmbedder()
    )


def test_nothing_of_an_erased_memory_is_left_in_rows_files_and_records_and_the_others_stay(
    records: psycopg.Connection, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    """Both wordings about the zinfandel, which a night merged; what is known of kumquats stays."""
    merged = owner.execute("select count(*) from heart.facts where succession = 'merged' and agent_id = %s", [NAME])
    assert merged.fetchone() != (0,)
    ids = [row[0] for row in owner.execute("select id::text from heart.facts where content ~ 'zinfandel'").fetchall()]
    before = {**recorded(records), **written(home)}

    erased = erase_fact(database_url, owner, "The zinfandel is in the cellar.")
    if owner.execute("select from heart.facts where content ~ 'zinfandel'").fetchone():
        erase_fact(database_url, owner, "The zinfandel is in the cellar")

    after = {**recorded(records), **written(home)}
    assert {word for _, word in mentions(before)} == set(SECRETS)
    assert {name for name, word in mentions(after) if word == "zinfandel"} == set()
    assert [name for name, text in after.items() if any(each in text for each in ids)] == []
    assert {word for _, word in mentions(after)} == set(SECRETS) - {"zinfandel"}
    assert mentions(dump(owner)) == {each for each in mentions(dump(owner)) if each[1] != "zinfandel"}
    assert erased.copies["files of nights"] > 5


def test_snapshots_without_an_erased_memory_are_whole_and_their_night_runs_again_without_a_change(
    home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    erase_fact(database_url, owner, "Kumquats are fed to 3 ocelots.")
    before = everything(owner)

    folders = [folder for folder in night_folders(database_url) if open_snapshot(folder)]
    with unrecorded() as instance:
        again = run_night(NIGHT, options(database_url, home), instance=instance)

    assert len(folders) == 3
    assert again.is_success, again.failures
    assert everything(owner) == before


def test_everything_of_a_user_leaves_files_and_records(
    records: psycopg.Connection, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    """All memories of the agent are made those of one user."""
    owner.execute("set session_replication_role = replica")
    for table in ("facts", "statements"):
        owner.execute(SQL("update heart.{} set user_id = 'ada' where agent_id = %s").format(Identifier(table)), [NAME])
    part = Part(user_id="ada")

    erase_some(database_url, NAME, part, reason="x", erasers=[erase_nights], embedder_of=lambda _: WordEmbedder())

    after = {**recorded(records), **written(home), **dump(owner)}
    assert {word for _, word in mentions(after)} == {NAME}
