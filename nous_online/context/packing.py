"""Putting entries into a budget: never a token too many, no memory twice, the best first. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from nous_online.context.context_lines import BULLET, POLICY, TIERS, ContextEntry, ContextLine, Level, Tier
from nous_online.language.tokens import tokens_of

HEADINGS: Mapping[Tier, str] = {
    "critical": "# Critical",
    "relevant": "# Relevant",
    "background": "# Background",
    "index": "# Ask me about",
}
DEBUGGING = frozenset({"debug", "debugging"})
FULL_SHARE = 0.75
"""Each half of the public conversations shows as much of the answers with 0.67 to 0.8 as with any other share, and more
of the evidence than in full alone."""
MOST_LENT = 0.5
"""Share of each lower tier that what is pinned may borrow, so that a question still gets its answer."""
MOST_MISFITS = 8
LEAST_LINE = 4
"""Tokens below which no line is looked for."""
Shown = frozenset[UUID]
Levels = Mapping[tuple[UUID, ...], int]
"""At which of its levels the entry of some memories is shown."""
NOTHING: Levels = {}
Pointers = Callable[[Shown], Sequence[ContextEntry]]
"""What the index may point at, given what is shown."""


@dataclass(frozen=True)
class Placed:
    """An entry at one of its levels."""

    entry: ContextEntry
    level: int

    @property
    def shown(self) -> Level:
        level, text = self.entry.levels[self.level] if self.level else self.entry.first
        return level, self.entry.dated(text)

    @property
    def tokens(self) -> int:
        return self.entry.costs[self.level] if self.level else self.entry.first_cost


def rooms(budget: int, *, frame: str | None) -> Mapping[Tier, int]:
    """Return how many of the budget's tokens each tier may use before any flows down; what rounding leaves is added."""
    is_debugging = (frame or "").casefold() in DEBUGGING
    shares = POLICY.debugging_shares if is_debugging else POLICY.shares
    own = [int(budget * share) for share in shares]
    own[1] += budget - sum(own)
    return dict(zip(TIERS, own, strict=True))


def usual_budget(frame: str | None) -> int:
    """Return the budget of a frame in tokens, the usual one for a frame that has none of its own."""
    return dict(POLICY.budgets).get((frame or "").casefold(), POLICY.budget)


def arrange(
    wanted: Mapping[Tier, Sequence[ContextEntry]], pointers: Pointers, *, rooms: Mapping[Tier, int]
) -> dict[Tier, list[Placed]]:
    """Return what each tier shows: what one leaves of its room flows down, and what the index leaves flows back up.

    `wanted` has the entries of every tier but the index, the best first; a memory is shown in the first tier that has
    room for it.
    """
    placed: dict[Tier, list[Placed]] = {}
    critical = not_shown(wanted.get("critical", ()), frozenset())
    rooms = lend_to_pinned(rooms, critical)
    due = {"critical": due_levels(critical, rooms["critical"])}

    def fill(tier: Tier, room: int) -> int:
        """Place what a tier has room for, and return the tokens it leaves."""
        elsewhere = ids_of(line for other, lines in placed.items() if other != tier for line in lines)
        placed[tier] = pack(not_shown(wanted.get(tier, ()), elsewhere), room, due=due.get(tier, NOTHING))
        return room - cost(placed[tier])

    spare = 0
    for tier in TIERS[:-1]:
        spare = fill(tier, rooms[tier] + spare)
    room = rooms["index"] + spare
    index_cost = cost(pack(pointers(ids_of(line for lines in placed.values() for line in lines)), room))
    spare = room - index_cost
    for tier in ("relevant", "critical", "background"):
        spare = fill(tier, cost(placed[tier]) + spare)
    shown = ids_of(line for lines in placed.values() for line in lines)
    placed["index"] = pack(pointers(shown), index_cost + spare)
    return placed


def ids_of(placed: Iterable[Placed]) -> Shown:
    """Return the memories that lines show."""
    return frozenset(each for line in placed for each in line.entry.memory_ids)


def not_shown(entries: Sequence[ContextEntry], shown: Shown) -> list[ContextEntry]:
    """Return the entries none of whose memories is shown yet, each memory once."""
    met = set(shown)
    kept: list[ContextEntry] = []
    for entry in entries:
        if met.isdisjoint(entry.memory_ids):
            kept.append(entry)
            met.update(entry.memory_ids)
    return kept


