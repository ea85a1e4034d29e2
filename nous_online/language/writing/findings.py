"""How much a statement in a session with tools is worth keeping, by form, words and letters: learned linear scores."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nous_online.language.minilm import verified

Said = Literal["found", "told"]
"""By whom: what an agent or its tools found, or what a user told them."""
WEIGHTS_SHA256: dict[Said, str] = {
    "found": "70e11956012ed15c8d3da28ee8da4098e86eae65f6605abba4dca7004f1933dc",
    "told": "08e80e5cd6df1c8c94fecfd308a80055b3d8e824a13a140a8f3efd8dbe1ec493",
}
BUCKETS = 1 << 13
"""Of words and pairs of them, and as many of runs of letters: twice as many choose no better."""
MOST_CHARACTERS = 600
"""Read of a statement: what it is stands at its beginning."""
RUNS = (2, 3, 4)  # letters
_WORD = re.compile(r"\w+|`|\*\*|[:.()/→✅❌]")


def keeping_score(text: str, form: Iterable[float], said: Said) -> float:
    """Return how much a statement is worth keeping, a sum of log odds; `form` is what `points.form_of…` returns.

    A logistic regression on counts of hashed words, pairs of words and runs of letters (decision 0037).
    """
    return float(features_of(text, form) @ weights(said)[:-1] + weights(said)[-1])


def features_of(text: str, form: Iterable[float]) -> NDArray[np.float32]:
    """Return a statement's features: unit rows of its words and of its letters, and its form."""
    read = text[:MOST_CHARACTERS].lower()
    words = _WORD.findall(read)
    said = [_bucket(word) for word in words] + [_bucket(f"{one} {other}") for one, other in pairwise(words)]
    spelled = [place for word in read.split() for place in _letters(word)]
    return np.concatenate([_unit_counts(said), _unit_counts(spelled), np.array([*form], np.float32)])


def _unit_counts(places: list[int]) -> NDArray[np.float32]:
    counts = np.bincount(np.array(places, dtype=np.int64), minlength=BUCKETS).astype(np.float32)
    return counts / max(float(np.linalg.norm(counts)), 1.0)


def _bucket(said: str) -> int:
    return zlib.crc32(said.encode("utf-8", "surrogatepass")) % BUCKETS


@lru_cache(maxsize=65_536)
def _letters(word: str) -> tuple[int, ...]:
    padded = f" {word} "
    return tuple(_bucket(padded[at : at + size]) for size in RUNS for at in range(max(1, len(padded) - size + 1)))


def weights_path(said: Said) -> Path:
    """Return the file of the weights."""
    return Path(__file__).parents[1] / "model" / {"found": "findings.npy", "told": "told.npy"}[said]


@cache
def weights(said: Said) -> NDArray[np.float32]:
    """Return the weights of all features; raise `Unavailable` where their file is missing or altered."""
    return np.load(verified(weights_path(said), WEIGHTS_SHA256[said])).astype(np.float32)
