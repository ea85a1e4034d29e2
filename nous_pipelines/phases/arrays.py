"""Polars columns as NumPy arrays: ids as row numbers, chains of ids followed to their ends, vectors as matrices."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.core.errors import InvalidInput

ROWS_AT_ONCE = 4096  # rows converted to 64 bits together: a few megabytes


def row_numbers(
    pairs: pl.DataFrame, left: str, right: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], pl.DataFrame]:
    """Return two columns of ids as places in the sorted table (agent_id, id) of all of them.

    The same id of two agents is two memories.
    """
    sides = [pairs.select("agent_id", id=side) for side in (left, right)]
    every = pl.concat(sides).unique().sort("agent_id", "id")
    places = every.with_row_index("place")
    first, second = (
        side.join(places, on=["agent_id", "id"], maintain_order="left")["place"].to_numpy().astype(np.int64)
        for side in sides
    )
    return first, second, every


def chain_ends(steps: pl.DataFrame, old: str, new: str) -> pl.Series:
    """Return the end of the chain `old` → `new` → … that starts at each row."""
    first, second, named = row_numbers(steps, old, new)
    following = np.arange(len(named))
    following[first] = second
    for _ in range(len(named).bit_length()):  # pointer doubling: log2(n) rounds reach every end, and stop in a circle
        following = following[following]
    return named["id"].gather(following[first])


def vector_matrix(vectors: pl.Series) -> NDArray[np.float32]:
    """Return a list column of equally wide vectors as an (n, width) matrix; raise `InvalidInput` if they are not."""
    widths = vectors.list.len().unique()
    if vectors.null_count() or len(widths) > 1:
        message = f"expected vectors of one width, got widths {widths.to_list()} and {vectors.null_count()} missing"
        raise InvalidInput(message)
    flat = vectors.list.explode(empty_as_null=False).to_numpy()
    return flat.reshape(len(vectors), widths[0] if len(widths) else 0).astype(np.float32, copy=False)


def fingerprints(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return 64 bits for each row that change with any number in it: a multilinear hash of its bits.

    Two different rows get the same with a chance of 2^-32 (Lemire and Kaser 2014, "Strongly universal string hashing is
    fast"); the factors are drawn from a fixed seed, so that all nights agree.
    """
    drawn = np.random.default_rng(0).bytes(8 * rows.shape[1])
    factors = np.frombuffer(drawn, dtype=np.uint64) | np.uint64(1)
    words = np.ascontiguousarray(rows).view(np.uint32)
    marks = np.empty(len(words), dtype=np.uint64)
    for start in range(0, len(words), ROWS_AT_ONCE):
        marks[start : start + ROWS_AT_ONCE] = words[start : start + ROWS_AT_ONCE].astype(np.uint64) @ factors
    return marks
