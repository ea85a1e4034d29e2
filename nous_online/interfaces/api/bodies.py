"""Types of bodies and of responses, as JSON can hold them; and the OpenAPI document, with problems."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from dataclasses import fields as dataclass_fields
from datetime import date, datetime
from functools import cache
from importlib.metadata import version as installed_version
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args
from uuid import UUID

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import (
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

from nous_online.context.context_lines import TIERS, Context, ContextLine, Predicted, Prediction, Tier
from nous_online.core import fields
from nous_online.core.details import STORED, meaning
from nous_online.core.domain import Artifact, Censor, Fact, Memory, MemoryKind, Procedure, Statement
from nous_online.core.fields import InputRow, rows_of
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.validation import MAX_NAMES, PLAIN_DATE
from nous_online.interfaces.api import problems
from nous_online.interfaces.api.problems import MEDIA_TYPE, Problem, ProblemKind
from nous_online.memories import decisions
from nous_online.memories.checking import Activation, CensorCheck
from nous_online.memories.contradictions import Contradiction
from nous_online.memories.doubts import Doubt
from nous_online.memories.memory_verbs import ListedMemory
from nous_online.memories.source_undo import SourceUndone
from nous_online.memories.undoing import PastChange
from nous_online.memories.workflows import LearnedWorkflow
from nous_online.queue.webhooks import Webhook
from nous_online.recall.ranking import ScoreParts
from nous_online.recall.recall import FoundMemory, Recall

INVISIBLE = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
)
"""Characters that don't count as text, for the pattern in the document. `is_blank` decides beyond it: combining marks
without a letter, and invisible characters beyond 16 bits, which a pattern of JSON Schema can't name portably."""
NOT_BLANK = rf"^[^\x00]*[^{INVISIBLE}][^\x00]*$"  # without NUL, which PostgreSQL can't store
MOST_IDS = 200


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")
    takes_null: ClassVar[bool] = False
    """Whether every field may be null."""

    def verb_input(self) -> Any:
        """Return the fields sent, as arguments of a verb."""
        # Only fields that were sent: an update treats null and absent differently.
        return {name: verb_value(getattr(self, name)) for name in self.model_fields_set}


def verb_value(value: Any) -> Any:
    if isinstance(value, list):
        return [verb_value(each) for each in cast("list[Any]", value)]
    return value.verb_input() if isinstance(value, Body) else value


