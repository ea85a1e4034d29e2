"""Verbs for memories of any kind: forget, restore, pin, and update of fields other than the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import UUID

from psycopg import Connection
from psycopg.errors import UniqueViolation
from psycopg.sql import SQL

from nous_online.core.deadline import Deadline
from nous_online.core.details import MemoryChanges
from nous_online.core.domain import DOCUMENT, EPISODE, KINDS, Episode, Fact, Kind, Memory
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.core.fields import rows_of
from nous_online.core.validation import checked_id, checked_text
from nous_online.database.changes import Cause, change_memory, get_memory, json_values, lock_memory, version_of
from nous_online.database.statements import statements
from nous_online.language.embedding import passages
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.contradictions import mark_sides
from nous_online.memories.learning import slot_of
from nous_online.memories.levels import stored_levels
from nous_online.memories.store import lock_agent, vector_columns
from nous_online.memories.undoing import check_names

BLOCKS = statements("nous_online.memories", "memory_changes.sql")
REACH = statements("nous_online.memories", "reach.sql")
MAX_REASON_BYTES = 4 * 1024
UPDATABLE: Mapping[str, tuple[str, ...]] = {
    "fact": ("tags", "subject", "category", "confidence", "valid_from", "valid_to", "is_pinned"),
    "episode": ("tags", "is_pinned"),
    "procedure": ("tags", "is_pinned"),
    "censor": ("is_pinned",),
}
"""What `update` may set of each kind. A text never changes: another text is another statement."""


@dataclass(frozen=True)
class Forgotten:
    """A forgotten memory, and the superseded facts that stay out of recall with it."""

    memory: Memory
    merged: tuple[UUID, ...]
    """Facts that were merged into it; they don't become active again."""
    replaced: tuple[UUID, ...]
    """Facts that it had replaced; they don't become active again."""


