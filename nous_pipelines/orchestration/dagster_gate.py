"""What a request passes before Dagster's interface sees it, which by itself obeys whoever reaches its port.

Dagster takes mutations from the query string of a GET, and WebSockets of any origin: a web page could launch runs, and
every user of the machine as well. So a request names this machine, comes from no other page, and brings the token of
this start: in the URL that is printed, which leaves a cookie in the browser, or as `Authorization: Bearer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
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

ALIVE = "/server_info"
"""Names versions and nothing else: whoever waits for the interface asks it."""
GRAPHQL = "/graphql"
NOT_FRAMED = {"X-Frame-Options": "DENY"}
OWN_FILES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
)
"""For pages of Dagster that bring no policy: its query editor has a script of its own inside."""
CLOSED = {
    **NOT_FRAMED,
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
WELCOME = '<!doctype html><title>Nous</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Go on</a>'
"""A page of ours goes on, not a redirect: a browser keeps a strict cookie back while another site still leads it."""
STRANGER = """<!doctype html><title>Nous</title><p>This interface opens with the address that was printed when it was
started: it ends in ?token=…</p><p>If this browser has opened it before: <a href="">go on</a>.</p>"""


class DagsterGate:
    """The outermost layer of Dagster's interface."""

    def __init__(self, app: ASGIApp, *, token: str, names: Iterable[str] = ()) -> None:
        self._app = app
        self._token = token
        self._cookie = sha256(token.encode("utf-8")).hexdigest()
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it to Dagster."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(HTTPConnection(scope))
        if refusal is None:
            await self._app(scope, receive, unframed(send))
        elif scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        """Return what is answered instead of Dagster, None where Dagster may answer."""
        is_read = asked.scope.get("method") in ("GET", "HEAD")
        is_opened = is_read and asked.headers.get("sec-fetch-mode") == "navigate"
        if host_of(asked.headers.get("host", "")) not in self._names:
            return refused(421, "the Host header names another server; open the address that was printed at the start")
        if is_foreign(asked.headers) and not is_opened:
            return refused(403, "a page of another site sent this, and none may; open the interface itself")
        if asked.url.path == ALIVE:
            return None
        given = token_in(asked.scope["query_string"])
        if is_read and given and is_same(given, self._token):
            return self._welcome(asked)
        if not self._is_known(asked):
            return HTMLResponse(STRANGER, 401, CLOSED)
        return None if asked.scope["type"] == "websocket" else misused(asked, is_read=is_read)

    def _is_known(self, asked: HTTPConnection) -> bool:
        return is_same(bearer_of(asked.headers), self._token) or is_same(
            asked.cookies.get(cookie_name(asked), ""), self._cookie
        )

    def _welcome(self, asked: HTTPConnection) -> Response:
        response = HTMLResponse(WELCOME, headers=CLOSED)
        response.set_cookie(cookie_name(asked), self._cookie, httponly=True, samesite="strict")
        return response


def misused(asked: HTTPConnection, *, is_read: bool) -> Response | None:
    """Return how a request is refused by which no page of Dagster's own asks: commands in a URL, or no JSON."""
    if is_read and asked.url.path == GRAPHQL and "query" in asked.query_params:
        return refused(405, "a GET asks nothing of GraphQL; send the query as JSON, by POST")
    media_type = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not is_read and media_type != "application/json":
        return refused(415, "the body is not said to be JSON; send it with Content-Type: application/json")
    return None


def cookie_name(asked: HTTPConnection) -> str:
    """Return under what a browser keeps the cookie: it knows names by host alone, and ports run several interfaces."""
    return f"nous_{TOKEN}_{asked.url.port or 80}"


def refused(status: int, why: str) -> Response:
    """Return a refusal in words."""
    return PlainTextResponse(f"{why}\n", status, CLOSED)


def unframed(send: Send) -> Send:
    """Keep what Dagster answers out of frames, and give its pages without a policy one."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(NOT_FRAMED)
            if headers.get("content-type", "").startswith("text/html"):
                headers.setdefault("Content-Security-Policy", OWN_FILES)
        await send(message)

    return sent
