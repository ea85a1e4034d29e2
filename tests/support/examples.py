"""How many examples a property is tried on: few in each run, many times as many where somebody asks for it."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("NOUS_EXAMPLES", "1"))


def examples(few: int) -> int:
    """Return how many examples to draw: `few`, times the number in NOUS_EXAMPLES."""
    return few * TIMES
