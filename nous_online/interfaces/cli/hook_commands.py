"""The commands that give a coding agent a memory: install, uninstall, and the hook it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nous_online.interfaces.file_changes import FileChange

PANEL = "Doors (need the extra `mcp`)"
ClientArgument = Annotated[
    Literal["claude-code", "codex", "gemini"],
    typer.Argument(metavar="CLIENT", help="claude-code, codex or gemini."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be written; write nothing.")]
ProjectFilesOption = Annotated[
    bool, typer.Option("--project", help="In this repository's files instead of yours, such as `.mcp.json`.")
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (install, uninstall):
        app.command(rich_help_panel=PANEL)(command)
    app.command(hidden=True, rich_help_panel=PANEL)(hook)


def install(
    client: ClientArgument,
    *,
    project: ProjectFilesOption = False,
    dry_run: DryRunOption = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a coding agent a memory: the MCP server and four hooks, in the user's settings or in this repository's.

    All else in those files stays as it is, with a backup beside. Installed again it changes nothing, or what differs.

    [bold]Examples[/bold]

    [dim]$[/dim] nous install claude-code

    [dim]$[/dim] nous install codex --project --dry-run
    """
    from nous_online.core.validation import checked_agent
    from nous_online.interfaces.hooks.claude_settings import planned_install
    from nous_online.interfaces.hooks.clients import CLIENTS

    options = ["--agent", checked_agent(agent)] if agent else []
    changes = planned_install(is_project=project, options=options, client=CLIENTS[client])
    carry_out(changes, "installed", dry_run=dry_run, as_json=as_json)
    if CLIENTS[client].note and not as_json:
        show(CLIENTS[client].note)


def uninstall(
    client: ClientArgument,
    *,
    project: ProjectFilesOption = False,
    dry_run: DryRunOption = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take what `nous install` wrote out of a coding agent's settings again; memories stay where they are.

    [bold]Examples[/bold]

    [dim]$[/dim] nous uninstall claude-code

    [dim]$[/dim] nous uninstall claude-code --project --dry-run
    """
    from nous_online.interfaces.hooks.claude_settings import planned_uninstall
    from nous_online.interfaces.hooks.clients import CLIENTS

    changes = planned_uninstall(is_project=project, client=CLIENTS[client])
    carry_out(changes, "uninstalled", dry_run=dry_run, as_json=as_json)


def carry_out(changes: Sequence[FileChange], done: str, *, dry_run: bool, as_json: bool) -> None:
    """Write what is to change unless it is only to be shown, and say what became of each file."""
    from nous_online.interfaces.hooks.claude_settings import write

    if not dry_run:
        write(changes)
    if as_json:
        files = [{"path": str(each.path), "is_changed": each.is_changed, "diff": each.diff} for each in changes]
        show_json({"is_dry_run": dry_run, "files": files})
        return
    for each in changes:
        if dry_run and each.is_changed:
            show(escaped(each.diff.rstrip("\n")))
        else:
            show(f"[green]{done if each.is_changed else 'unchanged'}[/green]  {escaped(str(each.path))}")


def hook(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="As the client names it.")],
    *,
    agent: Annotated[str | None, typer.Option("--agent", help="Whose memory; NOUS_AGENT, or `default`.")] = None,
    within: Annotated[
        float, typer.Option("--within", metavar="SECONDS", help="How long it may take, instead of what each event may.")
    ] = 0.0,
) -> None:
    """Answer one of a coding agent's hooks, told as JSON on standard input; exit code 0 whatever happens.

    [bold]Examples[/bold]

    [dim]$[/dim] echo '{"cwd": "."}' | nous hook SessionStart --within 10
    """
    from nous_online.interfaces.hooks.hook import answer

    answer([event, *(["--agent", agent] if agent else []), *(["--within", str(within)] if within else [])])
