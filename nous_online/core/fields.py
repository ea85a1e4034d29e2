"""Fields: the parameters of verbs, one row each, from which checks, signatures and every interface follow. Pure.

A row is an annotation: `subject: Annotated[str | None, Line("What it is about.", most=500)]`. The type is for the type
checker; the field has the limits, the default and a sentence on what it is for. A table is a `TypedDict` of rows;
annotated parameters of a verb's own signature are rows too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from functools import cache
from inspect import Parameter, Signature
from numbers import Real
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, cast, get_args, get_origin, get_type_hints, is_typeddict

from nous_online.core import validation
from nous_online.core.domain import DOCUMENT
from nous_online.core.errors import InvalidInput
from nous_online.core.policy import ContextPolicy
from nous_online.core.validation import MAX_IDS, MAX_NAMES, is_blank

MOST_LISTED = 100
"""Imports, errors or collaborators in one call."""
DEADLINE = "How many seconds it may take; by default those given to `Heart.open`."
MODULE = re.compile(r"\b\w+\.(?=\w)")


@dataclass(frozen=True)
class InputField:
    """A parameter of a verb: what it is for, in one sentence, and its default."""

    about: str
    _: KW_ONLY
    default: Any = None
    aliases: tuple[str, ...] = ()
    """Other names it is accepted under."""
    option: str | None = None
    """Its command-line option with the placeholder of its value, such as `--tag TAG`, empty where it is called like the
    field; None where it has none."""
    brief: str | None = None
    """Its description in the schema of the MCP tool, as short as possible, empty where the name suffices; None where
    the tool does not have it."""

    limits: ClassVar[str] = ""
    """A template of the limits of this kind of field, with their unit."""
    checked_by: ClassVar[Callable[[str, Any], Any] | None] = None
    """The check of this kind of field, where it depends on the value alone: takes name and value."""

    @property
    def limit(self) -> str:
        """Its limits as text; empty for none."""
        return self.limits.format(**vars(self))

    @property
    def sentence(self) -> str:
        """What it is for, with its limits."""
        return f"{self.about.rstrip('.')} ({self.limit})." if self.limit else self.about

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        """Return the value as it is stored; raise `InvalidInput` with how to fix it. `name` is the one for errors."""
        return self.checked_by(name, value) if self.checked_by else value


class Alias(InputField):
    """Another name of a field, which lists it in its `aliases` and checks the value given under either."""


@dataclass(frozen=True)
class Nested(InputField):
    """A mapping with a table of its own, checked where it is read."""

    table: type


@dataclass(frozen=True)
class Special(InputField):
    """A value with a check of its own."""

    special: Callable[[str, object], Any]

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return self.special(name, value)


# --- texts ---


@dataclass(frozen=True)
class Text(InputField):
    """A text that is not blank."""

    most: int
    """Bytes in UTF-8."""
    empty_is_none: bool = False
    limits = "at most {most:,} bytes"

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        if self.empty_is_none and value == "":
            return None
        return validation.checked_text(name, value, max_bytes=self.most)


@dataclass(frozen=True)
class MoreText(Text):
    """A text that is appended to another one; errors name the whole."""

    whole: str = ""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return super().check(self.whole, value)


class Question(Text):
    """A text that counts as none where it is blank."""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return None if isinstance(value, str) and is_blank(value) else super().check(name, value)


class Clue(Question):
    """A signal, without the blanks around it."""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        text = super().check(name, value)
        return text and text.strip()


@dataclass(frozen=True)
class Line(InputField):
    """A short text; an empty one counts as none."""

    most: int
    """Characters."""
    limits = "at most {most:,} characters"

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return validation.checked_optional(name, value, max_characters=self.most)


class Owner(Line):
    """The name of a user or project. An empty one, such as of a failed look-up, would be everybody's: it is refused."""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        if value == "":
            raise InvalidInput(f"{name} is empty; name one, or leave it out")
        return super().check(name, value)


class Category(Line):
    """The category of a statement; that of documents is reserved."""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        if value == DOCUMENT:
            raise InvalidInput(f"category {value!r} is kept for the files and values of adapters; use another word")
        return super().check(name, value)


@dataclass(frozen=True)
class OneOf(InputField):
    """One of a few words, those of its type."""

    words: tuple[str, ...] = ()

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return validation.checked_choice(name, value, self.words)


# --- moments, numbers, names ---


@dataclass(frozen=True)
class Instant(InputField):
    """A date with a time and its zone."""

    is_said: bool = False
    """Whether something was said or happened then, so that it can't lie ahead."""

    @property
    def limit(self) -> str:
        return "not more than a day ahead" if self.is_said else ""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        if self.is_said and now is not None:
            return validation.checked_said(name, value, now=now)
        return validation.checked_moment(name, value)


class Share(InputField):
    """A number from 0 to 1."""

    limits = "from 0 to 1"

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
            raise InvalidInput(f"{name} must be a number between 0 and 1, got {value!r}")
        return round(float(value), 6)  # the precision of a `real` column


@dataclass(frozen=True)
class Whole(InputField):
    """A whole number within bounds."""

    least: int
    most: int
    limits = "from {least:,} to {most:,}"

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return validation.checked_whole(name, value, least=self.least, most=self.most)


class Budget(Whole):
    """How many tokens at most."""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        try:
            return super().check(name, value)
        except InvalidInput as error:
            raise InvalidInput(f"{error}; leave it out for the usual {ContextPolicy.budget:,}") from error


class Flag(InputField):
    """Whether something is so."""

    checked_by = staticmethod(validation.checked_flag)


