"""The command that serves agents over the Model Context Protocol: mcp."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import INTERRUPTED, AgentOption, JsonOption, show, show_error, show_json

if TYPE_CHECKING:
    from nous_online.interfaces.mcp.acts import Visit
    from nous_online.interfaces.mcp.heart_provider import SharedHeart
    from nous_online.interfaces.mcp.mcp_server import Served

PORT = 8421


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("mcp", rich_help_panel="Doors (need the extra `mcp`)")(mcp)


def mcp(  # noqa: PLR0913 (one parameter for each option)
    *,
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP on this machine, instead of stdio.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where, with --http; 0 for any free port.")] = PORT,
    with_keys: Annotated[
        bool, typer.Option("--with-keys", help="With --http: let in whoever has a key (`nous key`), to its own agent.")
    ] = False,
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
    from nous_online.core.settings import settings
    from nous_online.core.validation import checked_agent
    from nous_online.interfaces.mcp.acts import Visit
    from nous_online.interfaces.mcp.heart_provider import new_session
    from nous_online.interfaces.mcp.mcp_server import listening, serve_http, serve_stdio

    name = checked_agent(agent or settings().agent)
    visit = Visit(session or new_session(), user_id=user, project_id=project)
    if not http:
        if with_keys:
            raise InvalidInput("--with-keys is for --http; over stdio whoever starts the server is let in")
        serve_stdio(door_of(name, visit))
        return
    with listening(port) as listener:
        tell(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", as_json=as_json)
        number = serve_http(served(name, visit, with_keys=with_keys), listener)
    if number == signal.SIGINT:
        show_error("interrupted; nothing was left half-done")
        raise typer.Exit(INTERRUPTED)


def tell(url: str, *, as_json: bool) -> None:
    """Say where it serves, at once."""
    if as_json:
        show_json({"url": url})
    else:
        show(f"[green]ready[/green]  {url}")
    sys.stdout.flush()


def door_of(name: str, visit: Visit) -> SharedHeart:
    """Return the door to an agent's memory, yet to be opened."""
    from nous_online.heart import Heart
    from nous_online.interfaces.mcp.heart_provider import SharedHeart

    return SharedHeart(lambda: Heart.open(name), visit)


def served(name: str, visit: Visit, *, with_keys: bool) -> Served:
    """Return what HTTP serves: one agent's memory to all, or to each holder of a key its own."""
    from nous_online.interfaces.api.hearts import Hearts
    from nous_online.interfaces.mcp.key_authentication import Doors
    from nous_online.interfaces.mcp.mcp_server import open_by_key, open_to_all

    return open_by_key(Doors(Hearts(), visit, agent_id=name)) if with_keys else open_to_all(door_of(name, visit))
