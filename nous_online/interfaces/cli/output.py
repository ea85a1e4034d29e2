"""What a command is told and says: results on stdout, for people or as one JSON object; everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from nous_online.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""The C0 and C1 control characters but for tab and line feed: a terminal takes commands from them (ECMA-48)."""


@dataclass
class Invocation:
    """The options that may stand before or after the command's name."""

    agent: str | None = None
    as_json: bool = False


def remember_agent(context: typer.Context, value: str | None) -> str | None:
    """Take the agent from whichever place named it."""
    invocation = context.ensure_object(Invocation)
    invocation.agent = value or invocation.agent
    return invocation.agent


def remember_json(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 (the signature of an option's callback)
    """Take the wish for JSON from whichever place uttered it."""
    invocation = context.ensure_object(Invocation)
    invocation.as_json = value or invocation.as_json
    return invocation.as_json


AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", "-a", metavar="NAME", help="Whose memory; NOUS_AGENT, or `default`.", callback=remember_agent
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object, for machines.", callback=remember_json, metavar=""),
]


def stdout() -> Console:
    """Return the console for results; it colours a terminal only."""
    from nous_online.interfaces.cli.terminal import InertConsole

    return InertConsole(highlight=False)


def stderr() -> Console:
    """Return the console for everything that is no result."""
    from nous_online.interfaces.cli.terminal import InertConsole

    return InertConsole(highlight=False, stderr=True)


def show(result: RenderableType) -> None:
    """Print a result for people: a text (with rich's markup) or a table."""
    with written():
        stdout().print(result, soft_wrap=isinstance(result, str))


def show_json(result: Any) -> None:
    """Print a result for machines."""
    with written():
        sys.stdout.write(json.dumps(result, default=plain, allow_nan=False) + "\n")


@contextmanager
def written() -> Generator[None]:
    """End the command where its output can't be written, silently where whoever read it has left."""
    try:
        yield
    except OSError as error:
        raise typer.Exit(unwritten(error)) from error


def unwritten(error: OSError) -> int:
    """Say why a result can't be written, unless its reader has left, and return the exit code for it."""
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    show_error(f"the result can't be written ({error}); free some space, or send it elsewhere")
    return 1


def plain(value: object) -> Any:
    """Return a value in JSON's terms: dataclasses as objects, moments as ISO 8601, the rest as its text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (json looks into it)
    if isinstance(value, set | frozenset):
        return sorted(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (json looks into it)
    return str(value)


def show_error(message: str) -> None:
    """Print an error on stderr as one line, red on a terminal; a driver's message may have several."""
    from rich.text import Text

    line = " ".join(part.strip() for part in message.splitlines())
    stderr().print(Text(f"error: {line}", style="red"), soft_wrap=True)


def show_note(message: str) -> None:
    """Print a remark on stderr, dimmed on a terminal."""
    from rich.text import Text

    stderr().print(Text(message, style="dim"), soft_wrap=True)


def inert(text: str) -> str:
    """Return a text without the characters by which it could command a terminal."""
    return CONTROL.sub("", text)


def escaped(text: str) -> str:
    """Return a text whose brackets are not read as markup."""
    from rich.markup import escape

    return escape(text)


@contextmanager
def waiting(message: str) -> Generator[None]:
    """Show that something takes a while, on a terminal only."""
    console = stderr()
    if not console.is_terminal:
        yield
        return
    with console.status(message):
        yield


STDIN = "-"


def said(text: str) -> str:
    """Return a text, or for `-` the standard input without the blanks around it.

    Raises `InvalidInput` for an input that is no UTF-8.
    """
    if text != STDIN:
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the standard input is no UTF-8 ({error}); convert it first, with iconv") from error


def settle() -> None:
    """Make the streams take any text, and those that were closed take it nowhere."""
    sys.stdout = sys.stdout or nowhere()
    sys.stderr = sys.stderr or nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")  # a memory may hold what the terminal can't show


def nowhere() -> TextIO:
    """Return a stream that takes everything and keeps nothing."""
    return Path(os.devnull).open("w", encoding="utf-8")


def flushed(code: str | int | None) -> str | int | None:
    """Write what is still to be written, and return the exit code: another one where that failed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # what Python still holds would be tried again, and fail again, when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or unwritten(error)
    return code
