"""Working memory: what it is about, what it holds, and what goes when it is too much."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from twins import Say, Twin

from nous_online.core.domain import FACT
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.changes import Cause, change_memory, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import sessions

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def learned(heart: Heart, *contents: str) -> list[UUID]:
    return [heart.learn(content).memory.id for content in contents]


def texts(entries: Any) -> list[str]:
    return [entry.text for entry in entries]


def test_a_session_that_was_never_begun_holds_nothing(heart: Heart) -> None:
    memory = heart.get_working_memory("unknown")

    assert (memory.task, memory.items, memory.open_threads, memory.capacity) == (None, (), (), 20)


def test_a_focused_session_keeps_task_and_frame_across_processes(
    heart: Heart, database_url: str, embedder: Any, judge: Any
) -> None:
    heart.focus("Plan the api deploy", session_id="s", frame="decision")
    (fact_id,) = learned(heart, "The api is deployed on Fridays")
    heart.load_context(session_id="s", fact_ids=[fact_id])
    other_database = Database(database_url)
    other = Heart.open("aria", database=other_database, embedder=embedder, judge=judge, works_in_background=False)

    memory = other.get_working_memory("s")
    other_database.close()

    assert (memory.task, memory.frame) == ("Plan the api deploy", "decision")
    assert texts(memory.items) == ["The api is deployed on Fridays"]


def test_what_is_nearest_to_the_task_comes_first(heart: Heart) -> None:
    ids = learned(heart, "The cat sleeps on the sofa", "The api deploy runs on Fridays")
    heart.focus("the api deploy")

    memory = heart.load_context(fact_ids=ids)

    assert texts(memory.items) == ["The api deploy runs on Fridays", "The cat sleeps on the sofa"]
    assert memory.items[0].relevance > memory.items[1].relevance


def test_the_least_relevant_is_pushed_out_named_and_still_a_memory(heart: Heart) -> None:
    ids = learned(heart, "The api deploy runs on Fridays", "The cat sleeps on the sofa")
    heart.focus("the api deploy", capacity=2)
    heart.load_context(fact_ids=ids)

    memory = heart.load_context(fact_ids=learned(heart, "Before an api deploy the tests run"))

    assert texts(memory.evicted) == ["The cat sleeps on the sofa"]
    assert sorted(texts(memory.items)) == ["Before an api deploy the tests run", "The api deploy runs on Fridays"]
    assert heart.get(ids[1]).state == "active"


def test_twenty_items_are_held_unless_told_otherwise(heart: Heart) -> None:
    heart.focus("anything")

    for number in range(21):
        memory = heart.load_context(note=f"note {number}", relevance=0.5)

    assert len(memory.items) == 20
    assert texts(memory.evicted) == ["note 0"]


def test_a_new_task_weighs_everything_anew(heart: Heart) -> None:
    ids = learned(heart, "The cat sleeps on the sofa", "The api deploy runs on Fridays")
    heart.focus("the api deploy")
    heart.load_context(fact_ids=ids)
    heart.load_context(note="the sofa of the cat is red")

    memory = heart.focus("where the cat sleeps on the sofa", capacity=2)

    assert texts(memory.items) == ["The cat sleeps on the sofa", "the sofa of the cat is red"]
    assert texts(memory.evicted) == ["The api deploy runs on Fridays"]


def test_what_the_agent_says_of_relevance_stands(heart: Heart) -> None:
    ids = learned(heart, "The cat sleeps on the sofa", "The api deploy runs on Fridays")
    heart.load_context(fact_ids=ids[:1], relevance=1.0)
    heart.load_context(fact_ids=ids[1:])
    heart.load_context(fact_ids=ids[:1])

    memory = heart.focus("the api deploy", capacity=1)

    assert texts(memory.items) == ["The cat sleeps on the sofa"]
    assert memory.items[0].relevance == 1.0


def test_loading_twice_holds_once(heart: Heart) -> None:
    ids = learned(heart, "The cat sleeps on the sofa")

    heart.load_context(fact_ids=ids)
    memory = heart.load_context(memory_ids=ids)

    assert [(entry.kind, entry.id) for entry in memory.items] == [("fact", ids[0])]


def test_every_kind_of_memory_can_be_held(heart: Heart) -> None:
    episode = heart.record_episode("We deployed the api together", title="A deploy")
    procedure = heart.store_procedure("Deploy the api", goals=["calm"])
    censor = heart.add_censor("deploy on Friday", "nobody is there")
    (fact_id,) = learned(heart, "The cat sleeps on the sofa")
    heart.focus("deploy the api")

    heart.load_context(procedure_id=procedure.id)
    memory = heart.load_context(
        episode_ids=[episode.id], fact_ids=[fact_id], censor_ids=[censor.id], note="the api of today"
    )

    assert {entry.kind for entry in memory.items} == {"episode", "fact", "procedure", "censor", "note"}
    assert all(entry.text for entry in memory.items)
    assert memory.items[-1].kind == "fact"
    assert all(entry.relevance > 0.2 for entry in memory.items[:-1])


def test_an_activated_procedure_is_held(heart: Heart) -> None:
    procedure = heart.store_procedure("Deploy the api", goals=["calm"])

    heart.activate_procedure(procedure.id, session_id="s")

    assert [entry.id for entry in heart.get_working_memory("s").items] == [procedure.id]


def test_a_memory_that_is_not_there_is_not_loaded(heart: Heart) -> None:
    (fact_id,) = learned(heart, "The cat sleeps on the sofa")
    unknown = uuid4()

    with pytest.raises(NotFound, match=f"no memory {unknown}"):
        heart.load_context(memory_ids=[fact_id, unknown])
    with pytest.raises(NotFound, match=f"no episode {fact_id}"):
        heart.load_context(episode_ids=[fact_id])

    assert heart.get_working_memory().items == ()


def test_a_memory_of_another_agent_is_not_there(heart: Heart, database: Database, embedder: Any, judge: Any) -> None:
    ids = learned(
        Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False), "Ben likes tea"
    )

    with pytest.raises(NotFound):
        heart.load_context(fact_ids=ids)


def test_what_was_superseded_meanwhile_says_so(heart: Heart, database: Database) -> None:
    old, new = (heart.learn(text).memory for text in ("The api runs on port 80", "Bread is baked in the morning"))
    heart.load_context(fact_ids=[old.id])
    gone = {"state": "superseded", "superseded_by": str(new.id), "superseded_at": MAY.isoformat()}
    values = {**gone, "succession": "replaced"}
    with database.transaction("aria") as connection:
        change_memory(connection, "aria", version_of(FACT, old), values, cause=Cause("agent", "superseded", "t", MAY))

    (entry,) = heart.get_working_memory().items

    assert (entry.state, entry.superseded_by) == ("superseded", new.id)


def test_what_was_erased_meanwhile_is_no_longer_held(heart: Heart, owner: psycopg.Connection) -> None:
    heart.load_context(fact_ids=learned(heart, "The cat sleeps on the sofa"), note="a note")
    owner.execute("delete from heart.facts")

    assert texts(heart.get_working_memory().items) == ["a note"]


def test_long_texts_are_shown_short(heart: Heart) -> None:
    memory = heart.load_context(fact_ids=learned(heart, "word " * 500))

    assert len(memory.items[0].text) <= 400
    assert memory.items[0].text.endswith("word…")


def test_loading_from_many_threads_loses_nothing(heart: Heart) -> None:
    heart.focus("anything", capacity=100)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: heart.load_context(note=f"note {number}"), range(40)))

    assert sorted(texts(heart.get_working_memory().items)) == sorted(f"note {number}" for number in range(40))


def test_loading_from_several_processes_loses_nothing(heart: Heart, database_url: str, embedder: Any) -> None:
    def loader(name: str) -> Twin:
        def load(_say: Say) -> None:
            with closing(Database(database_url)) as database:
                opened = Heart.open("aria", database=database, embedder=embedder, works_in_background=False)
                for number in range(10):
                    opened.open_thread(f"thread {name} {number}", session_id="s")

        return Twin(load)

    assert [each.end() for each in [loader("a"), loader("b")]] == [(0, [])] * 2
    assert len(heart.get_working_memory("s").open_threads) == 20


def test_a_procedure_can_be_loaded_within_another_transaction(heart: Heart) -> None:
    (fact_id,) = learned(heart, "The cat sleeps on the sofa")

    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        sessions.load_items(connection, heart.agent, "s", [("fact", fact_id)])

    assert [entry.id for entry in heart.get_working_memory("s").items] == [fact_id]


def test_sessions_are_held_apart(heart: Heart) -> None:
    heart.load_context(session_id="one", note="a note")

    assert heart.get_working_memory("two").items == ()
    assert heart.get_working_memory().items == ()


def test_threads_are_opened_once_and_closed_by_text_or_place(heart: Heart) -> None:
    for text in ("call Tim", "write the page", "call Tim", "ask Ann"):
        heart.open_thread(text)
    heart.close_thread("write the page")

    memory = heart.close_thread(0)

    assert memory.open_threads == ("ask Ann",)


@pytest.mark.parametrize("thread", ["no such thread", 5, -1, True])
def test_a_thread_that_is_not_open_is_not_closed(heart: Heart, thread: Any) -> None:
    heart.open_thread("call Tim")
    heart.open_thread("ask Ann")

    with pytest.raises(NotFound, match="no open thread"):
        heart.close_thread(thread)


def test_unloading_lets_go_of_what_is_named(heart: Heart) -> None:
    ids = learned(heart, "The cat sleeps on the sofa", "The api deploy runs on Fridays")
    heart.load_context(fact_ids=ids)

    memory = heart.unload([ids[0], uuid4()])

    assert [entry.id for entry in memory.items] == ids[1:]


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"note": ""},
        {"note": "x", "relevance": 2},
        {"fact_ids": "abc"},
        {"fact_ids": ["abc"]},
        {"fact_id": uuid4()},
        {"note": "x", "session_id": ""},
        {"note": "x" * 300_000},
    ],
)
def test_what_cannot_be_loaded_is_refused(heart: Heart, owner: psycopg.Connection, details: Any) -> None:
    with pytest.raises(InvalidInput):
        heart.load_context(**details)

    assert owner.execute("select count(*) from heart.working_memory").fetchone() == (0,)


@pytest.mark.parametrize("capacity", [0, 201, "many", True])
def test_a_capacity_is_a_number_of_items(heart: Heart, capacity: Any) -> None:
    with pytest.raises(InvalidInput, match="capacity"):
        heart.focus("anything", capacity=capacity)


def test_notes_are_refused_before_they_are_more_than_an_episode_should_hold(heart: Heart) -> None:
    for number in range(2):
        heart.load_context(note=f"{number}" * 120_000)

    with pytest.raises(InvalidInput, match="end the session"):
        heart.load_context(note="z" * 120_000)
