"""Sorting memories into tiers with their reasons, and packing them into a budget of tokens. Pure.

The budget is never exceeded, and no memory appears twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice, zip_longest
from math import prod
from typing import Any
from uuid import UUID

from nous_online.context.context_lines import (
    BULLET,
    ERROR,
    FILE,
    OPEN_QUESTION,
    POLICY,
    TIERS,
    Answered,
    ContextEntry,
    ContextLine,
    Contradicting,
    Known,
    Level,
    Tier,
    date_of,
    entry_of,
    hint_of,
    longest,
    one_line,
    shorter_levels,
    time_of,
    topic_of,
    with_mark,
    with_times,
)
from nous_online.language.tokens import tokens_of
from nous_online.memories.sessions import NOTE
from nous_online.recall.ranking import with_firsts
from nous_online.recall.recall import FoundMemory, Recalled

MOST_SURE = 0.99  # the most that one reason counts: below 1, so that a second one still raises the value


def tier_entries(known: Known, *, at: datetime) -> dict[Tier, list[ContextEntry]]:
    """Return the entries of each tier but the index, the best first.

    A fact that an open contradiction names is marked as doubtful where it stands alone. One that a later or more
    trusted fact of its tier contradicts does not stand without that one.
    """
    doubtful = frozenset(each for pair in known.contradictions for each in pair.ids)
    tiers: dict[Tier, Iterable[ContextEntry]] = {
        "critical": critical(known),
        "relevant": relevant(known),
        "background": background(known, at=at),
    }
    return {
        tier: [
            with_mark(replace(entry, reason=f"{entry.reason}; contradicted"), "in doubt: ")
            if entry.kind == "fact" and entry.memory_ids[0] in doubtful
            else entry
            for entry in with_later(with_times(list(own)), known)
        ]
        for tier, own in tiers.items()
    }


def with_later(entries: Sequence[ContextEntry], known: Known) -> list[ContextEntry]:
    """Return entries, those that are not pinned with the facts of their tier that contradict them and go before them.

    That is the more trusted fact, of two as trusted the later one.
    """
    later: dict[UUID, set[UUID]] = {}
    for pair in known.contradictions:
        behind, first = sorted(pair.facts, key=lambda each: (each.trust, each.said_at, each.id))
        later.setdefault(behind.id, set()).add(first.id)
    present = {entry.memory_ids[0] for entry in entries if entry.memory_ids}
    return [
        replace(entry, behind=frozenset(later.get(entry.memory_ids[0], ())) & present)
        if entry.memory_ids and not entry.is_pinned
        else entry
        for entry in entries
    ]


# --- critical ---


def critical(known: Known) -> Iterator[ContextEntry]:
    """Yield contradictions, pinned memories, decisions, fixes of errors, failures, censors and open questions."""
    memories = known.memories
    concerned = concerning(known)
    own = (each for each in known.contradictions if concerned is None or not concerned.isdisjoint(each.ids))
    yield from map(contradiction, islice(own, POLICY.contradictions))
    pinned, questions = list[FoundMemory](), list[FoundMemory]()
    for each in memories.get("pinned", ()):
        is_question = each.kind == "fact" and each.category == OPEN_QUESTION
        (questions if is_question else pinned).append(each)
    yield from (entry_of(each.kind, vars(each), "pinned") for each in pinned)
    yield from decision_entries(known.decisions, is_current=True)
    yield from fix_entries(known.answered)
    yield from (
        entry_of("episode", vars(each), "failed lately", mark="failed: ")
        for each in memories.get("failure", ())
        if each.trust >= POLICY.least_trust
    )
    yield from (
        entry_of("censor", vars(each), f"{each.category}s what it warns of") for each in memories.get("censor", ())
    )
    yield from (
        ContextEntry(NOTE, (), ("full", f"still open: {one_line(each)}"), "left open") for each in known.threads
    )
    questions += [each for each in memories.get(OPEN_QUESTION, ()) if each.trust >= POLICY.least_trust]
    yield from (entry_of("fact", vars(each), "an open question", mark="open question: ") for each in questions)


def concerning(known: Known) -> frozenset[UUID] | None:
    """Return the memories whose contradictions matter here: recalled, held in the session, pinned or predicted ones.

    None without a cue or a session: then every contradiction matters.
    """
    if not known.answered and not known.held:
        return None
    answers = (answer.id for each in known.answered for answer in relevant_answers(each))
    pinned = (each.id for each in known.memories.get("pinned", ()))
    return frozenset(
        chain(answers, pinned, (item.id for item in known.held), (each.memory_id for each in known.predicted))
    )


def contradiction(pair: Contradicting) -> ContextEntry:
    """Return an entry for a contradiction: both facts in one line, the later one first, each with its date.

    It has as many levels as the fact with more of them.
    """
    rows = sorted(map(vars, pair.facts), key=lambda row: (row["said_at"], row["id"]), reverse=True)
    days = [date_of(row) for row in rows]
    times = [time_of(row) for row in rows]
    if days[0] == days[1] and times[0] != times[1]:
        days = [f"{day} {time}".rstrip() for day, time in zip(days, times, strict=True)]

    def both(one: Level, other: Level) -> Level:
        return one[0], f"unresolved: {one_line(one[1])} ({days[0]}) / {one_line(other[1])} ({days[1]})"

    def shorter() -> list[Level]:
        one, other = ([longest("fact", row), *shorter_levels("fact", row)] for row in rows)
        places = range(1, max(len(one), len(other)))
        return [both(one[min(place, len(one) - 1)], other[min(place, len(other) - 1)]) for place in places]

    return ContextEntry(
        "contradiction",
        pair.ids,
        both(longest("fact", rows[0]), longest("fact", rows[1])),
        f"they contradict each other, since {pair.detected_at:%Y-%m-%d}",
        is_pinned=any(each.is_pinned for each in pair.facts),
        topic=topic_of(rows[0]),
        shorter=shorter,
    )


def decision_entries(rows: Iterable[Mapping[str, Any]], *, is_current: bool) -> Iterator[ContextEntry]:
    """Yield the decisions about the file, session or task if `is_current`, otherwise all others."""
    for row in rows:
        why = None
        if row["is_of_file"]:
            why = "for this file"
        elif row["is_of_session"]:
            why = "in this session"
        elif row["shared_words"] > 1:
            why = "about the task"
        if (why is not None) == is_current:
            status = f"decided {row['decided_at']:%Y-%m-%d}, {row['status']}"
            yield entry_of("decision", row, f"{status}, {why}" if why else status)


def fix_entries(answered: Iterable[Answered]) -> Iterator[ContextEntry]:
    """Yield recalled fixes for the errors, with enough score and trust: the best for each error, then the next."""
    of_errors = [
        [
            answer_entry(answer, each)
            for answer in each.answers[: POLICY.fixes_an_error]
            if answer.score >= POLICY.least_fix_score and answer.memory.trust >= POLICY.least_trust
        ]
        for each in answered
        if each.cue == ERROR
    ]
    yield from interleaved(of_errors)


# --- relevant ---


def relevant(known: Known) -> list[ContextEntry]:
    """Return the recalled, predicted and held memories, the most valuable first.

    A memory that recall put before an earlier one is put before it here too.
    """
    answers = (answer_entry(answer, each) for each in known.answered for answer in relevant_answers(each))
    by_memory: dict[UUID, list[ContextEntry]] = {}
    for entry in chain(answers, likely_entries(known), held_entries(known)):
        by_memory.setdefault(entry.memory_ids[0], []).append(entry)
    ordered = sorted(map(merge_entries, by_memory.values()), key=lambda entry: (-entry.value, entry.memory_ids))
    firsts: dict[UUID, list[UUID]] = {}
    for answer in (answer for each in known.answered for answer in each.answers):
        if answer.put_before:
            firsts.setdefault(answer.put_before, []).append(answer.id)
    entries = {entry.memory_ids[0]: entry for entry in ordered}
    return [entries[each] for each in with_firsts(entries, firsts) if each in entries]


def merge_entries(entries: Sequence[ContextEntry]) -> ContextEntry:
    """Return one entry for all entries of a memory."""
    if len(entries) == 1:
        return entries[0]
    # Taken as independent: the chance that none of them is right is the product of the chances that each is wrong.
    return replace(
        max(entries, key=lambda entry: entry.value),
        reason="; ".join(dict.fromkeys(entry.reason for entry in entries)),
        value=1 - prod(1 - entry.value for entry in entries),
        is_sought=any(entry.is_sought for entry in entries),
    )


def relevant_answers(answered: Answered) -> list[Recalled]:
    """Return the answers with enough score, best first; an error needs a higher one."""
    least = POLICY.least_fix_score if answered.cue == ERROR else POLICY.least_score
    return [answer for answer in answered.answers if answer.score >= least]


def answer_entry(answer: Recalled, of: Answered) -> ContextEntry:
    """Return the entry of a recalled memory; its score, nearly always below 1, is used as a chance."""
    about = f"the {of.cue}"
    if of.cue == ERROR:
        about = f"the error {one_line(of.text)[:60]!r}"
    elif of.cue == FILE:
        about = f"the file {of.text}"
    reason = f"recalled: {answer.score:.2f} for {about}"
    entry = entry_of(answer.memory.kind, vars(answer.memory), reason, value=min(answer.score, MOST_SURE))
    return with_mark(entry, "changed since in part: ") if answer.changed_by else entry


def likely_entries(known: Known) -> Iterator[ContextEntry]:
    """Yield the predicted memories, without those that every context shows."""
    # Being shown in every context, those would look used in every session.
    standing = {each.id for name, own in known.memories.items() if name != "latest" for each in own}
    memories = {each.memory.id: each.memory for each in known.named if each.memory.id not in standing}
    for each in known.predicted:
        if each.memory_id in memories and (each.is_bearing or each.confidence >= POLICY.least_confidence):
            reason = "; ".join(each.reasons) or "likely to be wanted"
            memory = memories[each.memory_id]
            entry = entry_of(memory.kind, vars(memory), reason, value=min(each.confidence, MOST_SURE))
            yield replace(entry, is_sought=each.confidence >= POLICY.least_confidence)


def held_entries(known: Known) -> Iterator[ContextEntry]:
    """Yield the memories and notes held in the session."""
    memories = {each.memory.id: each.memory for each in known.named}
    for item in known.held:
        value = min(max(item.relevance, 0.0), MOST_SURE)
        if item.kind == NOTE and item.text:
            note: Level = ("full", f"note: {one_line(item.text)}")
            yield ContextEntry(
                NOTE, (item.id,), note, "a note of this session", value, date=f"{item.loaded_at:%Y-%m-%d}"
            )
        elif item.id in memories:
            memory = memories[item.id]
            yield entry_of(memory.kind, vars(memory), "held in this session", value=value)


# --- background ---


def background(known: Known, *, at: datetime) -> Iterator[ContextEntry]:
    """Yield conventions, episodes, workflows, linked memories and other decisions, one of each in turn."""
    memories = known.memories
    linked = (each for each in known.named if each.weight is not None)
    # A bare title, all that a night leaves of an old one, says too little to stand there unasked.
    told = (each for each in memories.get("episode", ()) if each.summary or each.compressed)
    sections: list[list[ContextEntry]] = [
        [entry_of("fact", vars(each), f"a {each.category}") for each in memories.get("convention", ())],
        [entry_of("episode", vars(each), time_since(each.learned_at, at)) for each in told],
        [hint_of(vars(each), "how it is done") for each in memories.get("workflow", ())],
        [
            entry_of(each.memory.kind, vars(each.memory), f"linked to what is shown: {each.weight:.2f}")
            for each in sorted(linked, key=lambda each: (-(each.weight or 0), each.memory.id))
        ],
        list(decision_entries(known.decisions, is_current=False)),
    ]
    yield from interleaved(sections)


def time_since(moment: datetime, at: datetime) -> str:
    """Return the reason of an episode's line: how many days ago it happened."""
    days = max((at - moment).days, 0)
    return "happened today" if days == 0 else f"happened {days} day{'s' if days > 1 else ''} ago"


