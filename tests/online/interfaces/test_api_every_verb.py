"""REST serves every verb: one that is added to the Heart gets a row here, or a reason why not."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
from api_client import app_over, client_of
from conftest import WordEmbedder
from starlette.testclient import TestClient

from nous_online.core.fields import Alias, rows_of
from nous_online.heart import Heart
from nous_online.interfaces.api.application import Access
from nous_online.interfaces.api.bodies import WORDS
from nous_online.interfaces.api.verb_routes import ROUTES, VerbRoute

IN_PARTS = {
    "cite", "ignore", "contradictions", "doubts", "statements", "record_procedure_success", "record_procedure_failure",
}  # fmt: skip
"""Served by a function that calls them."""
IN_PROCESS = {"subscribe", "deliver", "work"}
"""Handlers are functions of the process that hears, and so is what works."""


@pytest.fixture
def client(database_url: str, embedder: WordEmbedder) -> Iterator[TestClient]:
    """A client of agent `aria`, whose heart the test has too."""
    app = app_over(database_url, embedder, access=Access(requires_keys=False))
    with client_of(app, {"X-Nous-Agent": "aria"}) as client:
        yield client


def test_every_verb_is_served() -> None:
    functions = inspect.getmembers(Heart, inspect.isfunction)
    verbs = {name for name, verb in functions if name[0] != "_" and "deadline_s" in inspect.signature(verb).parameters}

    assert verbs - {route.verb.__name__ for route in ROUTES} == IN_PARTS | IN_PROCESS


NOT_SENT = {
    "deadline_s": "the header X-Nous-Deadline",
    "idempotency_key": "the header Idempotency-Key",
    "procedures_activated": "the server counts them",
    "fact_ids": "one of them is an id of memory_ids", "episode_ids": "an id of memory_ids",
    "censor_ids": "an id of memory_ids",
    "at": "the moment of the call",
    "allows_private": "an operator says it: nous webhook add --allow-private",
}  # fmt: skip
"""What a verb is told in Python and not by its route's body, path or query, and why; other names of a row aside."""


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.endpoint)
def test_a_route_takes_what_its_verb_takes(route: VerbRoute) -> None:
    if getattr(Heart, route.verb.__name__, None) is not route.verb:
        return  # a function that calls several
    rows = rows_of(route.verb)
    others = {name for name, row in rows.items() if isinstance(row.field, Alias)}
    told = {name for name in inspect.signature(route.verb).parameters if name != "self"} - others
    in_path = re.findall(r"{(\w+)", route.endpoint)
    fields = {} if route.body is None else route.body.model_fields
    sent = {*route.query, *in_path, *fields}
    # A path parameter that the verb calls otherwise is its first one.
    first = {next(iter(told & {*list(inspect.signature(route.verb).parameters)[1:2]}), "")} if in_path else set()

    assert told - sent - first <= set(NOT_SENT), route.endpoint


def test_the_document_has_words_for_what_is_served_alone() -> None:
    assert set(WORDS["verbs"]) == {route.name or route.verb.__name__ for route in ROUTES}


def test_facts_are_read_confirmed_replaced_and_taken_back(client: TestClient, heart: Heart) -> None:
    old, new = heart.learn("Ada lives in Paris").memory, heart.learn("The harbour closes at nine").memory

    read = client.get(f"/facts/{old.id}").json()
    confirmed = client.post(f"/facts/{old.id}/confirm", json={"source": "chat"}).json()
    gone = client.post(f"/facts/{old.id}/supersede", json={"new_id": str(new.id), "reason": "wrong"}).json()
    before = client.get(f"/facts/{new.id}/predecessors").json()["facts"]
    undone = client.post(f"/memories/{old.id}/undo", json={"reason": "it was right"}).json()
    history = client.get(f"/memories/{old.id}/history").json()["changes"]

    assert (read["content"], confirmed["confirmation_count"]) == ("Ada lives in Paris", 1)
    assert (gone["superseded_by"], [each["id"] for each in before]) == (str(new.id), [str(old.id)])
    assert (undone["to_state"], client.get(f"/memories/{old.id}").json()["memory"]["state"]) == ("superseded", "active")
    assert len(history) == 4
    assert client.get("/facts/count").json() == {"counts": {"active": 2}}


def test_many_facts_are_stored_as_they_are_and_once(client: TestClient, heart: Heart) -> None:
    body = {"facts": [{"content": "Ada sails", "idempotency_key": "a"}, {"content": "Ada sails.", "tags": ["b"]}]}

    first = client.post("/facts/deferred", json=body).json()
    again = client.post("/facts/deferred", json={"facts": body["facts"][:1]}).json()

    assert (first, again, heart.count()) == ({"stored": 2}, {"stored": 0}, {"active": 2})


