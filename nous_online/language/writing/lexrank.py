"""Which sentences say most, by LexRank over their vectors and the words they add; and shorter: a title, one line.

What is shorter than a summary is cut from the text itself.
"""
# ruff: noqa: RUF001 — dashes and typographic quotes are what is cut off

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nous_online.core.policy import WritingPolicy
from nous_online.language.lexicon import FUNCTION_WORDS, NEGATORS, word_list
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.reading import read
from nous_online.language.writing.phrases import OWN
from nous_online.language.writing.sentences import Sentence, said, split, straight, told

Weights = NDArray[np.float64]

POLICY = WritingPolicy()
ROUNDS = 60  # power iterations; at damping 0.85 the rest is below 0.85^60 = 0.00006 of the whole.
WORDLESS = 1e-3  # what a sentence has in common with every other, so that one without content words has a direction too
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
    bearing: NDArray[np.bool_] | None = None,
    asked: Mapping[int, int] | None = None,
    telling: Weights | None = None,
) -> list[int]:
    """Return the indexes, in order, of the sentences that together say most, told in at most `words` words.

    Chosen one by one for what they add: the words not yet said, each weighing as many sentences as hold it, times
    LexRank, less what they repeat, of those that may stand in it (`bearing`). Where it is known how much each tells of
    decisions, causes and fixes, its words weigh `telling` times as much; else openings weigh more. An answer brings the
    question it was `asked`. Where none fits, the one that says most is returned alone. `vectors` holds one unit row a
    sentence, of its text alone.
    """
    if not sentences:
        return []
    weight = (
        priors(sentences, vectors)
        if telling is None
        else telling * priors(sentences, vectors, earliness=0.0, length_power=POLICY.telling_length_power)
    )
    weight *= 1.0 if bearing is None else bearing
    holds, unsaid = incidence(sentences)
    closest = np.zeros(len(sentences))
    is_open = np.ones(len(sentences), dtype=bool)
    chosen: set[int] = set()
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


def priors(
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    earliness: float = POLICY.earliness,
    length_power: float = POLICY.length_power,
) -> Weights:
    """Return what a word of each sentence weighs: LexRank, earliness and something to check, over its length."""
    place = np.arange(len(sentences)) / max(1, len(sentences) - 1)
    readings = [read(sentence.text) for sentence in sentences]
    checkable = [bool(each.names or each.numbers or each.dates or each.times or each.identifiers) for each in readings]
    bonus = np.where(checkable, POLICY.checkable_bonus, 1.0)
    lengths = np.array([max(1, word_count(said(sentence))) for sentence in sentences])
    return lexrank(vectors) * np.exp(-earliness * place) * bonus / lengths**length_power


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


LONGEST_LINE = 200  # characters of the one line, for words that have no spaces between them
LONGEST_TITLE = 100  # characters of a title, for words that have no spaces between them
LONGEST_INDEX = 50  # characters of the index word (the width the store gives it)
INDEX_WORDS = 4
AT_A_JOINT, CUT_SHORT = 0.8, 0.5
"""Worth of a title that stops before "because" or "to", and where the room ends, beside one that ends its clause."""

CHATTER, OPENERS, JOINTS = map(word_list, ("chatter", "openers", "joints"))
DANGLING = FUNCTION_WORDS | NEGATORS
EDGE = " \t.,;:!?…。！？、-–—*_`\"'“”‘’()[]{}<>|/\\#"


def title_of(ranked: Sequence[Sentence], *, headings: Sequence[str] = ()) -> str:
    """Return 5 to 10 words that name an episode, from its first heading or the first sentence that has them.

    A heading of fewer words stands before the sentence. Fewer words only where the text has no more; an empty text
    where there is none.
    """
    least, most = POLICY.title_words
    heading = bare(headings[0]) if headings else ""
    if least <= word_count(heading) <= most:
        return capitalised(heading)
    prefix = f"{heading}: " if 1 < word_count(heading) < least else ""
    counts = Counter(word for sentence in ranked for word in content_words(sentence.text))
    for sentence in ranked:
        if word_count(title := best_stretch(sentence, counts, prefix=prefix)) >= least:
            return title
    joined = "; ".join(dict.fromkeys(filter(None, (heading, *(bare(sentence.text) for sentence in ranked)))))
    return capitalised(balanced(bare(first_words(joined, most))))


