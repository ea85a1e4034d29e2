"""Who is let in, for whom, how often, and what everybody else is told."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest
from api_client import PROBLEM, app_over, bearer, client_of, key_of, served
from conftest import WordEmbedder
from fastapi import Request
from fault_proxy import FaultProxy
from starlette.testclient import TestClient

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces import request_checks
from nous_online.interfaces.api import keys
from nous_online.interfaces.api.access import RateLimit, address_of
from nous_online.interfaces.api.application import Access, access_at, proxy_at
from nous_online.interfaces.api.problems import InterfaceProblem


@pytest.fixture
def client(database_url: str, embedder: WordEmbedder) -> Iterator[TestClient]:
    with client_of(app_over(database_url, embedder)) as client:
        yield client


def limited(url: str, embedder: WordEmbedder, **limits: int) -> TestClient:
    return client_of(app_over(url, embedder, access=Access(policy=ApiPolicy(**limits))))


@pytest.mark.parametrize("agent", ["aria", "*", "a_b", "Ärger mit Ümlauten", "x" * 100, "日本"])
def test_a_key_is_read_as_it_was_written(agent: str) -> None:
    key = keys.new_key(agent)

    assert keys.parse_key(key.text) == key
    assert re.fullmatch(r"nous_[A-Za-z0-9_-]+_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key.text)


SECRET = "A" * 43
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nous_",
        f"nous_YXJpYQ_0123456789ab_{SECRET[1:]}",
        f"nous_YXJpYQ=_0123456789ab_{SECRET}",
        f"nous_YXJpYR_0123456789ab_{SECRET}",
        f"nous__0123456789ab_{SECRET}",
        f"nous_YXJpYQ_0123456789AB_{SECRET}",
        f" nous_YXJpYQ_0123456789ab_{SECRET}",
        f"nous_YXJpYQ_0123456789ab_{SECRET}\n",
        f"nous_gICA_0123456789ab_{SECRET}",
    ],
)
def test_what_is_written_otherwise_is_no_key(text: str) -> None:
    assert keys.parse_key(text) is None


def test_only_a_hash_of_the_secret_is_kept(database: Database) -> None:
    key = keys.parse_key(key_of(database, "aria"))
    assert key is not None

    with database.transaction("aria") as connection:
        row = connection.execute("select k::text, k.secret_sha256 from heart.api_keys k").fetchone()

    assert row is not None
    assert key.secret not in row[0]
    assert row[1] == hashlib.sha256(key.secret.encode()).hexdigest()


def test_the_last_use_of_a_key_is_kept_to_the_minute(database: Database, owner: psycopg.Connection) -> None:
    key = keys.parse_key(key_of(database, "aria"))
    assert key is not None
    owner.execute("update heart.api_keys set last_used_at = now() - interval '2 minutes'")

    with database.transaction("aria") as connection:
        keys.find_valid(connection, key)
        (found,) = keys.list_keys(connection, "aria")

    assert found.last_used_at is not None
    assert datetime.now(UTC) - found.last_used_at < timedelta(minutes=1)


def test_keys_of_one_agent_are_hidden_from_another(database: Database) -> None:
    key_of(database, "aria")

    with database.transaction("boris") as connection:
        assert keys.list_keys(connection, "aria") == []


def test_whoever_has_no_good_key_is_told_the_same(client: TestClient, database: Database) -> None:
    good = key_of(database, "aria")
    soon = datetime.now(UTC) + timedelta(milliseconds=200)
    expired, revoked = key_of(database, "aria", expires_at=soon), key_of(database, "aria")
    with database.transaction("aria") as connection:
        keys.revoke(connection, "aria", revoked.split("_")[2])
        connection.execute("select pg_sleep(0.25)")
    wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
    another = good.replace(good.split("_")[1], keys.Key("boris", "", "").text.split("_")[1])
    sent = [{}, {"Authorization": good}, {"Authorization": "Basic eDp5"}]
    sent += [bearer(each) for each in ("", "nonsense", wrong, another, expired, revoked)]

    answers = [client.get("/contradictions", headers=headers) for headers in sent]

    assert client.get("/contradictions", headers=bearer(good)).status_code == 200
    assert {(each.status_code, each.headers["content-type"], each.headers["www-authenticate"]) for each in answers} == {
        (401, PROBLEM, "Bearer")
    }
    assert len({each.json()["detail"] for each in answers}) == 1


def test_what_is_another_agents_is_not_found(client: TestClient, database: Database, heart: Heart) -> None:
    episode = heart.start_episode("a secret of aria's")

    theirs = client.get(f"/episodes/{episode.id}", headers=bearer(key_of(database, "boris")))
    own = client.get(f"/episodes/{episode.id}", headers=bearer(key_of(database, "aria")))

    assert (theirs.status_code, own.status_code) == (404, 200)
    assert "secret" not in theirs.text


def test_a_key_acts_for_its_own_agent_only(client: TestClient, database: Database) -> None:
    aria = key_of(database, "aria")

    assert client.get("/censors", headers=bearer(aria, **{"X-Nous-Agent": "aria"})).status_code == 200
    assert client.get("/censors", headers=bearer(aria, **{"X-Nous-Agent": "boris"})).status_code == 403
    assert client.post("/consolidate", json={"dry_run": True}, headers=bearer(aria)).status_code == 403


def test_an_administrator_acts_for_the_agent_that_is_named(
    client: TestClient, database: Database, heart: Heart
) -> None:
    admin = key_of(database, "*")

    named = client.post(
        "/facts", json={"content": "Deploys are blue"}, headers=bearer(admin, **{"X-Nous-Agent": "aria"})
    )
    hidden = client.get("/censors", headers=bearer(admin, **{"X-Nous-Agent": "*"}))

    assert named.status_code == 200
    assert heart.count() == {"active": 1}
    assert hidden.status_code == 422


def test_nobody_can_be_called_what_stands_for_all(database: Database, embedder: WordEmbedder) -> None:
    with pytest.raises(InvalidInput, match="stands for administrators"):
        Heart.open("*", database=database, embedder=embedder)


@pytest.mark.parametrize("requires_keys", [True, False])
def test_a_call_ends_by_its_deadline_where_the_database_is_away(
    database_url: str, database: Database, embedder: WordEmbedder, *, requires_keys: bool
) -> None:
    callers = [
        bearer(key_of(database, each)) if requires_keys else {"X-Nous-Agent": each} for each in ("aria", "boris")
    ]
    with FaultProxy.before(database_url) as proxy:
        app = app_over(proxy.url(database_url), embedder, access=Access(requires_keys=requires_keys))
        with client_of(app, {"X-Nous-Deadline": "1"}) as client:
            assert client.post("/facts", json={"content": "roses"}, headers=callers[0]).is_success
            proxy.refuse()
            began = time.monotonic()

            answer = client.post("/facts", json={"content": "tulips"}, headers=callers[1])

    assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
    assert time.monotonic() - began < 5


def test_one_call_too_many_is_told_when_to_come_again(
    database_url: str, database: Database, embedder: WordEmbedder
) -> None:
    aria, boris = key_of(database, "aria"), key_of(database, "boris")

    with limited(database_url, embedder, calls_per_minute=2) as client:
        answers = [client.get("/contradictions", headers=bearer(aria)) for _ in range(3)]
        other = client.get("/contradictions", headers=bearer(boris))

    assert [each.status_code for each in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["retry-after"]) <= 61
    assert other.status_code == 200


def test_strangers_can_not_guess_for_ever(database_url: str, database: Database, embedder: WordEmbedder) -> None:
    aria = key_of(database, "aria")

    with limited(database_url, embedder, strangers_per_minute=2) as client:
        known = client.get("/contradictions", headers=bearer(aria)).status_code
        guesses = [client.get("/contradictions", headers=bearer("guess")).status_code for _ in range(3)]
        still = client.get("/contradictions", headers=bearer(aria)).status_code

    assert (known, guesses, still) == (200, [401, 401, 429], 200)


def test_who_guesses_shuts_nobody_of_the_same_address_out(
    database_url: str, database: Database, embedder: WordEmbedder
) -> None:
    aria, late = key_of(database, "aria"), key_of(database, "aria")
    wrong = f"{aria[:-1]}{'A' if aria[-1] != 'A' else 'B'}"
    policy = ApiPolicy(strangers_per_minute=2, key_memory_s=0.0)

    with client_of(app_over(database_url, embedder, access=Access(policy=policy))) as client:
        guesses = [client.get("/contradictions", headers=bearer(each)).status_code for each in ["x", wrong] * 3]
        good = [client.get("/contradictions", headers=bearer(each)).status_code for each in [aria, late] * 3]

    assert guesses == [401, 401, 429, 429, 429, 429]
    assert good == [200] * 6


def test_addresses_made_up_do_not_fill_the_memory() -> None:
    limit = RateLimit(1, most_callers=100)
    before = len(limit._callers)

    for number in range(1_000):
        limit.count(f"10.0.{number // 250}.{number % 250}")

    assert (before, len(limit._callers)) == (0, 100)
    with pytest.raises(InterfaceProblem):
        limit.count("10.0.3.249")


@pytest.mark.parametrize(
    ("host", "counted_as"),
    [("192.0.2.1", "192.0.2.1"), ("2001:db8::1:2", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"), ("x", "x")],
)
def test_an_ipv6_network_counts_as_one_address(host: str, counted_as: str) -> None:
    assert address_of(Request({"type": "http", "client": (host, 1), "headers": []})) == counted_as


@pytest.mark.parametrize(("proxy", "last"), [(None, 429), ("192.0.2.7", 429), ("127.0.0.0/8", 401)])
def test_only_a_proxy_that_was_named_may_say_who_calls(
    database_url: str, embedder: WordEmbedder, proxy: str | None, last: int
) -> None:
    app = app_over(database_url, embedder, access=Access(policy=ApiPolicy(strangers_per_minute=2)))

    with served(app, proxy=proxy) as address:
        answers = [
            httpx.get(f"{address}/contradictions", headers={"X-Forwarded-For": f"192.0.2.{number}"}).status_code
            for number in range(3)
        ]

    assert answers == [401, 401, last]


WHOLE = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("sent", [[b""], [b"GET /health HTT"], [WHOLE[:-2]], [WHOLE, WHOLE[:-2]]])
def test_a_connection_that_does_not_finish_its_headers_is_closed(
    database_url: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch, sent: list[bytes]
) -> None:
    monkeypatch.setattr(request_checks, "HEADERS_S", 0.3)
    with served(app_over(database_url, embedder), proxy=None) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=3) as slow:
            for part in sent[:-1]:
                slow.sendall(part)
                assert b" 200 OK" in slow.recv(4096)
            slow.sendall(sent[-1])
            while slow.recv(4096):
                pass

        assert httpx.get(f"{address}/health").status_code == 200


def test_a_call_that_takes_long_keeps_its_connection(
    database_url: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_checks, "HEADERS_S", 0.2)
    app = app_over(database_url, embedder)

    @app.get("/slow")
    async def slow() -> str:
        await asyncio.sleep(0.6)
        return "done"

    with served(app, proxy=None) as address, httpx.Client(base_url=address) as client:
        assert [client.get("/slow").json(), client.get("/slow").json()] == ["done", "done"]


@pytest.mark.parametrize("text", ["*", "", "proxy.example", "10.0.0.0/99"])
def test_a_proxy_is_named_by_its_address(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid address of a proxy"):
        proxy_at(text)

    assert proxy_at("127.0.0.1") == "127.0.0.1/32"


def test_a_revoked_key_is_forgotten_within_seconds(
    database_url: str, database: Database, embedder: WordEmbedder
) -> None:
    aria = key_of(database, "aria")
    policy = ApiPolicy(key_memory_s=0.05)

    with client_of(app_over(database_url, embedder, access=Access(policy=policy))) as client:
        before = client.get("/contradictions", headers=bearer(aria)).status_code
        with database.transaction("aria") as connection:
            keys.revoke(connection, "aria", aria.split("_")[2])
            connection.execute("select pg_sleep(0.1)")
        after = client.get("/contradictions", headers=bearer(aria)).status_code

    assert (before, after) == (200, 401)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8420", ""])
def test_on_loopback_another_name_is_refused(database_url: str, embedder: WordEmbedder, host: str) -> None:
    app = app_over(database_url, embedder, access=access_at("127.0.0.1", requires_keys=False))

    with client_of(app) as client:
        answers = [
            client.get("/health", headers={"Host": name}).status_code for name in (host, "localhost:8420", "[::1]:1")
        ]

    assert answers == [421, 200, 200]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "memory.example"])  # noqa: S104 (none is listened at)
def test_without_keys_nothing_but_this_machine_is_served(host: str) -> None:
    with pytest.raises(InvalidInput, match="--no-keys serves this machine alone"):
        access_at(host, requires_keys=False)

    assert access_at(host, requires_keys=True).requires_keys


def test_a_browser_of_another_origin_is_told_nothing(client: TestClient, database: Database) -> None:
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}

    asked = client.options("/facts", headers=origin)
    posted = client.post("/facts", headers=bearer(key_of(database, "aria"), **origin), json={"content": "x y"})

    assert asked.status_code == 405
    assert not [name for name in (*asked.headers, *posted.headers) if name.startswith("access-control")]


def test_reading_another_agent_by_a_mistyped_name_creates_none_and_names_the_nearest(
    client: TestClient, database: Database
) -> None:
    admin = key_of(database, "*")
    aria, arai = (bearer(admin, **{"X-Nous-Agent": name}) for name in ("aria", "arai"))
    assert client.post("/facts", json={"content": "Cats like fish"}, headers=aria).status_code == 200

    answers = [
        client.get("/contradictions", headers=arai),
        client.post("/recall", json={"query": "fish"}, headers=arai),
    ]

    assert [each.status_code for each in answers] == [404, 404]
    assert all("agent 'arai' is not known here; known are: aria" in each.json()["detail"] for each in answers)
    assert client.post("/facts", json={"content": "Cats like fish"}, headers=arai).status_code == 200


def test_reading_the_agent_that_nobody_named_creates_none(
    client: TestClient, database: Database, owner: psycopg.Connection
) -> None:
    admin = bearer(key_of(database, "*"))

    answer = client.get("/facts/count", headers=admin)

    assert (answer.status_code, "agent 'default' is not known here" in answer.json()["detail"]) == (404, True)
    assert owner.execute("select id from heart.agents where id = 'default'").fetchall() == []
    assert client.post("/facts", json={"content": "Cats like fish"}, headers=admin).status_code == 200
    assert client.get("/facts/count", headers=admin).status_code == 200


def test_a_second_server_of_a_process_writes_each_line_once_and_where_standard_error_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(keys.TRAIL, "handlers", [])

    monkeypatch.setattr("sys.stderr", first)
    keys.show_trail()
    monkeypatch.setattr("sys.stderr", second)
    keys.show_trail()
    first.close()
    keys.note_call(status=403, agent="aria")

    assert [json.loads(line)["status"] for line in second.getvalue().splitlines()] == [403]


def test_a_call_that_is_refused_begins_no_agent(
    client: TestClient, database: Database, owner: psycopg.Connection
) -> None:
    ghost = bearer(key_of(database, "ghost"))
    count = "select count(*) from heart.facts f join heart.agents a on a.id = f.agent_id where a.id = 'ghost'"

    empty = client.post("/facts", headers=ghost, json={"content": " "})
    unknown = client.post("/facts", headers=ghost, json={"content": "The kiln is hot", "replaces": [NOBODY]})
    begun = owner.execute("select id from heart.agents where id = 'ghost'").fetchall()
    learned = client.post("/facts", headers=ghost, json={"content": "The kiln is hot"})

    assert (empty.status_code, unknown.status_code, learned.status_code) == (422, 404, 200), unknown.text
    assert begun == []
    assert owner.execute(count).fetchone() == (1,)
