"""Commands that import, export and erase."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from typer import Argument, Option

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import (
    INTERRUPTED,
    IS_JSON,
    AgentOption,
    Ended,
    agent_named,
    escaped,
    open_database,
    open_heart,
    show,
    show_error,
    show_note,
    stderr,
    waiting,
)
from nous_online.interfaces.cli.short_ids import brief

if TYPE_CHECKING:
    from nous_online.interfaces.imports.importing import BadRecord, ImportProgress, ImportReport
    from nous_online.memories.erasure import Erased

SHOWN_BAD_LINES = 20
SHOWN_USERS = 10
SHOWN_PROJECTS = 10
SHOWN_FORGOTTEN = 3
SHOWN_HIDDEN = 5


def import_history(  # noqa: PLR0913 (one parameter for each option)
    files: Annotated[list[Path], Argument(metavar="FILE…", help="Files to import, or folders of them.")],
    *,
    format: Annotated[  # noqa: A002 (what users call it)
        str, Option(help="auto, which tells it from the content, or the name of one: docs/import.md.")
    ] = "auto",
    source: Annotated[
        str | None, Option(help="The name of this history; the format's, or a JSONL file's, by default.")
    ] = None,
    since: Annotated[
        str | None, Option(metavar="ISO-8601", help="Leave out what was said before this day or moment.")
    ] = None,
    project: Annotated[
        str | None, Option(help="In which project; by default a coding session's is that of its folder.")
    ] = None,
    again: Annotated[
        bool, Option("--again", help="Bring back what was erased, forgotten or undone here; it is left out otherwise.")
    ] = False,
    dry_run: Annotated[bool, Option(help="Count what would be imported, and show ten; store nothing.")] = False,
    agent: AgentOption = None,
) -> object:
    """Import a history; run it again after an interruption and it continues.

    Reads JSONL, chats as lists of messages, sessions of Claude Code, Codex and Gemini CLI, exports of ChatGPT,
    claude.ai, mem0, Letta and LangGraph, the memory.jsonl of MCP's memory server, and folders of Markdown, each
    recognized by its content. What is bad is reported by its place and the rest kept. The exit code is 1 when nothing
    in it was good.
    What `nous export` wrote is restored row for row, into an agent that is empty, or not at all.
    The formats: docs/import.md.

    $ nous import chats.jsonl --agent aria
    $ nous import ~/.claude/projects --since 2026-01-01 --dry-run
    $ nous import chatgpt-export.zip && nous night --backfill
    """
    from nous_online.interfaces.imports import importing
    from nous_online.interfaces.imports.records import imported_moment

    check_names(format, files)
    if is_export(format, files):
        check_whole(source=source, since=since, project=project, again=again, dry_run=dry_run)
        return restore(files[0], agent)
    options = importing.ImportOptions(
        imported_moment("--since", since), is_dry_run=dry_run, project_id=project, is_again=again
    )
    with open_heart(agent, creates=not dry_run, may_begin=True) as heart, progress_bar(files) as on_progress:
        report = importing.import_history(
            heart, files, format=format, source=source, options=options, on_progress=on_progress
        )
    show_report(report)
    if report.bad_count and not report.is_useful:
        return Ended(1, report)
    return report


def check_names(format: str, files: Sequence[Path]) -> None:  # noqa: A002 (what users call it)
    """Raise `InvalidInput` for an unknown format or a missing file."""
    from nous_online.interfaces.imports.formats import NAMES

    if format not in NAMES:
        raise InvalidInput(f"--format {format!r} is not known; choose one of {', '.join(NAMES)}")
    for file in files:
        if not file.exists():
            raise InvalidInput(f"can't read {file}: there is no such file; name files or folders to import")


def is_export(format: str, files: Sequence[Path]) -> bool:  # noqa: A002 (what users call it)
    """Return whether to restore an export of Nous; raise `InvalidInput` for more than one of them."""
    from nous_online.interfaces.imports.formats import AUTO, NOUS, format_of

    if format == NOUS and len(files) != 1:
        raise InvalidInput(f"--format nous restores one export at a time, got {len(files)} files")
    is_one = format == AUTO and len(files) == 1 and not files[0].is_dir()
    return format == NOUS or (is_one and format_of(files[0]) == NOUS)


def check_whole(**given: object) -> None:
    """Raise `InvalidInput` for an option of histories: an export is restored whole."""
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInput(f"{option} means nothing for an export of Nous, which is restored whole; leave it out")


def restore(file: Path, agent: str | None) -> object:
    from nous_online.interfaces.exporting import restore_agent

    with open_database() as database, waiting(f"restoring {file} …"):
        restored = restore_agent(database, file, agent_id=agent)
    show(
        f"[green]restored[/green]  {escaped(restored.agent_id)} as of {restored.exported_at}: {counted(restored.rows)}"
        + (f"; {restored.erased} had been erased here and were erased again" if restored.erased else "")
    )
    return restored


def export(
    path: Annotated[
        str,
        Argument(
            metavar="PATH", help="The file to write, packed where it ends in .gz, or a folder, made where it ends in /."
        ),
    ] = ".",
    *,
    format: Annotated[  # noqa: A002 (what users call it)
        str, Option(help="nous, to be imported again, or markdown, to be read.")
    ] = "nous",
    agent: AgentOption = None,
) -> object:
    """Export everything of an agent: every memory in every state, its history, and what the nights did.

    The file is there whole or not at all, with a checksum; `nous import` restores it row for row. Keys, prompts and
    costs stay behind. With --format markdown it is a folder of pages for people.

    $ nous export backups/ --agent aria
    $ nous export aria.jsonl.gz && nous import aria.jsonl.gz --agent basil
    $ nous export pages --format markdown
    """
    name = agent_named(agent)
    if format not in ("nous", "markdown"):
        raise InvalidInput(f"--format {format!r} is not known; choose nous or markdown")
    with open_database() as database, waiting(f"exporting {name} …"):
        if format == "markdown":
            from nous_online.interfaces.exporting import write_pages

            written = write_pages(database, name, Path(path))
        else:
            from nous_online.interfaces.exporting import export_agent

            written = export_agent(database, name, export_file(path, name))
    show(f"[green]exported[/green]  {escaped(name)} to {escaped(str(written.path))}: {counted(written.rows)}")
    return written


def export_file(path: str, agent: str) -> Path:
    """Return the file to export to: the path, or in a folder (made if the path ends in /) a file of agent and day."""
    from nous_online.interfaces.exporting import make_folder

    folder = Path(path)
    if path.endswith(("/", os.sep)):
        make_folder(folder)
    if not folder.is_dir():
        return folder
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in agent).lstrip(".")
    if name != agent:  # part of its hash, so that names differ although characters were replaced
        name = f"{name or 'agent'}-{sha256(agent.encode()).hexdigest()[:8]}"
    return folder / f"{name}-{datetime.now(UTC):%Y-%m-%d}.jsonl.gz"


def counted(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {table.partition('.')[2] or table}" for table, count in rows.items()) or "nothing"


@contextmanager
def progress_bar(files: Sequence[Path]) -> Generator[Callable[[ImportProgress], None]]:
    """Show the progress of an import on a terminal; print how far it came if it is interrupted."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = stderr()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[stored]:,} memories"),
        TimeRemainingColumn(),
    )
    last: list[ImportProgress] = []
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escaped(files[0].name if len(files) == 1 else f"{len(files)} files"), total=None, stored=0)

        def advance(progress: ImportProgress) -> None:
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
    counts = {
        "facts": report.stored,
        "episodes": report.episodes,
        "recalls replayed": report.recalls_replayed,
        "restored": report.restored,
        "already known": report.already_known,
    }
    done = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing new"
    read = f"{report.lines:,} lines" if report.files == 1 else f"{report.lines:,} lines of {report.files:,} files"
    verb = "[yellow]would import[/yellow]" if report.is_dry_run else "[green]imported[/green]"
    show(f"{verb}  {done}, from {read}")
    for user, count in sorted(report.of_users.items())[:SHOWN_USERS]:
        memories = "1 memory" if count == 1 else f"{count:,} memories"
        show(f"          {memories} of user {escaped(user)}: nous recall … --user {escaped(user)}")
    if len(report.of_users) > SHOWN_USERS:
        show(f"          and of {len(report.of_users) - SHOWN_USERS:,} more users; --json lists them")
    if report.of_projects:
        show_projects(report.of_projects)
    for example in report.examples:
        show(f"  [dim]{escaped(example)}[/dim]")
    show_left_out(report)
    if report.ignored_fields:
        show_note(f"ignored fields: {', '.join(sorted(report.ignored_fields))}")
    show_bad(report)