def interleaved(lists: Sequence[Sequence[Any]]) -> Iterator[Any]:
    """Yield the first of each list, then the second, and so on."""
    return (each for row in zip_longest(*lists) for each in row if each is not None)


# --- the index ---


Topic = tuple[tuple[UUID, ...], str]
"""Memory ids, and the words by which to recall them."""


def topics_of(known: Known, entries: Mapping[Tier, Sequence[ContextEntry]]) -> list[Topic]:
    """Return the topics the index may show: those of critical and relevant entries.

    Where no answer is relevant, also of the nearest ones; without any cue, also of the background and the latest facts.
    """
    nominated = [*entries["critical"], *entries["relevant"]]
    others: Iterable[FoundMemory] = ()
    if not entries["relevant"]:
        nearest = interleaved([[answer.memory for answer in each.answers] for each in known.answered])
        others = islice(nearest, POLICY.nearest)
        if not known.answered:
            nominated += entries["background"]
            others = known.memories.get("latest", ())
    return [
        *((each.memory_ids, each.topic) for each in nominated if each.topic),
        *(((each.id,), topic_of(vars(each))) for each in others),
    ]


def pointers(
    topics: Iterable[Topic], shown: frozenset[UUID], use_counts: Mapping[UUID, int], *, count: int
) -> list[ContextEntry]:
    """Return entries for the topics of memories that are not shown, the most used first."""
    grouped: dict[str, tuple[str, dict[UUID, None]]] = {}
    for ids, topic in topics:
        if topic and shown.isdisjoint(ids):
            _, members = grouped.setdefault(topic.casefold(), (topic, {}))
            members.update(dict.fromkeys(ids))
    used = [(sum(use_counts.get(each, 0) for each in ids), topic, tuple(ids)) for topic, ids in grouped.values()]
    return [
        ContextEntry(
            "fact" if len(ids) == 1 else "pointer",
            ids,
            ("index", topic),
            f"{len(ids)} not shown" + (", recalled before" if uses else ""),
            topic=topic,
        )
        for uses, topic, ids in sorted(used, key=lambda each: -each[0])[:count]
    ]


