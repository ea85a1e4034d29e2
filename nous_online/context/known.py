"""What a context is made from, and the few statements that read it: each bounded, and within one agent's reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import chain, groupby
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable, Identifier, Literal

from nous_online.context.context_lines import POLICY, Predicted
from nous_online.core.domain import KINDS
from nous_online.database.statements import statements
from nous_online.memories.working_memory import Item
from nous_online.recall.recall import BLOCKS as RECALL
from nous_online.recall.recall import FoundMemory, Recalled

BLOCKS = statements("nous_online.context", "context.sql")
QUESTION, TASK, FILE, ERROR = "question", "task", "file", "error"
OPEN_QUESTION = "open_question"
CONVENTIONS = (
    "convention", "conventions", "preference", "preferences", "style", "standard", "guideline", "policy", "rule",
)  # fmt: skip
"""Categories of facts that hold for a whole project, whatever is being done."""
BESIDE = frozenset({"section", "place", "pair", "detected_at", "weight"})
"""Columns of the statements that are none of a memory."""


@dataclass(frozen=True)
class ContextReach:
    """For whom a context is, at which moment, and what they are doing."""

    agent_id: str
    at: datetime
    is_past: bool
    """The moment was told: what stands is what stood then."""
    session_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    file: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Contradicting:
    """Two facts that can't both be so, the one learned first in front."""

    detected_at: datetime
    facts: tuple[FoundMemory, FoundMemory]

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.facts[0].id, self.facts[1].id


@dataclass(frozen=True)
class Linked:
    """A memory read by its id; a weight says how strongly it is linked to one that was found."""

    memory: FoundMemory
    weight: float | None


@dataclass(frozen=True)
class Answered:
    """What was recalled for a question, a task, a file or an error."""

    cue: str
    """One of QUESTION, TASK, FILE and ERROR."""
    text: str
    answers: Sequence[Recalled]


@dataclass(frozen=True)
class Known:
    """Everything a context can be made of."""

    memories: Mapping[str, Sequence[FoundMemory]] = field(default_factory=dict[str, Sequence[FoundMemory]])
    """What stands whatever is asked, by section."""
    contradictions: Sequence[Contradicting] = ()
    decisions: Sequence[Mapping[str, Any]] = ()
    answered: Sequence[Answered] = ()
    predicted: Sequence[Predicted] = ()
    named: Sequence[Linked] = ()
    """The predicted and the held ones, and what is linked to what was recalled."""
    held: Sequence[Item] = ()
    threads: Sequence[str] = ()
    use_counts: Mapping[UUID, int] = field(default_factory=dict[UUID, int])


# --- reading ---


def query_known(connection: Connection, statement: str, reach: ContextReach, **told: Any) -> Cursor[DictRow]:
    """Send one of the statements below; in a pipeline it is waited for when its rows are fetched."""
    parameters = {
        **vars(reach),
        "as_of": reach.at,
        "recent_from": reach.at - timedelta(seconds=POLICY.recent_s),
        "ids": None,
        "pairs": POLICY.contradictions,
        **told,
    }
    text = statements_of(is_past=reach.is_past)[statement]
    return connection.cursor(row_factory=dict_row).execute(text, parameters, prepare=True)


def by_section(rows: Sequence[DictRow]) -> dict[str, list[FoundMemory]]:
    """Return what stands whatever is asked, by section, each in its order."""
    memories: dict[str, list[FoundMemory]] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        memories.setdefault(row["section"], []).append(memory_without_scores(row))
    return memories


def memory_without_scores(row: Mapping[str, Any]) -> FoundMemory:
    """Return the memory of a row, which no question found."""
    columns = {name: value for name, value in row.items() if name not in BESIDE}
    return FoundMemory(**columns, dense=0.0, lexical=0.0)


def pairs_of(rows: Sequence[DictRow]) -> Iterator[Contradicting]:
    """Yield the contradictions whose two rows are both there."""
    for (_, detected_at), both in groupby(rows, key=lambda row: (row["pair"], row["detected_at"])):
        facts = [memory_without_scores(row) for row in both]
        if len(facts) == 2:  # noqa: PLR2004 (a pair)
            yield Contradicting(detected_at, (facts[0], facts[1]))


def read_named(
    connection: Connection, reach: ContextReach, ids: Sequence[UUID], linked_from: Sequence[UUID]
) -> list[Linked]:
    """Return the memories of these ids and those linked to some others, as far as they stand and are in reach."""
    if not ids and not linked_from:
        return []
    rows = query_known(connection, "named", reach, ids=list(ids), linked_from=list(linked_from)).fetchall()
    return [Linked(memory_without_scores(row), row["weight"]) for row in rows]


