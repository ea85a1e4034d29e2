"""The daemon's sensor: closed episodes are completed in a tick, whoever closed them, and failures show."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dagster as dg
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.orchestration import code_location
from nous_pipelines.orchestration.code_location import TICK_S, close_staff, closed_episodes, defs, round_in_words

DETAIL = (
    "We moved the billing database to the new cluster. The first attempt failed because the replica lagged behind. "
    "The billing database runs on cluster seven now. Mara approved the move, and the old one is switched off in June."
)


@pytest.fixture(autouse=True)
def environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The daemon's environment: the database of this test, and models that need no weights."""
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setattr("nous_online.queue.worker.default_embedder", WordEmbedder)
    monkeypatch.setattr("nous_online.language.embedding.embedder_of", lambda _: WordEmbedder())
    settings.cache_clear()
    yield
    close_staff()
    settings.cache_clear()


@pytest.fixture
def heart(database: Database) -> Heart:
    """An agent that leaves its work to others."""
    return Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )


def tick() -> str:
    """Evaluate the sensor as the daemon does, and return what it says."""
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance=instance) as context:
        said = closed_episodes(context)
    assert isinstance(said, dg.SkipReason)
    return said.skip_message or ""


def completed(owner: psycopg.Connection) -> list[bool]:
    rows = owner.execute("select completed_at is not null from heart.episodes order by agent_id, started_at").fetchall()
    return [row[0] for row in rows]


def close_one(heart: Heart) -> None:
    episode = heart.start_episode("Moving the billing database")
    heart.close_episode(episode.id, outcome="success", append=DETAIL)


def test_a_closed_episode_is_completed_by_the_next_tick(heart: Heart, owner: psycopg.Connection) -> None:
    close_one(heart)
    before = completed(owner)

    said = tick()

    assert (before, completed(owner)) == ([False], [True])
    assert said.startswith("1 episodes completed")


def test_the_episodes_of_all_agents_are_completed(heart: Heart, database: Database, owner: psycopg.Connection) -> None:
    ben = Heart.open(
        "ben", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )
    for each in (heart, ben):
        close_one(each)

    tick()

    assert completed(owner) == [True, True]


def test_a_second_tick_has_nothing_to_do(heart: Heart, owner: psycopg.Connection) -> None:
    close_one(heart)
    tick()
    events = owner.execute("select count(*) from lifecycle.events").fetchone()

    said = [tick(), tick()][-1]

    assert said == "nothing is due"
    assert owner.execute("select count(*) from lifecycle.events").fetchone() == events


def test_an_idle_tick_costs_little(heart: Heart) -> None:
    tick()
    context = dg.build_sensor_context()
    began = time.process_time()

    for _ in range(5):
        closed_episodes(context)

    assert (time.process_time() - began) / 5 < 0.1


def test_a_failure_turns_the_tick_red_and_names_the_agent(heart: Heart, owner: psycopg.Connection) -> None:
    close_one(heart)
    owner.execute("revoke update (due_at) on heart.completions from nous_app")

    with pytest.raises(dg.Failure, match=r"the work of agent 'aria' failed and is tried again: .*may not do this"):
        tick()


def test_a_server_that_comes_back_elsewhere_is_found_by_the_next_tick(
    heart: Heart, database_url: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_one(heart)
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nous:x@127.0.0.1:1/gone")
    settings.cache_clear()
    with pytest.raises(Exception, match="can't connect"):
        tick()
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()

    tick()

    assert completed(owner) == [True]


def test_agents_that_can_not_be_served_are_named() -> None:
    from nous_online.queue.worker import Round

    said = round_in_words(Round(skipped={"aria": "its memories live elsewhere"}, failed={"ben": "no grant"}))

    assert said == (
        "nothing is due; agent 'aria' was passed over: its memories live elsewhere; "
        "the work of agent 'ben' failed and is tried again: no grant"
    )


def test_the_sensor_runs_from_the_start_often_enough_and_launches_no_run() -> None:
    assert closed_episodes in (defs.sensors or ())
    assert closed_episodes.default_status is dg.DefaultSensorStatus.RUNNING
    assert (closed_episodes.minimum_interval_seconds or 30) + TICK_S < 30
    assert not closed_episodes.has_jobs


def test_connections_are_opened_once(heart: Heart) -> None:
    tick()
    first = code_location.staff_of_this_process()
    tick()

    assert code_location.staff_of_this_process() is first
