"""Censors: what an agent was taught to beware of, stored once, counted when it fires, firmer when it keeps firing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row, dict_row
from psycopg.sql import SQL, Identifier

from nous_online.core.details import CensorChanges, CensorDetails, CensorFields, CensorReason, Trigger
from nous_online.core.domain import SEVERITIES, Censor, DecisionId, Severity
from nous_online.core.errors import Conflict, NotFound, Refused
from nous_online.core.fields import check_known, checked_as, checked_details, rows_of
from nous_online.core.kinds import CENSOR
from nous_online.core.policy import CensorPolicy
from nous_online.core.rights import UNLIMITED, Origin, Rights, origin_of
from nous_online.core.validation import (
    checked_id,
)
from nous_online.database.changes import (
    Alteration,
    Cause,
    add_memory,
    change_memories,
    change_memory,
    locked_memories,
    locked_memory,
    version_of,
)
from nous_online.database.statements import statements
from nous_online.language.actions.triggers import checked_literal, normal
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.guards import differences
from nous_online.language.writing.credentials import hidden
from nous_online.memories.agent import Agent
from nous_online.memories.events import emit
from nous_online.memories.store import lock_agent
from nous_online.memories.told_texts import guarded

BLOCKS = statements("nous_online.memories", "censors.sql")
POLICY = CensorPolicy()
REPORTERS = ("agent", "user")
Match = Literal["literal", "near", "meaning"]
COMPARED = 5  # how many of the nearest censors are asked whether they say the same


@dataclass(frozen=True)
class NewCensor:
    """A censor checked and ready to be stored."""

    trigger: str
    reason: str
    severity: Severity
    is_literal: bool
    escalation_threshold: int | None
    learned_from_decision_id: DecisionId | None
    learned_from_episode_id: UUID | None
    expires_at: datetime | None
    origin: Origin


@dataclass(frozen=True)
class Firing:
    """That a censor is to count as fired: how, by what, and under which id it can be reported."""

    match: Match | None = None
    """None where a guardrail of the agent's named the censor."""
    action: str | None = None
    id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True)
class Report:
    """That a censor fired falsely: which activation, or which action, and who says so."""

    activation_id: UUID | None
    action: str | None
    source_kind: str


def new_censor(trigger: object, reason: object, details: CensorDetails, rights: Rights = UNLIMITED) -> NewCensor:
    """Check everything a caller said about a censor; raise `InvalidInput` naming what to mend."""
    check_known(details, CensorDetails)
    text = checked_as(Trigger, "trigger", trigger).strip()
    told = checked_details(CensorFields, details)
    if told["is_literal"]:
        checked_literal(text)
    why = checked_as(CensorReason, "reason", reason).strip()
    if rights.on_credential != "keep" and hidden(text)[1]:
        raise Refused(
            "trigger looks as if it held a credential: name what it is for, such as 'posting the deploy key', for a "
            "censor without it would never be set off; nothing was stored"
        )
    why = guarded({"reason": why}, ["reason"], rights)[0]["reason"]
    return NewCensor(trigger=text, reason=why, origin=origin_of(details, rights), **told)


def checked_changes(changes: CensorChanges) -> dict[str, Any]:
    """Check what a caller wants changed of a censor; raise `InvalidInput` naming what to mend."""
    check_known(changes, CensorChanges)
    rows = rows_of(CensorChanges)
    found = {name: rows[name].checked(value) for name, value in changes.items()}
    usual = {"escalation_threshold": found.get("escalation_threshold") or POLICY.escalation_threshold}
    return found | (usual if "escalation_threshold" in found else {})


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
    firings: Mapping[UUID, Firing],
    *,
    at: datetime,
    cause: Cause,
    session_id: str | None = None,
) -> list[Censor]:
    """Count that censors fired, make a warning that reached its threshold a block, and announce each; return them.

    The activation that reaches the threshold is the first that blocks. Archived ones are left out.
    """
    found = locked_memories(connection, agent_id, CENSOR, list(firings))
    active = [each for each in found if each.state == "active"]
    change_memories(connection, agent_id, [counted(each, firings[each.id], at=at, cause=cause) for each in active])
    fired = read_censors(connection, agent_id, [each.id for each in active])
    with connection.pipeline():
        for censor in fired:
            payload = {
                "censor_id": str(censor.id),
                "activation_id": str(firings[censor.id].id),
                "severity": severity_of(censor, firings[censor.id].match),
                "was_blocked": severity_of(censor, firings[censor.id].match) != "warn",
                "session_id": session_id,
            }
            emit(connection, agent_id, "censor_activated", memory_id=censor.id, payload=payload)
    return fired


