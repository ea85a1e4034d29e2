"""Working memory of sessions: items are loaded, ranked and evicted under a row lock, and end up in an episode."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import UUID, uuid4

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.details import (
    BeginningDetails,
    Capacity,
    ContextDetails,
    PartingDetails,
    SessionCensors,
    SessionFrame,
    SessionTask,
)
from nous_online.core.domain import EPISODE, Episode
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import DEFAULT_SESSION, MAX_DETAIL_BYTES, SessionPolicy
from nous_online.core.validation import checked_id, checked_list, checked_optional, checked_text
from nous_online.database.changes import get_memory, lock_memory
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories import episodes
from nous_online.memories.agent import Agent, Verbs, hide_credentials
from nous_online.memories.episodes import EpisodeChange, checked_beginning, checked_change

SQL = statements("nous_online.memories", "sessions.sql")
POLICY = SessionPolicy()
MAX_THREAD_BYTES = 2000
ROUNDS = 5
NOTE = "note"
"""The kind of an item that is a text of its own, not a memory."""
LOADED = {"fact_ids": "fact", "episode_ids": "episode", "censor_ids": "censor", "memory_ids": None}
"""Which kind of memory each list of `load_context` names; None is any."""
UNKNOWN = 0.0
"""Relevance of an item without a vector, or in a session without a task."""


@dataclass(frozen=True)
class Item:
    """One entry of a working memory as it is stored: a memory by its id, or a note by its text."""

    kind: str
    id: UUID
    relevance: float
    loaded_at: datetime
    is_explicit: bool = False
    """The agent gave its relevance, so a new task does not change it."""
    text: str | None = None
    is_set_aside: bool = False
    """An evicted note, kept for the session's episode."""

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "id": str(self.id), "loaded_at": self.loaded_at.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Item:
        converted: dict[str, Any] = {"id": UUID(value["id"]), "loaded_at": datetime.fromisoformat(value["loaded_at"])}
        return cls(**{**value, **converted})


@dataclass(frozen=True)
class Session:
    """A working memory as it is stored."""

    session_id: str
    task: str | None
    frame: str | None
    items: tuple[Item, ...]
    open_threads: tuple[str, ...]
    capacity: int
    episode_id: UUID | None
    created_at: datetime
    active_censors: list[str] | None = None

    @property
    def notes(self) -> list[Item]:
        """Every note of the session, held or set aside, in the order they were taken."""
        return sorted((item for item in self.items if item.kind == NOTE), key=lambda item: item.loaded_at)


@dataclass(frozen=True)
class Held:
    """One entry of a working memory as it is shown."""

    kind: str
    id: UUID
    text: str
    relevance: float
    loaded_at: datetime
    state: str
    """The memory's state now: it may have been superseded or archived since it was loaded."""
    superseded_by: UUID | None = None


@dataclass(frozen=True)
class WorkingMemory:
    """What a session is about and what it holds, the most relevant first."""

    session_id: str
    task: str | None
    frame: str | None
    items: tuple[Held, ...]
    open_threads: tuple[str, ...]
    capacity: int
    episode_id: UUID | None
    evicted: tuple[Held, ...] = ()
    """The items that this call evicted; memories stay stored, notes are kept for the session's episode."""
    active_censors: list[str] | None = None
    """The default of `active_censors` for verbs in this session, as `frame` is that of `frame`."""


@dataclass(frozen=True)
class SessionEnd:
    """The result of ending a session: the episode that has its texts, None where there were none."""

    session_id: str
    task: str | None
    episode: Episode | None
    released: tuple[UUID, ...]
    """The memories it held."""


