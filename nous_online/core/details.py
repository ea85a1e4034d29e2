"""The parameters of verbs, a table for each: checks, signatures, interfaces, reference and meanings follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from nous_online.core.domain import (
    MEANINGS,
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
    Owner,
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

Moment = datetime | str | None
MemoryRef = UUID | str | None
MAX_REASON_CHARACTERS = 20_000
MAX_NAME_BYTES = 4 * 1024
"""Of one path, module, branch, activity or person."""
MAX_WORDS_BYTES = 16 * 1024
"""Of one task or error, in bytes of UTF-8: the end of a trace says what went wrong."""
FRAME_FIELD = Line(
    "The cognitive frame the agent is in, such as debug; by default that of its session.",
    most=100,
    aliases=FRAME[1:],
    option="",
    brief="",
)
Frame = Annotated[str | None, FRAME_FIELD]
OtherFrame = Annotated[str | None, Alias("Another name of `frame`.")]
ActiveCensors = Annotated[
    list[str] | None, Names("The active censors; by default those of the session.", aliases=ACTIVE_CENSORS[1:])
]
OtherCensors = Annotated[list[str] | None, Alias("Another name of `active_censors`.")]
SessionId = Annotated[str | None, Line("The session it belongs to: its frame and censors are the defaults.", most=100)]
UserId = Annotated[
    str | None, Owner("The user whose own it is; by default nobody's, and so everybody's.", most=100, option="--user")
]
ProjectId = Annotated[str | None, Owner("The project it belongs to.", most=100, option="--project")]
IdempotencyKey = Annotated[
    str | None,
    Line(
        "Makes a retry safe: the same key and content return the first answer and change nothing.", most=200, option=""
    ),
]


def band(name: str, about: str) -> Lines:
    return Lines(about, most=MAX_LINE_BYTES, entry=f"a line of {name}")


class ReachDetails(TypedDict, total=False):
    """Who can see a memory."""

    scope: Annotated[
        Scope,
        OneOf(
            "Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` "
            "everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a "
            "project hold the project's (`share_among_users` of `nous policy`).",
            default="private",
            option="",
        ),
    ]
    user_id: UserId
    project_id: ProjectId


class ClaimDetails(ReachDetails, total=False):
    """Where a memory comes from, how far it is trusted, and who can see it."""

    source: Annotated[str | None, Line("Where it comes from.", most=500, option="", brief="")]
    source_kind: Annotated[
        SourceKind,
        OneOf(
            "Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is.",
            default="agent",
            option="",
        ),
    ]
    trust: Annotated[
        int | None,
        Whole(
            "How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. "
            "At most what the caller may claim.",
            least=0,
            most=100,
            option="",
        ),
    ]
    is_pinned: Annotated[bool, Flag("Keeps nights from archiving it; for callers that may pin.", default=False)]


class OriginDetails(ClaimDetails, total=False):
    """The same with the moment and the frame it was learned in."""

    learned_at: Annotated[
        Moment, Instant("When it was stated; by default now.", is_said=True, option="", brief="ISO 8601")
    ]
    frame: Frame
    active_censors: ActiveCensors
    encoded_frame: OtherFrame
    encoded_censors: OtherCensors


Content = Annotated[str, Text("One statement.", most=MAX_CONTENT_BYTES, brief="one self-contained sentence")]
Replaces = Annotated[
    UUID | str | Fact | Sequence[UUID | str | Fact] | None,
    MemoryIds(
        "Facts of the same scope, user and project that this one supersedes, by id or as returned by a verb.",
        option="--replaces ID",
        brief="ids of facts it replaces",
    ),
]


Subject = Annotated[str | None, Line("What it is about.", most=500, option="", brief="")]
CategoryName = Annotated[str | None, Category("Its category, such as `preference`.", most=100, option="")]
Tags = Annotated[list[str] | None, Names("Words to find it by.", option="--tag TAG", brief="")]
Confidence = Annotated[float, Share("How sure it is.", default=1.0, option="")]
ValidFrom = Annotated[Moment, Instant("Since when it holds; by default always.", option="")]
ValidTo = Annotated[Moment, Instant("Until when it holds; not before `valid_from`.", option="")]


class FactFields(TypedDict, total=False):
    """What only facts have."""

    subject: Subject
    key: Annotated[
        str | None,
        Line(
            "The attribute of a thing that it is a value of, such as `ana/home`: a later value supersedes it.",
            most=200,
            option="",
            brief="such as ana/home: one value at a time",
        ),
    ]
    category: CategoryName
    tags: Tags
    context: Annotated[
        str | None,
        Text(
            "The text around it: helps to find it, and is never shown as its content.",
            most=MAX_CONTEXT_BYTES,
            empty_is_none=True,
        ),
    ]
    confidence: Confidence
    valid_from: ValidFrom
    valid_to: ValidTo
    source_episode_id: Annotated[MemoryRef, MemoryId("The episode it was drawn from.")]
    source_decision_id: Annotated[
        DecisionId | None,
        DecisionName("The id or reference of a decision recorded here, or the name of one taken elsewhere."),
    ]
    session_id: SessionId
    idempotency_key: IdempotencyKey


class FactDetails(FactFields, OriginDetails, total=False):
    """The parameters of `learn` besides the content of the fact."""


class MemoryChanges(TypedDict, total=False):
    """The parameters of `update`; None clears a subject, a category or an end of validity."""

    tags: Annotated[list[str], Names("All its tags; of anything but a censor.", option="--tag TAG")]
    subject: Subject
    category: CategoryName
    confidence: Annotated[float, Share("How sure a fact is.", option="")]
    valid_from: ValidFrom
    valid_to: ValidTo
    is_pinned: Annotated[bool, Flag("Keeps nights from archiving it.")]


# --- episodes ---


Title = Annotated[str | None, Line("Its title; by default the first words of its text.", most=500, brief="")]
EpisodeText = Annotated[str | None, Text("What was said and done.", most=MAX_DETAIL_BYTES)]
Lessons = Annotated[
    list[str] | None,
    Lines(
        "What was learned of it, a sentence or a few each.",
        most=MAX_LINE_BYTES,
        entry="a lesson",
        count=MAX_IDS,
        brief="",
    ),
]
EpisodeOutcome = Annotated[Outcome | None, OneOf("How it went.", brief="")]


class NotedDetails(TypedDict, total=False):
    """What may be added to an episode at any time; lists only grow."""

    participants: Annotated[list[str] | None, Names("Who took part.")]
    tags: Annotated[list[str] | None, Names("Words to find it by.")]
    decision_ids: Annotated[
        Sequence[DecisionId] | None,
        DecisionNames("Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there."),
    ]
    procedures_activated: Annotated[Sequence[UUID | str] | None, MemoryIds("Procedures that were put to use in it.")]
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
    summary: Annotated[str | None, Line("What happened, in short; written for it by default.", most=20_000, brief="")]
    lessons_learned: Lessons
    outcome: EpisodeOutcome
    surprise_level: Annotated[float | None, Share("How much of it was not expected.")]


class ChangeDetails(OutcomeDetails, NotedDetails, total=False):
    """What an update may add to an episode; lists only grow, single values are replaced."""

    append: Annotated[str | None, MoreText("A new line of its detail.", most=MAX_DETAIL_BYTES, whole="detail")]


EndedAt = Annotated[Moment, Instant("When it ended; by default now.")]


class EndDetails(ChangeDetails, total=False):
    """What closing an episode may tell."""

    ended_at: EndedAt


class BeginningDetails(ClaimDetails, total=False):
    """What is settled when an episode begins."""

    session_id: Annotated[
        str | None, Line("The session it happens in: its frame and censors are the defaults.", most=100)
    ]
    started_at: Annotated[Moment, Instant("When it began; by default now.", is_said=True)]
    idempotency_key: IdempotencyKey


class StartDetails(NotedDetails, BeginningDetails, total=False):
    """What starting an episode may tell besides its title."""


class RecordDetails(OutcomeDetails, StartDetails, total=False):
    """The parameters of an episode that is over, besides its detail."""

    ended_at: EndedAt


# --- procedures ---

ProcedureName = Annotated[str, Line("What it is called; the same name again is a new version.", most=500)]


class ProcedureFields(TypedDict, total=False):
    """What only procedures have."""

    kind: Annotated[
        ProcedureKind,
        OneOf(
            "A `k_line` has three bands, a `workflow` steps, a `pattern` a template; by default `workflow` where only "
            "steps are given.",
            default="k_line",
        ),
    ]
    domain: Annotated[str | None, Line("The field it belongs to, such as `deployment`.", most=100)]
    goals: Annotated[list[str] | None, band("goals", "Upper fringe: what it is for.")]
    core_patterns: Annotated[list[str] | None, band("core_patterns", "Core: how it is done.")]
    core_tools: Annotated[list[str] | None, band("core_tools", "Core: what it is done with.")]
    core_concepts: Annotated[list[str] | None, band("core_concepts", "Core: what one has to know.")]
    implementation_notes: Annotated[
        list[str] | None, band("implementation_notes", "Lower fringe: details that change easily.")
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
    trigger: Annotated[str | None, Line("When to use it.", most=500)]
    hint: Annotated[
        str | None,
        Special(
            'A summary in one line; by default made of its name and steps, such as "deploy: test→build→stage".',
            special=checked_hint,
        ),
    ]
    related_procedures: Annotated[Sequence[UUID | str] | None, MemoryIds("Related procedures.", most=MAX_NAMES)]
    related_decision_ids: Annotated[
        Sequence[DecisionId] | None, DecisionNames("Decisions it comes from.", most=MAX_NAMES)
    ]
    censors: Annotated[list[str] | None, Names("What to avoid while doing it.")]
    tags: Annotated[list[str] | None, Names("Words to find it by.")]
    idempotency_key: IdempotencyKey


class ProcedureDetails(ProcedureFields, OriginDetails, total=False):
    """The parameters of `store_procedure` besides the name."""


# --- censors ---

Trigger = Annotated[str, Text("What triggers it.", most=CensorPolicy.trigger_bytes)]
Threshold = Annotated[
    int | None,
    Whole(
        f"After how many activations a warning becomes a block; by default {CensorPolicy.escalation_threshold}.",
        least=1,
        most=CensorPolicy.highest_threshold,
        option="--threshold",
    ),
]
CensorReason = Annotated[str, Text("Why not, or what to do instead.", most=CensorPolicy.reason_bytes)]


class CensorFields(TypedDict, total=False):
    """What only censors have."""

    severity: Annotated[
        Severity, OneOf("How strict it is; `absolute` is set by hand, for a user.", default="warn", option="")
    ]
    is_literal: Annotated[
        bool,
        Flag(
            "The trigger must occur as written (`*` stands for anything within a line), not only in meaning.",
            default=False,
            option="--literal",
        ),
    ]
    escalation_threshold: Threshold
    learned_from_decision_id: Annotated[
        DecisionId | None,
        DecisionName(
            "The id or reference of a decision recorded here, or the name of one taken elsewhere.",
            aliases=("learned_from_decision",),
        ),
    ]
    learned_from_decision: Annotated[DecisionId | None, Alias("Another name of `learned_from_decision_id`.")]
    learned_from_episode_id: Annotated[MemoryRef, MemoryId("The episode it was learned from.")]
    expires_at: Annotated[Moment, Instant("When it expires; by default never.", option="")]


class CensorDetails(CensorFields, OriginDetails, total=False):
    """The parameters of a censor besides its trigger and reason."""


class CensorChanges(TypedDict, total=False):
    """The parameters of `update_censor`; trigger and reason never change."""

    severity: Annotated[Severity, OneOf("How strict it is.")]
    escalation_threshold: Threshold
    expires_at: Annotated[Moment, Instant("When it expires; None for never.")]
    is_pinned: Annotated[bool, Flag("Keeps nights from archiving it.")]


# --- decisions ---

DecisionTitle = Annotated[str, Text("What was decided.", most=2000, brief="")]


class DecisionDetails(TypedDict, total=False):
    """The parameters of `record_decision` besides the title."""

    rationale: Annotated[str | None, Line("Why it was decided so.", most=MAX_REASON_CHARACTERS, brief="")]
    confidence: Annotated[float | None, Share("How sure the agent was.")]
    files: Annotated[Sequence[str] | None, Names("Files it is about.", brief="")]
    tags: Annotated[Sequence[str] | None, Names("Words to find it by.")]
    session_id: Annotated[str | None, Line("The session it was made in.", most=100)]
    episode_id: Annotated[MemoryRef, MemoryId("The episode it belongs to; by default the current one of the session.")]
    decided_at: Annotated[Moment, Instant("When it was made; by default now.", is_said=True)]
    reference: Annotated[
        str | None,
        Special(
            "The agent's own name for it, such as `abc123` (at most 200 characters): accepted wherever the id of a "
            "decision is.",
            special=checked_new_reference,
        ),
    ]
    idempotency_key: IdempotencyKey


# --- checks of actions, and loading ---


def loaded(what: str) -> MemoryIds:
    return MemoryIds(f"{what}, by their ids.", most=SessionPolicy.max_capacity)


Action = Annotated[
    str, Text("The action to check: a command, or in words.", most=MAX_CONTENT_BYTES, brief="a command, or in words")
]
AskedFrame = Annotated[
    str | None, Line("The cognitive frame the agent is in, such as debug.", most=100, option="", brief="")
]
AskedCensors = Annotated[Sequence[str] | None, Names("The active censors; by default those of the session.")]
AskingSession = Annotated[str | None, Line("The session of the caller.", most=100, option="--session")]
AskingUser = Annotated[
    str | None, Owner("The user who asks: finds their own besides what is everybody's.", most=100, option="--user")
]
AskingProject = Annotated[
    str | None, Owner("The project: what is in it is found besides what is in none.", most=100, option="--project")
]


class AskerDetails(TypedDict, total=False):
    """The session of the caller, and the user and project whose memories are searched besides the agent's own."""

    session_id: AskingSession
    user_id: AskingUser
    project_id: AskingProject