def with_contradictions(connection: Connection, known: Known, reach: ContextReach) -> Known:
    """Return what is known with the open contradictions of what may be shown, that of the best answer in front."""
    recalled = (answer.memory for each in known.answered for answer in each.answers)
    standing = (memory for name, own in known.memories.items() if name != "latest" for memory in own)
    shown = chain(recalled, standing, (each.memory for each in known.named))
    ids = list(dict.fromkeys(memory.id for memory in shown if memory.contradiction_status != "none"))
    if not ids:
        return known
    rows = query_known(connection, "contradictions", reach, ids=ids, pairs=POLICY.contradictions_shown).fetchall()
    places = {each: place for place, each in enumerate(ids)}
    own = sorted(pairs_of(rows), key=lambda pair: min(places.get(each, len(ids)) for each in pair.ids))
    pairs = {each.ids: each for each in (*own, *known.contradictions)}
    return replace(known, contradictions=list(pairs.values()))


def use_counts(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return how often memories were used, a citation counting twice."""
    if not ids:
        return {}
    rows = connection.execute(BLOCKS["use_counts"], {"agent_id": agent_id, "ids": list(ids)}, prepare=True)
    return dict(rows.fetchall())


# --- the statements ---


@dataclass(frozen=True)
class Section:
    """Something that stands in a context whatever is asked: which memories of a kind, in which order, how many."""

    name: str
    kind: str
    condition: str
    order: str
    limit: int
    category: str | None = None


def sections() -> tuple[Section, ...]:
    """Return what is read of each kind."""
    pinned = ("is_pinned", "by_learning", POLICY.pinned)
    return (
        Section("pinned", "fact", *pinned),
        Section("pinned", "procedure", *pinned),
        Section("pinned", "censor", *pinned),
        Section("pinned", "episode", "is_pinned", "by_start", POLICY.pinned),
        Section("open_question", "fact", "is_of_category", "by_learning", POLICY.open_questions, OPEN_QUESTION),
        *(
            Section("convention", "fact", "is_of_category", "by_learning", POLICY.conventions, category)
            for category in CONVENTIONS
        ),
        Section("latest", "fact", "is_any", "by_learning", POLICY.latest),
        Section("episode", "episode", "is_told", "by_start", POLICY.episodes),
        Section("failure", "episode", "is_recent_failure", "by_start", POLICY.failures),
        Section("workflow", "procedure", "is_any", "by_use", POLICY.workflows),
        Section("censor", "censor", "is_blocking", "by_severity", POLICY.censors),
    )


@cache
def statements_of(*, is_past: bool) -> Mapping[str, bytes]:
    """Return the statements a context asks, each once for all kinds it is about."""
    reference, file = (SQL(BLOCKS["normal_path"]).format(path=SQL(path)) for path in ("a.reference", "file"))
    parts = [
        SQL(BLOCKS["section"]).format(
            **parts_of_kind(section.kind, is_past=is_past),
            section=Literal(section.name),
            condition=SQL(BLOCKS[section.condition]).format(category=Literal(section.category), reference=reference),
            order=SQL(BLOCKS[section.order]),
            limit=Literal(section.limit),
        )
        for section in sections()
    ]
    kinds = [SQL(BLOCKS["named_of_kind"]).format(**parts_of_kind(kind, is_past=is_past)) for kind in KINDS]
    both = SQL("\nunion all\n")
    composed = {
        "standing": SQL(BLOCKS["standing"]).format(sections=both.join(parts)),
        "contradictions": SQL(BLOCKS["contradictions"]).format(**parts_of_kind("fact", is_past=is_past)),
        "decisions": SQL(BLOCKS["decisions"]).format(file=file, limit=Literal(POLICY.decisions)),
        "named": SQL(BLOCKS["named"]).format(kinds=both.join(kinds), links=Literal(POLICY.links)),
    }
    return {name: statement.as_bytes() for name, statement in composed.items()}


def parts_of_kind(kind: str, *, is_past: bool) -> dict[str, Composable]:
    """Return what recall shows of a kind of memory, and to whom."""
    table = KINDS[kind].table
    shown = SQL(RECALL[f"{table}_shown"]).format()
    return {
        "table": Identifier("heart", table),
        "columns": SQL(BLOCKS["columns_of_kind"]).format(kind=Literal(kind), shown=shown),
        "visible": SQL(RECALL[f"{table}_{'then' if is_past else 'now'}"]),
        "in_reach": SQL(RECALL["in_reach"]),
    }
