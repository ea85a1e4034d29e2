"""A session carries its situation: frame and active censors reach every verb that is told the session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of
from conftest import WordEmbedder
from mcp_visits import SESSION, call, door_to, values
from starlette.testclient import TestClient

from nous_online.core.errors import Forbidden, InvalidInput, NotFound
from nous_online.core.rights import WITHOUT_KEY
from nous_online.database.connection import Database
from nous_online.heart import Heart, HeartSession, takes

HARBOUR = "The harbour opens at six"


@pytest.fixture
def rest(database_url: str, database: Database, embedder: WordEmbedder) -> Iterator[TestClient]:
    """A client with an ordinary key of agent `aria`."""
    with client_of(app_over(database_url, embedder), bearer(key_of(database, "aria"))) as client:
        yield client


# --- one name for one idea ---


@pytest.mark.parametrize("names", [("frame", "active_censors"), ("encoded_frame", "encoded_censors")])
def test_frame_and_censors_are_told_by_one_name_or_by_those_they_had(heart: Heart, names: tuple[str, str]) -> None:
    told: dict[str, Any] = dict(zip(names, ("debug", ["cite-sources"]), strict=True))

    for memory in (
        heart.learn(HARBOUR, **told).memory,
        heart.store_procedure("Deploy", kind="workflow", steps=["test"], **told),
        heart.add_censor("pushing to main", "Use a branch", **told),
    ):
        assert (memory.encoded_frame, memory.encoded_censors) == ("debug", ["cite-sources"])


@pytest.mark.parametrize("name", ["frame", "frame_used"])
def test_the_frame_of_an_episode_is_told_by_either_name(heart: Heart, name: str) -> None:
    told: dict[str, Any] = {name: "debug"}

    begun, over = heart.start_episode("Outage", **told), heart.record_episode("The mill closed", **told)
    changed = heart.update_episode(heart.start_episode("Other").id, **told)

    assert [each.frame_used for each in (begun, over, changed)] == ["debug"] * 3


def test_two_names_may_say_the_same_and_nothing_else(heart: Heart) -> None:
    agreed = heart.learn(HARBOUR, frame="debug", encoded_frame="debug").memory

    assert agreed.encoded_frame == "debug"
    with pytest.raises(InvalidInput, match="frame is 'debug', and encoded_frame, its other name, 'task'; say it once"):
        heart.learn(HARBOUR, frame="debug", encoded_frame="task")
    with pytest.raises(InvalidInput, match="active_censors is"):
        heart.start_episode("Outage", active_censors=["a"], encoded_censors=["b"])


# --- what a session goes by ---


def test_the_frame_and_the_censors_in_force_reach_whoever_names_the_session(
    heart: Heart, owner: psycopg.Connection
) -> None:
    held = heart.focus("Find the leak", session_id="s", frame="debug", active_censors=["cite-sources"])

    learned = heart.learn(HARBOUR, session_id="s").memory
    episode = heart.record_episode("The mill closed", session_id="s")
    begun = heart.start_episode("Outage", session_id="s")
    (answer,) = heart.recall("harbour", session_id="s", types=["fact"])

    assert (held.frame, held.active_censors) == ("debug", ["cite-sources"])
    assert (learned.encoded_frame, learned.encoded_censors) == ("debug", ["cite-sources"])
    assert [(each.frame_used, each.encoded_censors) for each in (episode, begun)] == [("debug", ["cite-sources"])] * 2
    assert (answer.parts.frame_boost, answer.parts.censor_boost) == (1.3, 1.2)
    assert [(each.session_id, each.frame) for each in heart.statements(learned.id)] == [("s", "debug")]
    assert owner.execute("select frame, active_censors from heart.recalls").fetchall() == [("debug", ["cite-sources"])]


def test_a_repetition_says_in_which_session_it_was_said(heart: Heart) -> None:
    learned = heart.learn(HARBOUR).memory

    heart.learn(HARBOUR, session_id="s")

    assert [each.session_id for each in heart.statements(learned.id)] == [None, "s"]


def test_what_is_told_counts_more_than_what_the_session_goes_by(heart: Heart) -> None:
    heart.focus("Find the leak", session_id="s", frame="debug", active_censors=["a"])

    told = heart.learn(HARBOUR, session_id="s", encoded_frame="task", active_censors=["b"]).memory
    elsewhere = heart.learn("Cats like fish").memory

    assert (told.encoded_frame, told.encoded_censors) == ("task", ["b"])
    assert (elsewhere.encoded_frame, elsewhere.encoded_censors) == (None, None)


def test_a_session_changes_its_frame_and_keeps_its_task_and_what_it_holds(heart: Heart) -> None:
    heart.focus("Find the leak", session_id="s", frame="debug", active_censors=["a"], capacity=7)
    heart.load_context(session_id="s", note="The valve is old")

    held = heart.focus(session_id="s", frame="decision")
    cleared = heart.focus(session_id="s", active_censors=[])

    assert (held.task, held.frame, held.active_censors, held.capacity) == ("Find the leak", "decision", ["a"], 7)
    assert [item.text for item in held.items] == ["The valve is old"]
    assert (cleared.frame, cleared.active_censors) == ("decision", [])


def test_a_context_is_assembled_under_the_censors_of_its_session(heart: Heart) -> None:
    heart.learn(HARBOUR, active_censors=["a"])
    heart.focus("Find the leak", session_id="s", active_censors=["a"])

    context = heart.assemble_context(query="harbour", session_id="s")

    assert HARBOUR in context.text


# --- the session as an object ---


def test_each_verb_of_a_session_is_told_what_it_goes_by(heart: Heart) -> None:
    with heart.session(
        "pr-918", task="Review", frame="debug", active_censors=["a"], user_id="ana", project_id="api", source="chat"
    ) as s:
        fact = s.learn(HARBOUR).memory
        censor = s.add_censor("pushing to main", "Use a branch")
        procedure = s.store_procedure("Deploy", kind="workflow", steps=["test"])
        episode = s.start_episode("Outage")
        decision = s.record_decision("Use a queue")
        found = s.recall("harbour", types=["fact"])
        fired = s.check_censors("push to main")
        held, context = s.get_working_memory(), s.assemble_context(query="harbour")

    for memory in (fact, censor, procedure):
        assert (memory.encoded_frame, memory.encoded_censors, memory.source) == ("debug", ["a"], "chat")
        assert (memory.user_id, memory.project_id) == ("ana", "api")
    assert (episode.session_id, episode.frame_used, episode.user_id) == ("pr-918", "debug", "ana")
    assert (held.session_id, held.task, held.frame) == ("pr-918", "Review", "debug")
    assert heart.get_decision(decision.id).session_id == "pr-918"
    assert [each.parts.frame_boost for each in found] == [1.3]
    assert [each.censor.id for each in fired] == [censor.id]
    assert HARBOUR in context.text
    assert heart.recall("harbour", user_id="ben", types=["fact"]).answers == ()


def test_an_argument_of_a_verb_counts_more_than_the_sessions(heart: Heart) -> None:
    with heart.session("s", frame="debug", user_id="ana", source="chat") as s:
        told = s.learn(HARBOUR, frame="task", user_id="ben", source=None).memory
        by_other_name = s.learn("Cats like fish", encoded_frame="task").memory
        elsewhere = s.get_working_memory("other")

    assert (told.encoded_frame, told.user_id, told.source) == ("task", "ben", None)
    assert by_other_name.encoded_frame == "task"
    assert elsewhere.session_id == "other"


def test_a_session_goes_on_where_it_was_left(heart: Heart) -> None:
    with heart.session("s", task="Find the leak", frame="debug", active_censors=["a"]) as s:
        s.load_context(note="The valve is old")

    with heart.session("s") as s:
        censor = s.add_censor("pushing to main", "Use a branch")
        held = s.focus("Mend it", frame="task")
        procedure = s.store_procedure("Deploy", kind="workflow", steps=["test"])

    assert (censor.encoded_frame, censor.encoded_censors) == ("debug", ["a"])
    assert (held.task, [item.text for item in held.items]) == ("Mend it", ["The valve is old"])
    assert procedure.encoded_frame == "task"


def test_a_session_ends_only_if_told_and_not_when_something_failed(heart: Heart) -> None:
    with heart.session("left", task="Find the leak"):
        pass
    with pytest.raises(ZeroDivisionError), heart.session("failed", task="Find the leak", end=True):
        _ = 1 / 0
    with heart.session("ended", task="Find the leak", end=True, user_id="ana") as ended:
        ended.load_context(note="The valve is old")

    tasks = [heart.get_working_memory(name).task for name in ("left", "failed", "ended")]
    assert tasks == ["Find the leak", "Find the leak", None]
    with pytest.raises(NotFound):
        heart.end_session("ended")
    (episode,) = heart.recall("valve", types=["episode"], user_id="ana")
    assert "The valve is old" in episode.content


def test_closing_a_session_leaves_the_heart_open(heart: Heart) -> None:
    with heart.session("s") as s:
        s.close()

    assert heart.learn(HARBOUR).action == "stored"


def test_a_session_of_a_caller_may_no_more_than_the_caller(heart: Heart) -> None:
    with heart.limited_to(WITHOUT_KEY).session("s") as s, pytest.raises(Forbidden, match="trust 90 is more than 60"):
        s.learn(HARBOUR, trust=90)


def test_every_verb_of_a_heart_is_a_sessions_too() -> None:
    verbs = {name for group in Heart.__bases__ for name in vars(group) if not name.startswith("_")}

    assert len(verbs) > 40
    assert {name for name in verbs if not hasattr(getattr(HeartSession, name), "__wrapped__")} == set()
    assert {"frame", "session_id", "user_id", "deadline_s"} <= takes(Heart.learn)
    assert all(takes(getattr(Heart, name)) for name in verbs)


# --- through the doors ---


def test_a_session_of_the_rest_interface_carries_its_situation(rest: TestClient, heart: Heart) -> None:
    in_session = {"X-Nous-Session": "s"}
    focused = rest.put("/sessions/s/focus", json={"frame": "debug", "active_censors": ["a"]}).json()

    learned = rest.post("/facts", json={"content": HARBOUR}, headers=in_session).json()["memory"]
    named = rest.post("/facts", json={"content": "Cats like fish", "session_id": "s"}).json()["memory"]
    found = rest.post("/recall", json={"query": "harbour"}, headers=in_session).json()["memories"]
    told = rest.post("/facts", json={"content": "Rain falls", "encoded_frame": "task"}, headers=in_session).json()

    assert (focused["frame"], focused["active_censors"], focused["task"]) == ("debug", ["a"], None)
    assert [(each["encoded_frame"], each["encoded_censors"]) for each in (learned, named)] == [("debug", ["a"])] * 2
    assert found[0]["parts"]["frame_boost"] == 1.3
    assert told["memory"]["encoded_frame"] == "task"
    assert [each.session_id for each in heart.statements(learned["id"])] == ["s"]


def test_the_rest_interface_takes_one_name_at_a_time(rest: TestClient) -> None:
    answer = rest.post("/facts", json={"content": HARBOUR, "frame": "debug", "encoded_frame": "task"})

    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (422, "body.encoded_frame")


def test_a_session_of_the_protocol_carries_its_situation(heart: Heart) -> None:
    door = door_to(heart)
    heart.focus(session_id=SESSION, active_censors=["a"])
    values(call(door, "focus", frame="debug"))

    values(call(door, "remember", content=HARBOUR))
    values(call(door, "start_episode", title="Outage"))
    shown = values(call(door, "focus"))

    (answer,) = heart.recall("harbour", types=["fact"], session_id=SESSION)
    assert (answer.memory.encoded_frame, answer.memory.encoded_censors) == ("debug", ["a"])
    assert answer.parts.frame_boost == 1.3
    assert shown["frame"] == "debug"
