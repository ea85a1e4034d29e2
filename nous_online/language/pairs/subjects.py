"""Whether two statements can be about one thing, as far as their subjects tell."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

from nous_online.language.pairs.lexicon import DATED
from nous_online.language.pairs.reading import read_words

ARTICLES = frozenset({"a", "an", "the"})
SUBJECT = "subject"  # how the reason begins that tells two subjects apart
MARKS = frozenset("'\".,;:!?-/")
TOKEN = re.compile(r"[^\W_](?:[\w'\u2019.:%/-]*\w)?|\S")
LEAST_ALIKE = 0.5  # of the words of two statements that are told of two things in the same way
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
