"""Decisions of the agent: recorded with their reasons, resolved once, each with an event for the reactions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.details import DecisionDetails, DecisionTitle
from nous_online.core.domain import DECISION_STATUSES, EPISODE, DecisionId, shortened
from nous_online.core.errors import Conflict, NotFound, NousError
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.database.changes import get_memory
from nous_online.database.statements import fetch, statements
from nous_online.memories import store
from nous_online.memories.agent import Agent, emit, hide_credentials
from nous_online.memories.episodes import current_episode
from nous_online.memories.store import KeyedCall

logger = logging.getLogger(__name__)
BLOCKS = statements("nous_online.memories", "decisions.sql")
NORMAL_PATH = BLOCKS["normal_path"]
"""The spelling in which a path is compared, as SQL."""
RESOLUTIONS = DECISION_STATUSES[1:]


@dataclass(frozen=True)
class Decision:
    """A decision of the agent, with its rationale, status and outcome."""

    def __repr__(self) -> str:
        return f"<decision {str(self.id)[:8]} {self.status} {self.decided_at:%Y-%m-%d}: {shortened(self.title)!r}>"

    id: UUID
    title: str
    rationale: str | None
    confidence: float | None
    status: str
    episode_id: UUID | None
    session_id: str | None
    files: list[str]
    tags: list[str]
    outcome: str | None
    decided_at: datetime
    resolved_at: datetime | None
    row_version: int
    reference: str | None = None
    """The agent's own name for it."""

    @property
    def name(self) -> DecisionId:
        """Its reference if it has one, else its id: by this episodes and censors refer to it."""
        return self.reference or self.id


def record(agent: Agent, title: object, details: DecisionDetails, deadline: Deadline) -> Decision:
    """Store a decision and announce it, once for each idempotency key.

    Returns the first answer for a known key. Raises `InvalidInput` for the first wrong argument, and `Conflict` for a
    key used otherwise, or a reference that is taken.
    """
    check_known(details, DecisionDetails)
    now = datetime.now(UTC)
    arguments, _ = hide_credentials(
        {"title": checked_as(DecisionTitle, "title", title), **checked_details(DecisionDetails, details, now=now)},
        ("title", "rationale"),
        agent.rights,
    )
    key, reference = arguments.pop("idempotency_key"), arguments.pop("reference")
    arguments |= {"files": arguments["files"] or [], "tags": arguments["tags"] or []}
    arguments |= {"reference": reference} if reference else {}
    # Without the default of `decided_at`, which differs at each retry.
    call = KeyedCall.of("record_decision", key, arguments, action="recorded")
    row = {**arguments, "reference": reference, "decided_at": arguments["decided_at"] or now}
    with agent.transaction(deadline) as connection:
        return store.act_once(
            connection,
            agent.id,
            call,
            read=lambda known_id: get(connection, agent.id, known_id),
            act=lambda: store_decision(connection, agent.id, row),
        )


def store_decision(connection: Connection, agent_id: str, new: Mapping[str, Any]) -> Decision:
    """Insert a decision with its event; raise `NotFound` for an unknown episode, `Conflict` for a reference in use."""
    if new["episode_id"] is not None:
        get_memory(connection, agent_id, EPISODE, new["episode_id"])
    # Read now: when the event is reacted to, the episode may be over, or another one open.
    episode_id = new["episode_id"] or getattr(current_episode(connection, agent_id, new["session_id"]), "id", None)
    if new["reference"] is not None:
        store.lock_agent(connection, agent_id)
        key = {"agent_id": agent_id, "id": None, "reference": new["reference"]}
        for known in fetch(connection, Decision, BLOCKS["get_decision"], key):
            raise Conflict(
                f"decision {known.id} has the reference {new['reference']!r} already; use another, or resolve that one"
            )
    (decision,) = fetch(connection, Decision, BLOCKS["store_decision"], {"agent_id": agent_id, **new})
    payload = {
        "decision_id": str(decision.id),
        "title": decision.title,
        "session_id": decision.session_id,
        "episode_id": None if episode_id is None else str(episode_id),
    }
    emit(connection, agent_id, "decision_recorded", memory_id=decision.id, payload=payload)
    return decision


def resolve(
    agent: Agent, decision_id: DecisionId, status: str, outcome: str | None, *, at: datetime, deadline: Deadline
) -> Decision:
    """Store the outcome of a decision, with an event for a failure; the same status and outcome change nothing.

    Raises `NotFound`, and `Conflict` when it was resolved otherwise: reactions have used the first outcome already.
    """
    with agent.transaction(deadline) as connection:
        known = get(connection, agent.id, decision_id, statement="lock_decision")
        if known.status == status and outcome in (None, known.outcome):
            return known
        if known.status != "pending":
            raise Conflict(
                f"decision {decision_id} was resolved as {known.status!r} already, and neither status nor outcome can "
                f"be changed (to {status!r}); record a new decision that says what changed"
            )
        key = {"agent_id": agent.id, "id": known.id, "row_version": known.row_version}
        values = {**key, "status": status, "outcome": outcome, "at": at}
        (resolved,) = fetch(connection, Decision, BLOCKS["resolve_decision"], values)
        if status == "failed":
            payload = {"decision_id": str(known.id), "title": resolved.title, "outcome": resolved.outcome}
            emit(connection, agent.id, "decision_failed", memory_id=known.id, payload=payload)
    return resolved


def get(connection: Connection, agent_id: str, decision_id: DecisionId, *, statement: str = "get_decision") -> Decision:
    """Return one decision by its id or reference; raise `NotFound` when this agent has none."""
    is_id = isinstance(decision_id, UUID)
    names = {"id": decision_id if is_id else None, "reference": None if is_id else decision_id}
    for found in fetch(connection, Decision, BLOCKS[statement], {"agent_id": agent_id, **names}):
        return found
    raise NotFound(f"agent {agent_id!r} has no decision {decision_id}")


def find(connection: Connection, filters: Mapping[str, Any]) -> list[Decision]:
    """Return the decisions that match every filter that is not None, the latest first."""
    stored, asked = NORMAL_PATH.replace("{path}", "path"), NORMAL_PATH.replace("{path}", "%(file)s::text")
    return fetch(connection, Decision, BLOCKS["find_decisions"], filters, stored=stored, asked=asked)


def reread(agent: Agent, decision: Decision, deadline: Deadline) -> Decision:
    """Return a decision as it is after its reactions, or as it was stored if it can't be read in time."""
    try:
        with agent.transaction(deadline) as connection:
            return get(connection, agent.id, decision.id)
    except NousError as error:  # the decision is stored: an error here would tell the caller that it is not
        logger.warning("decision %s is returned as it was recorded: %s", decision.id, error)
        return decision


def link(connection: Connection, agent_id: str, decision_id: UUID, episode_id: UUID) -> None:
    """Set the episode of a decision, unless it has one."""
    row = {"agent_id": agent_id, "id": decision_id, "episode_id": episode_id}
    connection.execute(BLOCKS["link_decision"], row)
