"""The MCP server over stdio and HTTP: tools run in threads, until the client disconnects or a signal arrives."""

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
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

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
from nous_online.core.validation import ADMINISTRATOR, visible
from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.api.keys import (
    NO_LOOKUP,
    REFUSED_KEY,
    KeyRecord,
    KeyRing,
    digest,
    note,
    note_call,
    parse_key,
    show_trail,
)
from nous_online.interfaces.mcp.tools import INSTRUCTIONS, TOOLS, Tool, Visit, checked_arguments, context
from nous_online.interfaces.request_checks import HOST, bearer_of, secrets_match, server_options, token_in

logger = logging.getLogger(__name__)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 5
"""Seconds that connections may take to close; calls in flight still run to their end."""
SESSION_HEADER, CONNECTION_HEADER = "nous-session", "mcp-session-id"
MOST_CHARACTERS = 80
CONTEXT_URI = "nous://context"
BY_NAME = {tool.name: tool for tool in TOOLS}
HOLDER = "nous_holder"  # the key record, in the ASGI scope
NO_TOKEN = "call the address that `nous mcp --http` printed: it ends in ?token=…, and NOUS_TOKEN keeps it the same"  # noqa: S105
McpRequest = ServerRequestContext[Any, Any]
OpenHeartOf = Callable[[McpRequest], AbstractContextManager[tuple[Heart, Visit]]]
"""Yields the heart that a request may use and the session it belongs to; entered in a worker thread."""


# --- the heart of a request ---


class ServedHearts:
    """The hearts that calls use: that of a key's holder, for an administrator's key or without keys that of one agent.

    A heart is looked up at each call, because the cache may have closed it since. The first call opens it, so that the
    handshake does not wait for the database and an unreachable one fails the call that needed it; the next tries again.
    """

    def __init__(self, hearts: Hearts, visit: Visit, *, agent_id: str) -> None:
        self._hearts = hearts
        self._visit = visit
        self._agent_id = agent_id
        self._is_closed, self._in_flight, self._lock = False, 0, threading.Condition()
        self.keys = KeyRing(hearts.database, memory_s=ApiPolicy.key_memory_s)

    @contextmanager
    def heart_for(self, request: McpRequest, *, by_key: bool = False) -> Generator[tuple[Heart, Visit]]:
        """Yield the heart for a request, limited to the caller's rights, with the session the request names.

        `by_key`: whose heart it is says the holder of the key, which the request must have been checked for.
        """
        scope: Scope = getattr(request.request, "scope", {})  # there is none over stdio
        holder: KeyRecord | None = scope[HOLDER] if by_key else None
        session_id = session_of(Headers(scope=scope) if scope else {}, self._visit.session_id)
        with self.entered(holder.agent_id if holder else ADMINISTRATOR) as heart:
            rights = holder.rights if holder else WITHOUT_KEY
            yield heart.limited_to(rights), replace(self._visit, session_id=session_id)

    @contextmanager
    def entered(self, holder: str = ADMINISTRATOR) -> Generator[Heart]:
        """Yield the heart of a key's holder for one call; raise `Unavailable` once the server is stopping."""
        agent_id = self._agent_id if holder == ADMINISTRATOR else holder
        with self._lock:
            if self._is_closed:
                raise Unavailable("the server is stopping; start it again, then repeat the call")
            self._in_flight += 1
        try:
            yield self._hearts.of(agent_id, seconds=settings().deadline_s)
        finally:
            with self._lock:
                self._in_flight -= 1
                self._lock.notify_all()

    def close(self) -> None:
        """Refuse new calls, wait for those in flight, which end by their deadlines, and close all hearts."""
        with self._lock:
            self._is_closed = True
            self._lock.wait_for(lambda: not self._in_flight)
        self._hearts.close()


def warm_up(hearts: ServedHearts) -> None:
    """Open the heart that is served by default before the first call, which reports a failure; here it is logged."""
    try:
        with hearts.entered():
            pass
    except NousError as error:
        logger.warning("%s", error)


