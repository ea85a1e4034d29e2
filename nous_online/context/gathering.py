"""Reading what a context is made of: a few statements, sent together, each bounded and within one agent's reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import chain, groupby
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable, Identifier, Literal

from nous_online.context.known import ContextReach, Contradicting, Known, Linked, StandingMemories
from nous_online.core.kinds import KINDS
from nous_online.core.policy import ContextPolicy
from nous_online.database.statements import statements
from nous_online.recall.recall import BLOCKS as RECALL
from nous_online.recall.recall import FoundMemory

BLOCKS = statements("nous_online.context", "context.sql")
OPEN_QUESTION = "open_question"
CONVENTIONS = (
    "convention", "conventions", "preference", "preferences", "style", "standard", "guideline", "policy", "rule",
)  # fmt: skip
"""Categories of facts that hold for a whole project, whatever is being done."""


@dataclass(frozen=True)
class Section:
    """Something that stands in a context whatever is asked: which memories of a kind, in which order, how many."""

    name: str
    kind: str
    condition: str
    order: str
    limit: int
    category: str | None = None


class PipelinedQueries:
    """Questions that were sent and not yet waited for, on a connection in pipeline mode."""

    def __init__(self, connection: Connection, reach: ContextReach, policy: ContextPolicy) -> None:
        parameters = parameters_of(reach, policy)
        self._standing = asked(connection, standing_statement(policy, is_past=reach.is_past), parameters)
        self._pairs = asked(connection, pairs_statement(is_past=reach.is_past), parameters)
        self._decisions = asked(connection, decisions_statement(policy), parameters)

    def answers(self) -> StandingMemories:
        """Wait for what was asked."""
        rows = self._standing.fetchall()
        memories: dict[str, list[FoundMemory]] = {}
        for row in sorted(rows, key=lambda row: row["place"]):
            memories.setdefault(row.pop("section"), []).append(found(row, "place"))
        return StandingMemories(memories, list(paired(self._pairs.fetchall())), self._decisions.fetchall())


def asked(connection: Connection, statement: bytes, parameters: Mapping[str, Any]) -> Cursor[DictRow]:
    """Send a question."""
    return connection.cursor(row_factory=dict_row).execute(statement, parameters, prepare=True)


def found(row: dict[str, Any], *others: str) -> FoundMemory:
    """Return a memory that no question found."""
    for name in others:
        row.pop(name)
    return FoundMemory(**row, dense=0.0, lexical=0.0)


def paired(rows: Sequence[DictRow]) -> Iterator[Contradicting]:
    """Yield the contradictions whose two rows are both there."""
    for (_, detected_at), both in groupby(rows, key=lambda row: (row["pair"], row["detected_at"])):
        facts = [found(row, "pair", "detected_at") for row in both]
        if len(facts) == 2:  # noqa: PLR2004 (a pair)
            yield Contradicting(detected_at, (facts[0], facts[1]))


def read_named(
    connection: Connection, reach: ContextReach, ids: Sequence[UUID], linked_from: Sequence[UUID], policy: ContextPolicy
) -> list[Linked]:
    """Return the memories of these ids and those linked to some others, as far as they stand and are in reach."""
    if not ids and not linked_from:
        return []
    wanted = {**parameters_of(reach, policy), "ids": list(ids), "linked_from": list(linked_from)}
    rows = asked(connection, named_statement(policy, is_past=reach.is_past), wanted).fetchall()
    return [Linked(weight=row.pop("weight"), memory=found(row)) for row in rows]


def with_contradictions(connection: Connection, known: Known, reach: ContextReach, policy: ContextPolicy) -> Known:
    """Return what is known with the open contradictions of what may be shown, that of the best answer in front."""
    recalled = (answer.memory for each in known.answered for answer in each.answers)
    standing = (memory for name, own in known.standing.memories.items() if name != "latest" for memory in own)
    shown = chain(recalled, standing, (each.memory for each in known.named))
    ids = list(dict.fromkeys(memory.id for memory in shown if memory.contradiction_status != "none"))
    if not ids:
        return known
    wanted = {**parameters_of(reach, policy), "ids": ids, "pairs": policy.contradictions_shown}
    rows = asked(connection, pairs_statement(is_past=reach.is_past), wanted).fetchall()
    places = {each: place for place, each in enumerate(ids)}
    own = sorted(paired(rows), key=lambda pair: min(places.get(each, len(ids)) for each in pair.ids))
    pairs = {each.ids: each for each in (*own, *known.standing.contradictions)}
    return replace(known, standing=replace(known.standing, contradictions=list(pairs.values())))


def use_counts(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return how often memories were used, a citation counting twice."""
    if not ids:
        return {}
    rows = connection.execute(BLOCKS["use_counts"], {"agent_id": agent_id, "ids": list(ids)}, prepare=True)
    return dict(rows.fetchall())


