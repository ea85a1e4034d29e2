"""What took the place of a fact at night is found by the words and the vector of that fact too, as after learning."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from pgvector import Vector
from psycopg import Connection

from nous_online.core.domain import FACT, Fact
from nous_online.database.changes import Alteration, Cause, EventNote, Version, change_memories
from nous_online.database.statements import statements
from nous_online.language.embedding import with_context
from nous_online.memories.facts import context_after
from nous_online.memories.undoing import INHERITED

SQL = statements("nous_pipelines.plan", "inheriting.sql")
NOT_KEPT = EventNote({"context_embedding": "not kept: it follows from both facts"})
"""In place of the new vector in the event: once what was replaced is erased, nothing of it may be left there."""


def inherit_words(connection: Connection, agent_id: str, proposal_ids: Collection[UUID], *, cause: Cause) -> None:
    """Add the fact that gave way last to the context of the one that took its place, for each supersession.

    Doing it again changes nothing: of what was changed once, or has no room for it, nothing is changed.
    """
    key = {"agent_id": agent_id, "ids": list(proposal_ids)}
    alterations: list[Alteration[Fact]] = []
    for proposal_id, heir_id, version, context, replaced, *vectors in connection.execute(SQL["heirs"], key):
        if (widened := context_after(context, replaced)) is None:
            continue
        own, former = (vector.to_numpy() for vector in vectors)
        values = {"context": widened, "context_embedding": Vector(with_context(own, former)).to_text()}
        own_cause = replace(cause, action=INHERITED, proposal_id=proposal_id)
        alterations.append(Alteration(Version(FACT, heir_id, version), values, own_cause, NOT_KEPT))
    change_memories(connection, agent_id, alterations)
