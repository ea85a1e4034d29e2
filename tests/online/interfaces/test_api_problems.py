"""What can't be answered: each failure has its status, its problem, and nothing of the inside."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from api_client import PROBLEM, app_over, bearer, client_of, key_of
from cli_runs import pointed_at
from conftest import WordEmbedder
from fastapi import FastAPI
from starlette.testclient import TestClient
from stopwatch import stopwatch

from nous_online.core.errors import (
    Conflict,
    DeadlineExceeded,
    InvalidInput,
    NotFound,
    NotIsolated,
    NousError,
    Refused,
    Unavailable,
    Unsupported,
)
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.interfaces.api import keys, problems
from nous_online.interfaces.api.application import Access
from nous_online.interfaces.api.hearts import Hearts

OPEN = Access(requires_keys=False, policy=ApiPolicy(most_body_bytes=100_000, calls_per_minute=100_000))
JSON = {"Content-Type": "application/json"}


class SlowEmbedder(WordEmbedder):
    """An embedder that takes its time over what is slow, and breaks over what is broken."""

    def embed_documents(self, texts: Any) -> Any:
        if any("slow" in text for text in texts):
            time.sleep(1.5)
        if any("broken" in text for text in texts):
            raise OSError("the weights in /opt/secret are gone")
        return super().embed_documents(texts)


@pytest.fixture
def client(database_url: str) -> Iterator[TestClient]:
    with client_of(app_over(database_url, SlowEmbedder(), access=OPEN), {"X-Nous-Agent": "aria"}) as client:
        yield client


def told(answer: Any) -> tuple[int, str]:
    """The status and the kind of a problem, which has to be one."""
    assert answer.headers["content-type"] == PROBLEM, answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["instance"] == f"urn:nous:request:{answer.headers['x-request-id']}"
    return answer.status_code, body["type"].removeprefix("urn:nous:problem:")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInput, 422), (NotFound, 404), (Conflict, 409), (Refused, 409), (DeadlineExceeded, 504),
        (Unavailable, 503), (Unsupported, 503), (NotIsolated, 503), (NousError, 500),
    ],
)  # fmt: skip
def test_every_error_of_ours_has_a_status(error: type[NousError], status: int) -> None:
    assert problems.kind_of(error("it")).status == status


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.content"),
        ({"content": "   "}, "body.content"),
        ({"content": "a\x00b"}, "body.content"),
        ({"content": "x", "trust": 101}, "body.trust"),
        ({"content": "x", "trust": "50"}, "body.trust"),
        ({"content": "x", "confidence": True}, "body.confidence"),
        ({"content": "x", "learned_at": "2026-05-01T09:00:00"}, "body.learned_at"),
        ({"content": "x", "learned_at": 5}, "body.learned_at"),
        ({"content": "x", "tags": [""]}, "body.tags.0"),
        ({"content": "x", "colour": "blue"}, "body.colour"),
        ([], "body"),
    ],
)
def test_an_invalid_body_is_told_where_and_not_repeated(client: TestClient, body: object, where: str) -> None:
    answer = client.post("/facts", json=body)

    assert told(answer) == (422, "invalid-input")
    assert answer.json()["errors"][0]["where"] == where
    assert "colour': 'blue" not in answer.text


@pytest.mark.parametrize(
    ("call", "detail"),
    [
        ({"url": "/recall", "json": {"query": ""}}, "body.query: is empty; write at least a word"),
        ({"url": "/recall", "json": {"query": " "}}, "body.query: is blank; write at least a word"),
        ({"url": "/recall", "json": {"query": "a\x00b"}}, "body.query: has a NUL character (U+0000)"),
        ({"url": "/events", "json": {"name": "Bad Name"}}, "body.name: has characters that are not allowed here"),
        (
            {"url": "/facts", "json": {"content": "x", "valid_from": "2026-10-01", "valid_to": "2026-09-01"}},
            "valid_to 2026-09-01T00:00:00+00:00 lies before valid_from 2026-10-01T00:00:00+00:00",
        ),
        ({"url": "/episodes/record", "json": {}}, "nothing to record: tell the detail, a title or a summary"),
        ({"url": "/recall", "json": {"query": 5}}, "body.query: is not a text"),
        ({"url": "/recall", "json": {}}, "body.query: is missing"),
        ({"url": "/recall", "json": []}, "body: is not an object"),
        ({"url": "/recall", "json": {"query": "x", "limit": "many"}}, "body.limit: must be a whole number"),
        ({"url": "/recall", "json": {"query": "x", "limit": 10**6}}, "body.limit: is more than 200"),
        ({"url": "/recall", "json": {"query": "x", "detail": "all"}}, "body.detail: is not one of 'full',"),
        ({"url": "/facts", "json": {"content": "x", "tags": "a"}}, "body.tags: is not a list"),
        ({"url": "/facts", "json": {"content": "x", "is_pinned": 1}}, "body.is_pinned: is neither true nor false"),
        (
            {"url": "/facts", "json": {"content": "x", "conten": 1}},
            "body.conten: is not known here; see its description",
        ),
        (
            {"url": "/facts", "json": {"content": "x", "learned_at": "2026"}},
            "body.learned_at: must be a moment such as",
        ),
        ({"url": "/facts", "json": {"content": "x", "source_episode_id": "e"}}, "body.source_episode_id: is not an id"),
        (
            {"url": "/recall", "json": {"query": "x"}, "headers": {"X-Nous-Deadline": "soon"}},
            "header.X-Nous-Deadline: is not a number of seconds from 1 to 59.999",
        ),
    ],
)
def test_what_is_wrong_is_told_in_our_words(
    client: TestClient, heart: Heart, call: dict[str, Any], detail: str
) -> None:
    heart.learn("The agent is known now")

    answer = client.post(**call)

    assert told(answer) == (422, "invalid-input")
    assert answer.json()["detail"].startswith(detail)


@pytest.mark.parametrize("path", ["/facts/abc", "/memories/abc/history", "/episodes/abc/full-text"])
def test_a_part_of_a_path_that_is_no_id_is_told(client: TestClient, path: str) -> None:
    answer = client.get(path)

    assert told(answer) == (404, "not-found")
    assert answer.json()["detail"].startswith("'abc' is not an id, such as ")
    assert cast("FastAPI", client.app).openapi_schema is None  # a stranger's typo shall not cost a second


@pytest.mark.parametrize(
    "text",
    [
        '{"content": "x", "confidence": NaN}',
        '{"content": "x", "confidence": Infinity}',
        '{"content": "x", "confidence": 1e999}',
        '{"content": "x", "trust": 1e308}',
        f'{{"content": "x", "trust": {"9" * 5000}}}',
        '{"content": "\\ud800"}',
        '{"content": "a\\u0000b"}',
        '{"\\ud800": 1, "content": "x"}',
        '{"content": "x", "learned_at": "9999-12-31T23:59:59-14:00"}',
        '{"content": "x", "learned_at": "0000-01-01T00:00:00Z"}',
        "[" * 20_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"content": "x"',
        "\xff\xfe",
    ],
)
def test_hostile_json_is_the_callers_problem(client: TestClient, text: str) -> None:
    answer = client.post("/facts", content=text.encode("latin-1"), headers=JSON)

    assert told(answer)[0] in (400, 422)


@pytest.mark.parametrize("filled", [{"a": "\x00"}, {"a": {"b": "\ud800"}}, {"a": float("nan")}, {"\x00": "b"}])
def test_hostile_templates_are_the_callers_problem(client: TestClient, filled: object) -> None:
    body = json.dumps({"name": "endpoint", "kind": "pattern", "template": filled})

    answer = client.post("/procedures", content=body, headers=JSON)
    assert told(answer) == (422, "invalid-input")
    assert "Value error" not in answer.text


@pytest.mark.parametrize("path", ["/sessions/%00", "/episodes/%00", "/sessions/" + "x" * 101])
def test_hostile_paths_are_the_callers_problem(client: TestClient, path: str) -> None:
    assert told(client.get(path))[0] in (404, 422)


@pytest.mark.parametrize("text", ["not json", '{"content": "x"', "", "[" * 3])
def test_a_body_that_is_no_json_is_unreadable(client: TestClient, text: str) -> None:
    answer = client.post("/facts", content=text.encode(), headers=JSON)

    assert told(answer) == ((400, "unreadable") if text else (422, "invalid-input"))
    assert "errors" in answer.json() or "no JSON" in answer.json()["detail"]


def test_a_body_in_another_encoding_is_told_so(client: TestClient) -> None:
    answer = client.post("/facts", content='{"content": "Köln"}'.encode("latin-1"), headers=JSON)

    assert told(answer) == (400, "unreadable")
    assert answer.json()["detail"] == "the body is not in UTF-8; send one JSON object in UTF-8"


def test_a_body_has_to_be_json(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert told(client.post("/facts", content=b'{"content": "x"}', headers={"Content-Type": kind})) == (
            415,
            "not-json",
        )
    compressed = {**JSON, "Content-Encoding": "gzip"}
    assert told(client.post("/facts", content=b"x", headers=compressed)) == (415, "not-json")


def test_a_body_too_large_is_refused_said_or_unsaid(client: TestClient) -> None:
    said = client.post("/facts", json={"content": "x" * 100_001})
    unsaid = client.post("/facts", content=(b"x" * 10_000 for _ in range(11)), headers=JSON)

    assert {told(said), told(unsaid)} == {(413, "too-large")}


def test_another_method_is_told_which_there_are(client: TestClient) -> None:
    answer = client.delete("/censors")

    assert told(answer) == (405, "method-not-allowed")
    assert answer.headers["allow"] == "POST, GET"
    assert answer.json()["detail"] == "DELETE is not a method of '/censors', which takes POST, GET"
    assert client.patch("/episodes/record").headers["allow"] == "POST"


def test_a_call_ends_by_its_deadline(client: TestClient) -> None:
    took_s = stopwatch()

    answer = client.post("/facts", json={"content": "a slow fact"}, headers={"X-Nous-Deadline": "1"})

    assert told(answer) == (504, "deadline-exceeded")
    assert took_s() < 1.4


@pytest.mark.parametrize("seconds", ["0", "-1", "61", "NaN", "1e1", "", "soon"])
def test_a_deadline_that_makes_no_sense_is_refused(client: TestClient, seconds: str) -> None:
    assert told(client.get("/censors", headers={"X-Nous-Deadline": seconds})) == (422, "invalid-input")


def test_what_fails_outside_may_work_later(client: TestClient) -> None:
    answer = client.post("/facts", json={"content": "a broken fact"})

    assert told(answer) == (503, "unavailable")
    assert answer.headers["retry-after"] == "1"


def test_what_nobody_foresaw_tells_nothing_of_the_inside(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Hearts, "find_open", lambda *_: 1 / 0)

    answer = client.get("/censors", headers={"X-Request-Id": "mine-1"})

    assert told(answer) == (500, "unexpected")
    assert answer.headers["x-request-id"] == "mine-1"
    assert "division" not in answer.text
    assert "mine-1" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_request_id_that_could_do_harm_is_replaced(client: TestClient) -> None:
    given = client.get("/health", headers={"X-Request-Id": "a b<script>"}).headers["x-request-id"]

    assert len(given) == 32
    assert given.isalnum()


def test_too_many_calls_at_once_are_told_to_come_back(database_url: str, embedder: WordEmbedder) -> None:
    nobody = Access(requires_keys=False, policy=ApiPolicy(most_in_flight=0))

    with client_of(app_over(database_url, embedder, access=nobody)) as client:
        answer, health, ready = (client.get(path) for path in ("/censors", "/health", "/ready"))

    assert told(answer) == (503, "busy")
    assert answer.headers["retry-after"] == "1"
    assert (health.status_code, ready.status_code) == (200, 200)


def test_readiness_tells_what_is_wrong(client: TestClient, embedder: WordEmbedder) -> None:
    def away() -> Database:
        raise Unavailable("can't connect to PostgreSQL: connection refused; run `nous up`")

    from nous_online.interfaces.api.application import application

    with client_of(application(Hearts(opened_by=away, embedder=embedder), access=OPEN)) as stranded:
        health, ready, call = (stranded.get(path) for path in ("/health", "/ready", "/censors"))

    assert (health.status_code, ready.status_code) == (200, 503)
    assert [(each["name"], each["is_ok"]) for each in ready.json()["checks"]] == [
        ("database", False), ("schema", False), ("embedder", True), ("nights", True),
    ]  # fmt: skip
    assert "connection refused" in ready.json()["checks"][0]["message"]
    assert told(call) == (503, "unavailable")
    assert client.get("/ready").json()["is_ready"]


def test_readiness_does_not_call_in_order_what_nobody_looked_at(embedder: WordEmbedder) -> None:
    def stopped() -> Database:
        raise Unavailable("The embedded server was stopped; start it: `nous up`")

    from nous_online.interfaces.api.application import application

    with client_of(application(Hearts(opened_by=stopped, embedder=embedder), access=Access())) as stranded:
        checks = stranded.get("/ready", headers=bearer(keys.new_key("*").text)).json()["checks"]

    messages = {each["name"]: each["message"] for each in checks}
    assert (messages["embedder"], messages["nights"]) == ("in order", "not looked at")
    assert messages["database"].endswith("to an administrator's key that can be looked up")


def test_readiness_says_of_the_nights_what_the_doctor_says(
    client: TestClient, heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path: Path
) -> None:
    applied = (
        "insert into lifecycle.plans (hash, night, policy, state, applied_at) values ('a', %s, '{}', 'applied', now())"
    )
    owner.execute(applied, ["2026-06-01"])

    heart.learn("The kettle is descaled", learned_at="2026-06-03T09:00:00Z")

    nights = client.get("/ready").json()["checks"][-1]

    with pointed_at(database_url, tmp_path):
        checked = doctor.look_at_nights()
    late = "what came today about earlier days waits for a night (agents: 1)"
    assert nights == {"name": "nights", "is_ok": True, "message": checked}
    assert checked.startswith(f"the last was 2026-06-01; warning: {late}: run `nous night --backfill`")


def test_a_stranger_is_told_which_look_failed_and_an_administrator_why(
    database_url: str, database: Database, embedder: WordEmbedder, owner: psycopg.Connection
) -> None:
    admin, aria = key_of(database, "*"), key_of(database, "aria")

    with client_of(app_over(database_url, embedder, access=Access(policy=ApiPolicy(ready_memory_s=0)))) as guarded:
        assert guarded.get("/ready", headers=bearer(admin)).json()["checks"][0]["message"] == "answers"
        owner.execute("delete from migration.applied where number = 11")
        told_to = {key: guarded.get("/ready", headers=bearer(key)) for key in ("", "wrong", aria, admin)}

    schema = {key: answer.json()["checks"][1] for key, answer in told_to.items()}
    assert {answer.status_code for answer in told_to.values()} == {503}
    assert {(look["name"], look["is_ok"]) for look in schema.values()} == {("schema", False)}
    assert [("run `nous up`" in look["message"]) for look in schema.values()] == [False, False, False, True]


def test_a_stranger_whose_key_cannot_be_looked_up_learns_nothing_of_the_database(embedder: WordEmbedder) -> None:
    def away() -> Database:
        raise Unavailable("can't connect to PostgreSQL: db.internal:5432 refused")

    from nous_online.interfaces.api.application import application

    with client_of(application(Hearts(opened_by=away, embedder=embedder))) as stranded:
        answers = [stranded.get(path, headers=bearer("guess")) for path in ("/censors", "/ready")]

    assert told(answers[0]) == (503, "unavailable")
    assert not [answer for answer in answers if "db.internal" in answer.text]


def test_metrics_count_by_route_and_say_nothing_of_memories(client: TestClient) -> None:
    client.post("/facts", json={"content": "a secret of aria"})
    client.get("/sessions/secret-session")
    client.get("/secret-path")

    text = client.get("/metrics").text

    assert 'nous_http_requests_total{method="POST",route="/facts",status="200"} 1.0' in text
    assert 'route="/sessions/{session_id}"' in text
    assert 'nous_http_problems_total{kind="not-found"} 1.0' in text
    assert "nous_http_request_seconds_bucket" in text
    assert "secret" not in text
    assert "aria" not in text


def test_the_root_tells_the_way(client: TestClient) -> None:
    links = client.get("/").json()

    assert "POST /context/assemble" in links["endpoints"]
    assert {client.get(links[name]).status_code for name in ("openapi", "health", "ready", "metrics")} == {200}


def test_hearts_are_opened_when_needed_and_make_room(database_url: str, embedder: WordEmbedder) -> None:
    hearts = Hearts(opened_by=lambda: Database(database_url), embedder=embedder, most=2, works_in_background=False)

    first = hearts.of("a", seconds=5)
    second = hearts.of("b", seconds=5)
    same = hearts.of("a", seconds=5)
    hearts.of("c", seconds=5)

    assert same is first
    assert (hearts.find_open("a"), hearts.find_open("b")) == (first, None)
    assert first.agent.database is second.agent.database
    hearts.close()
    assert len(hearts) == 0


@pytest.mark.parametrize(
    ("path", "where", "message"),
    [
        ("/memories?kind=fact", "query.kind", "is not known here; 'kinds' is perhaps meant; known: kinds, state, "),
        ("/memories?kinds=fact&foo=1", "query.foo", "is not known here; known: kinds, state, "),
        ("/facts/count?state=active", "query.state", "is not known here; this path takes no parameters of a query"),
        ("/report?nigth=2026-06-01", "query.nigth", "is not known here; 'night' is perhaps meant; known: night"),
    ],
)
def test_a_query_parameter_that_is_not_known_is_refused_with_the_one_that_is_meant(
    client: TestClient, path: str, where: str, message: str
) -> None:
    answer = client.get(path)

    assert told(answer) == (422, "invalid-input")
    (error,) = answer.json()["errors"]
    assert error["where"] == where
    assert error["message"].startswith(message)
    assert answer.json()["detail"] == f"{where}: {error['message']}"


def test_a_query_of_a_body_and_of_a_probe(client: TestClient) -> None:
    learned = client.post("/facts?tag=x", json={"content": "The kiln is hot"})

    assert learned.json()["detail"] == "query.tag: is not known here; this path takes no parameters of a query"
    assert told(client.get("/memories")) == (404, "not-found"), "nothing was learned, and no agent begun"
    assert client.get("/health?t=1").status_code == 200
    assert len(client.get("/memories?" + "&".join(f"p{place}=1" for place in range(500))).json()["errors"]) == 20
