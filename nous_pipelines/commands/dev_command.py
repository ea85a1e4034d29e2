"""The command that runs everything there is to look at: PostgreSQL, the Dagster interface, REST API and console."""

from __future__ import annotations

import re
import sys
import threading
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.interfaces.cli.output import JsonOption, escaped, inert, show, show_json, show_note
from nous_online.interfaces.cli.server_commands import place_of, stopping, told

if TYPE_CHECKING:
    from nous_online.processes import Program

READY_TIMEOUT_S = 120.0
"""Dagster takes 5 to 10 s to come up on a machine that does nothing else."""
WRITING = threading.Lock()
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def dev(  # noqa: PLR0913 (one parameter for each option)
    *,
    port: Annotated[int, typer.Option(help="Where the Dagster interface listens, on 127.0.0.1.")] = 3000,
    api_port: Annotated[int, typer.Option(help="Where the REST API listens, on 127.0.0.1.")] = 8420,
    console_port: Annotated[int, typer.Option(help="Where the console listens, on 127.0.0.1.")] = 8430,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="The Dagster interface and the console show, and change nothing.")
    ] = False,
    no_interface: Annotated[bool, typer.Option("--no-ui", help="Without the Dagster interface and daemon.")] = False,
    no_api: Annotated[bool, typer.Option("--no-api", help="Without the REST API and the console.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run PostgreSQL, the Dagster interface with its daemon, the REST API and the console until Ctrl-C.

    Says where each answers as soon as it does; a port that is taken is replaced by one that is free. All ask for a
    token, drawn at each start or told in NOUS_TOKEN: the interface in the address that is printed, the API as
    `Authorization: Bearer`. The console acts as an operator: its address has a token of its own. What they log goes to
    standard error. Ctrl-C, SIGTERM and closing the terminal end all of it; PostgreSQL stays if it ran before. The exit
    code is 1 when one of them ended by itself: it says which, and ends the others. With --json it is one object with
    the addresses and the token, once all of them answer.

    [bold]Examples[/bold]

    [dim]$[/dim] nous dev

    [dim]$[/dim] nous dev --no-ui --console-port 9000
    """
    from nous_online.interfaces.request_checks import TOKEN_BYTES, door_token
    from nous_online.processes import attend, together
    from nous_pipelines.orchestration.interface import api_program, console_program, dagster_program, database_up

    with stopping() as stop, database_up() as url:
        place = place_of(url)
        if not as_json:
            show(f"[green]ready[/green]  PostgreSQL  {escaped(told(place))}")
        token, own = door_token(), token_urlsafe(TOKEN_BYTES)
        programs = [] if no_interface else [dagster_program(port, token=token, read_only=read_only)]
        if not no_api and offers_api():
            programs.append(api_program(api_port, token=token))
            programs.append(console_program(console_port, token=own, read_only=read_only))
        addresses: dict[str, str] = {}

        def on_answer(program: Program) -> None:
            addresses[program.name.lower()] = program.entrance or program.address
            if not as_json:
                show(f"[green]ready[/green]  {program.name:<10}  {escaped(addresses[program.name.lower()])}")
                if not program.entrance:
                    show_note(f"programs call it with the header `Authorization: Bearer {token}`")
            elif len(addresses) == len(programs):
                show_json({"postgresql": told(place), **addresses, "token": token})

        show_note("Ctrl-C ends everything")
        with together(programs, tell=lambda name, line: log(name, line.replace(own, "…"))) as running:
            attend(running, stop=stop, on_answer=on_answer, ready_timeout_s=READY_TIMEOUT_S)
            show_note("ending …")


def offers_api() -> bool:
    """Tell whether the extra `api`, with the console, is installed, and what to do where it is not."""
    from nous_pipelines.orchestration.interface import has_api

    found = has_api()
    if not found:
        show_note(
            "the REST API and the console stay out: they need the extra `api`; run: pip install 'nous-pipelines[api]'"
        )
    return found


def log(name: str, line: str) -> None:
    """Print a line that a program wrote, behind its name."""
    with WRITING:
        sys.stderr.write(f"{name.lower():<7} | {inert(COLOUR.sub('', line))}\n")
        sys.stderr.flush()
