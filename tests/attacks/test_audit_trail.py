"""The audit trail says who called what, from where, and how it ended; it is shown, and tells nothing of memories."""

from __future__ import annotations

import json
import logging
import os
import signal
from typing import Any

import httpx
import pytest
from api_client import app_over, bearer, client_of, key_of
from conftest import WordEmbedder
from mcp import Client
from mcp_visits import door_to, visit
from twins import NousTwin
from typer.testing import CliRunner

from nous_online.core.policy import ApiPolicy
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.application import Access
from nous_online.interfaces.api.keys import TRAIL, note_call
from nous_online.interfaces.cli.command_line import application
from nous_pipelines.orchestration.instance import free_port

SECRET = "the safe opens with 4711"  # noqa: S105 (what no log may hold)


class Trail(logging.Handler):
    """Every line that was noted."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, dict[str, Any]]] = []
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelno, json.loads(record.getMessage())))
        self.text += record.getMessage()


@pytest.fixture
def trail(monkeypatch: pytest.MonkeyPatch) -> Trail:
    """What is noted during a test."""
    heard = Trail()
    monkeypatch.setattr(TRAIL, "handlers", [heard])
    monkeypatch.setattr(TRAIL, "propagate", False)
    TRAIL.setLevel(logging.INFO)
    return heard


def test_a_call_leaves_one_line_with_who_what_and_how_it_ended(
    database_url: str, database: Database, embedder: WordEmbedder, trail: Trail
) -> None:
    key = key_of(database, "aria")

    with client_of(app_over(database_url, embedder)) as client:
        client.post("/facts", json={"content": SECRET, "tags": [SECRET]}, headers=bearer(key, Cookie=SECRET))
        client.get(f"/facts/{SECRET}", params={"q": SECRET}, headers=bearer(key))

    (level, noted), (_, other) = trail.lines
    assert level == logging.INFO
    assert {name: noted[name] for name in ("event", "key", "agent", "method", "route", "status")} == {
        "event": "call", "key": key.split("_")[2], "agent": "aria", "method": "POST", "route": "/facts", "status": 200,
    }  # fmt: skip
    assert noted["address"] == "testclient"
    assert {"at", "ms", "request"} <= noted.keys()
    assert other["status"] >= 400
    assert SECRET not in trail.text
    assert key.rpartition("_")[2] not in trail.text


def test_an_administrators_call_names_the_agent_it_is_for(
    database_url: str, database: Database, embedder: WordEmbedder, trail: Trail
) -> None:
    admin = key_of(database, "*")

    with client_of(app_over(database_url, embedder)) as client:
        client.get("/contradictions", headers=bearer(admin, **{"X-Nous-Agent": "boris"}))

    assert [(noted["key"], noted["agent"]) for _, noted in trail.lines] == [(admin.split("_")[2], "boris")]


def test_keys_that_are_refused_and_calls_too_many_are_warnings(
    database_url: str, database: Database, embedder: WordEmbedder, trail: Trail
) -> None:
    good, read_only = key_of(database, "aria"), key_of(database, "aria", is_read_only=True)
    wrong = f"{good[:-1]}{'A' if good[-1] != 'A' else 'B'}"
    policy = ApiPolicy(calls_per_minute=1)

    with client_of(app_over(database_url, embedder, access=Access(policy=policy))) as client:
        sent = [wrong, "nonsense", good, good]
        answers = [client.get("/contradictions", headers=bearer(each)).status_code for each in sent]
        answers.append(client.post("/facts", json={"content": "x y"}, headers=bearer(read_only)).status_code)

    told = [(level, noted["status"], noted.get("problem"), noted.get("key")) for level, noted in trail.lines]
    assert answers == [401, 401, 200, 429, 403]
    assert told == [
        (logging.WARNING, 401, "key-refused", good.split("_")[2]),
        (logging.WARNING, 401, "key-refused", None),
        (logging.INFO, 200, None, good.split("_")[2]),
        (logging.WARNING, 429, "too-many-requests", good.split("_")[2]),
        (logging.WARNING, 403, "forbidden", read_only.split("_")[2]),
    ]


def test_nobody_adds_a_line_of_their_own(trail: Trail) -> None:
    note_call(status=200, agent='x\n{"event": "call"}\r\u2028\x1b[2J', key="é")

    assert len(trail.lines) == 1
    assert trail.text.isascii()
    assert trail.text.isprintable()


def test_a_call_of_a_tool_names_tool_holder_and_agent_and_nothing_it_was_told(heart: Heart, trail: Trail) -> None:
    async def story(client: Client) -> None:
        await client.call_tool("remember", {"content": SECRET})
        await client.call_tool("forget", {"memory_id": "nonsense", "reason": SECRET})

    visit(door_to(heart), story)

    noted = [{name: line[name] for name in ("tool", "agent", "holder", "outcome")} for _, line in trail.lines]
    who = {"agent": "aria", "holder": "a caller without a key"}
    assert noted == [{"tool": "remember", "outcome": "done", **who}, {"tool": "forget", "outcome": "failed", **who}]
    assert SECRET not in trail.text


def test_keys_that_are_made_revoked_and_replaced_are_warnings(
    database_url: str, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()
    run = CliRunner().invoke

    made = json.loads(run(application(), ["key", "create", "--agent", "aria", "--json"]).stdout)
    new = json.loads(run(application(), ["key", "rotate", made["id"], "--agent", "aria", "--json"]).stdout)
    run(application(), ["key", "revoke", new["id"], "--agent", "aria"])

    settings.cache_clear()
    assert [(level, noted["event"], noted["key"], noted["agent"]) for level, noted in trail.lines] == [
        (logging.WARNING, "key_created", made["id"], "aria"),
        (logging.WARNING, "key_rotated", new["id"], "aria"),
        (logging.WARNING, "key_revoked", new["id"], "aria"),
    ]
    assert made["key"].rpartition("_")[2] not in trail.text


def test_the_trail_of_an_api_is_really_shown(database_url: str) -> None:
    port = free_port(0)
    environment = {**os.environ, "NOUS_DATABASE_URL": database_url}
    TRAIL.setLevel(logging.NOTSET)  # as in a process that has just begun
    with NousTwin("api", "--port", str(port), environment=environment) as process:
        said = list[str]()
        while "startup complete" not in "".join(said[-1:]):
            said.append(process.stderr.readline())
            assert said[-1], said
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as caller:
            caller.get("/health")
            caller.get("/contradictions")
        process.send_signal(signal.SIGTERM)
        said += process.communicate()[1].splitlines()

    lines = [json.loads(line) for line in said if line.startswith("{")]
    assert [(line["level"], line["route"], line["status"]) for line in lines] == [
        ("info", "/health", 200),
        ("warning", "/contradictions", 401),
    ]
