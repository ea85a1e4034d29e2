"""Everything that the verbs may be told, a table for each: its check, signature, interfaces and reference follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from nous_online.core.domain import DOCUMENT, SCOPES, SOURCE_KINDS, DecisionId, Fact, Scope, SourceKind
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import (
    Alias,
    DecisionName,
    Flag,
    Instant,
    Line,
    MemoryId,
    MemoryIds,
    Names,
    OneOf,
    Share,
    Text,
    Whole,
)
from nous_online.core.policy import MAX_CONTENT_BYTES, MAX_CONTEXT_BYTES
from nous_online.core.validation import ACTIVE_CENSORS, FRAME

Frame = Annotated[
    str | None,
    Line(
        "The cognitive frame the agent is in, such as debug; that of its session unless told.",
        most=100,
        aliases=FRAME[1:],
        option="--frame",
        brief="",
    ),
]
OtherFrame = Annotated[str | None, Alias("Another name of `frame`.")]
ActiveCensors = Annotated[
    list[str] | None,
    Names(
        "The censors that are active; those of the session unless told.",
        aliases=ACTIVE_CENSORS[1:],
    ),
]
OtherCensors = Annotated[list[str] | None, Alias("Another name of `active_censors`.")]
UserId = Annotated[str | None, Line("The user it is about; of nobody in particular unless told.", most=100)]
ProjectId = Annotated[str | None, Line("The project it belongs to.", most=100)]
IdempotencyKey = Annotated[
    str | None,
    Line(
        "Makes a retry safe: the same key and content return the first answer and change nothing.",
        most=200,
        option="--idempotency-key",
    ),
]


@dataclass(frozen=True)
class Category(Line):
    """The category of a statement; that of documents is not to be told."""

    def check(self, name: str, value: object, *, now: datetime) -> Any:
        if value == DOCUMENT:
            raise InvalidInput(f"category {value!r} is kept for the files and values of adapters; use another word")
        return super().check(name, value, now=now)


class ReachDetails(TypedDict, total=False):
    """Whom a memory is for."""

    scope: Annotated[Scope, OneOf("Whom it is for; `project` needs `project_id`.", words=SCOPES, default="private")]
    user_id: UserId
    project_id: ProjectId


class ClaimDetails(ReachDetails, total=False):
    """Where a memory comes from, how far it is to be believed, and whom it is for."""

    source: Annotated[str | None, Line("Where it comes from.", most=500, option="--source", brief="")]
    source_kind: Annotated[
        SourceKind,
        OneOf(
            "Who or what said it; `episode` names the episode it was drawn from, and is trusted as that is.",
            words=SOURCE_KINDS,
            default="agent",
        ),
    ]
    trust: Annotated[
        int | None,
        Whole(
            "How far it is believed: 0 is anybody's web page, 100 the operator; that of its `source_kind` unless told, "
            "and no more than the caller may claim.",
            least=0,
            most=100,
        ),
    ]
    is_pinned: Annotated[bool, Flag("No night archives it; for callers that may pin.", default=False)]


class OriginDetails(ClaimDetails, total=False):
    """The same of what was learned at one moment, in one frame."""

    learned_at: Annotated[
        datetime | str | None,
        Instant("When it was said; now, unless it is an older history.", is_said=True, option="--learned-at"),
    ]
    frame: Frame
    active_censors: ActiveCensors
    encoded_frame: OtherFrame
    encoded_censors: OtherCensors


Content = Annotated[str, Text("One statement.", most=MAX_CONTENT_BYTES, brief="one self-contained sentence")]
Replaces = Annotated[
    UUID | str | Fact | Sequence[UUID | str | Fact] | None,
    MemoryIds(
        "Facts of the same scope, user and project that give way to this one, by id or as they were read.",
        option="--replaces",
        brief="ids of facts it replaces",
    ),
]


class FactFields(TypedDict, total=False):
    """What only facts have."""

    subject: Annotated[str | None, Line("What it is about.", most=500, option="--subject", brief="")]
    key: Annotated[
        str | None,
        Line(
            "Which attribute of which thing it is a value of, such as `ana/home`: a later value replaces it.",
            most=200,
            option="--key",
            brief="such as ana/home: one value at a time",
        ),
    ]
    category: Annotated[str | None, Category("Its category, such as `preference`.", most=100, option="--category")]
    tags: Annotated[list[str] | None, Names("Words to find it by.", option="--tag", brief="")]
    context: Annotated[
        str | None,
        Text(
            "What was said around it: helps to find it, is never shown as its content.",
            most=MAX_CONTEXT_BYTES,
            empty_is_none=True,
        ),
    ]
    confidence: Annotated[float, Share("How sure it is.", default=1.0, option="--confidence")]
    valid_from: Annotated[datetime | str | None, Instant("Since when it holds; since ever unless told.")]
    valid_to: Annotated[datetime | str | None, Instant("Until when it holds; not before `valid_from`.")]
    source_episode_id: Annotated[UUID | str | None, MemoryId("The episode it was drawn from.")]
    source_decision_id: Annotated[
        DecisionId | None,
        DecisionName("The id or reference of a decision recorded here, or the name of one taken elsewhere."),
    ]
    session_id: Annotated[str | None, Line("The session it is said in; lends frame and censors.", most=100)]
    idempotency_key: IdempotencyKey


class FactDetails(FactFields, OriginDetails, total=False):
    """Everything `learn` may be told about a fact besides its content."""
