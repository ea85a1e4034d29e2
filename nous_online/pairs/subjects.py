"""Whether two statements can be about one thing, as far as their subjects tell."""

from __future__ import annotations

from functools import lru_cache

from nous_online.pairs.reading import read_words

ARTICLES = frozenset({"a", "an", "the"})
SUBJECT = "subject"  # how the reason begins that tells two subjects apart
MARKS = frozenset("'\".,;:!?-/")


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
