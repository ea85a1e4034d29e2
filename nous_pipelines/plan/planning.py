"""Makes the plan of a night: the proposals that do not conflict, by precedence, and make no used memory harder to find.

For the latter, earlier recalls are replayed on the state after the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_pipelines.phases.incremental_join import vector_matrix
from nous_pipelines.phases.phase_table import PRECEDENCE
from nous_pipelines.phases.proposals import Plan, Proposal
from nous_pipelines.plan.evidence import RECALLED, Evidence, final_successor
from nous_pipelines.snapshots.agent_chunks import chunked


def planned(night: date, proposals: Iterable[Proposal], *, agent_ids: Sequence[str], policy: Mapping[str, Any]) -> Plan:
    """Return the plan of a night, conflicts resolved by precedence.

    A memory is changed by one proposal a night. A later one that reads or changes it was decided on an outdated
    version, so it waits; so does one that would retire a memory that an earlier one read, such as a successor.
    """
    taken: set[tuple[str, str]] = set()
    relied_on: set[tuple[str, str]] = set()
    kept: list[Proposal] = []
    waiting: list[Proposal] = []
    found = list(proposals)
    for proposal in sorted(found, key=precedence_among(found)):
        if taken & (proposal.changed | proposal.read) or relied_on & proposal.retired:
            waiting.append(proposal)
        else:
            taken |= proposal.changed
            relied_on |= proposal.read
            kept.append(proposal)
    return Plan(night, tuple(sorted(agent_ids)), policy, tuple(kept), tuple(waiting))


def combine_plans(wanted: Plan, parts: Sequence[Plan]) -> Plan:
    """Return the parts of one plan, each for some of its agents, as one plan; agents without a part are left out."""
    if len(parts) == 1:
        return parts[0]
    kept = {proposal.id for part in parts for proposal in part.proposals}
    waiting = {proposal.id: proposal for part in parts for proposal in part.waiting}
    return replace(
        wanted,
        proposals=tuple(proposal for proposal in wanted.proposals if proposal.id in kept),
        waiting=tuple(waiting.values()),
    )


def precedence_among(proposals: Iterable[Proposal]) -> Callable[[Proposal], tuple[Any, ...]]:
    """Return the sort key of the order in which proposals are planned and applied.

    A supersession goes before the merges if it only reads what they change and they retire nothing it reads: then both
    can be applied, in this order. Otherwise the supersession of a value that is repeated, and merged, every day would
    wait for ever.
    """
    changed: set[tuple[str, str]] = set()
    retired: set[tuple[str, str]] = set()
    for merge in proposals:
        if merge.kind == "merge":
            changed |= merge.changed
            retired |= merge.retired

    def place(proposal: Proposal) -> tuple[Any, ...]:
        is_free = proposal.kind == "supersede" and not (proposal.changed & changed or proposal.read & retired)
        return (not is_free, PRECEDENCE.index(proposal.kind), proposal.agent_id, proposal.id)

    return place


# --- memories that would be harder to find ---

Floats = NDArray[np.float32]
PROBES_AT_ONCE = 64  # with 100,000 memories 26 MB of scores
SAMPLED = 2048  # memories that suffice to see that one is far from the first answers
ROUNDING = 1e-6  # of a float32 product: differences below it do not change a rank


@dataclass(frozen=True)
class Probe:
    """One recall: the question, the kinds asked for, the number of answers, and the answers that were used."""

    query: str
    types: tuple[str, ...]
    limit: int
    cited: tuple[str, ...]


@dataclass(frozen=True)
class HarderToFind:
    """A used memory that would be harder to find: its ranks, and the promoted memories that would pass it."""

    query: str
    memory: str
    before: int
    after: int | None
    risen: frozenset[str]

    def __str__(self) -> str:
        return f"“{self.query}”: {self.memory} at rank {self.before} before, {self.after or 'nowhere'} after"


class Replay:
    """Ranks one agent's memories for a question, before and after the plan.

    Relevance is cosine (at least 0) times `rank_weight`, among the kinds the probe asked for. The lexical part of the
    ranking is left out, since no plan changes the text of a memory that stays.
    """

    def __init__(self, memories: pl.DataFrame, evidence: Evidence) -> None:
        self._ids = memories["id"].to_list()
        self._place = {memory: row for row, memory in enumerate(self._ids)}
        self._kinds = memories["kind"].to_numpy()
        self._asked_for: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        self._vectors = vector_matrix(memories["embedding"])
        self._before = memories["rank_weight"].to_numpy().astype(np.float32)
        self._after = self._weights_after(evidence)
        self._weights = np.where(np.isfinite(self._after), self._after, -1)  # memories that leave rank last
        self._raised = np.flatnonzero(self._after > self._before)
        self._successors, self._updated = evidence.successors, evidence.updated
        self._stride = max(len(self._ids) // SAMPLED, 1)

    def _weights_after(self, evidence: Evidence) -> Floats:
        """Return the rank weight of each memory after the plan, minus infinity for those that leave."""
        after, weights, leaving = self._before.copy(), evidence.weights, evidence.leaving
        # Of two sets the smaller is gone through: all that the plan changes, for each agent, was quadratic in agents.
        for memory in self._place.keys() & weights.keys():
            after[self._place[memory]] = weights[memory]
        for memory in self._place.keys() & leaving:
            after[self._place[memory]] = -np.inf
        return after

    def worse(self, probes: Sequence[Probe], vectors: Floats) -> Iterator[HarderToFind]:
        """Yield each cited memory of the probes that would be harder to find."""
        for start in range(0, len(probes), PROBES_AT_ONCE):
            block = slice(start, start + PROBES_AT_ONCE)
            yield from self._worse_of_block(probes[block], vectors[block])

    def _worse_of_block(self, probes: Sequence[Probe], vectors: Floats) -> Iterator[HarderToFind]:
        raised = relevance(self._vectors[self._raised], vectors.T) * self._after[self._raised, None]
        sampled = relevance(self._vectors[:: self._stride], vectors.T) * self._before[:: self._stride, None]
        # A rank needs the cosines of a question to all memories; two cheap tests leave few questions that need one.
        suspects = [
            (column, memory)
            for column, probe in enumerate(probes)
            for memory in probe.cited
            if memory in self._place
            and self._may_be_worse(memory, vectors[column], raised[:, column])
            and not self._is_far(memory, probe, vectors[column], sampled[:, column])
        ]
        columns = sorted({column for column, _ in suspects})
        cosines = relevance(self._vectors, vectors[columns].T)
        for column, memory in suspects:
            found = self.compared(memory, probes[column], cosines[:, columns.index(column)])
            if found is not None:
                yield found

    def _may_be_worse(self, memory: str, vector: Floats, raised: Floats) -> bool:
        """Return whether the rank of a memory may have fallen: its own score fell, or a promoted one passed it."""
        place, heir = self._place[memory], self._heir(memory)
        if heir is None:
            return True
        if memory in self._updated:
            return False
        before = float(relevance(self._vectors[place], vector)) * self._before[place]
        after = float(relevance(self._vectors[heir], vector)) * self._after[heir]
        overtaken = (raised > after + ROUNDING) & (self._raised != heir)
        return after < before - ROUNDING or bool(overtaken.any())

    def _is_far(self, memory: str, probe: Probe, vector: Floats, sampled: Floats) -> bool:
        """Return whether a sample of memories already proves that a memory was not among the answers before."""
        place = self._place[memory]
        score = float(relevance(self._vectors[place], vector)) * self._before[place]
        ahead = (sampled > score + ROUNDING) & self._of_kinds(probe.types)[:: self._stride]
        return self._heir(memory) is not None and int(ahead.sum()) >= probe.limit

    def compared(self, memory: str, probe: Probe, cosines: Floats) -> HarderToFind | None:
        """Return the ranks of a memory if it vanishes or falls out of the probe's answers, None otherwise.

        `cosines` are those of the probe's question to all memories. A memory that was not among the answers by cosine
        was found by its words, so that its rank by cosine says nothing.
        """
        is_asked_for = self._of_kinds(probe.types)
        heir = self._heir(memory)
        before = rank(cosines * self._before, self._place[memory], is_asked_for)
        if heir is None:
            return HarderToFind(probe.query, memory, before, None, frozenset())
        scores = cosines * self._weights
        after = rank(scores, heir, is_asked_for)
        if after <= probe.limit or before > probe.limit or memory in self._updated:
            return None
        passed = scores[self._raised] > scores[heir] + ROUNDING
        risen = frozenset(self._ids[place] for place in self._raised[passed] if place != heir)
        return HarderToFind(probe.query, memory, before, after, risen)

    def _of_kinds(self, types: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return a mask of the memories of these kinds; of all recallable kinds if none is named."""
        if types not in self._asked_for:
            self._asked_for[types] = np.isin(self._kinds, types or RECALLED)
        return self._asked_for[types]

    def _heir(self, memory: str) -> int | None:
        """Return the row of the memory, or of its last successor, that recall finds after the plan; None for none."""
        place = self._place.get(final_successor(memory, self._successors) or "")
        return place if place is not None and np.isfinite(self._after[place]) else None


