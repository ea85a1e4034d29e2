"""The model file: trees fitted on a folder of pairs, and calibrated on families of pairs they have not seen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nous_online.language.embedding import Embedder
from nous_online.language.pairs.pair_model import FEATURES, checksum, pair_features
from training.trees.examples import labelled_pairs
from training.trees.fit import SAME, SEED, Table, curve, exported, fit, unseen_chances
from training.trees.sentences import Example

VERSION = "pair-4"
MERGE_AT = 0.75  # chance from which two statements count as the same: precision first, since unsure is cheap
FAMILY_LETTERS = 24  # PAWS makes several pairs of one sentence: those that open alike are held out together
REAL = frozenset({"PAWS", "PAWS-swapped", "STS-B", "facts"})
SAME_WEIGHTS = {  # of one pair: real ones count more than written ones, many near-copies less than few
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


@dataclass(frozen=True)
class Trained:
    """The model file's text, and of how many pairs of each source and label it was made."""

    text: str
    counts: Counter[tuple[str, str]]


def trained(folder: Path, *, embedder: Embedder) -> Trained:
    """Fit and calibrate the trees on the sets in `folder`: equal files give equal bytes."""
    pairs, similarities = labelled_pairs(folder, embedder=embedder, seed=SEED)
    stored = {"version": VERSION, **_same(pairs, similarities)}
    text = json.dumps({**stored, "sha256": checksum(stored)}, separators=(",", ":")) + "\n"
    return Trained(text, Counter((pair.source, "same" if pair.is_same else "different") for pair in pairs))


def _same(pairs: Sequence[Example], similarities: Sequence[float]) -> dict[str, Any]:
    table = Table(
        rows=pair_features([(pair.a, pair.b, cosine) for pair, cosine in zip(pairs, similarities, strict=True)]),
        labels=np.array([pair.is_same for pair in pairs], dtype=np.int64),
        weights=np.array([SAME_WEIGHTS.get(pair.source, SAME_WEIGHTS["written"]) for pair in pairs]),
        families=[min(pair.a, pair.b)[:FAMILY_LETTERS] for pair in pairs],
    )
    trees = exported(fit(table, SAME), SAME, features=FEATURES, decide_at=MERGE_AT)
    is_real = np.array([pair.source in REAL for pair in pairs])
    chances = unseen_chances(table, SAME)
    return {**trees, "curve": curve(chances[is_real], table.labels[is_real], np.ones(int(is_real.sum())))}
