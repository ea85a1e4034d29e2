"""An engine gives the results in the order of the chunks, whoever works on them and whatever befalls the workers; and a
night is the same on each: in this process, in two others, or on two workers of Dask."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from chunk_functions import (
    Numbered,
    double,
    hang_always,
    hang_once,
    kill_always,
    kill_once,
    refuse_three,
    whose_process,
)
from conftest import ScriptedJudge, WordEmbedder
from dagster import DagsterInstance
from dask_clusters import DaskCluster, dask_cluster
from night_runs import NIGHT, SAID, everything, options, remember
from turns import IS_ALL

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable, Unsupported
from nous_online.core.settings import Settings, settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.engines.engine import Engine, InProcess, ProcessPool, engine_of
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import NightOutcome, run_night

ENGINES = ("in-process", "processes:2", "dask")
ELSEWHERE = ENGINES[1:]
DEADLINE_S = 3.0


@pytest.fixture(scope="module")
def over_dask(store: Callable[[str], Store]) -> Store:
    """The store of the nights on Dask, whose workers are told of it as they start."""
    return store("")


@pytest.fixture(scope="module")
def cluster(over_dask: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Two workers for all tests of this file; the nights over Dask, at its end, lose their scheduler."""
    with dask_cluster(tmp_path_factory.mktemp("dask"), NOUS_DATABASE_URL=over_dask.url) as found:
        over_dask.engine = found.engine
        yield found