class CheckFields(TypedDict, total=False):
    """The parameters that only a check has."""

    frame: AskedFrame
    at: Annotated[Moment, Instant("When it would happen; by default now.")]
    is_recorded: Annotated[bool, Flag("False only checks: nothing is counted, escalated or announced.", default=True)]


class CheckDetails(CheckFields, AskerDetails, total=False):
    """The parameters of `check_censors` besides the action."""


# --- questions ---

Query = Annotated[str, Text("What to look for, as a question or in words.", most=MAX_CONTENT_BYTES, brief="a question")]


class RecallFields(TypedDict, total=False):
    """The parameters that only a recall has."""

    limit: Annotated[
        int, Whole("How many memories at most.", least=1, most=MAX_RECALL_LIMIT, default=10, option="", brief="")
    ]
    min_score: Annotated[
        float | None, Share("Leave out answers with a lower score; by default none.", option="", brief="")
    ]
    kinds: Annotated[
        Sequence[MemoryKind] | MemoryKind | None,
        Kinds("Kinds of memory to search; by default all.", aliases=("types",), option="--kind --type KIND", brief=""),
    ]
    types: Annotated[Sequence[MemoryKind] | MemoryKind | None, Alias("Another name of `kinds`.")]
    detail: Annotated[Detail, OneOf("How much of each memory its `text` holds.", default="full", option="", brief="")]
    frame: AskedFrame
    active_censors: AskedCensors
    as_of: Annotated[
        Moment, Instant("Ask for what was believed then.", option="", brief="ISO 8601: what was believed then")
    ]
    at: Annotated[
        Moment,
        Instant(
            "When the question was asked; by default now, otherwise for replaying a history. A word such as "
            "`yesterday` in the question is relative to it, or to `as_of` if that is given."
        ),
    ]


