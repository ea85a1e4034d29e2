"""One connection over HTTP: closed when the headers of a request do not arrive in time; uvicorn would wait for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:  # the quicker of the two that is installed; they name what is needed here alike
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

HEADERS_S = 5.0
"""From the start of a connection, or of its next request; as long as uvicorn keeps an idle one."""


class Connection(Protocol):
    """A connection that may not wait for the rest of its headers: a thousand of those would be all that can be open."""

    _headers_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what arrived; where it ends amid headers, go on waiting until the moment that was set."""
        super().data_received(data)
        self._watch()

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
