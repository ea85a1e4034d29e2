"""The items of one session's working memory, and which of them are evicted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

NOTE = "note"
"""The kind of an item that is a text of its own, not a memory."""


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
    """Return the items with their relevance to a new task, except those whose relevance the agent gave."""
    return [
        item if item.is_explicit else replace(item, relevance=relevance.get(item.id, item.relevance)) for item in items
    ]


def overflow(items: Sequence[Item], capacity: int) -> list[Item]:
    """Return the items to evict: the least relevant, and among equals those loaded first."""
    held = held_items(items)
    ranked = sorted(held, key=lambda item: (item.relevance, item.loaded_at))
    return ranked[: max(len(held) - capacity, 0)]


def without(items: Sequence[Item], gone: Sequence[Item]) -> list[Item]:
    """Return the items without evicted ones; evicted notes are kept, marked as set aside."""
    ids = {item.id for item in gone}
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


def show_items(
    items: Sequence[Item], memories: Mapping[UUID, Mapping[str, Any]], *, max_characters: int
) -> tuple[Held, ...]:
    """Return items as they are shown, without those whose memory was erased."""
    entries: list[Held] = []
    for item in items:
        note: dict[str, Any] = {"kind": NOTE, "text": item.text or "", "state": "active", "superseded_by": None}
        memory = note if item.kind == NOTE else memories.get(item.id)
        if memory is not None:
            text = shortened(memory["text"], max_characters)
            state, successor = memory["state"], memory["superseded_by"]
            entries.append(Held(memory["kind"], item.id, text, item.relevance, item.loaded_at, state, successor))
    return tuple(entries)


def shortened(text: str, max_characters: int) -> str:
    """Return a text of at most `max_characters`, cut between words."""
    if len(text) <= max_characters:
        return text
    cut = text[: max_characters - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"
