"""Replays what was recalled and used against the state a plan would leave: nothing used may become harder to find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_pipelines.evidence import Evidence, final_successor
from nous_pipelines.transforms.vectors import vector_matrix

Floats = NDArray[np.float32]
PROBES_AT_ONCE = 64  # with 100,000 memories 26 MB of scores
ROUNDING = 1e-6  # of a float32 product: a memory is not overtaken by its own rounding error


@dataclass(frozen=True)
class Probe:
    """One question with what its asker used of the answers."""

    query: str
    types: tuple[str, ...]
    limit: int
    cited: tuple[str, ...]


class Replay:
    """One agent's recallable memories before and after the plan, and where each stands for a question.

    Relevance is cosine times `rank_weight`, over the kinds the probe asked for; the words of the fused ranking are left
    out, since no plan changes what a memory that stays says.
    """

    def __init__(self, memories: pl.DataFrame, evidence: Evidence) -> None:
        self._ids = memories["id"].to_list()
        self._place = {memory: row for row, memory in enumerate(self._ids)}
        self._kinds = memories["kind"].to_numpy()
        self._vectors = vector_matrix(memories["embedding"])
        self._before = memories["rank_weight"].to_numpy().astype(np.float32)
        self._after = self._weights_after(evidence)
        self._raised = np.flatnonzero(self._after > self._before)
        self._successors = evidence.successors

    def _weights_after(self, evidence: Evidence) -> Floats:
        """Return what each memory's relevance is multiplied with after the plan; minus infinity once it has left."""
        after = self._before.copy()
        for proposal in evidence.plan.proposals:
            for change in proposal.changes:
                place = self._place.get(change.id)
                if place is not None and "rank_weight" in change.set:
                    after[place] = change.set["rank_weight"]
        after[[self._place[memory] for memory in evidence.leaving if memory in self._place]] = -np.inf
        return after

    def worse(self, probes: Sequence[Probe], vectors: Floats) -> Iterator[str]:
        """Yield a sentence for each memory a probe's user cited and would no longer find."""
        for start in range(0, len(probes), PROBES_AT_ONCE):
            block = slice(start, start + PROBES_AT_ONCE)
            yield from self._worse_of_block(probes[block], vectors[block])

    def _worse_of_block(self, probes: Sequence[Probe], vectors: Floats) -> Iterator[str]:
        raised = self._vectors[self._raised] @ vectors.T * self._after[self._raised, None]
        for column, probe in enumerate(probes):
            for memory in probe.cited:
                if memory in self._place and self._may_be_worse(memory, vectors[column], raised[:, column]):
                    sentence = self._compared(memory, probe, vectors[column])
                    if sentence:
                        yield sentence

    def _may_be_worse(self, memory: str, vector: Floats, raised: Floats) -> bool:
        """Tell whether the rank of a memory can have fallen at all: its own score fell, or another one's passed it."""
        place, heir = self._place[memory], self._heir(memory)
        if heir is None:
            return True
        before = float(self._vectors[place] @ vector) * self._before[place]
        after = float(self._vectors[heir] @ vector) * self._after[heir]
        overtaken = (raised > after + ROUNDING) & (self._raised != heir)
        return after < before - ROUNDING or bool(overtaken.any())

    def _compared(self, memory: str, probe: Probe, vector: Floats) -> str | None:
        """Say how far down a memory falls, if it falls out of the results or further down outside of them."""
        cosines = self._vectors @ vector
        is_asked_for = np.isin(self._kinds, probe.types) if probe.types else np.ones(len(cosines), dtype=bool)
        heir = self._heir(memory)
        before = rank(cosines * self._before, self._place[memory], is_asked_for)
        after = None if heir is None else rank(self._scores_after(cosines), heir, is_asked_for)
        if after is not None and after <= max(before, probe.limit):
            return None
        return f"“{probe.query}”: {memory} at rank {before} before, {after or 'nowhere'} after"

    def _scores_after(self, cosines: Floats) -> Floats:
        stays = np.isfinite(self._after)
        return np.where(stays, cosines * np.where(stays, self._after, 0), -np.inf)

    def _heir(self, memory: str) -> int | None:
        """Return the place of what a memory is found through after the plan; None where that is nothing."""
        place = self._place.get(final_successor(memory, self._successors) or "")
        return place if place is not None and np.isfinite(self._after[place]) else None


def rank(scores: Floats, place: int, is_asked_for: NDArray[np.bool_]) -> int:
    """Return at which rank a memory stands among those asked for."""
    return 1 + int(((scores > scores[place] + ROUNDING) & is_asked_for).sum())


def worse_of_agent(agent_id: str, recalls: pl.DataFrame, evidence: Evidence) -> list[str]:
    """Return what one agent would find worse; `recalls` are its probes with a vector."""
    memories = evidence.searchable(agent_id)
    widths = memories["embedding"].list.len().unique().to_list()
    asked = recalls.filter(
        pl.col("embedding").list.len().is_in(widths)
    )  # of the space in use: others can't be compared
    probes = [probe_of(row) for row in asked.select("query", "types", "result_limit", "cited_ids").to_dicts()]
    return list(Replay(memories, evidence).worse(probes, vector_matrix(asked["embedding"]))) if probes else []


def probe_of(row: Mapping[str, Any]) -> Probe:
    """Read a probe from a row of the snapshot's recalls."""
    return Probe(row["query"], tuple(row["types"] or ()), row["result_limit"], tuple(row["cited_ids"]))
