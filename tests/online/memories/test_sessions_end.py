"""The end of a session: what was worth keeping becomes an episode, once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg
import pytest

from nous_online.core.domain import EPISODE
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.changes import lock_memory
from nous_online.heart import Heart
from nous_online.memories import sessions


def queued(owner: psycopg.Connection) -> list[UUID]:
    return [row[0] for row in owner.execute("select episode_id from heart.completions").fetchall()]


def announced(owner: psycopg.Connection, name: str) -> list[UUID]:
    return [row[0] for row in owner.execute("select memory_id from heart.outbox where name = %s", [name]).fetchall()]


def test_ending_a_session_stores_what_was_worth_keeping_and_clears_it(heart: Heart, owner: psycopg.Connection) -> None:
    fact = heart.learn("The cat sleeps on the sofa").memory
    heart.focus("Plan the api deploy", session_id="s", frame="decision")
    heart.load_context(session_id="s", note="Ann wants it on Fridays", fact_ids=[fact.id])
    heart.open_thread("ask Tim about the port", session_id="s")

    ended = heart.end_session("s", outcome="partial", lessons_learned=["Ask before the weekend."])

    assert ended.episode is not None
    assert ended.episode.detail == (
        "Task: Plan the api deploy\nAnn wants it on Fridays\nStill open: ask Tim about the port\n"
        "Lesson: Ask before the weekend."
    )
    assert (ended.episode.state, ended.episode.outcome, ended.episode.frame_used) == ("closed", "partial", "decision")
    assert (ended.episode.session_id, ended.episode.lessons_learned) == ("s", ["Ask before the weekend."])
    assert ended.released == (fact.id,)
    assert queued(owner) == announced(owner, "episode_closed") == [ended.episode.id]
    assert heart.get_working_memory("s").task is None
    assert heart.get(fact.id).state == "active"


def test_ending_a_session_closes_its_open_episode(heart: Heart, owner: psycopg.Connection) -> None:
    other = heart.start_episode("Something else", session_id="other")
    begun = heart.start_episode("The api deploy", session_id="s", frame_used="task")
    heart.update_episode(begun.id, append="Tim: it is on port 80.")
    heart.focus("Plan the api deploy", session_id="s", frame="decision")

    ended = heart.end_session("s")

    assert ended.episode is not None
    assert (ended.episode.id, ended.episode.state, ended.episode.frame_used) == (begun.id, "closed", "task")
    assert ended.episode.detail == "Tim: it is on port 80.\nTask: Plan the api deploy"
    assert queued(owner) == [begun.id]
    assert heart.get_episode(other.id).state == "open"


def test_the_default_session_closes_the_episode_that_names_no_session(heart: Heart) -> None:
    begun = heart.start_episode("The api deploy")
    heart.load_context(note="Ann wants it on Fridays")

    memory = heart.get_working_memory()
    ended = heart.end_session()

    assert memory.episode_id == begun.id
    assert ended.episode is not None
    assert ended.episode.id == begun.id


def test_the_new_episode_of_a_session_and_its_facts_are_whose_the_session_was(
    heart: Heart, owner: psycopg.Connection
) -> None:
    heart.load_context(note="fact: Ann deploys on Fridays", session_id="s")

    ended = heart.end_session("s", scope="project", user_id="ann", project_id="api")
    heart.work()

    assert ended.episode is not None
    whose = "select kind, scope, user_id, project_id from heart.memories order by kind"
    assert owner.execute(whose).fetchall() == [
        ("episode", "project", "ann", "api"),
        ("fact", "project", "ann", "api"),
    ]


def test_an_open_episode_stays_whose_it_was_when_its_session_ends(heart: Heart) -> None:
    begun = heart.start_episode("The api deploy", session_id="s", user_id="tim")
    heart.focus("Plan the api deploy", session_id="s")

    ended = heart.end_session("s", scope="project", user_id="ann", project_id="api")

    assert ended.episode is not None
    assert (ended.episode.id, ended.episode.scope, ended.episode.user_id) == (begun.id, "private", "tim")


@pytest.mark.parametrize("details", [{"scope": "everybody"}, {"user_id": "x" * 101}, {"mood": "good"}])
def test_a_session_that_is_said_to_be_nobodys_does_not_end(heart: Heart, details: dict[str, Any]) -> None:
    heart.focus("Plan the api deploy", session_id="s")

    with pytest.raises(InvalidInput, match=next(iter(details))):
        heart.end_session("s", **details)

    assert heart.get_working_memory("s").task == "Plan the api deploy"


def test_a_note_that_was_pushed_out_is_kept_in_the_episode(heart: Heart) -> None:
    heart.focus("the api deploy", capacity=1)
    heart.load_context(note="The sofa of the cat is red", relevance=0.1)
    heart.load_context(note="The api runs on port 80", relevance=0.9)
    heart.unload([entry.id for entry in heart.get_working_memory().items])

    ended = heart.end_session()

    assert ended.episode is not None
    assert ended.episode.detail == "Task: the api deploy\nThe sofa of the cat is red\nThe api runs on port 80"


def test_a_session_with_nothing_to_keep_leaves_no_episode(heart: Heart, owner: psycopg.Connection) -> None:
    fact = heart.learn("The cat sleeps on the sofa").memory
    heart.load_context(session_id="s", fact_ids=[fact.id])

    ended = heart.end_session("s")

    assert (ended.episode, ended.released) == (None, (fact.id,))
    assert queued(owner) == []


def test_ending_twice_does_nothing_twice(heart: Heart, owner: psycopg.Connection) -> None:
    heart.focus("Plan the api deploy", session_id="s")
    heart.end_session("s")

    with pytest.raises(NotFound, match="has ended, or was never begun"):
        heart.end_session("s")

    assert len(queued(owner)) == 1


def test_many_who_end_a_session_at_once_store_one_episode(heart: Heart, owner: psycopg.Connection) -> None:
    heart.focus("Plan the api deploy", session_id="s")

    def attempt(_number: int) -> str:
        try:
            heart.end_session("s")
        except NotFound:
            return "too late"
        return "ended"

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(attempt, range(4)))

    assert outcomes == ["ended", "too late", "too late", "too late"]
    assert len(queued(owner)) == 1


def test_a_note_taken_while_its_session_ends_is_in_the_episode_or_in_the_next_session(heart: Heart) -> None:
    heart.focus("Plan the api deploy", session_id="s")

    with ThreadPoolExecutor(4) as pool:
        loads = [pool.submit(heart.load_context, session_id="s", note=f"note {number}") for number in range(12)]
        ended = pool.submit(heart.end_session, "s").result()
        for load in loads:
            load.result()

    assert ended.episode is not None
    kept = {line for line in (ended.episode.detail or "").splitlines() if line.startswith("note")}
    held = {entry.text for entry in heart.get_working_memory("s").items}
    assert kept | held == {f"note {number}" for number in range(12)}
    assert kept & held == set()


def test_ending_waits_for_whoever_holds_the_episode_and_wants_the_session_next(
    heart: Heart, owner: psycopg.Connection
) -> None:
    """As activating a procedure does; taken the other way round, each would wait for the other."""
    episode = heart.start_episode("The api deploy", session_id="s")
    fact = heart.learn("The cat sleeps on the sofa").memory
    heart.focus("Plan the api deploy", session_id="s")

    with ThreadPoolExecutor(1) as pool:
        with heart.agent.transaction(heart.agent.deadline(None)) as connection:
            lock_memory(connection, "aria", EPISODE, episode.id)
            ending = pool.submit(heart.end_session, "s")
            wait_for_a_waiting_call(owner)
            sessions.load_items(connection, heart.agent, "s", [("fact", fact.id)])
        ended = ending.result()

    assert ended.released == (fact.id,)


def test_what_is_loaded_while_its_session_ends_begins_the_next(heart: Heart, owner: psycopg.Connection) -> None:
    heart.focus("Plan the api deploy", session_id="s")

    with ThreadPoolExecutor(1) as pool:
        with heart.agent.transaction(heart.agent.deadline(None)) as connection:
            sessions.read_session(connection, "aria", "s", is_locked=True)
            loading = pool.submit(heart.load_context, session_id="s", note="Ann wants it on Fridays")
            wait_for_a_waiting_call(owner)
            connection.execute(sessions.SQL["end_session"], sessions.session_key("aria", "s"))
        memory = loading.result()

    assert memory.task is None
    assert [entry.text for entry in memory.items] == ["Ann wants it on Fridays"]


def test_activating_loading_and_ending_at_once_get_in_nobodys_way(heart: Heart, owner: psycopg.Connection) -> None:
    procedure = heart.store_procedure("Deploy the api", goals=["calm"])

    def work(number: int) -> None:
        heart.load_context(session_id="s", note=f"note {number}")
        heart.activate_procedure(procedure.id, session_id="s")
        with suppress(NotFound):
            heart.end_session("s")

    for _ in range(3):
        heart.start_episode("The api deploy", session_id="s")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))

    details = owner.execute("select detail from heart.episodes where detail is not null").fetchall()
    kept = [line for (detail,) in details for line in detail.splitlines() if line]
    held = [entry.text for entry in heart.get_working_memory("s").items if entry.kind == "note"]
    assert sorted(kept + held) == sorted(f"note {number}" for number in range(12))
    assert heart.get_procedure(procedure.id).activation_count == 12


def wait_for_a_waiting_call(owner: psycopg.Connection) -> None:
    query = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    for _ in range(500):
        if owner.execute(query).fetchone() != (0,):
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits for a lock")


def test_a_full_episode_is_closed_as_it_is_and_another_keeps_the_session(
    heart: Heart, owner: psycopg.Connection
) -> None:
    begun = heart.start_episode("A long one", session_id="s")
    heart.update_episode(begun.id, append="x" * (1024 * 1024 - 10))
    heart.load_context(session_id="s", note="Ann wants it on Fridays")

    ended = heart.end_session("s", outcome="success")

    assert ended.episode is not None
    assert ended.episode.detail == "Ann wants it on Fridays"
    assert (heart.get_episode(begun.id).state, heart.get_episode(begun.id).outcome) == ("closed", "success")
    assert sorted(queued(owner)) == sorted([begun.id, ended.episode.id])


def test_an_outcome_nobody_knows_ends_nothing(heart: Heart) -> None:
    heart.focus("Plan the api deploy", session_id="s")

    with pytest.raises(InvalidInput, match="outcome"):
        heart.end_session("s", outcome="great")

    assert heart.get_working_memory("s").task == "Plan the api deploy"
