"""The verbs for memories of any kind: get, forget, restore, pin, and update besides the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Unpack, get_args
from uuid import UUID

from psycopg import Connection
from psycopg.errors import UniqueViolation
from psycopg.rows import class_row
from psycopg.sql import SQL

from nous_online.core.deadline import Deadline
from nous_online.core.details import ListedState, MemoryChanges, MemoryFilter
from nous_online.core.domain import DOCUMENT, EPISODE, FACT, KINDS, Episode, Fact, Kind, Memory
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.core.fields import check_known, checked_details, rows_of
from nous_online.core.policy import MAX_REASON_BYTES
from nous_online.core.validation import checked_choice, checked_id, checked_text
from nous_online.database.changes import Cause, change_memory, get_memory, json_values, lock_memory, version_of
from nous_online.database.statements import fetch, fill_columns, statements
from nous_online.language.embedding import passages
from nous_online.memories import store
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.contradictions import mark_sides
from nous_online.memories.episodes import queue_again
from nous_online.memories.facts import merge
from nous_online.memories.learning import slot_of
from nous_online.memories.levels import stored_levels
from nous_online.memories.undoing import undo_supersession

BLOCKS = statements("nous_online.memories", "memory_changes.sql")
REACH = statements("nous_online.memories", "reach.sql")
LISTS = statements("nous_online.memories", "memory_lists.sql")
RECALLED = ("active", "open", "closed", "review")
"""The states in which recall finds a memory."""
SPECIAL = re.compile(r"[%_\\]")
"""Characters with a meaning in a pattern of LIKE."""
UPDATABLE: Mapping[str, tuple[str, ...]] = {
    "fact": ("tags", "subject", "category", "confidence", "valid_from", "valid_to", "is_pinned"),
    "episode": ("tags", "is_pinned"),
    "procedure": ("tags", "is_pinned"),
    "censor": ("is_pinned",),
}
"""What `update` may set of each kind. A text never changes: another text is another statement."""


@dataclass(frozen=True)
class ListedMemory:
    """A memory of any kind as a list shows it."""

    kind: str
    id: UUID
    state: str
    text: str
    """Its first 1,000 characters; of an episode those of its summary."""
    about: str | None
    """The subject of a fact, title of an episode, domain of a procedure, severity of a censor."""
    at: datetime
    """When it was learned, or an episode begun."""
    trust: int
    is_pinned: bool
    is_forgotten: bool
    source: str | None
    user_id: str | None
    project_id: str | None
    confirmation_count: int
    begins_at: datetime | None
    """From when a fact holds, where that lies ahead."""


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

    def get(self, memory_id: UUID | str, *, deadline_s: float | None = None) -> Any:
        """Return one memory of any kind in whatever state it is: a `Fact`, `Episode`, `Procedure` or `Censor`.

        Raises `NotFound` when this agent has none of that id.
        """
        known_id = checked_id("memory_id", memory_id)
        with self._transaction(deadline_s) as connection:
            kind = kind_of(connection, self.agent.id, known_id)
            return get_memory(connection, self.agent.id, kind, known_id)

    def list_memories(self, *, deadline_s: float | None = None, **wanted: Unpack[MemoryFilter]) -> list[ListedMemory]:
        """Return memories of all kinds, or of those that are asked for, the latest first.

        For the next page tell the last one of this page as `before`. Raises `InvalidInput`, and `NotFound` for a
        `before` that is no memory of this agent.
        """
        check_known(wanted, MemoryFilter)
        told = checked_details(MemoryFilter, wanted)
        kinds = told["kinds"] or KINDS
        for kind in kinds:
            checked_choice("kinds", kind, [*KINDS])
        states = {"current": RECALLED, "any": get_args(ListedState)}.get(told["state"], (told["state"],))
        parts = {name: pattern_of(told[name]) for name in ("about", "source")}
        with self._transaction(deadline_s) as connection:
            place = place_of(connection, self.agent.id, told["before"])
            told |= {"agent_id": self.agent.id, "kinds": [*kinds], "states": [*states], **parts, **place}
            statement = fill_columns(LISTS["list_memories"], ListedMemory, rows=LISTS["listed_rows"])
            # Not prepared: a generic plan scans all memories, a plan for these values uses the index that fits them.
            rows = connection.cursor(row_factory=class_row(ListedMemory))
            return rows.execute(statement, told, prepare=False).fetchall()

    def forget(self, memory_id: UUID | str, *, reason: str | None = None, deadline_s: float | None = None) -> Forgotten:
        """Remove a memory of any kind from recall, contexts and questions about the past, at once.

        Its row, statements and history stay, so `restore` and `undo` bring it back; nights don't. Learning the same
        words again stores a new fact that names the forgotten one. Forgetting twice changes nothing. Facts that it has
        superseded stay out of recall, too: the answer names them. To delete a memory from the disk, erase it with
        `nous erase --memory`. `reason` is kept with the event; without one, that the agent forgot it. Raises
        `NotFound`, and `Forbidden` for a memory that is trusted more than the caller may claim, or pinned if the caller
        may not pin.
        """
        why = checked_text("reason", "the agent forgot it" if reason is None else reason, max_bytes=MAX_REASON_BYTES)
        agent, known_id, now = self.agent, checked_id("memory_id", memory_id), datetime.now(UTC)
        with self._transaction(deadline_s) as connection:
            kind, memory = lock_any_memory(connection, agent.id, known_id)
            agent.rights.check_may_change(memory)
            values: dict[str, Any] = {"is_forgotten": True}
            if memory.state != "archived":
                values |= {"state": "archived", "archived_at": now.isoformat()}
            if not memory.is_forgotten:
                cause = Cause("agent", "forgotten", why, effective_at=now)
                memory = change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)
                mark_sides(connection, agent.id, [known_id], cause=replace(cause, action="marked"))
            superseded = store.find_superseded(connection, agent.id, known_id)
        merged = tuple(each for each, is_merged in superseded if is_merged)
        replaced = tuple(each for each, is_merged in superseded if not is_merged)
        return Forgotten(memory, merged, replaced)

    def restore(
        self,
        memory_id: UUID | str,
        *,
        reason: str | None = None,
        is_active: bool = False,
        deadline_s: float | None = None,
    ) -> Memory:
        """Restore a memory that was forgotten, or archived by a night, to its earlier state, and return it.

        A superseded fact is superseded again, and no recall finds it, unless `is_active` is told: then what superseded
        it is undone too. A fact that was learned again meanwhile is merged into the one that says the same, which
        `undo` takes back, unless `is_active` is told: then both are active. A memory that is not archived is otherwise
        returned as it is. Raises `NotFound`, `Conflict` when another procedure has its name by now, and `Refused` when
        another document has it, or a night superseded it: `nous undo` undoes the whole proposal.
        """
        why = "restored by hand" if reason is None else checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        agent, known_id = self.agent, checked_id("memory_id", memory_id)
        with self._transaction(deadline_s) as connection:
            store.lock_agent(connection, agent.id)
            kind, memory = lock_any_memory(connection, agent.id, known_id)
            is_raised = is_active and isinstance(memory, Fact) and memory.superseded_by is not None
            if memory.state == "archived":
                memory = restore_archived(connection, agent, kind, memory, reason=why)
                if isinstance(memory, Fact) and not is_active:
                    memory = merged_with_twin(connection, agent, memory, reason=why)
            if is_raised:
                undo_supersession(connection, agent, known_id, reason=why)
                memory = get_memory(connection, agent.id, kind, known_id)
        if isinstance(memory, Episode):
            agent.awake.set()
        return memory

    def pin(self, memory_id: UUID | str, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Keep nights from archiving or condensing a memory of any kind, and return it; raise `NotFound` if unknown."""
        return self.update(memory_id, reason=reason or "pinned by hand", deadline_s=deadline_s, is_pinned=True)

    def unpin(self, memory_id: UUID | str, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Let nights archive and condense a memory again, and return it; raise `NotFound` if unknown."""
        return self.update(memory_id, reason=reason or "unpinned by hand", deadline_s=deadline_s, is_pinned=False)

    def update(
        self,
        memory_id: UUID | str,
        *,
        reason: str | None = None,
        deadline_s: float | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> Memory:
        """Update fields of a memory other than its text, and return it; equal values change nothing.

        A fact takes tags, subject, category, confidence, valid_from, valid_to and is_pinned; an episode and a procedure
        tags and is_pinned; a censor is_pinned. A text never changes: use `learn` for another one. Raises
        `InvalidInput` for any other field, and `NotFound`.
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
            parts = (read.content, wanted["subject"], row[0] if row else None)
            texts = list(dict.fromkeys(passages(*parts)))
            embedded = dict(zip(texts, agent.embed(texts, deadline), strict=True))
            vectors = store.vector_columns(*parts, embedded, agent.embedder.space.id)
        transaction = agent.space_transaction if vectors else agent.transaction
        with transaction(deadline) as connection:
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


def restore_archived(connection: Connection, agent: Agent, kind: Kind[Any], memory: Any, *, reason: str) -> Any:
    """Restore an archived memory to the state it was in before, and return it; raise as `restore` does."""
    agent.rights.check_may_change(memory)
    cause = Cause("agent", "restored", reason, effective_at=datetime.now(UTC))
    row = connection.execute(BLOCKS["state_before_archive"], {"agent_id": agent.id, "id": memory.id}).fetchone()
    state = row[0] if row else "active"
    if state == "superseded" and memory.superseded_by is None:  # what had replaced it was erased since
        state = "active"
    values = {"state": state, "archived_at": None, "is_forgotten": False}
    try:
        change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)
    except UniqueViolation as error:
        message = f"another {kind.name} took the place of {memory.id} since; forget that one first, then restore it"
        raise Conflict(message) from error
    store.check_names(connection, agent.id, [memory.id])
    mark_sides(connection, agent.id, [memory.id], cause=replace(cause, action="marked"))
    back = get_memory(connection, agent.id, kind, memory.id)
    if kind is EPISODE and state == "closed" and back.completed_at is None:
        queue_again(connection, agent.id, memory.id)  # archived before it was completed, it is due now
    return back


