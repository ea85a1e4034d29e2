"""Putting entries into a budget: never a token too many, no memory twice, the best first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from nous_online.context.answer import TIERS, ContextLine, Tier
from nous_online.context.lines import BULLET, Entry, Level
from nous_online.tokens import tokens_of

HEADINGS: Mapping[Tier, str] = {
    "critical": "# Critical",
    "relevant": "# Relevant",
    "background": "# Background",
    "index": "# Ask me about",
}
HEADING_TOKENS = max(tokens_of(f"{heading}\n") for heading in HEADINGS.values())
FULL_SHARE = 0.75
"""Each half of the public conversations shows as much of the answers with 0.67 to 0.8 as with any other share, and more
of the evidence than in full alone."""
MOST_MISFITS = 8
LEAST_LINE = 8
"""Tokens below which no line is looked for."""
Shown = frozenset[UUID]
Pointers = Callable[[Shown], Sequence[Entry]]
"""What the index may point at, given what is shown."""


@dataclass(frozen=True)
class Placed:
    """An entry at one of its levels."""

    entry: Entry
    level: int

    @property
    def shown(self) -> Level:
        return self.entry.levels[self.level] if self.level else self.entry.first

    @property
    def tokens(self) -> int:
        return self.entry.costs[self.level] if self.level else self.entry.first_cost


def packed(entries: Sequence[Entry], room: int) -> list[Placed]:
    """Return as many entries as find room, in their order, the first ones told in full.

    The first ones fill three quarters of the room as they are, the last quarter takes short lines of others, so that
    a few long texts don't hide all the rest; what is then left tells some of those in more detail.
    """
    left = room - HEADING_TOKENS
    if sum(entry.first_cost for entry in entries) <= left:
        return [Placed(entry, 0) for entry in entries]
    levels = in_full(entries, int(left * FULL_SHARE))
    left -= sum(entries[place].first_cost for place in levels)
    shortened = in_short(entries, levels, left)
    left -= sum(entries[place].costs[level] for place, level in shortened.items())
    for place, shortest in shortened.items():
        costs = entries[place].costs
        levels[place] = next(level for level, cost in enumerate(costs) if cost - costs[shortest] <= left)
        left -= costs[levels[place]] - costs[shortest]
    return [Placed(entries[place], level) for place, level in sorted(levels.items())]


def in_full(entries: Sequence[Entry], room: int) -> dict[int, int]:
    """Return which entries are told in full, by their places."""
    levels: dict[int, int] = {}
    for place, entry in enumerate(entries):
        if entry.first_cost <= room:
            levels[place] = 0
            room -= entry.first_cost
    return levels


def in_short(entries: Sequence[Entry], told: Mapping[int, int], room: int) -> dict[int, int]:
    """Return which others get their shortest line; it ends where several in a row found no room."""
    levels: dict[int, int] = {}
    misfits = 0
    for place, entry in enumerate(entries):
        if place in told:
            continue
        if misfits == MOST_MISFITS or room < LEAST_LINE:
            break
        misfits += 1
        if entry.costs[-1] <= room:
            levels[place] = len(entry.costs) - 1
            room -= entry.costs[-1]
            misfits = 0
    return levels


def cost(placed: Sequence[Placed]) -> int:
    """Return the tokens of a tier, its heading included; nothing for an empty one."""
    return HEADING_TOKENS + sum(each.tokens for each in placed) if placed else 0


def ids(placed: Sequence[Placed]) -> Shown:
    """Return the memories that are shown."""
    return frozenset(each for line in placed for each in line.entry.memory_ids)


def unseen(entries: Sequence[Entry], shown: Shown) -> list[Entry]:
    """Return the entries none of whose memories is shown yet, each memory once."""
    met = set(shown)
    kept: list[Entry] = []
    for entry in entries:
        if met.isdisjoint(entry.memory_ids):
            kept.append(entry)
            met.update(entry.memory_ids)
    return kept


def arranged(
    wanted: Mapping[Tier, Sequence[Entry]], pointers: Pointers, *, rooms: Mapping[Tier, int]
) -> dict[Tier, list[Placed]]:
    """Return what each tier shows: what one leaves of its room flows down, and what the index leaves flows back up.

    `wanted` has the entries of every tier but the index, the best first; a memory is shown in the first tier that has
    room for it.
    """
    placed: dict[Tier, list[Placed]] = {}
    spare = 0
    for tier in TIERS[:-1]:
        room = rooms[tier] + spare
        placed[tier] = packed(unseen(wanted.get(tier, ()), all_ids(placed)), room)
        spare = room - cost(placed[tier])
    room = rooms["index"] + spare
    index = packed(pointers(all_ids(placed)), room)
    spare = room - cost(index)
    for tier in ("relevant", "critical", "background"):
        elsewhere = all_ids({other: lines for other, lines in placed.items() if other != tier})
        room = cost(placed[tier]) + spare
        placed[tier] = packed(unseen(wanted.get(tier, ()), elsewhere), room)
        spare = room - cost(placed[tier])
    placed["index"] = packed(pointers(all_ids(placed)), cost(index) + spare)
    return placed


def all_ids(placed: Mapping[Tier, Sequence[Placed]]) -> Shown:
    """Return the memories shown in any tier."""
    return frozenset(each for lines in placed.values() for each in ids(lines))


def lines_of(placed: Mapping[Tier, Sequence[Placed]]) -> tuple[ContextLine, ...]:
    """Return what is shown as lines, tier by tier."""
    return tuple(
        ContextLine(
            tier=tier,
            kind=each.entry.kind,
            memory_ids=each.entry.memory_ids,
            level=each.shown[0],
            text=each.shown[1],
            tokens=each.tokens,
            reason=each.entry.reason,
        )
        for tier in TIERS
        for each in placed.get(tier, ())
    )


def rendered(lines: Sequence[ContextLine]) -> dict[Tier, str]:
    """Return the text of each tier that has lines, pointers in one; put together by line ends they are the context."""
    texts: dict[Tier, str] = {}
    for tier in TIERS:
        own = [line.text for line in lines if line.tier == tier]
        told = [", ".join(own)] if own and tier == "index" else own
        if told:
            texts[tier] = "\n".join((HEADINGS[tier], *(f"{BULLET}{text}" for text in told)))
    return texts
