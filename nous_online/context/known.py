"""What a context is made of, and the queries that read it: each with a limit, and within one agent's reach."""

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
from nous_online.memories.sessions import Item
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
"""Columns of the queries that are not fields of a memory."""


@dataclass(frozen=True)
class ContextReach:
    """Whose context it is, at which moment, and for which file and task."""

    agent_id: str
    at: datetime
    is_past: bool
    """Whether `at` was given: then memories are those that were visible at that moment."""
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
    """A memory read by its id; `weight` is that of its link to a recalled one, None for one that was named itself."""

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


# --- reading ---


def query_known(connection: Connection, statement: str, reach: ContextReach, **told: Any) -> Cursor[DictRow]:
    """Send one of the queries below; in pipeline mode the wait comes when its rows are fetched."""
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
    """Return the standing memories by section, each in its order."""
    memories: dict[str, list[FoundMemory]] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        memories.setdefault(row["section"], []).append(memory_without_scores(row))
    return memories


def memory_without_scores(row: Mapping[str, Any]) -> FoundMemory:
    """Return the memory of a row, with scores of 0: no question found it."""
    columns = {name: value for name, value in row.items() if name not in BESIDE}
    return FoundMemory(**columns, dense=0.0, lexical=0.0)


def pairs_of(rows: Sequence[DictRow]) -> Iterator[Contradicting]:
    """Yield the contradictions of which both facts are visible to the caller."""
    for (_, detected_at), both in groupby(rows, key=lambda row: (row["pair"], row["detected_at"])):
        facts = [memory_without_scores(row) for row in both]
        if len(facts) == 2:  # noqa: PLR2004 (a pair)
            yield Contradicting(detected_at, (facts[0], facts[1]))


def read_named(
    connection: Connection, reach: ContextReach, ids: Sequence[UUID], linked_from: Sequence[UUID]
) -> list[Linked]:
    """Return the memories with these ids, and those linked to others, as far as they are visible and in reach."""
    if not ids and not linked_from:
        return []
    rows = query_known(connection, "named", reach, ids=list(ids), linked_from=list(linked_from)).fetchall()
    return [Linked(memory_without_scores(row), row["weight"]) for row in rows]


def with_contradictions(connection: Connection, known: Known, reach: ContextReach) -> Known:
    """Return `known` with the open contradictions of memories that may be shown, that of the best answer first."""
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
    """A section read for every context: which memories of a kind, in which order, and how many."""

    name: str
    kind: str
    condition: str
    order: str
    limit: int
    category: str | None = None


def sections() -> tuple[Section, ...]:
    """Return the sections read for every context."""
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
    """Return the queries of a context by name, each one statement for all kinds it reads; cached."""
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
    """Return the columns and conditions of a kind: the same that recall uses."""
    table = KINDS[kind].table
    shown = SQL(RECALL[f"{table}_shown"]).format()
    return {
        "table": Identifier("heart", table),
        "columns": SQL(BLOCKS["columns_of_kind"]).format(kind=Literal(kind), shown=shown),
        "visible": SQL(RECALL[f"{table}_{'then' if is_past else 'now'}"]),
        "in_reach": SQL(RECALL["in_reach"]),
    }