class MemoryId(InputField):
    """The id of a memory."""

    checked_by = staticmethod(validation.checked_id)


class DecisionName(InputField):
    """What names a decision: its id or reference here, or its name elsewhere."""

    checked_by = staticmethod(validation.checked_decision)


# --- lists ---


class Names(InputField):
    """A list of short names."""

    limits = f"at most {MAX_NAMES} of them"
    checked_by = staticmethod(validation.checked_names)


class Kinds(InputField):
    """Kinds of memory, one or several."""

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        return validation.checked_names(name, [value] if isinstance(value, str) else value)


@dataclass(frozen=True)
class Lines(InputField):
    """A list of texts that are not blank."""

    most: int
    """Bytes of each in UTF-8."""
    entry: str
    """What an error calls one of them."""
    count: int = MAX_NAMES
    limits = "at most {count:,} of {most:,} bytes each"

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        def checked(each: object) -> str:
            return validation.checked_text(self.entry, each, max_bytes=self.most)

        return validation.checked_list(name, value, checked, most=self.count)


@dataclass(frozen=True)
class MemoryIds(InputField):
    """Ids of memories."""

    most: int = MAX_IDS
    limits = "at most {most:,}"
    of_entry: ClassVar[Callable[[str, object], Any]] = staticmethod(validation.checked_id)

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        entry = f"an entry of {name}"
        return validation.checked_list(name, value, lambda each: self.of_entry(entry, each), most=self.most)


class DecisionNames(MemoryIds):
    """What names decisions."""

    of_entry = staticmethod(validation.checked_decision)


@dataclass(frozen=True)
class Clues(InputField):
    """Several signals, each once, in the order given."""

    most: int
    """Bytes of each in UTF-8."""
    limits = f"at most {MOST_LISTED} of {{most:,}} bytes each"

    def check(self, name: str, value: object, now: datetime | None = None) -> Any:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidInput(f"{name} must be a list of texts, got {value!r}")
        listed = cast("Sequence[object]", value)
        if len(listed) > MOST_LISTED:
            raise InvalidInput(f"{name} has {len(listed):,} entries, the limit is {MOST_LISTED}; tell the latest")
        clue = Clue(self.about, most=self.most)
        texts = [clue.check(f"an entry of {name}", each) for each in listed if each is not None]
        return tuple(dict.fromkeys(text for text in texts if text is not None))


# --- rows and tables ---


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
        return NoneType in get_args(self.hint)

    def checked(self, value: object, *, now: datetime | None = None, name: str | None = None) -> Any:
        """Return a value as it is stored; raise `InvalidInput`, with the `name` it was given under."""
        return None if value is None and self.is_optional else self.field.check(name or self.name, value, now)


@cache
def rows_of(source: Any) -> Mapping[str, InputRow]:
    """Return the rows of a table (a `TypedDict`), or of a verb and the tables it takes, by their names."""
    if is_typeddict(source):
        hints = get_type_hints(source, include_extras=True)
        return {name: row_of(name, hint) for name, hint in hints.items()}
    if (verb := inspect.unwrap(source)) is not source:
        return rows_of(verb)
    hints, rows = get_type_hints(verb, include_extras=True), dict[str, InputRow]()
    for name, parameter in inspect.signature(verb).parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            rows |= rows_of(get_args(hints[name])[0])
        elif get_origin(hints.get(name)) is Annotated:
            is_required = parameter.default is Parameter.empty
            rows[name] = replace(row_of(name, hints[name]), default=parameter.default, is_required=is_required)
    return rows


def row_of(name: str, hint: Any) -> InputRow:
    kind, field, *_ = get_args(hint)
    if isinstance(field, OneOf):
        literals = [kind] if get_origin(kind) is Literal else get_args(kind)
        field = replace(field, words=tuple(word for each in literals for word in get_args(each)))
    return InputRow(name, kind, field, field.default)


def checked_as(hint: Any, name: str, value: object, *, now: datetime | None = None) -> Any:
    """Return a value checked by the field of an annotation; raise `InvalidInput` with how to fix it."""
    return row_of(name, hint).checked(value, now=now)


def checked_details(table: type, details: Mapping[str, object], *, now: datetime | None = None) -> dict[str, Any]:
    """Return a value for every row of a table, as it is stored; missing ones get their default.

    Raises `InvalidInput` for a value outside its limits. Without `now`, dates may be in the future.
    """
    checked: dict[str, Any] = {}
    for name, row in rows_of(table).items():
        if isinstance(row.field, Alias):
            continue
        given_as, value = name, details.get(name, row.default)
        if row.field.aliases:
            given_as, value = validation.told_as(details, (name, *row.field.aliases))
        checked[name] = row.checked(value, now=now, name=given_as)
    return checked


def check_known(details: Mapping[str, object], table: type) -> None:
    """Raise `InvalidInput` for a name that a table has no row for."""
    unknown = sorted(set(details) - set(rows_of(table)))
    if unknown:
        raise InvalidInput(f"unknown detail {unknown[0]!r}; known: {', '.join(rows_of(table))}")


def describe(verb: Callable[..., Any]) -> None:
    """Set the signature and the docstring of a verb to name each of its parameters, those of its tables included."""
    rows = rows_of(verb)
    if not rows:
        return
    signature = inspect.signature(verb)
    parameters = sorted(shown(signature, rows), key=lambda each: (each.kind, each.name == "deadline_s"))
    sentences = {name: row.field.sentence for name, row in rows.items()} | {"deadline_s": DEADLINE}
    lines = [f"- `{each.name}`: {sentences[each.name]}" for each in parameters if each.name in sentences]
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
