"""The working memory of sessions: loaded, weighed and evicted under a row lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.details import ContextDetails
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.core.fields import check_known, checked_details
from nous_online.core.policy import DEFAULT_SESSION, SessionPolicy
from nous_online.core.validation import (
    ACTIVE_CENSORS,
    FRAME,
    checked_optional,
    told_as,
)
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import Agent
from nous_online.memories.working_memory import (
    NOTE,
    Focus,
    Held,
    Item,
    Session,
    WorkingMemory,
    held_items,
    joined,
    overflow,
    refocused,
    shown,
    weighed,
    without,
)

SQL = statements("nous_online.memories", "sessions.sql")
POLICY = SessionPolicy()
MAX_THREAD_BYTES = 2000
ROUNDS = 5
UNKNOWN = 0.0
"""The relevance of what can't be compared with a task, or has none to be compared with."""


@dataclass(frozen=True)
class Load:
    """What is to be loaded, checked; a kind of None is any."""

    memories: tuple[tuple[str | None, UUID], ...]
    note: str | None
    relevance: float | None


def checked_session(value: object) -> str:
    """Return the id of a session."""
    text = checked_optional("session_id", value, max_characters=100)
    if text is None:
        raise InvalidInput("session_id is empty; leave it out for the default session")
    return text


def checked_load(details: ContextDetails) -> Load:
    """Check what is to be loaded; raise `InvalidInput` naming what to mend."""
    check_known(details, ContextDetails)
    told = checked_details(ContextDetails, details)
    kinds = {"fact_ids": "fact", "episode_ids": "episode", "censor_ids": "censor", "memory_ids": None}
    wanted = [] if told["procedure_id"] is None else [("procedure", told["procedure_id"])]
    wanted += [(kind, each) for name, kind in kinds.items() for each in told[name] or ()]
    if not wanted and told["note"] is None:
        raise InvalidInput("there is nothing to load; name memories by their ids, or give a note")
    return Load(tuple(wanted), told["note"], told["relevance"])


def checked_list(name: str, values: object) -> Sequence[object]:
    """Return the ids named in a list; None counts as an empty one."""
    if values is None:
        return ()
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInput(f"{name} must be a list of ids, got {values!r}")
    entries = cast("Sequence[object]", values)
    if len(entries) > POLICY.max_capacity:
        raise InvalidInput(f"{name} has {len(entries):,} entries, the limit is {POLICY.max_capacity}")
    return entries


# --- what a session is about, and what it holds ---


def focus(agent: Agent, session_id: str, wanted: Focus, deadline: Deadline) -> WorkingMemory:
    """Give a session its situation and, where one is told, its task: it is weighed anew, and lets go of the least."""
    if wanted.task is None:
        with agent.transaction(deadline) as connection:
            session = within_bounds(wanted.of(locked(connection, agent.id, session_id)))
            connection.execute(SQL["situate_session"], situation_row(agent.id, session))
            return settled(connection, agent.id, session)
    with agent.transaction(deadline) as connection:
        known = read(connection, agent.id, session_id)
    notes = known.notes if known else []
    vector, *note_vectors = agent.embed([wanted.task, *(note.text or "" for note in notes)], deadline)
    with agent.space_transaction(deadline) as connection:
        session = locked(connection, agent.id, session_id)
        session = refocused(session, wanted.task, note_id=uuid4(), at=datetime.now(UTC))
        session = within_bounds(wanted.of(session))
        told = {"task": wanted.task, "vector": Vector(vector), "space_id": agent.embedder.space.id}
        connection.execute(SQL["focus_session"], {**situation_row(agent.id, session), **told})
        vectors = {note.id: each for note, each in zip(notes, note_vectors, strict=True)}
        relevance = weigh(connection, agent, session_id, [item.id for item in session.items], vectors)
        items = weighed(session.items, relevance)
        return settled(connection, agent.id, replace(session, items=tuple(items)))


def situation_row(agent_id: str, session: Session) -> dict[str, Any]:
    """Return the columns that say in which situation a session goes on, with its key."""
    censors = None if session.active_censors is None else Jsonb(session.active_censors)
    named = key(agent_id, session.session_id)
    return {**named, "frame": session.frame, "active_censors": censors, "capacity": session.capacity}


def situated(agent: Agent, details: Mapping[str, Any], known: type, deadline: Deadline) -> dict[str, Any]:
    """Return details with the frame and censors of the session they name, where none are told and `known` has them."""
    told, session_id = dict(details), checked_optional("session_id", details.get("session_id"), max_characters=100)
    wanted = [each for each in (FRAME, ACTIVE_CENSORS) if each[0] in known.__annotations__]
    missing = [each[0] for each in wanted if told_as(told, each)[1] is None]
    if session_id is None or not missing:
        return told
    with agent.transaction(deadline) as connection, connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SQL["read_situation"], key(agent.id, session_id)).fetchone() or {}
    return told | {name: row[name] for name in missing if row.get(name) is not None}


