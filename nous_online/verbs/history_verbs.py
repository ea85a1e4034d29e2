"""What became of a memory, taking it back, and settling what contradicts itself."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from nous_online.core.validation import checked_choice, checked_id, checked_moment, checked_text
from nous_online.memories import contradictions, source_undo, undoing
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.contradictions import Contradiction, Resolution, Ruling
from nous_online.memories.source_undo import SourceUndone
from nous_online.memories.undoing import PastChange

STATUSES = ("open", "resolved")
MAX_REASON_BYTES = 4 * 1024
MAX_SOURCE_BYTES = 2000  # 500 characters, as wide as they get


class HistoryVerbs(Verbs):
    """What an agent does with what happened to its memories."""

    def history(self, memory_id: UUID, *, deadline_s: float | None = None) -> list[PastChange]:
        """Return every change of one memory, the latest first: who, why, when, and what it was before.

        Raises `NotFound` when this agent has no memory of that id.
        """
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return undoing.history(connection, self.agent.id, checked_id("memory_id", memory_id))

    @across_moves
    def undo(self, memory_id: UUID, *, reason: str, deadline_s: float | None = None) -> PastChange:
        """Take back the latest change of a memory that still stands, and return it; again for the one before.

        Taking back that a fact was learned archives it and brings back what it had superseded. Taking back that other
        words confirmed a fact makes them a fact of their own: no statement is lost. Raises `Refused` for
        what a night changed (`nous undo` takes back the whole proposal) and where later changes depend on it.
        """
        deadline = self.agent.deadline(deadline_s)
        why = checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        return undoing.undo_last(self.agent, checked_id("memory_id", memory_id), reason=why, deadline=deadline)

    def undo_source(self, source: str, *, reason: str, deadline_s: float | None = None) -> SourceUndone:
        """Take back all that one source said, the latest first; what can't be taken back stays, and says why.

        `source` is what statements and memories name as theirs, or the name an import was given. What it began is
        archived, also what was drawn from its episodes, and brings back what it had taken the place of; what it only
        confirmed loses that. Of each memory all is taken back, or nothing: a fact that others said too is refused.
        `restore` brings back what was archived. Raises `NotFound` where nothing of the source stands.
        """
        deadline = self.agent.deadline(deadline_s)
        named = checked_text("source", source, max_bytes=MAX_SOURCE_BYTES)
        why = checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        return source_undo.undo_source(self.agent, named, reason=why, deadline=deadline)

    def contradictions(self, *, status: str | None = "open", deadline_s: float | None = None) -> list[Contradiction]:
        """Return the agent's contradictions in one status, or with None in any, the oldest first."""
        if status is not None:
            checked_choice("status", status, STATUSES)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return contradictions.find(connection, self.agent.id, status=status)

    def resolve_contradiction(  # noqa: PLR0913 (one parameter for each thing a ruling may say)
        self,
        contradiction_id: UUID,
        resolution: Resolution | None = None,
        *,
        keep: UUID | None = None,
        note: str | None = None,
        merged_into: UUID | None = None,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Contradiction:
        """Decide a contradiction: `a_wins`, `b_wins`, `both_valid`, or `merged` into a fact learned for it.

        `keep` names the fact that wins instead; `contradiction.a` and `.b` tell what both say.
        The loser is superseded, stays in the store, and `undo` brings it back. Ruling the same twice changes nothing;
        another ruling raises `Conflict`. A caller below operator only proposes, in `proposed`, what goes against a fact
        that is pinned or trusted more: the contradiction comes back open, for a person to decide.
        """
        deadline = self.agent.deadline(deadline_s)
        why = None if note is None else checked_text("note", note, max_bytes=MAX_REASON_BYTES)
        into = None if merged_into is None else checked_id("merged_into", merged_into)
        ruling = Ruling(resolution, why, into, None if keep is None else checked_id("keep", keep))
        found = checked_id("contradiction_id", contradiction_id)
        moment = checked_moment("at", at) or datetime.now(UTC)
        return contradictions.resolve(self.agent, found, ruling, at=moment, deadline=deadline)

    def reject_ruling(self, contradiction_id: UUID, *, deadline_s: float | None = None) -> Contradiction:
        """Forget how somebody proposed to decide a contradiction, which stays open; for operators.

        Raises `Forbidden` for others, `NotFound`, and `Refused` where nothing is proposed.
        """
        deadline = self.agent.deadline(deadline_s)
        return contradictions.reject(self.agent, checked_id("contradiction_id", contradiction_id), deadline=deadline)
