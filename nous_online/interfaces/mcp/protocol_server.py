"""The protocol server: it lists the tools, runs calls in threads, and turns failures into words."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext

from nous_online.core.errors import Forbidden, NousError
from nous_online.core.texts import visible
from nous_online.heart import Heart
from nous_online.interfaces.audit import note
from nous_online.interfaces.mcp.acts import Visit, context
from nous_online.interfaces.mcp.arguments import checked_arguments
from nous_online.interfaces.mcp.tools import INSTRUCTIONS, TOOLS, Tool

logger = logging.getLogger(__name__)
CONTEXT_URI = "nous://context"
BY_NAME = {tool.name: tool for tool in TOOLS}
Asked = ServerRequestContext[Any, Any]
Place = Callable[[Asked], AbstractContextManager[tuple[Heart, Visit]]]
"""Who a request is for: the memory it may touch, and the session it belongs to; entered in a thread."""


def server_of(place: Place) -> Server[Any]:
    """Return the server whose requests go to the memory that `place` names.

    A call runs in a thread until its verb ends, by the heart's own deadline: a client that gives up or goes away
    leaves it whole, done or not done.
    """

    async def list_tools(asked: Asked, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[published(tool) for tool in TOOLS])

    async def call_tool(asked: Asked, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(called, place, asked, params.name, params.arguments)

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


def called(place: Place, asked: Asked, name: str, sent: Mapping[str, Any] | None) -> types.CallToolResult:
    """Run one call; what fails is told in its own words, and what nobody foresaw goes to the log alone."""
    tool = BY_NAME.get(name)
    if tool is None:
        return failed(f"there is no tool {name[:100]!r}; there are: {', '.join(BY_NAME)}")
    try:
        with noted(asked, name) as told:
            given = checked_arguments(tool, sent)
            with place(asked) as (heart, visit):
                told.update(agent=heart.agent.id, holder=heart.agent.rights.holder)
                if not (tool.is_read_only or heart.agent.rights.may_write):
                    raise Forbidden(f"{heart.agent.rights.holder} may only read; {name} needs one that may write")
                answer = tool.act(heart, visit, given)
    except NousError as error:
        return failed(str(error))
    except Exception:
        logger.exception("the tool %s failed in a way nobody foresaw", name)
        return failed(f"{name} failed in a way nobody foresaw; the server's log says how")
    return types.CallToolResult(
        content=[types.TextContent(text=visible(answer.text))], structured_content=answer.values
    )


@contextmanager
def noted(asked: Asked, tool: str) -> Generator[dict[str, Any]]:
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


def failed(message: str) -> types.CallToolResult:
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
