"""A cosine join that keeps only the nearest pairs of each row, for stores where nearly all rows are near each other.

The bound of `self_join` discards nothing there, so full float32 products are computed block by block. A sample of the
rows gives each row a lower bound for its nearest; products below it are dropped inside their block, and the few that
stay are compared in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nous_pipelines.phases.self_join import Float32, Int32, Pairs, checked, rounding

BLOCK_ROWS = 256
BLOCK_COLUMNS = 1024  # a 256 x 1024 float32 tile is 1 MB
SEED_ROWS = 4096  # 4 % of the products of 100,000 rows, and 97 % of all pairs leave at once
TRIED_ROWS = 512
VERIFIED_AT_ONCE = 256  # their rows in double precision, 2 MB, stay in the cache
ALONE = -1.0

Mask: TypeAlias = NDArray[np.bool_]
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
    parts, reaches = list[Pairs](), np.zeros(len(chosen), dtype=np.float32)
    for top in range(0, len(chosen), BLOCK_ROWS):
        own = chosen[top : top + BLOCK_ROWS]
        lowest = _lowest(crowd, own, seeds, limits)
        found = _possible(crowd, own, lowest, limits.floors)
        left, right = _not_beyond(*found, limits, slack=2 * rounding(crowd.rows.shape[1]))
        part, reaches[top : top + BLOCK_ROWS] = _nearest(crowd, own, left, right, limits)
        parts.append(part)
    empty = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    columns = [(part.left, part.right, part.similarity) for part in [empty, *parts]]
    return Pairs(*(np.concatenate(column) for column in zip(*columns, strict=True))), reaches


def _lowest(crowd: Crowd, own: Int32, seeds: Int32, limits: Limits) -> Float32:
    """Return for each row a float32 product below which no pair is among its `most` nearest, from a sample of rows."""
    # The k-th best of a sample is at most the k-th best of all, so nothing among the nearest can lie below it.
    error = np.float32(rounding(crowd.rows.shape[1]))
    least = np.full(len(own), np.float32(limits.threshold) - error, dtype=np.float32)
    if len(seeds) < limits.most:
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
    error = np.float32(rounding(crowd.rows.shape[1]))
    above = crowd.rows[own]
    for start in range(0, len(crowd.rows), BLOCK_COLUMNS):
        span = slice(start, start + BLOCK_COLUMNS)
        products, above_floor = above @ crowd.rows[span].T, floors[span] - error
        is_possible = products >= np.minimum(lowest[:, None], above_floor)
        is_possible[own[:, None] == np.arange(start, start + products.shape[1])] = False
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