def severity_of(censor: Censor, match: Match | None) -> str:
    """Return how firmly a censor speaks against an action; one matched by meaning alone only warns."""
    return "warn" if match == "meaning" else censor.severity


def counted(censor: Censor, firing: Firing, *, at: datetime, cause: Cause) -> Alteration[Censor]:
    """Return what one activation sets of a locked censor; one by meaning alone does not count towards a block."""
    count, forgiven = censor.activation_count + 1, censor.forgiven_count + (firing.match == "meaning")
    action = firing.action and firing.action[: POLICY.most_action_characters]
    values: dict[str, Any] = {
        "activation_count": count,
        "forgiven_count": forgiven,
        "last_activated_at": max(filter(None, (censor.last_activated_at, at))).isoformat(),
        "last_activation": {"id": str(firing.id), "match": firing.match, "action": action},
    }
    if censor.severity == "warn" and count - forgiven >= censor.escalation_threshold:
        values |= {"severity": "block", "is_escalated": True}
    return Alteration(version_of(CENSOR, censor), values, cause)


def report_false_positive(
    connection: Connection, agent: Agent, censor_id: UUID, report: Report, *, cause: Cause
) -> Censor:
    """Keep that a censor should not have fired: an exception at once, and one activation less towards a block.

    Without an activation id it is the latest of that action, or the latest at all, that nobody reported yet. An action
    that set nothing off becomes an exception and counts nothing. Raises `NotFound` when there is no such censor or
    activation, `Conflict` when that activation was reported before, `Forbidden` where the caller may not change the
    censor, or not speak for the user.
    """
    found = locked_memory(connection, agent.id, CENSOR, censor_id)
    agent.rights.check_may_change(found)
    if report.source_kind == "user":
        agent.rights.check_may_speak_for_user()
    activation = reported_activation(connection, agent.id, found, report)
    exception = {
        "action": activation["action"] if activation else report.action,
        "activation_id": activation and activation["id"],
        "source_kind": report.source_kind,
        "reported_at": cause.effective_at.isoformat(),
    }
    values: dict[str, Any] = {"exceptions": [*found.exceptions, exception][-POLICY.most_exceptions :]}
    if activation:
        values["false_positive_count"] = found.false_positive_count + 1
    if activation and activation["match"] != "meaning":  # those never counted towards a block
        values["forgiven_count"] = min(found.forgiven_count + 1, found.activation_count)
        if found.is_escalated and found.activation_count - values["forgiven_count"] < found.escalation_threshold:
            values |= {"severity": "warn", "is_escalated": False}
    return change_memory(connection, agent.id, version_of(CENSOR, found), values, cause=cause)


def reported_activation(connection: Connection, agent_id: str, censor: Censor, report: Report) -> dict[str, Any] | None:
    """Return the activation a report is about; None for an action that set nothing off."""
    activation_id, action = report.activation_id, report.action
    parameters = {
        "agent_id": agent_id,
        "censor_id": censor.id,
        "activation_id": activation_id and str(activation_id),
        "limit": 1 if activation_id else POLICY.most_exceptions + 1,
    }
    known: list[dict[str, Any]] = [row[0] for row in connection.execute(BLOCKS["activations_of"], parameters)]
    reported = {each["activation_id"] for each in censor.exceptions}
    if action is not None:
        known = [each for each in known if each["action"] is not None and normal(each["action"]) == normal(action)]
    left = [each for each in known if each["id"] not in reported]
    if left:
        return left[0]
    if known:
        raise Conflict(f"activation {known[0]['id']} of censor {censor.id} was reported as a false alarm before")
    if activation_id is not None:
        raise NotFound(f"censor {censor.id} has no activation {activation_id}; check_censors returns the ids")
    if action is None:
        raise NotFound(f"censor {censor.id} has not fired yet; name the action it should let pass: action=…")
    return None


def update(connection: Connection, agent: Agent, censor_id: UUID, values: dict[str, Any], *, cause: Cause) -> Censor:
    """Set columns of a censor by hand; what it says already is left alone.

    A severity set by hand is a person's again, and one that is lowered holds until new activations reach the threshold.
    Raises `Forbidden` for a censor trusted more than the caller, and for a pin of one that may not pin.
    """
    found = locked_memory(connection, agent.id, CENSOR, censor_id)
    agent.rights.check_may_change(found)
    if values.get("is_pinned"):
        agent.rights.check_may_pin()
    severity = values.get("severity", found.severity)
    if SEVERITIES.index(severity) < SEVERITIES.index(found.severity):
        values = {**values, "forgiven_count": found.activation_count}
    if "severity" in values:
        values = {**values, "is_escalated": False}
    return set_values(connection, agent.id, found, values, cause=cause)


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