def load_context(agent: Agent, session_id: str, wanted: Load, deadline: Deadline) -> WorkingMemory:
    """Take memories or a note into a session; raise `NotFound` for a memory this agent has not."""
    vectors: dict[UUID, Vectors] = {}
    if wanted.note is not None:
        vectors = {uuid4(): agent.embed([wanted.note], deadline)[0]}
    with agent.transaction(deadline) as connection:
        session = locked(connection, agent.id, session_id)
        kinds = kinds_of(connection, agent.id, wanted.memories)
        relevance = weigh(connection, agent, session_id, list(kinds), vectors)
        now = datetime.now(UTC)
        texts = {**dict.fromkeys(kinds), **dict.fromkeys(vectors, wanted.note)}
        new = [
            Item(
                kind=kinds.get(each, NOTE),
                id=each,
                relevance=relevance.get(each, UNKNOWN) if wanted.relevance is None else wanted.relevance,
                loaded_at=now,
                is_explicit=wanted.relevance is not None,
                text=text,
            )
            for each, text in texts.items()
        ]
        return settled(connection, agent.id, with_items(session, new))


def load(connection: Connection, agent: Agent, session_id: str, memories: Sequence[tuple[str, UUID]]) -> None:
    """Take memories, each a kind and an id, into a session within the caller's transaction."""
    session = locked(connection, agent.id, session_id)
    kinds = kinds_of(connection, agent.id, memories)
    relevance = weigh(connection, agent, session_id, list(kinds), {})
    now = datetime.now(UTC)
    new = [Item(kind, each, relevance.get(each, UNKNOWN), now) for each, kind in kinds.items()]
    settled(connection, agent.id, with_items(session, new))


def with_items(session: Session, new: Sequence[Item]) -> Session:
    """Return a session with new items; raises as `within_bounds` does."""
    return within_bounds(replace(session, items=tuple(joined(session.items, new))))


def within_bounds(session: Session) -> Session:
    """Return the session; raise `InvalidInput` when its notes have become more than an episode should hold."""
    size = sum(len((note.text or "").encode()) for note in session.notes)
    if size > POLICY.max_notes_bytes:
        message = (
            f"the notes of session {session.session_id!r} would come to {size:,} bytes, the limit is "
            f"{POLICY.max_notes_bytes:,}; end the session, which keeps them as an episode, or learn them as facts"
        )
        raise InvalidInput(message)
    return session


def unload(agent: Agent, session_id: str, ids: Sequence[UUID], deadline: Deadline) -> WorkingMemory:
    """Let go of items by their ids, ids that are not held are passed over; notes are kept for the episode."""
    with agent.transaction(deadline) as connection:
        session = locked(connection, agent.id, session_id)
        gone = [item for item in held_items(session.items) if item.id in set(ids)]
        return settled(connection, agent.id, replace(session, items=tuple(without(session.items, gone))))


def open_thread(agent: Agent, session_id: str, text: str, deadline: Deadline) -> WorkingMemory:
    """Keep in mind what is still to be done; opening the same twice is one thread."""
    with agent.transaction(deadline) as connection:
        session = locked(connection, agent.id, session_id)
        threads = tuple(dict.fromkeys((*session.open_threads, text)))
        if len(threads) > POLICY.max_thread_count:
            raise InvalidInput(
                f"session {session_id!r} has {POLICY.max_thread_count} open threads already; close one first"
            )
        return settled(connection, agent.id, replace(session, open_threads=threads))


def close_thread(agent: Agent, session_id: str, thread: str | int, deadline: Deadline) -> WorkingMemory:
    """Close a thread by its text or its place; raise `NotFound` when there is none such."""
    with agent.transaction(deadline) as connection:
        session = locked(connection, agent.id, session_id)
        threads = list(session.open_threads)
        found = [text for place, text in enumerate(threads) if thread in (text, place) and not isinstance(thread, bool)]
        if not found:
            raise NotFound(f"session {session_id!r} has no open thread {thread!r}; it has {threads}")
        threads.remove(found[0])
        return settled(connection, agent.id, replace(session, open_threads=tuple(threads)))


def get(agent: Agent, session_id: str, deadline: Deadline) -> WorkingMemory:
    """Return what a session holds; one that was never begun holds nothing."""
    with agent.transaction(deadline) as connection:
        session = read(connection, agent.id, session_id)
        if session is None:
            return WorkingMemory(session_id, None, None, (), (), POLICY.capacity, None)
        episode_id = episode_of(connection, agent.id, session_id) or session.episode_id
        return view(connection, agent.id, replace(session, episode_id=episode_id))


# --- the row ---


def key(agent_id: str, session_id: str) -> dict[str, Any]:
    """Return the parameters that name a session."""
    return {"agent_id": agent_id, "session_id": session_id}


def read(connection: Connection, agent_id: str, session_id: str) -> Session | None:
    """Return a session as it is."""
    return session_row(connection, "read_session", agent_id, session_id)