def merged_with_twin(connection: Connection, agent: Agent, back: Fact, *, reason: str) -> Fact:
    """Merge a restored fact into an active one of the same words, reach and validity, and return it.

    One that is pinned, the value of a key or trusted more stays beside the other: merged, it would lose that.
    """
    row = connection.execute(store.FACTS["said_too"], {"agent_id": agent.id, "id": back.id}).fetchone()
    twin = None if row is None or back.state != "active" else lock_memory(connection, agent.id, FACT, row[0])
    if twin is None or back.is_pinned or back.key or back.trust > twin.trust:
        return back
    if (back.valid_from, back.valid_to) != (twin.valid_from, twin.valid_to):
        return back
    return merge(connection, agent, back, twin, at=max(back.learned_at, twin.learned_at), reason=reason)


def place_of(connection: Connection, agent_id: str, memory_id: UUID | None) -> dict[str, Any]:
    """Return where in a list a page ends, as parameters of the query; raise `NotFound` for an unknown memory."""
    if memory_id is None:
        return {"before_at": None, "before_id": None}
    statement = SQL(LISTS["place_of"]).format(rows=SQL(LISTS["listed_rows"]))
    found = connection.execute(statement, {"agent_id": agent_id, "id": memory_id}).fetchone()
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no memory {memory_id} to list those before; begin at the first page")
    return {"before_at": found[0], "before_id": memory_id}


