"""What a context is made of, and memories as its lines: one line each, at every level of detail. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal
from uuid import UUID

from nous_online.core.domain import Detail
from nous_online.core.policy import ContextPolicy
from nous_online.core.validation import visible
from nous_online.language.tokens import tokens_of
from nous_online.language.writing.fact_lines import holds_phrase
from nous_online.memories.levels import levels_of
from nous_online.memories.sessions import Item
from nous_online.recall.recall import FoundMemory, Recalled

POLICY = ContextPolicy()
Tier = Literal["critical", "relevant", "background", "index"]
TIERS: tuple[Tier, ...] = ("critical", "relevant", "background", "index")
"""The four tiers, the most important first; tokens that one leaves are passed on to the next."""


@dataclass(frozen=True)
class ContextLine:
    """One line of a context, and why it is there."""

    tier: Tier
    kind: str
    """`fact`, `episode`, `procedure`, `censor`, `decision`, `contradiction`, a `note` of working memory, or a `pointer`
    to several."""
    memory_ids: tuple[UUID, ...]
    """The memories it shows: two for a contradiction, several for a pointer, one otherwise."""
    level: Detail
    text: str
    tokens: int
    reason: str


@dataclass(frozen=True)
class Context:
    """A context for a model; feedback on its memories is given by its `recall_id`."""

    def __repr__(self) -> str:
        return f"<context of {len(self.lines)} lines, {self.token_count:,} of {self.budget:,} tokens>"

    recall_id: UUID
    text: str
    budget: int
    token_count: int
    """Of the whole text, counted as `counting` says; never above `budget`."""
    counting: str
    """The tokenizer, as `NOUS_TOKENIZER` names it."""
    tokens: Mapping[Tier, int]
    """Tokens of each tier, its heading included."""
    lines: tuple[ContextLine, ...]
    left_out: Mapping[Tier, int]
    """How many lines of each tier did not fit."""
    is_by_words: bool = False
    """Whether memories were found by words only, because the embedder failed."""


@dataclass(frozen=True)
class Predicted:
    """A memory that is likely to be used, with its probability and the reasons."""

    memory_id: UUID
    kind: str
    confidence: float
    """The probability that it is used in this session, calibrated on sessions that were not used for fitting."""
    reasons: tuple[str, ...]
    """Such as "used in 7 of the last 9 sessions with src/auth/login.py open"."""
    is_bearing: bool = True
    """Whether a signal other than the clock supports it, not only frequent use."""


@dataclass(frozen=True)
class Prediction:
    """The memories a session is likely to use, the likeliest first."""

    session_id: str
    """The session for feedback and later calls; a new one where none was given."""
    memories: tuple[Predicted, ...]
    confidence: float
    """The expected share of the session's uses that is among them; 0 where nothing is known."""


# --- what a context is made of ---

QUESTION, TASK, FILE, ERROR = "question", "task", "file", "error"
OPEN_QUESTION = "open_question"


@dataclass(frozen=True)
class ContextReach:
    """The agent, user and project of a context, its moment, and its file and task."""

    agent_id: str
    at: datetime
    is_past: bool
    """Whether `at` was given: then the memories are those visible at that moment."""
    session_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    file: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Contradicting:
    """Two facts in an open contradiction, the one learned first in front."""

    detected_at: datetime
    facts: tuple[FoundMemory, FoundMemory]

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.facts[0].id, self.facts[1].id


@dataclass(frozen=True)
class Linked:
    """A memory read by its id; `weight` is that of its link to a recalled memory, None for one given by its own id."""

    memory: FoundMemory
    weight: float | None


@dataclass(frozen=True)
class Answered:
    """The answers recalled for a question, a task, a file or an error."""

    cue: str
    """One of QUESTION, TASK, FILE and ERROR."""
    text: str
    answers: Sequence[Recalled]


