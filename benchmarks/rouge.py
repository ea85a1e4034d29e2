"""ROUGE-1, ROUGE-2 and ROUGE-L as F1 over stemmed words (Lin 2004): how near a summary comes to those people wrote.

Words are runs of ASCII letters and digits, lower-case, stemmed from four letters on, as the `rouge-score` package has
them. ROUGE-L takes the longest common subsequence of the whole texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from Stemmer import Stemmer

KINDS = ("rouge1", "rouge2", "rougeL")
STEMMED_FROM = 4
stemmed = Stemmer("porter").stemWord
"""Returns the stem of a lower-case English word (M. F. Porter, An algorithm for suffix stripping, 1980)."""


def rouge(summary: str, references: Sequence[str]) -> dict[str, float]:
    """Return the F1 of each kind in 0 to 1, the mean over the references; never the best of them."""
    got = words_of(summary)
    each = [
        (overlap(got, told, 1), overlap(got, told, 2), common_order(got, told)) for told in map(words_of, references)
    ]
    return dict(zip(KINDS, np.mean(each, axis=0).tolist(), strict=True))


def words_of(text: str) -> list[str]:
    """Return the stemmed words of a text."""
    return [stemmed(word) if len(word) >= STEMMED_FROM else word for word in re.findall(r"[a-z0-9]+", text.lower())]


def overlap(got: Sequence[str], told: Sequence[str], size: int) -> float:
    """Return the F1 of the runs of `size` words two texts have in common."""
    ours, theirs = (Counter(zip(*(words[i:] for i in range(size)), strict=False)) for words in (got, told))
    return f1(sum((ours & theirs).values()), sum(ours.values()), sum(theirs.values()))


def common_order(got: Sequence[str], told: Sequence[str]) -> float:
    """Return the F1 of the longest sequence of words that both texts have in this order."""
    lengths = [0] * (len(told) + 1)
    for word in got:
        before = 0
        for place, other in enumerate(told, start=1):
            above = lengths[place]
            lengths[place] = before + 1 if word == other else max(above, lengths[place - 1])
            before = above
    return f1(lengths[-1], len(got), len(told))


def f1(common: int, ours: int, theirs: int) -> float:
    """Return the harmonic mean of precision and recall; 0 where nothing is in common."""
    return 2 * common / (ours + theirs) if common else 0.0
