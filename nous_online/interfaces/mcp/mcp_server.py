"""Serving the protocol over stdio or HTTP until the client leaves or somebody asks to stop."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import AsyncIterable, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.types import ASGIApp

from nous_online.core.errors import Unavailable
from nous_online.core.rights import WITHOUT_KEY
from nous_online.heart import Heart
from nous_online.interfaces.audit import show_trail
from nous_online.interfaces.mcp.acts import Visit
from nous_online.interfaces.mcp.heart_provider import SharedHeart, session_of
from nous_online.interfaces.mcp.key_authentication import Doors, Keyed, Tokened
from nous_online.interfaces.mcp.protocol_server import Asked, Place, server_of

HOST = "127.0.0.1"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 5
"""How long connections may take to end; a call goes on to its own end."""


def place_of(door: SharedHeart) -> Place:
    """Return who a request is for where everybody is the same agent."""

    @contextmanager
    def place(asked: Asked) -> Generator[tuple[Heart, Visit]]:
        headers = getattr(asked.request, "headers", {})
        visit = replace(door.visit, session_id=session_of(headers, door.visit.session_id))
        with door.entered() as heart:
            yield heart.limited_to(WITHOUT_KEY), visit

    return place


def serve_stdio(door: SharedHeart) -> None:
    """Serve the one client at stdin and stdout until it closes them; Ctrl-C and SIGTERM end the process."""
    anyio.run(stdio, door)


async def stdio(door: SharedHeart) -> None:
    """Serve one connection; whatever a library prints meanwhile goes to stderr."""
    server = server_of(place_of(door))
    async with anyio.create_task_group() as group:
        group.start_soon(until_signal, partial(leave, door))
        group.start_soon(anyio.to_thread.run_sync, door.warm_up)
        async with stdio_server() as (incoming, outgoing):
            forward, wellformed = anyio.create_memory_object_stream[SessionMessage | Exception]()
            group.start_soon(refuse_malformed, incoming, outgoing.send, forward)
            await server.run(wellformed, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(door.close)


async def refuse_malformed(
    incoming: AsyncIterable[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
    forward: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass on what a client says, and answer what is no message: nobody waits for an answer to it in vain."""
    async with forward:
        async for message in incoming:
            if isinstance(message, Exception):
                await answer(SessionMessage(refusal_of(message)))
            else:
                await forward.send(message)


def refusal_of(error: Exception) -> types.JSONRPCError:
    """Return what a client is told of a line that is no JSON, such as one with half a character, or no message.

    It names no id: where a line can't be read, its id can't be believed (JSON-RPC 2.0, section 5).
    """
    is_json = isinstance(error, ValidationError) and all(each["type"] != "json_invalid" for each in error.errors())
    code, said = (types.INVALID_REQUEST, "Invalid request") if is_json else (types.PARSE_ERROR, "Parse error")
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=said))


def leave(door: SharedHeart, number: int) -> None:
    """End the process after the calls that have begun: the thread that reads stdin can't be woken otherwise."""
    door.close()
    sys.stderr.flush()
    os._exit(128 + number)


async def until_signal(heard: Callable[[int], None]) -> None:
    """Wait for somebody to ask to stop, and tell who listens, in a thread."""
    if sys.platform == "win32":
        await anyio.sleep_forever()
    with anyio.open_signal_receiver(*SIGNALS) as numbers:
        async for number in numbers:
            await anyio.to_thread.run_sync(heard, number)


def listening(port: int) -> socket.socket:
    """Return a socket that listens on this machine alone; raise `Unavailable` when the port is taken."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        message = f"port {port} of {HOST} can't be listened on: {error.strerror}; name a free one with --port"
        raise Unavailable(message) from error


@dataclass(frozen=True)
class Served:
    """What is served over HTTP, and what is told when it starts and stops."""

    application: ASGIApp
    warm_up: Callable[[], None]
    close: Callable[[], None]


def open_by_token(door: SharedHeart, token: str) -> Served:
    """Return what serves one agent's memory to whoever has the token."""
    guarded = Tokened(server_of(place_of(door)).streamable_http_app(host=HOST), token)
    return Served(guarded, door.warm_up, door.close)


def open_by_key(doors: Doors) -> Served:
    """Return what serves to whoever holds a key the memory of its agent."""
    guarded = Keyed(server_of(doors.place).streamable_http_app(host=HOST), doors)
    return Served(guarded, doors.warm_up, doors.close)


def serve_http(served: Served, listener: socket.socket) -> int | None:
    """Serve many clients over streamable HTTP at `/mcp` until a signal comes, and return that signal."""
    return anyio.run(http, served, listener)


async def http(served: Served, listener: socket.socket) -> int | None:
    """Serve connections of this machine; requests of web pages are refused by their Host and Origin."""
    import uvicorn

    from nous_online.interfaces.api.connections import BACKLOG, Connection

    class UnsignalledServer(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    quiet = uvicorn.Config(
        served.application,
        http=Connection,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
        proxy_headers=False,
    )
    show_trail()
    server, heard = UnsignalledServer(quiet), list[int]()

    def stop(number: int) -> None:
        heard.append(number)
        server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(until_signal, stop)
        group.start_soon(anyio.to_thread.run_sync, served.warm_up)
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(served.close)
    return heard[0] if heard else None
