"""Doubts: a fact perhaps replaces an earlier one, of which no judge is sure; both stay until somebody decides."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg.sql import SQL

from nous_online.core.domain import FACT, Fact, shortened
from nous_online.database.statements import statements
from nous_online.memories import store
from nous_online.memories.agent import Verbs

BLOCKS = statements("nous_online.memories", "doubts.sql")


@dataclass(frozen=True)
class Doubt:
    """A fact and an earlier one that it perhaps replaces; `keep_both` or `supersede_fact` decides it."""

    def __repr__(self) -> str:
        later, earlier = (shortened(each.content) for each in (self.later, self.earlier))
        return f"<doubt {str(self.later.id)[:8]}: {later!r} perhaps replaces {earlier!r}>"

    earlier: Fact
    later: Fact


class DoubtVerbs(Verbs):
    """What an agent does with doubts."""

    def doubts(self, *, deadline_s: float | None = None) -> list[Doubt]:
        """Return the facts that perhaps replace earlier ones, each with the earlier one, the oldest first.

        Both are active. `keep_both(later.id, earlier.id)` decides that both hold, `supersede_fact(earlier.id,
        later.id)` that the later one replaces the earlier, or with `is_same` that both say the same.
        """
        # Both facts in one read: between two, somebody may have changed or erased one of them.
        columns = {"earlier": store.columns_of_fact("o"), "later": store.columns_of_fact("f")}
        with self._transaction(deadline_s) as connection:
            rows = connection.execute(SQL(BLOCKS["doubts"]).format(**columns), {"agent_id": self.agent.id}).fetchall()
        width = len(FACT.columns)
        return [Doubt(Fact(*row[:width]), Fact(*row[width:])) for row in rows]
