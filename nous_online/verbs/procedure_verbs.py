"""Storing and activating procedures, and saying how they went."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Unpack
from uuid import UUID

from nous_online.core.details import ProcedureDetails, ProcedureName
from nous_online.core.domain import Procedure
from nous_online.core.kinds import PROCEDURE
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.core.validation import (
    checked_choice,
    checked_id,
    checked_limit,
    checked_moment,
    checked_optional,
    checked_text,
)
from nous_online.database.changes import Cause, get_memory
from nous_online.memories import procedures
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.procedure_details import new_procedure

NOTE_CHARACTERS = 1000
STATES = ("active", "review", "archived")


class ProcedureVerbs(Verbs):
    """What an agent does with procedures."""

    @across_moves
    def store_procedure(
        self, name: ProcedureName, *, deadline_s: float | None = None, **details: Unpack[ProcedureDetails]
    ) -> Procedure:
        """Keep how something is done under a name of its own, and return it.

        The same name again with another content makes a new version: counts stay, a review ends, and events keep what
        it said before; with the same content nothing changes. Raises `InvalidInput` for a procedure that says nothing
        of how it is done, `Refused` when the name belongs to one of another kind, another scope or more trust,
        `NotFound` for a related procedure that is not there, and `Conflict` for a key used for another content.
        """
        return procedures.keep(
            self.agent, new_procedure(name, details, self.agent.rights), self.agent.deadline(deadline_s)
        )

    def activate_procedure(
        self,
        name_or_id: str | UUID,
        *,
        session_id: str = DEFAULT_SESSION,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Procedure:
        """Load a procedure, named by its id, its name or its slug, into the session's working memory.

        It is counted, noted in the episode that is open, and announced, all at once or not at all. Raises `NotFound`,
        and `InvalidInput` when a slug fits several.
        """
        around = procedures.Activated(
            session_id=checked_text("session_id", session_id, max_bytes=100),
            at=checked_moment("at", at) or datetime.now(UTC),
        )
        asked = checked_text("name_or_id", str(name_or_id), max_bytes=2000).strip()
        loaded = procedures.activate(self.agent, asked, around, self.agent.deadline(deadline_s))
        self.agent.awake.set()
        return loaded

    def record_procedure_success(
        self,
        procedure_id: UUID,
        *,
        at: datetime | str | None = None,
        note: str | None = None,
        deadline_s: float | None = None,
    ) -> Procedure:
        """Say that a procedure worked; raise `NotFound` when there is none of that id."""
        return self._record_outcome(procedure_id, is_success=True, at=at, note=note, deadline_s=deadline_s)

    def record_procedure_failure(
        self,
        procedure_id: UUID,
        *,
        at: datetime | str | None = None,
        note: str | None = None,
        deadline_s: float | None = None,
    ) -> Procedure:
        """Say that a procedure failed; nights flag for review those that mostly do."""
        return self._record_outcome(procedure_id, is_success=False, at=at, note=note, deadline_s=deadline_s)

    def _record_outcome(
        self,
        procedure_id: UUID,
        *,
        is_success: bool,
        at: datetime | str | None,
        note: str | None,
        deadline_s: float | None,
    ) -> Procedure:
        """Count one outcome with what was said about it."""
        action, usual = ("succeeded", "it worked") if is_success else ("failed", "it failed")
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or usual
        cause = Cause("agent", action, said, effective_at=checked_moment("at", at) or datetime.now(UTC))
        known_id = checked_id("procedure_id", procedure_id)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return procedures.record_outcome(connection, self.agent.id, known_id, is_success=is_success, cause=cause)

    def get_procedure(self, procedure_id: UUID, *, deadline_s: float | None = None) -> Procedure:
        """Return one procedure in whatever state it is; raise `NotFound` when this agent has none of that id."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return get_memory(connection, self.agent.id, PROCEDURE, checked_id("procedure_id", procedure_id))

    def list_procedures(
        self, *, domain: str | None = None, state: str | None = None, deadline_s: float | None = None
    ) -> list[Procedure]:
        """Return the procedures of a domain and a state, what worked best first; all but the archived unless named."""
        chosen = None if state is None else checked_choice("state", state, STATES)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return procedures.list_procedures(connection, self.agent.id, domain=domain, state=chosen)

    def related_procedures(
        self, procedure_id: UUID, *, limit: int = 5, deadline_s: float | None = None
    ) -> list[Procedure]:
        """Return procedures related to one: those it names or that name it, then its domain's, then near ones."""
        count = checked_limit(limit)
        known_id = checked_id("procedure_id", procedure_id)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return procedures.related(connection, self.agent.id, known_id, limit=count)
