"""Everything that verbs may be told, a table for each: check, signature, interfaces, reference and meaning follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from nous_online.core.domain import (
    DECISION_STATUSES,
    DETAILS,
    MEANINGS,
    OUTCOMES,
    PROCEDURE_KINDS,
    SCOPES,
    SEVERITIES,
    SOURCE_KINDS,
    DecisionId,
    DecisionStatus,
    Detail,
    Fact,
    MemoryKind,
    Outcome,
    ProcedureKind,
    Scope,
    Severity,
    SourceKind,
)
from nous_online.core.fields import (
    Alias,
    AnswerLimit,
    Budget,
    Category,
    Clue,
    Clues,
    DecisionName,
    DecisionNames,
    Flag,
    Instant,
    Kinds,
    Line,
    Lines,
    MemoryId,
    MemoryIds,
    MoreText,
    Names,
    Nested,
    OneOf,
    Question,
    Share,
    Special,
    Text,
    Whole,
    rows_of,
)
from nous_online.core.policy import (
    MAX_CONTENT_BYTES,
    MAX_CONTEXT_BYTES,
    MAX_DETAIL_BYTES,
    MAX_RECALL_LIMIT,
    CensorPolicy,
    ContextPolicy,
    SessionPolicy,
)
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
MAX_NAME_BYTES = 4 * 1024
"""Of one path, module, branch, activity or person."""
MAX_WORDS_BYTES = 16 * 1024
"""Of one task or error, in bytes of UTF-8: the end of a trace says what went wrong."""
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
            special=checked_artifacts,
        ),
    ]
    frame: Frame
    active_censors: ActiveCensors
    frame_used: OtherFrame
    encoded_censors: OtherCensors


class OutcomeDetails(TypedDict, total=False):
    """What an episode is called, and what came of it."""

    title: Title
    summary: Annotated[str | None, Line("What happened, in short; written for it unless told.", most=20_000, brief="")]
    lessons_learned: Lessons
    outcome: EpisodeOutcome
    surprise_level: Annotated[float | None, Share("How much of it was not expected.")]


class ChangeDetails(OutcomeDetails, NotedDetails, total=False):
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


class RecordDetails(OutcomeDetails, StartDetails, total=False):
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
            special=checked_steps,
        ),
    ]
    template: Annotated[
        Mapping[str, Any] | None,
        Special("Of a pattern: a JSON object to be filled in, at most 32 KiB.", special=checked_template),
    ]
    trigger: Annotated[str | None, Line("When it is wanted.", most=500)]
    hint: Annotated[
        str | None,
        Special('One line that says it all; unless told, such as "deploy: test→build→stage".', special=checked_hint),
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
            special=checked_new_reference,
        ),
    ]
    idempotency_key: IdempotencyKey


# --- what is asked and loaded ---


def loaded(what: str) -> MemoryIds:
    """Return the field of memories that are loaded."""
    return MemoryIds(f"{what}, by their ids.", most=SessionPolicy.max_capacity)


Action = Annotated[
    str,
    Text("What is about to be done: a command, or in words.", most=MAX_CONTENT_BYTES, brief="a command, or in words"),
]


AskedFrame = Annotated[
    str | None, Line("The cognitive frame the agent is in, such as debug.", most=100, option="--frame", brief="")
]
AskedCensors = Annotated[Sequence[str] | None, Names("The censors that are active; those of the session unless told.")]
AskingSession = Annotated[str | None, Line("The session it is asked in.", most=100, option="--session")]
AskingUser = Annotated[str | None, Line("For whom; what is of other users stays out.", most=100, option="--user")]
AskingProject = Annotated[str | None, Line("In which project.", most=100, option="--project")]


class AskerDetails(TypedDict, total=False):
    """Who asks, and whose memories are looked among besides the agent's own."""

    session_id: AskingSession
    user_id: AskingUser
    project_id: AskingProject