def session_of(headers: Mapping[str, str], default: str) -> str:
    """Return the session of an HTTP request: the one it names, else that of its MCP connection, else the default."""
    if named := headers.get(SESSION_HEADER):
        return named[:MOST_CHARACTERS]
    connection = headers.get(CONNECTION_HEADER)
    return f"mcp-{connection[:MOST_CHARACTERS]}" if connection else default


# --- the protocol ---


def server_of(heart_for: OpenHeartOf) -> Server[Any]:
    """Return the MCP server whose requests use the heart that `heart_for` yields.

    A call runs in a thread until its verb ends, by the heart's own deadline: a client that cancels or disconnects
    cannot leave it half done.
    """

    async def list_tools(request: McpRequest, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[published(tool) for tool in TOOLS])

    async def call_tool(request: McpRequest, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(call, heart_for, request, params.name, params.arguments)

    async def list_resources(request: McpRequest, params: object) -> types.ListResourcesResult:
        found = types.Resource(uri=CONTEXT_URI, name="context", mime_type="text/plain")
        return types.ListResourcesResult(resources=[found])

    async def read_resource(request: McpRequest, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await anyio.to_thread.run_sync(read, heart_for, request, str(params.uri))

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


def call(
    heart_for: OpenHeartOf, request: McpRequest, name: str, sent: Mapping[str, Any] | None
) -> types.CallToolResult:
    """Run one call; the model gets the message of an error of ours, but of any other only that it is in the log."""
    tool = BY_NAME.get(name)
    if tool is None:
        return failure(f"there is no tool {name[:100]!r}; there are: {', '.join(BY_NAME)}")
    try:
        with audited(request, name) as entry:
            arguments = checked_arguments(tool, sent)
            with heart_for(request) as (heart, visit):
                entry.update(agent=heart.agent.id, holder=heart.agent.rights.holder)
                if not (tool.is_read_only or heart.agent.rights.may_write):
                    raise Forbidden(f"{heart.agent.rights.holder} may only read; {name} needs one that may write")
                answer = tool.act(heart, visit, arguments)
    except NousError as error:
        return failure(str(error))
    except Exception:
        logger.exception("the tool %s failed unexpectedly", name)
        return failure(f"{name} failed unexpectedly; the server's log says how")
    return types.CallToolResult(
        content=[types.TextContent(text=visible(answer.text))], structured_content=answer.values
    )


@contextmanager
def audited(request: McpRequest, tool: str) -> Generator[dict[str, Any]]:
    """Write a call to the audit trail when it has ended; the block adds the caller to the entry it gets."""
    began, entry = time.monotonic(), {"tool": tool}
    client = getattr(request.request, "client", None)
    outcome = "failed"
    try:
        yield entry
        outcome = "done"
    except Forbidden:
        outcome = "forbidden"
        raise
    finally:
        ms = round((time.monotonic() - began) * 1000)
        level = logging.WARNING if outcome == "forbidden" else logging.INFO
        note(level, "call", **entry, address=client.host if client else None, outcome=outcome, ms=ms)


def failure(message: str) -> types.CallToolResult:
    """Return a tool result that tells the model what failed and how to fix it."""
    return types.CallToolResult(content=[types.TextContent(text=visible(message))], is_error=True)


def read(heart_for: OpenHeartOf, request: McpRequest, uri: str) -> types.ReadResourceResult:
    """Read the only resource, the context for now; raise `MCPError` for another one or a failure."""
    if uri != CONTEXT_URI:
        raise MCPError(code=types.INVALID_PARAMS, message=f"there is no resource {uri[:100]!r}, only {CONTEXT_URI}")
    try:
        with heart_for(request) as (heart, visit):
            text = str(context(heart, visit, {}).values["text"])
    except NousError as error:
        raise MCPError(code=types.INTERNAL_ERROR, message=str(error)) from error
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=CONTEXT_URI, text=text, mime_type="text/plain")]
    )


# --- over stdio ---


