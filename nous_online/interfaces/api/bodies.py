"""The values requests are made of: what JSON may hold, no more, and described so that a client knows."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from importlib.resources import files
from typing import Annotated, Any, Literal, cast, get_args
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    WithJsonSchema,
    create_model,
)

from nous_online.core import fields
from nous_online.core.domain import MemoryKind
from nous_online.core.errors import Conflict
from nous_online.core.fields import InputRow, rows_of
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.validation import MAX_NAMES

# Not blank, and without NUL, which PostgreSQL can't hold.
UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
)
"""What a pattern can say of `is_blank`; marks without a letter and what lies beyond 16 bits are refused too."""
NOT_BLANK = rf"^[^\x00]*[^{UNSEEN}][^\x00]*$"
MOST_IDS = 200


class Body(BaseModel):
    """The body of a request: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid")

    def told(self) -> Any:
        """Return what the caller told, as the verbs take it; raise `Conflict` for what would end before it began."""
        found = {name: plain(getattr(self, name)) for name in self.model_fields_set}
        begins, ends = found.get("valid_from"), found.get("valid_to")
        if begins and ends and ends < begins:
            raise Conflict(f"valid_to {ends.isoformat()} lies before valid_from {begins.isoformat()}")
        return found


def plain(value: Any) -> Any:
    """Return a value of a body as the verbs take it."""
    if isinstance(value, list):
        return [plain(each) for each in cast("list[Any]", value)]
    return value.told() if isinstance(value, Body) else value


