"""Erasing an agent from what nights leave behind: files, logs and Dagster's records; the others keep theirs."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from dagster import AssetKey, DagsterInstance, build_init_resource_context
from erased_rows import dump, recorded, written
from night_runs import NIGHT, everything, options, remember
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from nous_online.core.errors import Conflict, NotFound, Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import erasure
from nous_online.memories.erasure import Erased, Part, erase_everywhere, erase_some
from nous_pipelines import failpoints
from nous_pipelines.orchestration.instance import dagster_instance, dagster_url
from nous_pipelines.orchestration.night_erasure import ERASED, erase_nights, night_folders
from nous_pipelines.orchestration.resources import CommandedNight
from nous_pipelines.orchestration.running import read_report, run_night
from nous_pipelines.snapshots.snapshot import open_snapshot

NAME = "aria-7"
SECRETS = (NAME, "zinfandel", "kumquat", "ocelot")
MEMORIES = (
    "The zinfandel is in the cellar.", "The zinfandel is in the cellar", "Kumquats are fed to 3 ocelots.",
    "Kumquats are fed to 4 ocelots.",
)  # fmt: skip
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


@pytest.fixture(scope="module")
def nights(server: postgres.Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
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
            whole = run_night(NIGHT, options(url, home), instance=instance)
            alone = run_night(NIGHT.replace(day=3), options(url, home, agent_ids=(NAME,)), instance=instance)
        assert (stopped.is_success, whole.is_success, alone.is_success) == (False, True, True)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:  # a template must have no sessions
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'nights_dagster'")
    return "nights", home


@pytest.fixture
def database_url(server: postgres.Server, nights: tuple[str, Path]) -> Iterator[str]:
    """A copy of both databases."""
    name = f"nights_{uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for suffix in ("", "_dagster"):
            connection.execute(f"create database {name}{suffix} template {nights[0]}{suffix}")
        yield server.dsn(name)
        for suffix in ("", "_dagster"):
            connection.execute(f"drop database {name}{suffix} with (force)")


@pytest.fixture
def home(database_url: str, nights: tuple[str, Path], tmp_path: Path) -> Iterator[Path]:
    """A copy of all files."""
    shutil.copytree(nights[1], tmp_path, dirs_exist_ok=True)
    with living_at(tmp_path, database_url):
        yield tmp_path


@pytest.fixture
def ran(home: Path) -> Iterator[DagsterInstance]:
    with dagster_instance() as instance:
        yield instance


@pytest.fixture
def records(home: Path, database_url: str) -> Iterator[psycopg.Connection]:
    """A connection to Dagster's own database."""
    name = f"{conninfo_to_dict(database_url)['dbname']}_dagster"
    with psycopg.connect(database_url, dbname=name, autocommit=True) as connection:
        yield connection


def erase(database_url: str, *, is_dry_run: bool = False) -> Erased:
    return erase_everywhere(database_url, NAME, reason="asked for", erasers=[erase_nights], is_dry_run=is_dry_run)


def mentions(texts: dict[str, str]) -> set[tuple[str, str]]:
    return {(name, word) for name, text in texts.items() for word in SECRETS if word in text.casefold()}


