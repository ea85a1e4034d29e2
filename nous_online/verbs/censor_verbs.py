"""Adding and checking censors, and saying when one was wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Unpack, cast
from uuid import UUID

from nous_online.core.details import Action, CensorChanges, CensorDetails, CensorReason, CheckDetails, Trigger
from nous_online.core.domain import Censor
from nous_online.core.kinds import CENSOR
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.validation import checked_choice, checked_id, checked_moment, checked_optional, checked_text
from nous_online.database.changes import Cause, get_memory
from nous_online.memories import censors, checking, episodes
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.checking import CensorCheck
from nous_online.memories.quotas import check_quota

NOTE_CHARACTERS = 1000


class CensorVerbs(Verbs):
    """What an agent does with censors."""

    @across_moves
    def add_censor(
        self,
        trigger: Trigger,
        reason: CensorReason,
        *,
        deadline_s: float | None = None,
        **details: Unpack[CensorDetails],
    ) -> Censor:
        """Teach the agent to beware of something, and return the censor.

        An active censor of the same reach that says the same is returned instead, made stricter where the new one
        is. Raises `InvalidInput`, `NotFound` for an episode this agent has not, `DeadlineExceeded` or `Unavailable`;
        then nothing was stored.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        (told,) = episodes.drawn_from(agent, [details], "learned_from_episode_id", deadline)
        new = censors.new_censor(trigger, reason, cast("CensorDetails", told), agent.rights)
        check_quota(agent, deadline, count=1, size=0)
        (vector,) = agent.embed([new.trigger], deadline)
        cause = Cause("agent", "learned", "taught by hand", effective_at=new.origin.learned_at or datetime.now(UTC))
        with agent.space_transaction(deadline) as connection:
            return censors.store(connection, agent, new, vector, cause=cause)

    @across_moves
    def check_censors(
        self, action: Action, *, deadline_s: float | None = None, **details: Unpack[CheckDetails]
    ) -> CensorCheck:
        """Return what speaks against an action about to be done, the firmest first: `is_allowed` means go ahead.

        What a trigger means, but does not say, is at most a warning that asks "did you mean"; literal and near matches
        speak as firmly as their censor. Each that fires is counted, and a warning that reaches its threshold by literal
        or near matches blocks from this very action on.

        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`: a check that failed is no permission.

        All but embedding takes one round trip, a second when something fires. To measure it without the
        embedding, open the Heart with an embedder that looks its vectors up.
        """
        deadline = self.agent.deadline(deadline_s)
        checked = checking.check(self.agent, action, details, deadline)
        if checked.activations and details.get("is_recorded", True):
            self.agent.awake.set()
        return checked

    def report_false_positive(  # noqa: PLR0913 (one parameter for each thing a report may say)
        self,
        censor_id: UUID,
        *,
        activation_id: UUID | str | None = None,
        action: str | None = None,
        note: str | None = None,
        source_kind: str = "agent",
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Censor:
        """Say that a censor fired where it should not have: that action, and its like, set it off no more.

        It is the activation with this id; else the latest of this action, or the latest at all, that nobody reported.
        It counts no longer towards a block, and nights retire a censor of which most activations were reported. An
        action that set nothing off becomes an exception and counts nothing. An agent's reports do not open what blocks
        where the censor is absolute or trusted more than 50: those are for a person, `source_kind="user"`. Raises
        `Conflict` for an activation that was reported before, `NotFound` where there is none to report, `Forbidden` for
        a censor trusted more than the caller, and for `source_kind="user"` from one trusted less than the user.
        """
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or "it fired where it should not have"
        cause = Cause("agent", "reported", said, effective_at=checked_moment("at", at) or datetime.now(UTC))
        text = None if action is None else checked_text("action", action, max_bytes=MAX_CONTENT_BYTES)
        reporter = checked_choice("source_kind", source_kind, censors.REPORTERS)
        report = censors.Report(censors.optional_id("activation_id", activation_id), text, reporter)
        found = checked_id("censor_id", censor_id)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return censors.report_false_positive(connection, self.agent, found, report, cause=cause)

    def update_censor(
        self,
        censor_id: UUID,
        *,
        note: str | None = None,
        deadline_s: float | None = None,
        **changes: Unpack[CensorChanges],
    ) -> Censor:
        """Change how firmly or how long a censor speaks, by hand; the only way down, and to `absolute` and back.

        A severity that is lowered holds until new activations reach the threshold.

        Trigger and reason stay what was said: to say something else, let it expire and add another. Raises
        `InvalidInput`, `NotFound` when there is none of that id, `Forbidden` when it is trusted more than the caller.
        """
        values = censors.checked_changes(changes)
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or "changed by hand"
        cause = Cause("agent", "changed", said, effective_at=datetime.now(UTC))
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return censors.update(connection, self.agent, checked_id("censor_id", censor_id), values, cause=cause)

    def get_censor(self, censor_id: UUID, *, deadline_s: float | None = None) -> Censor:
        """Return one censor in whatever state it is; raise `NotFound` when this agent has none of that id."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return get_memory(connection, self.agent.id, CENSOR, checked_id("censor_id", censor_id))

    def list_censors(self, *, state: str = "active", deadline_s: float | None = None) -> list[Censor]:
        """Return the censors that are `active` or `archived`, the firmest first."""
        chosen = checked_choice("state", state, ("active", "archived"))
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return censors.list_censors(connection, self.agent.id, state=chosen)
