"""The command that erases an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.cli.output import JsonOption, escaped, show, show_json, show_note, waiting
from nous_online.errors import InvalidInput

if TYPE_CHECKING:
    from nous_online.erasing import Erased


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("erase", rich_help_panel="Memories")(erase)


def erase(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whose memory is erased, all of it.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be erased; change nothing.")] = False,
    reason: Annotated[str, typer.Option(help="Why; goes to the log.")] = "asked for by the operator",
    as_json: JsonOption = False,
) -> None:
    """Erase an agent: its memories, their history, what it asked, and every copy a night made. There is no undo.

    [bold]Erased[/bold]: every row of the agent in every table, events and proposals of the nights included; its rows
    in snapshots, plans and reports of the nights; what Dagster's log quotes of it. A hash stays for each memory, by
    which a restored backup can be recognised and erased again.

    [bold]Not erased[/bold]: backups and the server's write-ahead log, copies of the files made elsewhere, and what an
    agent of another name learned. The dead rows are vacuumed; the disk may keep them until it is written over.

    [bold]Examples[/bold]

    [dim]$[/dim] nous erase aria --dry-run

    [dim]$[/dim] nous erase aria --yes --reason "request of 2026-11-20"
    """
    from nous_online.database import open_url
    from nous_online.erasing import erase_everywhere

    url = open_url()
    if not dry_run and not yes:
        if as_json:
            raise InvalidInput("erasing can't be taken back: say --yes with --json, or --dry-run to see what would go")
        show_erased(erase_everywhere(url, agent, reason=reason, is_dry_run=True))
        typer.confirm(f"Erase all of agent {agent!r} for good?", abort=True, err=True)
    with waiting("erasing …"):
        erased = erase_everywhere(url, agent, reason=reason, is_dry_run=dry_run)
    if as_json:
        show_json(erased)
    else:
        show_erased(erased)


def show_erased(erased: Erased) -> None:
    """Print what was erased, or would be."""
    verb = "would be erased" if erased.is_dry_run else "erased"
    show(f"[bold]{escaped(erased.agent_id)}[/bold]: {sum(erased.rows.values())} rows {verb}")
    for name, count in {**erased.rows, **erased.copies}.items():
        show(f"  {count:>8}  {escaped(name)}")
    if not erased.is_dry_run:
        show_note("backups and the write-ahead log still hold it until they expire")