class CheckFields(TypedDict, total=False):
    """What only a check is told."""

    frame: AskedFrame
    at: Annotated[datetime | str | None, Instant("When it is about to happen; now, unless a history is replayed.")]
    is_recorded: Annotated[bool, Flag("False only looks: nothing is counted, escalated or announced.", default=True)]


class CheckDetails(CheckFields, AskerDetails, total=False):
    """Everything `check_censors` may be told besides the action."""


# --- questions ---

Query = Annotated[str, Text("What to look for, as a question or in words.", most=MAX_CONTENT_BYTES, brief="a question")]


class RecallFields(TypedDict, total=False):
    """What only a recall is told."""

    limit: Annotated[
        int,
        AnswerLimit(
            "How many memories at most.", least=1, most=MAX_RECALL_LIMIT, default=10, option="--limit", brief=""
        ),
    ]
    min_score: Annotated[
        float | None,
        Share("Leave out what scores less; `limit` alone ends the list unless told.", option="--min-score", brief=""),
    ]
    kinds: Annotated[
        Sequence[MemoryKind] | MemoryKind | None,
        Kinds(
            "Kinds of memory to look among; all unless told.", aliases=("types",), option="--kind --type KIND", brief=""
        ),
    ]
    types: Annotated[Sequence[MemoryKind] | MemoryKind | None, Alias("Another name of `kinds`.")]
    detail: Annotated[
        Detail,
        OneOf("How much of each memory its `text` holds.", words=DETAILS, default="full", option="--detail", brief=""),
    ]
    frame: AskedFrame
    active_censors: AskedCensors
    as_of: Annotated[
        datetime | str | None,
        Instant("Ask for what was believed then.", option="--as-of ISO-8601", brief="ISO 8601: what was believed then"),
    ]
    at: Annotated[
        datetime | str | None,
        Instant(
            "When the question was asked; now, unless a history is replayed. A word such as `yesterday` in the "
            "question is relative to it, or to `as_of` where that is told."
        ),
    ]


class RecallDetails(RecallFields, AskerDetails, total=False):
    """Everything `recall` may be told besides its question."""


class DecisionFilter(TypedDict, total=False):
    """Which decisions to list; what is left out is not asked for."""

    status: Annotated[DecisionStatus | None, OneOf("What became of them.", words=DECISION_STATUSES)]
    file: Annotated[str | None, Line("A file they are about.", most=400)]
    tag: Annotated[str | None, Line("A tag they have.", most=400)]
    session_id: Annotated[str | None, Line("The session they were taken in.", most=100)]
    episode_id: Annotated[UUID | str | None, MemoryId("The episode they belong to.")]
    limit: Annotated[int, AnswerLimit("How many decisions at most.", least=1, most=MAX_RECALL_LIMIT, default=50)]


# --- sessions and contexts ---


class PartingFields(TypedDict, total=False):
    """What only the end of a session is told."""

    outcome: EpisodeOutcome
    lessons_learned: Lessons


class PartingDetails(PartingFields, ReachDetails, total=False):
    """What may be told of a session when it ends; whose the new episode is, for one that is open keeps its own."""


SessionTask = Annotated[
    str | None, Text("What it is about; stays as it is unless told, and so does the rest.", most=MAX_WORDS_BYTES)
]
SessionFrame = Annotated[str | None, Line("The cognitive frame of the session.", most=100)]
SessionCensors = Annotated[
    Sequence[str] | None,
    Names("The censors that are active; with the frame, what calls of this session go by that tell none."),
]
Capacity = Annotated[
    int | None, Whole("How many items it holds; 20 at first.", least=1, most=SessionPolicy.max_capacity)
]


