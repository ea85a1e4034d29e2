"""The exact cosine self-join: every pair of unit vectors at or above a threshold, none missed, none extra.

A rotation towards the directions of largest variance keeps a few dimensions of each row and folds the rest into one
number, its length. By Cauchy-Schwarz `a·b + |a_rest||b_rest| >= x·y`, so one narrow blocked product discards almost
every pair, and only the survivors are compared in full, in double precision.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nous_online.core.errors import InvalidInput

Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
Int32: TypeAlias = NDArray[np.int32]
Hits: TypeAlias = tuple[Int32, Int32]
Result = TypeVar("Result")

CORES = os.cpu_count() or 1
BLOCK_ROWS = 512  # a 512 x 512 float32 tile is 1 MB: it stays in a core's cache between product and comparison
FITTED_ROWS = 2048  # enough to find good directions; any orthonormal ones keep the bound valid
TRIED_ROWS = 512  # other rows, to see how many pairs would survive: 130,000 pairs are enough for that
NARROW_ROWS = 1024  # with fewer rows, finding directions costs more than it saves
FEW_ROWS = 256  # beside them, narrowing many others costs more than the products it saves
KEPT_DIMENSIONS = (16, 24, 32, 40, 48, 64, 96, 128)
SURVIVOR_COST = 110  # a dimension of a scattered comparison, in dimensions of a blocked product (1.1 ns / 0.01 ns)
PAIRS_AT_ONCE = 4096  # survivors compared together; a tile with more of them is compared as a whole
LONGEST_UNIT_ROW = 1.001  # float32 rounding leaves 1e-7; more means that somebody forgot to normalise
FLOAT32_ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Pairs:
    """Row numbers of similar pairs with their similarity, sorted by (left, right)."""

    left: Int32
    right: Int32
    similarity: Float32

    def __len__(self) -> int:
        return len(self.left)


def similar_pairs(vectors: Float32, *, threshold: float, block_rows: int = BLOCK_ROWS) -> Pairs:
    """Return each pair of rows (left < right) whose dot product is at least `threshold`.

    `vectors` is an (n, d) matrix of float32 rows of length one (or zero: similar to nothing). A pair belongs to the
    result when the double-precision dot product of its float32 rows is >= threshold; no other rounding decides.
    Memory beyond input and result is one narrow copy of the rows (at most 129 float32 each) and a few
    block_rows x block_rows tiles. Raises `InvalidInput` for NaN, infinity, longer rows or a threshold outside (0, 1].
    """
    rows = checked(vectors, threshold)
    bounding = _bounding_rows(rows, rows, threshold=threshold)[0]
    return _joined_by_stripe(
        (bounding, bounding), (rows, rows), threshold=threshold, block_rows=block_rows, mirrored=True
    )


def similar_pairs_between(fresh: Float32, known: Float32, *, threshold: float, block_rows: int = BLOCK_ROWS) -> Pairs:
    """Return each pair of a `fresh` row (left) and a `known` row (right) whose dot product is at least `threshold`.

    The incremental form of `similar_pairs`, with the same exactness, bounds and errors.
    """
    left, right = checked(fresh, threshold), checked(known, threshold)
    if left.shape[1] != right.shape[1]:
        message = (
            f"rows of width {left.shape[1]} cannot be compared with rows of width {right.shape[1]}; embed both alike"
        )
        raise InvalidInput(message)
    bounding = _bounding_rows(left, right, threshold=threshold)
    return _joined_by_stripe(bounding, (left, right), threshold=threshold, block_rows=block_rows, mirrored=False)


def on_all_cores(work: Callable[[int], Result], starts: Sequence[int]) -> Iterator[Result]:
    """Yield the result for each start, in order; NumPy leaves Python to the other threads while it computes."""
    if len(starts) <= 1:
        yield from map(work, starts)
        return
    with ThreadPoolExecutor(CORES) as cores:
        yield from cores.map(work, starts)


def checked(vectors: Float32, threshold: float) -> Float32:
    if not 0 < threshold <= 1:
        message = f"the threshold of a cosine join is above 0 and at most 1, got {threshold}"
        raise InvalidInput(message)
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2:  # noqa: PLR2004 - a matrix has two axes
        message = f"expected a matrix with one vector per row, got an array of shape {rows.shape}"
        raise InvalidInput(message)
    longest = np.sqrt(np.vecdot(rows, rows).max(initial=0))
    if not longest <= LONGEST_UNIT_ROW:  # also true of NaN
        message = (
            f"the longest vector has length {longest}, expected 1; scale the rows, and drop any with NaN or infinity"
        )
        raise InvalidInput(message)
    return rows


def _bounding_rows(left: Float32, right: Float32, *, threshold: float) -> tuple[Float32, Float32]:
    """Return narrow rows whose products are upper bounds of the full products (the rows themselves when few)."""
    fewer, more = sorted((len(left), len(right)))
    if fewer < FEW_ROWS or more < NARROW_ROWS or left.shape[1] <= KEPT_DIMENSIONS[0]:
        return left, right
    rng, size = np.random.default_rng(0), min(len(right), FITTED_ROWS + TRIED_ROWS)
    sample = right[rng.choice(len(right), size=size, replace=False)].astype(np.float64)
    # Fitted and tried on different rows: on the rows they were fitted to, directions look better than they are.
    directions = _leading_directions(sample[TRIED_ROWS:])
    kept = _cheapest_width(sample[:TRIED_ROWS], directions, threshold=threshold)
    if kept + 1 >= left.shape[1]:
        return left, right
    narrow = _narrowed(right, directions[:, :kept])
    return (narrow if left is right else _narrowed(left, directions[:, :kept])), narrow


def _leading_directions(sample: Float64) -> Float64:
    """Return orthonormal columns, largest variance first, by subspace iteration on the sample's XᵀX."""
    width = min(sample.shape[1], KEPT_DIMENSIONS[-1])
    gram = sample.T @ sample
    directions = np.random.default_rng(0).standard_normal((sample.shape[1], width))
    for _ in range(2):  # enough: imprecise directions let more pairs survive, but the bound holds for any
        directions = np.linalg.qr(gram @ (gram @ directions)).Q
    rotation = np.linalg.eigh(directions.T @ gram @ directions).eigenvectors[:, ::-1]
    return np.linalg.qr(directions @ rotation).Q


