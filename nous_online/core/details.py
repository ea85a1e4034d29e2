"""Everything that the verbs may be told, a table for each: its check, signature, interfaces and reference follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from nous_online.core.domain import (
    OUTCOMES,
    PROCEDURE_KINDS,
    SCOPES,
    SEVERITIES,
    SOURCE_KINDS,
    DecisionId,
    Fact,
    Outcome,
    ProcedureKind,
    Scope,
    Severity,
    SourceKind,
)
from nous_online.core.fields import (
    Alias,
    Category,
    DecisionName,
    DecisionNames,
    Flag,
    Instant,
    Line,
    Lines,
    MemoryId,
    MemoryIds,
    MoreText,
    Names,
    OneOf,
    Share,
    Special,
    Text,
    Whole,
)
from nous_online.core.policy import MAX_CONTENT_BYTES, MAX_CONTEXT_BYTES, MAX_DETAIL_BYTES, CensorPolicy
from nous_online.core.validation import (
    ACTIVE_CENSORS,
    FRAME,
    MAX_IDS,
    MAX_LINE_BYTES,
    MAX_NAMES,
    checked_artifacts,
    checked_hint,
    checked_new_reference,
    checked_steps,
    checked_template,
)

MAX_REASON_CHARACTERS = 20_000
FRAME_FIELD = Line(
    "The cognitive frame the agent is in, such as debug; that of its session unless told.",
    most=100,
    aliases=FRAME[1:],
    option="--frame",
    brief="",
)
Frame = Annotated[str | None, FRAME_FIELD]
OtherFrame = Annotated[str | None, Alias("Another name of `frame`.")]
ActiveCensors = Annotated[
    list[str] | None,
    Names("The censors that are active; those of the session unless told.", aliases=ACTIVE_CENSORS[1:]),
]
OtherCensors = Annotated[list[str] | None, Alias("Another name of `active_censors`.")]
SessionId = Annotated[str | None, Line("The session it is said in; lends frame and censors.", most=100)]
UserId = Annotated[
    str | None, Line("The user it is about; nobody in particular unless told.", most=100, option="--user")
]
ProjectId = Annotated[str | None, Line("The project it belongs to.", most=100, option="--project")]
IdempotencyKey = Annotated[
    str | None,
    Line(
        "Makes a retry safe: the same key and content return the first answer and change nothing.",
        most=200,
        option="--idempotency-key",
    ),
]


def band(name: str, about: str) -> Lines:
    """Return the field of a band of a K-line."""
    return Lines(about, most=MAX_LINE_BYTES, entry=f"a line of {name}")


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
        Instant("When it was said; now, unless it is an older history.", is_said=True, option="--learned-at ISO-8601"),
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
        option="--replaces ID",
        brief="ids of facts it replaces",
    ),
]


Subject = Annotated[str | None, Line("What it is about.", most=500, option="--subject", brief="")]
CategoryName = Annotated[str | None, Category("Its category, such as `preference`.", most=100, option="--category")]
Tags = Annotated[list[str] | None, Names("Words to find it by.", option="--tag TAG", brief="")]
Confidence = Annotated[float, Share("How sure it is.", default=1.0, option="--confidence")]
ValidFrom = Annotated[
    datetime | str | None, Instant("Since when it holds; since ever unless told.", option="--valid-from ISO-8601")
]
ValidTo = Annotated[
    datetime | str | None, Instant("Until when it holds; not before `valid_from`.", option="--valid-to ISO-8601")
]


class FactFields(TypedDict, total=False):
    """What only facts have."""

    subject: Subject
    key: Annotated[
        str | None,
        Line(
            "Which attribute of which thing it is a value of, such as `ana/home`: a later value replaces it.",
            most=200,
            option="--key",
            brief="such as ana/home: one value at a time",
        ),
    ]
    category: CategoryName
    tags: Tags
    context: Annotated[
        str | None,
        Text(
            "What was said around it: helps to find it, is never shown as its content.",
            most=MAX_CONTEXT_BYTES,
            empty_is_none=True,
        ),
    ]
    confidence: Confidence
    valid_from: ValidFrom
    valid_to: ValidTo
    source_episode_id: Annotated[UUID | str | None, MemoryId("The episode it was drawn from.")]
    source_decision_id: Annotated[
        DecisionId | None,
        DecisionName("The id or reference of a decision recorded here, or the name of one taken elsewhere."),
    ]
    session_id: SessionId
    idempotency_key: IdempotencyKey


class FactDetails(FactFields, OriginDetails, total=False):
    """Everything `learn` may be told about a fact besides its content."""


class MemoryChanges(TypedDict, total=False):
    """What `update` may be told; None clears a subject, a category or an end of validity."""

    tags: Annotated[list[str], Names("All its tags; of anything but a censor.", option="--tag TAG")]
    subject: Subject
    category: CategoryName
    confidence: Annotated[float, Share("How sure a fact is.", option="--confidence")]
    valid_from: ValidFrom
    valid_to: ValidTo
    is_pinned: Annotated[bool, Flag("No night archives it.")]


# --- episodes ---


Title = Annotated[str | None, Line("What it is called; the first words of its text unless told.", most=500, brief="")]
EpisodeText = Annotated[str | None, Text("What was said and done.", most=MAX_DETAIL_BYTES)]
Lessons = Annotated[
    list[str] | None,
    Lines("What was learned of it, a sentence or a few each.", most=MAX_LINE_BYTES, entry="a lesson", count=MAX_IDS),
]
EpisodeOutcome = Annotated[Outcome | None, OneOf("How it went.", words=OUTCOMES, brief="")]


class NotedDetails(TypedDict, total=False):
    """What may be said of an episode at any time; lists only grow."""

    participants: Annotated[list[str] | None, Names("Who took part.")]
    tags: Annotated[list[str] | None, Names("Words to find it by.")]
    decision_ids: Annotated[
        Sequence[DecisionId] | None,
        DecisionNames("Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there."),
    ]
    procedures_activated: Annotated[Sequence[UUID] | None, MemoryIds("Procedures that were put to use in it.")]
    artifacts: Annotated[
        Sequence[tuple[str, str]] | None,
        Special(
            "What it produced or was about: pairs of a kind (`commit`, `pr`, `adr`, `file`) and what names it in at "
            "most 200 characters.",
            checks=checked_artifacts,
        ),
    ]
    frame: Frame
    active_censors: ActiveCensors
    frame_used: OtherFrame
    encoded_censors: OtherCensors


class OutcomeDetails(TypedDict, total=False):
    """What came of an episode."""

    summary: Annotated[str | None, Line("What happened, in short; written for it unless told.", most=20_000, brief="")]
    lessons_learned: Lessons
    outcome: EpisodeOutcome
    surprise_level: Annotated[float | None, Share("How much of it was not expected.")]


class TitledDetails(TypedDict, total=False):
    """What an episode is called."""

    title: Title


class ChangeDetails(TitledDetails, OutcomeDetails, NotedDetails, total=False):
    """What an update may add to an episode; lists only grow, single values are replaced."""

    append: Annotated[str | None, MoreText("A new line of its detail.", most=MAX_DETAIL_BYTES, whole="detail")]


EndedAt = Annotated[datetime | str | None, Instant("When it ended; now unless told.")]


class EndDetails(ChangeDetails, total=False):
    """What closing an episode may tell."""

    ended_at: EndedAt


class BeginningDetails(ClaimDetails, total=False):
    """What is settled when an episode begins."""

    session_id: Annotated[str | None, Line("The session it happens in; lends frame and censors.", most=100)]
    started_at: Annotated[datetime | str | None, Instant("When it began; now unless told.", is_said=True)]
    idempotency_key: IdempotencyKey


class StartDetails(NotedDetails, BeginningDetails, total=False):
    """What starting an episode may tell besides its title."""


class RecordDetails(TitledDetails, OutcomeDetails, StartDetails, total=False):
    """What may be told about an episode that is over, besides its detail."""

    ended_at: EndedAt


# --- procedures ---

ProcedureName = Annotated[str, Line("What it is called; the same name again is a new version.", most=500)]


class ProcedureFields(TypedDict, total=False):
    """What only procedures have."""

    kind: Annotated[
        ProcedureKind,
        OneOf(
            "A `k_line` has three bands, a `workflow` steps, a `pattern` a template; `workflow` where steps alone are "
            "told.",
            words=PROCEDURE_KINDS,
            default="k_line",
        ),
    ]
    domain: Annotated[str | None, Line("The field it belongs to, such as `deployment`.", most=100)]
    goals: Annotated[list[str] | None, band("goals", "Upper fringe: what it is for.")]
    core_patterns: Annotated[list[str] | None, band("core_patterns", "Core: how it is done.")]
    core_tools: Annotated[list[str] | None, band("core_tools", "Core: what it is done with.")]
    core_concepts: Annotated[list[str] | None, band("core_concepts", "Core: what one has to know.")]
    implementation_notes: Annotated[
        list[str] | None, band("implementation_notes", "Lower fringe: details that are easily displaced.")
    ]
    steps: Annotated[
        Sequence[str | Mapping[str, str]] | None,
        Special(
            'Of a workflow, in their order, each a name or {"name": …, "detail": …} (at most 100).',
            checks=checked_steps,
        ),
    ]
    template: Annotated[
        Mapping[str, Any] | None,
        Special("Of a pattern: a JSON object to be filled in, at most 32 KiB.", checks=checked_template),
    ]
    trigger: Annotated[str | None, Line("When it is wanted.", most=500)]
    hint: Annotated[
        str | None,
        Special('One line that says it all; unless told, such as "deploy: test→build→stage".', checks=checked_hint),
    ]
    related_procedures: Annotated[Sequence[UUID | str] | None, MemoryIds("Procedures that go with it.", most=MAX_NAMES)]
    related_decision_ids: Annotated[
        Sequence[DecisionId] | None, DecisionNames("Decisions it comes from.", most=MAX_NAMES)
    ]
    censors: Annotated[list[str] | None, Names("What to beware of while doing it.")]
    tags: Annotated[list[str] | None, Names("Words to find it by.")]
    idempotency_key: IdempotencyKey


class ProcedureDetails(ProcedureFields, OriginDetails, total=False):
    """Everything that may be told about a procedure besides its name."""


# --- censors ---

Trigger = Annotated[str, Text("What sets it off.", most=CensorPolicy.trigger_bytes)]
CensorReason = Annotated[str, Text("Why not, or what to do instead.", most=CensorPolicy.reason_bytes)]


class CensorFields(TypedDict, total=False):
    """What only censors have."""

    severity: Annotated[
        Severity,
        OneOf(
            "How firmly it speaks; `absolute` is only ever set by hand.",
            words=SEVERITIES,
            default="warn",
            option="--severity",
        ),
    ]
    is_literal: Annotated[
        bool,
        Flag(
            "The trigger must occur as written (`*` stands for anything within a line), not only in meaning.",
            default=False,
            option="--literal",
        ),
    ]
    escalation_threshold: Annotated[
        int | None,
        Whole(
            f"After how many activations a warning becomes a block; {CensorPolicy.escalation_threshold} unless told.",
            least=1,
            most=CensorPolicy.highest_threshold,
            option="--threshold",
        ),
    ]
    learned_from_decision_id: Annotated[
        DecisionId | None,
        DecisionName(
            "The id or reference of a decision recorded here, or the name of one taken elsewhere.",
            aliases=("learned_from_decision",),
        ),
    ]
    learned_from_decision: Annotated[DecisionId | None, Alias("Another name of `learned_from_decision_id`.")]
    learned_from_episode_id: Annotated[UUID | str | None, MemoryId("The episode it was learned from.")]
    expires_at: Annotated[
        datetime | str | None, Instant("When it falls silent; never unless told.", option="--expires-at ISO-8601")
    ]


class CensorDetails(CensorFields, OriginDetails, total=False):
    """Everything that may be told about a censor besides its trigger and reason."""


class CensorChanges(TypedDict, total=False):
    """What `update_censor` may change; trigger and reason are what was said, and stay."""

    severity: Annotated[Severity, OneOf("How firmly it speaks.", words=SEVERITIES)]
    escalation_threshold: Annotated[
        int | None,
        Whole(
            f"After how many activations a warning becomes a block; None for {CensorPolicy.escalation_threshold}.",
            least=1,
            most=CensorPolicy.highest_threshold,
        ),
    ]
    expires_at: Annotated[datetime | str | None, Instant("From then on it is silent; None for never.")]
    is_pinned: Annotated[bool, Flag("No night archives it.")]


# --- decisions ---

DecisionTitle = Annotated[str, Text("What was decided.", most=2000, brief="")]


class DecisionDetails(TypedDict, total=False):
    """Everything that may be told about a decision besides its title."""

    rationale: Annotated[str | None, Line("Why it was decided so.", most=MAX_REASON_CHARACTERS)]
    confidence: Annotated[float | None, Share("How sure the agent was.")]
    files: Annotated[Sequence[str], Names("Files it is about.")]
    tags: Annotated[Sequence[str], Names("Words to find it by.")]
    session_id: Annotated[str | None, Line("The session it was taken in.", most=100)]
    episode_id: Annotated[
        UUID | str | None, MemoryId("The episode it belongs to; the current one of the session, unless told.")
    ]
    decided_at: Annotated[datetime | str | None, Instant("When it was taken; now unless told.", is_said=True)]
    reference: Annotated[
        str | None,
        Special(
            "What the agent calls it, such as `abc123` (at most 200 characters): names it wherever an id of a decision "
            "is asked for.",
            checks=checked_new_reference,
        ),
    ]
    idempotency_key: IdempotencyKey