HEADINGS: Mapping[Tier, str] = {
    "critical": "# Critical",
    "relevant": "# Relevant",
    "background": "# Background",
    "index": "# Ask me about",
}
DEBUGGING = frozenset({"debug", "debugging"})
FULL_SHARE = 0.75
"""Share of a tier's tokens that entries in full may take. On both halves of the public conversations, 0.67 to 0.8 show
as much of the answers as any other share, and more of the evidence than entries in full alone."""
MOST_LENT = 0.5
"""Share of each lower tier that pinned entries may borrow, so that answers still fit."""
MOST_MISFITS = 8  # entries in a row that do not fit, after which a tier counts as full
BEST = 4  # entries that get a line before any gets more
LEAST_LINE = 4
"""Tokens: with less room no further line is tried."""
Shown = frozenset[UUID]
Levels = Mapping[tuple[UUID, ...], int]
"""The level of an entry (0 is its longest) by its memory ids."""
NOTHING: Levels = {}
Pointers = Callable[[Shown], Sequence[ContextEntry]]
"""Returns the entries of the index, given the memories that are shown."""


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


def tier_budgets(budget: int, *, frame: str | None) -> Mapping[Tier, int]:
    """Return the tokens of each tier before unused ones flow down; the remainder of rounding goes to `relevant`."""
    is_debugging = (frame or "").casefold() in DEBUGGING
    shares = POLICY.debugging_shares if is_debugging else POLICY.shares
    own = [int(budget * share) for share in shares]
    own[1] += budget - sum(own)
    return dict(zip(TIERS, own, strict=True))


