"""What a verb may be told: a row for each field, from which its check, its signature and every interface follow. Pure.

A row is an annotation: `subject: Annotated[str | None, Line("What it is about.", most=500)]`. The type is what the type
checker holds callers to; the field says the limits, the default and in one sentence what it is for. A table is a
`TypedDict` of rows; what a verb names in its own signature are rows too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from inspect import Parameter, Signature
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from nous_online.core import validation
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import Alias, InputField

MODULE = re.compile(r"\b\w+\.(?=\w)")


@dataclass(frozen=True)
class InputRow:
    """A field with its name and type, as a verb or a table declares it."""

    name: str
    hint: Any
    """The type that callers are held to."""
    field: InputField
    default: Any = None
    is_required: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return NoneType in get_args(self.hint)

    def checked(self, value: object, *, now: datetime | None = None, name: str | None = None) -> Any:
        """Return a value as it is stored; raise `InvalidInput` saying what to mend, by the `name` it was told by."""
        return None if value is None and self.is_optional else self.field.check(name or self.name, value, now=now)


@cache
def rows_of(told: Any) -> Mapping[str, InputRow]:
    """Return the rows of a table (a `TypedDict`), or of a verb and the tables it takes, by their names."""
    if is_typeddict(told):
        hints = get_type_hints(told, include_extras=True)
        return {name: InputRow(name, *parts(hint)) for name, hint in hints.items()}
    if (verb := inspect.unwrap(told)) is not told:
        return rows_of(verb)
    hints, rows = get_type_hints(verb, include_extras=True), dict[str, InputRow]()
    for name, parameter in inspect.signature(verb).parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            rows |= rows_of(get_args(hints[name])[0])
        elif get_origin(hints.get(name)) is Annotated:
            kind, field, _ = parts(hints[name])
            rows[name] = InputRow(
                name, kind, field, parameter.default, is_required=parameter.default is Parameter.empty
            )
    return rows


def parts(hint: Any) -> tuple[Any, InputField, Any]:
    """Return the type, the field and the default of an annotation."""
    kind, field, *_ = get_args(hint)
    return kind, field, field.default


def checked_as(hint: Any, name: str, value: object, *, now: datetime | None = None) -> Any:
    """Return a value as an annotation has it; raise `InvalidInput` saying what to mend."""
    return InputRow(name, *parts(hint)).checked(value, now=now)


def checked_details(table: type, told: Mapping[str, object], *, now: datetime | None = None) -> dict[str, Any]:
    """Return everything a table has rows for, as it is stored; what was not told is its default.

    Raises `InvalidInput` for a value that breaks its limits. Without `now` dates may lie ahead.
    """
    found: dict[str, Any] = {}
    for name, row in rows_of(table).items():
        if isinstance(row.field, Alias):
            continue
        said, value = name, told.get(name, row.default)
        if row.field.aliases:
            said, value = validation.told_as(told, (name, *row.field.aliases))
        found[name] = row.checked(value, now=now, name=said)
    return found


def check_known(told: Mapping[str, object], table: type) -> None:
    """Raise `InvalidInput` for a detail that a table has no row for."""
    unknown = sorted(set(told) - set(rows_of(table)))
    if unknown:
        raise InvalidInput(f"unknown detail {unknown[0]!r}; known: {', '.join(rows_of(table))}")


DEADLINE = "How many seconds it may take; those of the heart (`Heart.open`) unless told."


def describe(verb: Callable[..., Any]) -> None:
    """Give a verb the signature and the docstring that name everything it may be told."""
    rows = rows_of(verb)
    if not rows:
        return
    signature = inspect.signature(verb)
    parameters = sorted(shown(signature, rows), key=lambda each: (each.kind, each.name == "deadline_s"))
    told = {name: row.field.sentence for name, row in rows.items()} | {"deadline_s": DEADLINE}
    lines = [f"- `{each.name}`: {told[each.name]}" for each in parameters if each.name in told]
    verb.__dict__["__signature__"] = signature.replace(parameters=parameters)
    verb.__doc__ = "\n".join([f"{inspect.getdoc(verb)}\n", *lines])


def shown(signature: Signature, rows: Mapping[str, InputRow]) -> Iterator[Parameter]:
    """Yield the parameters of a verb, with a parameter for each detail in place of all of them."""
    for name, parameter in signature.parameters.items():
        if name in rows:
            yield parameter.replace(annotation=type_text(rows[name].hint))
        elif parameter.kind is not Parameter.VAR_KEYWORD:
            yield parameter
    for name, row in rows.items():
        if name not in signature.parameters:
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=row.default, annotation=type_text(row.hint))


def type_text(hint: Any) -> str:
    """Return a type as it is written where its names are imported."""
    if hint is None or hint is NoneType:
        return "None"
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]".replace("'", '"')
    return MODULE.sub("", inspect.formatannotation(hint)).replace("NoneType", "None")