class ContextDetails(TypedDict, total=False):
    """What may be loaded into a working memory."""

    procedure_id: Annotated[UUID | str | None, MemoryId("A procedure to put to use.")]
    fact_ids: Annotated[Sequence[UUID] | None, loaded("Facts")]
    episode_ids: Annotated[Sequence[UUID] | None, loaded("Episodes")]
    censor_ids: Annotated[Sequence[UUID] | None, loaded("Censors")]
    memory_ids: Annotated[Sequence[UUID] | None, loaded("Memories of any kind")]
    note: Annotated[str | None, Text("A text that is no memory yet.", most=SessionPolicy.max_notes_bytes)]
    relevance: Annotated[float | None, Share("How relevant each is; how near it is to the task, unless told.")]


class SignalDetails(TypedDict, total=False):
    """Everything that may be told about what the agent is doing."""

    current_file: Annotated[
        str | None,
        Clue("The file that was opened, from the root of its project.", most=MAX_NAME_BYTES, option="--file PATH"),
    ]
    imports: Annotated[
        Sequence[str] | None,
        Clues("What that file imports; its directory is its module.", most=MAX_NAME_BYTES, option="--import MODULE"),
    ]
    branch: Annotated[
        str | None, Clue("The branch that was checked out.", most=MAX_NAME_BYTES, option="--branch", brief="")
    ]
    recent_errors: Annotated[
        Sequence[str] | None,
        Clues("Texts of errors seen lately, the latest first.", most=MAX_WORDS_BYTES, option="--error TEXT"),
    ]
    activity: Annotated[
        str | None,
        Clue(
            "What is being done, such as debugging; where no frame is named it is the frame of the budget.",
            most=MAX_NAME_BYTES,
            option="--activity",
        ),
    ]
    task: Annotated[
        str | None, Clue("What is to be achieved, in words.", most=MAX_WORDS_BYTES, option="--task", brief="")
    ]
    collaborators: Annotated[Sequence[str] | None, Clues("Who has joined.", most=MAX_NAME_BYTES, option="--with NAME")]


SignalsTold = Annotated[SignalDetails, Nested("What the agent is doing right now.", table=SignalDetails)]
AskedLimit = Annotated[int, AnswerLimit("How many memories at most.", least=1, most=MAX_RECALL_LIMIT, option="--limit")]
AskedAt = Annotated[
    datetime | str | None, Instant("Show what stood at that moment; now, unless an older history is being looked at.")
]


class AssemblyFields(TypedDict, total=False):
    """What only a context is told."""

    budget: Annotated[
        int | None,
        Budget(
            "Most tokens, as `NOUS_TOKENIZER` counts them; what the frame needs unless told, 3,000 to 12,000.",
            least=1,
            most=ContextPolicy.most_budget,
            option="--budget TOKENS",
            brief="tokens",
        ),
    ]
    frame: Annotated[
        str | None,
        Line(
            "The cognitive frame; the activity of the signals, or the frame of the session, unless told.",
            most=100,
            option="--frame",
            brief="decision, debug, task, …",
        ),
    ]
    query: Annotated[
        str | None, Question("What the agent was asked; blank counts as not told.", most=MAX_CONTENT_BYTES)
    ]
    signals: Annotated[SignalDetails | None, Nested("What the agent is doing right now.", table=SignalDetails)]
    active_censors: AskedCensors
    at: AskedAt


class AssemblyDetails(AssemblyFields, AskerDetails, total=False):
    """Everything `assemble_context` may be told."""


# --- what is stored ---

STORED: Mapping[str, type] = {
    "Fact": FactDetails,
    "Episode": RecordDetails,
    "Procedure": ProcedureDetails,
    "Censor": CensorDetails,
    "Decision": DecisionDetails,
}
"""The classes of what is stored, by name, with the table of what was told: a field of one means what its row says."""


def meaning(stored: str, name: str) -> str:
    """Return what a field of something stored means; nothing where no row says it."""
    if stored not in STORED:
        return ""
    told = [row.field for row in rows_of(STORED[stored]).values() if name in (row.name, *row.field.aliases)]
    abouts = [field.about for field in told if not isinstance(field, Alias)]
    return abouts[0] if abouts else MEANINGS.get(name, "")