def usual_budget(frame: str | None) -> int:
    """Return the default budget of a frame in tokens."""
    return dict(POLICY.budgets).get((frame or "").casefold(), POLICY.budget)


def arrange(
    wanted: Mapping[Tier, Sequence[ContextEntry]], pointers: Pointers, *, rooms: Mapping[Tier, int]
) -> dict[Tier, list[Placed]]:
    """Return the lines of each tier: tokens that a tier leaves go to the next, those of the index back to the others.

    `wanted` has the entries of every tier but the index, the best first; a memory is shown in the first tier it fits
    into.
    """
    placed: dict[Tier, list[Placed]] = {}
    shown: dict[Tier, Shown] = {}
    critical = not_shown(wanted.get("critical", ()), frozenset())
    rooms = lend_to_pinned(rooms, critical)
    due = {"critical": pinned_levels(critical, rooms["critical"])}

    def fill(tier: Tier, room: int) -> int:
        """Place the entries that fit into a tier, and return the tokens left."""
        elsewhere = Shown().union(*(ids for other, ids in shown.items() if other != tier))
        placed[tier] = pack_in_order(
            not_shown(wanted.get(tier, ()), elsewhere), room, elsewhere, due.get(tier, NOTHING)
        )
        shown[tier] = ids_of(placed[tier])
        return room - tier_cost(placed[tier])

    spare = 0
    for tier in TIERS[:-1]:
        spare = fill(tier, rooms[tier] + spare)
    room = rooms["index"] + spare
    # The index is measured here and placed last: a memory shown with its spare tokens needs no pointer.
    index_cost = tier_cost(pack(pointers(Shown().union(*shown.values())), room))
    spare = room - index_cost
    for tier in ("relevant", "critical", "background"):
        spare = fill(tier, tier_cost(placed[tier]) + spare)
    placed["index"] = pack(pointers(Shown().union(*shown.values())), index_cost + spare)
    return placed


