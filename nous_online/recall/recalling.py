"""Recalling: find, remember what was found, and learn from what was used of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, overload
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.details import Query, RecallDetails
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.kinds import KINDS
from nous_online.database.statements import statements
from nous_online.memories.agent import Agent, logged, situated
from nous_online.recall.periods import periods_in
from nous_online.recall.ranking import RecallPolicy
from nous_online.recall.recall import Answers, Cue, Recalled, check, recall

SQL = statements("nous_online.recall", "usage.sql")
LIKELY = 0.5
Feedback = Literal["cited", "ignored"]


@dataclass(frozen=True)
class Recall(Sequence[Recalled]):
    """The answers of one recall, best first; its `id` takes the feedback."""

    id: UUID
    query: str
    answers: tuple[Recalled, ...]
    confidence: float = 0.0
    """The chance that the best one found is an answer, 0 to 1; calibrated for the local embedding model, on facts."""
    is_by_words: bool = False
    """Whether only words were compared, because the embedder could not be asked: what says it otherwise is missing."""

    @property
    def is_confident(self) -> bool:
        """Whether an answer is more likely to have been found than not."""
        return self.confidence >= LIKELY

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, index: int) -> Recalled: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Recalled, ...]: ...
    def __getitem__(self, index: int | slice) -> Recalled | tuple[Recalled, ...]:
        return self.answers[index]

    def __iter__(self) -> Iterator[Recalled]:
        return iter(self.answers)


def ask(agent: Agent, query: object, details: RecallDetails, deadline: Deadline) -> Recall:
    """Find the answers to a question and log them, in one transaction."""
    check_known(details, RecallDetails)
    text = checked_as(Query, "query", query)
    told = checked_details(RecallDetails, situated(agent, details, RecallDetails, deadline))
    at, session_id = told.pop("at") or datetime.now(UTC), told.pop("session_id")
    kinds, min_score = tuple(told.pop("kinds") or KINDS), told.pop("min_score") or 0.0
    vectors = agent.embed_if_able([text], deadline)
    vector = None if vectors is None else vectors[0]
    periods = periods_in(text, at=told["as_of"] or at)
    cue = Cue(query=text, embedding=vector, types=kinds, min_score=min_score, periods=periods, **told)
    check(cue)
    with agent.database.transaction(agent.id, timeout_s=deadline.remaining(), is_pipelined=True) as connection:
        found = recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy())
        if found.can_be_logged:
            log(connection, agent, cue, found, at=at, session_id=session_id)
    return Recall(found.recall_id, text, tuple(found.answers), found.confidence, is_by_words=vector is None)


def log(
    connection: Connection, agent: Agent, cue: Cue, found: Answers, *, at: datetime, session_id: str | None
) -> None:
    """Keep what was asked and found, and count each memory found."""
    row = {
        "id": found.recall_id,
        "agent_id": agent.id,
        "recalled_at": at,
        "query": logged(cue.query, agent.rights),
        "query_embedding": None if cue.embedding is None else Vector(cue.embedding),
        "space_id": agent.embedder.space.id,
        "types": list(cue.types),
        "limit": cue.limit,
        "frame": cue.frame,
        "active_censors": None if cue.active_censors is None else Jsonb(list(cue.active_censors)),
        "as_of": cue.as_of,
        "session_id": session_id,
        "user_id": cue.user_id,
        "result_ids": [answer.id for answer in found.answers],
        "result_scores": [answer.score for answer in found.answers],
        "kinds": [answer.memory.kind for answer in found.answers],
    }
    connection.execute(SQL["log_recall"], row, prepare=True)


def give_feedback(
    agent: Agent, recall_id: UUID, memory_ids: Sequence[UUID], kind: Feedback, *, at: datetime, deadline: Deadline
) -> int:
    """Say which answers of a recall were used, or not; return how many that is news about.

    Saying it twice counts once. Raises `NotFound` for an unknown recall, `InvalidInput` for a memory it did not find.
    """
    key = {"agent_id": agent.id, "recall_id": recall_id}
    with agent.transaction(deadline) as connection:
        row = connection.execute(SQL["lock_recall"], key).fetchone()
        if row is None:
            raise NotFound(f"agent {agent.id!r} has no recall {recall_id}")
        result_ids, cited_ids, ignored_ids = row
        strangers = sorted(set(memory_ids) - set(result_ids))
        if strangers:
            raise InvalidInput(f"recall {recall_id} did not find memory {strangers[0]}; cite only what it returned")
        fresh = sorted(set(memory_ids) - set(cited_ids if kind == "cited" else ignored_ids))
        connection.execute(SQL[f"store_{kind}"], {**key, "ids": fresh})
        connection.execute(SQL[f"count_{kind}"], {**key, "ids": fresh, "at": at})
    return len(fresh)
