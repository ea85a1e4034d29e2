"""The stemmer ROUGE is usually computed with: M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

Ending: TypeAlias = tuple[str, str]

STEP_2: Sequence[Ending] = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
STEP_3: Sequence[Ending] = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
STEP_4: Sequence[Ending] = tuple(
    (ending, "")
    for ending in "ement ance ence able ible ment sion tion ant ent ism ate iti ous ive ize al er ic ou".split()  # noqa: SIM905
)
DOUBLED = re.compile(r"([^aeiou])\1$")


@lru_cache(maxsize=65_536)
def stemmed(word: str) -> str:
    """Return the stem of a lower-case English word; one of two letters or less is its own."""
    if len(word) <= 2:
        return word
    word = without_participle(without_plural(word))
    if word.endswith("y") and has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    for endings, holds in ((STEP_2, 0), (STEP_3, 0), (STEP_4, 1)):
        word = exchanged(word, endings, lambda rest, least=holds: measure(rest) > least)
    return without_last_e(word)


def shape(word: str) -> str:
    """Return a word as its vowels and consonants, v and c; y is a vowel after a consonant."""
    letters = ""
    for letter in word:
        letters += "v" if letter in "aeiou" or (letter == "y" and letters.endswith("c")) else "c"
    return letters


def measure(word: str) -> int:
    """Return how often vowels are followed by consonants in a word: Porter's m."""
    return len(re.findall("v+c+", shape(word)))


def has_vowel(word: str) -> bool:
    """Tell whether there is a vowel in a word."""
    return "v" in shape(word)


def ends_short(word: str) -> bool:
    """Tell whether a word ends in consonant, vowel, consonant, the last none of w, x, y."""
    return shape(word).endswith("cvc") and word[-1] not in "wxy"


def exchanged(word: str, endings: Sequence[Ending], is_due: Callable[[str], bool]) -> str:
    """Return a word with the longest of `endings` it has exchanged, if that is due for what stands before it."""
    for ending, other in sorted(endings, key=lambda each: -len(each[0])):
        if word.endswith(ending):
            kept = ending[0] if ending in ("sion", "tion") else ""
            rest = word[: -len(ending)] + kept
            return rest + other if is_due(rest) else word
    return word


def without_plural(word: str) -> str:
    """Take off a plural s (step 1a)."""
    return exchanged(word, (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")), lambda _: True)


def without_participle(word: str) -> str:
    """Take off -ed and -ing, and mend what is left (step 1b)."""
    if word.endswith("eed"):
        return word[:-1] if measure(word[:-3]) else word
    rest = exchanged(word, (("ed", ""), ("ing", "")), has_vowel)
    if rest == word:
        return word
    if rest.endswith(("at", "bl", "iz")) or (measure(rest) == 1 and ends_short(rest)):
        return f"{rest}e"
    return rest[:-1] if DOUBLED.search(rest) and rest[-1] not in "lsz" else rest


def without_last_e(word: str) -> str:
    """Take off a last e, and one of two l, where the word is long enough (step 5)."""
    if word.endswith("e") and (measure(word[:-1]) > 1 or (measure(word[:-1]) == 1 and not ends_short(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and measure(word) > 1 else word
