"""The result of one phase of a night: its proposals, and the reason for every row it looked at and left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import polars as pl
from pydantic import TypeAdapter

from nous_pipelines.phases.proposals import Proposal

Counts = Counter[str]
Tables: TypeAlias = Mapping[str, pl.DataFrame]
"""The input of a phase: for some agents, their rows of each table it reads, by name."""
KEY = ["agent_id", "id"]
"""The columns that identify a memory: the same id of two agents is two memories."""
PINNED = ("is_pinned", "pinned")
REWOUND = ("is_rewound", "changed after the end of the night")
"""Cases for `first_reason`, a column and a reason, that make every phase leave a memory alone."""


@dataclass
class Phase:
    """Proposals with an account of the rows they came from: for each agent, eligible = proposed + left.

    A phase with nothing to do and one that silently does nothing look alike: both succeed. The check `effect` stops a
    night where the account does not add up.
    """

    name: str
    proposals: list[Proposal] = field(default_factory=list[Proposal])
    eligible: Counts = field(default_factory=Counts)
    """For each agent, how many rows (memories, or pairs of them) the phase had to decide about."""
    proposed: Counts = field(default_factory=Counts)
    """How many of them the proposals take up."""
    left: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """How many were left alone, by agent and reason in words."""

    def add_eligible(self, agent_id: str, rows: int = 1) -> None:
        """Count rows that the phase has to decide about."""
        self.eligible[agent_id] += rows

    def propose(self, proposal: Proposal, rows: int = 1) -> None:
        """Add a proposal that settles `rows` of the eligible rows."""
        self.proposals.append(proposal)
        self.proposed[proposal.agent_id] += rows

    def leave(self, agent_id: str, reason: str, rows: int = 1) -> None:
        """Record why rows are left as they are."""
        if rows:
            self.left.setdefault(agent_id, Counts())[reason] += rows

    def add_eligible_rows(self, rows: pl.DataFrame) -> None:
        """Count the rows of a table (agent_id) that the phase has to decide about."""
        for agent_id, count in rows.group_by("agent_id").len().sort("agent_id").iter_rows():
            self.add_eligible(agent_id, count)

    def leave_all(self, rows: pl.DataFrame, *, why: str = "why") -> None:
        """Record the rows of a table (agent_id) that the column named by `why` gives a reason to leave."""
        reasons = rows.filter(pl.col(why).is_not_null()).group_by("agent_id", why).len().sort("agent_id", why)
        for agent_id, reason, count in reasons.iter_rows():
            self.leave(agent_id, reason, count)

    def decide(self, due: pl.DataFrame, proposal_of: Callable[[dict[str, Any]], Proposal]) -> None:
        """Account for every row of a table (agent_id): left for the reason in `stays`, or else proposed for."""
        self.add_eligible_rows(due)
        self.leave_all(due, why="stays")
        for row in due.filter(pl.col("stays").is_null()).iter_rows(named=True):
            self.propose(proposal_of(row))

    def unexplained(self) -> dict[str, int]:
        """Return for each agent whose account does not add up by how many rows it is off.

        Positive: rows neither proposed nor left with a reason. Negative: rows counted twice, which could hide others.
        """
        missing = {
            agent_id: self.eligible[agent_id] - self.proposed[agent_id] - self.left.get(agent_id, Counts()).total()
            for agent_id in {**self.eligible, **self.proposed, **self.left}
        }
        return {agent_id: rows for agent_id, rows in missing.items() if rows}

    def reasons(self) -> dict[str, int]:
        """Return how many rows were left for each reason, over all agents."""
        return dict(sum(self.left.values(), Counts()))

    @property
    def agent_ids(self) -> set[str]:
        """The agents with rows in the account."""
        return {*self.eligible, *self.proposed, *self.left}

    def of(self, agent_ids: Collection[str]) -> Phase:
        """Return the part of this phase that is about some agents."""
        return Phase(
            self.name,
            [proposal for proposal in self.proposals if proposal.agent_id in agent_ids],
            Counts({agent_id: rows for agent_id, rows in self.eligible.items() if agent_id in agent_ids}),
            Counts({agent_id: rows for agent_id, rows in self.proposed.items() if agent_id in agent_ids}),
            {agent_id: reasons for agent_id, reasons in self.left.items() if agent_id in agent_ids},
        )

    def metadata(self) -> dict[str, Any]:
        """Return the account as it goes into the asset's metadata."""
        return {
            "proposals": len(self.proposals),
            "eligible": self.eligible.total(),
            "proposed": self.proposed.total(),
            "left": self.reasons(),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the phase as plain JSON values."""
        return {
            "name": self.name,
            "proposals": [proposal.as_dict() for proposal in self.proposals],
            "eligible": self.eligible,
            "proposed": self.proposed,
            "left": self.left,
        }


PHASE = TypeAdapter(Phase)
"""Reads back what `as_dict` wrote."""


def combine_phases(name: str, parts: Sequence[Phase]) -> Phase:
    """Return one phase from the results of several chunks of agents."""
    if len(parts) == 1:
        return parts[0]
    whole = Phase(name)
    for part in parts:
        whole.proposals += part.proposals
        whole.eligible.update(part.eligible)
        whole.proposed.update(part.proposed)
        for agent_id, reasons in part.left.items():
            for reason, rows in reasons.items():
                whole.leave(agent_id, reason, rows)
    return whole


def first_reason(*cases: tuple[pl.Expr | str, pl.Expr | str | None]) -> pl.Expr:
    """Return an expression for the reason of the first case that holds, null where none does.

    A case is a boolean expression or column and its reason: a text, or an expression. The reason None means that later
    cases do not apply.
    """
    chain: Any = pl
    for condition, reason in cases:
        chain = chain.when(condition).then(pl.lit(reason) if isinstance(reason, str) else reason)
    return chain
