"""`nous mcp` as clients start it: over stdio and HTTP, to its end."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp_visits import values
from twins import NousTwin
from typer.testing import CliRunner

from nous_online.interfaces.cli.command_line import application
from nous_online.interfaces.projects import project_of
from nous_online.interfaces.request_checks import listening

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def environment(database_url: str) -> dict[str, str]:
    return {**os.environ, "NOUS_DATABASE_URL": database_url, "NOUS_AGENT": "aria"}


@pytest.fixture
def process(environment: dict[str, str]) -> Iterator[NousTwin]:
    """A server over stdio that has greeted its client."""
    with NousTwin("mcp", environment=environment) as process:
        assert greeting(process)["serverInfo"]["name"] == "nous"
        yield process


def greeting(process: NousTwin) -> dict[str, Any]:
    """Greet a server, and return what it says."""
    process.stdin.write(json.dumps(HELLO) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())["result"]


def called(process: NousTwin, name: str, **arguments: str) -> dict[str, Any]:
    """Call a tool of a server that was greeted, and return its answer."""
    asked = {"name": name, "arguments": arguments}
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": asked}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert (answer["id"], answer["result"]["isError"]) == (name, False), answer
    return answer["result"]


def test_a_client_over_stdio_goes_on_with_the_session_it_names(environment, owner):
    with NousTwin("mcp", "--session", "s1", environment=environment) as process:
        greeting(process)
        process.stdin.write(json.dumps(READY) + "\n")
        called(process, "remember", content="Deploys go through blue/green")
        called(process, "focus", task="deploy on Monday")
        found = called(process, "recall", query="how do we deploy?")["structuredContent"]

    assert found["memories"][0]["text"] == "Deploys go through blue/green"
    asked = "select agent_id, session_id, task from heart.working_memory"
    assert owner.execute(asked).fetchall() == [("aria", "s1", "deploy on Monday")]


def test_a_server_ends_when_its_client_leaves_with_a_call_under_way(process, owner):
    asked = {"name": "remember", "arguments": {"content": "The kettle is on"}}
    for message in (READY, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}):
        process.stdin.write(json.dumps(message) + "\n")

    out, err = process.communicate(timeout=30)

    assert process.returncode == 0
    assert err == ""
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    whole = "select (select count(*) from heart.facts) = (select count(*) from lifecycle.events)"
    assert owner.execute(whole).fetchone() == (True,)


def test_ctrl_c_ends_a_server_whose_client_stays(process):
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=30) == 130


def test_clients_over_http_have_sessions_of_their_own_and_web_pages_are_refused(environment, owner):
    with NousTwin("mcp", "--http", "--port", "0", "--json", environment=environment) as process:
        url = json.loads(process.stdout.readline())["url"]

        async def story() -> None:
            for mode in ("auto", "legacy", "legacy"):
                async with Client(url, mode=mode) as client:
                    values(await client.call_tool("focus", {"task": f"in mode {mode}"}))

        anyio.run(story)
        refused = [
            httpx.post(url, json=HELLO, headers={name: "http://evil.example"}).status_code
            for name in ("Host", "Origin")
        ]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)

    assert process.returncode == 0
    assert refused == [421, 403]
    sessions = owner.execute("select session_id, task from heart.working_memory order by task").fetchall()
    assert [task for _, task in sessions] == ["in mode auto", "in mode legacy", "in mode legacy"]
    assert len({session for session, _ in sessions}) == 3


def test_a_port_that_is_taken_is_named_with_the_way_out():
    with listening(0) as listener:
        port = listener.getsockname()[1]
        answer = CliRunner().invoke(application(), ["mcp", "--http", "--port", str(port)])

    assert answer.exit_code == 1
    assert f"port {port} of 127.0.0.1 is taken; name a free one with --port" in answer.stderr
    assert "name a free one with --port" in answer.stderr


def test_a_name_that_can_be_no_agents_is_refused_before_anything_is_served():
    answer = CliRunner().invoke(application(), ["mcp", "--agent", " "])

    assert answer.exit_code == 2
    assert "agent" in answer.stderr


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("nous_online.interfaces.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)

    answer = CliRunner().invoke(application(), ["mcp"])

    assert answer.exit_code == 1
    assert "`nous mcp` needs the extra `mcp`" in answer.stderr
    assert "pip install 'nous-pipelines[mcp]'" in answer.stderr


def test_with_repository_a_client_meets_the_memory_of_the_repository_it_works_in(environment, owner, tmp_path):
    (tmp_path / "atlas" / ".git").mkdir(parents=True)
    environment["CLAUDE_PROJECT_DIR"] = str(tmp_path / "atlas")

    with NousTwin("mcp", "--repository", environment=environment) as process:
        greeting(process)
        process.stdin.write(json.dumps(READY) + "\n")
        called(process, "remember", content="Retries happen three times")

    (project,) = owner.execute("select project_id from heart.facts").fetchone()
    assert project == project_of(tmp_path / "atlas")
