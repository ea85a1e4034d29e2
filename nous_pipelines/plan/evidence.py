"""The evidence for the checks: the plan and the tables they need, as the phases saw them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from nous_online.core.domain import FACT, KINDS
from nous_online.language.pairs.judging import Judge
from nous_pipelines.night_policy import Policies
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Change, Plan, Proposal
from nous_pipelines.phases.rulings import replace_moved, successors
from nous_pipelines.snapshots.agent_chunks import FactReader
from nous_pipelines.snapshots.snapshot import Snapshot
from nous_pipelines.snapshots.table_schemas import FACTS, MEMORY, TableSchema

LIVE = {
    "fact": ("active",),
    "episode": ("open", "closed"),
    "procedure": ("active", "review"),
    "censor": ("active",),
}
"""The states in which a memory of each kind is in use; the checks account for every memory that leaves them."""
IS_LIVE = pl.any_horizontal(
    (pl.col("kind") == kind) & pl.col("state").is_in(list(states)) for kind, states in LIVE.items()
)
RECALLED = ("fact", "episode", "procedure")
"""The kinds that recall ranks by cosine; censors are matched against actions instead."""
STANDING = ("agent_id", "id", "state", "trust", "is_pinned")
SEARCHABLE = ("agent_id", "id", "state", "rank_weight", "embedding")
KIND = (pl.String, "fact, episode, procedure or censor")
MEMORIES = TableSchema("memories", "Every memory, whatever its kind.", {
    **{name: FACTS.column(name) for name in STANDING},
    "kind": KIND,
})  # fmt: skip
SAID = TableSchema("said", "How many statements count for a fact, its own or those of facts merged into it.", {
    **MEMORY,
    "said_count": (pl.UInt32, "how many statements"),
})  # fmt: skip
SEARCHED = TableSchema("searched", "The memories that recall can find by meaning.", {
    **MEMORY,
    "rank_weight": (pl.Float32, FACTS.meanings["rank_weight"]),
    "embedding": FACTS.column("embedding"),
    "kind": KIND,
})  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """Everything the checks read: the plan and, for the agents it concerns, the tables it was decided on."""

    plan: Plan
    memories: pl.DataFrame
    """`MEMORIES` of the agents with proposals."""
    statements: pl.DataFrame
    """`SAID` of the same agents."""
    searchable: Callable[[Sequence[str]], pl.DataFrame]
    """Reads `SEARCHED` of some agents; on demand, since vectors are large."""
    probes: pl.DataFrame
    """`RECALLS` of the same agents."""
    phases: Sequence[Phase]
    earlier_leaving: Mapping[str, Sequence[int]]
    """For each agent, the number of memories that each of its last 14 nights retired."""
    costs: Mapping[str, float]
    """Cost of language models in this night, in US dollars, by agent."""
    policies: Policies
    judge: Judge
    others: frozenset[str] = frozenset()
    """Further agents of the night, without proposals and therefore perhaps without rows here."""

    @cached_property
    def agent_ids(self) -> tuple[str, ...]:
        """All agents of the night: those with rows, proposals, accounts or costs, and `others`."""
        known = {*self.others, *self.memories["agent_id"].unique(), *(each.agent_id for each in self.plan.proposals)}
        return tuple(sorted(known.union(self.costs, *(phase.agent_ids for phase in self.phases))))

    def of(self, agent_ids: Collection[str]) -> Evidence:
        """Return the evidence about some agents, as if there were no others."""
        agent_ids = frozenset(agent_ids)  # looked for in it is each of them
        own = pl.col("agent_id").is_in(list(agent_ids))
        return replace(
            self,
            plan=self.plan.of(agent_ids),
            memories=self.memories.filter(own),
            statements=self.statements.filter(own),
            probes=self.probes.filter(own),
            phases=[phase.of(agent_ids) for phase in self.phases],
            costs={agent_id: cost for agent_id, cost in self.costs.items() if agent_id in agent_ids},
            others=self.others.intersection(agent_ids),
        )

    @cached_property
    def live(self) -> frozenset[str]:
        """The memories in use that the plan changes or makes successors."""
        return frozenset(self._touched.filter(IS_LIVE)["id"])

    @cached_property
    def changes(self) -> Sequence[Change]:
        """Everything the plan changes."""
        return [change for proposal in self.plan.proposals for change in proposal.changes]

    @cached_property
    def of_plan(self) -> Mapping[str, dict[str, Any]]:
        """The rows of the memories that the plan changes or makes successors, by id."""
        return {row["id"]: row for row in self._touched.to_dicts()}

    @cached_property
    def _touched(self) -> pl.DataFrame:
        wanted = {change.id for change in self.changes} | set(self.successors.values())
        return self.memories.filter(pl.col("id").is_in(list(wanted)))

    @cached_property
    def successors(self) -> Mapping[str, str]:
        """For each memory that the plan supersedes, its successor."""
        return {each.id: each.set["superseded_by"] for each in self.changes if each.set.get("superseded_by")}

    @cached_property
    def successions(self) -> Mapping[str, str | None]:
        """For each memory that the plan supersedes, its `succession`."""
        return {each.id: each.set.get("succession") for each in self.changes if each.set.get("superseded_by")}

    @cached_property
    def updated(self) -> frozenset[str]:
        """The memories superseded by a later value; it need not answer the questions that the old one answered."""
        updates = (change for each in self.plan.proposals if each.kind == "supersede" for change in each.changes)
        return frozenset(change.id for change in updates if change.set.get("superseded_by"))

    @cached_property
    def said_counts(self) -> Mapping[str, int]:
        """Number of statements of each memory that the plan takes out of use or supersedes."""
        wanted = self.leaving | set(self.successors)
        own = self.statements.filter(pl.col("id").is_in(list(wanted)))
        return dict(own.select("id", "said_count").iter_rows())

    @cached_property
    def archived(self) -> frozenset[str]:
        """The memories that the plan archives; they can be restored."""
        return frozenset(each.id for each in self.changes if each.set.get("state") == "archived")

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The new rank weights, for memories whose weight the plan changes."""
        return {each.id: each.set["rank_weight"] for each in self.changes if "rank_weight" in each.set}

    @cached_property
    def leaving(self) -> frozenset[str]:
        """The memories in use that the plan takes out of use."""
        return frozenset(memory for proposal in self.plan.proposals for memory in self.leaving_by(proposal))

    def leaving_by(self, proposal: Proposal) -> set[str]:
        """Return the memories in use that one proposal takes out of use."""
        return {
            change.id
            for change in proposal.changes
            if change.id in self.live and "state" in change.set and change.set["state"] not in LIVE[change.kind]
        }