def parse_whole(value: object) -> object:
    """Return a whole number, 5.0 included, since JSON knows one type of number; raise `ValueError` for a text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a whole number")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parse_moment(value: object) -> datetime:
    """Return a moment in RFC 3339: a date, a time, and a zone; a plain date is its beginning in UTC."""
    if isinstance(value, str) and PLAIN_DATE.fullmatch(value):
        value += "T00:00:00Z"
    # RFC 3339 allows "t" and "z" in lower case.
    if not isinstance(value, str) or "T" not in value.upper()[10:11]:
        raise ValueError("must be a moment such as 2026-05-01T09:30:00Z, or a date")
    moment = datetime.fromisoformat(value.upper())
    if moment.tzinfo is None:
        raise ValueError("names no time zone; add one, such as Z for UTC")
    return moment


WHOLE = BeforeValidator(parse_whole)


def text_of(most: int) -> Any:
    """Return the constraints of a text: not blank, and at most `most` characters; verbs limit its bytes."""
    return Field(min_length=1, max_length=most, pattern=NOT_BLANK)


Text = Annotated[str, text_of(MAX_CONTENT_BYTES)]
Line = Annotated[str, text_of(1000)]
Name = Annotated[str, text_of(100)]
Tags = Annotated[list[Name], Field(max_length=MAX_NAMES)]
Lines = Annotated[list[Line], Field(max_length=MAX_NAMES)]
Flag = StrictBool
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Moment = Annotated[
    datetime,
    PlainValidator(parse_moment),
    WithJsonSchema({"anyOf": [{"type": "string", "format": each} for each in ("date-time", "date")]}),
]
Ids = Annotated[list[UUID], Field(max_length=MOST_IDS)]
Decision = Annotated[
    str,
    text_of(200),
    Field(description="The id or reference of a decision recorded here, or the name of one taken elsewhere."),
]


HEADERS = {"idempotency_key"}
"""Rows sent as a header, not in the body."""


WORDS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("nous_online.interfaces.api").joinpath("openapi.toml").read_text("utf-8")
)
"""Texts of the OpenAPI document for groups, verbs and bodies; and of each body an example, and the rules of the store
that only the document tells callers: the store enforces them."""


def body(
    name: str,
    source: Any = None,
    /,
    *,
    base: type[Body] = Body,
    without: Collection[str] = (),
    **own: Any,
) -> type[Body]:
    """Return a body with `own` fields, and one for each input row of `source`: a table of details, or a verb.

    Own fields are given as to pydantic's `create_model`.
    """
    words = WORDS["bodies"].get(name, {})
    # Two steps, so that fields of `own` come first and keep their types where a row of the same name exists.
    own_model = create_model(name, __base__=base, __doc__=words.get("about"), **own)
    rules = [WORDS["rules"][each] for each in words.get("rules", ())]
    example = {"example": words["example"]} if "example" in words else {}
    own_model.model_config["json_schema_extra"] = {**({"allOf": rules} if rules[1:] else dict(*rules)), **example}
    rows: Mapping[str, InputRow] = {} if source is None else rows_of(source)
    for known in rows.keys() & own_model.model_fields.keys():
        own_model.model_fields[known].description = rows[known].field.about
    generated: dict[str, Any] = {}
    for row in rows.values():
        field = row.field
        if row.name in {*HEADERS, *without, *own_model.model_fields} or isinstance(field, fields.Alias):
            continue
        kind = wire_type(field)
        described = Field(
            default=... if row.is_required else row.default,
            description=field.about + (f" Taken as {' and '.join(field.aliases)} too." if field.aliases else ""),
            validation_alias=AliasChoices(row.name, *field.aliases) if field.aliases else None,
        )
        generated[row.name] = (kind | None if row.is_optional or base.takes_null else kind, described)
    return create_model(name, __base__=own_model, __doc__=words.get("about"), **generated)


WIRE_TYPES: Mapping[type, Callable[[Any], Any]] = {
    fields.Text: lambda field: Annotated[str, text_of(field.most)],
    fields.Line: lambda field: Annotated[str, text_of(field.most)],
    fields.Names: lambda _: Tags,
    fields.Lines: lambda field: Annotated[list[Annotated[str, text_of(field.most)]], Field(max_length=field.count)],
    fields.Clues: lambda field: Annotated[
        list[Annotated[str, text_of(field.most)]], Field(max_length=fields.MOST_LISTED)
    ],
    fields.Kinds: lambda _: Annotated[list[MemoryKind], Field(min_length=1, max_length=len(get_args(MemoryKind)))],
    fields.OneOf: lambda field: Literal[field.words],
    fields.Instant: lambda _: Moment,
    fields.Share: lambda _: Share,
    fields.Whole: lambda field: Annotated[int, Field(ge=field.least, le=field.most), WHOLE],
    fields.Flag: lambda _: StrictBool,
    fields.MemoryId: lambda _: UUID,
    fields.MemoryIds: lambda field: Annotated[list[UUID], Field(max_length=min(field.most, MOST_IDS))],
    fields.DecisionName: lambda _: Decision,
    fields.DecisionNames: lambda field: Annotated[list[Decision], Field(max_length=min(field.most, MOST_IDS))],
}
"""The type in JSON of each kind of field."""


def wire_type(field: fields.InputField) -> Any:
    """Return the type in JSON of a field: that of its class, or of the nearest base class listed."""
    return next(WIRE_TYPES[kind] for kind in type(field).__mro__ if kind in WIRE_TYPES)(field)


def parse_night(value: object) -> date:
    # The length refuses 20261120 and 2026-W47-5, which `fromisoformat` takes too.
    if not isinstance(value, str) or len(value) != len("2026-11-20"):
        raise ValueError("must be a date such as 2026-11-20")
    return date.fromisoformat(value)


Night = Annotated[date, PlainValidator(parse_night), WithJsonSchema({"type": "string", "format": "date"})]


# --- the document ---

TITLE = "Nous"
SUMMARY = "Long-term memory for AI agents that maintains itself every night."
DESCRIPTION = """Everything a Heart does, over HTTP. A key names its agent; an administrator's key acts for the agent
named in `X-Nous-Agent`. Every failure is `application/problem+json` (RFC 9457). `X-Nous-Deadline` ends a call in time,
`Idempotency-Key` makes a retry safe, and every answer carries `X-Request-Id`."""
KEY = {"type": "http", "scheme": "bearer", "bearerFormat": "nous_…", "description": "Made by `nous key create`."}
ALWAYS = (problems.UNREADABLE, problems.TOO_MANY, problems.UNEXPECTED, problems.UNAVAILABLE)
KEYED = (problems.KEY_REFUSED, problems.FORBIDDEN, problems.NOT_FOUND, problems.CONFLICT, problems.LATE)
KEYED_ELSEWHERE = ("get_metrics",)
"""Operations that need a key unless on loopback."""
WITH_BODY = (problems.SLOW_REQUEST, problems.TOO_LARGE, problems.NOT_JSON)


@cache
def version() -> str:
    return installed_version("nous-pipelines")


def describe(app: FastAPI, *, requires_keys: bool) -> None:
    """Replace the application's document by the completed one, built at the first request for it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            derived = get_openapi(
                title=app.title,
                version=app.version,
                summary=SUMMARY,
                description=DESCRIPTION,
                routes=app.routes,
                tags=[{"name": name, "description": about} for name, about in WORDS["tags"].items()],
            )
            app.openapi_schema = complete_document(derived, requires_keys=requires_keys)
        return app.openapi_schema

    app.openapi = openapi