def best_stretch(sentence: Sentence, counts: Counter[str], *, prefix: str = "") -> str:
    """Return the stretch of 5 to 10 words, between joints of the sentence, whose words are commonest in the text.

    "Ana: I moved to Lisbon in May": who says "I" is named, within the ten words.
    """
    least, most = POLICY.title_words
    words = opened(sentence.text.split())
    is_own = bool(OWN.search(straight(sentence.text)))
    name = f"{sentence.speaker}: " if sentence.speaker and is_own and not prefix else prefix
    room = most - word_count(name)
    values = {
        " ".join(stretch): weight * sum(counts[word] for word in content_words(" ".join(stretch)))
        for start, end, weight in spans(words, room)
        if word_count(" ".join(stretch := trimmed(words[start:end]))) >= least - word_count(name)
    }
    stretch = max(values, key=lambda each: (values[each], len(each)), default=first_words(" ".join(words), room))
    return capitalised(name + balanced(bare(stretch)))


def opened(words: Sequence[str]) -> list[str]:
    """Return words without the openers before the first one that counts."""
    place = next((i for i, word in enumerate(words) if word.casefold().strip(EDGE) not in OPENERS), 0)
    return list(words[place:])


def spans(words: Sequence[str], most: int) -> Iterator[tuple[int, int, float]]:
    """Yield stretches of at most `most` words from the start of a clause, each with what its ending is worth.

    1 where the clause ends, less before a joint inside it, least where the room ends.
    """
    stops = [i for i in range(1, len(words)) if words[i - 1].endswith((",", ";", ":", ".", "—", "–", ")"))]
    for start in [0, *(i for i in stops if words[i].casefold() not in FUNCTION_WORDS)]:
        last = min(start + most, len(words))
        for end in range(start + 1, last + 1):
            if end == len(words) or end in stops:
                yield start, end, 1.0
            elif words[end].casefold() in JOINTS:
                yield start, end, AT_A_JOINT
        yield start, last, CUT_SHORT


def trimmed(words: Sequence[str]) -> list[str]:
    """Return words without the small function words that dangle at the end; "May" is a month."""
    kept = list(words)
    while kept and kept[-1][:1].islower() and kept[-1].strip(EDGE) in DANGLING:
        kept.pop()
    return kept


def first_words(text: str, most: int) -> str:
    """Return the beginning of a text: at most `most` words, or twice as many characters of a script without spaces."""
    kept: list[str] = []
    for word in text.split():
        left = most - word_count(" ".join(kept))
        if left <= 0:
            break
        kept.append(word if word_count(word) <= left else word[: 2 * left])
    return " ".join(kept)[:LONGEST_LINE]


def bare(text: str) -> str:
    """Return a text without the punctuation and Markdown around it."""
    return " ".join(text.replace("**", "").replace("`", "").split()).strip(EDGE)


def balanced(text: str) -> str:
    """Return at most 100 characters of a text, without quotation marks that lost their other half."""
    whole = text.replace('"', "") if text.count('"') % 2 else text
    return whole[:LONGEST_TITLE].rstrip(EDGE)


def capitalised(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def condensed(text: str) -> str:
    """Return a text as one line of at most 24 words: all of it, its first sentence, or that cut short."""
    line = " ".join(text.split())
    for whole in (line, next(split(line), "")):
        if word_count(whole) <= POLICY.compressed_words and len(whole) <= LONGEST_LINE:
            return whole
    cut = trimmed(first_words(next(split(line)), POLICY.compressed_words - 1).split())
    return " ".join(cut).rstrip(EDGE)[: LONGEST_LINE - 1] + "…"


def index_word(title: str) -> str:
    """Return the words a title is about as one slug: "Moved billing to Postgres" gives "moved-billing-postgres"."""
    about = content_words(title)
    said = _WORD.findall(title.casefold())
    words = [word for word in said if word in about]
    slug = "-".join(list(dict.fromkeys(words or said))[:INDEX_WORDS])
    return slug[:LONGEST_INDEX].strip("-_") or "episode"