def named_memories(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, ListedMemory]:
    """Return memories by id as a list shows them; erased ones are missing."""
    key = {"agent_id": agent_id, "ids": list(ids)}
    named = LISTS["named_memories"]
    found = fetch(connection, ListedMemory, named, key, rows=LISTS["listed_rows"]) if ids else []
    return {each.id: each for each in found}


def pattern_of(part: str | None) -> str | None:
    """Return a pattern of LIKE for texts that contain a part; None for any text."""
    return None if part is None else "%" + SPECIAL.sub(r"\\\g<0>", part) + "%"


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
        raise NotFound(f"agent {agent.id!r} has no memory {memory_id} within reach of this call's user and project")
    if row[0] == "censor" or row[1]:
        what = "a censor" if row[0] == "censor" else "pinned"
        raise Refused(f"memory {memory_id} is {what}: a person forgets it, with `nous forget {memory_id}`")


def lock_any_memory(connection: Connection, agent_id: str, memory_id: UUID) -> tuple[Kind[Any], Any]:
    """Lock the agent, then a memory, until the transaction ends; return the memory's kind and the memory."""
    store.lock_agent(connection, agent_id)
    kind = kind_of(connection, agent_id, memory_id)
    return kind, lock_memory(connection, agent_id, kind, memory_id)


def checked_changes(kind: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of an update; raise `InvalidInput` for a field that this kind does not have."""
    unknown = sorted(set(changes) - set(UPDATABLE[kind]))
    if unknown:
        known = ", ".join(UPDATABLE[kind])
        raise InvalidInput(f"{unknown[0]!r} can't be updated; of this {kind} you can update {known}")
    if not changes:
        raise InvalidInput(f"say what to change of the {kind}: {', '.join(UPDATABLE[kind])}")
    rows, now = rows_of(MemoryChanges), datetime.now(UTC)
    return {name: rows[name].checked(value, now=now) for name, value in changes.items()}


def dependent_values(fact: Fact, fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a fact that follow from those about to change: its slot and its shorter texts."""
    values = {**asdict(fact), **fresh}
    if fact.category == DOCUMENT and {"subject", "category"} & set(fresh):
        raise Refused(f"fact {fact.id} is the document {fact.subject!r}; rename it by the adapter that keeps it")
    if values["valid_from"] and values["valid_to"] and values["valid_to"] < values["valid_from"]:
        times = f"valid_to {values['valid_to'].isoformat()} lies before valid_from {values['valid_from'].isoformat()}"
        raise InvalidInput(times)
    if not {"subject", "category", "tags"} & set(fresh):
        return {}
    return {"slot": slot_of(fact.content, values["subject"]), **stored_levels(values)}
