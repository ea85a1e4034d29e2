"""Commands that find out how things are done: patterns in source, workflows in what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.interfaces.cli.memory_commands import ProjectOption, UserOption, opened
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.interfaces.code.pattern_learning import LearnedPatterns
    from nous_online.memories.workflows import LearnedWorkflow

SKIPPED_SHOWN = 10
LookOption = Annotated[bool, typer.Option("--look-only", help="Show what is found and store nothing.", metavar="")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (patterns, workflows):
        app.command(rich_help_panel="Memories")(command)


def patterns(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Source files, or folders that hold some.")],
    *,
    look_only: LookOption = False,
    project: ProjectOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn how a project is written from its Python, TypeScript, JavaScript and Go source.

    Each pattern is a procedure: how requests are answered, tests written, errors treated, and what functions do over
    again. A pattern seen before is brought up to date. What others wrote or tools made is passed over. Needs the extra
    `code`.

    [bold]Examples[/bold]

    [dim]$[/dim] nous patterns src tests

    [dim]$[/dim] nous patterns src/api --look-only --json
    """
    from nous_online.interfaces.code.pattern_learning import learn_patterns

    with opened(agent) as heart:
        learned = learn_patterns(heart, paths, project_id=project, is_recorded=not look_only)
    if as_json:
        show_json(learned)
        return
    for each in learned.patterns:
        show(f"[bold]{escaped(each.hint)}[/bold]  [dim]{escaped(each.name)}, seen {each.count:,} times[/dim]")
    show_reading(learned)


def show_reading(learned: LearnedPatterns) -> None:
    """Say how many files were read, which were not and why, and what could not be stored."""
    show_note(f"{learned.files_read:,} files read, {len(learned.patterns):,} patterns found")
    for path, reason in list(learned.skipped.items())[:SKIPPED_SHOWN]:
        show_note(f"passed over {path}: {reason}")
    if len(learned.skipped) > SKIPPED_SHOWN:
        show_note(f"passed over {len(learned.skipped) - SKIPPED_SHOWN:,} more files; --json lists them")
    for reason in learned.refused.values():
        show_note(reason)


def workflows(
    *,
    look_only: LookOption = False,
    user: UserOption = None,
    project: ProjectOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep the steps that at least three closed episodes took in the same order as workflows.

    Steps are what the agent recorded with `Heart.record_step`. A workflow of the same steps is found again, and each
    episode counts once for it, as a success or a failure.

    [bold]Examples[/bold]

    [dim]$[/dim] nous workflows --look-only

    [dim]$[/dim] nous workflows --agent aria --json
    """
    with opened(agent) as heart:
        learned = heart.learn_workflows(user_id=user, project_id=project, is_recorded=not look_only)
    if as_json:
        show_json({"workflows": learned})
        return
    for each in learned:
        show(f"[green]{each.action}[/green]  {escaped(workflow_line(each))}")
    if not learned:
        show_note("no three closed episodes recorded the same steps yet")


def workflow_line(learned: LearnedWorkflow) -> str:
    """Return a workflow as one line: its hint, how many sessions hold it, and how they went."""
    found = learned.found
    hint = f"{found.name}: {'→'.join(step.name for step in found.steps)}"
    share = "" if found.success_share is None else f", {found.success_share:.0%} succeeded"
    return f"{hint}  ({found.support} sessions{share})"
