"""Adding and checking censors, and saying when one was wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Unpack
from uuid import UUID

from nous_online import censors, checking
from nous_online.censors import CensorChanges, CensorDetails
from nous_online.changes import Cause, get_memory
from nous_online.checking import Activation, CheckDetails
from nous_online.domain import Censor
from nous_online.kinds import CENSOR
from nous_online.validation import checked_choice, checked_id, checked_moment, checked_optional
from nous_online.verbs import Verbs, across_moves

NOTE_CHARACTERS = 1000


class CensorVerbs(Verbs):
    """What an agent does with censors."""

    @across_moves
    def add_censor(
        self, trigger: str, reason: str, *, deadline_s: float | None = None, **details: Unpack[CensorDetails]
    ) -> Censor:
        """Teach the agent to beware of something, and return the censor.

        An active censor of the same reach that says the same is returned instead, made stricter where the new one
        is. Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`; then nothing was stored.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        new = censors.new_censor(trigger, reason, details, self.agent.rights)
        (vector,) = agent.embed([new.trigger], deadline)
        cause = Cause("agent", "learned", "taught by hand", effective_at=new.origin.learned_at or datetime.now(UTC))
        with agent.space_transaction(deadline) as connection:
            return censors.store(connection, agent, new, vector, cause=cause)

    @across_moves
    def check_censors(
        self, action: str, *, deadline_s: float | None = None, **details: Unpack[CheckDetails]
    ) -> list[Activation]:
        """Return what speaks against an action about to be done, the firmest first; nothing means go ahead.

        Each censor that fires is counted, and a warning that reaches its threshold blocks from this very action on.
        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`: a check that failed is no permission.

        All but embedding the action takes one round trip, a second when something fires. To measure it without the
        embedding, open the Heart with an embedder that looks its vectors up.
        """
        deadline = self.agent.deadline(deadline_s)
        activations = checking.check(self.agent, action, details, deadline)
        if activations and details.get("is_recorded", True):
            self.agent.awake.set()
        return activations

    def report_false_positive(
        self,
        censor_id: UUID,
        *,
        note: str | None = None,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Censor:
        """Say that a censor fired where it should not have; nights retire those of which most say so."""
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or "it fired where it should not have"
        cause = Cause("agent", "reported", said, effective_at=checked_moment("at", at) or datetime.now(UTC))
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return censors.report_false_positive(
                connection, self.agent.id, checked_id("censor_id", censor_id), cause=cause
            )

    def update_censor(
        self,
        censor_id: UUID,
        *,
        note: str | None = None,
        deadline_s: float | None = None,
        **changes: Unpack[CensorChanges],
    ) -> Censor:
        """Change how firmly or how long a censor speaks, by hand; the only way down, and to `absolute` and back.

        Trigger and reason stay what was said: to say something else, let it expire and add another. Raises
        `InvalidInput`, or `NotFound` when there is none of that id.
        """
        values = censors.checked_changes(changes)
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or "changed by hand"
        cause = Cause("agent", "changed", said, effective_at=datetime.now(UTC))
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return censors.update(connection, self.agent.id, checked_id("censor_id", censor_id), values, cause=cause)

    def get_censor(self, censor_id: UUID, *, deadline_s: float | None = None) -> Censor:
        """Return one censor in whatever state it is; raise `NotFound` when this agent has none of that id."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return get_memory(connection, self.agent.id, CENSOR, checked_id("censor_id", censor_id))

    def list_censors(self, *, state: str = "active", deadline_s: float | None = None) -> list[Censor]:
        """Return the censors that are `active` or `archived`, the firmest first."""
        chosen = checked_choice("state", state, ("active", "archived"))
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return censors.list_censors(connection, self.agent.id, state=chosen)
