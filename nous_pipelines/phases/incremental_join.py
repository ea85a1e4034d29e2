"""A cosine join that reuses the pairs of an earlier night; the nearest pairs of each row are those of a full join.

For rows with very many near rows only some multiple of the nearest pairs is kept, with the similarity (`reach`) above
which the row's pairs are complete. A row that has lost too many of them is compared again.

In crowded places, where nearly all rows are near each other, the bound of `self_join` discards nothing. There all
products are computed block by block, in float32. A sample of the rows gives each row a lower bound for its nearest;
products below it are dropped inside their block, and the few that stay are compared in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.core.errors import InvalidInput
from nous_pipelines.phases.self_join import (
    Float32,
    Int32,
    Pairs,
    checked,
    on_all_cores,
    rounding,
    similar_pairs,
    similar_pairs_between,
)
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


@dataclass(frozen=True)
class Met:
    """Rows of which all pairs at or above the threshold are known beforehand, and these pairs (left < right)."""

    rows: NDArray[np.int64]
    pairs: pl.DataFrame


NOBODY = Met(
    np.empty(0, np.int64), pl.DataFrame(schema={name: PAIRS[name] for name in ("left", "right", "similarity")})
)


def compare(
    sites: pl.DataFrame, vectors: pl.Series, *, nearest: int, earlier: Compared = NOTHING, met: Met = NOBODY
) -> Compared:
    """Return the nearest pairs within each place at or above its threshold, as rows of `sites` (left < right), sorted.

    Holds the `nearest` pairs of each row, ties to the smaller row, and at least one more where there are more, so that
    the caller can tell a cut row. Rows that `earlier` has with the same mark are not compared with each other again,
    and those of `met` with none. Raises `InvalidInput` for vectors that are not of length one, or of several widths in
    one place.
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
    is_fresh[met.rows] = False
    most = int(SPARE * (nearest + 1))
    parts = [kept, met.pairs, *(as_table(part) for part in _new_pairs(sites, vectors, is_fresh, reach, most=most))]
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
    new = np.flatnonzero(fresh).astype(np.int32)
    found = similar_pairs_between(own[new], own, threshold=threshold)
    left = new[found.left]
    is_once = ~fresh[found.right] | (left < found.right)  # of two fresh rows, and none with itself
    return Pairs(left[is_once], found.right[is_once], found.similarity[is_once])


def vector_matrix(vectors: pl.Series) -> NDArray[np.float32]:
    """Return a list column of equally wide vectors as an (n, width) matrix; raise `InvalidInput` if they are not."""
    widths = vectors.list.len().unique()
    if vectors.null_count() or len(widths) > 1:
        message = f"expected vectors of one width, got widths {widths.to_list()} and {vectors.null_count()} missing"
        raise InvalidInput(message)
    flat = vectors.list.explode(empty_as_null=False).to_numpy()
    return flat.reshape(len(vectors), widths[0] if len(widths) else 0).astype(np.float32, copy=False)


# --- crowded places ---

BLOCK_ROWS = 256
BLOCK_COLUMNS = 1024  # a 256 x 1024 float32 tile is 1 MB
SEED_ROWS = 4096  # 4 % of the products of 100,000 rows, and 97 % of all pairs leave at once
TRIED_ROWS = 512
VERIFIED_AT_ONCE = 256  # their rows in double precision, 2 MB, stay in the cache
ALONE = -1.0

Codes: TypeAlias = NDArray[np.uint32]


@dataclass(frozen=True)
class Crowd:
    """Rows of one place: unit vectors, and two codes for which pairs count (0: no subject, no owner).

    Rows with different subjects (`about`) are not a pair, nor are rows of the same `owner`.
    """

    rows: Float32
    about: Codes
    owner: Codes

    def may_meet(self, left: Int32, right: Int32) -> Mask:
        """Return for each two rows whether they may be a pair."""
        return _may_meet(self.about[left], self.about[right], self.owner[left], self.owner[right])

    def all_may_meet(self, left: Int32 | slice, right: Int32 | slice) -> Mask:
        """Return for each row in `left` and each in `right`, as a matrix, whether they may be a pair."""
        return _may_meet(
            self.about[left][:, None], self.about[right][None], self.owner[left][:, None], self.owner[right][None]
        )


@dataclass(frozen=True)
class Limits:
    """Which pairs count: at or above the threshold, and among the `most` nearest of one row or above the other's floor.

    `floors` has a similarity for each row: the reach of a known row, infinity for a fresh one.
    """

    threshold: float
    most: int
    floors: Float32


def _may_meet(about: Codes, other_about: Codes, owner: Codes, other_owner: Codes) -> Mask:
    is_about_one = (about == other_about) | (about == 0) | (other_about == 0)
    return is_about_one & ((owner == 0) | (owner != other_owner))


def is_crowded(rows: Float32, chosen: Int32, *, threshold: float, most: int) -> bool:
    """Return whether, by a sample, a `chosen` row has on average more than `most` others at the threshold."""
    left, right = chosen[_spread(len(chosen), TRIED_ROWS)], _spread(len(rows), TRIED_ROWS)
    is_near = (rows[left] @ rows[right].T >= threshold) & (left[:, None] != right)  # a row is near itself
    share = np.count_nonzero(is_near) / max(1, is_near.size)
    return bool(share * len(rows) > most)


def _spread(count: int, most: int) -> Int32:
    return np.linspace(0, count - 1, min(count, most), dtype=np.int32)


