"""Replaying what was asked in the past, and what was made of the answers, once and only once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from nous_online import store
from nous_online.heart import Heart
from nous_online.import_records import ReplayedRecall
from nous_online.policy import MAX_RECALL_LIMIT
from nous_online.statements import statements

SQL = statements("nous_online", "import_recalls.sql")
USUAL_LIMIT = 10


@dataclass(frozen=True)
class Replay:
    """What a replay did: whether it was the first, and how many of the marked memories were no answer of it."""

    is_new: bool
    missed_count: int


def replay(heart: Heart, recall: ReplayedRecall) -> Replay:
    """Ask the question as of its moment, and mark those of its answers that were used or left aside.

    The recall carries its record's key as its session, so that a run that continues finds it; marking twice counts
    once. Raises as `Heart.recall` does.
    """
    session_id = f"import:{sha256(recall.idempotency_key.encode()).hexdigest()}"
    found = replayed(heart, recall, session_id)
    recall_id, answers = found or ask(heart, recall, session_id)
    cited, ignored = (imported(heart, keys) for keys in (recall.cited, recall.ignored))
    heart.cite(recall_id, sorted(cited & answers), at=recall.at)
    heart.ignore(recall_id, sorted(ignored & answers), at=recall.at)
    marked_count = len({*recall.cited, *recall.ignored})
    return Replay(is_new=found is None, missed_count=marked_count - len((cited | ignored) & answers))


def ask(heart: Heart, recall: ReplayedRecall, session_id: str) -> tuple[UUID, set[UUID]]:
    """Recall, with room for everything that was marked."""
    limit = min(max(USUAL_LIMIT, len(recall.cited) + len(recall.ignored)), MAX_RECALL_LIMIT)
    found = heart.recall(
        recall.query, limit=limit, frame=recall.frame, as_of=recall.at, at=recall.at, session_id=session_id
    )
    return found.id, {answer.id for answer in found}


def replayed(heart: Heart, recall: ReplayedRecall, session_id: str) -> tuple[UUID, set[UUID]] | None:
    """Return the recall an earlier run made for this record, and its answers."""
    agent = heart.agent
    with agent.transaction(agent.deadline(None)) as connection:
        row = connection.execute(
            SQL["find_replayed"], {"agent_id": agent.id, "at": recall.at, "session_id": session_id}
        ).fetchone()
    return (row[0], set(row[1])) if row else None


def imported(heart: Heart, keys: Collection[str]) -> set[UUID]:
    """Return the memories imported under these keys."""
    agent = heart.agent
    with agent.transaction(agent.deadline(None)) as connection:
        return {request.memory_id for request in store.find_requests(connection, agent.id, list(keys)).values()}
