"""Procedures: how something is done, stored under its name, loaded when it is needed, judged by how it went."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, LiteralString
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier

from nous_online.core.deadline import Deadline
from nous_online.core.domain import Procedure
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.core.kinds import EPISODE, PROCEDURE
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.database.changes import (
    Cause,
    add_memory,
    change_memory,
    get_memory,
    locked_memories,
    locked_memory,
    version_of,
)
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories import store
from nous_online.memories.agent import Agent
from nous_online.memories.episodes import current_episode
from nous_online.memories.events import emit
from nous_online.memories.procedure_details import NewProcedure
from nous_online.memories.quotas import check_quota

BLOCKS = statements("nous_online.memories", "procedures.sql")
RELATED_SIMILARITY = (
    0.4  # of the default embedding space: below, two procedures of other domains share no more than words
)


@dataclass(frozen=True)
class Activated:
    """What happens around the activation of a procedure."""

    session_id: str
    at: datetime


def keep(agent: Agent, new: NewProcedure, deadline: Deadline) -> Procedure:
    """Store a procedure under its name, or make the one of that name a new version, in one transaction."""
    check_quota(agent, deadline, count=1, size=0)
    (vector,) = agent.embed([new.embedded_text], deadline)
    cause = Cause("agent", "learned", "told by the agent", effective_at=new.origin.learned_at or datetime.now(UTC))
    with agent.space_transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        earlier = repeated_request(connection, agent.id, new)
        if earlier is not None:
            return earlier
        check_related(connection, agent.id, new)
        kept = store_or_revise(connection, agent, new, vector, cause=cause)
        if new.idempotency_key:
            request = store.KeyedRequest(new.idempotency_key, content_hash(new), kept.id, "stored")
            store.store_request(connection, agent.id, "store_procedure", request)
    return kept


def repeated_request(connection: Connection, agent_id: str, new: NewProcedure) -> Procedure | None:
    """Return the first answer to this idempotency key; raise `Conflict` when it was used for another content."""
    key = new.idempotency_key
    request = store.find_requests(connection, agent_id, [key]).get(key) if key else None
    if request is None:
        return None
    if request.content_hash != content_hash(new):
        raise Conflict(f"idempotency key {key!r} was used for another content; use a new key for it")
    return get_memory(connection, agent_id, PROCEDURE, request.memory_id)


def content_hash(new: NewProcedure) -> str:
    """Return the SHA-256 of what was told."""
    told = json.dumps([new.name, new.kind, dict(new.content)], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def check_related(connection: Connection, agent_id: str, new: NewProcedure) -> None:
    """Raise `NotFound` when a procedure is said to be related to one that this agent does not have."""
    parameters = {"agent_id": agent_id, "ids": new.content["related_procedures"]}
    absent = connection.execute(BLOCKS["absent_procedures"], parameters).fetchone()
    if absent:
        raise NotFound(f"agent {agent_id!r} has no procedure {absent[0]}, named in related_procedures")


def store_or_revise(
    connection: Connection, agent: Agent, new: NewProcedure, vector: Vectors, *, cause: Cause
) -> Procedure:
    """Store a procedure whose name is free; otherwise revise the one that has it."""
    row = connection.execute(BLOCKS["find_named"], {"agent_id": agent.id, "name": new.name}).fetchone()
    space = {"embedding": Vector(vector).to_text(), "embedding_space_id": agent.embedder.space.id}
    if row is None:
        return add_memory(connection, agent.id, PROCEDURE, {**new.row(now=cause.effective_at), **space}, cause=cause)
    known = locked_memory(connection, agent.id, PROCEDURE, row[0])
    check_revisable(known, new)
    values = revision(known, new)
    if not values:
        return known
    moved = space if changed_content(known, new) else {}
    revised = Cause("agent", "revised", "told again under the same name", effective_at=cause.effective_at)
    return change_memory(connection, agent.id, version_of(PROCEDURE, known), {**values, **moved}, cause=revised)


def check_revisable(known: Procedure, new: NewProcedure) -> None:
    """Raise `Refused` when the name is taken by a procedure that this one may not replace."""
    taken = f"the name {new.name!r} is taken by procedure {known.id}"
    origin = new.origin
    if (known.scope, known.user_id, known.project_id) != (origin.scope, origin.user_id, origin.project_id):
        raise Refused(f"{taken}, which is for others to see; store this one under another name")
    if known.kind != new.kind:
        raise Refused(f"{taken}, a {known.kind}; store this {new.kind} under another name")
    if known.trust > origin.trust and changed_content(known, new):
        raise Refused(f"{taken}, which is trusted {known.trust}, this one {origin.trust}; store it under another name")


def revision(known: Procedure, new: NewProcedure) -> dict[str, Any]:
    """Return the columns that telling a procedure again changes; a new content is given a new trial.

    Its counts stay: they were earned under this name. Trust and pin only rise, as when a fact is confirmed.
    """
    values = changed_content(known, new)
    if values and known.state == "review":
        values |= {"state": "active", "review_reason": None}
    if new.origin.trust > known.trust:
        values["trust"] = new.origin.trust
    if new.origin.is_pinned and not known.is_pinned:
        values["is_pinned"] = True
    return values


def changed_content(known: Procedure, new: NewProcedure) -> dict[str, Any]:
    """Return what a new content says otherwise than the known one."""
    told = {
        name: list(map(str, value)) if name.startswith("related_") else value
        for name in new.content
        for value in [getattr(known, name)]
    }
    return {name: value for name, value in new.content.items() if value != told[name]}


def find(connection: Connection, agent_id: str, name_or_id: str) -> UUID:
    """Return the id of the procedure an id, a name or a slug stands for.

    Raises `NotFound` when there is none, and `InvalidInput` when a slug fits several.
    """
    parameters = {"agent_id": agent_id, "asked": name_or_id}
    rows: list[tuple[UUID, str]] = connection.execute(BLOCKS["find_procedures"], parameters).fetchall()
    if not rows:
        raise NotFound(f"agent {agent_id!r} has no procedure {name_or_id!r}; see `Heart.list_procedures`")
    if len(rows) > 1:
        names = ", ".join(repr(name) for _, name in rows)
        raise InvalidInput(f"{name_or_id!r} fits {len(rows)} procedures: {names}; name one of them exactly")
    return rows[0][0]


def activate(agent: Agent, name_or_id: str, around: Activated, deadline: Deadline) -> Procedure:
    """Count a procedure as used, take it into the session and the episode that is open, and announce it; at once."""
    from nous_online.memories import sessions  # it reads procedures itself

    with agent.transaction(deadline) as connection:
        procedure_id = find(connection, agent.id, name_or_id)
        episode_id = note_in_episode(connection, agent.id, procedure_id, around)
        known = locked_memory(connection, agent.id, PROCEDURE, procedure_id)
        values = {
            "activation_count": known.activation_count + 1,
            "last_activated_at": max(filter(None, (known.last_activated_at, around.at))).isoformat(),
        }
        cause = Cause("agent", "activated", f"loaded in session {around.session_id!r}", effective_at=around.at)
        loaded = change_memory(connection, agent.id, version_of(PROCEDURE, known), values, cause=cause)
        sessions.load(connection, agent, around.session_id, [("procedure", procedure_id)])
        payload = {
            "procedure_id": str(procedure_id),
            "name": loaded.name,
            "session_id": around.session_id,
            "episode_id": episode_id and str(episode_id),
        }
        emit(connection, agent.id, "procedure_loaded", memory_id=procedure_id, payload=payload)
    return loaded


def note_in_episode(connection: Connection, agent_id: str, procedure_id: UUID, around: Activated) -> UUID | None:
    """Name a procedure among those the current episode used, and return that episode's id; None when none is open."""
    session_id = None if around.session_id == DEFAULT_SESSION else around.session_id
    current = current_episode(connection, agent_id, session_id)
    if current is None:
        return None
    episode = locked_memory(connection, agent_id, EPISODE, current.id)
    if episode.state == "open" and procedure_id not in episode.procedures_activated:
        values = {"procedures_activated": [str(each) for each in (*episode.procedures_activated, procedure_id)]}
        cause = Cause("agent", "linked", "a procedure was activated in it", effective_at=around.at)
        change_memory(connection, agent_id, version_of(EPISODE, episode), values, cause=cause)
    return episode.id


