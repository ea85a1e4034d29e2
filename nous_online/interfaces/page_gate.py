"""What a request passes before pages are shown to the person who started a program, and to nobody else.

It names this machine, comes from no other page, and brings the token of this start: in the URL that is printed, which
leaves a cookie in the browser, or as `Authorization: Bearer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from nous_online.interfaces.request_checks import (
    LOOPBACK_NAMES,
    TOKEN,
    bearer_of,
    host_of,
    is_foreign,
    is_same,
    token_in,
)

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