def show_left_out(report: ImportReport) -> None:
    """Print how much was left out although nothing is wrong with it, by reason, and how it is brought back."""
    if count := report.erased_before:
        show_note(f"left out, erased here before: {count:,}; --again brings {them(count)} back")
    if count := len(report.forgotten_before):
        ids = ", ".join(brief(each) for each in report.forgotten_before[:SHOWN_FORGOTTEN])
        more = ", …" if count > SHOWN_FORGOTTEN else ""
        show_note(
            f"left out, forgotten or undone here before: {count:,} ({ids}{more}); --again brings {them(count)} back"
        )
    for reason, count in sorted(report.skipped.items()):
        show_note(f"left out, {reason}: {count:,}")
    if report.hidden:
        more = ", …" if len(report.hidden) > SHOWN_HIDDEN else ""
        show_note(f"what looks like a credential stands at {escaped(', '.join(report.hidden[:SHOWN_HIDDEN]))}{more}")


def them(count: int) -> str:
    return "it" if count == 1 else "them"


def show_projects(counts: Counter[str]) -> None:
    """Print how many memories an import has of each project, and how these are recalled."""
    total, projects = counts.total(), "1 project" if len(counts) == 1 else f"{len(counts):,} projects"
    named = ", ".join(f"{escaped(name)} {count:,}" for name, count in counts.most_common(SHOWN_PROJECTS))
    more = f" and {len(counts) - SHOWN_PROJECTS:,} more" if len(counts) > SHOWN_PROJECTS else ""
    show(f"          {'1 memory' if total == 1 else f'{total:,} memories'} of {projects}: {named}{more}")
    show("          recall them in the folder of their project, or from anywhere: nous recall … --project NAME")


