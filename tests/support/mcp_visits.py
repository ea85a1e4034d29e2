"""A client of the official SDK, connected to the heart of a test, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
from mcp import Client, types
from twins import NousTwin

from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.mcp.mcp_server import ServedHearts, server_of
from nous_online.interfaces.mcp.tools import Visit

T = TypeVar("T")
SESSION = "mcp-test"


def door_to(heart: Heart, **reach: str) -> ServedHearts:
    agent = heart.agent
    seams: dict[str, Any] = {"embedder": agent.embedder, "judge": agent.judge, "writer": agent.writer}
    hearts = Hearts(opened_by=lambda: agent.database, works_in_background=False, **seams)
    return ServedHearts(hearts, Visit(SESSION, **reach), agent_id=agent.id)


def visit(door: ServedHearts, story: Callable[[Client], Awaitable[T]], *, mode: str = "auto") -> T:
    """Return what a story told by a connected client comes to."""

    async def connected() -> T:
        async with Client(server_of(door.heart_for), mode=mode) as client:
            return await story(client)

    return anyio.run(connected)


def call(door: ServedHearts, tool: str, **arguments: Any) -> types.CallToolResult:
    """Call one tool over a connection of its own."""
    return visit(door, lambda client: client.call_tool(tool, arguments))


def values(result: types.CallToolResult) -> dict[str, Any]:
    """Return the structured answer of a call that went well."""
    assert not result.is_error, said(result)
    assert result.structured_content is not None
    return result.structured_content


def said(result: types.CallToolResult) -> str:
    """Return the text of an answer."""
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def refusal(result: types.CallToolResult) -> str:
    """Return why a call was refused."""
    assert result.is_error
    return said(result)


@contextmanager
def mcp_over_http(url: str, *options: str, **variables: str) -> Iterator[str]:
    """Run `nous mcp --http` until the block ends, and yield the address it prints."""
    environment = {**os.environ, "NOUS_DATABASE_URL": url, **variables}
    with NousTwin("mcp", "--http", "--port", "0", "--json", *options, environment=environment) as process:
        yield json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGTERM)
