"""The command that opens the console: pages in a browser, on this machine alone."""

from __future__ import annotations

from typing import Annotated

import typer

from nous_online.interfaces.cli.output import AgentOption, show, show_note


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("console", rich_help_panel="Doors (need the extra `api`)")(console)


def console(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where, on 127.0.0.1; 0 is any that is free.")] = 8430,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, and change nothing.", metavar="")
    ] = False,
    agent: AgentOption = None,
) -> None:
    """Look at an agent's memories in a browser until Ctrl-C, and settle what waits for a person.

    Prints an address with a token, drawn at each start or told in NOUS_TOKEN; whoever opens it acts as an operator.
    There are pages of memories and what each rests on, of contradictions to decide, of nights, and of what a question
    recalls. Asking counts as a recall, as `nous recall` does.

    [bold]Examples[/bold]

    [dim]$[/dim] nous console --agent aria

    [dim]$[/dim] nous console --read-only --port 9000
    """
    from nous_online.core.settings import settings
    from nous_online.core.validation import checked_agent
    from nous_online.interfaces.api.hearts import Hearts
    from nous_online.interfaces.console.console_server import serve
    from nous_online.interfaces.console.console_state import ConsoleState
    from nous_online.interfaces.request_checks import door_token

    name = checked_agent(agent or settings().agent)
    state = ConsoleState(Hearts(works_in_background=False), name, door_token(), read_only)

    def on_ready(address: str) -> None:
        show(address)
        show_note(f"open it to see the memory of {name!r}; Ctrl-C ends it")

    serve(state, port=port, on_ready=on_ready)
