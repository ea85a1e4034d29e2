"""What may be done to a memory of any kind: forget it, restore it, pin it, correct what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.errors import UniqueViolation
from psycopg.sql import SQL

from nous_online.core.deadline import Deadline
from nous_online.core.details import MemoryChanges
from nous_online.core.domain import DOCUMENT, Episode, Fact, Memory
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.core.fields import rows_of
from nous_online.core.kinds import EPISODE, FACT, KINDS, Kind
from nous_online.database.changes import Cause, change_memory, get_memory, locked_memory, plain, version_of
from nous_online.database.statements import statements
from nous_online.language.passages import passages, recall_vector
from nous_online.memories.agent import Agent
from nous_online.memories.contradictions import mark_sides
from nous_online.memories.learning import slot_of
from nous_online.memories.levels import stored_levels
from nous_online.memories.store import lock_agent
from nous_online.memories.undoing import check_names

BLOCKS = statements("nous_online.memories", "memory_changes.sql")
REACH = statements("nous_online.memories", "reach.sql")
UPDATABLE: Mapping[str, tuple[str, ...]] = {
    "fact": ("tags", "subject", "category", "confidence", "valid_from", "valid_to", "is_pinned"),
    "episode": ("tags", "is_pinned"),
    "procedure": ("tags", "is_pinned"),
    "censor": ("is_pinned",),
}
"""What `update` may set of each kind. A text never changes: another text is another statement."""


@dataclass(frozen=True)
class Forgotten:
    """A memory that was forgotten, and the facts that stay out of recall with it."""

    memory: Memory
    merged: tuple[UUID, ...]
    """Facts that were merged into it: they said the same, and don't come back by themselves."""
    replaced: tuple[UUID, ...]
    """Facts it had taken the place of: they said otherwise, and don't come back by themselves."""


def kind_of(connection: Connection, agent_id: str, memory_id: UUID) -> Kind[Any]:
    """Return of which kind a memory is; raise `NotFound` when this agent has none of that id."""
    row = connection.execute(BLOCKS["kind_of"], {"agent_id": agent_id, "id": memory_id}).fetchone()
    if row is None:
        raise NotFound(f"agent {agent_id!r} has no memory {memory_id}")
    return KINDS[row[0]]


def check_forgettable(agent: Agent, memory_id: UUID, reach: Mapping[str, str | None], deadline: Deadline) -> None:
    """Raise `NotFound` for a memory that whoever asks could not recall, `Refused` for one only a person may forget.

    A model that was talked into it could else rid itself of what a person pinned, and of its own censors.
    """
    query = SQL(BLOCKS["kind_in_reach"]).format(in_reach=SQL(REACH["in_reach"]))
    with agent.transaction(deadline) as connection:
        row = connection.execute(query, {"agent_id": agent.id, "id": memory_id, **reach}).fetchone()
    if row is None:
        raise NotFound(f"agent {agent.id!r} has no memory {memory_id} in reach of user and project {[*reach.values()]}")
    if row[0] == "censor" or row[1]:
        what = "a censor" if row[0] == "censor" else "pinned"
        raise Refused(f"memory {memory_id} is {what}: a person forgets it, with `nous forget {memory_id}`")


def forget(agent: Agent, memory_id: UUID, *, reason: str, deadline: Deadline) -> Forgotten:
    """Archive a memory because somebody asked for it; one that is forgotten already stays as it is."""
    with agent.transaction(deadline) as connection:
        lock_agent(connection, agent.id)
        kind = kind_of(connection, agent.id, memory_id)
        memory = locked_memory(connection, agent.id, kind, memory_id)
        agent.rights.check_may_change(memory)
        now = datetime.now(UTC)
        values: dict[str, Any] = {"is_forgotten": True}
        if memory.state != "archived":
            values |= {"state": "archived", "archived_at": now.isoformat()}
        if not memory.is_forgotten:
            cause = Cause("agent", "forgotten", reason, effective_at=now)
            memory = change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)
            mark_sides(connection, agent.id, memory_id, cause=replace(cause, action="marked"))
        gone = connection.execute(BLOCKS["gave_way_to"], {"agent_id": agent.id, "id": memory_id}).fetchall()
    merged, replaced = (tuple(row[0] for row in gone if row[1] is wanted) for wanted in (True, False))
    return Forgotten(memory, merged, replaced)


def predecessors(connection: Connection, agent_id: str, fact_id: UUID) -> list[Fact]:
    """Return the facts that gave way to one, the latest first; raise `NotFound` when this agent has no such fact."""
    get_memory(connection, agent_id, FACT, fact_id)
    gone = connection.execute(BLOCKS["gave_way_to"], {"agent_id": agent_id, "id": fact_id}).fetchall()
    found = [get_memory(connection, agent_id, FACT, each) for each, _ in gone]
    return sorted(found, key=lambda each: (each.learned_at, each.id), reverse=True)