def _cheapest_width(rows: Float64, directions: Float64, *, threshold: float) -> int:
    """Return how many dimensions to keep: each costs its product, each one left out lets more pairs survive."""
    rotated = rows @ directions
    lengths = np.vecdot(rows, rows)

    best, lowest = directions.shape[1], np.inf
    for kept in KEPT_DIMENSIONS:
        if kept > min(directions.shape[1], lowest):  # its products alone would cost more than the best width so far
            break
        narrow = _with_rest(rotated[:, :kept], lengths).astype(np.float32)
        survivors = np.count_nonzero(narrow @ narrow.T >= threshold) / len(rows) ** 2
        cost = kept + SURVIVOR_COST * rows.shape[1] * survivors
        if cost < lowest:
            best, lowest = kept, cost
    return best


def _narrowed(rows: Float32, directions: Float64) -> Float32:
    """Return rows rotated to `directions`, with the length of the rest as last column.

    In double precision: |x|² - |kept|² loses half of its digits in float32 when the rest is short.
    """
    narrow = np.empty((len(rows), directions.shape[1] + 1), dtype=np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS].astype(np.float64)
        narrow[start : start + BLOCK_ROWS] = _with_rest(block @ directions, np.vecdot(block, block))
    return narrow


def _with_rest(kept: Float64, squared_lengths: Float64) -> Float64:
    # Rounding can make the difference negative; 1e-12 on top keeps the length an upper bound.
    rest = np.sqrt(np.maximum(squared_lengths - np.vecdot(kept, kept), 0) + 1e-12)
    return np.column_stack([kept, rest])


def _joined_by_stripe(
    bounding: tuple[Float32, Float32],
    rows: tuple[Float32, Float32],
    *,
    threshold: float,
    block_rows: int,
    mirrored: bool,
) -> Pairs:
    """Return the pairs of all rows; each stripe of left rows is joined with all right rows, or those after it."""

    def of_stripe(top: int) -> list[Pairs]:
        hits = _possible_pairs(*bounding, top, threshold=threshold, block_rows=block_rows, mirrored=mirrored)
        return list(_verified(hits, *rows, threshold=threshold))

    stripes = on_all_cores(of_stripe, range(0, len(bounding[0]), block_rows))
    return _collected(part for stripe in stripes for part in stripe)