@pytest.fixture(scope="module")
def pool() -> Iterator[Engine]:
    """Two processes for all tests of this file, as they serve all steps of a night."""
    with closing(engine_of(Settings(engine="processes:2", engine_deadline_s=DEADLINE_S))) as engine:
        yield engine


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of the kind a test asks for."""
    if request.param == "processes:2":
        yield request.getfixturevalue("pool")
        return
    kind = request.param if request.param != "dask" else request.getfixturevalue("cluster").engine
    with closing(engine_of(Settings(engine=kind, engine_deadline_s=DEADLINE_S))) as engine:
        yield engine


@pytest.fixture
def chunks(tmp_path: Path) -> list[Numbered]:
    return [Numbered(number, tmp_path) for number in range(6)]


@pytest.mark.parametrize("opened", ENGINES, indirect=True)
def test_results_come_in_the_order_of_the_chunks_and_each_is_told_of(opened, chunks):
    told: list[tuple[int, int]] = []

    found = opened.map(double, chunks, on_done=lambda done, total: told.append((done, total)))

    assert found == [0, 2, 4, 6, 8, 10]
    assert told[-1] == (6, 6)
    assert opened.map(double, []) == []


@pytest.mark.parametrize("opened", ENGINES, indirect=True)
def test_what_a_function_raises_comes_through_as_it_was(opened, chunks):
    with pytest.raises(InvalidInput, match=r"^three is no number to be doubled; take another$"):
        opened.map(refuse_three, chunks)

    assert opened.map(double, chunks[:2]) == [0, 2]


@pytest.mark.parametrize("opened", ELSEWHERE, indirect=True)
def test_chunks_are_worked_on_by_two_other_processes(opened, chunks):
    opened.map(double, chunks)  # by now both have begun

    found = {*opened.map(whose_process, chunks)}

    assert opened.width == 2
    assert len(found) == 2
    assert os.getpid() not in found


@pytest.mark.parametrize("opened", ELSEWHERE, indirect=True)
def test_a_chunk_whose_worker_is_killed_is_done_by_another_one(opened, chunks):
    assert opened.map(kill_once, chunks) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("opened", ELSEWHERE, indirect=True)
def test_a_chunk_that_hangs_is_ended_at_its_deadline_and_done_by_another_one(opened, chunks):
    assert opened.map(hang_once, chunks) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("opened", ELSEWHERE, indirect=True)
def test_a_chunk_that_hangs_again_is_named_with_the_setting_that_gives_it_longer(opened, chunks):
    with pytest.raises(DeadlineExceeded, match=r"^chunk 3 took longer than 3 s on .+; raise NOUS_ENGINE_DEADLINE_S"):
        opened.map(hang_always, chunks)


@pytest.mark.parametrize("opened", ELSEWHERE, indirect=True)
def test_a_chunk_over_which_workers_end_again_and_again_is_named(opened, chunks):
    with pytest.raises(Unavailable, match=r"^\d workers ended over chunk 3 \(.+\); look for too little memory"):
        opened.map(kill_always, chunks)


def test_a_worker_of_another_version_is_refused_by_name(cluster, tmp_path):
    (tmp_path / "nous_pipelines-9.9.dist-info").mkdir()
    (tmp_path / "nous_pipelines-9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: nous-pipelines\nVersion: 9.9\n"
    )
    other = cluster.start_bare_worker(path=tmp_path)

    def open_until_it_has_come() -> None:
        while other.poll() is None:
            engine_of(Settings(engine=cluster.engine)).close()

    try:
        with pytest.raises(Unsupported) as refused:
            open_until_it_has_come()
    finally:
        cluster.stop(other)

    assert str(refused.value).startswith("the Dask worker tcp://127.0.0.1:")
    assert " runs Nous 9.9 (" in str(refused.value)
    assert str(refused.value).endswith("; give all of them one image")


def test_a_scheduler_that_is_not_there_is_named_with_how_to_start_it():
    with pytest.raises(Unavailable, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9, .+: dask scheduler$"):
        engine_of(Settings(engine="dask://127.0.0.1:9"))


def test_a_scheduler_that_is_lost_in_the_midst_of_chunks_is_named(chunks, tmp_path):
    with (
        dask_cluster(tmp_path, is_bare=True) as cluster,
        closing(engine_of(Settings(engine=cluster.engine))) as engine,
    ):
        address = cluster.engine.replace("dask", "tcp")

        def lose(_done: int, _total: int) -> None:  # the first call may tell of two chunks, one of each worker
            assert cluster.scheduler is not None
            if cluster.scheduler.poll() is None:
                cluster.stop_scheduler()

        with pytest.raises(Unavailable, match=rf"^the Dask scheduler at {address} was lost in the midst of a night"):
            engine.map(whose_process, chunks, on_done=lose)


def test_processes_end_with_their_engine(chunks):
    with closing(ProcessPool(2, deadline_s=DEADLINE_S)) as pool:
        (one, *_) = pool.map(whose_process, chunks[:1])
        assert pool.pids == [one]

    assert pool.pids == []
    with pytest.raises(ProcessLookupError):
        os.kill(one, 0)


@pytest.mark.parametrize("value", ["threads", "processes:0", "dask://", "dask://host", "http://host:8786"])
def test_an_engine_nobody_knows_is_refused_with_those_there_are(monkeypatch, value):
    monkeypatch.setenv("NOUS_ENGINE", value)

    with pytest.raises(InvalidInput) as refused:
        settings()

    assert f"NOUS_ENGINE: not an engine: {value!r} (want in-process, processes, processes:4 or dask://" in str(
        refused.value
    )


def test_without_a_setting_chunks_are_worked_on_in_this_process():
    assert isinstance(engine_of(Settings()), InProcess)


def test_worker_processes_run_nothing_that_lies_in_the_folder_they_are_started_from(chunks, tmp_path, monkeypatch):
    for name in ("multiprocessing", "pickle", "threading"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'a').write({name!r})")
    monkeypatch.chdir(tmp_path)

    with closing(ProcessPool(1, deadline_s=30)) as engine:
        assert engine.map(double, chunks[:2]) == [0, 2]

    assert not (tmp_path / "was-run").exists()


# --- nights ---

AGENTS, CHUNKS_EACH = (300, 4) if IS_ALL else (12, 2)
"""How many there are, and in how many chunks for each worker: every chunk of every step takes its time."""
NIGHTS = (NIGHT, NIGHT + timedelta(days=1))
KNOWN = (
    "The office of {0} opens at nine.",
    "The office of {0} opens at nine",
    "The crane of {0} lifts nine tonnes.",
    "The crane of {0} lifts twelve tonnes.",
    "Cats of {0} like fish.",
)
Copying = Callable[[str], AbstractContextManager[str]]
LEFT_OUT = "agent-007"
"""The agent whose first facts have vectors that can't be compared."""


