"""Recalling, and saying what of it was used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Unpack
from uuid import UUID

from nous_online.core.details import Query, RecallDetails
from nous_online.core.validation import checked_id, checked_ids, checked_moment
from nous_online.memories.agent import Verbs, across_moves
from nous_online.recall import recalling
from nous_online.recall.recalling import Recall


class RecallVerbs(Verbs):
    """What an agent does with all its memories."""

    @across_moves
    def recall(self, query: Query, *, deadline_s: float | None = None, **details: Unpack[RecallDetails]) -> Recall:
        """Return what answers `query` best, best first, with the parts of each score, and remember that it was asked.

        What was encoded in the same frame counts 1.3 times, what was encoded under the same censors up to 1.2 times;
        neither hides anything. A server that takes no writes, such as a standby, answers too, and remembers nothing.
        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        deadline = self.agent.deadline(deadline_s)
        return recalling.ask(self.agent, query, details, deadline)

    def cite(
        self,
        recall_id: UUID,
        memory_ids: Iterable[UUID],
        *,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> int:
        """Say which answers of a recall were used; return how many that is news about.

        What is cited rises with the nights, and becomes a probe that no night may make harder to find.
        """
        deadline = self.agent.deadline(deadline_s)
        moment = checked_moment("at", at) or datetime.now(UTC)
        asked, named = checked_id("recall_id", recall_id), checked_ids("memory_ids", memory_ids)
        return recalling.give_feedback(self.agent, asked, named, "cited", at=moment, deadline=deadline)

    def ignore(
        self,
        recall_id: UUID,
        memory_ids: Iterable[UUID],
        *,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> int:
        """Say which answers of a recall were of no use; return how many that is news about."""
        deadline = self.agent.deadline(deadline_s)
        moment = checked_moment("at", at) or datetime.now(UTC)
        asked, named = checked_id("recall_id", recall_id), checked_ids("memory_ids", memory_ids)
        return recalling.give_feedback(self.agent, asked, named, "ignored", at=moment, deadline=deadline)
