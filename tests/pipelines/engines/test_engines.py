"""An engine gives the results in the order of the chunks, whoever works on them and whatever befalls the workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

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
from dask_clusters import DaskCluster, dask_cluster

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable, Unsupported
from nous_online.core.settings import Settings, settings
from nous_pipelines.engines.engine import Engine, InProcess, ProcessPool, engine_of

ENGINES = ("in-process", "processes:2", "dask")
ELSEWHERE = ENGINES[1:]
DEADLINE_S = 3.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of the kind a test asks for."""
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
    other = cluster.start_worker("of-tomorrow", path=tmp_path)

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


def test_a_scheduler_that_is_lost_in_the_midst_of_chunks_is_named(tmp_path, chunks):
    with (
        dask_cluster(tmp_path, workers=1) as cluster,
        closing(engine_of(Settings(engine=cluster.engine))) as engine,
    ):
        address = cluster.engine.replace("dask", "tcp")

        def lose(done: int, _total: int) -> None:
            if done == 1:
                cluster.stop(cluster.scheduler)

        with pytest.raises(Unavailable, match=rf"^the Dask scheduler at {address} was lost in the midst of a night"):
            engine.map(whose_process, chunks, on_done=lose)


def test_a_scheduler_that_is_not_there_is_named_with_how_to_start_it():
    with pytest.raises(Unavailable, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9, .+: dask scheduler$"):
        engine_of(Settings(engine="dask://127.0.0.1:9"))


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
