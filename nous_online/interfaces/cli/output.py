"""Input and output of commands: results on stdout, as text or one JSON object; everything else on stderr."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from enum import StrEnum
from functools import cache, wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, TypeVar, cast, get_args, get_origin
from uuid import UUID

import typer
from typer import Option

from nous_online.core.domain import MemoryKind
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.core.fields import (
    Clues,
    DecisionNames,
    Flag,
    InputRow,
    Instant,
    Kinds,
    Line,
    MemoryId,
    MemoryIds,
    Names,
    OneOf,
    Share,
    Whole,
    row_of,
    rows_of,
)
from nous_online.core.policy import ContextPolicy
from nous_online.core.rights import ACTS_AS
from nous_online.core.validation import checked_agent
from nous_online.interfaces.cli.short_ids import identifier, with_whole_ids

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status

    from nous_online.database.connection import Database, Role
    from nous_online.heart import Heart


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
    """Remember the agent, given before or after the command's name, and return it; an empty name is wrong usage."""
    if value is not None and not value.strip():
        raise typer.BadParameter("the agent is empty; name one, or leave --agent out for that of NOUS_AGENT")
    invocation = context.ensure_object(Invocation)
    invocation.agent = value or invocation.agent
    return invocation.agent


def remember_json(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 (the signature of an option's callback)
    """Remember --json, given before or after the command's name, and return it."""
    invocation = context.ensure_object(Invocation)
    invocation.as_json = value or invocation.as_json
    return invocation.as_json


WHOSE = "Whose memory; NOUS_AGENT, or `default`."
ONE_OF_ALL = "One agent alone; all of them unless named."
ONE_OR_ALL = "One agent alone; NOUS_AGENT where it is set, otherwise all of them."
NAMED = ("--agent", "-a")
AgentOption = Annotated[str | None, Option(*NAMED, metavar="NAME", help=WHOSE, callback=remember_agent)]
OneOfAllOption = Annotated[str | None, Option(*NAMED, metavar="NAME", help=ONE_OF_ALL, callback=remember_agent)]
"""Of commands that an operator or a timer runs for all agents."""
OneOrAllOption = Annotated[str | None, Option(*NAMED, metavar="NAME", help=ONE_OR_ALL, callback=remember_agent)]
"""Of commands about what a night did; `agent_if_set` returns whom they are about."""
JsonOption = Annotated[
    bool, Option("--json", help="Print one JSON object, for machines.", callback=remember_json, metavar="")
]


@cache
def inert_console() -> type[Console]:
    """Return a console class that prints no control characters: memories may hold commands for a terminal."""
    # Made at its first use: rich takes 40 ms to load, and what prints JSON does without.
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class InertConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(without_controls(segment.text), segment.style)

        def on_broken_pipe(self) -> None:
            # So that `written` ends the command; rich would exit with code 1.
            raise BrokenPipeError(errno.EPIPE, "the reader closed the pipe")

    return InertConsole


def stdout() -> Console:
    """Return the console for results; it uses colour on a terminal only."""
    return inert_console()(highlight=False)


def stderr() -> Console:
    return inert_console()(highlight=False, stderr=True)


IS_JSON = ContextVar("IS_JSON", default=False)
"""Whether this command prints an object for machines, and nothing for people but errors."""


@dataclass(frozen=True)
class Ended:
    """What a command answers, and the exit code it ends with."""

    code: int
    answer: object


def add_command(app: typer.Typer, name: str, command: Callable[..., object], **settings: Any) -> None:
    """Add a command: its help is its docstring, with a heading and rich's markup for the examples that end it."""
    own = inspect.signature(command, eval_str=True)
    for each in own.parameters.values():
        kind, *declared = get_args(each.annotation)
        if kind is bool:  # a flag, which takes no value and has no opposite
            declared[0].metavar = ""
            if declared[0].default is ...:  # where typer has the first name of an option
                declared[0].default = f"--{each.name.replace('_', '-')}"
        elif UUID in {kind, *get_args(kind), *(inner for part in get_args(kind) for inner in get_args(part))}:
            declared[0].parser = identifier
    command.__dict__["__signature__"] = own
    told, *examples = (inspect.getdoc(command) or "").split("\n$ ")
    shown = "\n\n".join([told.strip(), "[bold]Examples[/bold]", *(f"[dim]$[/dim] {each}" for each in examples)])
    app.command(name, help=shown, **settings)(answering(command))


def answering(command: Callable[..., object]) -> Callable[..., None]:
    """Give a command that returns something the option --json: it prints that as one object, and nothing else.

    It is told whole ids, where their first digits were typed.
    """
    own = inspect.signature(command, eval_str=True)
    if own.return_annotation is None:
        return cast("Callable[..., None]", command)

    @wraps(command)
    def run(*arguments: Any, as_json: bool, **options: Any) -> None:
        before = IS_JSON.set(as_json)
        try:
            result = command(*arguments, **with_whole_ids(options))
        finally:
            IS_JSON.reset(before)
        ended = result if isinstance(result, Ended) else Ended(0, result)
        if as_json:
            show_json(ended.answer)
        if ended.code:
            raise typer.Exit(ended.code)

    option = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=JsonOption)
    run.__dict__["__signature__"] = own.replace(parameters=[*own.parameters.values(), option])
    return run


def show(result: RenderableType) -> None:
    """Print a result for people: a text (with rich's markup) or a table."""
    if IS_JSON.get():
        return
    with written():
        stdout().print(result, soft_wrap=isinstance(result, str))


def show_json(result: Any) -> None:
    with written():
        sys.stdout.write(json.dumps(result, default=as_json_value, allow_nan=False) + "\n")


@contextmanager
def written() -> Generator[None]:
    """End the command if its output can't be written; silently if the reader closed the pipe."""
    try:
        yield
    except OSError as error:
        raise typer.Exit(unwritten(error)) from error


def unwritten(error: OSError) -> int:
    """Print why a result can't be written, unless its reader closed the pipe, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    show_error(f"the result can't be written ({error}); free some space, or send it elsewhere")
    return 1


def as_json_value(value: object) -> Any:
    """Return a value for JSON: dataclasses as objects, moments in ISO 8601, sets as sorted lists, the rest as text."""
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
    """Print a remark on stderr, dimmed on a terminal; none with --json."""
    if not IS_JSON.get():
        show_progress(message)


def show_progress(message: str) -> None:
    """Print on stderr how far a long command has come, dimmed on a terminal."""
    from rich.text import Text

    stderr().print(Text(message, style="dim"), soft_wrap=True)


def without_controls(text: str) -> str:
    """Return a text without control characters, which a terminal could obey."""
    return CONTROL.sub("", text)


def escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def wrapped(text: str, columns: int, *, most: int, cut: str = " …") -> list[str]:
    """Return a text as at most `most` lines of `columns` columns, of which a Japanese character takes two.

    A word that is longer is broken, and `cut` ends what is left out of.
    """
    if IS_JSON.get():
        return []
    from rich.cells import cell_len
    from rich.text import Text

    console = stdout()
    lines = [str(line).rstrip() for line in Text(" ".join(text.split())).wrap(console, columns)]
    if len(lines) <= most:
        return lines
    last = Text(lines[most - 1]).wrap(console, columns - cell_len(cut))[0]
    return [*lines[: most - 1], f"{str(last).rstrip()}{cut}"]


def waiting(message: str) -> Status:
    """Show a spinner while a block runs, on a terminal only."""
    return stderr().status(message)


STDIN = "-"


def text_or_stdin(text: str) -> str:
    """Return a text, or for `-` the standard input, stripped; raise `InvalidInput` if that is not UTF-8."""
    if text != STDIN:
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()  # some Windows programs begin with a BOM
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the standard input is no UTF-8 ({error}); convert it first, with iconv") from error


def prepare_streams() -> None:
    """Make stdout and stderr accept any text, and replace those that were closed by the null device."""
    # Python sets a stream to None if its descriptor was closed at the start, as by `nous … >&-`.
    sys.stdout = sys.stdout or null_stream()
    sys.stderr = sys.stderr or null_stream()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")  # a memory may hold what the terminal can't show


def null_stream() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def flush_output(code: str | int | None) -> str | int | None:
    """Flush stdout, and return the exit code: the one given, or another if that failed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Otherwise Python would flush its buffer again at exit, and print the same error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or unwritten(error)
    return code


# --- options that several commands have ---

C = TypeVar("C", bound=Callable[..., object])
UserOption = Annotated[str | None, Option(help="The user who asks: finds their own besides what is everybody's.")]
ProjectOption = Annotated[str | None, Option(help="In which project.")]
ReadProject = Annotated[
    str | None,
    Line("The project, by default this folder's where it has memories; '' for none.", most=100, option="--project"),
]
"""Of commands that read: `project_to_read` returns which one it is."""
KindOption = StrEnum("KindOption", {kind.upper(): kind for kind in get_args(MemoryKind)})
OPTION_TYPES: Mapping[type, Callable[[Any], Any]] = {
    Names: lambda _: list[str],
    Clues: lambda _: list[str],
    MemoryId: lambda _: UUID,
    MemoryIds: lambda _: list[UUID],
    DecisionNames: lambda _: list[str],
    Kinds: lambda _: list[KindOption],
    OneOf: lambda field: Literal[field.words],
    Share: lambda _: float,
    Whole: lambda _: int,
    Flag: lambda _: bool,
}
"""The type of an option for each kind of field; a text for all others."""


def known_frames(incomplete: str) -> list[str]:
    """Return the frames for shell completion: those with a budget of their own, though any name is valid."""
    return [frame for frame, _ in ContextPolicy().budgets if frame.startswith(incomplete)]


def with_options(*tables: type, defaults: Mapping[str, Any] | None = None, **rows: Any) -> Callable[[C], C]:
    """Give a command the options of tables, and of single rows by name, in place of its `**details`.

    A single row takes the place of one of that name in a table.
    """

    def decorated(command: C) -> C:
        found = {name: row for table in tables for name, row in rows_of(table).items()}
        found |= {name: row_of(name, hint) for name, hint in rows.items()}
        changed_defaults = defaults or {}
        options = [
            option(replace(each, default=changed_defaults.get(each.name, each.default)))
            for each in found.values()
            if each.field.option is not None
        ]
        own = inspect.signature(command, eval_str=True)
        # Typer reads the signature, so the command's own is replaced; the order is that of the help.
        named = [each for each in own.parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
        first = [each for each in own.parameters.values() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
        command.__dict__["__signature__"] = own.replace(parameters=[*first, *options, *named])
        return command

    return decorated


def option(row: InputRow) -> Parameter:
    words = (row.field.option or f"--{row.name.replace('_', '-')}").split()
    words += ["ISO-8601"] if isinstance(row.field, Instant) else []
    kind = next((OPTION_TYPES[each](row.field) for each in type(row.field).__mro__ if each in OPTION_TYPES), str)
    declared = Option(
        *(word for word in words if word.startswith("--")),
        metavar=next((word for word in words if not word.startswith("--")), None),
        help=row.field.sentence.replace("`", "") + (" May be given several times." if get_origin(kind) is list else ""),
        autocompletion=known_frames if row.name == "frame" else None,
    )
    hint = kind | None if row.default is None else kind
    return Parameter(row.name, Parameter.KEYWORD_ONLY, default=row.default, annotation=Annotated[hint, declared])


def agent_named(agent: str | None) -> str:
    """Return the agent of a command: the one given, or that of NOUS_AGENT."""
    from nous_online.core.settings import settings

    return checked_agent(settings().agent if agent is None else agent)


def agent_if_set(agent: str | None) -> str | None:
    """Return the agent of a command about nights: the one given, or NOUS_AGENT where it is set; None for all."""
    from nous_online.core.settings import settings

    return agent or (settings().agent if "agent" in settings().model_fields_set else None) or None


def by_person(command: C) -> C:
    """Have the history name an operator for what a command changes: a person decides it, not the agent."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> object:
        before = ACTS_AS.set("operator")
        try:
            return command(*arguments, **options)
        finally:
            ACTS_AS.reset(before)

    return cast("C", run)


def open_heart(agent: str | None, *, creates: bool = True, may_begin: bool = False) -> Heart:
    """Open the heart of a command's agent, without background work: that is left to `nous worker`.

    An agent that is not known raises `NotFound`, unless the agent `may_begin` with this command, or nobody named one.
    """
    from nous_online.database.connection import open_url
    from nous_online.heart import Heart
    from nous_online.memories.status import UNNAMED, unknown_agent

    name = agent_named(agent)
    must_exist = not may_begin and name != UNNAMED
    try:
        return Heart.open(
            name,
            works_in_background=False,
            creates=creates,
            must_exist=must_exist,
            begins_late=True,
            loads_models=False,
        )
    except NotFound:
        raise unknown_agent(open_url(), name) from None


def project_to_read(heart: Heart, given: str | None) -> str | None:
    """Return the project a command reads: the one given, or that of this folder where the agent has memories of it."""
    from nous_online.interfaces.projects import project_of
    from nous_online.memories.status import knows_project

    if given is not None:
        return given or None
    project = project_of(Path.cwd())
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        if not knows_project(connection, heart.agent.id, project):
            return None
    show_note(f"with what belongs to project {project}, that of this folder (--project '' leaves it out)")
    return project


def open_database(role: Role = "nous_app") -> closing[Database]:
    """Open the database of this process for a block, without embedder and judge."""
    from nous_online.database.connection import Database, open_url

    return closing(Database(open_url(), role=role))
