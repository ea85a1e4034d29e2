"""Commands that bring histories in and take them out: import."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.cli.memory import opened
from nous_online.cli.output import (
    INTERRUPTED,
    AgentOption,
    JsonOption,
    escaped,
    show,
    show_error,
    show_json,
    show_note,
    stderr,
)

if TYPE_CHECKING:
    from nous_online.imports.importing import ImportReport, Progress

SHOWN_BAD_LINES = 20


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("import", rich_help_panel="Memories")(import_history)


def import_history(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A JSONL file: one fact, dialogue, episode or recall a line.")
    ],
    *,
    source: Annotated[str | None, typer.Option(help="The name of this history; the file's by default.")] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a history; run it again after an interruption and it continues.

    Bad lines are reported by number and the others kept. The exit code is 1 when nothing in the file was good.
    The format: docs/import.md.

    [bold]Examples[/bold]

    [dim]$[/dim] nous import history.jsonl --agent aria

    [dim]$[/dim] nous import exports/2026-05.jsonl --source may --json
    """
    from nous_online.imports.importing import import_file

    with opened(agent) as heart, progress_bar(file) as on_progress:
        report = import_file(heart, file, source=source, on_progress=on_progress)
    if as_json:
        show_json(report)
    else:
        show_report(report)
    if report.bad_count and not report.is_useful:
        raise typer.Exit(1)


@contextmanager
def progress_bar(file: Path) -> Generator[Callable[[Progress], None]]:
    """Show how far an import has come, on a terminal; say so when it is interrupted."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = stderr()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[lines]:,} lines"),
        TimeRemainingColumn(),
    )
    last: list[Progress] = []
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escaped(file.name), total=None, lines=0)

        def advance(progress: Progress) -> None:
            last[:] = [progress]
            bar.update(task, total=progress.total_bytes, completed=progress.bytes_read, lines=progress.lines)

        try:
            yield advance
        except KeyboardInterrupt as interrupt:
            bar.stop()
            lines = last[0].lines if last else 0
            show_error(f"interrupted; everything up to line {lines:,} is stored, run the same import again to go on")
            raise typer.Exit(INTERRUPTED) from interrupt


def show_report(report: ImportReport) -> None:
    """Tell people what an import did, and on stderr what it could not do."""
    counts = {
        "facts": report.stored,
        "episodes": report.episodes,
        "recalls replayed": report.recalls_replayed,
        "already known": report.already_known,
    }
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing new"
    show(f"[green]imported[/green]  {said}, from {report.lines:,} lines")
    for reason, count in report.skipped:
        show_note(f"{reason}: {count:,}")
    if report.ignored_fields:
        show_note(f"ignored fields: {', '.join(report.ignored_fields)}")
    for note in report.bad[:SHOWN_BAD_LINES]:
        show_error(f"line {note.number}: {note.message}")
    if report.bad_count > SHOWN_BAD_LINES:
        show_error(f"{report.bad_count - SHOWN_BAD_LINES:,} more bad lines; --json lists up to {len(report.bad):,}")
