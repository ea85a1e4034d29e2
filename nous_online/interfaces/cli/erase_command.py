"""The command that erases an agent, one of its users, or some memories."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import (
    AgentOption,
    JsonOption,
    escaped,
    plain,
    show,
    show_json,
    show_note,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nous_online.memories.erasure import Erased


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("erase", rich_help_panel="Memories")(erase)


def erase(  # noqa: PLR0913 (one parameter for each option)
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="Whose memory is erased, all of it unless a part is named.")
    ] = None,
    *,
    memory: Annotated[
        list[UUID] | None, typer.Option(metavar="ID", help="One memory only; may be given several times.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Everything of one of the agent's users.")] = None,
    export: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An export to erase it from too; may be given several times."),
    ] = None,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Write tables and log anew, so that no deleted row stays on the disk.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be erased; change nothing.")] = False,
    reason: Annotated[str, typer.Option(help="Why; goes to the log.")] = "asked for by the operator",
    named: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase an agent, one of its users or some of its memories, with every copy a night made. There is no undo.

    [bold]Erased[/bold]: every row of it in every table, events and proposals of the nights included; its rows
    in snapshots, plans and reports of the nights; what Dagster's log quotes of it. A hash stays for each memory, by
    which a restored backup can be recognised and erased again.

    [bold]With a memory[/bold] go the facts that were merged into it, the questions that found it and, with an
    episode, what was drawn from it. A fact that keeps statements of others takes the words of the oldest of them.

    [bold]Not erased[/bold]: backups and the server's write-ahead log, copies of the files made elsewhere, and what an
    agent of another name learned. The dead rows are vacuumed; the disk may keep them until it is written over, unless
    --scrub writes tables and log anew.

    [bold]Examples[/bold]

    [dim]$[/dim] nous erase aria --dry-run

    [dim]$[/dim] nous erase aria --yes --reason "request of 2026-11-20"

    [dim]$[/dim] nous erase --memory $ID --scrub

    [dim]$[/dim] nous erase aria --user ada --export aria.jsonl.gz
    """
    from nous_online.database.connection import open_url
    from nous_online.database.scrub import scrub as write_anew

    name, url = agent_named(agent, named, is_part=bool(memory or user)), open_url()
    run = partial(erase_named, url, name, memory or [], user, exports=export or [], reason=reason)
    if not dry_run and not yes:
        if as_json:
            raise InvalidInput("erasing can't be taken back: say --yes with --json, or --dry-run to see what would go")
        show_erased(run(is_dry_run=True))
        what = f"{len(memory)} memories" if memory else f"user {user!r}" if user else "all"
        typer.confirm(f"Erase {what} of agent {name!r} for good?", abort=True, err=True)
    with waiting("erasing …"):
        done = run(is_dry_run=dry_run)
        left = write_anew(url) if scrub and not dry_run else ()
    if as_json:
        show_json({**plain(done), "is_scrubbed": scrub and not dry_run and not left, "left": left})
    else:
        show_erased(done, left=left, is_scrubbed=scrub)


def erase_named(  # noqa: PLR0913 (what the options say)
    url: str,
    agent_id: str,
    memory_ids: Sequence[UUID],
    user_id: str | None,
    *,
    exports: Sequence[Path],
    reason: str,
    is_dry_run: bool,
) -> Erased:
    """Erase an agent, or the part that is named, from the store, from copies and from exports; or count it."""
    from nous_online.interfaces.exports.erase_export import erase_exports
    from nous_online.memories.erasure import Part, erase_everywhere, erase_some, installed_erasers

    erasers = [*installed_erasers(), partial(erase_exports, paths=exports)]
    if not memory_ids and user_id is None:
        return erase_everywhere(url, agent_id, reason=reason, is_dry_run=is_dry_run, erasers=erasers)
    part = Part(tuple(memory_ids), user_id)
    return erase_some(url, agent_id, part, reason=reason, is_dry_run=is_dry_run, erasers=erasers)


def agent_named(agent: str | None, named: str | None, *, is_part: bool) -> str:
    """Return whose memory it is; to erase all of an agent its name has to be said right here."""
    from nous_online.core.settings import settings

    if agent is None and not is_part:
        raise InvalidInput("name the agent to erase: nous erase AGENT; or a part: --memory ID, --user NAME")
    return agent or named or settings().agent


def show_erased(erased: Erased, *, left: tuple[str, ...] = (), is_scrubbed: bool = False) -> None:
    """Print what was erased, or would be."""
    verb = "would be erased" if erased.is_dry_run else "erased"
    show(f"[bold]{escaped(erased.agent_id)}[/bold]: {sum(erased.rows.values())} rows {verb}")
    for name, count in {**erased.rows, **erased.copies}.items():
        show(f"  {count:>8}  {escaped(name)}")
    for ids, what in (
        (erased.with_it, "goes with it: merged into it, or drawn from it"),
        (erased.reworded, "stays, on the statements it has from elsewhere"),
        (erased.told_in, "is an episode that may still tell it: erase that too, with --memory"),
    ):
        for each in ids:
            show_note(f"{each} {what}")
    if erased.is_dry_run:
        return
    where = "backups" if is_scrubbed else "backups and the write-ahead log"
    show_note(f"{where} still hold it until they expire")
    for each in left:
        show_note(each)
