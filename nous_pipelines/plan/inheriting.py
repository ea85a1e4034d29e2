"""What took the place of a fact at night is found by the words and the vector of that fact too, as after learning."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from psycopg import Connection

from nous_online.core.domain import FACT, Fact
from nous_online.database.changes import Alteration, Cause, Version, change_memories
from nous_online.database.statements import statements
from nous_online.memories.replaced_words import inherited

SQL = statements("nous_pipelines.plan", "inheriting.sql")


def inherit_words(connection: Connection, agent_id: str, proposal_ids: Collection[UUID], *, cause: Cause) -> None:
    """Add the fact that gave way last to the context of the one that took its place, for each supersession.

    Doing it again changes nothing: of what was changed once, or has no room for it, nothing is changed.
    """
    key = {"agent_id": agent_id, "ids": list(proposal_ids)}
    alterations: list[Alteration[Fact]] = []
    for proposal_id, heir_id, version, context, replaced, *vectors in connection.execute(SQL["heirs"], key):
        own, former = (vector.to_numpy() for vector in vectors)
        heir, own_cause = Version(FACT, heir_id, version), replace(cause, proposal_id=proposal_id)
        if change := inherited(heir, context, replaced, (own, former), cause=own_cause):
            alterations.append(change)
    change_memories(connection, agent_id, alterations)