def complete_document(document: dict[str, Any], *, requires_keys: bool) -> dict[str, Any]:
    """Add security, problems and what fields mean to a document in place, and return it."""
    components: dict[str, Any] = document["components"]
    for stored in STORED.keys() & components["schemas"].keys():
        for name, field in components["schemas"][stored]["properties"].items():
            field.setdefault("description", meaning(stored, name))
    schemas: dict[str, Any] = components["schemas"]
    # FastAPI's own schemas of errors: ours are problems.
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    components["securitySchemes"] = {"key": KEY}
    for methods in document["paths"].values():
        for operation in methods.values():
            complete_operation(operation, requires_keys=requires_keys)
    return document


def complete_operation(operation: dict[str, Any], *, requires_keys: bool) -> None:
    is_open = operation["tags"] == ["server"]
    for parameter in operation.get("parameters", []):
        schema = parameter["schema"]
        # A query or a header can't express null.
        choices: list[dict[str, Any]] = [each for each in schema.pop("anyOf", []) if each.get("type") != "null"]
        parameter["schema"] = {**schema, **choices[0]} if choices else schema
    if not is_open:
        operation["security"] = [{"key": []}] if requires_keys else []
    elif operation["operationId"] in KEYED_ELSEWHERE:
        operation["security"] = [{}, {"key": []}]  # the empty one means: also without a key
    responses: dict[str, Any] = operation["responses"]
    kinds = kinds_of(operation, is_open=is_open)
    responses.pop("422", None)
    for kind in sorted(kinds, key=lambda kind: kind.status):
        content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses.setdefault(str(kind.status), {"description": kind.title, "content": content})


def kinds_of(operation: Mapping[str, Any], *, is_open: bool) -> list[ProblemKind]:
    kinds = [*ALWAYS, *(() if is_open else KEYED), *(WITH_BODY if "requestBody" in operation else ())]
    kinds += (problems.NO_EXTRA,) if operation["tags"] == ["nights"] else ()
    kinds += (problems.KEY_REFUSED, problems.LATE) if operation["operationId"] in KEYED_ELSEWHERE else ()
    kinds += (problems.INVALID,) if "422" in operation["responses"] or not is_open else ()
    return kinds


# --- responses that differ from what the verb returns ---


@dataclass(frozen=True)
class StatementList:
    """What was said for a fact, the oldest first."""

    statements: list[Statement]
    unrecorded_count: int
    """Confirmations from before statements were kept: counted, without words."""


class FromResult:
    """Mixin of responses that are made of what a verb returns: each field from the attribute of its name."""

    @classmethod
    def of(cls, found: Any, **others: Any) -> Self:
        """Return the response for a result; `others` are the fields that differ from it."""
        names = {each.name for each in dataclass_fields(cast("Any", cls))} - others.keys()
        return cls(**{name: getattr(found, name) for name in names}, **others)


@dataclass(frozen=True)
class Remembered(FromResult):
    """One answer of a recall: the text to show, why it stands where it stands, and the whole memory."""

    id: UUID
    kind: str
    text: str
    score: float
    parts: ScoreParts
    memory: FoundMemory
    put_before: UUID | None
    """What it was put before: a fact about the same thing that is earlier or yet to begin, or an episode that tells
    what has changed since."""
    contradicted_by: tuple[UUID, ...]
    """Facts that contradict it, undecided."""
    begins_on: date | None
    """When it begins, where that is yet to come."""
    changed_by: tuple[UUID, ...]
    """The facts among the answers that replaced, or contradict, something that this episode tells."""


@dataclass(frozen=True)
class RecallAnswer(FromResult):
    """The answers of a recall, best first."""

    recall_id: UUID
    """Takes the feedback."""
    memories: list[Remembered]
    confidence: float
    """The chance that the best one found is an answer, 0 to 1."""
    is_confident: bool
    """Whether an answer is more likely to have been found than not."""
    is_by_words: bool
    """Whether only words were compared, because the embedder could not be asked."""


def recall_answer(found: Recall) -> RecallAnswer:
    memories = [Remembered.of(each, kind=each.memory.kind) for each in found]
    return RecallAnswer.of(found, recall_id=found.id, memories=memories)


@dataclass(frozen=True)
class FeedbackAnswer:
    """How much of the feedback was news."""

    cited: int
    ignored: int


@dataclass(frozen=True)
class Tiers:
    """Tokens of each tier: critical, relevant, background, index."""

    tier1: int
    tier2: int
    tier3: int
    tier4: int


