"""Censors: what an agent was taught to beware of, stored once, counted when it fires, firmer when it keeps firing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, LiteralString, TypedDict
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row, dict_row
from psycopg.sql import SQL, Identifier

from nous_online.agent import Agent
from nous_online.changes import Cause, add_memory, change_memory, locked_memories, locked_memory, version_of
from nous_online.domain import Censor
from nous_online.embedding import Vectors
from nous_online.errors import InvalidInput
from nous_online.kinds import CENSOR
from nous_online.origin import Origin, OriginDetails, check_known, origin_of
from nous_online.outbox import emit
from nous_online.pairs.guards import differences
from nous_online.policy import CensorPolicy
from nous_online.rights import UNLIMITED, Rights
from nous_online.statements import statements
from nous_online.store import lock_agent
from nous_online.triggers import checked_literal, normal
from nous_online.validation import checked_choice, checked_flag, checked_id, checked_moment, checked_text

BLOCKS = statements("nous_online", "censors.sql")
POLICY = CensorPolicy()
SEVERITIES = ("warn", "block", "absolute")
COMPARED = 5  # how many of the nearest censors are asked whether they say the same


class CensorDetails(OriginDetails, total=False):
    """Everything that may be told about a censor besides its trigger and reason."""

    severity: str
    """`warn` unless told; `absolute` is only ever set by hand."""
    is_literal: bool
    """The trigger must occur as written (`*` stands for anything within a line), not only in meaning."""
    escalation_threshold: int | None
    """After how many activations a warning becomes a block; 5 unless told."""
    learned_from_decision_id: UUID | str | None
    learned_from_episode_id: UUID | str | None
    expires_at: datetime | str | None


class CensorChanges(TypedDict, total=False):
    """What `update_censor` may change; trigger and reason are what was said, and stay."""

    severity: str
    escalation_threshold: int
    expires_at: datetime | str | None
    """From then on it is silent; None for never."""
    is_pinned: bool


@dataclass(frozen=True)
class NewCensor:
    """A censor checked and ready to be stored."""

    trigger: str
    reason: str
    severity: str
    is_literal: bool
    escalation_threshold: int | None
    learned_from_decision_id: UUID | None
    learned_from_episode_id: UUID | None
    expires_at: datetime | None
    origin: Origin


def new_censor(trigger: object, reason: object, details: CensorDetails, rights: Rights = UNLIMITED) -> NewCensor:
    """Check everything a caller said about a censor; raise `InvalidInput` naming what to mend."""
    check_known(details, CensorDetails)
    text = checked_text("trigger", trigger, max_bytes=POLICY.trigger_bytes).strip()
    is_literal = checked_flag("is_literal", details.get("is_literal", False))
    if is_literal:
        checked_literal(text)
    return NewCensor(
        trigger=text,
        reason=checked_text("reason", reason, max_bytes=POLICY.reason_bytes).strip(),
        severity=checked_choice("severity", details.get("severity", "warn"), SEVERITIES),
        is_literal=is_literal,
        escalation_threshold=checked_threshold(details.get("escalation_threshold")),
        learned_from_decision_id=optional_id("learned_from_decision_id", details.get("learned_from_decision_id")),
        learned_from_episode_id=optional_id("learned_from_episode_id", details.get("learned_from_episode_id")),
        expires_at=checked_moment("expires_at", details.get("expires_at")),
        origin=origin_of(details, rights),
    )


def checked_changes(changes: CensorChanges) -> dict[str, Any]:
    """Check what a caller wants changed of a censor; raise `InvalidInput` naming what to mend."""
    check_known(changes, CensorChanges)
    checks: Mapping[str, Callable[[object], object]] = {
        "severity": lambda value: checked_choice("severity", value, SEVERITIES),
        "escalation_threshold": lambda value: checked_threshold(value) or POLICY.escalation_threshold,
        "expires_at": lambda value: checked_moment("expires_at", value),
        "is_pinned": lambda value: checked_flag("is_pinned", value),
    }
    return {name: checks[name](value) for name, value in changes.items()}


def checked_threshold(value: object) -> int | None:
    """Return after how many activations a censor escalates; None leaves it to the policy."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= POLICY.highest_threshold:
        message = f"escalation_threshold must be a whole number from 1 to {POLICY.highest_threshold:,}, got {value!r}"
        raise InvalidInput(message)
    return value


