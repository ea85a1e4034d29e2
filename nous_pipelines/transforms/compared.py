"""An exact join that remembers: what an earlier night compared is not compared again, and the result is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_pipelines.transforms.self_join import Pairs, similar_pairs, similar_pairs_between
from nous_pipelines.transforms.vectors import vector_matrix

SITES = {
    "agent_id": pl.String,
    "id": pl.String,
    "mark": pl.UInt64,  # changes with the vector, the place and the threshold, and with them what it is similar to
    "place": pl.UInt32,
    "threshold": pl.Float64,
    "at": pl.UInt32,  # its row among the vectors
}
"""Memories where they are compared: those of one place with each other, sorted by place and id."""
ROWS = {"agent_id": pl.String, "id": pl.String, "mark": pl.UInt64, "row": pl.UInt32}
PAIRS = {"agent_id": pl.String, "left": pl.UInt32, "right": pl.UInt32, "similarity": pl.Float32}
PACKED_ROWS = 256  # small places are compared in one product of this size; what lies across places is dropped
MOST_FRESH = 0.5  # with more new rows than this, comparing all of them again is cheaper

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Compared:
    """What was compared, and each pair that reached its threshold, by row: what a later night builds on."""

    rows: pl.DataFrame
    pairs: pl.DataFrame

    def renumbered(self, start: int) -> Compared:
        """Return the same with rows counted from `start`."""
        return Compared(
            self.rows.with_columns((pl.col("row") + start).cast(pl.UInt32)),
            self.pairs.with_columns((pl.col("left", "right") + start).cast(pl.UInt32)),
        )


NOTHING = Compared(pl.DataFrame(schema=ROWS), pl.DataFrame(schema=PAIRS))


def compared(sites: pl.DataFrame, vectors: pl.Series, *, earlier: Compared = NOTHING) -> Compared:
    """Return each pair of one place at or above its threshold, as rows of `sites` (left < right), sorted.

    Only what `earlier` does not hold with the same mark is compared, with everything of its place. Raises
    `InvalidInput` for vectors that are not of length one, or of several widths in one place.
    """
    rows = sites.with_row_index("row").select(pl.col(name).cast(kind) for name, kind in ROWS.items())
    known = rows.join(earlier.rows, on=["agent_id", "id", "mark"], suffix="_earlier").select("row_earlier", "row")
    is_fresh = np.ones(len(sites), dtype=np.bool_)
    is_fresh[known["row"].to_numpy()] = False
    parts = [kept_pairs(earlier.pairs, known), *(as_table(part) for part in _new_pairs(sites, vectors, is_fresh))]
    pairs = pl.concat(parts).sort("left", "right")
    return Compared(rows, pairs.select(sites["agent_id"].gather(pairs["left"]).alias("agent_id"), *list(PAIRS)[1:]))


def kept_pairs(pairs: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the earlier pairs of which both rows are still there, by their present rows."""
    return (
        pairs.join(known.rename({"row": "a"}), left_on="left", right_on="row_earlier")
        .join(known.rename({"row": "b"}), left_on="right", right_on="row_earlier")
        .select(left=pl.min_horizontal("a", "b"), right=pl.max_horizontal("a", "b"), similarity="similarity")
    )


def as_table(pairs: Pairs) -> pl.DataFrame:
    """Return pairs as a table, the smaller row left."""
    return pl.DataFrame(
        {
            "left": np.minimum(pairs.left, pairs.right).astype(np.uint32),
            "right": np.maximum(pairs.left, pairs.right).astype(np.uint32),
            "similarity": pairs.similarity,
        }
    )


def _new_pairs(sites: pl.DataFrame, vectors: pl.Series, is_fresh: Mask) -> Iterator[Pairs]:
    place, threshold = sites["place"].to_numpy(), sites["threshold"].to_numpy()
    width = vectors.list.len().gather(sites["at"]).to_numpy()
    for start, stop in _units(place, np.column_stack([threshold, width])):
        fresh = is_fresh[start:stop]
        if not fresh.any():
            continue
        own = vector_matrix(_slice(vectors, sites["at"].slice(start, stop - start)))
        if stop - start <= 2 * PACKED_ROWS or fresh.mean() > MOST_FRESH:
            found = _among_all(own, place[start:stop], fresh, threshold=threshold[start])
        else:
            found = _fresh_with_all(own, fresh, threshold=threshold[start])
        yield Pairs(found.left + np.int32(start), found.right + np.int32(start), found.similarity)


def _units(place: NDArray[np.uint32], alike: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield what is compared at once: a large place, or small ones in a row that agree in threshold and width."""
    bounds = [0, *(np.flatnonzero(np.diff(place)) + 1).tolist(), len(place)]
    first = 0
    for start, stop in pairwise(bounds):
        if first < start and (stop - first > PACKED_ROWS or (alike[start] != alike[first]).any()):
            yield first, start
            first = start
    if first < len(place):
        yield first, len(place)


def _slice(vectors: pl.Series, at: pl.Series) -> pl.Series:
    """Return the vectors at some rows, without a copy where they lie in a row."""
    first = int(at[0])
    is_run = at[-1] == first + len(at) - 1 and bool((at.diff().drop_nulls() == 1).all())
    return vectors.slice(first, len(at)) if is_run else vectors.gather(at)


def _among_all(own: NDArray[np.float32], place: NDArray[np.uint32], fresh: Mask, *, threshold: float) -> Pairs:
    found = similar_pairs(own, threshold=threshold)
    is_new = (place[found.left] == place[found.right]) & (fresh[found.left] | fresh[found.right])
    return Pairs(found.left[is_new], found.right[is_new], found.similarity[is_new])


def _fresh_with_all(own: NDArray[np.float32], fresh: Mask, *, threshold: float) -> Pairs:
    new, known = np.flatnonzero(fresh).astype(np.int32), np.flatnonzero(~fresh).astype(np.int32)
    across = similar_pairs_between(own[new], own[known], threshold=threshold)
    within = similar_pairs(own[new], threshold=threshold)
    return Pairs(
        np.concatenate([new[across.left], new[within.left]]),
        np.concatenate([known[across.right], new[within.right]]),
        np.concatenate([across.similarity, within.similarity]),
    )