def locked_session(connection: Connection, agent_id: str, session_id: str) -> Session | None:
    """Lock a session until the transaction ends and return it; None when there is none."""
    return session_row(connection, "lock_session", agent_id, session_id)


def locked(connection: Connection, agent_id: str, session_id: str) -> Session:
    """Lock a session, begun if need be, until the transaction ends and return it.

    One that ended while it was waited for is begun anew. Raises `Conflict` when that happens again and again.
    """
    for _ in range(ROUNDS):
        connection.execute(SQL["begin_session"], {**key(agent_id, session_id), "capacity": POLICY.capacity})
        session = locked_session(connection, agent_id, session_id)
        if session is not None:
            return session
    raise Conflict(f"session {session_id!r} ended {ROUNDS} times while it was waited for; try again")


def existing(session: Session | None, agent_id: str, session_id: str) -> Session:
    """Return a session that is there; raise `NotFound` when it is not."""
    if session is None:
        raise NotFound(f"agent {agent_id!r} has no session {session_id!r}: it has ended, or was never begun")
    return session


def session_row(connection: Connection, statement: str, agent_id: str, session_id: str) -> Session | None:
    """Return the session a statement yields."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SQL[statement], key(agent_id, session_id)).fetchone()
    if row is None:
        return None
    row["items"] = tuple(Item.from_json(item) for item in row["items"])
    row["open_threads"] = tuple(row["open_threads"])
    return Session(**row)


def episode_of(connection: Connection, agent_id: str, session_id: str) -> UUID | None:
    """Return the id of the open episode of a session."""
    parameters = {**key(agent_id, session_id), "default_session": DEFAULT_SESSION}
    row = connection.execute(SQL["session_episode"], parameters).fetchone()
    return row[0] if row else None


def settled(connection: Connection, agent_id: str, session: Session) -> WorkingMemory:
    """Let go of what is too much, store the session, and return what it holds now."""
    gone = overflow(session.items, session.capacity)
    stored = replace(
        session,
        items=tuple(without(session.items, gone)),
        episode_id=episode_of(connection, agent_id, session.session_id) or session.episode_id,
    )
    row = {
        **key(agent_id, session.session_id),
        "items": Jsonb([item.as_json() for item in stored.items]),
        "open_threads": Jsonb(list(stored.open_threads)),
        "episode_id": stored.episode_id,
    }
    connection.execute(SQL["store_session"], row)
    return view(connection, agent_id, stored, gone)


def view(connection: Connection, agent_id: str, session: Session, gone: Sequence[Item] = ()) -> WorkingMemory:
    """Return a session as it is shown, with the texts its memories have now."""
    held = held_items(session.items)
    memories = shown_memories(connection, agent_id, [item.id for item in (*held, *gone) if item.kind != NOTE])
    order = sorted(held, key=lambda item: (item.relevance, item.loaded_at), reverse=True)
    return WorkingMemory(
        session_id=session.session_id,
        task=session.task,
        frame=session.frame,
        items=seen(order, memories),
        open_threads=session.open_threads,
        capacity=session.capacity,
        episode_id=session.episode_id,
        evicted=seen(gone, memories),
        active_censors=session.active_censors,
    )


def seen(items: Sequence[Item], memories: Mapping[UUID, Mapping[str, Any]]) -> tuple[Held, ...]:
    """Return items as they are shown, without those whose memory was erased."""
    entries = (shown(item, memories.get(item.id), max_characters=POLICY.shown_characters) for item in items)
    return tuple(entry for entry in entries if entry is not None)


def shown_memories(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return kind, state and short text of memories by their id; absent ones are left out."""
    if not ids:
        return {}
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["show_memories"], {"agent_id": agent_id, "ids": list(ids)}).fetchall()
    return {row["id"]: row for row in rows}


def kinds_of(connection: Connection, agent_id: str, wanted: Sequence[tuple[str | None, UUID]]) -> dict[UUID, str]:
    """Return the kinds of memories by their id; raise `NotFound` for one this agent has not, or not of that kind."""
    found = shown_memories(connection, agent_id, [each for _, each in wanted])
    for kind, each in wanted:
        if each not in found or kind not in (None, found[each]["kind"]):
            raise NotFound(f"agent {agent_id!r} has no {kind or 'memory'} {each}")
    return {each: found[each]["kind"] for _, each in wanted}


def weigh(
    connection: Connection, agent: Agent, session_id: str, ids: Sequence[UUID], notes: Mapping[UUID, Vectors]
) -> dict[UUID, float]:
    """Return how near memories and notes are to the task of a session, by cosine, where that can be said."""
    row = {
        **key(agent.id, session_id),
        "ids": list(ids),
        "space_id": agent.embedder.space.id,
    }
    relevance = dict(connection.execute(SQL["weigh_memories"], row).fetchall()) if ids else {}
    if notes:
        vectors = [Vector(vector).to_text() for vector in notes.values()]
        row |= {"ids": list(notes), "vectors": vectors}
        relevance |= dict(connection.execute(SQL["weigh_notes"], row).fetchall())
    return relevance
