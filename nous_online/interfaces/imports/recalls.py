"""Replaying what was asked in the past, and what was made of the answers, once and only once."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias
from uuid import UUID

from nous_online.core.policy import MAX_RECALL_LIMIT
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces.imports.records import ReplayedRecall
from nous_online.memories import store

SQL = statements("nous_online.interfaces.imports", "recalls.sql")
USUAL_LIMIT = 10
Recalled: TypeAlias = tuple[UUID, set[UUID]]
"""The id of a recall, and its answers."""


@dataclass(frozen=True)
class FeedbackReplay:
    """What a replay did: whether it was the first, and how many of the marked memories were no answer of it."""

    is_new: bool
    missed_count: int


def replay(heart: Heart, recall: ReplayedRecall) -> FeedbackReplay:
    """Ask the question as of its moment, and mark those of its answers that were used or left aside.

    The recall carries its record's key as its session, so that a run that continues finds it; marking twice counts
    once. Raises as `Heart.recall` does.
    """
    session_id = f"import:{sha256(recall.idempotency_key.encode()).hexdigest()}"
    found, marked = known(heart, recall, session_id)
    recall_id, answers = found or ask(heart, recall, session_id)
    for mark, keys in ((heart.cite, recall.cited), (heart.ignore, recall.ignored)):
        if ids := {marked[key] for key in keys if key in marked} & answers:
            mark(recall_id, sorted(ids), at=recall.at)
    return FeedbackReplay(
        is_new=found is None, missed_count=sum(marked.get(key) not in answers for key in recall.marked)
    )


def known(heart: Heart, recall: ReplayedRecall, session_id: str) -> tuple[Recalled | None, dict[str, UUID]]:
    """Return the recall an earlier run made for this record, and which memories its marks are about, by their keys."""
    agent = heart.agent
    key = {"agent_id": agent.id, "at": recall.at, "session_id": session_id}
    with agent.transaction(agent.deadline(None)) as connection:
        row = connection.execute(SQL["find_replayed"], key).fetchone()
        requests = store.find_requests(connection, agent.id, recall.marked)
    found = (row[0], set[UUID](row[1])) if row else None
    return found, {key: request.memory_id for key, request in requests.items()}


def ask(heart: Heart, recall: ReplayedRecall, session_id: str) -> Recalled:
    """Recall, with room for everything that was marked."""
    limit = min(max(USUAL_LIMIT, len(recall.marked)), MAX_RECALL_LIMIT)
    found = heart.recall(
        recall.query, limit=limit, frame=recall.frame, as_of=recall.at, at=recall.at, session_id=session_id
    )
    return found.id, {answer.id for answer in found}
