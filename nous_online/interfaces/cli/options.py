"""What commands share: the options that follow from the rows of a verb, the agent they are about, and its memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer

from nous_online.core import fields
from nous_online.core.domain import MemoryKind
from nous_online.core.fields import InputRow, row_of, rows_of

if TYPE_CHECKING:
    from nous_online.database.connection import Database
    from nous_online.heart import Heart

C = TypeVar("C", bound=Callable[..., None])
UserOption = Annotated[str | None, typer.Option("--user", help="For whom; what is of other users stays out.")]
ProjectOption = Annotated[str | None, typer.Option("--project", help="In which project.")]
KindOption = StrEnum("KindOption", {kind.upper(): kind for kind in get_args(MemoryKind)})
OPTION_TYPES: Mapping[type, Callable[[Any], Any]] = {
    fields.Names: lambda _: list[str],
    fields.Clues: lambda _: list[str],
    fields.MemoryIds: lambda _: list[str],
    fields.Kinds: lambda _: list[KindOption],
    fields.OneOf: lambda field: Literal[field.words],
    fields.Share: lambda _: float,
    fields.Whole: lambda _: int,
    fields.Flag: lambda _: bool,
}
"""What the command line takes for each kind of field; a text for all others."""


def known_frames(incomplete: str) -> list[str]:
    """Return the frames that a shell may offer: those with a budget of their own; any other will do too."""
    from nous_online.core.policy import ContextPolicy

    return [frame for frame, _ in ContextPolicy().budgets if frame.startswith(incomplete)]


def with_options(*tables: type, defaults: Mapping[str, Any] | None = None, **rows: Any) -> Callable[[C], C]:
    """Give a command the options of tables, and of single rows by their names, in place of its `**told`."""

    def given(command: C) -> C:
        found = [each for table in tables for each in rows_of(table).values()]
        found += [row_of(name, hint) for name, hint in rows.items()]
        usual = defaults or {}
        options = [
            option(replace(each, default=usual.get(each.name, each.default))) for each in found if each.field.option
        ]
        own = inspect.signature(command, eval_str=True)
        named = [each for each in own.parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
        first = [each for each in own.parameters.values() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
        command.__dict__["__signature__"] = own.replace(parameters=[*first, *options, *named])
        return command

    return given


def option(row: InputRow) -> Parameter:
    """Return a row as an option of a command."""
    words = (row.field.option or "").split()
    kind = next((OPTION_TYPES[each](row.field) for each in type(row.field).__mro__ if each in OPTION_TYPES), str)
    declared = typer.Option(
        *(word for word in words if word.startswith("--")),
        metavar="" if kind is bool else next((word for word in words if not word.startswith("--")), None),
        help=row.field.sentence.replace("`", "") + (" May be given several times." if get_origin(kind) is list else ""),
        autocompletion=known_frames if row.name == "frame" else None,
    )
    hint = kind | None if row.default is None else kind
    return Parameter(row.name, Parameter.KEYWORD_ONLY, default=row.default, annotation=Annotated[hint, declared])


def agent_named(agent: str | None) -> str:
    """Return the agent a command is about: the one named, or NOUS_AGENT's."""
    from nous_online.core.settings import settings
    from nous_online.core.validation import checked_agent

    return checked_agent(agent or settings().agent)


def opened(agent: str | None) -> Heart:
    """Open the memory of the agent a command is about; what is due is left to `nous worker`."""
    from nous_online.heart import Heart

    return Heart.open(agent_named(agent), works_in_background=False)


@contextmanager
def open_database() -> Generator[Database]:
    """Open the database of this process, with no embedder and no judge."""
    from nous_online.database.connection import Database, open_url

    database = Database(open_url())
    try:
        yield database
    finally:
        database.close()
