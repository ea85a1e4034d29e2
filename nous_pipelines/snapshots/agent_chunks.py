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


class FactReader:
    """Reads facts, and holds the columns read last, of one set of agents; their vectors for one more reader only."""

    def __init__(self) -> None:
        self._whose: tuple[Any, ...] = ()
        self._held = dict[str, pl.Series]()

    def read(self, taken: Snapshot, columns: Sequence[str], agent_ids: Sequence[str]) -> pl.DataFrame:
        """Return facts of some agents, and hold what had to be read of them."""
        whose = (taken.folder, taken.taken_at, *agent_ids)
        if whose != self._whose:
            self._held = {}  # freed before as much is read again
        lacking = [name for name in columns if name not in self._held]
        if lacking:
            self._held |= taken.table("facts", columns=lacking, agent_ids=agent_ids).to_dict()
        self._whose, found = whose, pl.DataFrame([self._held[name] for name in columns])
        if "embedding" in columns and "embedding" not in lacking:
            del self._held["embedding"]
        return found


@dataclass(frozen=True)
class Chunk:
    """Some agents of one policy, and their rows: the unit of work of every phase."""

    snapshot: Snapshot
    policy: NightPolicy
    agent_ids: tuple[str, ...]
    reader: FactReader | None = field(default=None, compare=False)
    """What reads facts where all steps of a night run in this process; None elsewhere."""

    def table(self, name: str, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read the rows these agents have in one table of the snapshot."""
        if self.reader is not None and name == "facts" and columns is not None:
            return self.reader.read(self.snapshot, columns, self.agent_ids)
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