def relevance(vectors: Floats, questions: Floats) -> Floats:
    """Return cosines, at least 0: a lower weight would otherwise raise the product of a negative cosine."""
    return np.maximum(vectors @ questions, 0)


def rank(scores: Floats, place: int, is_asked_for: NDArray[np.bool_]) -> int:
    """Return the rank of a memory among those asked for, from 1."""
    return 1 + int(((scores > scores[place] + ROUNDING) & is_asked_for).sum())


def usable_probes(probes: pl.DataFrame) -> pl.DataFrame:
    """Return the recalls with a citation and a question vector."""
    return probes.filter(pl.col("cited_ids").list.len() > 0, pl.col("embedding").is_not_null())


def harder_to_find(evidence: Evidence, *, agent_ids: Collection[str] | None = None) -> list[HarderToFind]:
    """Return every used memory that would be harder to find after the plan, of some agents or of all affected."""
    probes = usable_probes(evidence.probes)
    wanted = affected_agents(probes, evidence) if agent_ids is None else agent_ids
    probes = probes.filter(pl.col("agent_id").is_in(list(wanted)))
    asked = {str(agent_id): own for (agent_id,), own in probes.group_by(["agent_id"], maintain_order=True)}
    sizes = dict(evidence.memories.group_by("agent_id").len().iter_rows())
    return [
        found
        for chunk in chunked(sorted(asked), sizes)
        for agent_id, memories in memories_by_agent(evidence.searchable(chunk), chunk)
        for found in worse_of_agent(memories, asked[agent_id], evidence)
    ]


