"""The page about the REST API: its examples run, and its tables are those of the code."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import time
from collections.abc import Iterator
from os import environ
from pathlib import Path

import httpx
import pytest
from cli_runs import pointed_at, typed
from twins import NousTwin

from nous_online.interfaces.api import problems
from nous_online.interfaces.api.gate import Metrics
from nous_online.interfaces.api.keys import parse_key

PAGE = (Path(__file__).parents[3] / "docs/rest.md").read_text("utf-8")


@pytest.fixture
def address(database_url: str) -> Iterator[str]:
    """A server as the page starts it, at a port that is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**environ, "NOUS_DATABASE_URL": database_url}
    with NousTwin("api", "--port", str(port), environment=environment) as process:
        wait_for(f"http://127.0.0.1:{port}/ready", process)
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode in (0, -15), said
    assert "Traceback" not in said


def wait_for(address: str, process: NousTwin) -> None:
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at and process.returncode is None:
        try:
            if httpx.get(address, timeout=10).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(f"nothing answers at {address}")


@pytest.mark.integration
def test_the_examples_of_the_page_work(address: str, database_url: str, tmp_path: Path) -> None:
    with pointed_at(database_url, tmp_path):
        made = typed("key", "create", "--agent", "aria")
    key = made.out.strip()
    commands = [line for line in PAGE.replace("\\\n", " ").splitlines() if line.startswith("curl ")]

    answers = [httpx.request(**request_of(command, address, key), timeout=30) for command in commands]

    found = parse_key(key)
    assert found is not None
    assert found.agent_id == "aria"
    assert len(commands) == 7
    assert [each.status_code for each in answers] == [200] * 7
    assert answers[1].json()["memories"][0]["text"] == "Deploys go through blue/green since May"
    assert key not in made.err


def request_of(command: str, address: str, key: str) -> dict:
    """What a curl command of the page would send."""
    words = shlex.split(command.replace("$API", address).replace("$KEY", key))
    values = {flag: [words[place + 1] for place, word in enumerate(words) if word == flag] for flag in ("-H", "-d")}
    headers = dict(each.split(": ", 1) for each in values["-H"])
    url = next(word for word in words if word.startswith("http"))
    return {
        "method": "POST" if values["-d"] else "GET",
        "url": url,
        "headers": headers,
        "content": "".join(values["-d"]),
    }


def test_the_page_names_every_problem() -> None:
    kinds = [value for value in vars(problems).values() if isinstance(value, problems.ProblemKind)]

    assert [kind.name for kind in kinds if f"`{kind.name}`" not in PAGE] == []


def test_the_page_names_every_metric() -> None:
    names = re.findall(rb"^# TYPE (\w+) ", Metrics(open_hearts=lambda: 0).text(), re.MULTILINE)

    missing = [name for name in names if name.decode() not in PAGE and not name.endswith(b"_created")]

    assert missing == []


def test_keys_are_made_listed_and_revoked_from_the_command_line(database_url: str, tmp_path: Path) -> None:
    with pointed_at(database_url, tmp_path):
        made = typed("key", "create", "--admin", "--name", "operator")
        key = parse_key(made.out.strip())
        assert key is not None
        listed, revoked = typed("key", "list", "--admin"), typed("key", "revoke", key.id, "--admin")

        assert key.agent_id == "*"
        assert key.id in listed.out
        assert key.secret not in listed.out
        assert "operator" in listed.out
        assert revoked.code == 0
        assert typed("key", "create", "--admin", "--agent", "aria").code == 1
        unknown = typed("key", "revoke", "000000000000")
        assert unknown.code == 1
        assert "say whose it is: --agent NAME, or --admin" in " ".join(unknown.err.split())
        assert "agent 'ben' has no keys" in typed("key", "list", "--agent", "ben").err
