"""Cases that take turns: long lists of which each run tries a part, and another run another part.

The turn is that of the day (UTC), so that a run can be repeated elsewhere, and is said at its end:
`NOUS_TURN=5` tries another, and `NOUS_EXAMPLES=10` tries all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")
IS_ALL = "NOUS_EXAMPLES" in os.environ
TURN = int(os.environ.setdefault("NOUS_TURN", str(datetime.now(UTC).toordinal() % 60)))


def in_turn(cases: Sequence[T], *, of: int, place: int = 0) -> Sequence[T]:
    """Return each `of`-th case, in `of` turns all of them; all at once where more examples are asked for.

    What several lists are tried on counts its turns from its own place on.
    """
    return cases if IS_ALL else cases[(TURN + place) % of :: of]


def said() -> str:
    """Return what a run says of its turn."""
    if IS_ALL:
        return "every case that takes turns was tried"
    return f"of the cases that take turns, turn {TURN}: NOUS_TURN={TURN} repeats it, NOUS_EXAMPLES=10 tries all"
