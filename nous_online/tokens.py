"""How many tokens a text has, counted without asking anybody."""

from __future__ import annotations

import math

BYTES_A_TOKEN = 1.3
"""Fewest bytes of UTF-8 that a token of a current Claude stood for in any text measured; most stand for three."""
COUNTING = f"estimated from above: one token for each {BYTES_A_TOKEN:g} bytes of UTF-8"
"""How `tokens_of` counts, in words."""


def tokens_of(text: str) -> int:
    """Return how many tokens a text has at the most: an estimate from above, about twice the truth for English.

    Texts put together never have more than the sum of their parts.
    """
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_A_TOKEN)