def parameters_of(reach: ContextReach, policy: ContextPolicy) -> dict[str, Any]:
    """Return the values the statements ask for."""
    return {
        **vars(reach),
        "as_of": reach.at,
        "recent_from": reach.at - timedelta(seconds=policy.recent_s),
        "ids": None,
        "pairs": policy.contradictions,
    }


def sections(policy: ContextPolicy) -> tuple[Section, ...]:
    """Return what is read of each kind."""
    pinned = ("is_pinned", "by_learning", policy.pinned)
    return (
        Section("pinned", "fact", *pinned),
        Section("pinned", "procedure", *pinned),
        Section("pinned", "censor", *pinned),
        Section("pinned", "episode", "is_pinned", "by_start", policy.pinned),
        Section("open_question", "fact", "is_of_category", "by_learning", policy.open_questions, OPEN_QUESTION),
        *(
            Section("convention", "fact", "is_of_category", "by_learning", policy.conventions, category)
            for category in CONVENTIONS
        ),
        Section("latest", "fact", "is_any", "by_learning", policy.latest),
        Section("episode", "episode", "is_told", "by_start", policy.episodes),
        Section("failure", "episode", "is_recent_failure", "by_start", policy.failures),
        Section("workflow", "procedure", "is_any", "by_use", policy.workflows),
        Section("censor", "censor", "is_blocking", "by_severity", policy.censors),
    )


@cache
def standing_statement(policy: ContextPolicy, *, is_past: bool) -> bytes:
    """Return the query of all sections."""
    block = SQL(BLOCKS["section"])
    parts = [
        block.format(
            **of_kind(section.kind, is_past=is_past),
            section=Literal(section.name),
            condition=SQL(BLOCKS[section.condition]).format(
                category=Literal(section.category), reference=normal_path("a.reference")
            ),
            order=SQL(BLOCKS[section.order]),
            limit=Literal(section.limit),
        )
        for section in sections(policy)
    ]
    return SQL(BLOCKS["standing"]).format(sections=SQL("\nunion all\n").join(parts)).as_bytes()


@cache
def pairs_statement(*, is_past: bool) -> bytes:
    """Return the query of open contradictions."""
    return SQL(BLOCKS["contradictions"]).format(**of_kind("fact", is_past=is_past)).as_bytes()


@cache
def decisions_statement(policy: ContextPolicy) -> bytes:
    """Return the query of decisions."""
    decisions = SQL(BLOCKS["decisions"])
    return decisions.format(file=normal_path("file"), limit=Literal(policy.decisions)).as_bytes()


def normal_path(column: LiteralString) -> Composable:
    """Return a path of the database as signals are told."""
    return SQL(BLOCKS["normal_path"]).format(path=SQL(column))


@cache
def named_statement(policy: ContextPolicy, *, is_past: bool) -> bytes:
    """Return the query of memories by their ids and links."""
    block = SQL(BLOCKS["named_of_kind"])
    kinds = SQL("\nunion all\n").join(block.format(**of_kind(kind, is_past=is_past)) for kind in KINDS)
    return SQL(BLOCKS["named"]).format(kinds=kinds, links=Literal(policy.links)).as_bytes()


def of_kind(kind: str, *, is_past: bool) -> dict[str, Composable]:
    """Return what recall shows of a kind of memory, and to whom."""
    table = KINDS[kind].table
    shown = SQL(RECALL[f"{table}_shown"]).format()
    return {
        "table": Identifier("heart", table),
        "columns": SQL(BLOCKS["columns_of_kind"]).format(kind=Literal(kind), shown=shown),
        "visible": SQL(RECALL[f"{table}_{'then' if is_past else 'now'}"]),
        "in_reach": SQL(RECALL["in_reach"]),
    }
