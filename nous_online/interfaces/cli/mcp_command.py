"""The command that serves agents over the Model Context Protocol: mcp."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import INTERRUPTED, AgentOption, JsonOption, escaped, show, show_error, show_json

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
    repository: Annotated[
        bool, typer.Option("--repository", help="In the project of the repository the client works in.")
    ] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve an agent's memory over the Model Context Protocol, for Claude Code, Claude Desktop or any client.

    Over stdio it ends when the client leaves; nothing but the protocol goes to stdout. Over HTTP it serves this
    machine alone, and whoever has a key or, without keys, the address that is printed: it ends in a token, drawn at
    each start unless NOUS_TOKEN tells one. Ctrl-C and SIGTERM end it after the calls that have begun.

    [bold]Examples[/bold]

    [dim]$[/dim] claude mcp add nous -- nous mcp --agent aria

    [dim]$[/dim] nous mcp --http --port 8421 --agent aria
    """
    from nous_online.core.settings import settings
    from nous_online.core.validation import checked_agent
    from nous_online.interfaces.mcp.mcp_server import listening, serve_http, serve_stdio
    from nous_online.interfaces.request_checks import door_token, with_token

    name = checked_agent(agent or settings().agent)
    visit = visit_for(session, user, project, is_in_repository=repository)
    if not http:
        if with_keys:
            raise InvalidInput("--with-keys is for --http; over stdio whoever starts the server is let in")
        serve_stdio(door_of(name, visit))
        return
    token = None if with_keys else door_token()
    with listening(port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        tell(url if token is None else with_token(url, token), as_json=as_json)
        number = serve_http(served(name, visit, token=token), listener)
    if number == signal.SIGINT:
        show_error("interrupted; nothing was left half-done")
        raise typer.Exit(INTERRUPTED)


def visit_for(session: str | None, user: str | None, project: str | None, *, is_in_repository: bool) -> Visit:
    """Return who calls; in which project the repository says where nobody does."""
    from nous_online.interfaces.hooks.repository import current_project
    from nous_online.interfaces.mcp.acts import Visit
    from nous_online.interfaces.mcp.heart_provider import new_session

    named = project or (current_project() if is_in_repository else None)
    return Visit(session or new_session(), user_id=user, project_id=named)


def tell(url: str, *, as_json: bool) -> None:
    """Say where it serves, at once."""
    if as_json:
        show_json({"url": url})
    else:
        show(f"[green]ready[/green]  {escaped(url)}")
    sys.stdout.flush()


def door_of(name: str, visit: Visit) -> SharedHeart:
    """Return the door to an agent's memory, yet to be opened."""
    from nous_online.heart import Heart
    from nous_online.interfaces.mcp.heart_provider import SharedHeart

    return SharedHeart(lambda: Heart.open(name), visit)


def served(name: str, visit: Visit, *, token: str | None) -> Served:
    """Return what HTTP serves: one agent's memory to who has the token, or without one to each key its agent's."""
    from nous_online.interfaces.api.hearts import Hearts
    from nous_online.interfaces.mcp.key_authentication import Doors
    from nous_online.interfaces.mcp.mcp_server import open_by_key, open_by_token

    if token is None:
        return open_by_key(Doors(Hearts(), visit, agent_id=name))
    return open_by_token(door_of(name, visit), token)
