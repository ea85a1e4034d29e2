"""The command that serves agents over the Model Context Protocol: mcp."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.cli.output import INTERRUPTED, AgentOption, JsonOption, show, show_error, show_json

if TYPE_CHECKING:
    from nous_online.mcp.door import Door

PORT = 8421


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("mcp", rich_help_panel="Doors (need the extra `mcp`)")(mcp)


def mcp(  # noqa: PLR0913 (one parameter for each option)
    *,
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP on this machine, instead of stdio.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where, with --http; 0 for any free port.")] = PORT,
    session: Annotated[
        str | None, typer.Option(help="The session to go on with; a new one for each start by default.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="For whom: memories of this user, and the agent's.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="In which project.")] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve an agent's memory over the Model Context Protocol, for Claude Code, Claude Desktop or any client.

    Over stdio it ends when the client leaves; nothing but the protocol goes to stdout. Over HTTP it serves this
    machine alone. Ctrl-C and SIGTERM end it after the calls that have begun.

    [bold]Examples[/bold]

    [dim]$[/dim] claude mcp add nous -- nous mcp --agent aria

    [dim]$[/dim] nous mcp --http --port 8421 --agent aria
    """
    from nous_online.mcp.serving import listening, serve_http, serve_stdio

    if not http:
        serve_stdio(door_of(agent, session=session, user=user, project=project))
        return
    with listening(port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        if as_json:
            show_json({"url": url})
        else:
            show(f"[green]ready[/green]  {url}")
        sys.stdout.flush()
        number = serve_http(door_of(agent, session=session, user=user, project=project), listener)
    if number == signal.SIGINT:
        show_error("interrupted; nothing was left half-done")
        raise typer.Exit(INTERRUPTED)


def door_of(agent: str | None, *, session: str | None, user: str | None, project: str | None) -> Door:
    """Return the door to an agent's memory, yet to be opened; raise `InvalidInput` for a name that can't be one."""
    from nous_online.heart import Heart
    from nous_online.mcp.acts import Visit
    from nous_online.mcp.door import Door, new_session
    from nous_online.settings import settings
    from nous_online.validation import checked_agent

    name = checked_agent(agent or settings().agent)
    return Door(lambda: Heart.open(name), Visit(session or new_session(), user_id=user, project_id=project))