def optional_id(name: str, value: object) -> UUID | None:
    """Return an id, or None where none was told."""
    return None if value is None else checked_id(name, value)


def store(connection: Connection, agent: Agent, new: NewCensor, vector: Vectors, *, cause: Cause) -> Censor:
    """Store a censor and return it; an active one of the same reach that says the same is returned instead.

    That one is changed only where the new one is stricter: severity, threshold, expiry, trust and pin. Two
    triggers say the same when they are written the same, or are close in meaning and no guard tells them apart.
    """
    lock_agent(connection, agent.id)
    for known, similarity in nearest(connection, agent, new, vector, at=cause.effective_at):
        if is_same(known, new, similarity):
            return raised(connection, agent.id, known, new, cause=cause)
    row = {
        **new.origin.row(now=cause.effective_at),
        "trigger": new.trigger,
        "reason": new.reason,
        "severity": new.severity,
        "is_literal": new.is_literal,
        "escalation_threshold": new.escalation_threshold or POLICY.escalation_threshold,
        "learned_from_decision_id": new.learned_from_decision_id and str(new.learned_from_decision_id),
        "learned_from_episode_id": new.learned_from_episode_id and str(new.learned_from_episode_id),
        "expires_at": new.expires_at and new.expires_at.isoformat(),
        "embedding": Vector(vector).to_text(),
        "embedding_space_id": agent.embedder.space.id,
    }
    return add_memory(connection, agent.id, CENSOR, row, cause=cause)


def nearest(
    connection: Connection, agent: Agent, new: NewCensor, vector: Vectors, *, at: datetime
) -> list[tuple[Censor, float]]:
    """Return the active censors of the same reach nearest to a new one, with their cosines."""
    parameters = {
        "agent_id": agent.id,
        "space_id": agent.embedder.space.id,
        "embedding": Vector(vector),
        "trigger": new.trigger,
        "is_literal": new.is_literal,
        "scope": new.origin.scope,
        "user_id": new.origin.user_id,
        "project_id": new.origin.project_id,
        "at": at,
        "limit": COMPARED,
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(composed("nearest_censors"), parameters).fetchall()
    similarities: list[float] = [row.pop("similarity") for row in rows]
    return [(Censor(**row), similarity) for row, similarity in zip(rows, similarities, strict=True)]


def is_same(known: Censor, new: NewCensor, similarity: float) -> bool:
    """Tell whether two triggers say the same: as written, or in meaning with no guard between them."""
    if normal(known.trigger) == normal(new.trigger):
        return True
    is_close = not new.is_literal and similarity >= POLICY.same_similarity
    return is_close and not differences(known.trigger, new.trigger)


def raised(connection: Connection, agent_id: str, known: Censor, new: NewCensor, *, cause: Cause) -> Censor:
    """Make a known censor as strict as the new one that says the same; nothing is written where it is already."""
    locked = locked_memory(connection, agent_id, CENSOR, known.id)  # a check may be counting it at this moment
    return set_values(connection, agent_id, locked, stricter(locked, new), cause=cause)


def set_values(
    connection: Connection, agent_id: str, known: Censor, wanted: Mapping[str, Any], *, cause: Cause
) -> Censor:
    """Write the values a censor does not have yet, as one version; none when it has them all."""
    values = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in wanted.items()
        if value != getattr(known, name)
    }
    return change_memory(connection, agent_id, version_of(CENSOR, known), values, cause=cause) if values else known


