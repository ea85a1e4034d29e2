"""The commands that keep programs running: dev, and service install, uninstall, status."""

from __future__ import annotations

import re
import sys
import threading
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import JsonOption, escaped, show, show_json, show_note, without_controls
from nous_online.interfaces.cli.server_commands import address_of, place_of, stopping

if TYPE_CHECKING:
    from pathlib import Path

    from nous_online.processes import Program
    from nous_pipelines.commands.autostart import Autostart


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

    Prints the address of each as soon as it answers; a port that is taken is replaced by a free one. All need a token,
    a new one at each start or that of NOUS_TOKEN: the interface in the address that is printed, the API as
    `Authorization: Bearer`. The console acts as an operator: its address has a token of its own. Logs go to standard
    error. Ctrl-C, SIGTERM and closing the terminal end everything; PostgreSQL stays if it ran before. When one of them
    ends by itself, the command names it, ends the others, and exits with 1. With --json it prints one object with the
    addresses and the token, once all of them answer.

    [bold]Examples[/bold]

    [dim]$[/dim] nous dev

    [dim]$[/dim] nous dev --no-ui --console-port 9000
    """
    from nous_online.interfaces.request_checks import TOKEN_BYTES, interface_token
    from nous_online.processes import run_together, watch_programs
    from nous_pipelines.orchestration.instance import api_program, console_program, dagster_program, database_up

    with stopping() as stop, database_up() as url:
        place = place_of(url)
        if not as_json:
            show(f"[green]ready[/green]  PostgreSQL  {escaped(address_of(place))}")
        token, console_token = interface_token(), token_urlsafe(TOKEN_BYTES)
        programs = [] if no_interface else [dagster_program(port, token=token, read_only=read_only)]
        if not no_api and offers_api():
            programs.append(api_program(api_port, token=token))
            programs.append(console_program(console_port, token=console_token, read_only=read_only))
        addresses: dict[str, str] = {}

        def on_answer(program: Program) -> None:
            addresses[program.name.lower()] = program.entrance or program.address
            if not as_json:
                show(f"[green]ready[/green]  {program.name:<10}  {escaped(addresses[program.name.lower()])}")
                if not program.entrance:
                    show_note(f"programs call it with the header `Authorization: Bearer {token}`")
            elif len(addresses) == len(programs):
                show_json({"postgresql": address_of(place), **addresses, "token": token})

        show_note("Ctrl-C ends everything")
        with run_together(programs, tell=lambda name, line: log(name, line.replace(console_token, "…"))) as running:
            watch_programs(running, stop=stop, on_answer=on_answer, ready_timeout_s=READY_TIMEOUT_S)
            show_note("ending …")


def offers_api() -> bool:
    """Return whether the extra `api`, with the console, is installed; print how to install it if not."""
    from nous_pipelines.orchestration.instance import has_api

    found = has_api()
    if not found:
        show_note(
            "the REST API and the console stay out: they need the extra `api`; run: pip install 'nous-pipelines[api]'"
        )
    return found


def log(name: str, line: str) -> None:
    """Print a line of a program's output after its name."""
    with WRITING:
        sys.stderr.write(f"{name.lower():<7} | {without_controls(COLOUR.sub('', line))}\n")
        sys.stderr.flush()


# --- the service ---

service = typer.Typer(
    name="service", help="Have the system run the worker and every night, without Dagster.", no_args_is_help=True
)
CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be written and run; change nothing.")]
ManagerOption = Annotated[
    Literal["systemd", "launchd", "cron"] | None, typer.Option(help="Who runs it; by default who answers here.")
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(service, rich_help_panel="Nights")


@service.command()
def install(
    *,
    at: Annotated[str, typer.Option(metavar="HH:MM", help="When nights run, by the local clock.")] = "03:00",
    manager: ManagerOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run `nous worker` always and `nous night --backfill` once a day, by systemd, launchd or cron.

    A night that was missed, since the machine was off, is made up for. The settings of this shell (NOUS_…, keys of
    models) are kept beside the memories, for you alone to read: install again when they change. What runs says what
    it does in the journal of systemd, else in `service.log` beside the memories.

    [bold]Examples[/bold]

    [dim]$[/dim] nous service install --dry-run

    [dim]$[/dim] nous service install --at 04:30
    """
    from nous_pipelines.commands import autostart

    planned = autostart.autostart_here(manager, clock(at))
    if not dry_run:
        autostart.install(planned)
    if as_json:
        show_json({"is_dry_run": dry_run, **as_plain(planned)})
    elif dry_run:
        show_plan(planned)
    else:
        show(f"[green]installed[/green]  with {planned.manager}; the nights run at {at}")
        show_note("`nous service status` says how it stands, `nous status` when the last night was")


@service.command()
def uninstall(*, manager: ManagerOption = None, dry_run: DryRunOption = False, as_json: JsonOption = False) -> None:
    """End what `nous service install` started and delete its files; memories stay where they are.

    [bold]Examples[/bold]

    [dim]$[/dim] nous service uninstall
    """
    from nous_pipelines.commands import autostart

    found = autostart.autostart_here(manager, (0, 0))
    was_there = found.is_installed
    if was_there and not dry_run:
        autostart.uninstall(found)
    if as_json:
        show_json({"is_dry_run": dry_run, "was_installed": was_there})
    elif not was_there:
        show(f"no service of Nous is installed with {found.manager}")
    else:
        show(f"{'would be uninstalled' if dry_run else '[green]uninstalled[/green]'}  from {found.manager}")


@service.command()
def status(*, manager: ManagerOption = None, as_json: JsonOption = False) -> None:
    """Say whether the service is installed, and how its programs stand.

    [bold]Examples[/bold]

    [dim]$[/dim] nous service status --json
    """
    from nous_pipelines.commands import autostart

    found = autostart.autostart_here(manager, (0, 0))
    is_there = found.is_installed
    answers = {name: autostart.try_command(command) for name, command in found.asks.items()} if is_there else {}
    stand = {name: "runs or waits" if answer is not None else "does not run" for name, answer in answers.items()}
    if as_json:
        show_json({"manager": found.manager, "is_installed": is_there, "programs": stand})
        return
    show(f"{'installed' if is_there else 'not installed'} with {found.manager}")
    for name, words in stand.items():
        show(f"{name:<20} {words}")


def clock(text: str) -> tuple[int, int]:
    """Parse a time of day as hour and minute; raise `InvalidInput` for anything but HH:MM."""
    found = CLOCK.fullmatch(text)
    if found is None:
        raise InvalidInput(f"not a time of day: --at {text!r} (want HH:MM, such as 03:00)")
    return int(found[1]), int(found[2])


def as_plain(planned: Autostart) -> dict[str, object]:
    """Return files and commands of a service as plain values for JSON, without the values of settings."""
    return {
        "manager": planned.manager,
        "files": {str(path): shown_text(path, text) for path, text in planned.files.items()},
        "commands": [str(command) for command in planned.starts],
    }


def show_plan(planned: Autostart) -> None:
    """Print the files that would be written and the commands that would be run."""
    for path, text in planned.files.items():
        show(f"[bold]{escaped(str(path))}[/bold]")
        show(escaped(shown_text(path, text)))
    for command in planned.starts:
        show(f"[dim]$[/dim] {escaped(str(command))}")
        if command.stdin:
            show(escaped(command.stdin))


def shown_text(path: Path, text: str) -> str:
    """Return a file's text, of the settings file only the names: some values are keys."""
    if path.suffix != ".env":
        return text
    return "".join(f"{line.partition('=')[0]}=…\n" for line in text.splitlines())