def restore(agent: Agent, memory_id: UUID, *, reason: str, deadline: Deadline) -> Memory:
    """Bring an archived memory back to the state it was in; one that is not archived is returned as it is."""
    key = {"agent_id": agent.id, "id": memory_id}
    with agent.transaction(deadline) as connection:
        lock_agent(connection, agent.id)
        kind = kind_of(connection, agent.id, memory_id)
        memory = locked_memory(connection, agent.id, kind, memory_id)
        if memory.state != "archived":
            return memory
        agent.rights.check_may_change(memory)
        row = connection.execute(BLOCKS["state_before_archive"], key).fetchone()
        state = row[0] if row else "active"
        if state == "superseded" and memory.superseded_by is None:  # what had replaced it was erased since
            state = "active"
        values = {"state": state, "archived_at": None, "is_forgotten": False}
        cause = Cause("agent", "restored", reason, effective_at=datetime.now(UTC))
        try:
            memory = change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)
        except UniqueViolation as error:
            message = f"another {kind.name} took the place of {memory_id} since; forget that one first, then restore it"
            raise Conflict(message) from error
        check_names(connection, agent.id, [memory_id])
        mark_sides(connection, agent.id, memory_id, cause=replace(cause, action="marked"))
        memory = get_memory(connection, agent.id, kind, memory_id)
        if kind is EPISODE and state == "closed" and memory.completed_at is None:
            connection.execute(BLOCKS["queue_again"], key)
    if isinstance(memory, Episode):
        agent.awake.set()
    return memory


def update(agent: Agent, memory_id: UUID, changes: MemoryChanges, *, reason: str, deadline: Deadline) -> Memory:
    """Set what is known about a memory besides its text; what it says already is left alone.

    A subject is part of what a fact is found by, so its vector is made again.
    """
    with agent.transaction(deadline) as connection:
        kind = kind_of(connection, agent.id, memory_id)
        wanted = checked_changes(kind.name, changes)
        read = get_memory(connection, agent.id, kind, memory_id)
        row = connection.execute(BLOCKS["context_of"], {"agent_id": agent.id, "id": memory_id}).fetchone()
    vectors: dict[str, Any] = {}
    if isinstance(read, Fact) and wanted.get("subject", read.subject) != read.subject:
        vectors = vectors_about(agent, read.content, wanted["subject"], row[0] if row else None, deadline)
    begun = agent.space_transaction if vectors else agent.transaction
    with begun(deadline) as connection:
        memory = locked_memory(connection, agent.id, kind, memory_id)
        fresh = {name: value for name, value in wanted.items() if value != getattr(memory, name)}
        if not fresh:
            return memory
        agent.rights.check_may_change(memory)
        if fresh.get("is_pinned"):
            agent.rights.check_may_pin()
        values = plain(fresh) | vectors
        if isinstance(memory, Fact):
            values |= dependent_values(memory, fresh)
        action = "changed" if set(fresh) != {"is_pinned"} else "pinned" if fresh["is_pinned"] else "unpinned"
        cause = Cause("agent", action, reason, effective_at=datetime.now(UTC))
        return change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)


def checked_changes(kind: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an update was told, checked; raise `InvalidInput` for what this kind of memory does not have."""
    stray = sorted(set(changes) - set(UPDATABLE[kind]))
    if stray:
        known = ", ".join(UPDATABLE[kind])
        raise InvalidInput(f"{stray[0]!r} can't be updated; of this {kind} you can update {known}")
    if not changes:
        raise InvalidInput(f"say what to change of the {kind}: {', '.join(UPDATABLE[kind])}")
    rows, now = rows_of(MemoryChanges), datetime.now(UTC)
    return {name: rows[name].checked(value, now=now) for name, value in changes.items()}


def dependent_values(fact: Fact, fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a fact that follow from those about to change: its slot and its shorter texts."""
    became = {**asdict(fact), **fresh}
    if fact.category == DOCUMENT and {"subject", "category"} & set(fresh):
        raise Refused(f"fact {fact.id} is the document {fact.subject!r}; rename it by the adapter that keeps it")
    if became["valid_from"] and became["valid_to"] and became["valid_to"] < became["valid_from"]:
        times = f"valid_to {became['valid_to'].isoformat()} lies before valid_from {became['valid_from'].isoformat()}"
        raise InvalidInput(times)
    if not {"subject", "category", "tags"} & set(fresh):
        return {}
    return {"slot": slot_of(fact.content, became["subject"]), **stored_levels(became)}


def vectors_about(
    agent: Agent, content: str, subject: str | None, context: str | None, deadline: Deadline
) -> dict[str, Any]:
    """Return the vector columns of a fact whose subject changes."""
    texts = list(dict.fromkeys(passages(content, subject, context)))
    vectors = dict(zip(texts, agent.embed(texts, deadline), strict=True))
    around = recall_vector(content, subject, context, vectors)
    return {
        "embedding": Vector(vectors[content]).to_text(),
        "context_embedding": None if around is None else Vector(around).to_text(),
        "embedding_space_id": agent.embedder.space.id,
    }
