"""Recall at the database: one round trip that nominates and scores, then one ranking across kinds of memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from pgvector import Vector
from psycopg import Connection, Cursor, RawCursor
from psycopg.rows import class_row
from psycopg.sql import SQL, Literal

from nous_online.embedding import EmbeddingSpace, Vectors
from nous_online.errors import InvalidInput, Unsupported
from nous_online.policy import MAX_RECALL_LIMIT
from nous_online.ranking import RecallPolicy, ScoreParts, Situation, rank
from nous_online.statements import statements

BLOCKS = statements("nous_online", "recall.sql")
SEARCHES = {"fact": "find_facts"}
"""The query that finds memories of each kind; all return the columns of `Found`."""
PARAMETER = re.compile(r"%\((\w+)\)s")
SCAN = "relaxed_order"
WIDEST_SCAN = 1_000  # the upper bound of hnsw.ef_search


@dataclass(frozen=True)
class Cue:
    """What a recall starts from: the question, its vector, and who asks in which situation."""

    query: str
    embedding: Vectors
    types: Sequence[str] = ("fact",)
    limit: int = 10
    frame: str | None = None
    active_censors: Sequence[str] | None = None
    as_of: datetime | None = None
    """Ask for what was believed at that moment instead of now."""
    user_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True)
class Found:
    """A memory that might answer, with the two scores the database gave it."""

    id: UUID
    kind: str
    content: str
    subject: str | None
    category: str | None
    tags: list[str]
    state: str
    confidence: float
    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    learned_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    superseded_by: UUID | None
    contradiction_status: str
    encoded_frame: str | None
    encoded_censors: list[str] | None
    rank_weight: float
    dense: float
    lexical: float


@dataclass(frozen=True)
class Recalled:
    """One answer of a recall, and why it stands where it stands."""

    memory: Found
    parts: ScoreParts

    @property
    def id(self) -> UUID:
        return self.memory.id

    @property
    def content(self) -> str:
        return self.memory.content

    @property
    def score(self) -> float:
        return self.parts.score


def recall(
    connection: Connection, agent_id: str, cue: Cue, *, space: EmbeddingSpace, policy: RecallPolicy
) -> list[Recalled]:
    """Return what answers `cue` best, best first, in one ranking over all the kinds asked for.

    Raises `InvalidInput` for an unknown kind or a limit out of range, and `Unsupported` when the server's
    pgvector does not honour iterative scans, without which filtered answers would silently be cut short.
    """
    check(cue)
    found = find(connection, agent_id, cue, space=space, policy=policy)
    situation = Situation(cue.query, cue.frame, cue.active_censors)
    return [Recalled(memory, parts) for memory, parts in rank(found, situation, policy, limit=cue.limit)]


def check(cue: Cue) -> None:
    """Raise `InvalidInput` when a cue asks for what does not exist."""
    unknown = sorted(set(cue.types) - set(SEARCHES))
    if unknown or not cue.types:
        raise InvalidInput(
            f"can't recall memories of type {unknown[0] if unknown else None!r}; known: {', '.join(SEARCHES)}"
        )
    if not 1 <= cue.limit <= MAX_RECALL_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_RECALL_LIMIT}, got {cue.limit}")


def find(
    connection: Connection, agent_id: str, cue: Cue, *, space: EmbeddingSpace, policy: RecallPolicy
) -> list[Found]:
    """Return the candidates of every kind asked for; settings and searches share one round trip."""
    wanted = search_parameters(agent_id, cue, policy)
    breadth = str(wanted["breadth"])
    with connection.pipeline():
        connection.execute(BLOCKS["prepare_scan"], {"scan": SCAN, "breadth": breadth})
        took_effect = connection.execute(BLOCKS["read_scan"])
        searches = [search(connection, kind, wanted, cue, space) for kind in dict.fromkeys(cue.types)]
    check_scan(took_effect.fetchone(), breadth)
    return [memory for cursor in searches for memory in cursor.fetchall()]


def search(
    connection: Connection, kind: str, wanted: Mapping[str, Any], cue: Cue, space: EmbeddingSpace
) -> Cursor[Found]:
    """Send the search for one kind of memory."""
    statement, names = search_statement(SEARCHES[kind], space, is_past=cue.as_of is not None)
    cursor = RawCursor(connection, row_factory=class_row(Found))
    return cursor.execute(statement, [wanted[name] for name in names], binary=True)


@cache
def search_statement(name: str, space: EmbeddingSpace, *, is_past: bool) -> tuple[bytes, tuple[str, ...]]:
    """Return a search with its filters filled in, and the names of its numbered parameters.

    Width and space must be constants for the index to be used. The driver would read this long text anew at every
    call to find its parameters, which takes as long as the search.
    """
    composed = SQL(BLOCKS[name]).format(
        visible=SQL(BLOCKS["visible_then" if is_past else "visible_now"]),
        in_reach=SQL(BLOCKS["in_reach"]),
        dimensions=Literal(space.dimensions),
        space_id=Literal(space.id),
    )
    numbers: dict[str, int] = {}
    text = PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", composed.as_string())
    return text.encode(), tuple(numbers)


def search_parameters(agent_id: str, cue: Cue, policy: RecallPolicy) -> dict[str, Any]:
    """Return the values a search asks for."""
    candidate_count = max(policy.candidate_count, 2 * cue.limit)
    return {
        "agent_id": agent_id,
        "query": cue.query,
        "embedding": Vector(cue.embedding),
        "as_of": cue.as_of,
        "user_id": cue.user_id,
        "project_id": cue.project_id,
        "candidate_count": candidate_count,
        "breadth": min(max(candidate_count, policy.scan_breadth), WIDEST_SCAN),
        "exact_limit": policy.exact_limit,
        "nominating_terms": policy.nominating_terms,
        "postings_limit": policy.postings_limit,
        "term_saturation": policy.term_saturation,
        "length_penalty": policy.length_penalty,
        "context_weight": policy.context_weight,
    }


def check_scan(took_effect: tuple[Any, ...] | None, breadth: str) -> None:
    """Raise `Unsupported` unless the settings of the index scan are the ones asked for."""
    if took_effect != (SCAN, breadth):
        raise Unsupported(
            f"pgvector took hnsw settings {took_effect}, asked for {(SCAN, breadth)}; pgvector 0.8 or newer is needed"
        )


def refresh_statistics(connection: Connection, agent_id: str) -> None:
    """Count anew in how many memories each word occurs and how long memories are; after an import, and every night."""
    connection.execute(BLOCKS["refresh_term_stats"], {"agent_id": agent_id})
    connection.execute(BLOCKS["refresh_corpus_stats"], {"agent_id": agent_id})
