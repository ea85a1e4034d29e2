"""The steps of a night at which tests kill it, to prove that the next run comes to the same result."""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "snapshot begins",
    "snapshot table written",
    "snapshot part described",
    "snapshot described",
    "snapshot in place",
    "phases read",
    "plan made",
    "plan written",
    "checks written",
    "night held",
    "plan stored",
    "proposals decided",
    "proposals stored",
    "texts cooled",
    "memories changed",
    "usage added",
    "contradictions opened",
    "links added",
    "chunk committed",
    "plan closed",
    "outcome written",
)
"""In the order in which a night reaches them; some are reached for each table, or each chunk of proposals."""
UNDO_POINTS = (
    "undo decided",
    "memories restored",
    "links removed",
    "contradictions closed",
    "proposals undone",
    "undo committed",
)
"""The same for an undo, for each chunk of proposals."""
BATCH_POINTS = (
    "batch intended",
    "batch created",
    "batch submitted",
    "batch ended",
    "results saved",
    "results known",
    "verdicts stored",
    "verdicts committed",
    "batch deleted",
)
"""The same for a batch of questions to Claude: the first three when it is sent, the others when it is collected."""


def go_on(_name: str) -> None:
    """Do nothing; tests replace it."""


on_reach: Callable[[str], None] = go_on


def reach(name: str) -> None:
    """Announce that the point of this name has been reached."""
    on_reach(name)
