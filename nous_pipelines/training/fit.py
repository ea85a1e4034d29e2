"""From labelled pairs to the shipped model file: boosted trees, exported as plain arrays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nous_online.pairs.matching import FEATURES, checksum

VERSION = "pair-2"
DEPTH = 6
TREES = 320
LEARNING_RATE = 0.04
SEED = 20_260_101
NEVER = 99_999  # larger than any feature: a split that always goes left
MERGE_AT = 0.75  # chance from which two statements count as the same: precision first, since unsure is cheap
WEIGHTS = {  # of one pair: real ones count more than written ones, many near-copies less than few
    "PAWS": 1.0,
    "PAWS-swapped": 1.3,
    "STS-B": 1.0,
    "facts": 2.0,
    "written-wording": 1.5,
    "written-sloppy": 1.0,
    "written-noise": 0.4,
    "written-whole": 0.3,
    "written-value": 1.0,
    "written-roles": 1.5,
    "written-predicate": 0.8,
    "written-wider": 0.6,
    "written-qualified": 0.05,
    "written-addition": 0.05,
    "written": 0.5,
}


def fit(rows: NDArray[np.float64], labels: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:
    """Fit boosted trees on feature rows; the seed is fixed, so equal input gives an equal model."""
    from sklearn.ensemble import GradientBoostingClassifier

    trees = GradientBoostingClassifier(
        n_estimators=TREES,
        max_depth=DEPTH,
        learning_rate=LEARNING_RATE,
        subsample=0.7,
        max_features=0.2,
        min_samples_leaf=40,
        random_state=SEED,
    )
    return trees.fit(rows, labels, sample_weight=weights)


def exported(trees: Any, *, merge_at: float) -> str:
    """Write fitted trees as JSON: each tree as a perfect binary tree, absent nodes filled from above."""
    flat = [_flattened(stage[0].tree_) for stage in trees.estimators_]
    prior = float(trees.init_.class_prior_[1])
    stored = {
        "version": VERSION,
        "features": list(FEATURES),
        "depth": DEPTH,
        "split_feature": [tree[0] for tree in flat],
        "split_value": [tree[1] for tree in flat],
        "leaf": [tree[2] for tree in flat],
        "intercept": round(float(np.log(prior / (1 - prior))), 9),
        "merge_at": merge_at,
    }
    return json.dumps({**stored, "sha256": checksum(stored)}, separators=(",", ":")) + "\n"


def _flattened(tree: Any) -> tuple[list[int], list[float], list[float]]:
    features, values, leaves = [], [], []
    level = [0]
    for depth in range(DEPTH + 1):
        following: list[int] = []
        for node in level:
            is_leaf = tree.children_left[node] < 0
            if depth == DEPTH:
                leaves.append(round(LEARNING_RATE * float(tree.value[node].ravel()[0]), 6))
                continue
            features.append(0 if is_leaf else int(tree.feature[node]))
            values.append(NEVER if is_leaf else round(float(tree.threshold[node]), 6))
            following += [node, node] if is_leaf else [int(tree.children_left[node]), int(tree.children_right[node])]
        level = following
    return features, values, leaves
