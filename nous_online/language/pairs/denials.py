"""Whether one statement denies another: the same words but for a negation, or but for one word and its opposite."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from operator import ne
from sys import intern

from nous_online.language.pairs.guards import negations
from nous_online.language.pairs.lexicon import FUNCTION_WORDS, NEGATORS, OPPOSITES, RIVALS
from nous_online.language.pairs.reading import StatementWords, read_words, stem

MAX_WORDS = 120
"""Alignment is quadratic in words."""
KNOWN_TEXTS = 131_072
"""Texts whose words are kept at hand: a night compares those of an agent with 100,000 facts over and over."""
LEAST_FRAME = 2
"""Content words that must stay the same; fewer are no statement."""
LEAST_SHARED = 0.8
"""Dice coefficient of the content words from which a negation bears on the same thing."""
PREDICATING = frozenset({"is", "are", "was", "were", "am", "be", "been", "being"})
DEGREES = frozenset(
    {
        "now",
        "currently",
        "still",
        "already",
        "very",
        "quite",
        "fully",
        "completely",
        "always",
        "really",
        "just",
        "again",
    }
)
EMPTY = NEGATORS | FUNCTION_WORDS | frozenset({"somebody", "someone", "something", "anybody", "anything", "nobody"})


def denied(a: str, b: str) -> str | None:
    """Return what one of two statements says and the other denies, or None."""
    if _is_turned(a) == _is_turned(b):
        return opposed(a, b)
    return None if _speak_of_opposites(a, b) else _said_by_both(a, b)


def _speak_of_opposites(a: str, b: str) -> bool:
    """Tell whether each has a word to which one of the other is the opposite: "after 5 we may", "before 5 we may not".

    Of the pairs written for training 23 deny each other's words and have opposites: all 23 hold together.
    """
    one, other = ({*read_words(text).words} for text in (a, b))
    return any(_are_rivals([word], [its]) for word in one - other for its in other - one)


@lru_cache(maxsize=KNOWN_TEXTS)
def _is_turned(text: str) -> bool:
    """Tell whether the negations of a statement turn it round, as one or three do."""
    return negations(read_words(text)) % 2 == 1


def opposed(a: str, b: str) -> str | None:
    """Return the words two statements share when they differ in one word alone, by its opposite or rival.

    That word says how the thing is: an opposite in the subject or as the verb speaks of another thing or moment
    ("the front door", "the back door"; "opens at 8", "closes at 8").
    """
    one, other = _spoken(a), _spoken(b)
    if len(one) != len(other) or sum(map(ne, one, other)) != 1:
        return None
    codes = [code for code in SequenceMatcher(None, one, other, autojunk=False).get_opcodes() if code[0] != "equal"]
    if len(codes) != 1 or codes[0][0] != "replace":
        return None
    _, start, end, first, last = codes[0]
    written = {*read_words(a).cased, *read_words(b).cased}  # "Low Tide" and "High Tide" are no opposites
    if not _are_rivals(one[start:end], other[first:last]) or not {one[start], other[first]} <= written:
        return None
    if not (_says_how_it_is(read_words(a), one[start]) and _says_how_it_is(read_words(b), other[first])):
        return None
    is_statement = sum(word not in FUNCTION_WORDS for word in (*one[:start], *one[end:])) >= LEAST_FRAME
    return " ".join([*one[:start], "…", *one[end:]]) if is_statement else None


def _says_how_it_is(reading: StatementWords, word: str) -> bool:
    """Tell whether a word stands right behind a copula, adverbs between them aside; an article opens a noun."""
    before = [each for each in reading.words[: reading.words.index(word)] if each not in DEGREES]
    return bool(before) and before[-1] in PREDICATING


def _said_by_both(a: str, b: str) -> str | None:
    """Return the content words of a statement and its denial, None when they speak of other things."""
    said, shared = content_stems(a), {*content_stems(a)} & {*content_stems(b)}
    if len(shared) < LEAST_FRAME or 2 * len(shared) < LEAST_SHARED * (len({*said}) + len({*content_stems(b)})):
        return None
    return " ".join(word for word in said if word in shared)


@lru_cache(maxsize=KNOWN_TEXTS)
def content_stems(text: str) -> tuple[str, ...]:
    """Return the distinct stems a statement is about, in order."""
    return tuple(dict.fromkeys(stem(word) for word in _spoken(text) if word not in EMPTY))


@lru_cache(maxsize=KNOWN_TEXTS)
def _spoken(text: str) -> tuple[str, ...]:
    """Return the words of a statement, articles and punctuation left out."""
    words = [word for word in read_words(text).words if word[0].isalnum() and word not in {"a", "an", "the"}]
    return tuple(map(intern, words[:MAX_WORDS]))


def _are_rivals(one: Sequence[str], other: Sequence[str]) -> bool:
    if len(one) != 1 or len(other) != 1:
        return False
    return (one[0], other[0]) in OPPOSITES or any({one[0], other[0]} <= group for group in RIVALS)