@dataclass(frozen=True)
class Known:
    """Everything a context can be made of."""

    memories: Mapping[str, Sequence[FoundMemory]] = field(default_factory=dict[str, Sequence[FoundMemory]])
    """The memories read for every context, by section."""
    contradictions: Sequence[Contradicting] = ()
    decisions: Sequence[Mapping[str, Any]] = ()
    answered: Sequence[Answered] = ()
    predicted: Sequence[Predicted] = ()
    named: Sequence[Linked] = ()
    """Predicted memories, those held in the session, and those linked to recalled ones."""
    held: Sequence[Item] = ()
    threads: Sequence[str] = ()
    use_counts: Mapping[UUID, int] = field(default_factory=dict[UUID, int])


# --- memories as lines ---

BULLET = "- "
MARKS = {"procedure": "how to: ", "decision": "decided: "}
"""Beginnings of lines that are not statements."""
MARKED = re.compile(
    r"(how to|decided|unresolved|failed|still open|open question|note|in doubt|changed since in part|fact)\s*[:\uff1a]",
    re.IGNORECASE,
)
"""Beginnings that mark a kind of line: a statement that begins like one gets the mark of a fact."""
LONGEST_TOPIC = 50
Level = tuple[Detail, str]
OPENINGS: tuple[tuple[Detail, int], ...] = (("summary", 1_000), ("compressed", 300))
"""Characters of the openings of a text that is more than twice as long."""


@dataclass(frozen=True)
class ContextEntry:
    """A candidate line: its text at the most detailed and at shorter levels, and the reason to show it."""

    kind: str
    memory_ids: tuple[UUID, ...]
    first: Level
    reason: str
    value: float = 1.0
    """Entries of a tier are ordered by it, the highest first."""
    is_sought: bool = True
    """Whether showing it counts as a use; it does not for entries that only fill a tier."""
    is_pinned: bool = False
    """Whether it may borrow tokens from lower tiers."""
    topic: str = ""
    """Its name in the index, where it is not shown."""
    date: str = ""
    """When it was last stated, or the interval it holds in: the beginning of the line."""
    time: str = ""
    """The time of that day, for lines of one topic and one day."""
    behind: frozenset[UUID] = frozenset()
    """Facts without which it is not shown: later ones that contradict it."""
    shorter: Callable[[], Sequence[Level]] = field(default=tuple, compare=False, repr=False)
    """Returns the levels below the first, longest first; called only where the first does not fit."""

    @cached_property
    def first_cost(self) -> int:
        """Tokens of the line at its most detailed level, with its bullet and line end."""
        return cost_of(self.dated(self.first[1]))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The first level, and every further one that is shorter than the one before it."""
        kept = [self.first]
        for level, text in self.shorter():
            if text and len(text.encode()) < len(kept[-1][1].encode()):
                kept.append((level, text))
        return tuple(kept)

    @cached_property
    def costs(self) -> tuple[int, ...]:
        """Tokens of the line at each level."""
        return tuple(cost_of(self.dated(text)) for _, text in self.levels)

    def dated(self, text: str) -> str:
        """Return the text of a line with its date in front."""
        return f"{self.date} {text}" if self.date else text


def cost_of(text: str) -> int:
    """Return the tokens of a line."""
    return tokens_of(f"{BULLET}{text}\n")


def one_line(text: str) -> str:
    """Return a text as one line without control and invisible characters, so that no memory can fake a heading."""
    return " ".join(visible(text).split())


def plain(statement: str) -> str:
    """Return a statement as a line that can't be taken for another kind of line."""
    line = one_line(statement)
    return f"fact: {line}" if MARKED.match(line) else line


def entry_of(
    kind: str, row: Mapping[str, Any], reason: str, *, value: float = 1.0, mark: str | None = None
) -> ContextEntry:
    """Return a memory as an entry, from the fields of `recall.Found` or the columns of a decision."""
    prefix = MARKS.get(kind, "") if mark is None else mark
    line_of = plain if kind == "fact" and not prefix else one_line

    def lines(levels: Iterable[Level]) -> tuple[Level, ...]:
        return tuple((level, prefix + line_of(text)) for level, text in levels)

    (first,) = lines([longest(kind, row)])
    return ContextEntry(
        kind,
        (row["id"],),
        first,
        reason,
        value,
        is_pinned=row.get("is_pinned", False),
        topic=topic_of(row),
        date=date_of(row),
        time=time_of(row),
        shorter=lambda: lines(shorter_levels(kind, row)),
    )


