"""Connections to Claude that can be cut: one request at a time, so that ending a late one ends no other."""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx

API_VERSION = "2026-10-21"
MOST_IDLE = 8


class Wire:
    """The socket a client speaks through now, known by the events of its connections."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_cut = False

    def watch(self, request: httpx.Request) -> None:
        """Learn of the socket `request` makes, if it makes one."""
        request.extensions["trace"] = self._on_event

    def cut(self) -> None:
        """End what is being sent or received, and whatever would be."""
        self._is_cut = True
        if self._socket is not None:
            with suppress(OSError):  # it broke by itself
                # Closing does not wake a thread that waits for bytes; shutting down does, below TLS and at once.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _on_event(self, name: str, details: Mapping[str, Any]) -> None:
        if name.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = details["return_value"].get_extra_info("socket")
            if self._is_cut:
                self.cut()


class Line:
    """A client with one connection of its own, which stays open for the next request."""

    def __init__(self, key: str, base_url: str) -> None:
        self._key, self._base_url = key, base_url
        self.wire = Wire()
        self.process = os.getpid()
        self.close: Callable[[], object] = bool

    @cached_property
    def client(self) -> httpx.Client:
        """The client, made where it is first used, in the time of the call that needs it."""
        import httpx

        client = httpx.Client(
            base_url=self._base_url,
            verify=trusted(),
            headers={"authorization": f"Bearer {self._key}", "anthropic-version": API_VERSION},
            follow_redirects=False,  # memories go where they were meant to go, or nowhere
            event_hooks={"request": [self.wire.watch]},
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
        )
        self.close = weakref.finalize(self, client.close)
        return client


@dataclass(frozen=True, eq=False)
class Taken:
    """A line as one call has it: the next call to take the same line has another."""

    line: Line

    @property
    def client(self) -> httpx.Client:
        """The client of the line."""
        return self.line.client


class Lines:
    """The lines to one address: taken for one call, given back, or cut while the call goes on."""

    def __init__(self, key: str, base_url: str) -> None:
        self._key, self._base_url = key, base_url
        self._lock = threading.Lock()
        self._idle: list[Line] = []
        self._busy: set[Taken] = set()

    def take(self) -> Taken:
        """Return a line nobody else has."""
        with self._lock:
            mine = [line for line in self._idle if line.process == os.getpid()]  # a fork shares its parent's sockets
            line = mine.pop() if mine else Line(self._key, self._base_url)
            self._idle = mine
            taken = Taken(line)
            self._busy.add(taken)
            return taken

    def give_back(self, taken: Taken) -> None:
        """Keep a line for the next call, unless it was cut or enough are kept."""
        with self._lock:
            is_kept = taken in self._busy and len(self._idle) < MOST_IDLE
            self._busy.discard(taken)
            if is_kept:
                self._idle.append(taken.line)
        if not is_kept:
            taken.line.close()

    def cut(self, taken: Taken) -> None:
        """End what goes on over a line; one that was given back meanwhile may be another's already."""
        with self._lock:
            if taken in self._busy:
                self._busy.discard(taken)
                taken.line.wire.cut()


@cache
def trusted() -> ssl.SSLContext:
    """Return what every line trusts; reading the certificates takes longer than all else a new line needs."""
    import httpx

    return httpx.create_ssl_context()