class RecallDetails(RecallFields, AskerDetails, total=False):
    """The parameters of `recall` besides the query."""


class DecisionFilter(TypedDict, total=False):
    """Which decisions to list: those that match every parameter given."""

    status: Annotated[DecisionStatus | None, OneOf("Their status.")]
    file: Annotated[str | None, Line("A file they are about.", most=400)]
    tag: Annotated[str | None, Line("A tag they have.", most=400)]
    session_id: Annotated[str | None, Line("The session they were made in.", most=100)]
    episode_id: Annotated[MemoryRef, MemoryId("The episode they belong to.")]
    limit: Annotated[int, Whole("How many decisions at most.", least=1, most=MAX_RECALL_LIMIT, default=50)]


ListedState = Literal["current", "any", "active", "open", "closed", "review", "superseded", "archived", "quarantined"]


class MemoryFilter(TypedDict, total=False):
    """Which memories to list: those that match every parameter given."""

    kinds: Annotated[
        Sequence[MemoryKind] | MemoryKind | None, Kinds("Kinds of memory; by default all.", option="--kind KIND")
    ]
    state: Annotated[
        ListedState,
        OneOf("Their state; `current` is each in which recall finds them.", default="current", option=""),
    ]
    about: Annotated[
        str | None,
        Line("Part of what they are about: of a subject, title, domain or severity, in any case.", most=400, option=""),
    ]
    source: Annotated[str | None, Line("Part of the source they came from, in any case.", most=400, option="")]
    user_id: Annotated[str | None, Owner("The user they belong to.", most=100, option="--user")]
    project_id: Annotated[str | None, Owner("The project they belong to.", most=100, option="--project")]
    since: Annotated[Moment, Instant("The first moment they were said or begun at.", option="")]
    until: Annotated[Moment, Instant("The moment they were said or begun before.", option="")]
    before: Annotated[MemoryRef, MemoryId("The last memory of the page before this one.", option="--before ID")]
    limit: Annotated[int, Whole("How many memories at most.", least=1, most=MAX_RECALL_LIMIT, default=50, option="")]


