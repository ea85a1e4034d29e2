"""What HTTP doors ask of a request: whom it means, whether a page of another site sent it, and what lets it in.

A connection is closed when the headers of a request do not arrive in time; uvicorn would wait for ever. There are so
many at most. One more takes the place of the one that has waited longest for its headers, so that callers who send
theirs get in however many connections somebody opens and leaves.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from nous_online.core.settings import settings

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:  # the quicker of the two that is installed; they name what is needed here alike
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
OWN_SITE = (None, "same-origin", "none")
"""What `Sec-Fetch-Site` says of our own pages, of an address that was typed, and of programs, which send none."""
TOKEN = "token"  # noqa: S105 (its name in a URL)
TOKEN_BYTES = 24


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(value: str) -> str:
    """Return the name in a Host header, without the port."""
    name, colon, port = value.rpartition(":")
    return (name if colon and port.isdecimal() else value).lower()


def is_foreign(headers: Headers) -> bool:
    """Tell whether a browser sent a request for a page of another origin, as far as browsers say so of their own.

    A page of another port is of the same site but of another origin, and may be another user's.
    """
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        return True
    return headers.get("sec-fetch-site") not in OWN_SITE


def bearer_of(headers: Headers) -> str:
    """Return the key a request carries; nothing where it carries none."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def token_in(query: bytes) -> str:
    """Return the token a URL carries; nothing where it carries none."""
    return parse_qs(query.decode("latin-1")).get(TOKEN, [""])[-1]


def door_token() -> str:
    """Return what opens the doors that ask for no key: NOUS_TOKEN, or what is drawn for this start."""
    told = settings().token
    return secrets.token_urlsafe(TOKEN_BYTES) if told is None else told.get_secret_value()


def with_token(url: str, token: str) -> str:
    """Return an address that lets in whoever opens it."""
    return f"{url}?{TOKEN}={quote(token, safe='')}"


def is_same(given: str, secret: str) -> bool:
    """Compare a secret in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode("utf-8"))


CLOSED = {
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
WELCOME = '<!doctype html><title>Nous</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Go on</a>'
"""A page of ours goes on, not a redirect: a browser keeps a strict cookie back while another site still leads it."""
STRANGER = """<!doctype html><title>Nous</title><p>This interface opens with the address that was printed when it was
started: it ends in ?token=…</p><p>If this browser has opened it before: <a href="">go on</a>.</p>"""


class PageGate:
    """The outermost layer of an interface of pages; `alive` is the path that a supervisor may ask without a token."""

    def __init__(self, app: ASGIApp, *, token: str, alive: str, names: Iterable[str] = ()) -> None:
        self._app = app
        self._token = token
        self._alive = alive
        self._cookie = sha256(token.encode("utf-8")).hexdigest()
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it to the interface."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(HTTPConnection(scope))
        if refusal is None:
            await self._app(scope, receive, self.sent_by(send))
        elif scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    def sent_by(self, send: Send) -> Send:
        """Return how the interface sends what it answers; as it is, unless an interface says otherwise."""
        return send

    def misused(self, asked: HTTPConnection, *, is_read: bool) -> Response | None:
        """Return how a request is refused by which no page of the interface itself asks; None lets all pass."""
        return None

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        """Return what is answered instead of the interface, None where that may answer."""
        is_read = asked.scope.get("method") in ("GET", "HEAD")
        is_opened = is_read and asked.headers.get("sec-fetch-mode") == "navigate"
        if host_of(asked.headers.get("host", "")) not in self._names:
            return refused(421, "the Host header names another server; open the address that was printed at the start")
        if is_foreign(asked.headers) and not is_opened:
            return refused(403, "a page of another site sent this, and none may; open the interface itself")
        if asked.url.path == self._alive:
            return None
        given = token_in(asked.scope["query_string"])
        if is_read and given and is_same(given, self._token):
            return self._welcome(asked)
        if not self._is_known(asked):
            return HTMLResponse(STRANGER, 401, CLOSED)
        return None if asked.scope["type"] == "websocket" else self.misused(asked, is_read=is_read)

    def _is_known(self, asked: HTTPConnection) -> bool:
        return is_same(bearer_of(asked.headers), self._token) or is_same(
            asked.cookies.get(cookie_name(asked), ""), self._cookie
        )

    def _welcome(self, asked: HTTPConnection) -> Response:
        response = HTMLResponse(WELCOME, headers=CLOSED)
        response.set_cookie(cookie_name(asked), self._cookie, httponly=True, samesite="strict")
        return response


def cookie_name(asked: HTTPConnection) -> str:
    """Return under what a browser keeps the cookie: it knows names by host alone, and ports run several interfaces."""
    return f"nous_{TOKEN}_{asked.url.port or 80}"


def refused(status: int, why: str) -> Response:
    """Return a refusal in words."""
    return PlainTextResponse(f"{why}\n", status, CLOSED)


# --- connections ---

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
