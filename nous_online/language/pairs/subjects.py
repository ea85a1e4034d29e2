"""Whether two statements can be about one thing, as far as their subjects tell."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

from nous_online.language.pairs.lexicon import DATED, NUMBER_WORDS
from nous_online.language.pairs.reading import read_words

ARTICLES = frozenset({"a", "an", "the"})
SUBJECT = "subject"  # how the reason begins that tells two subjects apart
MARKS = frozenset("'\".,;:!?-/")
TOKEN = re.compile(r"[^\W_](?:[\w'\u2019.:%/-]*\w)?|\S")
LEAST_ALIKE = 0.5  # of the words of two statements that are told of two things in the same way
CONDITIONAL = frozenset({"on", "at", "in", "for", "during", "with"})  # words before what a statement may be bound to
THRESHOLDS = frozenset({"over", "above", "under", "below", "than"})  # of "more than 1,000 euros"
FRACTIONS = frozenset({"half", "quarter"})
LONGEST_CONDITION = 3  # words
MOST_COMPARED = 60  # words: aligning is quadratic


@lru_cache(maxsize=65_536)
def subject_words(subject: str | None) -> tuple[str, ...]:
    """Return a subject in the one spelling subjects are compared in: "The Ana's  Desk" → ana, desk.

    Only an article in front is left out: the A of "project A" tells it from project B.
    """
    words = tuple(word for word in read_words(subject or "").words if word not in MARKS)
    return words[1:] if len(words) > 1 and words[0] in ARTICLES else words


def other_subjects(a: str | None, b: str | None) -> str | None:
    """Return, in words, that two statements name different subjects; None when they agree or one names none."""
    one, other = subject_words(a), subject_words(b)
    return f"{SUBJECT} {' '.join(one)} ≠ {' '.join(other)}" if one and other and one != other else None


def is_name(word: str) -> bool:
    """Tell whether a word is capitalised, or has letters and digits."""
    has_letters, has_digits = (any(map(test, word)) for test in (str.isalpha, str.isdigit))
    return (word[0].isupper() and len(word) > 1) or (has_letters and has_digits)


def other_things(a: str, b: str) -> str | None:
    """Return, in words, that two statements in the same wording give two things a value each; None where they don't.

    "web-04 is at 71 %" and "web-05 is at 83 %": one name or identifier differs, and behind it a quantity. Of the pairs
    written for training 77 of 78 that are so both hold.
    """
    one, other = TOKEN.findall(a), TOKEN.findall(b)
    if max(len(one), len(other)) > MOST_COMPARED:
        return None
    words = [[word.casefold() for word in words] for words in (one, other)]
    matcher = SequenceMatcher(None, *words, autojunk=False)
    parts = [(one[i:j], other[k:n]) for tag, i, j, k, n in matcher.get_opcodes() if tag != "equal"]
    if len(parts) < 2 or matcher.ratio() < LEAST_ALIKE:  # noqa: PLR2004 (a name and a value)
        return None
    (first, second), *values = parts
    is_named = len(first) == len(second) == 1 and all(
        is_name(word) and word.casefold().removesuffix("s") not in DATED for word in (*first, *second)
    )
    if not is_named or not all(all(any(map(str.isdigit, "".join(side))) for side in value) for value in values):
        return None
    return f"two things, {first[0]} and {second[0]}, each with a value of its own"


def other_conditions(a: str, b: str) -> str | None:
    """Return, in words, that two statements in the same wording give a quantity each under a condition of its own.

    "The shop opens at 9 on weekdays" and "… at 11 on Sundays": behind a preposition another time that comes again,
    group or threshold, and elsewhere another quantity. None where that is not so, or where a name or a day of the
    calendar is another too: "on Tuesday at 9" and "on Thursday at 10" is one thing that was moved. Of the pairs written
    for training all 38 that are so both hold, and all 3 of `wording`.
    """
    quantities, count = 0, 0
    conditions: list[tuple[list[str], list[str]]] = []
    for before, sides in _replaced(a, b):
        count += 1
        if before in THRESHOLDS and all(map(_is_quantity, sides)):
            conditions.append(sides)
        elif all(map(_is_quantity, sides)):
            quantities += 1
        elif before in CONDITIONAL and all(map(_is_condition, sides)):
            conditions.append(sides)
    if not (quantities and conditions and quantities + len(conditions) == count):
        return None
    one, other = (" ".join(side) for side in conditions[0])
    return f"each under a condition of its own: {one}, {other}"


def _replaced(a: str, b: str) -> list[tuple[str, tuple[list[str], list[str]]]]:
    """Return what stands in each other's place in two statements alike, with the word before; of others nothing."""
    one, other = TOKEN.findall(a), TOKEN.findall(b)
    if max(len(one), len(other)) > MOST_COMPARED:
        return []
    words = [[word.casefold() for word in side] for side in (one, other)]
    matcher = SequenceMatcher(None, *words, autojunk=False)
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    if matcher.ratio() < LEAST_ALIKE or any(change != "replace" for change, *_ in changes):
        return []
    found: list[tuple[str, tuple[list[str], list[str]]]] = []
    for _, i, j, k, n in changes:
        before = [word for word in words[0][:i] if word not in ARTICLES]
        sides = (one[i:j], other[k:n])
        if all(len(side) > 1 and side[0].casefold() in CONDITIONAL for side in sides):
            before, sides = [sides[0][0].casefold()], (sides[0][1:], sides[1][1:])
        is_pressure = len(before) > 1 and before[-1] in THRESHOLDS and _is_quantity([before[-2]])  # "142 over 90"
        found.append((before[-1] if before and not is_pressure else "", sides))
    return found


def _is_quantity(side: list[str]) -> bool:
    return any(any(map(str.isdigit, word)) or word.casefold() in {*NUMBER_WORDS, *FRACTIONS} for word in side)


def _is_condition(side: list[str]) -> bool:
    """Tell whether a phrase can be the condition of a statement: short, no quantity, no name and no calendar day."""
    is_plain = all(not word[0].isupper() or word.casefold().removesuffix("s") in DATED for word in side)
    return (
        len(side) <= LONGEST_CONDITION
        and is_plain
        and not _is_quantity(side)
        and not {w.casefold() for w in side} & DATED
    )
