"""What was said for a fact: kept word for word, and found again whatever became of the fact."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.changes import Wording, plain
from nous_online.domain import Fact, NewFact, Statement
from nous_online.errors import NotFound
from nous_online.statements import statements

BLOCKS = statements("nous_online", "fact_statements.sql")
PUNCTUATION = ".,;:!?…\"'“”‘’«»()[]"  # noqa: RUF001 (marks around words; signs such as - # % mean something)


def folded(text: str) -> str:
    """Return a text without case, spacing and the punctuation around its words: two that are equal so say the same."""
    return " ".join(filter(None, (word.strip(PUNCTUATION) for word in text.casefold().split())))


def wording_of(known: Fact, new: NewFact) -> Wording:
    """Return the statement by which `new` confirms a known fact."""
    said = {name: getattr(new, name) for name in ("content", "subject", "source", "source_kind", "trust", "scope")}
    whose = {"user_id": new.user_id, "project_id": new.project_id, "frame": new.encoded_frame}
    drawn_from = {"episode_id": new.source_episode_id, "decision_id": new.source_decision_id}
    reason = "repeat" if folded(new.content) == folded(known.content) else "reworded"
    moments = {"id": uuid4(), "said_at": new.learned_at, "reason": reason}
    return Wording(plain({**said, **whose, **drawn_from, **moments}))


def statements_of(connection: Connection, agent_id: str, fact_id: UUID) -> list[Statement]:
    """Return what was said for a fact, the oldest first; raise `NotFound` when this agent has none of that id."""
    with connection.cursor(row_factory=class_row(Statement)) as cursor:
        found = cursor.execute(BLOCKS["statements_of"], {"agent_id": agent_id, "fact_id": fact_id}).fetchall()
    if not found:
        raise NotFound(f"agent {agent_id!r} has no fact {fact_id}")
    return found


def unrecorded_count(fact: Fact, said: Sequence[Statement]) -> int:
    """Return how many confirmations of a fact have no words: those counted before statements were kept."""
    return max(0, fact.confirmation_count + 1 - sum(each.taken_back_at is None for each in said))