def memories_by_agent(memories: pl.DataFrame, agent_ids: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield each of some agents with its memories; those of one agent, who may have 100,000, are not copied."""
    if len(agent_ids) == 1:
        yield agent_ids[0], memories
        return
    for (agent_id,), own in memories.group_by(["agent_id"], maintain_order=True):
        yield str(agent_id), own


def affected_agents(probes: pl.DataFrame, evidence: Evidence) -> set[str]:
    """Return the agents whose probes may change: a weight changes, or a cited memory leaves."""
    reweighted = {p.agent_id for p in evidence.plan.proposals if any("rank_weight" in c.set for c in p.changes)}
    leaves = pl.element().is_in(list(evidence.leaving))
    touched = probes.filter(pl.col("cited_ids").list.eval(leaves).list.any())
    return reweighted | set(touched["agent_id"])


def worse_of_agent(memories: pl.DataFrame, recalls: pl.DataFrame, evidence: Evidence) -> list[HarderToFind]:
    """Return what would be harder to find for one agent; `recalls` are its probes with a vector."""
    widths = memories["embedding"].list.len().unique().to_list()
    is_comparable = pl.col("embedding").list.len().is_in(widths)
    asked = recalls.filter(is_comparable)
    probes = [probe_of(row) for row in asked.select("query", "types", "result_limit", "cited_ids").to_dicts()]
    return list(Replay(memories, evidence).worse(probes, vector_matrix(asked["embedding"]))) if probes else []


def probe_of(row: Mapping[str, Any]) -> Probe:
    """Read a probe from a row of the snapshot's recalls."""
    return Probe(row["query"], tuple(row["types"] or ()), row["result_limit"], tuple(row["cited_ids"]))


def without_harmful_proposals(evidence: Evidence) -> Plan:
    """Return the plan with all proposals waiting that would make a used memory harder to find.

    That is a promotion past a used memory, and a merge whose canonical wording no longer answers its probe. Repeated
    until no harmful proposal remains, since holding one back may change other ranks. A used memory that vanishes
    without a successor is left to the check, which stops the night.
    """
    agents: Collection[str] | None = None
    while True:
        found = [each for each in harder_to_find(evidence, agent_ids=agents) if each.after is not None]
        harmful = harmful_proposals(found, evidence.plan)
        if not harmful:
            return evidence.plan
        agents = {proposal.agent_id for proposal in harmful}
        evidence = replace(evidence, plan=with_waiting(evidence.plan, harmful))


def harmful_proposals(found: Sequence[HarderToFind], plan: Plan) -> list[Proposal]:
    """Return the proposals that push used memories down, or merge them into a wording that ranks lower.

    Demotions count, too: a proposal of that kind may raise a weight, back towards 1.
    """
    risen = {memory for each in found for memory in each.risen}
    hidden = {each.memory for each in found if not each.risen}
    return [
        proposal
        for proposal in plan.proposals
        if (risen | hidden) & {change.id for change in proposal.changes if "rank_weight" in change.set}
        or hidden & {change.id for change in proposal.changes if change.set.get("succession") == "merged"}
    ]


def with_waiting(plan: Plan, proposals: Sequence[Proposal]) -> Plan:
    """Return the plan with some of its proposals moved to those that wait."""
    waiting = {proposal.id for proposal in proposals}
    kept = tuple(proposal for proposal in plan.proposals if proposal.id not in waiting)
    return replace(plan, proposals=kept, waiting=(*plan.waiting, *proposals))
