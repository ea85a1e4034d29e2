"""Checking an action against the censors of an agent: as written, and in meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row

from nous_online import censors
from nous_online.agent import Agent
from nous_online.changes import Cause
from nous_online.deadline import Deadline
from nous_online.deeds import closeness
from nous_online.domain import Censor
from nous_online.embedding import Vectors
from nous_online.origin import check_known
from nous_online.policy import MAX_CONTENT_BYTES, CensorPolicy
from nous_online.store import ask_space, require_space
from nous_online.triggers import Wording
from nous_online.validation import checked_flag, checked_moment, checked_optional, checked_text

PART_ENDS = re.compile(r"\n+|&&|\|\||;(?=\s)|(?<=[.!?])\s+")
LITERAL_CLOSENESS = 3.0  # above what meaning alone reaches: what occurs as written is certain
Matched = Literal["literal", "meaning"]


class CheckDetails(TypedDict, total=False):
    """Everything `check_censors` may be told besides the action."""

    frame: str | None
    """The cognitive frame the agent is in; of equally firm censors those encoded in it come first."""
    session_id: str | None
    at: datetime | str | None
    """When the action is about to happen; now, unless an older history is being replayed."""
    is_recorded: bool
    """False only looks: nothing is counted, escalated or announced."""
    user_id: str | None
    project_id: str | None


@dataclass(frozen=True)
class Activation:
    """A censor an action set off, and how: the severity is the one that holds for this very action."""

    censor: Censor
    severity: str
    reason: str
    matched: Matched
    similarity: float | None
    """The cosine of the trigger and the part of the action; None for a trigger that occurs as written."""
    part: str
    """What of the action set it off."""


@dataclass(frozen=True)
class Question:
    """An action to be checked, cut into its parts, and who is about to do it."""

    action: str
    parts: tuple[str, ...]
    frame: str | None
    session_id: str | None
    at: datetime
    is_recorded: bool
    user_id: str | None
    project_id: str | None


@dataclass(frozen=True)
class Suspect:
    """A censor that may be set off by a part of the action, counted from 1."""

    id: UUID
    trigger: str
    is_literal: bool
    part: int
    similarity: float


@dataclass(frozen=True)
class Match:
    """How a censor was set off."""

    matched: Matched
    similarity: float | None
    part: str
    closeness: float


def question(action: object, details: CheckDetails, *, now: datetime, policy: CensorPolicy) -> Question:
    """Check what a caller asks; raise `InvalidInput` naming what to mend."""
    check_known(details, CheckDetails)
    text = checked_text("action", action, max_bytes=MAX_CONTENT_BYTES)
    return Question(
        action=text,
        parts=parts_of(text, most=policy.most_parts),
        frame=checked_optional("frame", details.get("frame"), max_characters=100),
        session_id=checked_optional("session_id", details.get("session_id"), max_characters=100),
        at=checked_moment("at", details.get("at")) or now,
        is_recorded=checked_flag("is_recorded", details.get("is_recorded", True)),
        user_id=checked_optional("user_id", details.get("user_id"), max_characters=100),
        project_id=checked_optional("project_id", details.get("project_id"), max_characters=100),
    )


def parts_of(action: str, *, most: int) -> tuple[str, ...]:
    """Return the whole action and, when it does several things, each of them: a vector of all drowns each one.

    The first and the last of very many are kept: a script says what it is about first, and does its worst last.
    """
    parts = [part.strip() for part in PART_ENDS.split(action) if part.strip()]
    if len(parts) > most:
        parts = [*parts[: most // 2], *parts[-(most - most // 2) :]]
    return tuple(dict.fromkeys((action.strip(), *parts)))


def check(
    agent: Agent, action: object, details: CheckDetails, deadline: Deadline, *, policy: CensorPolicy = censors.POLICY
) -> list[Activation]:
    """Return the censors an action sets off, the firmest first, counted in the same transaction."""
    asked = question(action, details, now=datetime.now(UTC), policy=policy)
    vectors = agent.embed(asked.parts, deadline)
    with agent.transaction(deadline) as connection:
        suspects = find_suspects(connection, agent, asked, vectors, policy=policy)
        require_space(ask_space(connection, agent.id), agent.id, agent.embedder.space)
        matches = set_off(asked, suspects, deadline, policy=policy)
        fired = recorded(connection, agent.id, asked, list(matches)) if matches else []
    activations = [activation(censor, matches[censor.id]) for censor in fired]
    return sorted(activations, key=lambda each: firmness(each, matches[each.censor.id], asked.frame), reverse=True)


def find_suspects(
    connection: Connection, agent: Agent, asked: Question, vectors: Vectors, *, policy: CensorPolicy
) -> list[Suspect]:
    """Return the censors worth a closer look."""
    parameters = {
        "agent_id": agent.id,
        "space_id": agent.embedder.space.id,
        "embeddings": [Vector(vector) for vector in vectors],
        "at": asked.at,
        "user_id": asked.user_id,
        "project_id": asked.project_id,
        "floor": policy.similarity_floor,
    }
    with connection.cursor(row_factory=class_row(Suspect), binary=True) as cursor:
        return cursor.execute(censors.composed("find_suspects"), parameters).fetchall()


def set_off(
    asked: Question, suspects: Iterable[Suspect], deadline: Deadline, *, policy: CensorPolicy
) -> dict[UUID, Match]:
    """Return how each censor that fires was set off, by its closest part; raise `DeadlineExceeded` in time."""
    wording = Wording(asked.action)
    found: dict[UUID, Match] = {}
    for suspect in suspects:
        deadline.remaining()
        match = matched(asked, suspect, wording, policy=policy)
        if match and (suspect.id not in found or match.closeness > found[suspect.id].closeness):
            found[suspect.id] = match
    return found


def matched(asked: Question, suspect: Suspect, wording: Wording, *, policy: CensorPolicy) -> Match | None:
    """Return how one suspect is set off, None when it is not."""
    if suspect.is_literal:
        return Match("literal", None, asked.action, LITERAL_CLOSENESS) if wording.holds(suspect.trigger) else None
    part = asked.parts[suspect.part - 1]
    close = closeness(suspect.trigger, part, suspect.similarity, policy=policy)
    return Match("meaning", suspect.similarity, part, close) if close >= policy.firing_closeness else None


def recorded(connection: Connection, agent_id: str, asked: Question, censor_ids: Sequence[UUID]) -> list[Censor]:
    """Count the censors that fired, unless the caller only looks, and return them as they are then."""
    if not asked.is_recorded:
        return censors.read_censors(connection, agent_id, censor_ids)
    cause = Cause("agent", "activated", "an action set it off", effective_at=asked.at)
    return censors.activate(connection, agent_id, censor_ids, at=asked.at, cause=cause, session_id=asked.session_id)


def activation(censor: Censor, match: Match) -> Activation:
    """Return what is told of one censor that fired."""
    return Activation(censor, censor.severity, censor.reason, match.matched, match.similarity, match.part)


def firmness(each: Activation, match: Match, frame: str | None) -> tuple[Any, ...]:
    """Return by what activations are ordered: severity, same frame, then how close the action came."""
    is_same_frame = frame is not None and each.censor.encoded_frame == frame
    return (censors.SEVERITIES.index(each.severity), is_same_frame, match.closeness, each.censor.id)