def _possible_pairs(
    left: Float32, right: Float32, top: int, *, threshold: float, block_rows: int, mirrored: bool
) -> Iterator[Hits]:
    """Yield, tile by tile, the pairs of a stripe whose bound reaches the threshold; if `mirrored`, each once."""
    # Lowered by the largest possible rounding error: rounding lets more pairs survive, never fewer.
    cutoff = np.float32(threshold - rounding(left.shape[1]))
    above = left[top : top + block_rows]
    products = np.empty(len(above) * block_rows, dtype=np.float32)
    reaches = np.empty(len(above) * block_rows, dtype=np.bool_)
    for start in range(top if mirrored else 0, len(right), block_rows):
        beside = right[start : start + block_rows]
        size = len(above) * len(beside)
        tile = products[:size].reshape(len(above), len(beside))
        np.matmul(above, beside.T, out=tile)
        found = np.flatnonzero(np.greater_equal(products[:size], cutoff, out=reaches[:size]))
        lefts, rights = np.divmod(found, len(beside))
        if mirrored and start == top:
            is_upper = lefts < rights
            lefts, rights = lefts[is_upper], rights[is_upper]
        if len(lefts):
            yield (top + lefts).astype(np.int32), (start + rights).astype(np.int32)


def rounding(width: int) -> float:
    """Bound the float32 error of a product of two rows no longer than one (Higham 2002, section 3.1), doubled."""
    return 2 * (width + 4) * FLOAT32_ROUNDING * LONGEST_UNIT_ROW**2


def _verified(hits: Iterator[Hits], left: Float32, right: Float32, *, threshold: float) -> Iterator[Pairs]:
    """Yield the pairs that reach the threshold in double precision: a crowded tile is one product, the rest batches.

    Thousands of equal texts make a tile in which nearly every pair survives; pair by pair that would copy its rows
    again and again.
    """
    waiting: list[Hits] = []
    for lefts, rights in hits:
        if len(lefts) > PAIRS_AT_ONCE:
            yield _compared_as_tile(lefts, rights, left, right, threshold=threshold)
            continue
        waiting.append((lefts, rights))
        if sum(len(found) for found, _ in waiting) > PAIRS_AT_ONCE:
            yield _compared_one_by_one(*_joined(waiting), left, right, threshold=threshold)
            waiting = []
    if waiting:
        yield _compared_one_by_one(*_joined(waiting), left, right, threshold=threshold)


def _joined(hits: list[Hits]) -> Hits:
    return np.concatenate([lefts for lefts, _ in hits]), np.concatenate([rights for _, rights in hits])


def _compared_one_by_one(lefts: Int32, rights: Int32, left: Float32, right: Float32, *, threshold: float) -> Pairs:
    rough = np.vecdot(left[lefts], right[rights]) >= threshold - rounding(left.shape[1])
    lefts, rights = lefts[rough], rights[rough]
    exact = np.vecdot(left[lefts].astype(np.float64), right[rights].astype(np.float64))
    return _reaching(lefts, rights, exact, threshold=threshold)


def _compared_as_tile(lefts: Int32, rights: Int32, left: Float32, right: Float32, *, threshold: float) -> Pairs:
    top, start = lefts.min(), rights.min()
    above = left[top : lefts.max() + 1].astype(np.float64)
    beside = right[start : rights.max() + 1].astype(np.float64)
    return _reaching(lefts, rights, (above @ beside.T)[lefts - top, rights - start], threshold=threshold)


def _reaching(lefts: Int32, rights: Int32, similarity: Float64, *, threshold: float) -> Pairs:
    reaches = similarity >= threshold
    return Pairs(left=lefts[reaches], right=rights[reaches], similarity=similarity[reaches].astype(np.float32))


def _collected(parts: Iterator[Pairs]) -> Pairs:
    found = list(parts)
    left = np.concatenate([part.left for part in found] or [np.empty(0, np.int32)])
    right = np.concatenate([part.right for part in found] or [np.empty(0, np.int32)])
    similarity = np.concatenate([part.similarity for part in found] or [np.empty(0, np.float32)])
    order = np.lexsort((right, left))
    return Pairs(left=left[order], right=right[order], similarity=similarity[order])