def nearest_pairs(crowd: Crowd, chosen: Int32, limits: Limits) -> tuple[Pairs, Float32]:
    """Return the pairs of each `chosen` row with its nearest, ties by smaller row, or with rows whose floor they pass.

    Also returns the reach of each chosen row: the similarity above which its pairs are complete, 0 when none was cut.
    The chosen row is left; a pair of two chosen rows may appear from both sides. Raises `InvalidInput` like
    `similar_pairs`.
    """
    checked(crowd.rows, limits.threshold)
    seeds = _spread(len(crowd.rows), SEED_ROWS)

    def of_block(top: int) -> tuple[Pairs, Float32]:
        own = chosen[top : top + BLOCK_ROWS]
        lowest = _lowest(crowd, own, seeds, limits)
        found = _possible(crowd, own, lowest, limits.floors)
        left, right = _not_beyond(*found, limits, slack=2 * rounding(crowd.rows.shape[1]))
        return _nearest(crowd, own, left, right, limits)

    blocks = list(on_all_cores(of_block, range(0, len(chosen), BLOCK_ROWS)))
    empty = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    columns = [(part.left, part.right, part.similarity) for part in [empty, *(part for part, _ in blocks)]]
    reaches = np.concatenate([np.empty(0, np.float32), *(reach for _, reach in blocks)])
    return Pairs(*(np.concatenate(column) for column in zip(*columns, strict=True))), reaches


def _lowest(crowd: Crowd, own: Int32, seeds: Int32, limits: Limits) -> Float32:
    """Return for each row a float32 product below which no pair is among its `most` nearest, from a sample of rows."""
    # The k-th best of a sample is at most the k-th best of all, so nothing among the nearest can lie below it.
    error = np.float32(rounding(crowd.rows.shape[1]))
    least = np.full(len(own), np.float32(limits.threshold) - error, dtype=np.float32)
    if len(seeds) < limits.most or len(seeds) == len(crowd.rows):  # a sample of all would double the work
        return least
    products = crowd.rows[own] @ crowd.rows[seeds].T
    products[~crowd.all_may_meet(own, seeds) | (own[:, None] == seeds)] = ALONE
    seen = np.partition(products, len(seeds) - limits.most, axis=1)[:, len(seeds) - limits.most]
    return np.maximum(
        least, seen - 2 * error
    )  # twice: both the sampled product and the one compared with it are rounded


def _possible(crowd: Crowd, own: Int32, lowest: Float32, floors: Float32) -> tuple[Int32, Int32, Float32]:
    """Return block row, row and float32 product of each pair that may be among the nearest or above a floor."""
    parts = list(_tiles(crowd, own, lowest, floors))
    left, right, product = (np.concatenate(column) for column in zip(*parts, strict=True))
    return left, right, product


def _tiles(crowd: Crowd, own: Int32, lowest: Float32, floors: Float32) -> Iterator[tuple[Int32, Int32, Float32]]:
    is_mixed = bool((crowd.about != crowd.about[0]).any() or crowd.owner.any())
    has_floors, error = bool(np.isfinite(floors).any()), np.float32(rounding(crowd.rows.shape[1]))
    above = crowd.rows[own]
    for start in range(0, len(crowd.rows), BLOCK_COLUMNS):
        span = slice(start, start + BLOCK_COLUMNS)
        products = above @ crowd.rows[span].T
        is_possible = products >= (np.minimum(lowest[:, None], floors[span] - error) if has_floors else lowest[:, None])
        itself = np.flatnonzero((own >= start) & (own < start + products.shape[1]))
        is_possible[itself, own[itself] - start] = False
        if is_mixed:
            is_possible &= crowd.all_may_meet(own, span)
        found = np.flatnonzero(is_possible)
        left, right = np.divmod(found.astype(np.int32), np.int32(products.shape[1]))
        yield left, right + np.int32(start), products.ravel()[found]


def _not_beyond(left: Int32, right: Int32, product: Float32, limits: Limits, *, slack: float) -> tuple[Int32, Int32]:
    """Drop pairs surely beyond the `most` nearest of their row; a float32 product is off by at most half the slack."""
    counts = np.bincount(left)
    if counts.max(initial=0) <= limits.most:
        return left, right
    order = np.argsort(left.astype(np.uint16), kind="stable")  # rows of a block fit 16 bits: NumPy sorts those by radix
    padded = np.full((len(counts), counts.max()), ALONE, dtype=np.float32)
    padded[np.arange(counts.max()) < counts[:, None]] = product[order]
    seen = np.partition(padded, -limits.most, axis=1)[:, -limits.most]
    stays = product >= np.minimum(seen[left], limits.floors[right]) - np.float32(slack)
    return left[stays], right[stays]


def _nearest(crowd: Crowd, own: Int32, left: Int32, right: Int32, limits: Limits) -> tuple[Pairs, Float32]:
    exact = _exact(crowd.rows, own[left], right)
    is_near = exact >= limits.threshold
    left, right, similarity = left[is_near], right[is_near], exact[is_near].astype(np.float32)
    order = np.lexsort((right, -similarity, left))
    left, right, similarity = left[order], right[order], similarity[order]
    counts = np.bincount(left, minlength=len(own))
    starts = np.cumsum(counts) - counts
    is_cut = counts >= limits.most  # whatever left unverified is beyond as many that stayed
    reaches = np.zeros(len(own), dtype=np.float32)
    reaches[is_cut] = similarity[starts[is_cut] + limits.most - 1]
    stays = (np.arange(len(left)) - starts[left] < limits.most) | (similarity > limits.floors[right])
    return Pairs(own[left[stays]], right[stays], similarity[stays]), reaches


def _exact(rows: Float32, left: Int32, right: Int32) -> NDArray[np.float64]:
    products = np.empty(len(left))
    for start in range(0, len(left), VERIFIED_AT_ONCE):
        span = slice(start, start + VERIFIED_AT_ONCE)
        products[span] = np.vecdot(rows[left[span]].astype(np.float64), rows[right[span]].astype(np.float64))
    return products