def test_nothing_of_an_erased_agent_is_left_in_files_and_records(
    ran: DagsterInstance, records: psycopg.Connection, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    ids = {row[0] for row in records.execute("select run_id from runs").fetchall()}
    before = {**recorded(records), **written(home)}

    erased = erase(database_url)

    assert {word for _, word in mentions(before)} == set(SECRETS)
    assert {"event_logs", "asset_keys", "asset_check_executions", "runs", "run_tags"} <= {
        n for n, _ in mentions(before)
    }
    assert mentions({**recorded(records), **written(home)}) == set()
    assert owner.execute("select count(*) from lifecycle.plans p where p::text ~ %s", [NAME]).fetchone() == (0,)
    assert erased.copies["files of nights"] > 10
    assert {run.run_id for run in ran.get_runs()} == ids


def test_no_id_of_an_erased_memory_is_left(
    ran: DagsterInstance, records: psycopg.Connection, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    found = owner.execute(
        "select id::text from heart.facts where agent_id = %(a)s union select id::text from lifecycle.proposals "
        "where agent_id = %(a)s", {"a": NAME}).fetchall()  # fmt: skip

    erase(database_url)

    after = {**recorded(records), **written(home)}
    assert len(found) > len(MEMORIES)
    assert [name for name, text in after.items() if any(row[0] in text for row in found)] == []


def test_the_records_of_the_others_can_still_be_read(
    ran: DagsterInstance, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    bens = options(database_url, home, agent_ids=("ben",))
    before = read_report(NIGHT, bens)

    erase(database_url)

    assert before.entries
    assert read_report(NIGHT, bens).entries == before.entries
    shown = ran.get_latest_materialization_event(AssetKey("report"))
    assert shown is not None
    assert shown.asset_materialization is not None
    texts = [text for text in recorded_reports(ran) if "The office opens at nine." in text]
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


def test_snapshots_are_whole_and_their_night_runs_again_without_a_change(
    ran: DagsterInstance, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    erase(database_url)
    before = everything(owner)

    folders = [folder for folder in night_folders(database_url) if open_snapshot(folder)]
    tables = [
        snapshot.table(name)
        for folder in folders
        if (snapshot := open_snapshot(folder))
        for name in ("facts", "recalls")
    ]
    again = run_night(NIGHT, options(database_url, home), instance=ran)

    assert len(folders) == 3
    assert {agent for table in tables for agent in table["agent_id"]} == {"ben"}
    assert again.is_success, again.failures
    assert everything(owner) == before


def test_a_night_at_work_is_not_erased_under_its_hands(
    ran: DagsterInstance,
    records: psycopg.Connection,
    home: Path,
    database_url: str,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It holds in memory what was read, and writes it to files and records later on."""
    refused: list[str] = []

    def erase_meanwhile(point: str) -> None:
        if point in {"snapshot begins", "phases read", "plan made"}:
            before = everything(owner)
            with pytest.raises(Conflict, match="a night has been at work for 1 s"):
                erase(database_url)
            assert everything(owner) == before
            refused.append(point)

    monkeypatch.setattr(erasure, "WAIT_S", 1)
    monkeypatch.setattr(failpoints, "on_reach", erase_meanwhile)
    night = run_night(NIGHT.replace(day=4), options(database_url, home), instance=ran)
    erase(database_url)

    assert night.is_success, night.failures
    assert refused == ["snapshot begins", "phases read", "plan made"]
    assert mentions({**recorded(records), **written(home)}) == set()


def test_a_night_that_begins_during_an_erasing_waits_for_its_end(home: Path, database_url: str) -> None:
    step, begun = CommandedNight(database_url=database_url, home=str(home)), threading.Event()

    def begin() -> None:
        step.setup_for_execution(build_init_resource_context())
        begun.set()

    with erasure.alone_with_copies(database_url):
        waiting = threading.Thread(target=begin)
        waiting.start()
        assert not begun.wait(1)
    waiting.join(30)
    step.teardown_after_execution(build_init_resource_context())

    assert begun.is_set()
    assert erase(database_url)


def test_what_a_killed_process_had_begun_to_write_is_removed(
    ran: DagsterInstance, records: psycopg.Connection, home: Path, database_url: str
) -> None:
    for folder in (path for path in night_folders(database_url) if path.name.startswith("night=")):
        for name in ("run/plan.4711.part", "run/.judgements.parquet.4711.part", ".report.html.part"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("The zinfandel")

    counted, erased = erase(database_url, is_dry_run=True), erase(database_url)

    assert (counted.copies["unfinished files"], erased.copies["unfinished files"]) == (9, 9)
    assert mentions(written(home)) == set()
    with pytest.raises(NotFound):
        erase(database_url)


def test_a_dry_run_counts_the_copies_and_leaves_them(
    ran: DagsterInstance, records: psycopg.Connection, home: Path, database_url: str
) -> None:
    before = {**recorded(records), **written(home)}

    erased = erase(database_url, is_dry_run=True)

    assert erased.copies["files of nights"] > 10
    assert erased.copies["records of runs (event_logs)"] > 0
    assert {**recorded(records), **written(home)} == before


def test_copies_that_outlived_the_rows_are_erased_too(
    ran: DagsterInstance, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    """An erasing was killed after the rows were gone: the files are found by the name in them."""
    erase_everywhere(database_url, NAME, reason="asked for", erasers=[])
    left = {path for path, _ in mentions(written(home)) if path.endswith(".parquet")}

    erase(database_url)

    assert left
    assert {path for path, _ in mentions(written(home)) if path.endswith(".parquet")} == set()


def test_a_swap_that_was_killed_is_finished(ran: DagsterInstance, home: Path, database_url: str) -> None:
    (folder,) = [path for path in night_folders(database_url) if path.name == f"night={NIGHT}"]
    folder.rename(folder.with_name(f"{folder.name}.erased"))
    (folder.parent / f".night={NIGHT}.left").mkdir()

    erase(database_url)

    assert open_snapshot(folder) is not None
    assert [path.name for path in folder.parent.glob(f"*night={NIGHT}*") if path.is_dir()] == [folder.name]


def test_logs_are_rewritten_where_they_are(ran: DagsterInstance, home: Path, database_url: str) -> None:
    log = home / "background" / "dagster.log"
    log.parent.mkdir()
    log.write_text(f"agent '{NAME}' learned: The zinfandel is in the cellar. At nine.\nben stayed\n")

    with log.open("a") as writing:
        erase(database_url)
        writing.write("and goes on\n")

    assert log.read_text() == f"agent '{ERASED}' learned: {ERASED} At nine.\nben stayed\nand goes on\n"


def test_a_damaged_file_stops_the_erasing_before_the_rows_are_gone(
    ran: DagsterInstance, home: Path, database_url: str, owner: psycopg.Connection
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
    ran: DagsterInstance, records: psycopg.Connection, home: Path, database_url: str, owner: psycopg.Connection
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
    ran: DagsterInstance, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    erase_fact(database_url, owner, "Kumquats are fed to 3 ocelots.")
    before = everything(owner)

    folders = [folder for folder in night_folders(database_url) if open_snapshot(folder)]
    again = run_night(NIGHT, options(database_url, home), instance=ran)

    assert len(folders) == 3
    assert again.is_success, again.failures
    assert everything(owner) == before


def test_everything_of_a_user_leaves_files_and_records(
    ran: DagsterInstance, records: psycopg.Connection, home: Path, database_url: str, owner: psycopg.Connection
) -> None:
    """All memories of the agent are made those of one user."""
    owner.execute("set session_replication_role = replica")
    for table in ("facts", "statements"):
        owner.execute(SQL("update heart.{} set user_id = 'ada' where agent_id = %s").format(Identifier(table)), [NAME])
    part = Part(user_id="ada")

    erase_some(database_url, NAME, part, reason="x", erasers=[erase_nights], embedder_of=lambda _: WordEmbedder())

    after = {**recorded(records), **written(home), **dump(owner)}
    assert {word for _, word in mentions(after)} == {NAME}
