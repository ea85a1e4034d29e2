"""Commands that bring histories in and take them out: import, export."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
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
from nous_online.errors import InvalidInput

if TYPE_CHECKING:
    from nous_online.imports.reports import ImportReport, Progress

SHOWN_BAD_LINES = 20


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("import", rich_help_panel="Memories")(import_history)


def import_history(  # noqa: PLR0913 (one parameter for each option)
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files to import, or folders of them.")],
    *,
    format: Annotated[  # noqa: A002 (what users call it)
        str, typer.Option("--format", help="auto, jsonl, claude-code, chatgpt, mem0, markdown or nous.")
    ] = "auto",
    source: Annotated[
        str | None, typer.Option(help="The name of this history; the format's, or a JSONL file's, by default.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="ISO-8601", help="Leave out what was said before this day or moment.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be imported; store nothing.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a history; run it again after an interruption and it continues.

    Reads JSONL, transcripts of Claude Code, exports of ChatGPT and mem0, and folders of Markdown, each told from its
    content. What is bad is reported by its place and the rest kept. The exit code is 1 when nothing in it was good.
    The formats: docs/import.md.

    [bold]Examples[/bold]

    [dim]$[/dim] nous import history.jsonl --agent aria

    [dim]$[/dim] nous import ~/.claude/projects --since 2026-01-01 --dry-run

    [dim]$[/dim] nous import chatgpt-export.zip && nous night --backfill
    """
    from nous_online.imports import importing

    check_names(format, files)
    choice = importing.Choice(since=moment(since), is_dry_run=dry_run)
    with opened(agent) as heart, progress_bar(files) as on_progress:
        report = importing.import_history(
            heart, files, format=format, source=source, choice=choice, on_progress=on_progress
        )
    if as_json:
        show_json(report)
    else:
        show_report(report)
    if report.bad_count and not report.is_useful:
        raise typer.Exit(1)


def check_names(format: str, files: Sequence[Path]) -> None:  # noqa: A002 (what users call it)
    """Raise `InvalidInput` for a format nobody knows, or a file that is not there."""
    from nous_online.imports.formats import NAMES

    if format not in NAMES:
        raise InvalidInput(f"--format {format!r} is not known; choose one of {', '.join(NAMES)}")
    for file in files:
        if not file.exists():
            raise InvalidInput(f"can't read {file}: there is no such file; name files or folders to import")


def moment(text: str | None) -> datetime | None:
    """Return the moment an option names, a day from its beginning in UTC; raise `InvalidInput` for anything else."""
    from nous_online.imports.records import imported_moment

    return imported_moment("--since", text)


@contextmanager
def progress_bar(files: Sequence[Path]) -> Generator[Callable[[Progress], None]]:
    """Show how far an import has come, on a terminal; say so when it is interrupted."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = stderr()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[stored]:,} memories"),
        TimeRemainingColumn(),
    )
    last: list[Progress] = []
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escaped(files[0].name if len(files) == 1 else f"{len(files)} files"), total=None, stored=0)

        def advance(progress: Progress) -> None:
            last[:] = [progress]
            stored = progress.stored + progress.already_known
            bar.update(task, total=progress.total_bytes, completed=progress.bytes_read, stored=stored)

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
    read = f"{report.lines:,} lines" if report.files == 1 else f"{report.lines:,} lines of {report.files:,} files"
    verb = "[yellow]would import[/yellow]" if report.is_dry_run else "[green]imported[/green]"
    show(f"{verb}  {said}, from {read}")
    for reason, count in report.skipped:
        show_note(f"left out, {reason}: {count:,}")
    if report.ignored_fields:
        show_note(f"ignored fields: {', '.join(report.ignored_fields)}")
    for note in report.bad[:SHOWN_BAD_LINES]:
        show_error(f"{note.place}: {note.message}")
    if report.bad_count > SHOWN_BAD_LINES:
        show_error(f"{report.bad_count - SHOWN_BAD_LINES:,} more bad lines; --json lists up to {len(report.bad):,}")
