"""From labelled pairs to the shipped model file: boosted trees and the curves that calibrate them, as plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED = 20_260_101
NEVER = 99_999  # larger than any feature: a split that always goes left
FOLDS = 2
MOST_POINTS = 40  # of one calibration curve
SUREST = 0.99  # no chance is stored as larger, however well it held on a few hundred pairs

Rows = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """How large the trees of one classifier are, and how fast they learn."""

    trees: int
    depth: int
    learning_rate: float
    features_tried: float
    least_pairs: int


SAME = Shape(trees=320, depth=6, learning_rate=0.04, features_tried=0.2, least_pairs=40)


@dataclass(frozen=True)
class Table:
    """The rows one classifier learns from: features, labels, weights, and the family each row is held out with."""

    rows: Rows
    labels: Labels
    weights: Rows
    families: Sequence[str]


def fit(table: Table, shape: Shape) -> Any:
    """Fit boosted trees on feature rows; the seed is fixed, so equal input gives an equal model."""
    from sklearn.ensemble import GradientBoostingClassifier

    trees = GradientBoostingClassifier(
        n_estimators=shape.trees,
        max_depth=shape.depth,
        learning_rate=shape.learning_rate,
        subsample=0.7,
        max_features=shape.features_tried,
        min_samples_leaf=shape.least_pairs,
        random_state=SEED,
    )
    return trees.fit(table.rows, table.labels, sample_weight=table.weights)


def unseen_chances(table: Table, shape: Shape) -> Rows:
    """Return the chance for each row that trees give which saw none of its family."""
    chances = np.zeros(len(table.labels))
    for learned, held_out in folds(table.families):
        part = Table(table.rows[learned], table.labels[learned], table.weights[learned], ())
        chances[held_out] = fit(part, shape).predict_proba(table.rows[held_out])[:, 1]
    return chances


def folds(families: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the places to learn from and those held out, no family on both sides."""
    order = {family: place for place, family in enumerate(sorted(set(families)))}
    parts = np.array([order[family] % FOLDS for family in families])
    for fold in range(FOLDS):
        yield np.flatnonzero(parts != fold), np.flatnonzero(parts == fold)


def curve(given: Rows, came_true: Labels, weights: Rows) -> dict[str, list[float]]:
    """Return, point by point, how often what was given a chance came true; it never falls (isotonic regression)."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=1 - SUREST, y_max=SUREST, out_of_bounds="clip")
    fitted.fit(given, came_true, sample_weight=weights)
    points = np.unique(np.quantile(given, np.linspace(0, 1, MOST_POINTS)).round(6))
    return {"given": points.tolist(), "came_true": fitted.predict(points).round(6).tolist()}


def exported(trees: Any, shape: Shape, *, features: Sequence[str], decide_at: float) -> dict[str, Any]:
    """Write fitted trees as lists: each tree as a perfect binary tree, absent nodes filled from above."""
    flat = [_flattened(stage[0].tree_, shape) for stage in trees.estimators_]
    prior = float(trees.init_.class_prior_[1])
    return {
        "features": list(features),
        "depth": shape.depth,
        "split_feature": [tree[0] for tree in flat],
        "split_value": [tree[1] for tree in flat],
        "leaf": [tree[2] for tree in flat],
        "intercept": round(float(np.log(prior / (1 - prior))), 9),
        "decide_at": decide_at,
    }


def _flattened(tree: Any, shape: Shape) -> tuple[list[int], list[float], list[float]]:
    features, values, leaves = [], [], []
    level = [0]
    for depth in range(shape.depth + 1):
        following: list[int] = []
        for node in level:
            is_leaf = tree.children_left[node] < 0
            if depth == shape.depth:
                leaves.append(round(shape.learning_rate * float(tree.value[node].ravel()[0]), 6))
                continue
            features.append(0 if is_leaf else int(tree.feature[node]))
            values.append(NEVER if is_leaf else round(float(tree.threshold[node]), 6))
            following += [node, node] if is_leaf else [int(tree.children_left[node]), int(tree.children_right[node])]
        level = following
    return features, values, leaves
