"""What a request passes before Dagster's interface sees it, which by itself obeys whoever reaches its port.

Dagster takes mutations from the query string of a GET, and WebSockets of any origin: a web page could launch runs, and
every user of the machine as well. So a request passes the gate of pages first, and asks as Dagster's own pages do.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Send

from nous_online.interfaces.request_checks import PageGate, refused

ALIVE = "/server_info"
"""Names versions and nothing else: whoever waits for the interface asks it."""
GRAPHQL = "/graphql"
NOT_FRAMED = {"X-Frame-Options": "DENY"}
OWN_FILES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
)
"""For pages of Dagster that bring no policy: its query editor has a script of its own inside."""


class DagsterGate(PageGate):
    """The outermost layer of Dagster's interface."""

    def __init__(self, app: ASGIApp, *, token: str, names: Iterable[str] = ()) -> None:
        super().__init__(app, token=token, alive=ALIVE, names=names)

    def sent_by(self, send: Send) -> Send:
        """Keep what Dagster answers out of frames, and give its pages without a policy one."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(NOT_FRAMED)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", OWN_FILES)
            await send(message)

        return sent

    def misused(self, asked: HTTPConnection, *, is_read: bool) -> Response | None:
        """Return how a request is refused by which no page of Dagster's own asks: commands in a URL, or no JSON."""
        if is_read and asked.url.path == GRAPHQL and "query" in asked.query_params:
            return refused(405, "a GET asks nothing of GraphQL; send the query as JSON, by POST")
        media_type = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not is_read and media_type != "application/json":
            return refused(415, "the body is not said to be JSON; send it with Content-Type: application/json")
        return None