def with_mark(entry: ContextEntry, mark: str) -> ContextEntry:
    """Return an entry whose every level begins with a mark."""
    level, text = entry.first
    shorter = entry.shorter
    return replace(entry, first=(level, mark + text), shorter=lambda: [(each, mark + line) for each, line in shorter()])


def hint_of(row: Mapping[str, Any], reason: str) -> ContextEntry:
    """Return a procedure as its one-line hint."""
    mark = MARKS["procedure"] + ("[in review] " if row.get("state") == "review" else "")
    hint: Level = ("compressed", mark + one_line(levels_of("procedure", row).compressed))
    return ContextEntry("procedure", (row["id"],), hint, reason, topic=topic_of(row), date=date_of(row))


def moment_of(row: Mapping[str, Any]) -> datetime | None:
    """Return when a memory was last stated, or a decision was made."""
    return row.get("said_at") or row.get("decided_at") or row.get("learned_at")


def date_of(row: Mapping[str, Any]) -> str:
    """Return the day a memory was last stated or a decision was made, or the first and last day a fact holds."""
    moment = moment_of(row)
    if row.get("kind") == "fact" and row.get("valid_to"):
        return f"{day_of(row.get('valid_from') or moment)} to {day_of(row['valid_to'])}"
    return day_of(moment)


def day_of(moment: datetime | None) -> str:
    """Return a moment's day; an empty text for none."""
    return moment.date().isoformat() if moment else ""


def time_of(row: Mapping[str, Any]) -> str:
    """Return the time of day a fact was last stated; an empty text for one with an end of validity."""
    moment = moment_of(row)
    is_shown = moment is not None and row.get("kind") == "fact" and not row.get("valid_to")
    return moment.time().isoformat("minutes") if moment and is_shown else ""


def with_times(entries: Sequence[ContextEntry]) -> list[ContextEntry]:
    """Return entries, with the time added to those of one topic and one day, of which the later one holds."""
    times: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for each in entries:
        times[each.date, each.topic.casefold()].add(each.time)
    return [
        replace(each, date=f"{each.date} {each.time}".rstrip())
        if len(times[each.date, each.topic.casefold()]) > 1
        else each
        for each in entries
    ]


def longest(kind: str, row: Mapping[str, Any]) -> Level:
    """Return the most detailed level a context shows: of an episode its title and summary, never its transcript."""
    if kind == "episode":
        title, summary = row.get("subject") or "", levels_of("episode", row).summary
        return ("summary", summary if not title or summary.startswith(title) else f"{title}: {summary}")
    if kind == "fact":
        subject, content = row.get("subject"), row["content"]
        return ("full", content if not subject or holds_phrase(content, subject) else f"{subject}: {content}")
    return ("full", levels_of(kind, row).full)


def shorter_levels(kind: str, row: Mapping[str, Any]) -> list[Level]:
    """Return the levels below the longest; of a long text also its openings, ending in `…`.

    Levels stored with a fact are used as they are, because deriving them takes time.
    """
    levels: list[Level]
    stored: list[Level] = [("summary", row.get("summary") or ""), ("compressed", row.get("compressed") or "")]
    if kind == "fact" and stored[1][1]:
        levels = [each for each in stored if each[1]]
    else:
        known = levels_of(kind, row)
        levels = [] if kind == "episode" else [("summary", known.summary)]
        levels.append(("compressed", known.compressed))
    text = min((text for _, text in (longest(kind, row), *levels) if text), key=len, default="")
    for level, characters in OPENINGS:
        if len(text) > 2 * characters:
            levels.append((level, f"{text[:characters].rpartition(' ')[0] or text[:characters]} …"))
    return levels


def topic_of(row: Mapping[str, Any]) -> str:
    """Return the topic of a memory: its index word, else its subject or title, else the opening of its text."""
    topic = row.get("index_word") or row.get("subject") or row.get("title") or row["content"][:LONGEST_TOPIC]
    words = one_line(topic)
    return words if len(words) <= LONGEST_TOPIC else words[:LONGEST_TOPIC].rpartition(" ")[0] or words[:LONGEST_TOPIC]