@dataclass(frozen=True)
class ContextAnswer(FromResult):
    """A context ready to be put before a model."""

    context: str
    token_count: int
    """Of the whole text; never above `budget`."""
    budget: int
    tiers: Tiers
    tokens: Mapping[Tier, int]
    """The same by the names of the tiers."""
    left_out: Mapping[Tier, int]
    """Lines of each tier that found no room."""
    counting: str
    recall_id: UUID
    """Takes the feedback: POST /recalls/{recall_id:uuid}/feedback."""
    lines: Sequence[ContextLine]
    """Every line, with why it is there."""
    is_by_words: bool
    """Whether only words were compared with what was told, because the embedder could not be asked."""


def context_answer(found: Context) -> ContextAnswer:
    return ContextAnswer.of(found, context=found.text, tiers=Tiers(*(found.tokens.get(tier, 0) for tier in TIERS)))


@dataclass(frozen=True)
class PredictionAnswer(FromResult):
    """What is likely to be wanted in a session, the likeliest first."""

    session_id: str
    predicted_memories: Sequence[Predicted]
    confidence: float
    """The expected share of what the session will want that is among them."""


def prediction_answer(found: Prediction) -> PredictionAnswer:
    return PredictionAnswer.of(found, predicted_memories=found.memories)


@dataclass(frozen=True)
class CheckAnswer:
    """What speaks against an action."""

    is_allowed: bool
    """Whether nothing more than warns."""
    is_blocked: bool
    """Whether something more than warns."""
    severity: str | None
    """The firmest, null where nothing speaks against it."""
    activations: list[Activation]
    """The firmest first."""


def check_answer(found: CensorCheck) -> CheckAnswer:
    return CheckAnswer(found.is_allowed, not found.is_allowed, found.severity, list(found))


@dataclass(frozen=True)
class NotUndone:
    """A memory that still holds what the source said."""

    memory_id: UUID
    reason: str


@dataclass(frozen=True)
class SourceAnswer:
    """Which memories no longer hold what a source said, the latest first, and which still do."""

    undone: tuple[UUID, ...]
    refused: tuple[NotUndone, ...]


def source_answer(done: SourceUndone) -> SourceAnswer:
    return SourceAnswer(done.undone, tuple(NotUndone(each, why) for each, why in done.refused.items()))


@dataclass(frozen=True)
class WorkflowAnswer(FromResult):
    """A workflow that was found, what was done about it, and the procedure it is kept as."""

    action: str
    name: str
    steps: list[str]
    support: int
    """How many sessions hold it."""
    success_share: float | None
    procedure: Procedure | None
    """Null where it was only looked for."""


@dataclass(frozen=True)
class WorkflowList:
    """The workflows that episodes share."""

    workflows: list[WorkflowAnswer]


def workflow_list(found: Sequence[LearnedWorkflow]) -> WorkflowList:
    def answer(each: LearnedWorkflow) -> WorkflowAnswer:
        steps = [step.name for step in each.found.steps]
        return WorkflowAnswer.of(each.found, action=each.action, steps=steps, procedure=each.procedure)

    return WorkflowList(list(map(answer, found)))


def wrapped(name: str, about: str, **fields: Any) -> type[Any]:
    """Return a response class with one field: an object, unlike a bare list, can get more fields later."""
    answer = make_dataclass(name, fields.items(), frozen=True)
    answer.__doc__ = about
    return answer


MemoryAnswer = wrapped("MemoryAnswer", "A memory of any kind.", memory=Memory)
CensorList = wrapped("CensorList", "The active censors of an agent.", censors=list[Censor])
ContradictionList = wrapped(
    "ContradictionList", "Contradictions, the oldest first.", contradictions=list[Contradiction]
)
DoubtList = wrapped("DoubtList", "Facts that perhaps replace earlier ones, the oldest first.", doubts=list[Doubt])
FactList = wrapped("FactList", "Facts, the latest first.", facts=list[Fact])
FactCounts = wrapped("FactCounts", "How many facts there are in each state.", counts=dict[str, int])
ChangeList = wrapped("ChangeList", "Every change of a memory, the latest first.", changes=list[PastChange])
ArtifactList = wrapped("ArtifactList", "What an episode produced or was about.", artifacts=list[Artifact])
ProcedureList = wrapped("ProcedureList", "Procedures, the best first.", procedures=list[Procedure])
MemoryList = wrapped("MemoryList", "Memories, the latest first.", memories=list[ListedMemory])
DecisionList = wrapped("DecisionList", "Decisions, the latest first.", decisions=list[decisions.Decision])
WebhookList = wrapped("WebhookList", "The webhooks of an agent, oldest first.", webhooks=list[Webhook])
StoredCount = wrapped("StoredCount", "How many of the facts were new.", stored=int)
