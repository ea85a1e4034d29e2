"""The whole model file: both classifiers, fitted and calibrated on what they had not seen, from a folder of pairs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nous_online.language.embedding import Embedder
from nous_online.language.pairs.guards import denied
from nous_online.language.pairs.pair_features import (
    CONFLICT_FEATURES,
    FEATURES,
    conflict_rows,
    may_conflict,
    pair_features,
)
from nous_online.language.pairs.pair_model import checksum
from nous_online.language.pairs.slots import shared_slot
from training.trees.clashes import FAMILY_LETTERS, Clash, labelled_clashes
from training.trees.examples import cosines, labelled_pairs
from training.trees.fit import (
    CONFLICT,
    SAME,
    SEED,
    SUREST,
    Table,
    curve,
    exported,
    fit,
    unseen_chances,
)
from training.trees.sentences import Example

VERSION = "pair-3"
MERGE_AT = 0.75  # chance from which two statements count as the same: precision first, since unsure is cheap
CONFLICT_AT = 0.35  # at most one in fifty of the held-out real pairs without a conflict is given this chance or more
DENIAL_AT = (
    0.8  # chance from which a negation denies what the other says: of 30 held-out denials of another scene one passes
)
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
CONFLICT_WEIGHTS = {"PAWS": 2.0, "STS-B": 4.0, "facts": 1.5, "FactConsolidation": 2.0, "DyKnow": 2.0}


@dataclass(frozen=True)
class Trained:
    """The model file's text, and of how many pairs of each source and label it was made."""

    text: str
    counts: Counter[tuple[str, str]]


def trained(folder: Path, *, embedder: Embedder) -> Trained:
    """Fit and calibrate both classifiers on the sets in `folder`: equal files give equal bytes."""
    pairs, similarities = labelled_pairs(folder, embedder=embedder, seed=SEED)
    clashes = labelled_clashes(folder, embedder=embedder, seed=SEED)
    near = np.array(cosines(clashes, embedder))
    stored = {
        "version": VERSION,
        "same": _same(pairs, similarities),
        **_conflict(clashes, near),
    }
    text = json.dumps({**stored, "sha256": checksum(stored)}, separators=(",", ":")) + "\n"
    counts = Counter((pair.source, "same" if pair.is_same else "different") for pair in pairs)
    counts.update((pair.source, "conflict" if pair.is_conflict else "none") for pair in clashes)
    return Trained(text, counts)


def _same(pairs: Sequence[Example], similarities: Sequence[float]) -> dict[str, Any]:
    table = Table(
        rows=pair_features([(pair.a, pair.b, cosine) for pair, cosine in zip(pairs, similarities, strict=True)]),
        labels=np.array([pair.is_same for pair in pairs], dtype=np.int64),
        weights=np.array([SAME_WEIGHTS.get(pair.source, SAME_WEIGHTS["written"]) for pair in pairs]),
        families=[min(pair.a, pair.b)[:FAMILY_LETTERS] for pair in pairs],
    )
    trees = exported(fit(table, SAME), SAME, features=FEATURES, decide_at=MERGE_AT)
    is_real = np.array([pair.source in REAL for pair in pairs])
    return {**trees, "curve": _calibrated(table, unseen_chances(table, SAME), is_real)}


def _calibrated(table: Table, chances: NDArray[np.float64], kept: NDArray[np.bool_]) -> dict[str, list[float]]:
    return curve(chances[kept], table.labels[kept], np.ones(int(kept.sum())))


def _conflict(clashes: Sequence[Clash], near: NDArray[np.float64]) -> dict[str, Any]:
    """Fit on the pairs that are asked about; those of which slot or denial are read off calibrate these."""
    slots = np.array([shared_slot(pair.a, pair.b) is not None for pair in clashes])
    denials = np.array([denied(pair.a, pair.b) is not None for pair in clashes]) & ~slots
    labels = np.array([pair.is_conflict for pair in clashes], dtype=np.int64)
    asked = np.array([may_conflict(pair.a, pair.b) for pair in clashes]) | slots | denials
    kept = [(pair, float(cosine)) for pair, cosine, is_asked in zip(clashes, near, asked, strict=True) if is_asked]
    table = Table(
        rows=conflict_rows([(pair.a, pair.b, cosine) for pair, cosine in kept]),
        labels=labels[asked],
        weights=np.array([CONFLICT_WEIGHTS.get(pair.source, 1.0) for pair, _ in kept]),
        families=[pair.family for pair, _ in kept],
    )
    trees = exported(fit(table, CONFLICT), CONFLICT, features=CONFLICT_FEATURES, decide_at=CONFLICT_AT)
    left_to_trees = ~(slots | denials)[asked]
    return {
        "conflict": {**trees, "curve": _calibrated(table, unseen_chances(table, CONFLICT), left_to_trees)},
        "slot_held": _held(labels[slots]),
        "denial_held": _held(labels[denials]),
        "denial_at": DENIAL_AT,
        "unasked_held": _held(1 - labels[~asked]),
    }


def _held(came_true: NDArray[np.int64]) -> float:
    """Return the share that came true; of few pairs it tells little, so that nothing is called certain."""
    return round(min(SUREST, (int(came_true.sum()) + 1) / (len(came_true) + 2)), 4)
