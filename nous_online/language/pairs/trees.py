"""Boosted regression trees as plain arrays, with the curve that turns their score into a chance that holds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """How often what was given these chances came true on pairs not seen in training: straight between its points."""

    given: NDArray[np.float64]
    came_true: NDArray[np.float64]

    def held(self, chance: float) -> float:
        """Return the chance that holds."""
        return float(np.interp(chance, self.given, self.came_true))


@dataclass(frozen=True)
class Trees:
    """One row per tree, a perfect binary tree of `depth` levels each, and the curve of the chances they give."""

    features: tuple[str, ...]
    depth: int
    split_feature: NDArray[np.int32]
    split_value: NDArray[np.float64]
    leaf: NDArray[np.float64]
    intercept: float
    curve: Curve
    decide_at: float

    def held(self, chance: float) -> float:
        """Return the chance that holds for what the trees give."""
        return self.curve.held(chance)

    def raw_chance(self, rows: Rows) -> Rows:
        """Return for each feature row the chance the trees give, which is too sure or not sure enough."""
        score = np.full(len(rows), self.intercept)
        lines = np.arange(len(rows))
        for feature, value, leaf in zip(self.split_feature, self.split_value, self.leaf, strict=True):
            node = np.zeros(len(rows), dtype=np.int64)
            for _ in range(self.depth):
                node = 2 * node + 1 + (rows[lines, feature[node]] > value[node])
            score += leaf[node - len(feature)]
        return 1 / (1 + np.exp(-score))


def trees_from(stored: dict[str, Any]) -> Trees:
    """Turn one set of trees as the training wrote it into arrays."""
    return Trees(
        features=tuple(stored["features"]),
        depth=stored["depth"],
        split_feature=np.asarray(stored["split_feature"], dtype=np.int32),
        split_value=np.asarray(stored["split_value"], dtype=np.float64),
        leaf=np.asarray(stored["leaf"], dtype=np.float64),
        intercept=stored["intercept"],
        curve=curve_from(stored["curve"]),
        decide_at=stored["decide_at"],
    )


def curve_from(stored: dict[str, Any]) -> Curve:
    """Turn one curve as the training wrote it into arrays."""
    return Curve(np.asarray(stored["given"], dtype=np.float64), np.asarray(stored["came_true"], dtype=np.float64))


def checksum(stored: dict[str, Any]) -> str:
    """Return the SHA-256 of a stored model in canonical JSON, its own checksum left out."""
    return hashlib.sha256(json.dumps(stored, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
