"""What an agent does with a memory of any kind, by its id: forget, restore, pin, correct."""

from __future__ import annotations

from typing import Unpack
from uuid import UUID

from nous_online.core.details import MemoryChanges
from nous_online.core.domain import Memory
from nous_online.core.validation import checked_id, checked_text
from nous_online.memories import memory_changes
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.memory_changes import Forgotten

MAX_REASON_BYTES = 4 * 1024


class MemoryVerbs(Verbs):
    """What an agent does with a memory of any kind."""

    def forget(self, memory_id: UUID, *, reason: str, deadline_s: float | None = None) -> Forgotten:
        """Take a memory of any kind out of recall, contexts and questions about the past, at once and with a reason.

        However often it was confirmed. Its row, statements and history stay, so `restore` and `undo` bring it back. No
        night does, and learning the same words again stores a new fact that names the forgotten one. Forgetting twice
        changes nothing. Facts that were merged into it, or that it had replaced, stay out of recall too: the answer
        names them. What must leave the disk is erased instead: `nous erase --memory`. Raises `NotFound`, and
        `Forbidden` for what is trusted more than the caller may claim, or pinned if it may not pin.
        """
        why = checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        deadline = self.agent.deadline(deadline_s)
        return memory_changes.forget(self.agent, checked_id("memory_id", memory_id), reason=why, deadline=deadline)

    def restore(self, memory_id: UUID, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Bring back a memory that was forgotten, or archived by a night, to the state it was in, and return it.

        What had been superseded comes back as superseded. One that is not archived is returned as it is. Raises
        `NotFound`, `Conflict` where another procedure took its name since, and `Refused` where another document did.
        """
        why = "restored by hand" if reason is None else checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        deadline = self.agent.deadline(deadline_s)
        return memory_changes.restore(self.agent, checked_id("memory_id", memory_id), reason=why, deadline=deadline)

    def pin(self, memory_id: UUID, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Keep nights from archiving or condensing a memory of any kind, and return it; raise `NotFound` if unknown."""
        return self.update(memory_id, reason=reason or "pinned by hand", deadline_s=deadline_s, is_pinned=True)

    def unpin(self, memory_id: UUID, *, reason: str | None = None, deadline_s: float | None = None) -> Memory:
        """Let nights archive and condense a memory again, and return it; raise `NotFound` if unknown."""
        return self.update(memory_id, reason=reason or "unpinned by hand", deadline_s=deadline_s, is_pinned=False)

    @across_moves
    def update(
        self,
        memory_id: UUID,
        *,
        reason: str | None = None,
        deadline_s: float | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> Memory:
        """Correct what is known about a memory besides its text, and return it; what it says already is left alone.

        A fact takes tags, subject, category, confidence, valid_from, valid_to and is_pinned; an episode and a procedure
        tags and is_pinned; a censor is_pinned. A text never changes: say the other one with `learn`. Raises
        `InvalidInput` for anything else, and `NotFound`.
        """
        why = "corrected by hand" if reason is None else checked_text("reason", reason, max_bytes=MAX_REASON_BYTES)
        deadline = self.agent.deadline(deadline_s)
        return memory_changes.update(
            self.agent, checked_id("memory_id", memory_id), changes, reason=why, deadline=deadline
        )
