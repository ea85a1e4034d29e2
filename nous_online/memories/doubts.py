"""Doubts: a fact perhaps replaces an earlier one, of which no judge is sure; both stay until somebody decides."""

from __future__ import annotations

from dataclasses import dataclass

from nous_online.core.domain import Fact, shortened
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
        with self._transaction(deadline_s) as connection:
            pairs = connection.execute(BLOCKS["doubts"], {"agent_id": self.agent.id}).fetchall()
            facts = store.facts_by_id(connection, self.agent.id, [each for pair in pairs for each in pair])
        return [Doubt(facts[earlier], facts[later]) for earlier, later in pairs]
