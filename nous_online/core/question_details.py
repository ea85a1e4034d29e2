"""Everything that verbs may be told that ask or load something, a table for each: a question, a check, a context."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypedDict
from uuid import UUID

from nous_online.core.details import EpisodeOutcome, Lessons, ReachDetails
from nous_online.core.domain import DECISION_STATUSES, DETAILS, DecisionStatus, Detail, MemoryKind
from nous_online.core.fields import (
    Alias,
    AnswerLimit,
    Budget,
    Clue,
    Clues,
    Flag,
    Instant,
    Kinds,
    Line,
    MemoryId,
    MemoryIds,
    Names,
    Nested,
    OneOf,
    Question,
    Share,
    Text,
    Whole,
)
from nous_online.core.policy import MAX_CONTENT_BYTES, MAX_RECALL_LIMIT, ContextPolicy, SessionPolicy

MAX_NAME_BYTES = 4 * 1024
"""Of one path, module, branch, activity or person."""
MAX_WORDS_BYTES = 16 * 1024
"""Of one task or error, in bytes of UTF-8: the end of a trace says what went wrong."""


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
    active_censors: Annotated[
        Sequence[str] | None, Names("The censors that are active; those of the session unless told.")
    ]
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
    active_censors: Annotated[
        Sequence[str] | None, Names("The censors that are active; those of the session unless told.")
    ]
    at: AskedAt


class AssemblyDetails(AssemblyFields, AskerDetails, total=False):
    """Everything `assemble_context` may be told."""