def show_bad(report: ImportReport) -> None:
    """Print what was bad in an import: each message once, with its first place and the number of its lines."""
    by_message: dict[tuple[str, str], list[BadRecord]] = {}
    for note in report.bad:
        by_message.setdefault((note.unit, note.message), []).append(note)
    shown = list(by_message.items())[:SHOWN_BAD_LINES]
    for (unit, message), notes in shown:
        units = f"{unit.removesuffix('y')}ies" if unit.endswith("y") else f"{unit}s"
        is_one, place = len(notes) == 1, notes[0].place
        show_error(f"{place}: {message}" if is_one else f"{len(notes):,} {units}: {message}, first at {place}")
    left = report.bad_count - sum(len(notes) for _, notes in shown)
    if left:
        show_error(f"{left:,} more bad lines; --json lists up to {len(report.bad):,}")


ExportsOption = Annotated[
    list[Path] | None, Option(metavar="FILE", help="An export to erase it from too; may be given several times.")
]
ScrubOption = Annotated[bool, Option(help="Write tables and log anew, so that no deleted row stays on the disk.")]


def erase(  # noqa: PLR0913 (one parameter for each option)
    agent: Annotated[
        str | None, Argument(metavar="[AGENT]", help="Whose memory is erased, all of it unless a part is named.")
    ] = None,
    *,
    memory: Annotated[
        list[UUID] | None, Option(metavar="ID", help="One memory only; may be given several times.")
    ] = None,
    user: Annotated[str | None, Option(metavar="NAME", help="Everything of one of the agent's users.")] = None,
    export: ExportsOption = None,
    scrub: ScrubOption = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Erase without asking.")] = False,
    dry_run: Annotated[bool, Option(help="Say what would be erased; change nothing.")] = False,
    reason: Annotated[str, Option(help="Why; goes to the log.")] = "asked for by the operator",
    named: AgentOption = None,
) -> object:
    """Erase an agent, one of its users or some of its memories, with every copy a night made. There is no undo.

    [bold]Erased[/bold]: every row of it in every table, events and proposals of the nights included; its rows
    in snapshots, plans and reports of the nights; what Dagster's log quotes of it. A hash stays for each memory, by
    which a restored backup can be recognised and erased again, and an import leaves out what was erased by itself.

    [bold]With a memory[/bold] go the facts that were merged into it, the questions that found it and, with an
    episode, what was drawn from it. A fact that keeps statements of others takes the words of the oldest of them.

    [bold]Not erased[/bold]: backups and the server's write-ahead log, copies of the files made elsewhere, and what an
    agent of another name learned. The dead rows are vacuumed; the disk may keep them until it is written over, unless
    --scrub writes tables and log anew.

    $ nous erase aria --dry-run
    $ nous erase aria --yes --reason "request of 2026-11-20"
    $ nous erase --memory $ID --scrub
    $ nous erase aria --user ada --export aria.jsonl.gz
    """
    from nous_online.database.connection import open_url
    from nous_online.interfaces.exporting import erase_exports
    from nous_online.memories.erasure import Part, erase_everywhere, erase_some, installed_erasers
    from nous_online.memories.erasure import scrub as rewrite_tables

    if agent is None and not (memory or user):
        raise InvalidInput("name the agent to erase: nous erase AGENT; or a part: --memory ID, --user NAME")
    name, url = agent_named(named if agent is None else agent), open_url()
    erasers = [*installed_erasers(), partial(erase_exports, paths=export or [])]
    run = partial(erase_everywhere, url, name, reason=reason, erasers=erasers)
    if memory or user is not None:
        run = partial(erase_some, url, name, Part(tuple(memory or ()), user), reason=reason, erasers=erasers)
    if not dry_run and not yes:
        if IS_JSON.get():
            raise InvalidInput("erasing can't be taken back: say --yes with --json, or --dry-run to see what would go")
        show_erased(run(is_dry_run=True), of_user=user)
        what = f"{len(memory)} memories" if memory else f"user {user!r}" if user else "all"
        typer.confirm(f"Erase {what} of agent {name!r} for good?", abort=True, err=True)
    with waiting("erasing …"):
        done = run(is_dry_run=dry_run)
        left = rewrite_tables(url) if scrub and not dry_run else ()
    show_erased(done, of_user=user, left=left, is_scrubbed=scrub)
    return {**vars(done), "is_scrubbed": scrub and not dry_run and not left, "left": left}


def show_erased(
    erased: Erased, *, of_user: str | None = None, left: tuple[str, ...] = (), is_scrubbed: bool = False
) -> None:
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
            show_note(f"{brief(each)} {what}")
    if of_user:
        show_note(f"what others said about {of_user} is theirs and stays: nous recall finds it, --memory erases it")
    if erased.is_dry_run:
        return
    where = "backups" if is_scrubbed else "backups and the write-ahead log"
    show_note(f"{where} still hold it until they expire")
    for each in left:
        show_note(each)
