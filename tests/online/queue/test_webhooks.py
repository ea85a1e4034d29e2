"""Webhooks: each event arrives signed, at least once and in order, at a public address alone."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of
from cli_runs import pointed_at, typed
from conftest import ScriptedJudge, WordEmbedder
from listener import rested

from nous_online.core.errors import Forbidden, InvalidInput, NotFound, QuotaExceeded
from nous_online.core.rights import Rights
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.queue import webhooks
from nous_online.queue.webhooks import is_public
from nous_online.queue.worker import open_staff

PUBLIC = "https://hooks.example.org/nous"


class Receiver:
    """A server that keeps what it was sent, and answers with each status in turn, then 204."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.requests: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, format: str, *_: object) -> None:  # noqa: A002 (as the library calls it)
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook?x=1"

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    with ThreadPoolExecutor() as pool:
        pool.submit(found.server.serve_forever)
        yield found
        found.server.shutdown()
    found.server.server_close()


def test_an_event_arrives_signed_over_its_id_its_moment_and_its_body(heart: Heart, receiver: Receiver):
    heart.learn("The api is deployed on Fridays", subject="deploys")
    added = heart.add_webhook(receiver.url, "fact_learned", allows_private=True)
    learned = heart.learn("The cat sleeps on the sofa", subject="cat", user_id="ana", project_id="home").memory
    heart.publish("build_ended")

    assert heart.deliver() == 1

    ((headers, body),) = receiver.requests
    assert receiver.told[0]["type"] == "fact_learned"
    assert receiver.told[0]["data"]["agent_id"] == "aria"
    assert receiver.told[0]["data"]["memory_id"] == str(learned.id)
    assert (receiver.told[0]["data"]["user_id"], receiver.told[0]["data"]["project_id"]) == ("ana", "home")
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(added.secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["content-type"] == "application/json"


def test_a_receiver_that_fails_gets_the_same_event_again_and_the_next_one_only_then(
    heart: Heart, owner: psycopg.Connection, receiver: Receiver
):
    receiver.statuses = [500, 302]
    heart.add_webhook(receiver.url, allows_private=True)
    heart.publish("build_started", {"number": 1})
    heart.publish("build_ended", {"number": 1})

    first = heart.deliver()
    (stands,) = heart.list_webhooks()
    at_once = heart.deliver()
    rested(owner)
    redirected = heart.deliver()
    (after,) = heart.list_webhooks()
    rested(owner)
    then = heart.deliver()

    assert (first, at_once, redirected, then) == (0, 0, 0, 2)
    assert (stands.failed_count, after.failed_count) == (1, 2)
    assert "answered 500" in str(stands.last_error)
    assert stands.retry_at is not None
    assert [told["type"] for told in receiver.told] == ["build_started"] * 3 + ["build_ended"]
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 2
    (well,) = heart.list_webhooks()
    assert (well.failed_count, well.last_error, well.retry_at) == (0, None, None)


def test_the_worker_sends_what_an_agent_announced_when_nobody_has_its_heart_open(
    heart: Heart, database_url: str, embedder: WordEmbedder, judge: ScriptedJudge, receiver: Receiver
):
    heart.add_webhook(receiver.url, "build_ended", allows_private=True)
    with open_staff(database_url, embedder=embedder, judge=judge) as workers:
        workers.look()
        heart.publish("build_ended", {"number": 7})

        workers.look()
        idle = workers.look()

    assert [told["data"]["payload"] for told in receiver.told] == [{"number": 7}]
    assert idle.worked == {}


def test_one_webhook_that_fails_holds_up_no_other(heart: Heart, receiver: Receiver):
    heart.add_webhook("http://127.0.0.1:9/", allows_private=True)
    heart.add_webhook(receiver.url, allows_private=True)
    heart.publish("build_ended")

    heart.deliver()

    assert [told["type"] for told in receiver.told] == ["build_ended"]
    assert [each.failed_count for each in heart.list_webhooks()] == [1, 0]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://hooks.example.org/", "not an address of https"),
        ("https://user:pass@hooks.example.org/", "names no account"),
        ("https://hooks.example.org/#x", "no fragment"),
        ("https://hooks.example.org:99999/", "not an address of https"),
        ("https://hooks.example.org/a b", "no blanks"),
        ("https://hooks.example.org/ä", "ASCII"),
        ("file:///etc/passwd", "not an address of https"),
        ("https:///x", "not an address of https"),
        ("", "text of up to"),
        ("https://localhost/", "of this machine or network"),
        ("https://127.0.0.1/", "of this machine or network"),
        ("https://10.0.0.8/", "of this machine or network"),
        ("https://169.254.169.254/latest", "of this machine or network"),
        ("https://[::1]/", "of this machine or network"),
        ("https://[::ffff:10.0.0.8]/", "of this machine or network"),
    ],
)
def test_an_address_nothing_may_be_sent_to_is_refused(heart: Heart, url: str, told: str):
    with pytest.raises(InvalidInput, match=told):
        heart.add_webhook(url)

    assert heart.list_webhooks() == []


