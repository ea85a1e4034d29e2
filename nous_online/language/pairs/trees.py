"""Boosted regression trees as plain arrays, with the curve that turns their score into a chance that holds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
CHUNK = 4096  # rows walked down all trees at once: some 30 MB


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
        chunks = [rows[at : at + CHUNK] for at in range(0, len(rows), CHUNK)]
        score = np.concatenate([np.empty(0), *map(self._scores, chunks)])
        return 1 / (1 + np.exp(-score))

    def _scores(self, rows: Rows) -> Rows:
        """Walk all rows down all trees at once."""
        lines, trees = np.arange(len(rows))[:, None], np.arange(len(self.leaf))
        node = np.zeros((len(rows), len(trees)), dtype=np.int64)
        for _ in range(self.depth):
            is_more = rows[lines, self.split_feature[trees, node]] > self.split_value[trees, node]
            node = 2 * node + 1 + is_more
        return self.intercept + self.leaf[trees, node - self.split_feature.shape[1]].sum(axis=1)


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
