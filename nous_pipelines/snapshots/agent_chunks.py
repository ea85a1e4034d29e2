"""Chunks of agents: as many as fit in memory at once, read from a snapshot without the rows of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.snapshots.snapshot import Snapshot

CHUNK_ROWS = 120_000
"""Facts in a chunk: with 384 dimensions 200 MB of vectors, and as much again for what is computed from them."""

CHUNKS_EACH = 4
"""Chunks for each worker: with one each, all would wait for the slowest."""


class FactVectors:
    """Reads facts with their vectors, which take longest, and holds the vectors read last for one more reader."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], pl.DataFrame] | None = None

    def read(self, taken: Snapshot, columns: Sequence[str], agent_ids: Sequence[str]) -> pl.DataFrame:
        """Return facts of some agents, and hold their vectors for the next reader if this one had to read them."""
        others = [name for name in columns if name != "embedding"]
        facts = taken.table("facts", columns=others, agent_ids=agent_ids)
        key, (known, vectors) = (taken.folder, taken.taken_at, *agent_ids), self._last or ((), facts)
        self._last = None  # freed before as much is read again
        if known != key:
            vectors = taken.table("facts", columns=["embedding"], agent_ids=agent_ids)
            self._last = key, vectors
        return facts.hstack(vectors).select(columns)


@dataclass(frozen=True)
class Chunk:
    """Some agents of one policy, and their rows: the unit of work of every phase."""

    snapshot: Snapshot
    policy: NightPolicy
    agent_ids: tuple[str, ...]
    vectors: FactVectors | None = field(default=None, compare=False)
    """What reads facts with their vectors where all steps of a night run in this process; None elsewhere."""

    def table(self, name: str, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read the rows these agents have in one table of the snapshot."""
        if self.vectors is not None and name == "facts" and columns is not None and "embedding" in columns:
            return self.vectors.read(self.snapshot, columns, self.agent_ids)
        return self.snapshot.table(name, columns=columns, agent_ids=self.agent_ids)

    def own(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the rows these agents have in a table of all agents."""
        return table.filter(pl.col("agent_id").is_in(list(self.agent_ids)))


def rows_at_once(rows: int, *, width: int) -> int:
    """Return the most facts in a chunk where an engine works on `width` chunks at once."""
    return CHUNK_ROWS if width == 1 else max(1, min(CHUNK_ROWS, rows // (width * CHUNKS_EACH)))


def chunked(agent_ids: Sequence[str], sizes: Mapping[str, int], *, most: int = CHUNK_ROWS) -> Iterator[list[str]]:
    """Yield the agents in order in chunks of at most `most` facts; an agent with more is a chunk of its own."""
    chunk: list[str] = []
    rows = 0
    for agent_id in agent_ids:
        size = sizes.get(agent_id, 0)
        if chunk and rows + size > most:
            yield chunk
            chunk, rows = [], 0
        chunk.append(agent_id)
        rows += size
    if chunk:
        yield chunk
