"""Doubts: a fact perhaps replaces an earlier one, of which no judge is sure; both stay until somebody decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.sql import SQL

from nous_online.core.domain import FACT, Fact, shortened
from nous_online.core.validation import checked_choice
from nous_online.database.statements import statements
from nous_online.memories import store
from nous_online.memories.agent import Verbs
from nous_online.memories.contradictions import STATUSES

BLOCKS = statements("nous_online.memories", "doubts.sql")
QUERIES = {"open": ("doubts",), "resolved": ("settled_doubts",), None: ("doubts", "settled_doubts")}


@dataclass(frozen=True)
class Doubt:
    """A fact and an earlier one that it perhaps replaces; `keep_both` or `supersede_fact` decides it."""

    def __repr__(self) -> str:
        later, earlier = (shortened(each.content) for each in (self.later, self.earlier))
        return f"<doubt {str(self.later.id)[:8]} {self.resolution or 'open'}: {later!r} perhaps replaces {earlier!r}>"

    earlier: Fact
    later: Fact
    resolution: str | None = None
    """How it was decided: `b_wins` (the later one replaces the earlier), `a_wins`, `both_valid`, `same` or `merged`."""
    note: str | None = None
    """Why."""
    resolved_at: datetime | None = None

    @property
    def decided_on(self) -> tuple[Fact, ...]:
        """The facts whose `undo` takes the decision back, in that order; none where it is open."""
        by_resolution = {"b_wins": (self.earlier,), "a_wins": (self.later,), "both_valid": (self.later,)}
        lost = tuple(each for each in (self.later, self.earlier) if each.superseded_by is not None)
        return by_resolution.get(self.resolution or "", lost if self.resolution else ())


class DoubtVerbs(Verbs):
    """What an agent does with doubts."""

    def doubts(self, *, status: str | None = "open", deadline_s: float | None = None) -> list[Doubt]:
        """Return the facts that perhaps replace earlier ones, each with the earlier one, the oldest first.

        Both are active. `keep_both(later.id, earlier.id)` decides that both hold, `supersede_fact(earlier.id,
        later.id)` that the later one replaces the earlier, or with `is_same` that both say the same. With the status
        `resolved` those that were decided, with `resolution` and `note`; with None all.
        """
        if status is not None:
            checked_choice("status", status, STATUSES)
        # Both facts in one read: between two, somebody may have changed or erased one of them.
        columns = {"earlier": store.columns_of_fact("o"), "later": store.columns_of_fact("f")}
        with self._transaction(deadline_s) as connection:
            rows = [
                row
                for name in QUERIES[status]
                for row in connection.execute(SQL(BLOCKS[name]).format(**columns), {"agent_id": self.agent.id})
            ]
        width = len(FACT.columns)
        return [Doubt(Fact(*row[:width]), Fact(*row[width : 2 * width]), *row[2 * width :]) for row in rows]
