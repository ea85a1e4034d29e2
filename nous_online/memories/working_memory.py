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
        """Return the entry as the database holds it."""
        return {**vars(self), "id": str(self.id), "loaded_at": self.loaded_at.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Item:
        """Return the entry that was stored."""
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
class Focus:
    """What a session is about, and in which situation: checked; None leaves each as it is."""

    task: str | None = None
    frame: str | None = None
    active_censors: list[str] | None = None
    capacity: int | None = None

    def of(self, session: Session) -> Session:
        """Return a session in this situation."""
        return replace(
            session,
            frame=self.frame or session.frame,
            active_censors=session.active_censors if self.active_censors is None else self.active_censors,
            capacity=self.capacity or session.capacity,
        )


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


def joined(items: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """Return the items with new ones at the end; one that was there already moves there.

    It keeps the relevance the agent once gave it, unless another is given.
    """
    before = {item.id: item for item in items}
    fresh = {item.id: recalled(before.get(item.id), item) for item in new}
    return [item for item in items if item.id not in fresh] + list(fresh.values())


def recalled(before: Item | None, new: Item) -> Item:
    """Return an item loaded again."""
    if before is None or new.is_explicit or not before.is_explicit:
        return new
    return replace(new, relevance=before.relevance, is_explicit=True)


def refocused(session: Session, task: str, *, note_id: UUID, at: datetime) -> Session:
    """Return a session that is about another task; what it was about before is kept for its episode."""
    if session.task in (None, task):
        return replace(session, task=task)
    before = Item(NOTE, note_id, 0.0, at, text=f"Earlier task: {session.task}", is_set_aside=True)
    is_known = any(note.text == before.text for note in session.notes)
    return replace(session, task=task, items=session.items if is_known else (*session.items, before))


def weighed(items: Sequence[Item], relevance: Mapping[UUID, float]) -> list[Item]:
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


def told(session: Session, lessons: Sequence[str]) -> str | None:
    """Return what is worth keeping of a session, a line each: task, notes, what is still open, lessons."""
    lines = [f"Task: {session.task}"] if session.task else []
    lines += [note.text for note in session.notes if note.text]
    lines += [f"Still open: {thread}" for thread in session.open_threads]
    lines += [f"Lesson: {lesson}" for lesson in lessons]
    return "\n".join(lines) or None


def shown(item: Item, memory: Mapping[str, Any] | None, *, max_characters: int) -> Held | None:
    """Return an item as it is shown, None when its memory was erased."""
    if item.kind == NOTE:
        return Held(NOTE, item.id, shortened(item.text or "", max_characters), item.relevance, item.loaded_at, "active")
    if memory is None:
        return None
    return Held(
        kind=memory["kind"],
        id=item.id,
        text=shortened(memory["text"], max_characters),
        relevance=item.relevance,
        loaded_at=item.loaded_at,
        state=memory["state"],
        superseded_by=memory["superseded_by"],
    )


def shortened(text: str, max_characters: int) -> str:
    """Return a text that is not too long to hold in mind, cut between words."""
    if len(text) <= max_characters:
        return text
    cut = text[: max_characters - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"
