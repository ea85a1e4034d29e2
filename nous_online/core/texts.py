"""What of a text a person sees, and when two texts are the same words.

Enough characters that nobody sees carry a message that a model reads and a person does not.
"""

from __future__ import annotations

import re
import unicodedata

FEW = 3
"""Joiners, soft hyphens and marks of direction that a copy of an honest text may gain or lose."""
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
"""What of these no script and no emoji needs, and halves of characters; joiners and the mark of an emoji stay."""
_BLANK_MARKS = "\u2800"
"""A pattern of Braille without dots is no white space to Unicode, and looks like nothing."""

PUNCTUATION = ".,;:!?…\"'“”‘’«»()[]"  # noqa: RUF001 (marks around words; signs such as - # % mean something)


def unseen(a: str, b: str) -> str | None:
    """Return why two texts can't be one that look alike: one holds what nobody sees; None when neither does."""
    apart = abs(len(_UNSEEN.findall(a)) - len(_UNSEEN.findall(b)))
    return f"{apart} characters nobody sees" if apart > FEW else None


def visible(text: str) -> str:
    """Return a text without characters that control or hide: what a person sees is what a model reads."""
    return HIDDEN.sub("", text)


def is_blank(text: str) -> bool:
    """Tell whether nobody sees anything of a text: white space, what is hidden, and accents without a letter."""
    return all(
        char.isspace() or char in _BLANK_MARKS or unicodedata.category(char) in {"Cc", "Cf", "Mn", "Mc", "Me"}
        for char in seen_of(text)
    )


def seen_of(text: str) -> str:
    """Return a text without the characters nobody sees."""
    return _UNSEEN.sub("", text)


def folded(text: str) -> str:
    """Return a text without case, spacing and the punctuation around its words: two that are equal so say the same."""
    return " ".join(filter(None, (word.strip(PUNCTUATION) for word in text.casefold().split())))