# --- sessions and contexts ---


class PartingFields(TypedDict, total=False):
    """The parameters that only the end of a session has."""

    outcome: EpisodeOutcome
    lessons_learned: Lessons


class PartingDetails(PartingFields, ReachDetails, total=False):
    """The parameters of `end_session`; scope, user and project are for a new episode: an open one keeps its own."""


SessionTask = Annotated[
    str | None, Text("What it is about; by default unchanged, as the other parameters are.", most=MAX_WORDS_BYTES)
]
SessionFrame = Annotated[str | None, Line("The cognitive frame of the session.", most=100)]
SessionCensors = Annotated[
    Sequence[str] | None, Names("The active censors; with the frame, the defaults of calls in this session.")
]
Capacity = Annotated[
    int | None, Whole("How many items it can hold; 20 at first.", least=1, most=SessionPolicy.max_capacity)
]


class ContextDetails(TypedDict, total=False):
    """What can be loaded into a working memory."""

    procedure_id: Annotated[MemoryRef, MemoryId("A procedure to use.")]
    fact_ids: Annotated[Sequence[UUID | str] | None, loaded("Facts")]
    episode_ids: Annotated[Sequence[UUID | str] | None, loaded("Episodes")]
    censor_ids: Annotated[Sequence[UUID | str] | None, loaded("Censors")]
    memory_ids: Annotated[Sequence[UUID | str] | None, loaded("Memories of any kind")]
    note: Annotated[str | None, Text("A text that is not a memory.", most=SessionPolicy.max_notes_bytes)]
    relevance: Annotated[float | None, Share("How relevant each is; by default its similarity to the task.")]


