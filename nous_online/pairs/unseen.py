"""Characters nobody sees: enough of them carry a message that a model reads and a person does not."""

from __future__ import annotations

import re

FEW = 3
"""Joiners, soft hyphens and marks of direction that a copy of an honest text may gain or lose."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters that are no white space, and what Unicode calls Default_Ignorable_Code_Point."""


def unseen(a: str, b: str) -> str | None:
    """Return why two texts can't be one that look alike: one holds what nobody sees; None when neither does."""
    apart = abs(len(_UNSEEN.findall(a)) - len(_UNSEEN.findall(b)))
    return f"{apart} characters nobody sees" if apart > FEW else None


def seen_of(text: str) -> str:
    """Return a text without the characters nobody sees."""
    return _UNSEEN.sub("", text)
