"""The command that runs everything there is to look at: PostgreSQL, the Dagster interface and the REST API."""

from __future__ import annotations

import re
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.interfaces.cli.output import JsonOption, escaped, show, show_json, show_note
from nous_online.interfaces.cli.server_commands import place_of, told
from nous_online.interfaces.cli.stopping import stopping

if TYPE_CHECKING:
    from nous_online.processes.foreground import Program

READY_TIMEOUT_S = 120.0
"""Dagster takes 5 to 10 s to come up on a machine that does nothing else."""
WRITING = threading.Lock()
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def dev(
    *,
    port: Annotated[int, typer.Option(help="Where the Dagster interface listens, on 127.0.0.1.")] = 3000,
    api_port: Annotated[int, typer.Option(help="Where the REST API listens, on 127.0.0.1, without keys.")] = 8420,
    no_interface: Annotated[bool, typer.Option("--no-ui", help="Without the Dagster interface and daemon.")] = False,
    no_api: Annotated[bool, typer.Option("--no-api", help="Without the REST API.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run PostgreSQL, the Dagster interface with its daemon, and the REST API over your memories until Ctrl-C.

    Says where each answers as soon as it does; a port that is taken is replaced by one that is free. What they log
    goes to standard error. Ctrl-C, SIGTERM and closing the terminal end all of it; PostgreSQL stays if it ran before.
    The exit code is 1 when one of them ended by itself: it says which, and ends the others. With --json it is one
    object with the addresses, once all of them answer.

    [bold]Examples[/bold]

    [dim]$[/dim] nous dev

    [dim]$[/dim] nous dev --no-ui --api-port 9000
    """
    from nous_online.processes.foreground import attend, together
    from nous_pipelines.orchestration.interface import database_up

    with stopping() as stop, database_up() as url:
        place = place_of(url)
        if not as_json:
            show(f"[green]ready[/green]  PostgreSQL  {escaped(told(place))}")
        programs = chosen(port, api_port, with_interface=not no_interface, with_api=not no_api)
        addresses: dict[str, str] = {}

        def on_answer(program: Program) -> None:
            addresses[program.name.lower()] = program.address
            if not as_json:
                show(f"[green]ready[/green]  {program.name:<10}  {program.address}")
            elif len(addresses) == len(programs):
                show_json({"postgresql": told(place), **addresses})

        show_note("Ctrl-C ends everything")
        with together(programs, tell=log) as running:
            attend(running, stop=stop, on_answer=on_answer, ready_timeout_s=READY_TIMEOUT_S)
            show_note("ending …")


def chosen(port: int, api_port: int, *, with_interface: bool, with_api: bool) -> list[Program]:
    """Return the programs to run; the API only where its extra is installed."""
    from nous_pipelines.orchestration.interface import api_program, dagster_program, has_api

    programs = [dagster_program(port)] if with_interface else []
    if with_api and has_api():
        programs.append(api_program(api_port))
    elif with_api:
        show_note("the REST API stays out: it needs the extra `api`; run: pip install 'nous-pipelines[api]'")
    return programs


def log(name: str, line: str) -> None:
    """Print a line that a program wrote, behind its name."""
    from nous_online.interfaces.cli.terminal import inert

    with WRITING:
        sys.stderr.write(f"{name.lower():<7} | {inert(COLOUR.sub('', line))}\n")
        sys.stderr.flush()