def stricter(known: Censor, new: NewCensor) -> dict[str, Any]:
    """Return for each column the stricter of both values."""
    expiries = (known.expires_at, new.expires_at)
    return {
        "severity": max(known.severity, new.severity, key=SEVERITIES.index),
        "escalation_threshold": min(known.escalation_threshold, new.escalation_threshold or known.escalation_threshold),
        "expires_at": None if None in expiries else max(filter(None, expiries)),
        "trust": max(known.trust, new.origin.trust),
        "is_pinned": known.is_pinned or new.origin.is_pinned,
    }


def activate(
    connection: Connection,
    agent_id: str,
    censor_ids: Sequence[UUID],
    *,
    at: datetime,
    cause: Cause,
    session_id: str | None = None,
) -> list[Censor]:
    """Count that censors fired, make a warning that reached its threshold a block, and announce each; return them.

    The activation that reaches the threshold is the first that blocks. Archived ones are left out.
    """
    found = locked_memories(connection, agent_id, CENSOR, censor_ids)
    fired = [counted(connection, agent_id, each, at=at, cause=cause) for each in found if each.state == "active"]
    with connection.pipeline():
        for censor in fired:
            announce(connection, agent_id, censor, session_id=session_id)
    return fired


def counted(connection: Connection, agent_id: str, censor: Censor, *, at: datetime, cause: Cause) -> Censor:
    """Count one activation of a locked censor."""
    count = censor.activation_count + 1
    values: dict[str, Any] = {
        "activation_count": count,
        "last_activated_at": max(filter(None, (censor.last_activated_at, at))).isoformat(),
    }
    if censor.severity == "warn" and count >= censor.escalation_threshold:
        values["severity"] = "block"
    return change_memory(connection, agent_id, version_of(CENSOR, censor), values, cause=cause)


def announce(connection: Connection, agent_id: str, censor: Censor, *, session_id: str | None) -> None:
    """Tell others that a censor fired, and whether it blocked."""
    payload = {
        "censor_id": str(censor.id),
        "severity": censor.severity,
        "was_blocked": censor.severity != "warn",
        "session_id": session_id,
    }
    emit(connection, agent_id, "censor_activated", memory_id=censor.id, payload=payload)


def report_false_positive(connection: Connection, agent_id: str, censor_id: UUID, *, cause: Cause) -> Censor:
    """Count that a censor fired where it should not have; raise `NotFound` when there is none of that id."""
    found = locked_memory(connection, agent_id, CENSOR, censor_id)
    values = {"false_positive_count": found.false_positive_count + 1}
    return change_memory(connection, agent_id, version_of(CENSOR, found), values, cause=cause)


def update(connection: Connection, agent_id: str, censor_id: UUID, values: dict[str, Any], *, cause: Cause) -> Censor:
    """Set columns of a censor by hand; what it says already is left alone."""
    found = locked_memory(connection, agent_id, CENSOR, censor_id)
    return set_values(connection, agent_id, found, values, cause=cause)


def read_censors(connection: Connection, agent_id: str, censor_ids: Sequence[UUID]) -> list[Censor]:
    """Return the censors with these ids."""
    return fetched(connection, "read_censors", {"agent_id": agent_id, "ids": list(censor_ids)})


def list_censors(connection: Connection, agent_id: str, *, state: str = "active") -> list[Censor]:
    """Return the censors in a state, the firmest first."""
    return fetched(connection, "list_censors", {"agent_id": agent_id, "state": state})


def fetched(connection: Connection, statement: str, parameters: dict[str, Any]) -> list[Censor]:
    """Run a statement that returns censors."""
    with connection.cursor(row_factory=class_row(Censor)) as cursor:
        return cursor.execute(composed(statement), parameters).fetchall()


@cache
def composed(statement: str) -> bytes:
    """Return a statement with the columns of a censor filled in, once: doing it anew takes as long as some queries."""
    text: LiteralString = BLOCKS[statement]
    columns = SQL(", ").join(map(Identifier, CENSOR.columns))
    return SQL(text).format(columns=columns, in_reach=SQL(BLOCKS["in_reach"])).as_bytes()
