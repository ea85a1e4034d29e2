"""Checks that every HTTP interface makes of a request: its Host, its origin and its credentials; and connection limits.

A connection is closed when the headers of a request do not arrive in time; uvicorn would wait for ever. Beyond
`MOST_CONNECTIONS`, a new connection replaces the one that has waited longest for its headers, so that idle connections
cannot keep out callers who send theirs.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:  # httptools where it is installed, else h11: the attributes used below have the same names in both
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

HOST = "127.0.0.1"
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
OWN_SITE = (None, "same-origin", "none")
"""Values of `Sec-Fetch-Site` that are let in: programs send none, our own pages same-origin, a typed address "none"."""
TOKEN = "token"  # noqa: S105 (the name of the URL parameter)
TOKEN_BYTES = 24  # 192 random bits


def listening(port: int, *, host: str = HOST) -> socket.socket:
    """Return a socket that listens there, at any free port for 0; raise `Unavailable` when the port is taken."""
    address = host.strip("[]")
    try:
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"can't be listened on: {error.strerror}"
        raise Unavailable(f"port {port} of {host} {why}; name a free one with --port") from error


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
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
    """Return whether a browser sent the request for a page of another origin, by the headers that browsers set."""
    origin = headers.get("origin")
    # The port is compared too: a page on another port is of the same site, but may be served by another user.
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        return True
    return headers.get("sec-fetch-site") not in OWN_SITE


def bearer_of(headers: Headers) -> str:
    """Return the bearer token of a request, or an empty string."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def token_in(query: bytes) -> str:
    """Return the token in a query string, or an empty string."""
    return parse_qs(query.decode("latin-1")).get(TOKEN, [""])[-1]


def interface_token() -> str:
    """Return the token of the interfaces that need no key: NOUS_TOKEN, or a random one for this start."""
    token = settings().token
    return secrets.token_urlsafe(TOKEN_BYTES) if token is None else token.get_secret_value()


def with_token(url: str, token: str) -> str:
    return f"{url}?{TOKEN}={quote(token, safe='')}"


def secrets_match(given: str, secret: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode("utf-8"))


PAGE_HEADERS = {
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
SIGNED_IN_PAGE = '<!doctype html><title>Nous</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Go on</a>'
"""A page that reloads, not a redirect: a browser sends no strict cookie along redirects that another site began."""
OPEN_PAGE = """<!doctype html><title>Nous</title><p>This interface opens with the address that was printed when it was
started: it ends in ?token=…</p><p>If this browser has opened it before: <a href="">go on</a>.</p>"""


class PageGate:
    """ASGI middleware before an interface of HTML pages: it checks Host, origin and token.

    `alive` is the path of the health check, which needs no token; `headers` are added to every response.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        alive: str,
        names: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._app = app
        self._token = token
        self._alive = alive
        self._headers = headers or {}
        # The cookie holds a hash, so that the token itself is not stored in the browser.
        self._cookie = sha256(token.encode("utf-8")).hexdigest()
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        response = self._refusal(HTTPConnection(scope))
        if response is None:
            await self._app(scope, receive, self.wrap_send(send))
        elif scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        else:
            await response(scope, receive, send)

    def wrap_send(self, send: Send) -> Send:
        """Return the `send` that the interface gets: it adds the headers; subclasses change responses here."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        return sent

    def refuse_misuse(self, connection: HTTPConnection, *, is_read: bool) -> Response | None:
        """Return a refusal of a request that no page of the interface sends, else None; subclasses decide."""
        return None

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        """Return the response to a request that the interface must not see, else None."""
        is_read = connection.scope.get("method") in ("GET", "HEAD")
        # A link on another site may lead here: it only opens a page, and still needs the token or the cookie.
        is_opened = is_read and connection.headers.get("sec-fetch-mode") == "navigate"
        if host_of(connection.headers.get("host", "")) not in self._names:
            return refusal(421, "the Host header names another server; open the address that was printed at the start")
        if is_foreign(connection.headers) and not is_opened:
            return refusal(403, "a page of another site sent this, and none may; open the interface itself")
        if connection.url.path == self._alive:
            return None
        given = token_in(connection.scope["query_string"])
        if is_read and given and secrets_match(given, self._token):
            response = HTMLResponse(SIGNED_IN_PAGE, headers=PAGE_HEADERS)
            response.set_cookie(cookie_name(connection), self._cookie, httponly=True, samesite="strict")
            return response
        if not self._is_signed_in(connection):
            return HTMLResponse(OPEN_PAGE, 401, PAGE_HEADERS)
        return None if connection.scope["type"] == "websocket" else self.refuse_misuse(connection, is_read=is_read)

    def _is_signed_in(self, connection: HTTPConnection) -> bool:
        return secrets_match(bearer_of(connection.headers), self._token) or secrets_match(
            connection.cookies.get(cookie_name(connection), ""), self._cookie
        )


def cookie_name(connection: HTTPConnection) -> str:
    """Return the name of the cookie, which holds the port: browsers share cookies among all ports of a host."""
    return f"nous_{TOKEN}_{connection.url.port or 80}"


def refusal(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status, PAGE_HEADERS)


# --- connections ---

HEADERS_S = 5.0
"""Time for the headers of a request to arrive; as long as uvicorn keeps an idle connection alive."""
MOST_CONNECTIONS = 200
"""Below the 256 open files that some systems allow a process, with room for the database; 64 calls run at most."""
BACKLOG = 40
"""Length of the listen queue: connections accepted at once, before the oldest are closed."""


def server_options(
    app: ASGIApp,
    *,
    grace_s: int,
    host: str = HOST,
    port: int = 0,
    log_level: str = "warning",
    proxy: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the arguments of `uvicorn.run` for an interface; calls in flight may take `grace_s` seconds at its end."""
    return {
        "app": app,
        "http": Connection,
        "backlog": BACKLOG,
        "host": host.strip("[]"),
        "port": port,
        "log_level": log_level,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": grace_s,
        # By default uvicorn trusts X-Forwarded-For from any local program, which would evade the limits by address.
        "proxy_headers": proxy is not None,
        "forwarded_allow_ips": proxy,
        **others,
    }


class Connection(Protocol):
    """uvicorn's HTTP connection, with a deadline for the headers and a limit on the number of connections."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            # The one that has waited longest for its headers is closed, or this one where all are being served.
            others: Iterable[Any] = self.connections
            waiting = [
                (each._deadline.when(), each)
                for each in others
                if isinstance(each, Connection) and each._deadline is not None
            ]
            _, oldest = min(waiting, key=lambda found: found[0], default=(0.0, self))
            oldest._cancel_deadline()
            oldest.transport.abort()
        self._update_deadline()

    def data_received(self, data: bytes) -> None:
        """Handle data; incomplete headers keep the deadline as it was set, so that a trickle can't extend it."""
        super().data_received(data)
        if self.transport.get_protocol() is self:
            self._update_deadline()
        else:  # upgraded to a WebSocket, which another protocol object now serves
            self._cancel_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _update_deadline(self) -> None:
        cycle: Any = self.cycle  # None before the first request, although uvicorn types it otherwise
        if cycle is not None and not cycle.response_complete:
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_S, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
