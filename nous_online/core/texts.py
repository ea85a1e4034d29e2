"""Invisible characters in texts, and texts that are equal but for case, spacing and punctuation.

Enough invisible characters can carry a message that a model reads and a person does not.
"""

from __future__ import annotations

import re
import unicodedata

FEW = 3
"""How many invisible characters (joiners, soft hyphens, marks of direction) a copy of an honest text may differ by."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters that are no white space, and what Unicode calls Default_Ignorable_Code_Point."""
HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u115f\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Those of them that no script and no emoji needs, and lone surrogates; joiners and U+FE0F, the emoji mark, stay."""
_BLANK_MARKS = "\u2800"
"""The Braille pattern without dots: invisible, though not white space by Unicode."""

PUNCTUATION = ".,;:!?…\"'“”‘’«»()[]"  # noqa: RUF001 (marks around words; signs such as - # % mean something)


def unseen(a: str, b: str) -> str | None:
    """Return a reason against taking two texts for the same: one has more invisible characters; None otherwise."""
    apart = abs(len(_UNSEEN.findall(a)) - len(_UNSEEN.findall(b)))
    return f"{apart} characters nobody sees" if apart > FEW else None


def visible(text: str) -> str:
    """Return a text without control and invisible characters, so that a model reads what a person sees."""
    return HIDDEN.sub("", text)


def is_blank(text: str) -> bool:
    """Tell whether a text has no visible character: only white space, invisible ones, or accents without a letter."""
    return all(
        char.isspace() or char in _BLANK_MARKS or unicodedata.category(char) in {"Cc", "Cf", "Mn", "Mc", "Me"}
        for char in seen_of(text)
    )


def seen_of(text: str) -> str:
    """Return a text without invisible characters."""
    return _UNSEEN.sub("", text)


def folded(text: str) -> str:
    """Return a text without case, spacing and the punctuation around its words, for comparing two texts."""
    return " ".join(filter(None, (word.strip(PUNCTUATION) for word in text.casefold().split())))
