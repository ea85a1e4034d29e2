"""The protocol server: tools run in threads, over stdio or HTTP, until the client leaves or somebody asks to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from nous_online.core.errors import Forbidden, NousError, Unavailable
from nous_online.core.policy import ApiPolicy
from nous_online.core.rights import WITHOUT_KEY
from nous_online.core.settings import settings
from nous_online.core.texts import visible
from nous_online.core.validation import ADMINISTRATOR
from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.api.keys import NO_LOOKUP, REFUSED_KEY, KeyRing, digest, note, note_call, parsed, show_trail
from nous_online.interfaces.mcp.tools import INSTRUCTIONS, TOOLS, Tool, Visit, checked_arguments, context
from nous_online.interfaces.request_checks import bearer_of, is_same, token_in

logger = logging.getLogger(__name__)
HOST = "127.0.0.1"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 5
"""How long connections may take to end; a call goes on to its own end."""
SESSION_HEADER, CONNECTION_HEADER = "nous-session", "mcp-session-id"
MOST_CHARACTERS = 80
CONTEXT_URI = "nous://context"
BY_NAME = {tool.name: tool for tool in TOOLS}
HOLDER = "nous_holder"
NO_TOKEN = "call the address that `nous mcp --http` printed: it ends in ?token=…, and NOUS_TOKEN keeps it the same"  # noqa: S105
Asked = ServerRequestContext[Any, Any]
Place = Callable[[Asked], AbstractContextManager[tuple[Heart, Visit]]]
"""Who a request is for: the memory it may touch, and the session it belongs to; entered in a thread."""


# --- whose memory a request is for ---


class InFlightGate:
    """Counts the calls under way, and once it is closed lets no other begin."""

    def __init__(self) -> None:
        self._is_closed = False
        self._inside = 0
        self._lock = threading.Condition()

    @contextmanager
    def call(self) -> Generator[None]:
        """Count one call as under way; raise `Unavailable` once the server is stopping."""
        with self._lock:
            if self._is_closed:
                raise Unavailable("the server is stopping; start it again, then repeat the call")
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._lock.notify_all()

    def close(self) -> None:
        """Let no call begin, and wait for those under way: each ends by its deadline."""
        with self._lock:
            self._is_closed = True
            self._lock.wait_for(lambda: not self._inside)


class SharedHeart:
    """One agent's memory for many calls at once.

    It is opened by the first call, so that a client is greeted at once and a database that is away is named by the
    call that needed it; the next call tries again.
    """

    def __init__(self, opening: Callable[[], Heart], visit: Visit) -> None:
        self.visit = visit
        self._opening = opening
        self._heart: Heart | None = None
        self._gate = InFlightGate()
        self._open_lock = threading.Lock()

    @contextmanager
    def entered(self) -> Generator[Heart]:
        """Yield the heart to one call; raise `Unavailable` once the server is stopping."""
        with self._gate.call():
            with self._open_lock:
                heart = self._heart = self._heart or self._opening()
            yield heart

    def place(self, asked: Asked) -> AbstractContextManager[tuple[Heart, Visit]]:
        """Yield this memory to a request, under the session it names."""
        return self._placed(session_of(getattr(asked.request, "headers", {}), self.visit.session_id))

    @contextmanager
    def _placed(self, session_id: str) -> Generator[tuple[Heart, Visit]]:
        with self.entered() as heart:
            yield heart.limited_to(WITHOUT_KEY), replace(self.visit, session_id=session_id)

    def warm_up(self) -> None:
        """Open the heart before anybody calls, if that is possible now."""
        warm_up(self.entered)

    def close(self) -> None:
        """Let nobody in, wait for the calls that are inside, and close the heart."""
        self._gate.close()
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.close()


class KeyedHearts:
    """The memory of each agent that has a key; an administrator's key opens that of the agent served by default.

    Which heart is an agent's is asked at each call: one not spoken for long is closed, and opened anew.
    """

    def __init__(self, hearts: Hearts, visit: Visit, *, agent_id: str) -> None:
        self._hearts = hearts
        self._visit = visit
        self._agent_id = agent_id
        self._gate = InFlightGate()
        self.keys = KeyRing(hearts.database, memory_s=ApiPolicy.key_memory_s)

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
        with self._gate.call():
            yield self._hearts.of(agent_id, seconds=settings().deadline_s)

    def warm_up(self) -> None:
        """Open the memory served by default before anybody calls, if that is possible now."""
        warm_up(lambda: self.entered(ADMINISTRATOR))

    def close(self) -> None:
        """Let nobody in, wait for the calls that are inside, and give the connections back."""
        self._gate.close()
        self._hearts.close()


def warm_up(entered: Callable[[], AbstractContextManager[object]]) -> None:
    """Come in once and leave; what stands in the way goes to the log, and the first call will tell it."""
    try:
        with entered():
            pass
    except NousError as error:
        logger.warning("%s", error)


def new_session() -> str:
    """Return a name for the session of a connection."""
    return f"mcp-{uuid4().hex[:12]}"


def session_of(headers: Mapping[str, str], usual: str) -> str:
    """Return the session of an HTTP request: the one it names, that of its connection, or the server's."""
    if named := headers.get(SESSION_HEADER):
        return named[:MOST_CHARACTERS]
    connection = headers.get(CONNECTION_HEADER)
    return f"mcp-{connection[:MOST_CHARACTERS]}" if connection else usual


