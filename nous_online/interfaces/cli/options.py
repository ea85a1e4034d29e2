"""The options of a command that hands over to a verb: one for each field that says so in its row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, Literal, TypeVar

import typer

from nous_online.core import fields

C = TypeVar("C", bound=Callable[..., None])
OPTION_TYPES: Mapping[type, Callable[[Any], tuple[Any, str | None]]] = {
    fields.Names: lambda _: (list[str], "NAME"),
    fields.OneOf: lambda field: (Literal[field.words], None),
    fields.Instant: lambda _: (str, "ISO-8601"),
    fields.Share: lambda _: (float, None),
    fields.Whole: lambda _: (int, None),
    fields.Flag: lambda _: (bool, None),
    fields.MemoryId: lambda _: (str, "ID"),
    fields.MemoryIds: lambda _: (list[str], "ID"),
}
"""What the command line takes for each kind of field, and how it is called in the help; a text for all others."""


def with_options(*told: Any, **rows: Any) -> Callable[[C], C]:
    """Give a command the options of tables, and of single rows by their names, in place of its `**told`."""

    def given(command: C) -> C:
        found = [each for table in told for each in fields.rows_of(table).values()]
        found += [fields.InputRow(name, *fields.parts(hint)) for name, hint in rows.items()]
        options = [option(each) for each in found if each.field.option]
        own = inspect.signature(command, eval_str=True)
        parameters = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        parameters.sort(key=lambda each: each.kind is Parameter.KEYWORD_ONLY)
        first = sum(each.kind is not Parameter.KEYWORD_ONLY for each in parameters)
        command.__dict__["__signature__"] = own.replace(parameters=[*parameters[:first], *options, *parameters[first:]])
        return command

    return given


def option(row: fields.InputRow) -> Parameter:
    """Return a row as an option of a command."""
    field = row.field
    kind, shown = next((OPTION_TYPES[each](field) for each in type(field).__mro__ if each in OPTION_TYPES), (str, None))
    many = " May be given several times." if kind == list[str] else ""
    declared = typer.Option(field.option, metavar=shown, help=field.sentence.replace("`", "") + many)
    kind = kind | None if row.is_optional else kind
    return Parameter(row.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[kind, declared])
