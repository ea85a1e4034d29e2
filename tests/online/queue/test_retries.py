"""Episodes that can't be completed: set aside after five failures with the reason, kept whole, and queued again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of
from cli_runs import pointed_at, typed
from closed_episodes import TALK, make_due, tries, waiting
from conftest import ScriptedJudge, ScriptedWriter
from stopwatch import stopwatch
from test_completion_failures import Moody, with_writer

from nous_online.core.errors import NotFound, Refused, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.language.writing.child import Children
from nous_online.memories.status import WaitingWork, status_of
from nous_online.queue.worker import lease_next

NOWHERE = "01a202e5-e0bd-7d8c-b5bd-9313b051deb4"


class Spinning(ScriptedWriter):
    """A writer that never comes to an end with one text, in code that no thread can interrupt."""

    def __init__(self, children: Children) -> None:
        super().__init__()
        self.children = children

    def write(self, episode):
        if "endless" in episode.detail:
            self.children.call(re.fullmatch, "(a|a)*b", "a" * 60)
        return super().write(episode)


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children(seconds=1)
    yield made
    made.end()


def left(heart: Heart) -> WaitingWork:
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        return status_of(connection, heart.agent.id).waiting


def test_an_episode_that_fails_five_times_is_set_aside_with_the_reason(heart: Heart, owner: psycopg.Connection):
    moody = with_writer(heart, Moody(*(ZeroDivisionError("oops") for _ in range(5))))
    episode = moody.record_episode(TALK)

    tries(moody, owner, 4)
    assert moody.get_episode(episode.id).completion_note is None
    tries(moody, owner, 1)

    found = moody.get_episode(episode.id)
    assert found.completion_note == "set aside after 5 attempts: the writer failed: ZeroDivisionError('oops')"
    assert (found.detail, found.state, found.completed_at) == (TALK, "closed", None)
    assert (left(moody).episodes, left(moody).set_aside, left(moody).set_aside_ids) == (0, 1, (episode.id,))
    assert waiting(owner) is None
    assert [event.action for event in moody.history(episode.id)] == ["set_aside", "recorded"]
    assert not moody.work()


def test_an_episode_that_was_set_aside_is_completed_when_it_is_queued_again(heart: Heart, owner: psycopg.Connection):
    moody = with_writer(heart, Moody(*(ZeroDivisionError("oops") for _ in range(5))))
    episode = moody.record_episode(TALK)
    tries(moody, owner, 5)

    queued = moody.retry_episode(episode.id)

    assert queued.completion_note is None
    assert moody.work().completed == 1
    assert moody.get_episode(episode.id).summary == "Ada: the parcel is late."
    assert left(moody).set_aside == 0


def test_an_episode_is_queued_again_though_a_purge_took_its_record(heart: Heart, owner: psycopg.Connection):
    moody = with_writer(heart, Moody(*(ZeroDivisionError("oops") for _ in range(5))))
    episode = moody.record_episode(TALK)
    tries(moody, owner, 5)
    owner.execute("delete from heart.completions")

    moody.retry_episode(episode.id)

    assert moody.work().completed == 1


def test_only_a_closed_episode_that_is_not_complete_is_queued_again(heart: Heart):
    done, begun = heart.record_episode(TALK), heart.start_episode("Parcels")
    heart.work()

    with pytest.raises(Refused, match="is complete"):
        heart.retry_episode(done.id)
    with pytest.raises(Refused, match="is open"):
        heart.retry_episode(begun.id)
    with pytest.raises(NotFound):
        heart.retry_episode(NOWHERE)


def test_an_outage_sets_no_episode_aside_however_long_it_lasts(heart: Heart, owner: psycopg.Connection):
    moody = with_writer(heart, Moody(*(Unavailable("no model today") for _ in range(12))))
    episode = moody.record_episode(TALK)

    tries(moody, owner, 12)

    assert waiting(owner) == (12, pytest.approx(3600, abs=5), "no model today")
    make_due(owner)
    assert moody.work().completed == 1
    assert moody.get_episode(episode.id).completion_note is None


def test_outages_before_an_episode_was_forgotten_give_it_no_more_attempts(heart: Heart, owner: psycopg.Connection):
    outages = [Unavailable("no model today") for _ in range(3)]
    moody = with_writer(heart, Moody(*outages, *(ZeroDivisionError("oops") for _ in range(5))))
    episode = moody.record_episode(TALK)
    tries(moody, owner, 3)
    moody.forget(episode.id, reason="by mistake")
    moody.restore(episode.id)

    tries(moody, owner, 5)

    assert left(moody).set_aside_ids == (episode.id,)


def test_an_episode_that_ends_whoever_tries_is_set_aside_too(heart: Heart, owner: psycopg.Connection):
    episode = heart.record_episode(TALK)
    for _ in range(5):
        make_due(owner)
        lease_next(heart.agent, heart.agent.deadline(None))  # and nobody hears of that attempt again

    tries(heart, owner, 1)

    assert "every attempt ended its process" in (heart.get_episode(episode.id).completion_note or "")
    assert left(heart).set_aside == 1


def test_one_taken_back_meanwhile_gets_no_note(heart: Heart, owner: psycopg.Connection):
    moody = with_writer(heart, Moody(*(ZeroDivisionError("oops") for _ in range(5))))
    episode = moody.record_episode(TALK)
    tries(moody, owner, 4)
    moody.undo(episode.id, reason="it was a test")

    tries(moody, owner, 1)

    assert moody.get_episode(episode.id).completion_note is None
    assert left(moody).set_aside == 0


def test_a_text_that_never_ends_being_read_holds_up_nobody(heart: Heart, owner: psycopg.Connection, children: Children):
    spinning = with_writer(heart, Spinning(children))
    endless, other = spinning.record_episode("Ada: an endless text."), spinning.record_episode(TALK)
    took_s = stopwatch()

    assert spinning.work(deadline_s=20).completed == 1

    assert took_s() < 10
    assert spinning.get_episode(other.id).completed_at is not None
    owner.execute("update heart.completions set attempt_count = 4 where finished_at is null")
    tries(spinning, owner, 1)
    assert "took longer than 1 s" in (spinning.get_episode(endless.id).completion_note or "")


def test_verbs_answer_while_the_background_reads_an_endless_text(heart: Heart, children: Children):
    agent = heart.agent
    seams = {"database": agent.database, "embedder": agent.embedder, "judge": agent.judge}
    with Heart.open("aria", **seams, writer=Spinning(children)) as spinning:
        spinning.record_episode("Ada: an endless text.")
        took: list[float] = []
        until = time.monotonic() + 2
        while time.monotonic() < until:
            took_s = stopwatch()
            spinning.recall("parcels")
            took.append(took_s())

    assert len(took) > 5
    assert max(took) < 1.5


def test_the_commands_tell_of_an_episode_set_aside_and_queue_it_again(
    database: Database, owner: psycopg.Connection, database_url: str, tmp_path: Path
):
    moody = Moody(*(ZeroDivisionError("oops") for _ in range(5)))
    heart = Heart.open("noor", database=database, judge=ScriptedJudge(), writer=moody, works_in_background=False)
    episode = heart.record_episode(TALK)
    tries(heart, owner, 5)

    with pointed_at(database_url, tmp_path):
        told, machine = typed("status", "--agent", "noor"), typed("status", "--agent", "noor", "--json")
        queued = typed("retry", episode.id, "--agent", "noor", "--json")

    assert f"1 closed episodes that failed too often: {str(episode.id)[:13]}" in told.out
    assert machine.json["waiting"]["set_aside_ids"] == [str(episode.id)]
    assert (queued.code, queued.json) == (0, {"episode_id": str(episode.id)})
    assert left(heart).episodes == 1


def test_doctor_names_the_episodes_that_were_set_aside_why_and_how_to_try_them_again(
    heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path: Path
):
    moody = with_writer(heart, Moody(*(ZeroDivisionError("oops") for _ in range(5))))
    with pointed_at(database_url, tmp_path):
        well = doctor.checked("episodes", doctor.look_at_episodes)
        episode = moody.record_episode(TALK)
        tries(moody, owner, 5)

        ill = doctor.checked("episodes", doctor.SERVER_LOOKS["episodes"])
        moody.retry_episode(episode.id)
        again = doctor.checked("episodes", doctor.look_at_episodes)

    assert well == again == doctor.HealthCheck("episodes", is_ok=True, message="none was set aside")
    assert not ill.is_ok
    assert ill.message.startswith("1 set aside")
    assert f"ZeroDivisionError('oops'): nous retry {episode.id} --agent aria" in ill.message


def test_an_episode_is_queued_again_over_rest(heart: Heart, owner: psycopg.Connection, database_url: str):
    moody = with_writer(heart, Moody(*(ZeroDivisionError("oops") for _ in range(5))))
    episode = moody.record_episode(TALK)
    tries(moody, owner, 5)
    app = app_over(database_url, heart.agent.embedder)

    with client_of(app, bearer(key_of(heart.agent.database, "aria"))) as client:
        queued = client.post(f"/episodes/{episode.id}/retry")
        missing = client.post(f"/episodes/{NOWHERE}/retry")
        started = client.post("/episodes", json={"title": "Shipping"}).json()["id"]
        refused = client.post(f"/episodes/{started}/retry")

    assert (queued.status_code, queued.json()["completion_note"]) == (200, None)
    assert (missing.status_code, refused.status_code) == (404, 409)
    assert moody.work().completed >= 1