def memory_table(taken: Snapshot, agent_ids: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the memories in a snapshot, of some agents or all (`MEMORIES`)."""
    return pl.concat([
        taken.table(kind.table, columns=STANDING, agent_ids=agent_ids).with_columns(kind=pl.lit(kind.name))
        for kind in KINDS.values()
    ])  # fmt: skip


def statement_counts(taken: Snapshot, agent_ids: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the number of statements of each fact in a snapshot (`SAID`), merged facts counted for their successor."""
    facts = taken.table("facts", columns=["agent_id", "id", "superseded_by", "succession"], agent_ids=agent_ids)
    # The state as it was: a merged fact may have been archived since, and `successors` follows superseded ones.
    edges = facts.filter(pl.col("succession") == "merged").with_columns(state=pl.lit("superseded"))
    said = taken.table("statements", columns=["agent_id", "fact_id"], agent_ids=agent_ids).rename({"fact_id": "id"})
    return replace_moved(said, "id", successors(edges)).group_by("agent_id", "id").agg(said_count=pl.len())


@dataclass(frozen=True)
class EvidenceTables:
    """The tables of the snapshot that tell of some agents: what each memory is, what was said, what was recalled."""

    memories: pl.DataFrame
    statements: pl.DataFrame
    probes: pl.DataFrame

    @classmethod
    def of(cls, taken: Snapshot, agent_ids: Sequence[str] | None = None) -> EvidenceTables:
        """Read them for some agents or all."""
        probes = taken.table("recalls", agent_ids=agent_ids)
        return cls(memory_table(taken, agent_ids), statement_counts(taken, agent_ids), probes)


class Searchable:
    """Reads from a snapshot what recall can find of some agents (`SEARCHED`), and holds what was read last."""

    def __init__(self, taken: Snapshot, reader: FactReader) -> None:
        self.taken = taken
        self._reader = reader
        self._last: tuple[tuple[str, ...], pl.DataFrame] | None = None

    def __call__(self, agent_ids: Sequence[str]) -> pl.DataFrame:
        """Return the rows of some agents."""
        # A plan is replayed again and again, and then checked; of most nights there is one chunk.
        if self._last is None or self._last[0] != tuple(agent_ids):
            self._last = None  # freed before as much is read again
            self._last = (tuple(agent_ids), self._read(agent_ids))
        return self._last[1]

    def _read(self, agent_ids: Sequence[str]) -> pl.DataFrame:
        return pl.concat(self._of_kind(kind, agent_ids) for kind in RECALLED)

    def _of_kind(self, kind: str, agent_ids: Sequence[str]) -> pl.DataFrame:
        if kind == FACT.name:
            memories = self._reader.read(self.taken, SEARCHABLE, agent_ids)
        else:
            memories = self.taken.table(KINDS[kind].table, columns=SEARCHABLE, agent_ids=agent_ids)
        is_found = pl.col("state").is_in(list(LIVE[kind])) & pl.col("embedding").is_not_null()
        # By number: to filter 100,000 vectors takes four times as long.
        found = memories[memories.select(pl.arg_where(is_found)).to_series()]
        return found.select("agent_id", "id", pl.col("rank_weight").cast(pl.Float32), "embedding", kind=pl.lit(kind))


def final_successor(memory: str, successor: Mapping[str, str]) -> str | None:
    """Return the last successor of a memory, itself without one, None for a circle."""
    seen = {memory}
    while memory in successor:
        memory = successor[memory]
        if memory in seen:
            return None
        seen.add(memory)
    return memory
