"""Memories as lines of a context: one line each whatever they hold, at every level of detail. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from nous_online.levels import levels_of
from nous_online.recall import Detail
from nous_online.tokens import tokens_of

UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that control or hide text; joiners stay, for scripts and emoji need them."""
BULLET = "- "
MARKS = {"procedure": "how to: ", "decision": "decided: "}
"""What says of a line that it is no statement."""
Level = tuple[Detail, str]


@dataclass(frozen=True)
class Entry:
    """What could become a line: its text at each level, the most detailed first, and why it should be shown."""

    kind: str
    memory_ids: tuple[UUID, ...]
    levels: tuple[Level, ...]
    reason: str
    value: float = 1.0
    """Of two entries of a tier, the one worth more goes first."""
    topic: str = ""
    """What the index calls it where it is not shown."""

    @cached_property
    def costs(self) -> tuple[int, ...]:
        """Tokens of the line at each level, its bullet and its end included."""
        return tuple(cost_of(text) for _, text in self.levels)


def cost_of(text: str) -> int:
    """Return the tokens of a line."""
    return tokens_of(f"{BULLET}{text}\n")


def one_line(text: str) -> str:
    """Return a text as a single line without characters that control or hide: no memory can fake a heading."""
    return " ".join(UNSEEN.sub("", text).split())


def entry_of(
    kind: str,
    row: Mapping[str, Any],
    reason: str,
    *,
    value: float = 1.0,
    from_level: Detail = "full",
    mark: str = "",
) -> Entry:
    """Return a memory as an entry, from the fields of `recall.Found` or the columns of a decision."""
    known = levels_of(kind, row)
    told: tuple[Level, ...] = (("full", known.full), ("summary", known.summary), ("compressed", known.compressed))
    if kind == "episode":
        told = episode_levels(row, known.summary, known.compressed)
    begins = [level for level, _ in told].index(from_level) if from_level in dict(told) else 0
    prefix = mark or MARKS.get(kind, "")
    levels = shrinking(tuple((level, prefix + one_line(text)) for level, text in told[begins:]))
    return Entry(kind, (row["id"],), levels, reason, value, one_line(known.index))


def episode_levels(row: Mapping[str, Any], summary: str, compressed: str) -> tuple[Level, ...]:
    """Return what is shown of an episode: never its transcript, and always its day."""
    title, day = row.get("subject") or "", f"{row['learned_at']:%Y-%m-%d} "
    named = summary if not title or summary.startswith(title) else f"{title}: {summary}"
    return (("summary", day + named), ("compressed", day + compressed))


def shrinking(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Return the levels that are shorter than the one before; the first always stays."""
    kept = [levels[0]]
    for level in levels[1:]:
        if level[1] and len(level[1].encode()) < len(kept[-1][1].encode()):
            kept.append(level)
    return tuple(kept)
