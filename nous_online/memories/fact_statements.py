"""What was said for a fact: kept word for word, and found again whatever became of the fact."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.domain import Fact, NewFact, Statement
from nous_online.core.errors import NotFound
from nous_online.core.texts import folded
from nous_online.database.changes import ConfirmingStatement, plain
from nous_online.database.statements import statements
from nous_online.memories.learning import slot_of

BLOCKS = statements("nous_online.memories", "fact_statements.sql")


def wording_of(known: Fact, new: NewFact) -> ConfirmingStatement:
    """Return the statement by which `new` confirms a known fact."""
    said = {name: getattr(new, name) for name in ("content", "subject", "source", "source_kind", "trust", "scope")}
    whose = {"user_id": new.user_id, "project_id": new.project_id, "session_id": new.session_id}
    said["frame"] = new.encoded_frame
    drawn_from = {"episode_id": new.source_episode_id, "decision_id": new.source_decision_id}
    reason = "repeat" if folded(new.content) == folded(known.content) else "reworded"
    moments = {"id": uuid4(), "said_at": new.learned_at, "reason": reason}
    return ConfirmingStatement(plain({**said, **whose, **drawn_from, **moments}))


def statements_of(connection: Connection, agent_id: str, fact_id: UUID) -> list[Statement]:
    """Return what was said for a fact, the oldest first; raise `NotFound` when this agent has none of that id."""
    with connection.cursor(row_factory=class_row(Statement)) as cursor:
        found = cursor.execute(BLOCKS["statements_of"], {"agent_id": agent_id, "fact_id": fact_id}).fetchall()
    if not found:
        raise NotFound(f"agent {agent_id!r} has no fact {fact_id}")
    return found


def get_statement(connection: Connection, agent_id: str, statement_id: UUID) -> Statement:
    """Return one statement; raise `NotFound` when this agent has none of that id."""
    with connection.cursor(row_factory=class_row(Statement)) as cursor:
        found = cursor.execute(BLOCKS["get_statement"], {"agent_id": agent_id, "id": statement_id}).fetchone()
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no statement {statement_id}")
    return found


def take_back(connection: Connection, agent_id: str, statement_id: UUID) -> None:
    """Let a statement count no longer; it stays where it is."""
    connection.execute(BLOCKS["take_back"], {"agent_id": agent_id, "id": statement_id})


def is_founding(said: Statement) -> bool:
    """Tell whether a statement gave its fact the words, so that it can't leave it."""
    return said.reason in {"first", "imported"}


def own_fact(said: Statement, known: Fact) -> NewFact:
    """Return the fact a statement becomes when it is split off: what it said itself, and the rest as of its fact."""
    return NewFact(
        content=said.content,
        subject=said.subject,
        slot=slot_of(said.content, said.subject),
        category=known.category,
        tags=known.tags,
        context=None,
        confidence=known.confidence,
        source=said.source,
        source_kind=said.source_kind,
        trust=said.trust,
        is_pinned=False,
        learned_at=said.said_at,
        valid_from=known.valid_from,
        valid_to=known.valid_to,
        encoded_frame=said.frame,
        encoded_censors=None,
        scope=said.scope,
        user_id=said.user_id,
        project_id=said.project_id,
        idempotency_key=None,
        source_episode_id=said.episode_id,
        source_decision_id=said.decision_id,
    )


def unrecorded_count(fact: Fact, said: Sequence[Statement]) -> int:
    """Return how many confirmations of a fact have no words: those counted before statements were kept."""
    return max(0, fact.confirmation_count + 1 - sum(each.taken_back_at is None for each in said))
