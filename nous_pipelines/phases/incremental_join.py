"""A cosine join that reuses the pairs of an earlier night; the nearest pairs of each row are those of a full join.

For rows with very many near rows only some multiple of the nearest pairs is kept, with the similarity (`reach`) above
which the row's pairs are complete. A row that has lost too many of them is compared again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_pipelines.phases.arrays import vector_matrix
from nous_pipelines.phases.crowded_join import Crowd, Limits, is_crowded, nearest_pairs
from nous_pipelines.phases.self_join import Pairs, similar_pairs, similar_pairs_between
from nous_pipelines.snapshots.table_schemas import MEMORY, OWNER, TableSchema

MARK = (pl.UInt64, "changes with all that decides what it is compared with, and how")
SITES = TableSchema("sites", "Memories where they are compared, by place and id: those of one place with each other.", {
    **MEMORY,
    "mark": MARK,
    "place": (pl.UInt32, "where it is compared"),
    "threshold": (pl.Float64, "the cosine from which a pair of this place is kept"),
    "about": (pl.UInt32, "rows of two of these are no pair; 0 may be about anything"),
    "owner": (pl.UInt32, "two rows of one of these are no pair; 0 has none"),
    "at": (pl.UInt32, "its row among the vectors"),
})  # fmt: skip
ROWS = TableSchema("compared_rows", "What was compared.", {
    **MEMORY,
    "mark": MARK,
    "row": (pl.UInt32, "the number pairs name it by"),
    "reach": (pl.Float32, "above it all pairs of this row are there; 0 where none was cut"),
})  # fmt: skip
PAIRS = TableSchema("compared_pairs", "The nearest pairs of what was compared.", {
    **OWNER,
    "left": (pl.UInt32, "one row, the smaller"),
    "right": (pl.UInt32, "the other"),
    "similarity": (pl.Float32, "cosine of their vectors"),
})  # fmt: skip
PACKED_ROWS = 256  # small places are compared in one product of this size; what lies across places is dropped
MOST_FRESH = 0.5  # share of new rows above which joining all rows again is cheaper
SPARE = 1.5  # times the nearest asked for that are kept: a row survives losing a third of them before it is recompared

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Compared:
    """The compared rows (`ROWS`) and their nearest pairs at or above the threshold (`PAIRS`), for a later night."""

    rows: pl.DataFrame
    pairs: pl.DataFrame

    def renumbered(self, start: int) -> Compared:
        """Return the same with rows counted from `start`."""
        return Compared(
            self.rows.with_columns((pl.col("row") + start).cast(pl.UInt32)),
            self.pairs.with_columns((pl.col("left", "right") + start).cast(pl.UInt32)),
        )


NOTHING = Compared(pl.DataFrame(schema=ROWS), pl.DataFrame(schema=PAIRS))


def compare(sites: pl.DataFrame, vectors: pl.Series, *, nearest: int, earlier: Compared = NOTHING) -> Compared:
    """Return the nearest pairs within each place at or above its threshold, as rows of `sites` (left < right), sorted.

    Holds the `nearest` pairs of each row, ties to the smaller row, and at least one more where there are more, so that
    the caller can tell a cut row. Rows that `earlier` has with the same mark are not compared with each other again.
    Raises `InvalidInput` for vectors that are not of length one, or of several widths in one place.
    """
    rows = sites.with_row_index("row").select("agent_id", "id", "mark", "row")
    known = rows.join(earlier.rows, on=["agent_id", "id", "mark"], suffix="_earlier").select(
        "row_earlier", "row", "reach"
    )
    reach = np.zeros(len(sites), dtype=np.float32)
    reach[known["row"].to_numpy()] = known["reach"].to_numpy()
    is_fresh = np.ones(len(sites), dtype=np.bool_)
    is_fresh[known["row"].to_numpy()] = False
    kept = kept_pairs(earlier.pairs, known)
    # A cut row that lost its nearest (merged, archived) may lack pairs that were never stored: compare it as new.
    is_short = rows_to_recompare(kept, reach, least=nearest + 1)
    is_fresh, reach[is_short] = is_fresh | is_short, 0
    known = known.filter(~pl.Series(is_fresh).gather(known["row"]))
    kept = kept_pairs(earlier.pairs, known) if is_short.any() else kept
    most = int(SPARE * (nearest + 1))
    parts = [kept, *(as_table(part) for part in _new_pairs(sites, vectors, is_fresh, reach, most=most))]
    pairs = cut_to_nearest(unique_pairs(pl.concat(parts)), reach, most=most)
    return Compared(
        rows.with_columns(reach=pl.Series(reach)).select(pl.col(name).cast(kind) for name, kind in ROWS.items()),
        pairs.select(sites["agent_id"].gather(pairs["left"]).alias("agent_id"), *list(PAIRS)[1:]),
    )


def rows_to_recompare(pairs: pl.DataFrame, reach: NDArray[np.float32], *, least: int) -> Mask:
    """Return for each row whether it was cut and has fewer than `least` pairs left above its reach."""
    counts = np.zeros(len(reach), dtype=np.int64)
    similarity = pairs["similarity"].to_numpy()
    for side in ("left", "right"):
        ends = pairs[side].to_numpy()
        counts += np.bincount(ends[similarity > reach[ends]], minlength=len(reach))
    return (reach > 0) & (counts < least)


def unique_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct pairs, sorted by (left, right)."""
    ordered = pairs.sort("left", "right")

    is_first = (pl.col("left") != pl.col("left").shift()) | (pl.col("right") != pl.col("right").shift())
    return ordered.filter(is_first.fill_null(value=True))


