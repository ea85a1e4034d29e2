"""What one session holds in mind, and what goes when there is too much of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

NOTE = "note"
"""The kind of a text that is no memory yet."""


@dataclass(frozen=True)
class Item:
    """One entry of a working memory as it is stored: a memory by its id, or a note by its text."""

    kind: str
    id: UUID
    relevance: float
    loaded_at: datetime
    is_explicit: bool = False
    """The agent said how relevant it is, so no task changes that."""
    text: str | None = None
    is_set_aside: bool = False
    """A note that is no longer held, kept for the session's episode."""

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
    """Of the memory; one that was superseded or archived since it was loaded says so here."""
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
    """What this call pushed out; memories stay where they are, notes are kept for the session's episode."""
    active_censors: list[str] | None = None
    """What is said and asked in the session is so under these censors, unless told otherwise; as with `frame`."""


def held_items(items: Sequence[Item]) -> list[Item]:
    """Return what is in mind: everything that was not set aside."""
    return [item for item in items if not item.is_set_aside]


def with_items(items: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """Return the items with new ones at the end; one that was there already moves there.

    It keeps the relevance the agent once gave it, unless another is given.
    """
    before, fresh = {item.id: item for item in items}, dict[UUID, Item]()
    for item in new:
        known = before.get(item.id)
        is_given = known is not None and known.is_explicit and not item.is_explicit
        fresh[item.id] = replace(item, relevance=known.relevance, is_explicit=True) if known and is_given else item
    return [item for item in items if item.id not in fresh] + list(fresh.values())


def with_task(session: Session, task: str, *, note_id: UUID, at: datetime) -> Session:
    """Return a session that is about another task; what it was about before is kept for its episode."""
    if session.task in (None, task):
        return replace(session, task=task)
    before = Item(NOTE, note_id, 0.0, at, text=f"Earlier task: {session.task}", is_set_aside=True)
    is_known = any(note.text == before.text for note in session.notes)
    return replace(session, task=task, items=session.items if is_known else (*session.items, before))


def with_relevance(items: Sequence[Item], relevance: Mapping[UUID, float]) -> list[Item]:
    """Return the items as relevant as they are to a new task; what the agent said of one stands."""
    return [
        item if item.is_explicit else replace(item, relevance=relevance.get(item.id, item.relevance)) for item in items
    ]


def overflow(items: Sequence[Item], capacity: int) -> list[Item]:
    """Return what has to go: the least relevant, and among equals what was loaded longest ago."""
    held = held_items(items)
    ranked = sorted(held, key=lambda item: (item.relevance, item.loaded_at))
    return ranked[: max(len(held) - capacity, 0)]


def without(items: Sequence[Item], gone: Sequence[Item]) -> list[Item]:
    """Return the items without some; notes among those are set aside instead."""
    ids = {item.id for item in gone}
    kept = [item for item in items if item.id not in ids]
    aside = [replace(item, is_set_aside=True) for item in items if item.id in ids and item.kind == NOTE]
    return kept + aside


def parting_text(session: Session, lessons: Sequence[str]) -> str | None:
    """Return what is worth keeping of a session, a line each: task, notes, what is still open, lessons."""
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
    """Return a text that is not too long to hold in mind, cut between words."""
    if len(text) <= max_characters:
        return text
    cut = text[: max_characters - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"
