"""Memories as lines of a context, one line each whatever they hold, at every level of detail. Pure."""

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
from nous_online.core.texts import visible
from nous_online.language.tokens import tokens_of
from nous_online.language.writing.fact_lines import holds_phrase
from nous_online.memories.levels import levels_of

POLICY = ContextPolicy()
Tier = Literal["critical", "relevant", "background", "index"]
TIERS: tuple[Tier, ...] = ("critical", "relevant", "background", "index")
"""The four tiers, the most important first; what one leaves of its share flows down to the next."""


@dataclass(frozen=True)
class ContextLine:
    """One line of a context, and why it is there."""

    tier: Tier
    kind: str
    """`fact`, `episode`, `procedure`, `censor`, `decision`, `contradiction`, a `note` of working memory, or a `pointer`
    to several."""
    memory_ids: tuple[UUID, ...]
    """What it shows: two of a contradiction, several of a pointer, one otherwise."""
    level: Detail
    text: str
    tokens: int
    reason: str


@dataclass(frozen=True)
class Context:
    """A context ready to be put before a model; `recall_id` takes the feedback on what it showed."""

    def __repr__(self) -> str:
        return f"<context of {len(self.lines)} lines, {self.token_count:,} of {self.budget:,} tokens>"

    recall_id: UUID
    text: str
    budget: int
    token_count: int
    """Of the whole text, counted as `counting` says; never above `budget`."""
    counting: str
    """Whose tokens they are: the tokenizer that `NOUS_TOKENIZER` names."""
    tokens: Mapping[Tier, int]
    """Tokens of each tier, its heading included."""
    lines: tuple[ContextLine, ...]
    left_out: Mapping[Tier, int]
    """How many lines of each tier found no room."""
    is_by_words: bool = False
    """Whether only words were compared with what was told, because the embedder could not be asked."""


@dataclass(frozen=True)
class Predicted:
    """A memory that is likely to be wanted, how likely, and what speaks for it."""

    memory_id: UUID
    kind: str
    confidence: float
    """The chance that it is used in this session, calibrated on sessions that were not learned from."""
    reasons: tuple[str, ...]
    """Such as "used in 7 of the last 9 sessions with src/auth/login.py open"."""
    is_bearing: bool = True
    """Something of what is being done speaks for it, not only how often it is used."""


@dataclass(frozen=True)
class Prediction:
    """What is likely to be wanted in a session, the likeliest first."""

    session_id: str
    """Where feedback and later calls belong; made where none was told."""
    memories: tuple[Predicted, ...]
    confidence: float
    """The expected share of what the session will want that is among them; 0 where nothing is known."""


# --- memories as lines ---

BULLET = "- "
MARKS = {"procedure": "how to: ", "decision": "decided: "}
"""What says of a line that it is no statement."""
MARKED = re.compile(
    r"(how to|decided|unresolved|failed|still open|open question|note|in doubt|fact)\s*[:\uff1a]", re.IGNORECASE
)
"""How lines begin that say what they are: a statement that begins like one is told as the fact it is."""
LONGEST_TOPIC = 50
Level = tuple[Detail, str]
OPENINGS: tuple[tuple[Detail, int], ...] = (("summary", 1_000), ("compressed", 300))
"""Characters of the openings of what is more than twice as long."""


@dataclass(frozen=True)
class ContextEntry:
    """What could become a line: its text at its most detailed level and at shorter ones, and why it is wanted."""

    kind: str
    memory_ids: tuple[UUID, ...]
    first: Level
    reason: str
    value: float = 1.0
    """Of two entries of a tier, the one worth more goes first."""
    is_sought: bool = True
    """Showing it counts as a use; not of what only fills a tier."""
    is_pinned: bool = False
    """Borrows from lower tiers where its own has no room for it."""
    topic: str = ""
    """What the index calls it where it is not shown."""
    date: str = ""
    """When it was said last, or from when to when it holds: stands in front of the line."""
    time: str = ""
    """At what time of that day, for where the day alone does not tell two lines apart."""
    shorter: Callable[[], Sequence[Level]] = field(default=tuple, compare=False, repr=False)
    """The levels below the first, longest first; worked out only where there is no room for that one."""

    @cached_property
    def first_cost(self) -> int:
        """Tokens of the line at its most detailed level, its bullet and its end included."""
        return cost_of(self.dated(self.first[1]))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Every level that is shorter than the one before it; the first always stays."""
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
    """Return a text as a single line without characters that control or hide: no memory can fake a heading."""
    return " ".join(visible(text).split())


def plain(statement: str) -> str:
    """Return a statement as a line that nobody takes for anything else."""
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
    """Return a procedure as the one line that reminds of it."""
    hint: Level = ("compressed", MARKS["procedure"] + one_line(levels_of("procedure", row).compressed))
    return ContextEntry("procedure", (row["id"],), hint, reason, topic=topic_of(row), date=date_of(row))


def moment_of(row: Mapping[str, Any]) -> datetime | None:
    """Return when a memory was said last or a decision was taken."""
    return row.get("said_at") or row.get("decided_at") or row.get("learned_at")


def date_of(row: Mapping[str, Any]) -> str:
    """Return the day a memory was said last or a decision was taken, or from which day to which a fact holds."""
    moment = moment_of(row)
    if row.get("kind") == "fact" and row.get("valid_to"):
        return f"{row.get('valid_from') or moment:%Y-%m-%d} to {row['valid_to']:%Y-%m-%d}"
    return f"{moment:%Y-%m-%d}" if moment else ""


def time_of(row: Mapping[str, Any]) -> str:
    """Return at what time of its day a fact was said last; nothing for one that says from when to when it holds."""
    moment = moment_of(row)
    return f"{moment:%H:%M}" if moment and row.get("kind") == "fact" and not row.get("valid_to") else ""


def with_times(entries: Sequence[ContextEntry]) -> list[ContextEntry]:
    """Return entries, with their times those of one topic and one day: the later of them is what holds."""
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
    """Return the levels below that; where the shortest is a whole passage there are its openings too, ending in `…`.

    Those stored with a fact are taken as they are: deriving them takes time.
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
    """Return what to ask a memory for: its index word, else what it is about, else the opening of its text."""
    named = row.get("index_word") or row.get("subject") or row.get("title") or row["content"][:LONGEST_TOPIC]
    words = one_line(named)
    return words if len(words) <= LONGEST_TOPIC else words[:LONGEST_TOPIC].rpartition(" ")[0] or words[:LONGEST_TOPIC]