class SignalDetails(TypedDict, total=False):
    """The signals of what the agent is doing."""

    current_file: Annotated[
        str | None,
        Clue("The open file, from the root of its project.", most=MAX_NAME_BYTES, option="--file PATH", brief=""),
    ]
    imports: Annotated[
        Sequence[str] | None,
        Clues("What that file imports; its directory is its module.", most=MAX_NAME_BYTES, option="--import MODULE"),
    ]
    branch: Annotated[str | None, Clue("The branch that was checked out.", most=MAX_NAME_BYTES, option="", brief="")]
    recent_errors: Annotated[
        Sequence[str] | None,
        Clues("Texts of errors seen lately, the latest first.", most=MAX_WORDS_BYTES, option="--error TEXT", brief=""),
    ]
    activity: Annotated[
        str | None,
        Clue(
            "What is being done, such as debugging; where no frame is given it is used as the frame.",
            most=MAX_NAME_BYTES,
            option="",
        ),
    ]
    task: Annotated[str | None, Clue("What is to be achieved, in words.", most=MAX_WORDS_BYTES, option="")]
    collaborators: Annotated[Sequence[str] | None, Clues("Who takes part.", most=MAX_NAME_BYTES, option="--with NAME")]


SignalsInput = Annotated[SignalDetails, Nested("What the agent is doing right now.", table=SignalDetails)]
AskedLimit = Annotated[int, Whole("How many memories at most.", least=1, most=MAX_RECALL_LIMIT, option="")]
AskedAt = Annotated[Moment, Instant("Show what was known at that moment; by default now.")]


class AssemblyFields(TypedDict, total=False):
    """The parameters that only a context has."""

    budget: Annotated[
        int | None,
        Budget(
            "Most tokens, as `NOUS_TOKENIZER` counts them; by default 3,000 to 12,000, by frame.",
            least=1,
            most=ContextPolicy.most_budget,
            option="--budget TOKENS",
            brief="tokens",
        ),
    ]
    frame: Annotated[
        str | None,
        Line(
            "The cognitive frame; by default the activity of the signals, or else the frame of the session.",
            most=100,
            option="",
            brief="decision, debug, task, …",
        ),
    ]
    query: Annotated[
        str | None,
        Question("The question the agent was asked; a blank text counts as none.", most=MAX_CONTENT_BYTES, brief=""),
    ]
    signals: Annotated[SignalDetails | None, Nested("What the agent is doing right now.", table=SignalDetails)]
    active_censors: AskedCensors
    at: AskedAt


class AssemblyDetails(AssemblyFields, AskerDetails, total=False):
    """The parameters of `assemble_context`."""


# --- what is stored ---

STORED: Mapping[str, type] = {
    "Fact": FactDetails,
    "Episode": RecordDetails,
    "Procedure": ProcedureDetails,
    "Censor": CensorDetails,
    "Decision": DecisionDetails,
}
"""The classes of stored values, by name, with the table of their parameters, whose rows explain the fields."""


def meaning(stored: str, name: str) -> str:
    """Return what a field of a stored value means; an empty text where no row explains it."""
    if stored not in STORED:
        return ""
    fields = [row.field for row in rows_of(STORED[stored]).values() if name in (row.name, *row.field.aliases)]
    abouts = [field.about for field in fields if not isinstance(field, Alias)]
    return abouts[0] if abouts else MEANINGS.get(name, "")