async def serve_stdio(hearts: ServedHearts) -> None:
    server = server_of(hearts.heart_for)

    def leave(number: int) -> None:
        """End the process after the calls in flight."""
        hearts.close()
        sys.stderr.flush()
        os._exit(128 + number)  # not sys.exit: a thread blocked in reading stdin can't be cancelled

    async with anyio.create_task_group() as group:
        group.start_soon(until_signal, leave)
        group.start_soon(anyio.to_thread.run_sync, warm_up, hearts)
        async with stdio_server() as (incoming, outgoing):
            forward, wellformed = anyio.create_memory_object_stream[SessionMessage | Exception]()
            group.start_soon(refuse_malformed, incoming, outgoing.send, forward)
            await server.run(wellformed, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(hearts.close)


async def refuse_malformed(
    incoming: AsyncIterable[SessionMessage | Exception],
    send: Callable[[SessionMessage], Awaitable[None]],
    forward: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Forward the messages of a client, and answer malformed lines with an error, so that no client waits in vain.

    Malformed is what is not JSON, such as half a character, or not a message of the protocol. The error has no id, as
    JSON-RPC 2.0 (section 5) requires where the request's can't be read. The SDK itself would drop such lines.
    """
    async with forward:
        async for message in incoming:
            if not isinstance(message, Exception):
                await forward.send(message)
                continue
            errors = message.errors() if isinstance(message, ValidationError) else [{"type": "json_invalid"}]
            is_json = all(each["type"] != "json_invalid" for each in errors)
            code, text = (types.INVALID_REQUEST, "Invalid request") if is_json else (types.PARSE_ERROR, "Parse error")
            error = types.ErrorData(code=code, message=text)
            await send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))


async def until_signal(on_signal: Callable[[int], None]) -> None:
    """Wait for SIGINT or SIGTERM, and call `on_signal` with its number, in a thread."""
    if sys.platform == "win32":
        await anyio.sleep_forever()
    with anyio.open_signal_receiver(*SIGNALS) as numbers:
        async for number in numbers:
            await anyio.to_thread.run_sync(on_signal, number)


# --- over HTTP ---


def open_by_token(hearts: ServedHearts, token: str) -> ASGIApp:
    """Return an application that requires the token, in the URL or as a bearer token."""
    app = server_of(hearts.heart_for).streamable_http_app(host=HOST)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = bearer_of(Headers(scope=scope)) or token_in(scope["query_string"])
            if not secrets_match(given, token):
                return await refusal(scope, NO_TOKEN)(scope, receive, send)
        return await app(scope, receive, send)

    return guarded


def open_by_key(hearts: ServedHearts) -> ASGIApp:
    """Return an application that requires a key: 401 without a valid one, 503 if lookup fails."""
    app = server_of(partial(hearts.heart_for, by_key=True)).streamable_http_app(host=HOST)

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
            key = parse_key(text)
            return await refusal(scope, REFUSED_KEY, key=None if key is None else key.id)(scope, receive, send)
        # The SDK's transport binds a session to this user: nobody else may use, listen to or end it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=digest(text).hex(), scopes=[]))
        return await app(scope, receive, send)

    return guarded


def refusal(scope: Scope, why: str, *, key: str | None = None) -> PlainTextResponse:
    """Return a response 401, and write it to the audit trail."""
    note_call(status=401, key=key, address=(scope["client"] or ("unknown",))[0], route="/mcp", method=scope["method"])
    return PlainTextResponse(why, 401, {"WWW-Authenticate": "Bearer"})


async def serve_http(app: ASGIApp, hearts: ServedHearts, listener: socket.socket) -> int | None:
    """Serve clients over streamable HTTP at `/mcp` on loopback until a signal arrives, and return that signal.

    The SDK refuses requests of web pages by their Host and Origin.
    """
    import uvicorn

    class UnsignalledServer(uvicorn.Server):
        # `until_signal` handles signals: uvicorn would raise them again after its end, before hearts are closed.
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    show_trail()
    options = server_options(app, grace_s=GRACE_S, log_config=None)
    server, received = UnsignalledServer(uvicorn.Config(**options)), list[int]()

    def stop(number: int) -> None:
        received.append(number)
        server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(until_signal, stop)
        group.start_soon(anyio.to_thread.run_sync, warm_up, hearts)
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(hearts.close)
    return received[0] if received else None