class SessionVerbs(Verbs):
    """What an agent does with the working memory of a session, which is stored and safe for concurrent calls."""

    def focus(
        self,
        task: SessionTask = None,
        *,
        session_id: str = DEFAULT_SESSION,
        frame: SessionFrame = None,
        active_censors: SessionCensors = None,
        capacity: Capacity = None,
        deadline_s: float | None = None,
    ) -> WorkingMemory:
        """Set task, frame, censors or capacity of a session: its items are ranked again, the least relevant evicted.

        Begins the session if there is none. Parameters left out stay as they are. Frame and censors are the defaults of
        every verb that is called with this `session_id`.
        """
        deadline, about = self.agent.deadline(deadline_s), checked_as(SessionTask, "task", task)
        situation = {
            "frame": checked_as(SessionFrame, "frame", frame),
            "active_censors": checked_as(SessionCensors, "active_censors", active_censors),
            "capacity": checked_as(Capacity, "capacity", capacity),
        }
        given = {name: value for name, value in situation.items() if value is not None}
        name = checked_session(session_id)
        if about is not None:
            return refocus(self.agent, name, about, given, deadline)
        with self.agent.transaction(deadline) as connection:
            session = within_bounds(replace(lock_session(connection, self.agent.id, name), **given))
            connection.execute(SQL["situate_session"], situation_row(self.agent.id, session))
            return store_session(connection, self.agent.id, session)

    def load_context(
        self, *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None, **details: Unpack[ContextDetails]
    ) -> WorkingMemory:
        """Load memories, or a note, into working memory; the answer names the items evicted for them.

        The least relevant items are evicted, and among equals those loaded first; a new item may be one of them. The
        relevance of a memory is its cosine to the task, unless `relevance` is given. Raises `NotFound` and
        `InvalidInput`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, ContextDetails)
        values, _ = hide_credentials(checked_details(ContextDetails, details), ["note"], agent.rights)
        wanted = [] if values["procedure_id"] is None else [("procedure", values["procedure_id"])]
        wanted += [(kind, each) for name, kind in LOADED.items() for each in values[name] or ()]
        if not wanted and values["note"] is None:
            raise InvalidInput("there is nothing to load; name memories by their ids, or give a note")
        session, text, relevance = checked_session(session_id), values["note"], values["relevance"]
        notes = {} if text is None else {uuid4(): agent.embed([text], deadline)[0]}
        with agent.transaction(deadline) as connection:
            return load_items(connection, agent, session, wanted, notes=notes, text=text, relevance=relevance)

    def unload(
        self, ids: Sequence[UUID | str], *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Unload memories and notes by their ids; notes are kept for the session's episode."""
        item_ids = set(
            checked_list("ids", ids, lambda each: checked_id("the id of an item", each), most=POLICY.max_capacity)
        )
        with self._locked(session_id, deadline_s) as (connection, session):
            unloaded = [item for item in held_items(session.items) if item.id in item_ids]
            left = replace(session, items=tuple(without(session.items, unloaded)))
            return store_session(connection, self.agent.id, left)

    def open_thread(
        self, text: str, *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Add an open thread, something to be done; open threads are stored in the session's episode at its end."""
        thread = checked_text("thread", text, max_bytes=MAX_THREAD_BYTES)
        with self._locked(session_id, deadline_s) as (connection, session):
            threads = tuple(dict.fromkeys((*session.open_threads, thread)))
            if len(threads) > POLICY.max_thread_count:
                limit = f"session {session.session_id!r} has {POLICY.max_thread_count} open threads already"
                raise InvalidInput(f"{limit}; close one first")
            return store_session(connection, self.agent.id, replace(session, open_threads=threads))

    def close_thread(
        self, thread: str | int, *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Close a thread by its text or its place from 0; raise `NotFound` when there is none."""
        with self._locked(session_id, deadline_s) as (connection, session):
            threads = list(session.open_threads)
            is_named = not isinstance(thread, bool)
            found = [place for place, text in enumerate(threads) if is_named and thread in (text, place)]
            if not found:
                raise NotFound(f"session {session.session_id!r} has no open thread {thread!r}; it has {threads}")
            del threads[found[0]]
            return store_session(connection, self.agent.id, replace(session, open_threads=tuple(threads)))

    def get_working_memory(
        self, session_id: str = DEFAULT_SESSION, *, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Return the items of a session, the most relevant first, with short texts.

        The `state` of a memory may have become superseded or archived; forgotten and erased ones are left out.
        """
        name, agent_id = checked_session(session_id), self.agent.id
        with self._transaction(deadline_s) as connection:
            session = read_session(connection, agent_id, name)
            if session is None:
                return WorkingMemory(name, None, None, (), (), POLICY.capacity, None)
            episode_id = episode_of(connection, agent_id, name) or session.episode_id
            return show_session(connection, agent_id, replace(session, episode_id=episode_id))

    def end_session(
        self,
        session_id: str = DEFAULT_SESSION,
        *,
        deadline_s: float | None = None,
        **details: Unpack[PartingDetails],
    ) -> SessionEnd:
        """End a session: store its task, notes, open threads and lessons in its episode, and delete it.

        The open episode is closed, or a new one stored if there is any text. Its completion draws facts from it, with
        the scope, user and project of the episode: `scope`, `user_id` and `project_id` set those of a new one. Raises
        `NotFound` for a session that has ended or was never begun, and `InvalidInput`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, PartingDetails)
        end, owner = checked_change(details, agent.rights), checked_beginning(details, now=datetime.now(UTC))
        reach = BeginningDetails(scope=owner.scope, user_id=owner.user_id, project_id=owner.project_id)
        name = checked_session(session_id)
        with agent.transaction(deadline) as connection:
            session = get_session(connection, agent.id, name)
            known = if_room_for(open_episode(connection, agent.id, name), parting_text(session, end.lessons_learned))
        vector = episodes.vector_of(agent, known, change_at_end(session, known, end), deadline)
        with agent.space_transaction(deadline) as connection:
            session, episode = store_session_end(connection, agent, name, end, reach=reach, vector=vector)
        agent.awake.set()
        released = tuple(item.id for item in held_items(session.items) if item.kind != NOTE)
        return SessionEnd(name, session.task, episode, released)

    @contextmanager
    def _locked(self, session_id: object, deadline_s: float | None) -> Generator[tuple[Connection, Session]]:
        """Yield a connection with the deadline of a call and its session, begun if need be and locked."""
        deadline, name = self.agent.deadline(deadline_s), checked_session(session_id)
        with self.agent.transaction(deadline) as connection:
            yield connection, lock_session(connection, self.agent.id, name)


def checked_session(value: object) -> str:
    text = checked_optional("session_id", value, max_characters=100)
    if text is None:
        raise InvalidInput("session_id is empty; leave it out for the default session")
    return text


# --- the task and the items of a session ---


def refocus(
    agent: Agent, session_id: str, task: str, situation: Mapping[str, Any], deadline: Deadline
) -> WorkingMemory:
    """Set a session's task, frame and censors, rank its items by the new task, and evict what exceeds its capacity."""
    # Notes are embedded before the lock is taken; one added meanwhile keeps the relevance it has.
    with agent.transaction(deadline) as connection:
        known = read_session(connection, agent.id, session_id)
    notes = known.notes if known else []
    vector, *note_vectors = agent.embed([task, *(note.text or "" for note in notes)], deadline)
    with agent.space_transaction(deadline) as connection:
        session = lock_session(connection, agent.id, session_id)
        session = with_task(session, task, note_id=uuid4(), at=datetime.now(UTC))
        session = within_bounds(replace(session, **situation))
        about = {"task": task, "vector": Vector(vector), "space_id": agent.embedder.space.id}
        connection.execute(SQL["focus_session"], {**situation_row(agent.id, session), **about})
        vectors = {note.id: each for note, each in zip(notes, note_vectors, strict=True)}
        relevance = relevance_to_task(connection, agent, session_id, [item.id for item in session.items], vectors)
        items = tuple(with_relevance(session.items, relevance))
        return store_session(connection, agent.id, replace(session, items=items))


def situation_row(agent_id: str, session: Session) -> dict[str, Any]:
    censors = None if session.active_censors is None else Jsonb(session.active_censors)
    named = session_key(agent_id, session.session_id)
    return {**named, "frame": session.frame, "active_censors": censors, "capacity": session.capacity}


def load_items(  # noqa: PLR0913 (memories, and a note with its vector)
    connection: Connection,
    agent: Agent,
    session_id: str,
    memories: Sequence[tuple[str | None, UUID]],
    *,
    notes: Mapping[UUID, Vectors] | None = None,
    text: str | None = None,
    relevance: float | None = None,
) -> WorkingMemory:
    """Add memories, each a kind (None for any) and an id, and a note to a session, in the caller's transaction.

    Raises `NotFound` for an unknown memory.
    """
    notes = notes or {}
    session = lock_session(connection, agent.id, session_id)
    kinds = kinds_of(connection, agent.id, memories)
    found = relevance_to_task(connection, agent, session_id, list(kinds), notes)
    now = datetime.now(UTC)
    new = [
        Item(
            kind=kinds.get(each, NOTE),
            id=each,
            relevance=found.get(each, UNKNOWN) if relevance is None else relevance,
            loaded_at=now,
            is_explicit=relevance is not None,
            text=None if each in kinds else text,
        )
        for each in (*kinds, *notes)
    ]
    items = tuple(with_items(session.items, new))
    return store_session(connection, agent.id, within_bounds(replace(session, items=items)))


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


def kinds_of(connection: Connection, agent_id: str, wanted: Sequence[tuple[str | None, UUID]]) -> dict[UUID, str]:
    """Return the kinds of memories by id; raise `NotFound` for an unknown one, or one of another kind."""
    found = shown_memories(connection, agent_id, [each for _, each in wanted])
    for kind, each in wanted:
        if each not in found or kind not in (None, found[each]["kind"]):
            raise NotFound(f"agent {agent_id!r} has no {kind or 'memory'} {each}")
    return {each: found[each]["kind"] for _, each in wanted}


def relevance_to_task(
    connection: Connection, agent: Agent, session_id: str, ids: Sequence[UUID], notes: Mapping[UUID, Vectors]
) -> dict[UUID, float]:
    """Return the cosines of memories and notes with the task of a session, by id; none for those without a vector."""
    row = {**session_key(agent.id, session_id), "ids": list(ids), "space_id": agent.embedder.space.id}
    relevance = dict(connection.execute(SQL["weigh_memories"], row).fetchall()) if ids else {}
    if notes:
        vectors = [Vector(vector).to_text() for vector in notes.values()]
        row |= {"ids": list(notes), "vectors": vectors}
        relevance |= dict(connection.execute(SQL["weigh_notes"], row).fetchall())
    return relevance


def change_at_end(session: Session, known: Episode | None, end: EpisodeChange) -> EpisodeChange:
    """Return the outcome and lessons of a session with its text; an episode that has a frame keeps it."""
    frame = None if known and known.frame_used else session.frame
    return replace(end, append=parting_text(session, end.lessons_learned), frame_used=frame)


def store_session_end(
    connection: Connection,
    agent: Agent,
    session_id: str,
    end: EpisodeChange,
    *,
    reach: BeginningDetails,
    vector: Vectors | None,
) -> tuple[Session, Episode | None]:
    """Store task, notes, threads and lessons of a session in its open episode or a new one, and delete the session.

    Returns the session, and the episode; None where there was nothing to store.
    """
    # The episode is locked before the session, as `activate_procedure` does: else the two could deadlock.
    current = open_episode(connection, agent.id, session_id, is_locked=True)
    session = get_session(connection, agent.id, session_id, is_locked=True)
    if current is not None:
        agent.rights.check_may_change(current)
    now, known = datetime.now(UTC), if_room_for(current, parting_text(session, end.lessons_learned))
    change, episode = change_at_end(session, known, end), None
    if known is not None:
        ended_at = max(now, known.started_at)
        episode = episodes.close(connection, agent, known.id, change, ended_at=ended_at, vector=vector)
    elif current is not None:
        full = EpisodeChange(outcome=end.outcome)
        episodes.close(connection, agent, current.id, full, ended_at=max(now, current.started_at))
    if known is None and change.append is not None:
        began = {"session_id": session_id, "started_at": min(session.created_at, now)}
        beginning = checked_beginning(
            {**reach, **began, "source": f"session:{session_id}"}, now=now, rights=agent.rights
        )
        episode = episodes.record(connection, agent, beginning, change, end=now, vector=vector)
    connection.execute(SQL["end_session"], session_key(agent.id, session_id))
    return session, episode


def if_room_for(episode: Episode | None, more: str | None) -> Episode | None:
    """Return the episode if its detail has room for `more`; a full one is closed as it is, and a new one stored."""
    size = len((episode.detail or "").encode()) if episode else 0
    return episode if size + len((more or "").encode()) < MAX_DETAIL_BYTES else None


# --- the row ---


def session_key(agent_id: str, session_id: str) -> dict[str, Any]:
    return {"agent_id": agent_id, "session_id": session_id}


def read_session(connection: Connection, agent_id: str, session_id: str, *, is_locked: bool = False) -> Session | None:
    """Return a session as it is, None when there is none; locked, it stays so until the transaction ends."""
    with connection.cursor(row_factory=dict_row) as cursor:
        statement = SQL["lock_session" if is_locked else "read_session"]
        row = cursor.execute(statement, session_key(agent_id, session_id)).fetchone()
    if row is None:
        return None
    row["items"] = tuple(Item.from_json(item) for item in row["items"])
    row["open_threads"] = tuple(row["open_threads"])
    return Session(**row)


def get_session(connection: Connection, agent_id: str, session_id: str, *, is_locked: bool = False) -> Session:
    """Return a session; raise `NotFound` when there is none."""
    session = read_session(connection, agent_id, session_id, is_locked=is_locked)
    if session is None:
        raise NotFound(f"agent {agent_id!r} has no session {session_id!r}: it has ended, or was never begun")
    return session


def lock_session(connection: Connection, agent_id: str, session_id: str) -> Session:
    """Lock a session, begun if need be, until the transaction ends and return it.

    Raises `Conflict` when it ended several times in a row while the lock was waited for.
    """
    for _ in range(ROUNDS):  # its row may be deleted between the insert and the lock
        connection.execute(SQL["begin_session"], {**session_key(agent_id, session_id), "capacity": POLICY.capacity})
        session = read_session(connection, agent_id, session_id, is_locked=True)
        if session is not None:
            return session
    raise Conflict(f"session {session_id!r} ended {ROUNDS} times while it was waited for; try again")


def episode_of(connection: Connection, agent_id: str, session_id: str) -> UUID | None:
    """Return the id of the open episode of a session."""
    parameters = {**session_key(agent_id, session_id), "default_session": DEFAULT_SESSION}
    row = connection.execute(SQL["session_episode"], parameters).fetchone()
    return row[0] if row else None


def open_episode(connection: Connection, agent_id: str, session_id: str, *, is_locked: bool = False) -> Episode | None:
    """Return the open episode of a session; locked, it stays open until the transaction ends."""
    episode_id = episode_of(connection, agent_id, session_id)
    if episode_id is None:
        return None
    found = (lock_memory if is_locked else get_memory)(connection, agent_id, EPISODE, episode_id)
    return found if found.state == "open" else None


def store_session(connection: Connection, agent_id: str, session: Session) -> WorkingMemory:
    """Evict what exceeds the session's capacity, store it, and return it as it is shown."""
    evicted = overflow(session.items, session.capacity)
    stored = replace(
        session,
        items=tuple(without(session.items, evicted)),
        episode_id=episode_of(connection, agent_id, session.session_id) or session.episode_id,
    )
    row = {
        **session_key(agent_id, session.session_id),
        "items": Jsonb([item.as_json() for item in stored.items]),
        "open_threads": Jsonb(list(stored.open_threads)),
        "episode_id": stored.episode_id,
    }
    connection.execute(SQL["store_session"], row)
    return show_session(connection, agent_id, stored, evicted)


def show_session(
    connection: Connection, agent_id: str, session: Session, evicted: Sequence[Item] = ()
) -> WorkingMemory:
    """Return a session as it is shown, with the texts its memories have now."""
    held = held_items(session.items)
    memories = shown_memories(connection, agent_id, [item.id for item in (*held, *evicted) if item.kind != NOTE])
    order = sorted(held, key=lambda item: (item.relevance, item.loaded_at), reverse=True)
    return WorkingMemory(
        session_id=session.session_id,
        task=session.task,
        frame=session.frame,
        items=show_items(order, memories),
        open_threads=session.open_threads,
        capacity=session.capacity,
        episode_id=session.episode_id,
        evicted=show_items(evicted, memories),
        active_censors=session.active_censors,
    )


def shown_memories(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return kind, state and short text of memories by their id; absent ones are left out."""
    if not ids:
        return {}
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["show_memories"], {"agent_id": agent_id, "ids": list(ids)}).fetchall()
    return {row["id"]: row for row in rows}


# --- the items of a session; pure ---


def held_items(items: Sequence[Item]) -> list[Item]:
    """Return the items that were not evicted."""
    return [item for item in items if not item.is_set_aside]


def with_items(items: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """Return the items with new ones at the end; a known item moves there, and keeps a relevance the agent gave it."""
    before, fresh = {item.id: item for item in items}, dict[UUID, Item]()
    for item in new:
        known = before.get(item.id)
        is_given = known is not None and known.is_explicit and not item.is_explicit
        fresh[item.id] = replace(item, relevance=known.relevance, is_explicit=True) if known and is_given else item
    return [item for item in items if item.id not in fresh] + list(fresh.values())


def with_task(session: Session, task: str, *, note_id: UUID, at: datetime) -> Session:
    """Return the session with a new task; the earlier task becomes a note for its episode."""
    if session.task in (None, task):
        return replace(session, task=task)
    before = Item(NOTE, note_id, 0.0, at, text=f"Earlier task: {session.task}", is_set_aside=True)
    is_known = any(note.text == before.text for note in session.notes)
    return replace(session, task=task, items=session.items if is_known else (*session.items, before))


def with_relevance(items: Sequence[Item], relevance: Mapping[UUID, float]) -> list[Item]:
    """Return the items with their relevance to a new task; a relevance that the agent gave stays."""
    return [
        item if item.is_explicit else replace(item, relevance=relevance.get(item.id, item.relevance)) for item in items
    ]


def overflow(items: Sequence[Item], capacity: int) -> list[Item]:
    """Return the items to evict: the least relevant, and among equals those loaded first."""
    held = held_items(items)
    ranked = sorted(held, key=lambda item: (item.relevance, item.loaded_at))
    return ranked[: max(len(held) - capacity, 0)]


def without(items: Sequence[Item], evicted: Sequence[Item]) -> list[Item]:
    """Return the items without evicted ones; evicted notes are kept, marked as set aside."""
    ids = {item.id for item in evicted}
    kept = [item for item in items if item.id not in ids]
    aside = [replace(item, is_set_aside=True) for item in items if item.id in ids and item.kind == NOTE]
    return kept + aside


def parting_text(session: Session, lessons: Sequence[str]) -> str | None:
    """Return the text for a session's episode: task, notes, open threads and lessons, a line each; None for nothing."""
    lines = [f"Task: {session.task}"] if session.task else []
    lines += [note.text for note in session.notes if note.text]
    lines += [f"Still open: {thread}" for thread in session.open_threads]
    lines += [f"Lesson: {lesson}" for lesson in lessons]
    return "\n".join(lines) or None


def show_items(items: Sequence[Item], memories: Mapping[UUID, Mapping[str, Any]]) -> tuple[Held, ...]:
    """Return items as they are shown, without those whose memory was erased."""
    entries: list[Held] = []
    for item in items:
        note: dict[str, Any] = {"kind": NOTE, "text": item.text or "", "state": "active", "superseded_by": None}
        memory = note if item.kind == NOTE else memories.get(item.id)
        if memory is not None:
            text = shortened(memory["text"], POLICY.shown_characters)
            state, successor = memory["state"], memory["superseded_by"]
            entries.append(Held(memory["kind"], item.id, text, item.relevance, item.loaded_at, state, successor))
    return tuple(entries)


def shortened(text: str, max_characters: int) -> str:
    """Return a text of at most `max_characters`, cut between words."""
    if len(text) <= max_characters:
        return text
    cut = text[: max_characters - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"