def ids_of(placed: Iterable[Placed]) -> Shown:
    """Return the memories that lines show."""
    return frozenset(each for line in placed for each in line.entry.memory_ids)


def not_shown(entries: Sequence[ContextEntry], shown: Shown) -> list[ContextEntry]:
    """Return the entries with no memory that is shown already, each memory once."""
    met = set(shown)
    kept: list[ContextEntry] = []
    for entry in entries:
        if met.isdisjoint(entry.memory_ids):
            kept.append(entry)
            met.update(entry.memory_ids)
    return kept


def lend_to_pinned(rooms: Mapping[Tier, int], critical: Sequence[ContextEntry]) -> Mapping[Tier, int]:
    """Return the tokens of each tier after pinned entries have borrowed from lower tiers, at most half of each."""
    pinned = sum(entry.first_cost for entry in critical if entry.is_pinned)
    needed = heading_tokens() + math.ceil(pinned / FULL_SHARE) + 1
    lower = sum(rooms[tier] for tier in TIERS[1:])
    share = min(max(needed - rooms["critical"], 0) / max(lower, 1), MOST_LENT)
    loans: dict[Tier, int] = {tier: -math.ceil(rooms[tier] * share) for tier in TIERS[1:]}
    loans["critical"] = -sum(loans.values())
    return {tier: rooms[tier] + loans[tier] for tier in TIERS}


def pinned_levels(entries: Sequence[ContextEntry], room: int) -> Levels:
    """Return the level of each pinned entry: all get a line, the first in full, within `FULL_SHARE` of the room."""
    pinned = [entry for entry in entries if entry.is_pinned]
    left = int((room - heading_tokens()) * FULL_SHARE)
    if sum(entry.first_cost for entry in pinned) <= left:
        return {entry.memory_ids: 0 for entry in pinned}
    levels = shortest_levels(pinned, {}, left)
    levels |= longer_levels(pinned, levels, left - tokens_used(pinned, levels))
    return {pinned[place].memory_ids: level for place, level in levels.items()}


def pack_in_order(entries: Sequence[ContextEntry], room: int, elsewhere: Shown, due: Levels) -> list[Placed]:
    """Pack entries, without those that something later has to be shown with and found no room, so that it may."""
    placed = pack(entries, room, due=due)
    shown = elsewhere | ids_of(placed)
    alone = {line.entry.memory_ids for line in placed if not line.entry.behind <= shown}
    if not alone:
        return placed
    return pack_in_order([each for each in entries if each.memory_ids not in alone], room, elsewhere, due)


