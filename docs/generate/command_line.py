"""The page about the command line: every command with its options and examples, from the application itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text
from typer.main import get_command

from nous_online.interfaces.cli.command_line import application
from nous_online.interfaces.cli.output import INTERRUPTED, PIPE_CLOSED

HEAD = f"""# The command line

Every command of `nous`, as `--help` tells it. Generated from the application by `make docs`; a test holds it current.

`nous --install-completion` makes bash, zsh or fish complete commands, options and their choices;
`nous --show-completion` prints what it would install.

Results go to standard output, for people or with `--json` as one object; everything else goes to standard error.
Colours go to a terminal only, and nowhere with `NO_COLOR`. `--agent` and `--json` may stand before the command too.

| exit code | means |
|---|---|
| 0 | it is done |
| 1 | it failed, or what was checked is not in order; standard error says why in a line |
| 2 | the command was not understood |
| {INTERRUPTED} | Ctrl-C ended it |
| {PIPE_CLOSED} | whoever read the output left before its end, as `head` does |
"""
PROMPT = "$ "


def command_line_page() -> str:
    """Return the whole page: the commands in the panels of `nous --help`."""
    panels: dict[str, list[str]] = {}
    for path, command in commands(get_command(application())):
        panels.setdefault(panel_of(command, path), []).append(command_section(path, command))
    sections = [f"## {panel}\n\n" + "\n".join(parts) for panel, parts in panels.items()]
    return "\n".join([HEAD, *sections])


def commands(group: Any, *, path: str = "nous", panel: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the command of everything that can be run, the groups entered."""
    for name, command in group.commands.items():
        command.rich_help_panel = panel or panel_of(command, name)
        if hasattr(command, "commands"):
            yield from commands(command, path=f"{path} {name}", panel=command.rich_help_panel)
        else:
            yield f"{path} {name}", command


def panel_of(command: Any, path: str) -> str:
    """Return the panel a command stands in; raise `ValueError` where it stands in none."""
    panel = getattr(command, "rich_help_panel", None)
    if not isinstance(panel, str):
        raise ValueError(f"{path} stands in no panel; register it with rich_help_panel")
    return panel


def command_section(path: str, command: Any) -> str:
    """Return the heading, promise, options and examples of one command."""
    told, examples = help_of(command)
    lines = [f"### {path}", "", *told, *options_table(path, command)]
    if examples:
        lines += ["```sh", *examples, "```", ""]
    return "\n".join(lines)


def help_of(command: Any) -> tuple[list[str], list[str]]:
    """Return the paragraphs of a command's help, and its examples."""
    told: list[str] = []
    examples: list[str] = []
    for paragraph in Text.from_markup(command.help or "").plain.split("\n\n"):
        text = paragraph.strip()
        if text.startswith(PROMPT):
            examples.append(text.removeprefix(PROMPT))
        elif text != "Examples":
            told += [text, ""]
    return told, examples


def options_table(path: str, command: Any) -> list[str]:
    """Return the arguments and options of a command as a table; none where it takes none but --help."""
    context = command.make_context(path, [], resilient_parsing=True)
    rows = [row for param in command.params if (row := option_row(param, param.get_help_record(context)))]
    return ["| | |", "|---|---|", *rows, ""] if rows else []


def option_row(param: Any, record: tuple[str, str] | None) -> str:
    """Return the row of one argument or option, with its default where that says anything; none for a hidden one."""
    if record is None:
        return ""
    names, told = record
    default = param.default
    usual = f" By default `{default}`." if isinstance(default, int | float | str) and default not in (False, "") else ""
    return f"| {cell(f'`{names}`')} | {cell(told + usual)} |"


def cell(text: str) -> str:
    """Return a text as it may stand in a table."""
    return " ".join(Text.from_markup(text).plain.split()).replace("|", "\\|")
