"""Replays what was recalled and used against the state a plan would leave: nothing used may become harder to find."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_pipelines.phases.arrays import vector_matrix
from nous_pipelines.phases.proposals import Plan, Proposal
from nous_pipelines.plan.evidence import RECALLED, Evidence, final_successor
from nous_pipelines.snapshots.chunks import chunked

Floats = NDArray[np.float32]
PROBES_AT_ONCE = 64  # with 100,000 memories 26 MB of scores
SAMPLED = 2048  # memories that are enough to see that one is far from the first answers
ROUNDING = 1e-6  # of a float32 product: a memory is not overtaken by its own rounding error


@dataclass(frozen=True)
class Probe:
    """One question with what its asker used of the answers."""

    query: str
    types: tuple[str, ...]
    limit: int
    cited: tuple[str, ...]


@dataclass(frozen=True)
class Worse:
    """A used memory that would be harder to find: from which rank to which, and past it which promoted ones rose."""

    query: str
    memory: str
    before: int
    after: int | None
    risen: frozenset[str]

    def __str__(self) -> str:
        return f"“{self.query}”: {self.memory} at rank {self.before} before, {self.after or 'nowhere'} after"


class Replay:
    """One agent's recallable memories before and after the plan, and where each stands for a question.

    Relevance is cosine (0 at least) times `rank_weight`, over the kinds the probe asked for; the words of the fused
    ranking are left out, since no plan changes what a memory that stays says.
    """

    def __init__(self, memories: pl.DataFrame, evidence: Evidence) -> None:
        self._ids = memories["id"].to_list()
        self._place = {memory: row for row, memory in enumerate(self._ids)}
        self._kinds = memories["kind"].to_numpy()
        self._asked_for: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        self._vectors = vector_matrix(memories["embedding"])
        self._before = memories["rank_weight"].to_numpy().astype(np.float32)
        self._after = self._weights_after(evidence)
        self._weights = np.where(np.isfinite(self._after), self._after, -1)  # what has left stands behind all else
        self._raised = np.flatnonzero(self._after > self._before)
        self._successors, self._updated = evidence.successors, evidence.updated
        self._stride = max(len(self._ids) // SAMPLED, 1)

    def _weights_after(self, evidence: Evidence) -> Floats:
        """Return what each memory's relevance is multiplied with after the plan; minus infinity once it has left."""
        after, weights, leaving = self._before.copy(), evidence.weights, evidence.leaving
        for memory, place in self._place.items():  # the agent's own: the plan holds those of all agents
            if memory in leaving:
                after[place] = -np.inf
            elif memory in weights:
                after[place] = weights[memory]
        return after

    def worse(self, probes: Sequence[Probe], vectors: Floats) -> Iterator[Worse]:
        """Yield each memory a probe's user cited and would no longer find."""
        for start in range(0, len(probes), PROBES_AT_ONCE):
            block = slice(start, start + PROBES_AT_ONCE)
            yield from self._worse_of_block(probes[block], vectors[block])

    def _worse_of_block(self, probes: Sequence[Probe], vectors: Floats) -> Iterator[Worse]:
        raised = relevance(self._vectors[self._raised], vectors.T) * self._after[self._raised, None]
        sampled = relevance(self._vectors[:: self._stride], vectors.T) * self._before[:: self._stride, None]
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
        """Tell whether the rank of a memory can have fallen at all: its own score fell, or another one's passed it."""
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
        """Tell whether a sample of memories alone shows that a memory was not among the answers before."""
        place = self._place[memory]
        score = float(relevance(self._vectors[place], vector)) * self._before[place]
        ahead = (sampled > score + ROUNDING) & self._of_kinds(probe.types)[:: self._stride]
        return self._heir(memory) is not None and int(ahead.sum()) >= probe.limit

    def compared(self, memory: str, probe: Probe, cosines: Floats) -> Worse | None:
        """Return how far down a memory falls, if it vanishes or was among the answers and falls out of them.

        `cosines` are those of the probe's question to all memories. One that was not among the answers by cosine was
        found by its words: its rank says nothing, before or after.
        """
        is_asked_for = self._of_kinds(probe.types)
        heir = self._heir(memory)
        before = rank(cosines * self._before, self._place[memory], is_asked_for)
        if heir is None:
            return Worse(probe.query, memory, before, None, frozenset())
        scores = cosines * self._weights
        after = rank(scores, heir, is_asked_for)
        if after <= probe.limit or before > probe.limit or memory in self._updated:
            return None
        passed = scores[self._raised] > scores[heir] + ROUNDING
        risen = frozenset(self._ids[place] for place in self._raised[passed] if place != heir)
        return Worse(probe.query, memory, before, after, risen)

    def _of_kinds(self, types: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return which memories a question for some kinds was about; for none named it was about all."""
        if types not in self._asked_for:
            self._asked_for[types] = np.isin(self._kinds, types or RECALLED)
        return self._asked_for[types]

    def _heir(self, memory: str) -> int | None:
        """Return the place of what a memory is found through after the plan; None where that is nothing."""
        place = self._place.get(final_successor(memory, self._successors) or "")
        return place if place is not None and np.isfinite(self._after[place]) else None


def relevance(vectors: Floats, questions: Floats) -> Floats:
    """Return cosines, none below 0: what points away from a question is no less relevant for being demoted."""
    return np.maximum(vectors @ questions, 0)


def rank(scores: Floats, place: int, is_asked_for: NDArray[np.bool_]) -> int:
    """Return at which rank a memory stands among those asked for."""
    return 1 + int(((scores > scores[place] + ROUNDING) & is_asked_for).sum())


def usable(probes: pl.DataFrame) -> pl.DataFrame:
    """Return the recalls of which something was used and whose question has a vector."""
    return probes.filter(pl.col("cited_ids").list.len() > 0, pl.col("embedding").is_not_null())


def worse(evidence: Evidence, *, agent_ids: Collection[str] | None = None) -> list[Worse]:
    """Return every used memory that would be harder to find after the plan, of these agents or of all it touches."""
    probes = usable(evidence.probes)
    wanted = concerned(probes, evidence) if agent_ids is None else agent_ids
    probes = probes.filter(pl.col("agent_id").is_in(list(wanted)))
    asked = {str(agent_id): own for (agent_id,), own in probes.group_by(["agent_id"], maintain_order=True)}
    sizes = dict(evidence.memories.group_by("agent_id").len().iter_rows())
    return [
        found
        for chunk in chunked(sorted(asked), sizes)
        for (agent_id,), memories in evidence.searchable(chunk).group_by(["agent_id"], maintain_order=True)
        for found in worse_of_agent(memories, asked[str(agent_id)], evidence)
    ]


def concerned(probes: pl.DataFrame, evidence: Evidence) -> set[str]:
    """Return the agents whose probes may come out otherwise: something rises or falls, or what was used leaves."""
    reweighted = {p.agent_id for p in evidence.plan.proposals if any("rank_weight" in c.set for c in p.changes)}
    leaves = pl.element().is_in(list(evidence.leaving))
    touched = probes.filter(pl.col("cited_ids").list.eval(leaves).list.any())
    return reweighted | set(touched["agent_id"])


def worse_of_agent(memories: pl.DataFrame, recalls: pl.DataFrame, evidence: Evidence) -> list[Worse]:
    """Return what one agent would find worse; `recalls` are its probes with a vector."""
    widths = memories["embedding"].list.len().unique().to_list()
    is_comparable = pl.col("embedding").list.len().is_in(widths)
    asked = recalls.filter(is_comparable)
    probes = [probe_of(row) for row in asked.select("query", "types", "result_limit", "cited_ids").to_dicts()]
    return list(Replay(memories, evidence).worse(probes, vector_matrix(asked["embedding"]))) if probes else []


def probe_of(row: Mapping[str, Any]) -> Probe:
    """Read a probe from a row of the snapshot's recalls."""
    return Probe(row["query"], tuple(row["types"] or ()), row["result_limit"], tuple(row["cited_ids"]))


def spared(evidence: Evidence) -> Plan:
    """Return the plan with those proposals waiting that would hide what was used.

    A promotion that rises past a used memory, and a merge whose wording answers its probe no longer, are worth less
    than staying found: they are held back, again and again until none is left that does harm. What vanishes without an
    heir is left to the check, which stops the night.
    """
    agents: Collection[str] | None = None
    while True:
        found = [each for each in worse(evidence, agent_ids=agents) if each.after is not None]
        harmful = harming(found, evidence.plan)
        if not harmful:
            return evidence.plan
        agents = {proposal.agent_id for proposal in harmful}
        evidence = replace(evidence, plan=held_back(evidence.plan, harmful))


def harming(found: Sequence[Worse], plan: Plan) -> list[Proposal]:
    """Return the proposals that pushed used memories down, or by which they are found in other words than their own.

    Any change of a weight may raise it: a demotion is also taken back by steps.
    """
    risen = {memory for each in found for memory in each.risen}
    hidden = {each.memory for each in found if not each.risen}
    return [
        proposal
        for proposal in plan.proposals
        if (risen | hidden) & {change.id for change in proposal.changes if "rank_weight" in change.set}
        or hidden & {change.id for change in proposal.changes if change.set.get("succession") == "merged"}
    ]


def held_back(plan: Plan, proposals: Sequence[Proposal]) -> Plan:
    """Return the plan with some of its proposals among those that wait."""
    waiting = {proposal.id for proposal in proposals}
    kept = tuple(proposal for proposal in plan.proposals if proposal.id not in waiting)
    return replace(plan, proposals=kept, waiting=(*plan.waiting, *proposals))
