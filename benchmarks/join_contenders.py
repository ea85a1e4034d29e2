"""One self-join by one method in a process of its own: `python -m benchmarks.join_contenders METHOD VECTORS RESULT`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import process_time
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import peak_mb
from nous_online.language.minilm import Vectors
from nous_pipelines.phases.self_join import similar_pairs

Found: TypeAlias = tuple[NDArray[np.integer], NDArray[np.integer]]

THRESHOLD = 0.92
BLOCK_ROWS = 1024
WARM_UP_ROWS = 300
FLOAT32_MARGIN = 1e-4


def ours(vectors: Vectors) -> Callable[[], Found]:
    """Join with Nous."""
    pairs = similar_pairs(vectors, threshold=THRESHOLD)
    return lambda: (pairs.left, pairs.right)


def gemm(vectors: Vectors) -> Callable[[], Found]:
    """Join by brute force: full blocked products of the upper triangle, decided in double precision at the margin."""
    lefts, rights = [], []
    for top in range(0, len(vectors), BLOCK_ROWS):
        for start in range(top, len(vectors), BLOCK_ROWS):
            tile = vectors[top : top + BLOCK_ROWS] @ vectors[start : start + BLOCK_ROWS].T
            left, right = np.divmod(np.flatnonzero(tile >= THRESHOLD - FLOAT32_MARGIN), tile.shape[1])
            lefts.append(left + top)
            rights.append(right + start)
    left, right = np.concatenate(lefts), np.concatenate(rights)
    return lambda: decided(vectors, left, right)


def faiss(vectors: Vectors) -> Callable[[], Found]:
    """Join with faiss: an exact inner-product index, searched for everything within range of every row."""
    from faiss import IndexFlatIP, omp_set_num_threads

    omp_set_num_threads(1)
    index = IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    limits, _, neighbours = index.range_search(vectors, THRESHOLD)
    return lambda: one_way(np.diff(limits.astype(np.int64)), neighbours)


def sklearn(vectors: Vectors) -> Callable[[], Found]:
    """Join with scikit-learn: radius neighbours by cosine."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(radius=1 - THRESHOLD, metric="cosine", algorithm="brute", n_jobs=1).fit(vectors)
    neighbours = index.radius_neighbors(vectors, return_distance=False)
    return lambda: one_way(np.array([len(row) for row in neighbours]), np.concatenate(neighbours))


def semhash(vectors: Vectors) -> Callable[[], Found]:
    """Deduplicate with semhash from the same vectors, on its default (approximate) index; it keeps no pairs."""
    from semhash import SemHash

    records = [f"record {number}" for number in range(len(vectors))]
    found = SemHash.from_embeddings(embeddings=vectors, records=records, model=None).self_deduplicate(THRESHOLD)
    removed = np.array([int(duplicate.record.split()[1]) for duplicate in found.filtered], dtype=np.int64)
    return lambda: (removed, removed)


def decided(vectors: Vectors, left: NDArray[np.integer], right: NDArray[np.integer]) -> Found:
    """Keep left < right whose product in double precision reaches the threshold."""
    upper = left < right
    left, right = left[upper], right[upper]
    exact = np.concatenate(
        [
            np.vecdot(vectors[left[some]].astype(np.float64), vectors[right[some]].astype(np.float64))
            for some in np.array_split(np.arange(len(left)), 1 + len(left) // BLOCK_ROWS)
        ]
    )
    return left[exact >= THRESHOLD], right[exact >= THRESHOLD]


def one_way(counts: NDArray[np.integer], neighbours: NDArray[np.integer]) -> Found:
    """Keep each pair once, left < right, of the neighbours listed row after row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows[rows < neighbours], neighbours[rows < neighbours]


METHODS = {method.__name__: method for method in (ours, gemm, faiss, sklearn, semhash)}


def main(method: str, vectors_file: str, result_file: str) -> None:
    """Join once after a small warm-up; print processor seconds and memory, and leave the pairs in `result_file`."""
    vectors = np.load(vectors_file)
    METHODS[method](vectors[:WARM_UP_ROWS])
    start = process_time()  # of one thread: the same as by the clock, but blind to what else the machine does
    found = METHODS[method](vectors)
    seconds = process_time() - start
    measured = {"seconds": seconds, "peak_mb": peak_mb()}
    np.save(result_file, np.sort(pair_keys(*found(), rows=len(vectors))))
    print(json.dumps(measured))


def pair_keys(left: NDArray[np.integer], right: NDArray[np.integer], *, rows: int) -> NDArray[np.int64]:
    """Return one number for each pair of rows."""
    return left.astype(np.int64) * rows + right


if __name__ == "__main__":
    main(*sys.argv[1:])
