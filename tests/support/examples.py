"""How many examples a property is tried on: few in each run, many times as many where somebody asks for it."""

from __future__ import annotations

import os

TIMES = float(os.environ.get("NOUS_EXAMPLES", "1"))
"""A run without a server takes a quarter: it is there to be quick, and the run of all tests follows."""


def examples(few: int) -> int:
    """Return how many examples to draw: `few`, times the number in NOUS_EXAMPLES."""
    return max(1, round(few * TIMES))
