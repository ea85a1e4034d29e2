"""Recalling: find, remember what was found, and learn from what was used of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypedDict, cast, overload
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.core.kinds import KINDS
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.validation import (
    checked_choice,
    checked_limit,
    checked_moment,
    checked_names,
    checked_optional,
    checked_share,
    checked_text,
)
from nous_online.database.statements import statements
from nous_online.memories.agent import Agent
from nous_online.memories.sessions import situated
from nous_online.recall.periods import periods_in
from nous_online.recall.ranking import RecallPolicy
from nous_online.recall.recall import DETAILS, Answers, Cue, Detail, Recalled, check, recall

SQL = statements("nous_online.recall", "usage.sql")
LIKELY = 0.5
Feedback = Literal["cited", "ignored"]


class RecallDetails(TypedDict, total=False):
    """Everything `recall` may be told besides its question."""

    types: Sequence[str] | str | None
    """`fact`, `episode`, `procedure`, `censor`, or several of them; all unless told."""
    """Kinds of memory to look among; all that can be recalled, unless named."""
    limit: int
    min_score: float | None
    """Leave out answers that score less, 0 to 1; without it `limit` alone ends the list."""
    detail: Detail
    """How much of each answer its `text` holds: full, summary, compressed or index."""
    frame: str | None
    """The cognitive frame the agent is in; memories encoded in it count 1.3 times."""
    active_censors: Sequence[str] | None
    as_of: datetime | str | None
    """Ask for what was believed at that moment."""
    at: datetime | str | None
    """When the question was asked; now, unless an older history is being replayed. A word such as "yesterday" in the
    question is relative to it, or to `as_of` where that is told."""
    session_id: str | None
    user_id: str | None
    project_id: str | None


@dataclass(frozen=True)
class Recall(Sequence[Recalled]):
    """The answers of one recall, best first; its `id` takes the feedback."""

    id: UUID
    query: str
    answers: tuple[Recalled, ...]
    confidence: float = 0.0
    """The chance that the best one found is an answer, 0 to 1; calibrated for the local embedding model, on facts."""

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


def checked_detail(value: object) -> Detail:
    """Return a level of detail."""
    return checked_choice("detail", value, DETAILS)


def ask(agent: Agent, query: object, details: RecallDetails, deadline: Deadline) -> Recall:
    """Find the answers to a question and log them, in one transaction."""
    unknown = set(details) - set(RecallDetails.__annotations__)
    if unknown:
        raise InvalidInput(f"unknown detail {sorted(unknown)[0]!r}; known: {', '.join(RecallDetails.__annotations__)}")
    text = checked_text("query", query, max_bytes=MAX_CONTENT_BYTES)
    details = cast("RecallDetails", situated(agent, details, RecallDetails, deadline))
    at = checked_moment("at", details.get("at")) or datetime.now(UTC)
    session_id = checked_optional("session_id", details.get("session_id"), max_characters=100)
    as_of = checked_moment("as_of", details.get("as_of"))
    types = details.get("types")
    (vector,) = agent.embed([text], deadline)
    cue = Cue(
        query=text,
        embedding=vector,
        types=tuple(checked_names("types", [types] if isinstance(types, str) else types) or KINDS),
        limit=checked_limit(details.get("limit", 10)),
        min_score=checked_share("min_score", details.get("min_score") or 0.0),
        detail=checked_detail(details.get("detail", "full")),
        frame=checked_optional("frame", details.get("frame"), max_characters=100),
        active_censors=checked_names("active_censors", details.get("active_censors")),
        as_of=as_of,
        user_id=checked_optional("user_id", details.get("user_id"), max_characters=100),
        project_id=checked_optional("project_id", details.get("project_id"), max_characters=100),
        periods=periods_in(text, at=as_of or at),
    )
    check(cue)
    with agent.database.transaction(agent.id, timeout_s=deadline.remaining(), is_pipelined=True) as connection:
        found = recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy())
        if found.can_be_logged:
            log(connection, agent, cue, found, at=at, session_id=session_id)
    return Recall(found.recall_id, text, tuple(found.answers), found.confidence)


def log(
    connection: Connection, agent: Agent, cue: Cue, found: Answers, *, at: datetime, session_id: str | None
) -> None:
    """Keep what was asked and found, and count each memory found."""
    row = {
        "id": found.recall_id,
        "agent_id": agent.id,
        "recalled_at": at,
        "query": cue.query,
        "query_embedding": Vector(cue.embedding),
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
