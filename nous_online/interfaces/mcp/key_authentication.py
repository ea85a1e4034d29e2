"""Letting agents in over HTTP by their keys, each to its own memory, or by a token where all share one memory."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from nous_online.core.errors import NousError
from nous_online.core.policy import ApiPolicy
from nous_online.core.settings import settings
from nous_online.core.validation import ADMINISTRATOR
from nous_online.heart import Heart
from nous_online.interfaces.api import keys
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.api.keys import KeyRecord
from nous_online.interfaces.audit import note_call
from nous_online.interfaces.mcp.acts import Visit
from nous_online.interfaces.mcp.heart_provider import Threshold, session_of, warm_up
from nous_online.interfaces.mcp.protocol_server import Asked
from nous_online.interfaces.request_checks import bearer_of, is_same, token_in

HOLDER = "nous_holder"
logger = logging.getLogger(__name__)
UNKNOWN = "keys can't be looked up now; the log of the server says why"
REFUSED = "send a valid key as `Authorization: Bearer nous_…`; `nous key create` makes one"
NO_TOKEN = "call the address that `nous mcp --http` printed: it ends in ?token=…, and NOUS_TOKEN keeps it the same"  # noqa: S105


class Doors:
    """The memory of each agent that has a key; an administrator's key opens that of the agent served by default.

    Which heart is an agent's is asked at each call: one not spoken for long is closed, and opened anew.
    """

    def __init__(self, hearts: Hearts, visit: Visit, *, agent_id: str) -> None:
        self._hearts = hearts
        self._visit = visit
        self._agent_id = agent_id
        self._lock = threading.Lock()
        self._threshold = Threshold()
        self._good: dict[bytes, tuple[KeyRecord, float]] = {}

    @contextmanager
    def place(self, asked: Asked) -> Generator[tuple[Heart, Visit]]:
        """Yield the memory of whoever holds the key of a request."""
        scope: Scope = getattr(asked.request, "scope")  # noqa: B009 (typed by the transport, not here)
        session_id = session_of(Headers(scope=scope), self._visit.session_id)
        with self.entered(scope[HOLDER].agent_id) as heart:
            yield heart.limited_to(scope[HOLDER].rights), replace(self._visit, session_id=session_id)

    @contextmanager
    def entered(self, holder: str) -> Generator[Heart]:
        """Yield the heart of one holder of a key to one call; raise `Unavailable` once the server is stopping."""
        agent_id = self._agent_id if holder == ADMINISTRATOR else holder
        with self._threshold.crossed():
            yield self._hearts.of(agent_id, seconds=settings().deadline_s)

    def holder_of(self, text: str) -> KeyRecord | None:
        """Return what is known of a key, None for one that is wrong, expired or revoked; a good one is kept for 5 s."""
        key = digest(text)
        holder, until = self._good.get(key, (None, 0.0))
        if holder is not None and until > time.monotonic():
            return holder
        found = self._looked_up(text)
        with self._lock:
            self._good = {each: entry for each, entry in self._good.items() if entry[1] > time.monotonic()}
            if found is not None:
                self._good[key] = (found, time.monotonic() + ApiPolicy.key_memory_s)
        return found

    def _looked_up(self, text: str) -> KeyRecord | None:
        """Look a key up under the rights of the agent it names; what is no key is looked up too, to take as long."""
        parsed, seconds = keys.parsed(text), settings().deadline_s
        key = parsed or keys.DECOY
        with self._hearts.database(seconds=seconds).transaction(key.agent_id, timeout_s=seconds) as connection:
            record = keys.found(connection, key)
        return None if parsed is None else record

    def warm_up(self) -> None:
        """Open the memory served by default before anybody calls, if that is possible now."""
        warm_up(lambda: self.entered(ADMINISTRATOR))

    def close(self) -> None:
        """Let nobody in, wait for the calls that are inside, and give the connections back."""
        self._threshold.close()
        self._hearts.close()


class Keyed:
    """Lets only requests with a good key through to the application."""

    def __init__(self, app: ASGIApp, doors: Doors) -> None:
        self._app = app
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 401 without a good key, 503 where none can be looked up now."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        text = bearer_of(Headers(scope=scope))
        try:
            scope[HOLDER] = await anyio.to_thread.run_sync(self._doors.holder_of, text)
        except NousError as error:
            logger.warning("a key can't be looked up: %s", error)
            return await PlainTextResponse(UNKNOWN, 503)(scope, receive, send)
        if scope[HOLDER] is None:
            key = keys.parsed(text)
            return await refusal(scope, REFUSED, key=None if key is None else key.id)(scope, receive, send)
        # The transport lets a session be used, listened to and ended by whoever opened it alone.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=digest(text).hex(), scopes=[]))
        return await self._app(scope, receive, send)


class Tokened:
    """Lets only requests with the token of this start through, in the address or as a bearer."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 401 without the token."""
        if scope["type"] == "http":
            given = bearer_of(Headers(scope=scope)) or token_in(scope["query_string"])
            if not is_same(given, self._token):
                return await refusal(scope, NO_TOKEN)(scope, receive, send)
        return await self._app(scope, receive, send)


def refusal(scope: Scope, why: str, *, key: str | None = None) -> PlainTextResponse:
    """Return what a stranger is told, noted in the audit trail."""
    note_call(status=401, key=key, address=(scope["client"] or ("unknown",))[0], route="/mcp", method=scope["method"])
    return PlainTextResponse(why, 401, {"WWW-Authenticate": "Bearer"})


def digest(text: str) -> bytes:
    """Return under what a key is remembered: nobody finds keys in a memory dump."""
    return sha256(text.encode("utf-8", "surrogateescape")).digest()