def sendable(text: str) -> str:
    """Return a text that is UTF-8; JSON can write lone surrogates, which nothing can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"holds a lone surrogate at position {error.start}") from error
    return text


def whole(value: object) -> object:
    """Return a whole number, also one written 5.0, as JSON has it; a text is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a whole number")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number(value: object) -> object:
    """Return a number; neither a text nor a truth value is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return value


def moment(value: object) -> datetime:
    """Return a moment as RFC 3339 writes it: a date, a time, and a zone."""
    if not isinstance(value, str) or "T" not in value.upper()[10:11]:
        raise ValueError("must be a moment such as 2026-05-01T09:30:00Z")
    found = datetime.fromisoformat(value.upper())
    if found.tzinfo is None:
        raise ValueError("names no time zone; add one, such as Z for UTC")
    return found


def known_id(value: object) -> UUID:
    """Return an id as its text."""
    if not isinstance(value, str):
        raise ValueError("must be a UUID")
    return UUID(value)


SENDABLE, WHOLE, NUMBER = AfterValidator(sendable), BeforeValidator(whole), BeforeValidator(number)


def text_of(most: int) -> Any:
    """Return what a text keeps to: not blank, and at most `most` bytes in UTF-8."""
    return Field(min_length=1, max_length=most, pattern=NOT_BLANK)


Text = Annotated[str, text_of(MAX_CONTENT_BYTES), SENDABLE]
Line = Annotated[str, text_of(1000), SENDABLE]
Name = Annotated[str, text_of(100), SENDABLE]
Tags = Annotated[list[Name], Field(max_length=MAX_NAMES)]
Lines = Annotated[list[Line], Field(max_length=MAX_NAMES)]
Flag = StrictBool
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), NUMBER]
Moment = Annotated[datetime, PlainValidator(moment), WithJsonSchema({"type": "string", "format": "date-time"})]
Id = Annotated[UUID, PlainValidator(known_id), WithJsonSchema({"type": "string", "format": "uuid"})]
Ids = Annotated[list[Id], Field(max_length=MOST_IDS)]
Decision = Annotated[
    str,
    text_of(200),
    SENDABLE,
    Field(description="The id or reference of a decision recorded here, or the name of one taken elsewhere."),
]


PROJECT_NEEDS_ID: dict[str, Any] = {
    "if": {"properties": {"scope": {"const": "project"}}, "required": ["scope"]},
    "then": {"required": ["project_id"], "properties": {"project_id": {"type": "string"}}},
}
"""In JSON Schema, what the store asks: without its project nobody could find a memory of it."""


def episode_needs(name: str) -> dict[str, Any]:
    """Return in JSON Schema that what was drawn from an episode names it in the field `name`."""
    return {
        "if": {"properties": {"source_kind": {"const": "episode"}}, "required": ["source_kind"]},
        "then": {"required": [name], "properties": {name: {"type": "string"}}},
    }


HEADERS = {"idempotency_key"}
"""What is told in a header, not in the body."""


WORDS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("nous_online.interfaces.api").joinpath("openapi.toml").read_text("utf-8")
)
"""What the OpenAPI document says of its groups, verbs and bodies, and what values of a name look like."""


def body(
    name: str,
    told: Any = None,
    /,
    *,
    base: type[Body] = Body,
    without: Collection[str] = (),
    rules: Mapping[str, Any] | None = None,
    **own: Any,
) -> type[Body]:
    """Return a body with fields of its `own`, and one for each row of a table, or of all that a verb may be `told`.

    Fields of its own are as pydantic's `create_model` takes them; `rules` say in JSON Schema what the store asks.
    """
    words = WORDS["bodies"].get(name, {})
    made = create_model(name, __base__=base, __doc__=words.get("about"), **own)
    example = {"example": words["example"]} if "example" in words else {}
    made.model_config["json_schema_extra"] = {**(rules or {}), **example}
    rows: Mapping[str, InputRow] = {} if told is None else rows_of(told)
    for known in rows.keys() & made.model_fields.keys():
        made.model_fields[known].description = rows[known].field.about
    carried: dict[str, Any] = {}
    for row in rows.values():
        field = row.field
        if row.name in {*HEADERS, *without, *made.model_fields} or isinstance(field, fields.Alias):
            continue
        kind = wire_type(field)
        described = Field(
            default=... if row.is_required else row.default,
            description=field.about + (f" Taken as {' and '.join(field.aliases)} too." if field.aliases else ""),
            validation_alias=AliasChoices(row.name, *field.aliases) if field.aliases else None,
        )
        carried[row.name] = (kind | None if row.is_optional else kind, described)
    return create_model(name, __base__=made, __doc__=words.get("about"), **carried)


WIRE_TYPES: Mapping[type, Callable[[Any], Any]] = {
    fields.Text: lambda field: Annotated[str, text_of(field.most), SENDABLE],
    fields.Line: lambda field: Annotated[str, text_of(field.most), SENDABLE],
    fields.Names: lambda _: Tags,
    fields.Lines: lambda field: Annotated[
        list[Annotated[str, text_of(field.most), SENDABLE]], Field(max_length=field.count)
    ],
    fields.Clues: lambda field: Annotated[
        list[Annotated[str, text_of(field.most), SENDABLE]], Field(max_length=fields.MOST_LISTED)
    ],
    fields.Kinds: lambda _: Annotated[list[MemoryKind], Field(min_length=1, max_length=len(get_args(MemoryKind)))],
    fields.OneOf: lambda field: Literal[field.words],
    fields.Instant: lambda _: Moment,
    fields.Share: lambda _: Share,
    fields.Whole: lambda field: Annotated[int, Field(ge=field.least, le=field.most), WHOLE],
    fields.Flag: lambda _: StrictBool,
    fields.MemoryId: lambda _: Id,
    fields.MemoryIds: lambda field: Annotated[list[Id], Field(max_length=min(field.most, MOST_IDS))],
    fields.DecisionName: lambda _: Decision,
    fields.DecisionNames: lambda field: Annotated[list[Decision], Field(max_length=min(field.most, MOST_IDS))],
}
"""What JSON may hold for each kind of field."""


def wire_type(field: fields.InputField) -> Any:
    """Return what JSON may hold for a field."""
    return next(WIRE_TYPES[kind] for kind in type(field).__mro__ if kind in WIRE_TYPES)(field)


def night_of(value: object) -> date:
    """Return a night as its date."""
    if not isinstance(value, str) or len(value) != len("2026-11-20"):
        raise ValueError("must be a date such as 2026-11-20")
    return date.fromisoformat(value)


Night = Annotated[date, PlainValidator(night_of), WithJsonSchema({"type": "string", "format": "date"})]