class MemoryVerbs(Verbs):
    """What an agent does with a memory of any kind."""

    def forget(self, memory_id: UUID, *, reason: str, deadline_s: float | None = None) -> Forgotten:
        """Take a memory of any kind out of recall, contexts and questions about the past, at once and with a reason.

        However often it was confirmed. Its row, statements and history stay, so `restore` and `undo` bring it back. No
        night does, and learning the same words again stores a new fact that names the forgotten one. Forgetting twice
        changes nothing. Facts that were merged into it, or that it had replaced, stay out of recall too: the answer
        names them. What must leave the disk is erased instead: `nous erase --memory`. Raises `NotFound`, and
        `Forbidden` for what is trusted more than the caller may claim, or pinned if it may not pin.
        """
        why = checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        agent, known_id, now = self.agent, checked_id("memory_id", memory_id), datetime.now(UTC)
        with self._transaction(deadline_s) as connection:
            kind, memory = locked_of_any_kind(connection, agent.id, known_id)
            agent.rights.check_may_change(memory)
            values: dict[str, Any] = {"is_forgotten": True}
            if memory.state != "archived":
                values |= {"state": "archived", "archived_at": now.isoformat()}
            if not memory.is_forgotten:
                cause = Cause("agent", "forgotten", why, effective_at=now)
                memory = change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)
                mark_sides(connection, agent.id, known_id, cause=replace(cause, action="marked"))
            gone = gave_way_to(connection, agent.id, known_id)
        merged, replaced = (tuple(each for each, is_merged in gone if is_merged is wanted) for wanted in (True, False))
        return Forgotten(memory, merged, replaced)

    def restore(self, memory_id: UUID, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Bring back a memory that was forgotten, or archived by a night, to the state it was in, and return it.

        What had been superseded comes back as superseded. One that is not archived is returned as it is. Raises
        `NotFound`, `Conflict` where another procedure took its name since, and `Refused` where another document did.
        """
        why = "restored by hand" if reason is None else checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        agent, known_id = self.agent, checked_id("memory_id", memory_id)
        with self._transaction(deadline_s) as connection:
            kind, memory = locked_of_any_kind(connection, agent.id, known_id)
            if memory.state != "archived":
                return memory
            agent.rights.check_may_change(memory)
            cause = Cause("agent", "restored", why, effective_at=datetime.now(UTC))
            memory = bring_back(connection, agent.id, kind, memory, cause=cause)
        if isinstance(memory, Episode):
            agent.awake.set()
        return memory

    def pin(self, memory_id: UUID, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Keep nights from archiving or condensing a memory of any kind, and return it; raise `NotFound` if unknown."""
        return self.update(memory_id, reason=reason or "pinned by hand", deadline_s=deadline_s, is_pinned=True)

    def unpin(self, memory_id: UUID, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Let nights archive and condense a memory again, and return it; raise `NotFound` if unknown."""
        return self.update(memory_id, reason=reason or "unpinned by hand", deadline_s=deadline_s, is_pinned=False)

    def update(
        self,
        memory_id: UUID,
        *,
        reason: str | None = None,
        deadline_s: float | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> Memory:
        """Correct what is known about a memory besides its text, and return it; what it says already is left alone.

        A fact takes tags, subject, category, confidence, valid_from, valid_to and is_pinned; an episode and a procedure
        tags and is_pinned; a censor is_pinned. A text never changes: say the other one with `learn`. Raises
        `InvalidInput` for anything else, and `NotFound`.
        """
        why = "corrected by hand" if reason is None else checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        agent, deadline, known_id = self.agent, self.agent.deadline(deadline_s), checked_id("memory_id", memory_id)
        with agent.transaction(deadline) as connection:
            kind = kind_of(connection, agent.id, known_id)
            wanted = checked_changes(kind.name, changes)
            read = get_memory(connection, agent.id, kind, known_id)
            row = connection.execute(BLOCKS["context_of"], {"agent_id": agent.id, "id": known_id}).fetchone()
        vectors: dict[str, Any] = {}
        if isinstance(read, Fact) and wanted.get("subject", read.subject) != read.subject:
            # A subject is part of what a fact is found by, so its vector is made again.
            told = (read.content, wanted["subject"], row[0] if row else None)
            texts = list(dict.fromkeys(passages(*told)))
            made = dict(zip(texts, agent.embed(texts, deadline), strict=True))
            vectors = vector_columns(*told, made, agent.embedder.space.id)
        begun = agent.space_transaction if vectors else agent.transaction
        with begun(deadline) as connection:
            memory = lock_memory(connection, agent.id, kind, known_id)
            fresh = {name: value for name, value in wanted.items() if value != getattr(memory, name)}
            if not fresh:
                return memory
            agent.rights.check_may_change(memory)
            if fresh.get("is_pinned"):
                agent.rights.check_may_pin()
            dependent = dependent_values(memory, fresh) if isinstance(memory, Fact) else {}
            action = "changed" if set(fresh) != {"is_pinned"} else "pinned" if fresh["is_pinned"] else "unpinned"
            cause = Cause("agent", action, why, effective_at=datetime.now(UTC))
            values = json_values(fresh) | vectors | dependent
            return change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)


def kind_of(connection: Connection, agent_id: str, memory_id: UUID) -> Kind[Any]:
    """Return the kind of a memory; raise `NotFound` when this agent has none with that id."""
    row = connection.execute(BLOCKS["kind_of"], {"agent_id": agent_id, "id": memory_id}).fetchone()
    if row is None:
        raise NotFound(f"agent {agent_id!r} has no memory {memory_id}")
    return KINDS[row[0]]


def check_forgettable(agent: Agent, memory_id: UUID, reach: Mapping[str, str | None], deadline: Deadline) -> None:
    """Raise `NotFound` for a memory the caller could not recall, `Refused` for one that only a person may forget."""
    # Else a prompt injection could make a model drop what a person pinned, and its own censors.
    query = SQL(BLOCKS["kind_in_reach"]).format(in_reach=SQL(REACH["in_reach"]))
    with agent.transaction(deadline) as connection:
        row = connection.execute(query, {"agent_id": agent.id, "id": memory_id, **reach}).fetchone()
    if row is None:
        raise NotFound(f"agent {agent.id!r} has no memory {memory_id} in reach of user and project {[*reach.values()]}")
    if row[0] == "censor" or row[1]:
        what = "a censor" if row[0] == "censor" else "pinned"
        raise Refused(f"memory {memory_id} is {what}: a person forgets it, with `nous forget {memory_id}`")


def locked_of_any_kind(connection: Connection, agent_id: str, memory_id: UUID) -> tuple[Kind[Any], Any]:
    """Lock the agent, then a memory, until the transaction ends; return the memory's kind and the memory."""
    lock_agent(connection, agent_id)
    kind = kind_of(connection, agent_id, memory_id)
    return kind, lock_memory(connection, agent_id, kind, memory_id)


def gave_way_to(connection: Connection, agent_id: str, memory_id: UUID) -> list[tuple[UUID, bool]]:
    """Return the facts superseded by one, each with whether it was merged (else it was replaced)."""
    return connection.execute(BLOCKS["gave_way_to"], {"agent_id": agent_id, "id": memory_id}).fetchall()


def bring_back(connection: Connection, agent_id: str, kind: Kind[Any], memory: Any, *, cause: Cause) -> Memory:
    """Restore an archived memory to its earlier state; an episode that was not completed is queued again."""
    key = {"agent_id": agent_id, "id": memory.id}
    row = connection.execute(BLOCKS["state_before_archive"], key).fetchone()
    state = row[0] if row else "active"
    if state == "superseded" and memory.superseded_by is None:  # what had replaced it was erased since
        state = "active"
    values = {"state": state, "archived_at": None, "is_forgotten": False}
    try:
        change_memory(connection, agent_id, version_of(kind, memory), values, cause=cause)
    except UniqueViolation as error:
        message = f"another {kind.name} took the place of {memory.id} since; forget that one first, then restore it"
        raise Conflict(message) from error
    check_names(connection, agent_id, [memory.id])
    mark_sides(connection, agent_id, memory.id, cause=replace(cause, action="marked"))
    back = get_memory(connection, agent_id, kind, memory.id)
    if kind is EPISODE and state == "closed" and back.completed_at is None:
        connection.execute(BLOCKS["queue_again"], key)
    return back


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
