"""One connection over HTTP: closed when the headers of a request do not arrive in time; uvicorn would wait for ever.

There are so many at most. One more takes the place of the one that has waited longest for its headers, so that
callers who send theirs get in however many connections somebody opens and leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:  # the quicker of the two that is installed; they name what is needed here alike
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

HEADERS_S = 5.0
"""From the start of a connection, or of its next request; as long as uvicorn keeps an idle one."""
MOST_CONNECTIONS = 200
"""Some systems let a process have 256 files open, and the database needs some; 64 calls are under way at most."""
BACKLOG = 40
"""Connections that are taken at once, before the oldest make room."""


class Connection(Protocol):
    """A connection that may not wait for the rest of its headers, and is one of so many."""

    _headers_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what arrived; where it ends amid headers, go on waiting until the moment that was set."""
        super().data_received(data)
        if self.transport.get_protocol() is self:
            self._watch()
        else:  # it became a WebSocket, which is the business of another protocol
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _watch(self) -> None:
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        if cycle is not None and not cycle.response_complete:
            self._stop_waiting()
        elif self._headers_due is None:
            self._headers_due = self.loop.call_later(HEADERS_S, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def _make_room(self) -> None:
        """Close the connection that has waited longest for its headers, or this one where all are being served."""
        others: Iterable[Any] = self.connections
        waiting = [
            (each._headers_due.when(), each)
            for each in others
            if isinstance(each, Connection) and each._headers_due is not None
        ]
        _, oldest = min(waiting, key=lambda found: found[0], default=(0.0, self))
        oldest._stop_waiting()
        oldest.transport.abort()