def test_a_decision_is_recorded_once_found_and_resolved(client: TestClient) -> None:
    once = {
        "json": {"title": "Stay on 18", "reference": "adr-7", "files": ["a.sql"]},
        "headers": {"Idempotency-Key": "1"},
    }

    first, again = (client.post("/decisions", **once).json() for _ in range(2))
    other = client.post("/decisions", json={"title": "Move to the harbour"}).json()
    found = client.get("/decisions", params={"file": "a.sql", "limit": 5}).json()["decisions"]
    resolved = client.post("/decisions/adr-7/resolve", json={"status": "succeeded", "outcome": "no incident"}).json()

    assert first["id"] == again["id"] != other["id"]
    assert [each["id"] for each in found] == [first["id"]]
    assert (resolved["status"], client.get("/decisions/adr-7").json()["outcome"]) == ("succeeded", "no incident")
    assert client.get("/decisions", params={"status": "nonsense"}).status_code == 422


def test_steps_of_an_episode_make_a_workflow_and_its_texts_are_read(client: TestClient) -> None:
    for _ in range(3):
        episode = client.post(
            "/episodes", json={"session_id": "s-1", "artifacts": [{"kind": "file", "reference": "a"}]}
        )
        for name in ("build", "test", "ship"):
            client.post("/episodes/steps", json={"name": name, "session_id": "s-1"})
        client.post(f"/episodes/{episode.json()['id']}/close", json={"outcome": "success"})

    shown = client.post("/procedures/learn", json={"is_recorded": False}).json()["workflows"]
    kept = client.post("/procedures/learn", json={}).json()["workflows"]
    place = f"/episodes/{episode.json()['id']}"

    assert ([each["steps"] for each in kept], shown[0]["procedure"]) == ([["build", "test", "ship"]], None)
    assert [each["id"] for each in client.get("/procedures").json()["procedures"]] == [kept[0]["procedure"]["id"]]
    assert client.get(f"/procedures/{kept[0]['procedure']['id']}/related").json() == {"procedures": []}
    assert "build" in client.get(f"{place}/full-text").json()["text"]
    assert client.get(f"{place}/artifacts").json() == {"artifacts": [{"kind": "file", "reference": "a"}]}


def test_an_episode_says_when_it_ended(client: TestClient) -> None:
    began, ended = "2026-05-20T10:00:00Z", "2026-05-20T10:10:00Z"
    episode = client.post("/episodes", json={"title": "A chat", "started_at": began}).json()["id"]

    closed = client.post(f"/episodes/{episode}/close", json={"append": "Ada: hello", "ended_at": ended}).json()
    times = {"started_at": began, "ended_at": ended}
    recorded = client.post("/episodes/record", json={"detail": "Ada: hello", **times}).json()
    both = client.post("/episodes/record", json={"detail": "Ada: hello", "duration_seconds": 5, **times})

    assert (closed["ended_at"], recorded["ended_at"]) == (ended, ended)
    assert (both.status_code, "send one of them" in both.json()["detail"]) == (409, True)


def test_a_censor_is_read_and_softened_by_hand(client: TestClient, heart: Heart) -> None:
    censor = heart.add_censor("pushing to main", "use a branch", severity="block")

    client.patch(f"/censors/{censor.id}", json={"severity": "warn", "note": "a sandbox"})

    assert client.get(f"/censors/{censor.id}").json()["severity"] == "warn"


def test_threads_are_opened_and_closed_and_items_let_go(client: TestClient) -> None:
    client.put("/sessions/s-1/focus", json={"task": "move the database"})
    note = client.post("/sessions/s-1/load", json={"note": "it takes 40 minutes"}).json()["items"][0]["id"]
    opened = client.post("/sessions/s-1/threads", json={"text": "tell Ada"}).json()["open_threads"]
    closed = client.post("/sessions/s-1/threads/close", json={"thread": 0}).json()["open_threads"]

    assert (opened, closed) == (["tell Ada"], [])
    assert client.post("/sessions/s-1/unload", json={"ids": [note]}).json()["items"] == []


def test_what_happened_elsewhere_is_announced(client: TestClient, heart: Heart) -> None:
    heard: list[str] = []
    heart.subscribe("build_failed", lambda event: heard.append(event.payload["branch"]), consumer="test")

    answer = client.post("/events", json={"name": "build_failed", "payload": {"branch": "main"}})
    heart.deliver()

    assert (answer.status_code, answer.content, heard) == (204, b"", ["main"])
    assert client.post("/events", json={"name": "fact_learned"}).status_code == 422


def test_only_an_operator_rejects_a_proposed_ruling(client: TestClient) -> None:
    answer = client.post("/contradictions/5fd041e4-f919-4ffc-b3b4-c33d70428cd1/reject")

    assert answer.status_code in (403, 404)