# --- the protocol ---


def server_of(place: Place) -> Server[Any]:
    """Return the server whose requests go to the memory that `place` names.

    A call runs in a thread until its verb ends, by the heart's own deadline: a client that gives up or goes away
    leaves it whole, done or not done.
    """

    async def list_tools(asked: Asked, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[published(tool) for tool in TOOLS])

    async def call_tool(asked: Asked, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(call, place, asked, params.name, params.arguments)

    async def list_resources(asked: Asked, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[types.Resource(uri=CONTEXT_URI, name="context", mime_type="text/plain")]
        )

    async def read_resource(asked: Asked, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await anyio.to_thread.run_sync(read, place, asked, str(params.uri))

    return Server(
        "nous",
        version=version("nous-pipelines"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def published(tool: Tool) -> types.Tool:
    """Return a tool as the protocol describes it."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.takes),
        output_schema=dict(tool.returns),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        ),
    )


def call(place: Place, asked: Asked, name: str, sent: Mapping[str, Any] | None) -> types.CallToolResult:
    """Run one call; what fails is told in its own words, and what nobody foresaw goes to the log alone."""
    tool = BY_NAME.get(name)
    if tool is None:
        return failure(f"there is no tool {name[:100]!r}; there are: {', '.join(BY_NAME)}")
    try:
        with audited(asked, name) as told:
            given = checked_arguments(tool, sent)
            with place(asked) as (heart, visit):
                told.update(agent=heart.agent.id, holder=heart.agent.rights.holder)
                if not (tool.is_read_only or heart.agent.rights.may_write):
                    raise Forbidden(f"{heart.agent.rights.holder} may only read; {name} needs one that may write")
                answer = tool.act(heart, visit, given)
    except NousError as error:
        return failure(str(error))
    except Exception:
        logger.exception("the tool %s failed in a way nobody foresaw", name)
        return failure(f"{name} failed in a way nobody foresaw; the server's log says how")
    return types.CallToolResult(
        content=[types.TextContent(text=visible(answer.text))], structured_content=answer.values
    )


@contextmanager
def audited(asked: Asked, tool: str) -> Generator[dict[str, Any]]:
    """Note a call in the audit trail when it has ended, and what the block tells of who called."""
    began, told = time.monotonic(), {"tool": tool}
    client = getattr(asked.request, "client", None)
    outcome = "failed"
    try:
        yield told
        outcome = "done"
    except Forbidden:
        outcome = "forbidden"
        raise
    finally:
        ms = round((time.monotonic() - began) * 1000)
        level = logging.WARNING if outcome == "forbidden" else logging.INFO
        note(level, "call", **told, address=client.host if client else None, outcome=outcome, ms=ms)


def failure(message: str) -> types.CallToolResult:
    """Return a failure for the model to read and mend."""
    return types.CallToolResult(content=[types.TextContent(text=visible(message))], is_error=True)


def read(place: Place, asked: Asked, uri: str) -> types.ReadResourceResult:
    """Read the one resource there is: what is worth knowing now; raise `MCPError` for another or a failure."""
    if uri != CONTEXT_URI:
        raise MCPError(code=types.INVALID_PARAMS, message=f"there is no resource {uri[:100]!r}, only {CONTEXT_URI}")
    try:
        with place(asked) as (heart, visit):
            text = str(context(heart, visit, {}).values["text"])
    except NousError as error:
        raise MCPError(code=types.INTERNAL_ERROR, message=str(error)) from error
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=CONTEXT_URI, text=text, mime_type="text/plain")]
    )


# --- over stdio ---


def serve_stdio(heart: SharedHeart) -> None:
    """Serve the one client at stdin and stdout until it closes them; Ctrl-C and SIGTERM end the process."""
    anyio.run(stdio, heart)


async def stdio(heart: SharedHeart) -> None:
    """Serve one connection; whatever a library prints meanwhile goes to stderr."""
    server = server_of(heart.place)

    def leave(number: int) -> None:
        """End the process after the calls that have begun: the thread that reads stdin can't be woken otherwise."""
        heart.close()
        sys.stderr.flush()
        os._exit(128 + number)

    async with anyio.create_task_group() as group:
        group.start_soon(until_signal, leave)
        group.start_soon(anyio.to_thread.run_sync, heart.warm_up)
        async with stdio_server() as (incoming, outgoing):
            forward, wellformed = anyio.create_memory_object_stream[SessionMessage | Exception]()
            group.start_soon(refuse_malformed, incoming, outgoing.send, forward)
            await server.run(wellformed, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(heart.close)


async def refuse_malformed(
    incoming: AsyncIterable[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
    forward: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass on what a client says, and answer what is no message: nobody waits for an answer to it in vain.

    Such a line is no JSON, as with half a character, or none of the protocol's. The answer names no id: where a line
    can't be read, its id can't be believed (JSON-RPC 2.0, section 5).
    """
    async with forward:
        async for message in incoming:
            if not isinstance(message, Exception):
                await forward.send(message)
                continue
            errors = message.errors() if isinstance(message, ValidationError) else [{"type": "json_invalid"}]
            is_json = all(each["type"] != "json_invalid" for each in errors)
            code, said = (types.INVALID_REQUEST, "Invalid request") if is_json else (types.PARSE_ERROR, "Parse error")
            error = types.ErrorData(code=code, message=said)
            await answer(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))


async def until_signal(hear: Callable[[int], None]) -> None:
    """Wait for somebody to ask to stop, and call `hear` with the signal, in a thread."""
    if sys.platform == "win32":
        await anyio.sleep_forever()
    with anyio.open_signal_receiver(*SIGNALS) as numbers:
        async for number in numbers:
            await anyio.to_thread.run_sync(hear, number)


# --- over HTTP ---


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


def open_by_token(heart: SharedHeart, token: str) -> Served:
    """Return what serves one agent's memory to whoever has the token of this start, in the address or as a bearer."""
    app = server_of(heart.place).streamable_http_app(host=HOST)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = bearer_of(Headers(scope=scope)) or token_in(scope["query_string"])
            if not is_same(given, token):
                return await refusal(scope, NO_TOKEN)(scope, receive, send)
        return await app(scope, receive, send)

    return Served(guarded, heart.warm_up, heart.close)


def open_by_key(hearts: KeyedHearts) -> Served:
    """Return what serves to whoever holds a key the memory of its agent: 401 without a good one, 503 where unknown."""
    app = server_of(hearts.place).streamable_http_app(host=HOST)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        text = bearer_of(Headers(scope=scope))
        try:
            find = partial(hearts.keys.find, text, seconds=settings().deadline_s)
            scope[HOLDER] = await anyio.to_thread.run_sync(find)
        except NousError as error:
            logger.warning("a key can't be looked up: %s", error)
            return await PlainTextResponse(NO_LOOKUP, 503)(scope, receive, send)
        if scope[HOLDER] is None:
            key = parsed(text)
            return await refusal(scope, REFUSED_KEY, key=None if key is None else key.id)(scope, receive, send)
        # The transport lets a session be used, listened to and ended by whoever opened it alone.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=digest(text).hex(), scopes=[]))
        return await app(scope, receive, send)

    return Served(guarded, hearts.warm_up, hearts.close)


def refusal(scope: Scope, why: str, *, key: str | None = None) -> PlainTextResponse:
    """Return what a stranger is told, noted in the audit trail."""
    note_call(status=401, key=key, address=(scope["client"] or ("unknown",))[0], route="/mcp", method=scope["method"])
    return PlainTextResponse(why, 401, {"WWW-Authenticate": "Bearer"})


def serve_http(served: Served, listener: socket.socket) -> int | None:
    """Serve many clients over streamable HTTP at `/mcp` until a signal comes, and return that signal."""
    return anyio.run(http, served, listener)


async def http(served: Served, listener: socket.socket) -> int | None:
    """Serve connections of this machine; requests of web pages are refused by their Host and Origin."""
    import uvicorn

    from nous_online.interfaces.request_checks import BACKLOG, Connection

    class UnsignalledServer(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    quiet = uvicorn.Config(
        served.application,
        http=Connection,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
        proxy_headers=False,
    )
    show_trail()
    server, heard = UnsignalledServer(quiet), list[int]()

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
