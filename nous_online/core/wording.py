"""When two texts are the same words."""

from __future__ import annotations

PUNCTUATION = ".,;:!?…\"'“”‘’«»()[]"  # noqa: RUF001 (marks around words; signs such as - # % mean something)


def folded(text: str) -> str:
    """Return a text without case, spacing and the punctuation around its words: two that are equal so say the same."""
    return " ".join(filter(None, (word.strip(PUNCTUATION) for word in text.casefold().split())))
