"""Named texts, kept as facts: a new text supersedes the one before, a removed one is archived, and nothing is lost.

A document must be found by its name, unchanged. So documents live in a project and a category of their own, learning
and nights compare nothing with them, and they are pinned, so that no night archives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.domain import DOCUMENT, FACT, Fact, NewFact
from nous_online.core.errors import Stale
from nous_online.core.validation import is_blank
from nous_online.database.changes import Cause, change_memory, version_of
from nous_online.database.statements import fetch, statements
from nous_online.memories import facts, store
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.store import Embedded

BLOCKS = statements("nous_online.memories", "documents.sql")
EMPTY = "empty"
"""The tag of a document without text: a fact says something, so its content is then its name."""
ROUNDS = 8  # attempts at an edit while others change its documents


@dataclass(frozen=True)
class Document:
    """A text under its name."""

    fact: Fact
    """The current version."""

    @property
    def name(self) -> str:
        return self.fact.subject or ""

    @property
    def text(self) -> str:
        return "" if EMPTY in self.fact.tags else self.fact.content

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(tag for tag in self.fact.tags if tag != EMPTY)

    @property
    def created_at(self) -> datetime:
        """When its first version was written."""
        return self.fact.valid_from or self.fact.learned_at

    @property
    def changed_at(self) -> datetime:
        return self.fact.learned_at


@dataclass(frozen=True)
class Edit:
    """A change of one document: a new text under a name, or None to remove it."""

    name: str
    text: str | None
    read: Document | None
    """The version this is based on, of this name or, for a rename, of the old one; None for a new document."""
    tags: tuple[str, ...] = ()
    is_last_word: bool = False
    """Whether to overwrite a version written meanwhile: it is then based on whatever is there when it is applied."""

    def settled(self, held: Mapping[str, Document]) -> Edit:
        """Return this edit with the version it is based on, given the current documents."""
        return replace(self, read=held.get(self.name)) if self.is_last_word else self


class Documents(Verbs):
    """The documents of one place, such as `memory tool`; the place is the project they are recalled by."""

    def __init__(self, agent: Agent, place: str) -> None:
        self.agent = agent
        self.place = place

    def find(self, names: Sequence[str], *, deadline_s: float | None = None) -> dict[str, Document]:
        """Return the documents with these names; unknown names are left out."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return current(connection, self.agent.id, self.place, names)

    def list(self, prefix: str = "", *, deadline_s: float | None = None) -> list[Document]:
        """Return the documents whose names begin with `prefix`, by name."""
        parameters = {"agent_id": self.agent.id, "place": self.place, "prefix": prefix}
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return [Document(fact) for fact in fetch(connection, Fact, BLOCKS["list_documents"], parameters)]

    def change(self, decide: Callable[[], Sequence[Edit]], *, deadline_s: float | None = None) -> None:
        """Apply the edits that `decide` returns, all or none; call it again when a document it read has changed.

        Raises `InvalidInput` for a name or text that can't be stored (500 characters, 32 KiB), `Stale` when a document
        changed at every attempt, and whatever `decide` raises.
        """
        deadline = self.agent.deadline(deadline_s)
        for _ in range(ROUNDS - 1):
            try:
                return self._apply(decide(), deadline)
            except Stale:
                continue
        return self._apply(decide(), deadline)

    def _apply(self, edits: Sequence[Edit], deadline: Deadline) -> None:
        written = [edit for edit in edits if edit.text is not None]
        news = [new_version(edit, self.place, now=datetime.now(UTC)) for edit in written]
        ready = facts.embed_facts(self.agent, news, [None] * len(news), deadline) if news else []
        with self.agent.space_transaction(deadline) as connection:
            store.lock_agent(connection, self.agent.id)
            now = datetime.now(UTC)
            held = current(connection, self.agent.id, self.place, [edit.name for edit in edits])
            check_names(written, held)
            for edit in edits:
                if edit.text is None:
                    remove(connection, self.agent, edit.settled(held), at=now)
            for edit, new in zip(written, ready, strict=True):
                write(connection, self.agent, edit.settled(held), new, at=now)


def current(connection: Connection, agent_id: str, place: str, names: Sequence[str]) -> dict[str, Document]:
    parameters = {"agent_id": agent_id, "place": place, "names": list(names)}
    found = map(Document, fetch(connection, Fact, BLOCKS["find_documents"], parameters))
    return {each.name: each for each in found}


def new_version(edit: Edit, place: str, *, now: datetime) -> NewFact:
    """Return the fact that stores a text."""
    text = edit.text or ""
    is_empty = is_blank(text)
    is_renamed = edit.read is not None and edit.read.name != edit.name
    new = facts.new_fact(
        edit.name if is_empty else text,
        {
            "subject": edit.name,
            "tags": [*edit.tags, EMPTY] if is_empty else [*edit.tags],
            "source": f"{place}, {edit.read.name} before" if edit.read and is_renamed else place,
            "is_pinned": True,
            "project_id": place,
        },
        now=now,
    )
    return replace(new, category=DOCUMENT)


def check_names(edits: Sequence[Edit], held: Mapping[str, Document]) -> None:
    """Raise `Stale` when a document to be written has another version than the one that was read."""
    for edit in edits:
        found = None if edit.is_last_word else held.get(edit.name)
        if found is not None and (edit.read is None or edit.read.fact.id != found.fact.id):
            raise Stale(f"document {edit.name!r} was written meanwhile; read it again, then write")


def write(connection: Connection, agent: Agent, edit: Edit, new: Embedded, *, at: datetime) -> None:
    """Store a version, in the place of the one it starts from."""
    reason = f"written as document {edit.name!r}"
    # Each version carries the moment of the first one in `valid_from`, where `created_at` reads it.
    began = edit.read.created_at if edit.read else at
    dated = replace(new, fact=replace(new.fact, learned_at=at, valid_from=began))
    fact = store.store_fact(connection, agent.id, dated, space=agent.embedder.space, actor="agent", reason=reason)
    if edit.read is not None:
        facts.supersede(connection, agent, old=edit.read.fact, by=fact, at=at, reason=reason)


def remove(connection: Connection, agent: Agent, edit: Edit, *, at: datetime) -> None:
    """Archive a document; it stays in the store, and `undo` brings it back."""
    if edit.read is not None:
        cause = Cause("agent", "archived", f"document {edit.name!r} was removed", effective_at=at)
        values = {"state": "archived", "archived_at": at.isoformat()}
        change_memory(connection, agent.id, version_of(FACT, edit.read.fact), values, cause=cause)
