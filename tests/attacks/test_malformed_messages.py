"""Whatever a client of MCP sends that is no message is answered with an error, and the next message is served."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial

import httpx
import pytest
from mcp_visits import mcp_over_http
from twins import NousTwin

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
NOW = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": NOW,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def recall(arguments: str) -> bytes:
    """Return a call as it stands on a line; what it is called with need be no JSON."""
    call = {"name": "recall", "arguments": "HERE", "_meta": ENVELOPE}
    text = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    return text.replace('"HERE"', arguments).encode()


def nested(depth: int) -> bytes:
    return recall(f'{{"query": {"[" * depth}{"]" * depth}}}')


UNREADABLE = {
    "no JSON": b"nonsense",
    "half a character": recall(r'{"query": "cats \ud83d"}'),
    "the other half in a name": recall(r'{"\udc31": 1}'),
    "half a character as id": rb'{"jsonrpc": "2.0", "id": "\ud800", "method": "ping"}',
    "no end of brackets": nested(100_000),
    "no end of digits": recall(f'{{"query": {"9" * 5_000}}}'),
    "no text": b'\xff\xfe{"jsonrpc"',
    "the half of a message": recall("{}")[:40],
}
NO_MESSAGES = {
    "a list": b"[]",
    "a batch": b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]',
    "a number": b"5",
    "null": b"null",
    "no method": b'{"jsonrpc": "2.0", "id": 5}',
    "no version": b'{"id": 5, "method": "ping"}',
    "another version": b'{"jsonrpc": "1.0", "id": 5, "method": "ping"}',
    "parameters in a list": b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}',
}


@pytest.fixture(scope="module")
def stdio() -> Iterator[NousTwin]:
    """A server over stdio that has greeted its client; none of these messages needs a database."""
    environment = {**os.environ, "NOUS_DATABASE_URL": NOWHERE}
    with NousTwin("mcp", environment=environment) as process:
        assert said(process, json.dumps(HELLO).encode())["result"]["serverInfo"]["name"] == "nous"
        yield process


def said(process: NousTwin, line: bytes) -> dict:
    """Say a line, and return the next that is answered."""
    process.stdin.buffer.write(line + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        *(pytest.param(line, PARSE_ERROR, id=name) for name, line in UNREADABLE.items()),
        *(pytest.param(line, INVALID_REQUEST, id=name) for name, line in NO_MESSAGES.items()),
    ],
)
def test_a_line_that_is_no_message_is_answered_over_stdio(stdio: NousTwin, line: bytes, code: int) -> None:
    answer = said(stdio, line)

    assert (answer["id"], answer["error"]["code"]) == (None, code)
    assert said(stdio, b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}')["id"] == 7


@pytest.fixture(scope="module")
def post() -> Iterator[Callable[..., httpx.Response]]:
    """Post to a server over HTTP, with one client for all messages: making one takes longer than the answers."""
    with mcp_over_http(NOWHERE) as url, httpx.Client(timeout=30) as client:
        yield partial(client.post, url)


DEEP = {f"{depth} brackets": nested(depth) for depth in (150, 900, 960, 980, 1_000, 3_000)}


@pytest.mark.parametrize("name", [*UNREADABLE, *NO_MESSAGES, *DEEP])
def test_a_body_that_is_no_message_is_answered_over_http(post: Callable[..., httpx.Response], name: str) -> None:
    body = {**UNREADABLE, **NO_MESSAGES, **DEEP}[name]
    modern = {**ACCEPTED, "MCP-Protocol-Version": NOW, "Mcp-Method": "tools/call", "Mcp-Name": "recall"}
    greeted = post(json=HELLO, headers=ACCEPTED)
    session = {**ACCEPTED, "Mcp-Session-Id": greeted.headers["mcp-session-id"]}

    answers = [post(content=body, headers=headers) for headers in (modern, session)]

    assert [answer.status_code < 500 for answer in answers] == [True, True]
    assert all('"error":' in answer.text or '"isError":true' in answer.text for answer in answers)
