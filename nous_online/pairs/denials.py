"""Whether one statement denies another: the same words but for a negation, or but for one word and its opposite."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from nous_online.pairs.guards import negations
from nous_online.pairs.lexicon import FUNCTION_WORDS, NEGATORS, OPPOSITES, RIVALS
from nous_online.pairs.reading import Reading, read, stem

MAX_WORDS = 120
"""Alignment is quadratic in words."""
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
    one, other = read(a), read(b)
    if negations(one) % 2 != negations(other) % 2:
        return _said_by_both(one, other)
    return opposed(a, b)


def opposed(a: str, b: str) -> str | None:
    """Return the words two statements share when they differ in one word alone, by its opposite or rival.

    That word says how the thing is: an opposite in the subject or as the verb speaks of another thing or moment
    ("the front door", "the back door"; "opens at 8", "closes at 8").
    """
    one, other = (_spoken(read(text)) for text in (a, b))
    codes = [code for code in SequenceMatcher(None, one, other, autojunk=False).get_opcodes() if code[0] != "equal"]
    if len(codes) != 1 or codes[0][0] != "replace":
        return None
    _, start, end, first, last = codes[0]
    written = {*read(a).cased, *read(b).cased}  # "Low Tide" and "High Tide" are no opposites
    if not _are_rivals(one[start:end], other[first:last]) or not {one[start], other[first]} <= written:
        return None
    if not (_says_how_it_is(read(a), one[start]) and _says_how_it_is(read(b), other[first])):
        return None
    is_statement = sum(word not in FUNCTION_WORDS for word in (*one[:start], *one[end:])) >= LEAST_FRAME
    return " ".join([*one[:start], "…", *one[end:]]) if is_statement else None


def _says_how_it_is(reading: Reading, word: str) -> bool:
    """Tell whether a word stands right behind a copula, adverbs between them aside; an article opens a noun."""
    before = [each for each in reading.words[: reading.words.index(word)] if each not in DEGREES]
    return bool(before) and before[-1] in PREDICATING


def _said_by_both(one: Reading, other: Reading) -> str | None:
    """Return the content words of a statement and its denial, None when they speak of other things."""
    a, b = ([stem(word) for word in _spoken(reading) if word not in EMPTY] for reading in (one, other))
    shared = set(a) & set(b)
    if len(shared) < LEAST_FRAME or 2 * len(shared) < LEAST_SHARED * (len(set(a)) + len(set(b))):
        return None
    return " ".join(word for word in dict.fromkeys(a) if word in shared)


def _spoken(reading: Reading) -> list[str]:
    """Return the words of a statement, articles and punctuation left out."""
    return [word for word in reading.words if word[0].isalnum() and word not in {"a", "an", "the"}][:MAX_WORDS]


def _are_rivals(one: Sequence[str], other: Sequence[str]) -> bool:
    if len(one) != 1 or len(other) != 1:
        return False
    return (one[0], other[0]) in OPPOSITES or any({one[0], other[0]} <= group for group in RIVALS)