def cut_to_nearest(pairs: pl.DataFrame, reach: NDArray[np.float32], *, most: int) -> pl.DataFrame:
    """Drop pairs that are not among the `most` nearest of either end, when there are more than `most` a row on average.

    Raises `reach`, in place, for the rows that are cut.
    """
    if len(pairs) <= most * len(reach):
        return pairs
    left, right, similarity = (pairs[name].to_numpy() for name in ("left", "right", "similarity"))
    ranks = ranks_of(left, right, similarity)
    for ends, rank in zip((left, right), ranks, strict=True):
        is_cut = np.bincount(np.concatenate([left, right]), minlength=len(reach)) > most
        is_last = (rank == most - 1) & is_cut[ends]
        reach[ends[is_last]] = np.maximum(reach[ends[is_last]], similarity[is_last])
    return pairs.filter(pl.Series((ranks[0] < most) | (ranks[1] < most)))


def ranks_of(
    left: NDArray[np.uint32], right: NDArray[np.uint32], similarity: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rank of each pair among those of its left and of its right end, nearest first, ties by smaller row.

    The pairs are sorted by (left, right), the smaller row left.
    """
    ends = np.concatenate([right, left]).astype(np.uint64)  # in this order a stable sort leaves ties by smaller row
    # The bits of positive floats sort like their values, so one 64-bit key orders by row, then by distance.
    distance = np.uint32(0xFFFFFFFF) - np.tile(similarity.view(np.uint32), 2)
    order = np.argsort((ends << np.uint64(32)) | distance, kind="stable")
    counts = np.bincount(ends.astype(np.int64))
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = place
    return ranks[len(left) :], ranks[: len(left)]


def kept_pairs(pairs: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the earlier pairs of which both rows still exist, by their current row numbers."""
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


def _new_pairs(
    sites: pl.DataFrame, vectors: pl.Series, is_fresh: Mask, reach: NDArray[np.float32], *, most: int
) -> Iterator[Pairs]:
    """Yield the pairs of fresh rows, unit by unit, by rows of `sites`; sets the `reach` of fresh rows that are cut."""
    place, threshold = sites["place"].to_numpy(), sites["threshold"].to_numpy()
    about, owner = sites["about"].to_numpy(), sites["owner"].to_numpy()
    width = vectors.list.len().gather(sites["at"]).to_numpy()
    for start, stop in _units(place, np.column_stack([threshold, width])):
        span = slice(start, stop)
        if not is_fresh[span].any():
            continue
        own = vector_matrix(_slice(vectors, sites["at"].slice(start, stop - start)))
        crowd = Crowd(own, about[span], owner[span])
        found = _unit_pairs(crowd, place[span], is_fresh[span], reach[span], threshold=threshold[start], most=most)
        yield Pairs(found.left + np.int32(start), found.right + np.int32(start), found.similarity)


def _unit_pairs(
    crowd: Crowd, place: NDArray[np.uint32], fresh: Mask, reach: NDArray[np.float32], *, threshold: float, most: int
) -> Pairs:
    is_small, new = len(place) <= 2 * PACKED_ROWS, np.flatnonzero(fresh).astype(np.int32)
    if not is_small and is_crowded(crowd.rows, new, threshold=threshold, most=most):
        # A pair with a known row also counts if it lies above that row's reach, or the row's pairs would have a gap.
        # Fresh rows have no floor: each finds its own nearest.
        least = np.nextafter(np.float32(threshold), np.float32(0))
        floors = np.where(fresh, np.float32(np.inf), np.maximum(reach, least))
        found, reach[new] = nearest_pairs(crowd, new, Limits(threshold, most, floors))
        return found
    if is_small or fresh.mean() > MOST_FRESH:
        found = _join_all(crowd.rows, place, fresh, threshold=threshold)
    else:
        found = _join_fresh(crowd.rows, fresh, threshold=threshold)
    may_meet = crowd.may_meet(found.left, found.right)
    return Pairs(found.left[may_meet], found.right[may_meet], found.similarity[may_meet])


def _units(place: NDArray[np.uint32], alike: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield the ranges compared at once: a large place, or consecutive small ones of the same threshold and width.

    Place by place, a night over thousands of small agents would pay the overhead of a join thousands of times.
    """
    bounds = [0, *(np.flatnonzero(np.diff(place)) + 1).tolist(), len(place)]
    first = 0
    for start, stop in pairwise(bounds):
        if first < start and (stop - first > PACKED_ROWS or (alike[start] != alike[first]).any()):
            yield first, start
            first = start
    if first < len(place):
        yield first, len(place)


def _slice(vectors: pl.Series, at: pl.Series) -> pl.Series:
    """Return the vectors at some rows, without a copy where the rows are consecutive."""
    first = int(at[0])
    is_run = at[-1] == first + len(at) - 1 and bool((at.diff().drop_nulls() == 1).all())
    return vectors.slice(first, len(at)) if is_run else vectors.gather(at)


def _join_all(own: NDArray[np.float32], place: NDArray[np.uint32], fresh: Mask, *, threshold: float) -> Pairs:
    found = similar_pairs(own, threshold=threshold)
    is_new = (place[found.left] == place[found.right]) & (fresh[found.left] | fresh[found.right])
    return Pairs(found.left[is_new], found.right[is_new], found.similarity[is_new])


def _join_fresh(own: NDArray[np.float32], fresh: Mask, *, threshold: float) -> Pairs:
    new, known = np.flatnonzero(fresh).astype(np.int32), np.flatnonzero(~fresh).astype(np.int32)
    across = similar_pairs_between(own[new], own[known], threshold=threshold)
    within = similar_pairs(own[new], threshold=threshold)
    return Pairs(
        np.concatenate([new[across.left], new[within.left]]),
        np.concatenate([known[across.right], new[within.right]]),
        np.concatenate([across.similarity, within.similarity]),
    )
