"""The classifiers of the offline judge: boosted trees as plain arrays, with the curve that makes their chances hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.pair_features import CONFLICT_FEATURES, FEATURES

Rows = NDArray[np.float64]
MODEL_PATH = Path(__file__).parent / "model" / "pair_model.json"
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
        curve=Curve(*(np.asarray(stored["curve"][side], dtype=np.float64) for side in ("given", "came_true"))),
        decide_at=stored["decide_at"],
    )


def checksum(stored: dict[str, Any]) -> str:
    """Return the SHA-256 of a stored model in canonical JSON, its own checksum left out."""
    return hashlib.sha256(json.dumps(stored, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class PairModel:
    """The classifiers of the offline judge, `same` over `FEATURES` and `conflict` over `CONFLICT_FEATURES`.

    `slot_held` and `denial_held` tell how often what was read off the words alone came true, `unasked_held` how often
    what nobody asks about was no conflict, `denial_at` from which chance a negation denies what the other one says.
    """

    version: str
    same: Trees
    conflict: Trees
    slot_held: float
    denial_held: float
    denial_at: float
    unasked_held: float

    @property
    def merge_at(self) -> float:
        """The trees' own chance of `same` from which two statements count as the same."""
        return self.same.decide_at

    def probability(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the trees' own chance of `same` for each row of `pair_features`."""
        return self.same.raw_chance(rows)


@cache
def load_model(path: Path = MODEL_PATH) -> PairModel:
    """Read the shipped classifiers; raise `Unavailable` when they are missing, altered or made for other features."""
    if not path.is_file():
        message = f"{path} is missing; reinstall nous-pipelines or run: python -m training.trees --data DIR"
        raise Unavailable(message)
    return parse_model(path.read_text("utf-8"))


def parse_model(text: str) -> PairModel:
    """Turn the JSON written by the training into arrays, after checking its checksum and its feature names."""
    stored = json.loads(text)
    claimed = stored.pop("sha256", None)
    if claimed != checksum(stored):
        message = "the pair model does not match its own SHA-256; reinstall nous-pipelines"
        raise Unavailable(message)
    model = PairModel(
        version=stored["version"],
        same=trees_from(stored["same"]),
        conflict=trees_from(stored["conflict"]),
        slot_held=stored["slot_held"],
        denial_held=stored["denial_held"],
        denial_at=stored["denial_at"],
        unasked_held=stored["unasked_held"],
    )
    if (model.same.features, model.conflict.features) != (FEATURES, CONFLICT_FEATURES):
        message = f"the pair model {model.version} was trained on other features than this version computes; retrain it"
        raise Unavailable(message)
    return model
