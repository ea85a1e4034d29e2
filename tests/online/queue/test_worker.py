"""Who completes closed episodes: a thread beside the heart, a call, `nous worker`; and how each of them ends."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from conftest import ScriptedWriter, WordEmbedder
from stopwatch import stopwatch
from twins import NousTwin
from typer.testing import CliRunner

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.memories import decisions
from nous_online.queue import worker
from nous_online.queue.worker import WORKER, Round, has_work, open_staff

TALK = (
    "Ada: The parcel to Oslo is late again, and the customer called twice about it.\n"
    "Ben: Parcels to Oslo take nine days since March 2026, because Nordpost closed its depot in Bergen.\n"
    "Ada: We decided to ship with Fjordline from now on.\n"
)
WITHIN_S = 30.0


def until(is_so: Callable[[], bool], *, seconds: float = WITHIN_S) -> bool:
    """Wait until something is so, at most so many seconds; tell whether it is."""
    ends_at = time.monotonic() + seconds
    while not is_so() and time.monotonic() < ends_at:
        time.sleep(0.05)
    return is_so()


def is_completed(owner: psycopg.Connection, count: int = 1) -> Callable[[], bool]:
    query = "select count(*) from heart.episodes where completed_at is not null"
    return lambda: owner.execute(query).fetchone() == (count,)


def threads_of(agent_id: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"works for {agent_id}"]


@pytest.fixture
def busy(database: Database) -> Iterator[Heart]:
    """The memory of agent `busy`, with a thread that works for it."""
    with Heart.open("busy", database=database, embedder=WordEmbedder(), writer=ScriptedWriter()) as opened:
        yield opened


# --- beside the heart ---


def test_an_episode_is_completed_beside_the_heart_that_closed_it(busy: Heart, owner: psycopg.Connection):
    episode = busy.start_episode()
    busy.update_episode(episode.id, append="Ada: hello.\nfact: Ada orders from Bergen")
    assert threads_of("busy") == []

    busy.close_episode(episode.id)

    assert until(is_completed(owner))
    assert busy.get_episode(episode.id).summary == "Ada: hello."
    assert busy.count() == {"active": 1}


def test_a_call_completes_what_is_due(heart: Heart, owner: psycopg.Connection):
    before = threads_of("aria")  # of a heart that another test left behind
    heart.record_episode("Ada: hello.")

    assert heart.work().completed == 1
    assert is_completed(owner)()
    assert set(threads_of("aria")) <= set(before)


def test_a_heart_that_opens_completes_what_an_earlier_process_left(heart: Heart, owner: psycopg.Connection):
    heart.record_episode("Ada: hello.")

    with Heart.open("aria", database=heart.agent.database, embedder=WordEmbedder(), writer=ScriptedWriter()):
        assert until(is_completed(owner))


def test_a_heart_that_opens_reacts_to_what_an_earlier_process_announced(heart: Heart, owner: psycopg.Connection):
    """The earlier one dies after it stored the decision and before it linked it."""
    episode = heart.start_episode("Choosing a store")
    assert not has_work(heart.agent, heart.agent.deadline(None))
    decision = decisions.record(heart.agent, "Keep one store", {}, heart.agent.deadline(None))

    with Heart.open("aria", database=heart.agent.database, embedder=WordEmbedder(), writer=ScriptedWriter()):
        assert until(lambda: heart.get_decision(decision.id).episode_id == episode.id)

    assert until(lambda: not has_work(heart.agent, heart.agent.deadline(None)))


def test_words_are_counted_without_a_night_once_many_have_come(
    heart: Heart, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    many = 20  # the default of a thousand takes ten seconds to store
    monkeypatch.setattr(worker, "WORKER", replace(WORKER, uncounted=many))
    count = "select (select count(*) from heart.word_changes), (select count(*) from heart.term_stats)"
    heart.learn_deferred([(f"Shelf {number} holds seed potatoes", {}) for number in range(many)])
    heart.work()
    assert owner.execute(count).fetchall() == [(many, 0)]
    assert not has_work(heart.agent, heart.agent.deadline(None))

    heart.learn("The greenhouse is aired at noon")
    assert has_work(heart.agent, heart.agent.deadline(None))
    heart.work()
    ((pending, counted),) = owner.execute(count).fetchall()
    assert pending == 0
    assert counted > many
    assert not has_work(heart.agent, heart.agent.deadline(None))


def test_a_subscriber_hears_of_a_completion(busy: Heart):
    heard = []
    busy.subscribe("episode_completed", heard.append, consumer="test")

    episode = busy.record_episode("Ada: hello.")

    assert until(lambda: len(heard) == 1)
    assert heard[0].payload["episode_id"] == str(episode.id)


def test_closing_a_heart_ends_its_thread(database: Database):
    heart = Heart.open("busy", database=database, embedder=WordEmbedder(), writer=ScriptedWriter())
    heart.record_episode("Ada: hello.")
    assert threads_of("busy") != []

    heart.close()

    assert threads_of("busy") == []
    heart.record_episode("Ada: hello again.")
    assert threads_of("busy") == []


def test_a_heart_that_is_forgotten_ends_its_thread(database: Database, owner: psycopg.Connection):
    heart = Heart.open("busy", database=database, embedder=WordEmbedder(), writer=ScriptedWriter())
    heart.record_episode("Ada: hello.")
    assert until(is_completed(owner))

    del heart
    gc.collect()

    assert until(lambda: threads_of("busy") == [])


def refuse(owner: psycopg.Connection, agent_id: str) -> None:
    """Let no episode of an agent be taken."""
    owner.execute(
        "create or replace function refuse() returns trigger language plpgsql as "
        "$$ begin raise exception 'not today' using errcode = 'disk_full'; end $$"
    )
    owner.execute(
        psycopg.sql.SQL(
            "create trigger refuse before update on heart.completions for each row "
            "when (new.agent_id = {}) execute function refuse()"
        ).format(agent_id)
    )


def test_a_thread_whose_work_fails_tries_again(
    busy: Heart, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(worker, "WORKER", replace(worker.WORKER, rest_s=0.1, poll_s=0.1))
    refuse(owner, "busy")

    busy.record_episode("Ada: hello.")

    assert until(lambda: "the disk is full" in caplog.text)
    assert not is_completed(owner)()
    owner.execute("drop trigger refuse on heart.completions")
    assert until(is_completed(owner))


# --- for all agents ---


def agents(database: Database, *names: str) -> None:
    """Let each agent leave an episode."""
    for name in names:
        opened = Heart.open(name, database=database, embedder=WordEmbedder(), works_in_background=False)
        opened.record_episode(f"{name}: hello.")


def look(database: Database, writer: ScriptedWriter | None = None, **bounds: Any) -> Round:
    """Look once, for all agents."""
    with open_staff(database.url, embedder=WordEmbedder(), writer=writer or ScriptedWriter()) as opened:
        return opened.look(**bounds)


def test_one_look_works_for_all_agents(database: Database, owner: psycopg.Connection):
    agents(database, "ada", "ben", "cleo")

    found = look(database)

    assert {name: each.completed for name, each in found.worked.items()} == {"ada": 1, "ben": 1, "cleo": 1}
    assert (found.completed, found.skipped, found.failed) == (3, {}, {})
    assert is_completed(owner, 3)()
    assert look(database).is_idle


def test_one_look_completes_no_more_episodes_than_allowed(database: Database, owner: psycopg.Connection):
    agents(database, "ada", "ben", "cleo")

    found = look(database, limit=2)

    assert list(found.worked) == ["ada", "ben"]
    assert is_completed(owner, 2)()


def test_one_look_ends_in_its_time(database: Database, owner: psycopg.Connection):
    class Steady(ScriptedWriter):
        def write(self, episode):
            time.sleep(0.5)
            return super().write(episode)

    agents(database, *"abcdefgh")
    took_s = stopwatch()

    found = look(database, Steady(), seconds=2)

    assert took_s() < 3
    assert 1 <= found.completed < 8


def test_the_work_of_one_agent_can_be_asked_for(database: Database):
    agents(database, "ada", "ben")

    assert list(look(database, only="ben").worked) == ["ben"]


def test_an_agent_in_another_embedding_space_is_named_and_passed_over(database: Database, owner: psycopg.Connection):
    class Wide(WordEmbedder):
        space = EmbeddingSpace(id="words-wide", model="words", weights_sha256="", dimensions=64)

    agents(database, "ada")
    Heart.open("wide", database=database, embedder=Wide(), works_in_background=False).record_episode("Ada: hello.")

    found = look(database)

    assert list(found.worked) == ["ada"]
    assert list(found.skipped) == ["wide"]
    assert "words-wide" in found.skipped["wide"]
    assert is_completed(owner, 1)()


def test_an_agent_whose_work_fails_leaves_the_others_their_turn(database: Database, owner: psycopg.Connection):
    agents(database, "ada", "ben")
    refuse(owner, "ada")

    found = look(database)

    assert list(found.worked) == ["ben"]
    assert "the disk is full" in found.failed["ada"]


def test_a_database_that_is_not_there_is_unavailable(database: Database):
    with open_staff(database.url, embedder=WordEmbedder(), writer=ScriptedWriter()) as opened:
        opened.night.close()
        with pytest.raises(Unavailable):
            opened.look()


# --- nous worker, and the end of processes ---


@pytest.fixture
def environment(database_url: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield dict(os.environ)
    settings.cache_clear()


@pytest.fixture
def local_model(environment: dict[str, str]) -> Iterator[Heart]:
    """The memory of agent `aria` as `nous` sees it, with the embedding model that ships."""
    with Heart.open("aria", works_in_background=False) as opened:
        yield opened


def test_nous_worker_completes_episodes_until_it_is_told_to_end(
    local_model: Heart, environment: dict[str, str], owner: psycopg.Connection
):
    with NousTwin("worker", "--every", "0.5", environment=environment) as process:
        assert "looking for closed episodes" in process.stderr.readline()
        episode = local_model.record_episode(TALK)
        took_s = stopwatch()
        is_done = until(is_completed(owner))
        lasted_s = took_s()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WITHIN_S)

    completed = local_model.get_episode(episode.id)
    assert is_done
    assert lasted_s < WITHIN_S
    assert (process.returncode, "Traceback" in err) == (0, False)
    assert "aria: episodes completed: 1" in out
    assert completed.summary
    assert completed.summary.startswith("The parcel to Oslo is late again")


def test_ctrl_c_ends_nous_worker(environment: dict[str, str]):
    with NousTwin("worker", "--every", "0.5", environment=environment) as process:
        assert "looking for closed episodes" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WITHIN_S)

    assert (process.returncode, "Traceback" in err) == (130, False)


def test_nous_worker_once_says_what_it_did(local_model: Heart, environment: dict[str, str]):
    local_model.record_episode(TALK)
    run = lambda *options: CliRunner().invoke(application(), ["worker", "--once", *options])  # noqa: E731

    first, second = json.loads(run("--json").stdout), json.loads(run("--json").stdout)

    assert (first["completed"], first["worked"]["aria"]["completed"]) == (1, 1)
    assert (second["completed"], second["worked"], second["failed"]) == (0, {}, {})
    assert "nothing is due" in run().stdout


def test_nous_worker_once_ends_with_one_when_the_work_of_an_agent_failed(
    local_model: Heart, environment: dict[str, str], owner: psycopg.Connection
):
    local_model.record_episode(TALK)
    refuse(owner, "aria")

    ended = CliRunner().invoke(application(), ["worker", "--once"])

    assert ended.exit_code == 1
    assert "aria" in ended.stderr
    assert "the disk is full" in ended.stderr


def test_nous_status_says_what_waits(local_model: Heart, environment: dict[str, str]):
    local_model.record_episode(TALK)

    said = CliRunner().invoke(application(), ["status", "--agent", "aria"]).stdout

    assert "1 closed episodes to complete" in said


AMID_READING = """
import time
from nous_online.language.pairs.reader import cores
while not cores.cache_info().currsize:
    time.sleep(0.01)
"""
"""Waits until the threads that read pairs of statements were asked for the first time."""


@pytest.mark.parametrize(
    "last_words", ["", AMID_READING, "heart.close()"], ids=["just ends", "ends amid reading", "closes"]
)
def test_a_process_that_ends_amid_the_work_ends_cleanly(
    local_model: Heart, environment: dict[str, str], owner: psycopg.Connection, last_words: str
):
    program = f"""
from nous_online import Heart
heart = Heart.open("aria")
for number in range(4):
    heart.record_episode({TALK!r}.replace("nine", str(number + 5)).replace("Fjordline", f"Fjordline {{number}}"))
{last_words}
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    owner.execute("update heart.completions set due_at = now() where finished_at is null")
    local_model.work(deadline_s=60)
    assert is_completed(owner, 4)()