@dataclass
class Store:
    """A copy of the same store, with its own home, and what its nights run on."""

    url: str
    home: Path
    engine: str
    instance: DagsterInstance

    def run(self, night: date, tell: Callable[[str], None] | None = None, **more: str) -> NightOutcome:
        """Run a night."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("nous_pipelines.snapshots.agent_chunks.CHUNKS_EACH", CHUNKS_EACH)
            for name, value in {"NOUS_ENGINE": self.engine, **more}.items():
                patch.setenv(name, value)
            settings.cache_clear()
            try:
                return run_night(night, options(self.url, self.home), instance=self.instance, tell=tell)
            finally:
                settings.cache_clear()

    def rows(self) -> Any:
        """Return all that nights change, without when and by which run."""
        with psycopg.connect(self.url, autocommit=True) as owner:
            facts, events, proposals, usage = everything(owner)
        times = {"recorded_at", "run_id", "written_xid", "id"}
        without = [{name: value for name, value in event.items() if name not in times} for event in events]
        kept = {memory: {n: v for n, v in columns.items() if n != "written_xid"} for memory, columns in facts.items()}
        return kept, sorted(map(repr, without)), proposals, usage


@pytest.fixture(scope="module")
def filled(server, copy_of: Copying, template: str) -> Iterator[str]:
    """The name of a database in which many agents remember a little, one of them what can't be compared."""
    with copy_of(template) as url:
        with closing(Database(url)) as database:
            for number in range(AGENTS):
                name = f"agent-{number:03}"
                heart = Heart.open(
                    name, database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
                )
                remember(heart, *(text.format(f"{name}x{number}") for text in KNOWN[: 2 + number % 4]))
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("set session_replication_role = replica")
            for place, vector in enumerate(("[1,0]", "[1,0,0]")):
                owner.execute(
                    "update heart.facts set embedding = %s, embedding_space_id = 'damaged'"
                    " where agent_id = %s and learned_at = %s",
                    [vector, LEFT_OUT, SAID + timedelta(days=place)],
                )
        yield psycopg.conninfo.conninfo_to_dict(url)["dbname"]


@pytest.fixture(scope="module")
def store(copy_of: Copying, filled: str, tmp_path_factory) -> Iterator[Callable[[str], Store]]:
    """Make a copy of the store whose nights run on an engine."""
    with ExitStack() as opened:
        instance = opened.enter_context(unrecorded())
        yield lambda engine: Store(
            opened.enter_context(copy_of(filled)), tmp_path_factory.mktemp("home"), engine, instance
        )


@pytest.fixture(scope="module")
def here(store) -> list[tuple[NightOutcome, Any]]:
    """Two nights in this process, with the rows after each."""
    own = store("in-process")
    return [(own.run(night), own.rows()) for night in NIGHTS]


def kill_soon(pids: list[int]) -> Callable[[str], None]:
    """Return what kills a process shortly after the pairs have been found, amid the chunks of a later step.

    It is held up first until it has been handed a chunk: what it had done by then is fetched, and is not done again.
    """

    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)

    def tell(step: str) -> None:
        if step == "neighbours" and pids:
            threading.Timer(0.05, kill, [pids.pop()]).start()

    return tell


def test_a_night_in_two_processes_ends_as_it_does_in_one(store, here):
    own = store("processes:2")
    outcome, rows = here[0]

    found = own.run(NIGHTS[0])

    assert found.report == outcome.report
    assert own.rows() == rows
    assert not list(own.home.rglob("*.part"))
    assert [each.agent_id for each in outcome.left_out] == [LEFT_OUT]
    assert outcome.report.counts["merges"] > AGENTS / 2


def test_nights_on_two_workers_of_dask_end_the_same_also_when_one_is_killed_or_the_scheduler_is_lost(
    over_dask, cluster, here
):
    killed, after_killed = over_dask.run(NIGHTS[0], tell=kill_soon(cluster.worker_pids())), over_dask.rows()
    lost = over_dask.run(NIGHTS[1], tell=lambda step: cluster.stop_scheduler() if step == "neighbours" else None)
    after_lost = over_dask.rows()
    again, after_again = over_dask.run(NIGHTS[1], NOUS_ENGINE="in-process"), over_dask.rows()

    assert (killed.report, after_killed) == (here[0][0].report, here[0][1])
    assert lost.report is None
    assert f"the Dask scheduler at {cluster.engine.replace('dask', 'tcp')} was lost" in lost.failures[0]
    assert after_lost == after_killed
    assert (again.report, after_again) == (here[1][0].report, here[1][1])
    assert not list(over_dask.home.rglob("*.part"))
