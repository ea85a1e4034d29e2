"""What takes the place of a fact is found by the words and the vector of that fact too."""

from __future__ import annotations

from dataclasses import replace

from pgvector import Vector
from psycopg import Connection

from nous_online.core.domain import FACT, Fact
from nous_online.core.policy import MAX_CONTEXT_BYTES
from nous_online.database.changes import Alteration, Cause, EventNote, Version, change_memories
from nous_online.language.embedding import with_context
from nous_online.language.minilm import Vectors
from nous_online.memories import store
from nous_online.memories.agent import Agent
from nous_online.memories.store import Embedded

INHERITED = "inherited_words"
NOT_KEPT = EventNote({"context_embedding": "not kept: it follows from both facts"})
"""In place of the new vector in the event: once what was replaced is erased, nothing of it may be left there."""


def found_by_replaced(connection: Connection, agent: Agent, ready: Embedded, known: Fact | None) -> Embedded:
    """Return a new fact with the one it supersedes as its context, so that it is recalled by its words and vector too.

    People tell a change in other words than they ask in: "Omar looks at my pull requests now" has to answer what "Lena
    reviews my PRs" answered. A context of its own stays beside it, where there is room for both.
    """
    context = None if known is None else context_after(ready.fact.context, known.content)
    if known is None or context is None:
        return ready
    own = ready.embedding if ready.context_embedding is None else ready.context_embedding
    return replace(
        ready,
        fact=replace(ready.fact, context=context),
        context_embedding=with_context(own, store.embedding_of(connection, agent.id, known.id)),
    )


def context_after(context: str | None, replaced: str) -> str | None:
    """Return the context of a fact with the text of one it replaced; None where that has no room, or is there."""
    widened = "\n".join(filter(None, (context, replaced)))
    is_told = f"\n{replaced}\n" in f"\n{context or ''}\n"
    return None if is_told or len(widened.encode()) > MAX_CONTEXT_BYTES else widened


def inherited(
    heir: Version[Fact], context: str | None, replaced: str, vectors: tuple[Vectors, Vectors], *, cause: Cause
) -> Alteration[Fact] | None:
    """Return the change that adds a replaced fact to the context of a stored one; None where there is nothing to add.

    `vectors` are those of the stored fact, with its context, and of the replaced one.
    """
    if (widened := context_after(context, replaced)) is None:
        return None
    values = {"context": widened, "context_embedding": Vector(with_context(*vectors)).to_text()}
    return Alteration(heir, values, replace(cause, action=INHERITED), NOT_KEPT)


def inherit_by_hand(connection: Connection, agent_id: str, *, old: Fact, by: Fact, cause: Cause) -> None:
    """Add a fact that was superseded by hand to the context of the one in its place, as learning and nights do."""
    key = {"agent_id": agent_id, "old_id": old.id, "new_id": by.id}
    for version, context, *vectors in connection.execute(store.FACTS["heir"], key).fetchall():
        own, former = (vector.to_numpy() for vector in vectors)
        change = inherited(Version(FACT, by.id, version), context, old.content, (own, former), cause=cause)
        change_memories(connection, agent_id, [change] if change else [])
