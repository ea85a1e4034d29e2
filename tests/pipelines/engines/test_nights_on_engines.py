"""A night is the same whoever works on its chunks: in this process, in two others, or on two workers of Dask."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from dagster import DagsterInstance
from dask_clusters import DaskCluster, dask_cluster
from examples import examples
from night_runs import NIGHT, SAID, everything, options, remember

from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.orchestration.running import NightOutcome, run_night
from nous_pipelines.orchestration.unrecorded import unrecorded

AGENTS = examples(60)
NIGHTS = (NIGHT, NIGHT + timedelta(days=1), NIGHT + timedelta(days=2))
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
    """Three nights in this process, with the rows after each."""
    own = store("in-process")
    return [(own.run(night), own.rows()) for night in NIGHTS]


def kill_soon(pids: list[int]) -> Callable[[str], None]:
    """Return what kills a process shortly after the pairs have been found, amid the chunks of a later step."""

    def tell(step: str) -> None:
        if step == "neighbours" and pids:
            threading.Timer(0.05, os.kill, [pids.pop(), signal.SIGKILL]).start()

    return tell


def test_a_night_in_two_processes_ends_as_it_does_in_one(store, here):
    own = store("processes:2")

    for night, (outcome, rows) in zip(NIGHTS[:2], here[:2], strict=True):
        found = own.run(night)
        assert found.report == outcome.report
        assert own.rows() == rows
        assert not list(own.home.rglob("*.part"))
    assert [each.agent_id for each in here[0][0].left_out] == [LEFT_OUT]
    assert here[0][0].report.counts["merges"] > AGENTS / 2


@pytest.fixture(scope="module")
def dask(store, tmp_path_factory) -> Iterator[tuple[Store, DaskCluster]]:
    own = store("")
    with dask_cluster(tmp_path_factory.mktemp("dask"), NOUS_DATABASE_URL=own.url) as cluster:
        own.engine = cluster.engine
        yield own, cluster


def test_nights_on_two_workers_of_dask_end_the_same_also_when_one_is_killed_or_the_scheduler_is_lost(dask, here):
    own, cluster = dask

    first, after_first = own.run(NIGHTS[0]), own.rows()
    killed, after_killed = own.run(NIGHTS[1], tell=kill_soon(cluster.worker_pids())), own.rows()
    lost = own.run(NIGHTS[2], tell=lambda step: cluster.stop(cluster.scheduler) if step == "neighbours" else None)
    after_lost = own.rows()
    cluster.start_scheduler()
    cluster.start_worker("of-the-next-day")  # the others ended with their scheduler
    again, after_again = own.run(NIGHTS[2]), own.rows()

    assert (first.report, after_first) == (here[0][0].report, here[0][1])
    assert (killed.report, after_killed) == (here[1][0].report, here[1][1])
    assert lost.report is None
    assert f"the Dask scheduler at {cluster.engine.replace('dask', 'tcp')} was lost" in lost.failures[0]
    assert after_lost == after_killed
    assert (again.report, after_again) == (here[2][0].report, here[2][1])
    assert not list(own.home.rglob("*.part"))