def test_a_mistyped_name_of_an_event_is_refused_with_those_there_are_and_a_name_of_ones_own_is_not(heart: Heart):
    with pytest.raises(InvalidInput, match="'fact_learned' is perhaps meant; there are fact_learned, episode_closed"):
        heart.add_webhook(PUBLIC, ["decision_failed", "fact_lerned"])
    with pytest.raises(InvalidInput, match="'episode_closed' is perhaps meant"):
        heart.subscribe("episodes_closed", print, consumer="brain")

    added = heart.add_webhook(PUBLIC, ["invoice_paid", "fact_learned", "decision_failed"])

    assert added.webhook.names == ["decision_failed", "fact_learned", "invoice_paid"]


PUBLIC_NUMBERS = ("93.184.216.34", "2606:2800:220:1::1")
PRIVATE_NUMBERS = (
    "192.168.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "fe80::1%eth0", "fd00::1", "64:ff9b::7f00:1", "2002:7f00:1::",  # noqa: S104 (not bound to)
)  # fmt: skip


def test_tells_public_addresses_from_private_ones_however_they_are_written():
    assert [number for number in (*PUBLIC_NUMBERS, *PRIVATE_NUMBERS) if is_public(number)] == list(PUBLIC_NUMBERS)


def test_a_name_that_leads_to_this_network_is_sent_nothing(
    heart: Heart, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
):
    port = receiver.server.server_address[1]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port)) for number in ("93.184.216.34", "127.0.0.1")]
    monkeypatch.setattr(webhooks.socket, "getaddrinfo", lambda *_, **__: found)
    heart.add_webhook(PUBLIC)
    heart.publish("build_ended")

    heart.deliver()

    assert receiver.requests == []
    assert "leads to 127.0.0.1" in str(heart.list_webhooks()[0].last_error)


def test_only_those_trusted_as_the_user_say_where_events_go_and_there_are_twenty_at_most(heart: Heart):
    crawler = heart.limited_to(Rights(20, may_pin=False, is_operator=False, holder="a crawler"))
    with pytest.raises(Forbidden, match="a crawler"):
        crawler.add_webhook(PUBLIC)
    for _ in range(20):
        heart.add_webhook(PUBLIC)

    with pytest.raises(QuotaExceeded, match="20 webhooks"):
        heart.add_webhook(PUBLIC)

    assert len(heart.list_webhooks()) == 20


def test_a_removed_webhook_is_sent_nothing_and_its_secret_is_gone(
    heart: Heart, owner: psycopg.Connection, receiver: Receiver
):
    added = heart.add_webhook(receiver.url, allows_private=True)
    heart.publish("build_ended")

    heart.remove_webhook(added.webhook.id)
    heart.deliver()

    assert receiver.requests == []
    assert owner.execute("select count(*) from heart.webhooks").fetchone() == (0,)
    with pytest.raises(NotFound):
        heart.remove_webhook(added.webhook.id)
    with pytest.raises(InvalidInput):
        heart.remove_webhook("x")


def test_rest_adds_lists_and_removes_webhooks_and_tells_the_secret_once(
    database: Database, database_url: str, embedder: WordEmbedder, judge: ScriptedJudge
):
    app = app_over(database_url, embedder, judge=judge)
    with client_of(app, bearer(key_of(database, "aria"))) as client:
        added = client.post("/webhooks", json={"url": PUBLIC, "names": ["fact_learned"]})
        listed = client.get("/webhooks").json()["webhooks"]
        refused = client.post("/webhooks", json={"url": "https://127.0.0.1/"})
        sneaky = client.post("/webhooks", json={"url": PUBLIC, "allows_private": True})
        missing = client.delete(f"/webhooks/{uuid4()}")
        removed = client.delete(f"/webhooks/{listed[0]['id']}")
        after = client.get("/webhooks").json()["webhooks"]
        reading = bearer(key_of(database, "aria", is_read_only=True))
        reader = client.post("/webhooks", json={"url": PUBLIC}, headers=reading)

    assert added.status_code == 200
    assert added.json()["secret"].startswith("whsec_")
    assert listed == [added.json()["webhook"]]
    assert "secret" not in json.dumps(listed)
    assert (refused.status_code, sneaky.status_code, missing.status_code, reader.status_code) == (422, 422, 404, 403)
    assert (removed.status_code, removed.content, after) == (204, b"", [])


def test_the_command_line_adds_lists_and_removes_webhooks(database_url: str, tmp_path: Path, receiver: Receiver):
    with pointed_at(database_url, tmp_path / "home"):
        refused = typed("webhook", "add", receiver.url)
        added = typed("webhook", "add", receiver.url, "--allow-private", "--event", "fact_learned", "--json")
        typed("learn", "Deploys need two approvals")
        worked = typed("worker", "--once")
        listed = typed("webhook", "list")
        removed = typed("webhook", "remove", added.json["id"])
        after = typed("webhook", "list", "--json")

    assert (refused.code, "not an address of https" in refused.err) == (1, True)
    assert added.json["secret"].startswith("whsec_")
    assert (worked.code, [told["type"] for told in receiver.told]) == (0, ["fact_learned"])
    assert receiver.url in listed.out
    assert "whsec_" not in listed.out
    assert (removed.code, after.json) == (0, [])