def pack(entries: Sequence[ContextEntry], room: int, *, due: Levels = NOTHING) -> list[Placed]:
    """Return the entries that fit into `room` tokens, in their order, each at a level; `due` has the levels of some."""
    # The first entries fill three quarters of the room in full, the last quarter has short lines of more, so that a few
    # long texts don't hide all others; the tokens left then lengthen some of the short ones.
    left = room - heading_tokens()
    if sum(entry.first_cost for entry in entries) <= left:
        return [Placed(entry, 0) for entry in entries]
    levels = {place: due[each.memory_ids] for place, each in enumerate(entries) if each.memory_ids in due}
    in_full = int(left * FULL_SHARE) - tokens_used(entries, levels)
    # The best get a line each first, else one long text leaves room for short ones of little use alone.
    best = shortest_levels(entries[:BEST], levels, in_full)
    in_full -= tokens_used(entries, best)
    for place, entry in enumerate(entries):
        more = entry.first_cost - (entry.costs[best[place]] if place in best else 0)
        if place not in levels and more <= in_full:
            levels[place] = 0
            in_full -= more
    levels |= {place: level for place, level in best.items() if place not in levels}
    levels |= shortest_levels(entries, levels, left - tokens_used(entries, levels))
    levels |= longer_levels(entries, levels, left - tokens_used(entries, levels))
    return [Placed(entries[place], level) for place, level in sorted(levels.items())]


def shortest_levels(entries: Sequence[ContextEntry], placed: Mapping[int, int], room: int) -> dict[int, int]:
    """Return the shortest level of further entries that fit, by place; stops when several in a row do not."""
    levels: dict[int, int] = {}
    misfits = 0
    for place, entry in enumerate(entries):
        if place in placed:
            continue
        if misfits == MOST_MISFITS or room < LEAST_LINE:
            break
        misfits += 1
        if entry.costs[-1] <= room:
            levels[place] = len(entry.costs) - 1
            room -= entry.costs[-1]
            misfits = 0
    return levels


def longer_levels(entries: Sequence[ContextEntry], levels: Mapping[int, int], left: int) -> dict[int, int]:
    """Return the longest levels of the shortened entries that `left` tokens have room for, by place."""
    detailed: dict[int, int] = {}
    for place, shortest in levels.items():
        if shortest:
            costs = entries[place].costs
            detailed[place] = next(level for level, cost in enumerate(costs) if cost - costs[shortest] <= left)
            left -= costs[detailed[place]] - costs[shortest]
    return detailed


def tokens_used(entries: Sequence[ContextEntry], levels: Mapping[int, int]) -> int:
    """Return the tokens of entries, given by their places, at some levels."""
    return sum(entries[place].costs[level] if level else entries[place].first_cost for place, level in levels.items())


def heading_tokens() -> int:
    """Return the tokens of the longest heading, which is reserved for each tier."""
    return max(tokens_of(f"{heading}\n") for heading in HEADINGS.values())


def tier_cost(placed: Sequence[Placed]) -> int:
    """Return the tokens of a tier, its heading included; nothing for an empty one."""
    return heading_tokens() + sum(each.tokens for each in placed) if placed else 0


def lines_of(placed: Mapping[Tier, Sequence[Placed]]) -> tuple[ContextLine, ...]:
    """Return all lines, tier by tier."""
    return tuple(
        ContextLine(tier, each.entry.kind, each.entry.memory_ids, *each.shown, each.tokens, each.entry.reason)
        for tier in TIERS
        for each in placed.get(tier, ())
    )


def render(lines: Sequence[ContextLine]) -> dict[Tier, str]:
    """Return the text of each tier that has lines, pointers in one line; joined by line ends they are the context."""
    texts: dict[Tier, str] = {}
    for tier in TIERS:
        own = [line.text for line in lines if line.tier == tier]
        listed = [", ".join(own)] if own and tier == "index" else own
        if listed:
            texts[tier] = "\n".join((HEADINGS[tier], *(f"{BULLET}{text}" for text in listed)))
    return texts