def lend_to_pinned(rooms: Mapping[Tier, int], critical: Sequence[ContextEntry]) -> Mapping[Tier, int]:
    """Return the rooms after what is pinned has borrowed from the lower tiers, of each half at the most."""
    pinned = sum(entry.first_cost for entry in critical if entry.is_pinned)
    needed = heading_tokens() + math.ceil(pinned / FULL_SHARE) + 1
    lower = sum(rooms[tier] for tier in TIERS[1:])
    share = min(max(needed - rooms["critical"], 0) / max(lower, 1), MOST_LENT)
    loans: dict[Tier, int] = {tier: -math.ceil(rooms[tier] * share) for tier in TIERS[1:]}
    loans["critical"] = -sum(loans.values())
    return {tier: rooms[tier] + loans[tier] for tier in TIERS}


def due_levels(entries: Sequence[ContextEntry], room: int) -> Levels:
    """Return the level of each pinned entry: each has a line, and the first are told in full, within three quarters."""
    pinned = [entry for entry in entries if entry.is_pinned]
    left = int((room - heading_tokens()) * FULL_SHARE)
    if sum(entry.first_cost for entry in pinned) <= left:
        return {entry.memory_ids: 0 for entry in pinned}
    levels = in_short(pinned, {}, left)
    levels |= in_more_detail(pinned, levels, left - spent(pinned, levels))
    return {pinned[place].memory_ids: level for place, level in levels.items()}


def pack(entries: Sequence[ContextEntry], room: int, *, due: Levels = NOTHING) -> list[Placed]:
    """Return as many entries as find room, in their order, the first ones told in full.

    What is due is told as it is due. The first of the others fill three quarters of the room as they are, the last
    quarter takes short lines of more, so that a few long texts don't hide all the rest; what is then left tells some of
    those in more detail.
    """
    left = room - heading_tokens()
    if sum(entry.first_cost for entry in entries) <= left:
        return [Placed(entry, 0) for entry in entries]
    levels = {place: due[each.memory_ids] for place, each in enumerate(entries) if each.memory_ids in due}
    in_full = int(left * FULL_SHARE) - spent(entries, levels)
    for place, entry in enumerate(entries):
        if place not in levels and entry.first_cost <= in_full:
            levels[place] = 0
            in_full -= entry.first_cost
    levels |= in_short(entries, levels, left - spent(entries, levels))
    levels |= in_more_detail(entries, levels, left - spent(entries, levels))
    return [Placed(entries[place], level) for place, level in sorted(levels.items())]


def in_short(entries: Sequence[ContextEntry], told: Mapping[int, int], room: int) -> dict[int, int]:
    """Return which others get their shortest line, by their places; it ends where several in a row found no room."""
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


def in_more_detail(entries: Sequence[ContextEntry], levels: Mapping[int, int], left: int) -> dict[int, int]:
    """Return the shortened ones at the most detailed levels there is room for."""
    detailed: dict[int, int] = {}
    for place, shortest in levels.items():
        if shortest:
            costs = entries[place].costs
            detailed[place] = next(level for level, cost in enumerate(costs) if cost - costs[shortest] <= left)
            left -= costs[detailed[place]] - costs[shortest]
    return detailed


def spent(entries: Sequence[ContextEntry], levels: Mapping[int, int]) -> int:
    """Return the tokens of entries, given by their places, at some levels."""
    return sum(Placed(entries[place], level).tokens for place, level in levels.items())


def heading_tokens() -> int:
    """Return the tokens that the heading of any tier may have."""
    return max(tokens_of(f"{heading}\n") for heading in HEADINGS.values())


def cost(placed: Sequence[Placed]) -> int:
    """Return the tokens of a tier, its heading included; nothing for an empty one."""
    return heading_tokens() + sum(each.tokens for each in placed) if placed else 0


def lines_of(placed: Mapping[Tier, Sequence[Placed]]) -> tuple[ContextLine, ...]:
    """Return what is shown as lines, tier by tier."""
    return tuple(
        ContextLine(tier, each.entry.kind, each.entry.memory_ids, *each.shown, each.tokens, each.entry.reason)
        for tier in TIERS
        for each in placed.get(tier, ())
    )


def render(lines: Sequence[ContextLine]) -> dict[Tier, str]:
    """Return the text of each tier that has lines, pointers in one; put together by line ends they are the context."""
    texts: dict[Tier, str] = {}
    for tier in TIERS:
        own = [line.text for line in lines if line.tier == tier]
        told = [", ".join(own)] if own and tier == "index" else own
        if told:
            texts[tier] = "\n".join((HEADINGS[tier], *(f"{BULLET}{text}" for text in told)))
    return texts
