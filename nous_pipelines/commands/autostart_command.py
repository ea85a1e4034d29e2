"""The commands that have the system run a worker and the nights: service install, uninstall, status."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from pathlib import Path

    from nous_pipelines.commands.autostart import Autostart

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
    asked = {name: autostart.answered(command) for name, command in found.asks.items()} if is_there else {}
    stand = {name: "runs or waits" if answer is not None else "does not run" for name, answer in asked.items()}
    if as_json:
        show_json({"manager": found.manager, "is_installed": is_there, "programs": stand})
        return
    show(f"{'installed' if is_there else 'not installed'} with {found.manager}")
    for name, words in stand.items():
        show(f"{name:<20} {words}")


def clock(text: str) -> tuple[int, int]:
    """Return hour and minute; raise `InvalidInput` for anything but HH:MM."""
    found = CLOCK.fullmatch(text)
    if found is None:
        raise InvalidInput(f"--at {text!r} is no time of day; write it as HH:MM, such as 03:00")
    return int(found[1]), int(found[2])


def as_plain(planned: Autostart) -> dict[str, object]:
    """Return what is written and run, without the values of settings."""
    return {
        "manager": planned.manager,
        "files": {str(path): shown_text(path, text) for path, text in planned.files.items()},
        "commands": [str(command) for command in planned.starts],
    }


def show_plan(planned: Autostart) -> None:
    """Print what would be written and run."""
    for path, text in planned.files.items():
        show(f"[bold]{escaped(str(path))}[/bold]")
        show(escaped(shown_text(path, text)))
    for command in planned.starts:
        show(f"[dim]$[/dim] {escaped(str(command))}")
        if command.told:
            show(escaped(command.told))


def shown_text(path: Path, text: str) -> str:
    """Return a file as it may be shown: of settings their names alone, since some are keys."""
    if path.suffix != ".env":
        return text
    return "".join(f"{line.partition('=')[0]}=…\n" for line in text.splitlines())