def record_outcome(
    connection: Connection, agent_id: str, procedure_id: UUID, *, is_success: bool, cause: Cause
) -> Procedure:
    """Count one more time that a procedure worked or failed; raise `NotFound` when there is none of that id."""
    found = locked_memory(connection, agent_id, PROCEDURE, procedure_id)
    counter = "success_count" if is_success else "failure_count"
    values = {counter: getattr(found, counter) + 1}
    return change_memory(connection, agent_id, version_of(PROCEDURE, found), values, cause=cause)


def flag_for_review(
    connection: Connection,
    agent_id: str,
    *,
    procedure_ids: Sequence[UUID] = (),
    domain: str | None = None,
    reason: str,
    cause: Cause,
) -> int:
    """Put the active procedures named, and those of `domain`, under review; return how many that were."""
    parameters = {"agent_id": agent_id, "ids": list(procedure_ids), "domain": domain}
    ids = [row[0] for row in connection.execute(BLOCKS["reviewable_procedures"], parameters)]
    found = [each for each in locked_memories(connection, agent_id, PROCEDURE, ids) if each.state == "active"]
    for procedure in found:
        values = {"state": "review", "review_reason": reason}
        change_memory(connection, agent_id, version_of(PROCEDURE, procedure), values, cause=cause)
    return len(found)


def list_procedures(
    connection: Connection, agent_id: str, *, domain: str | None = None, state: str | None = None
) -> list[Procedure]:
    """Return the procedures of a domain and a state (all but the archived, unless named), what worked best first.

    What was seen once weighs little: they are ordered by (successes + 1) / (uses + 2), the mean of a Beta(1, 1) prior.
    """
    return fetched(connection, "list_procedures", {"agent_id": agent_id, "domain": domain, "state": state})


def related(connection: Connection, agent_id: str, procedure_id: UUID, *, limit: int) -> list[Procedure]:
    """Return procedures related to one: those named in either, then those of its domain or near it in meaning."""
    get_memory(connection, agent_id, PROCEDURE, procedure_id)
    parameters = {"agent_id": agent_id, "id": procedure_id, "similarity": RELATED_SIMILARITY, "limit": limit}
    return fetched(connection, "related_procedures", parameters)


def fetched(connection: Connection, statement: str, parameters: dict[str, Any]) -> list[Procedure]:
    """Run a statement that returns procedures."""
    with connection.cursor(row_factory=class_row(Procedure)) as cursor:
        return cursor.execute(composed(statement), parameters).fetchall()


@cache
def composed(statement: str) -> Composed:
    """Fill the columns of a procedure, of the row `p`, into a statement."""
    text: LiteralString = BLOCKS[statement]
    return SQL(text).format(columns=SQL(", ").join(Identifier("p", name) for name in PROCEDURE.columns))
