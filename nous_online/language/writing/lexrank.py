"""Which sentences say most: LexRank over their vectors, and the words they would add to what is chosen already."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nous_online.core.policy import WritingPolicy
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.lexicon import FUNCTION_WORDS
from nous_online.language.pairs.reading import read
from nous_online.language.writing.sentences import Sentence, said, told

Weights = NDArray[np.float64]

POLICY = WritingPolicy()
ROUNDS = 60
"""Power iterations; at damping 0.85 the rest is below 0.85^60 = 0.00006 of the whole."""
WORDLESS = 1e-3
"""What a sentence has in common with every other, so that one without content words has a direction too."""
CHATTER = frozenset(
    """yeah yes no oh okay ok well um uh uhm hmm mm mhm right sure great good nice cool awesome wow thanks thank hi
    hello hey bye welcome please sorry really know think just like gonna gotta wanna got get let sounds lol haha
    vocalsound disfmarker pause laugh laughter gap""".split()  # noqa: SIM905 — words read best so
)
"""Words that carry talk rather than what it is about."""

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def word_count(text: str) -> int:
    """Return the words of a text; two characters of a script without spaces count as one."""
    return len(text.split()) + len(_UNSPACED.findall(text)) // 2


def content_words(text: str) -> frozenset[str]:
    """Return the words that say what a sentence is about, lower-case."""
    return frozenset(
        word
        for word in _WORD.findall(text.casefold())
        if word not in FUNCTION_WORDS and word not in CHATTER and (len(word) > 1 or word.isdigit())
    )


def word_vectors(sentences: Sequence[Sentence]) -> Vectors:
    """Return a unit row for each sentence: its content words, each weighing more the fewer sentences hold it.

    The vectors LexRank was made for (Erkan and Radev 2004, section 3.1), without counts: in a sentence they are one.
    """
    holds, counts = incidence([replace(sentence, speaker=None) for sentence in sentences])
    weights = holds * np.log1p(len(sentences) / np.maximum(counts, 1))
    named = np.hstack([weights, np.full((len(sentences), 1), WORDLESS)])
    return (named / np.linalg.norm(named, axis=1, keepdims=True)).astype(np.float32)


def lexrank(vectors: Vectors, *, damping: float = POLICY.damping) -> Weights:
    """Return how central each row of unit `vectors` is, 1 on average: continuous LexRank.

    PageRank over the cosines above zero, each row scaled to one (Erkan and Radev 2004, section 3.3).
    """
    count = len(vectors)
    links = np.clip(vectors.astype(np.float64) @ vectors.T, 0, None) + np.eye(count) * 1e-9
    links /= links.sum(axis=1, keepdims=True)
    rank = np.full(count, 1.0)
    for _ in range(ROUNDS):
        rank = (1 - damping) + damping * (rank @ links)
    return rank


def summarise(
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    words: int,
    bearing: Weights | None = None,
    asked: Mapping[int, int] | None = None,
    first: Iterable[Sequence[int]] = (),
) -> list[int]:
    """Return the indexes, in order, of the sentences that together say most, told in at most `words` words.

    Chosen one by one for what they add: the words not yet said, each weighing as many sentences as hold it, times
    LexRank, times earliness, times what each has to do with the outcome (`bearing`), less what they repeat. An answer
    brings the question it was `asked`. Where none fits, the one that says most is returned alone. `vectors` holds one
    unit row a sentence, of its text alone.
    """
    if not sentences:
        return []
    weight = priors(sentences, vectors) * (1.0 if bearing is None else bearing)
    holds, unsaid = incidence(sentences)
    closest = np.zeros(len(sentences))
    is_open = np.ones(len(sentences), dtype=bool)
    chosen: set[int] = set()
    for places in first:
        if word_count(told([sentences[i] for i in sorted(chosen.union(places))])) <= POLICY.outcome_share * words:
            chosen.update(places)
    for place in chosen:
        is_open[place] = False
        unsaid = unsaid * (1 - holds[place])
        closest = np.maximum(closest, np.clip(vectors @ vectors[place], 0, 1))
    while (gain := (holds @ unsaid) * weight * (1 - POLICY.redundancy * closest) * is_open).any():
        best = int(np.argmax(gain))
        is_open[best] = False
        with_best = chosen | {best, (asked or {}).get(best, best)}
        if word_count(told([sentences[i] for i in sorted(with_best)])) <= words:
            chosen = with_best
            unsaid = unsaid * (1 - holds[best])
            closest = np.maximum(closest, np.clip(vectors @ vectors[best], 0, 1))
    return sorted(chosen) or [int(np.argmax(worth(sentences, vectors)))]


def worth(sentences: Sequence[Sentence], vectors: Vectors) -> Weights:
    """Return how much each sentence says on its own: its words, each weighing as many sentences as hold it."""
    holds, counts = incidence(sentences)
    return (holds @ counts) * priors(sentences, vectors)


def priors(sentences: Sequence[Sentence], vectors: Vectors) -> Weights:
    """Return what a word of each sentence weighs: LexRank, earliness and something to check, over its length."""
    place = np.arange(len(sentences)) / max(1, len(sentences) - 1)
    bonus = np.array([POLICY.checkable_bonus if is_checkable(sentence.text) else 1.0 for sentence in sentences])
    lengths = np.array([max(1, word_count(said(sentence))) for sentence in sentences])
    return lexrank(vectors) * np.exp(-POLICY.earliness * place) * bonus / lengths**POLICY.length_power


def is_checkable(sentence: str) -> bool:
    """Tell whether a sentence holds a name, a number, a date, a time or an identifier."""
    reading = read(sentence)
    return bool(reading.names or reading.numbers or reading.dates or reading.times or reading.identifiers)


def incidence(sentences: Sequence[Sentence]) -> tuple[Weights, Weights]:
    """Return which sentence holds which content word (sentences x words), and how many sentences hold each."""
    spoken = [content_words(said(sentence)) for sentence in sentences]
    column = {word: place for place, word in enumerate(sorted(frozenset[str]().union(*spoken)))}
    holds = np.zeros((len(sentences), len(column)))
    for row, words in enumerate(spoken):
        holds[row, [column[word] for word in words]] = 1.0
    return holds, holds.sum(axis=0)


def most_telling(sentences: Sequence[Sentence], most: int) -> list[int]:
    """Return at most `most` indexes, in order, evenly spread: of each stretch the sentence with the commonest words.

    Needs no vectors: it decides which sentences of a very long text are worth embedding.
    """
    if len(sentences) <= most:
        return list(range(len(sentences)))
    spoken = [content_words(sentence.text) for sentence in sentences]
    counts = Counter(word for words in spoken for word in words)
    worth = [
        sum(counts[word] for word in words) / math.sqrt(max(1, word_count(sentence.text)))
        for words, sentence in zip(spoken, sentences, strict=True)
    ]
    edges = [round(place * len(sentences) / most) for place in range(most + 1)]
    return [max(range(start, end), key=worth.__getitem__) for start, end in pairwise(edges)]
