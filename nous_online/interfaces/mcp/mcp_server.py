"""Serving the protocol over stdio or HTTP until the client leaves or somebody asks to stop."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp

from nous_online.core.errors import Unavailable
from nous_online.core.rights import WITHOUT_KEY
from nous_online.heart import Heart
from nous_online.interfaces.mcp.acts import Visit
from nous_online.interfaces.mcp.heart_provider import SharedHeart, session_of
from nous_online.interfaces.mcp.key_authentication import Doors, Keyed
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
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(door.close)


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


def open_to_all(door: SharedHeart) -> Served:
    """Return what serves one agent's memory to every program of this machine."""
    return Served(server_of(place_of(door)).streamable_http_app(host=HOST), door.warm_up, door.close)


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

    from nous_online.interfaces.api.connections import Connection

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    quiet = uvicorn.Config(
        served.application,
        http=Connection,
        log_config=None,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
        proxy_headers=False,
    )
    server, heard = Server(quiet), list[int]()

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
