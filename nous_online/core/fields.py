"""What a verb may be told: a row for each field, from which its check, its signature and every interface follow. Pure.

A row is an annotation: `subject: Annotated[str | None, Line("What it is about.", most=500)]`. The type is what the type
checker holds callers to; the field says the limits, the default and in one sentence what it is for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import cache
from inspect import Parameter, Signature
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from nous_online.core import validation
from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_IDS, MAX_NAMES


@dataclass(frozen=True)
class InputField:
    """One thing a verb may be told: what it is for, in one sentence, and what holds unless it is told."""

    about: str
    _: KW_ONLY
    default: Any = None
    aliases: tuple[str, ...] = ()
    """Other names it may be told by."""
    option: str | None = None
    """Its option on the command line, such as `--tag`; None where it has none."""
    brief: str | None = None
    """What a model reads of it, as few words as will do and none where the name says it; None where it is not asked."""

    @property
    def limit(self) -> str:
        """What limits it has, with their unit."""
        return ""

    @property
    def sentence(self) -> str:
        """What it is for, with its limits."""
        return f"{self.about.rstrip('.')} ({self.limit})." if self.limit else self.about

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        """Return the value as it is stored; raise `InvalidInput` saying what to mend."""
        raise NotImplementedError


@dataclass(frozen=True)
class Text(InputField):
    """A text that is not blank."""

    most: int
    """Bytes in UTF-8."""
    empty_is_none: bool = False

    @property
    def limit(self) -> str:
        return f"at most {self.most:,} bytes"

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        if self.empty_is_none and value == "":
            return None
        return validation.checked_text(name, value, max_bytes=self.most)


@dataclass(frozen=True)
class Line(InputField):
    """A short text; an empty one counts as none."""

    most: int
    """Characters."""

    @property
    def limit(self) -> str:
        return f"at most {self.most:,} characters"

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_optional(name, value, max_characters=self.most)


@dataclass(frozen=True)
class Names(InputField):
    """A list of short names."""

    @property
    def limit(self) -> str:
        return f"at most {MAX_NAMES} of them"

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_names(name, value)


@dataclass(frozen=True)
class OneOf(InputField):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_choice(name, value, self.words)


@dataclass(frozen=True)
class Instant(InputField):
    """A date with a time and its zone."""

    is_said: bool = False
    """Whether something was said or happened then, so that it can't lie ahead."""

    @property
    def limit(self) -> str:
        return "not more than a day ahead" if self.is_said else ""

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_said(name, value, now=now) if self.is_said else validation.checked_moment(name, value)


@dataclass(frozen=True)
class Share(InputField):
    """A number from 0 to 1."""

    @property
    def limit(self) -> str:
        return "from 0 to 1"

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_share(name, value)


@dataclass(frozen=True)
class Whole(InputField):
    """A whole number within bounds."""

    least: int
    most: int

    @property
    def limit(self) -> str:
        return f"from {self.least:,} to {self.most:,}"

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_whole(name, value, least=self.least, most=self.most)


@dataclass(frozen=True)
class Flag(InputField):
    """Whether something is so."""

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_flag(name, value)


@dataclass(frozen=True)
class MemoryId(InputField):
    """The id of a memory."""

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_id(name, value)


@dataclass(frozen=True)
class MemoryIds(InputField):
    """Ids of memories."""

    most: int = MAX_IDS

    @property
    def limit(self) -> str:
        return f"at most {self.most:,}"

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_ids(name, value)


@dataclass(frozen=True)
class DecisionName(InputField):
    """What names a decision: its id or reference here, or its name elsewhere."""

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        return validation.checked_decision(name, value)


@dataclass(frozen=True)
class Alias(InputField):
    """Another name of a field, which checks it and lists it in its `aliases`."""


@dataclass(frozen=True)
class InputRow:
    """A field with its name and type, as a verb or a table declares it."""

    name: str
    hint: Any
    """The type that callers are held to."""
    field: InputField
    is_required: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return NoneType in get_args(self.hint)

    def checked(self, value: object, *, now: datetime, name: str | None = None) -> Any:
        """Return a value as it is stored; raise `InvalidInput` saying what to mend, by the `name` it was told by."""
        return None if value is None and self.is_optional else self.field.check(name or self.name, value, now=now)


@cache
def rows_of(told: Any) -> Mapping[str, InputRow]:
    """Return the rows of a table (a `TypedDict`), or of a verb and the tables it takes, by their names."""
    if is_typeddict(told):
        hints = get_type_hints(told, include_extras=True)
        return {name: InputRow(name, *parts(hint)) for name, hint in hints.items()}
    verb = inspect.unwrap(told)
    hints, rows = get_type_hints(verb, include_extras=True), dict[str, InputRow]()
    for name, parameter in inspect.signature(verb).parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            rows |= rows_of(get_args(hints[name])[0])
        elif get_origin(hints.get(name)) is Annotated:
            rows[name] = InputRow(name, *parts(hints[name]), is_required=parameter.default is Parameter.empty)
    return rows


def parts(hint: Any) -> tuple[Any, InputField]:
    """Return the type and the field of an annotation."""
    if get_origin(hint) is not Annotated:
        return hint, InputField("")
    kind, field, *_ = get_args(hint)
    return kind, field


def checked_as(hint: Any, name: str, value: object, *, now: datetime) -> Any:
    """Return a value as an annotation has it; raise `InvalidInput` saying what to mend."""
    return InputRow(name, *parts(hint)).checked(value, now=now)


def checked_details(table: type, told: Mapping[str, object], *, now: datetime) -> dict[str, Any]:
    """Return everything a table has rows for, as it is stored; what was not told is its default.

    Raises `InvalidInput` for what the table has no row for, and for a value that breaks its limits.
    """
    check_known(told, table)
    found: dict[str, Any] = {}
    for name, row in rows_of(table).items():
        if isinstance(row.field, Alias):
            continue
        said, value = name, told.get(name, row.field.default)
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
    lines = [f"- `{each.name}`: {told[each.name]}" for each in parameters if told.get(each.name)]
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
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=row.field.default, annotation=type_text(row.hint))


def type_text(hint: Any) -> str:
    """Return a type as it is written where its names are imported."""
    if hint is None or hint is NoneType:
        return "None"
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]".replace("'", '"')
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(hint)).replace("NoneType", "None")
