"""Is what a session will need at hand when it begins? Asked of traces of files touched, split in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import numpy as np

from benchmarks import cases
from benchmarks.intervals import of_mean, of_ratio
from benchmarks.prediction_sessions import Diary, Session, sessions_of
from nous_online.context.context_lines import Linked, Predicted, cost_of
from nous_online.context.packing import FILE, Answered, Known, pack, relevant
from nous_online.context.scorer import Likely, Nearness, Past, Ranking, Signals, atoms_of, expected_share, file_words
from nous_online.core.policy import ContextPolicy
from nous_online.recall.ranking import RecallPolicy, Situation, rank
from nous_online.recall.recall import FoundMemory, Recalled

TIER_TOKENS = 3_000
"""The relevant tier of a context of 8,000 tokens."""
DEPTHS = (20, 50, 100, 200)
PAUSES_H = (2, 8)
"""Pauses at which sessions might as well be said to end."""
QUICK_EVERY = 2
BANDS = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.01])
DAY_S = 86_400
OWN = "nous"


@dataclass(frozen=True)
class Moment:
    """A session that begins: what was opened, what it will need besides, and what each way to choose foresees."""

    known: frozenset[str]
    """What it will need and memory holds."""
    strangers: int
    """What it will need and nobody could know."""
    ranked: Mapping[str, Sequence[str]]
    chances: Sequence[Likely[str]]
    share: float
    """The share of what is needed that is said to be among the first 50."""
    shown: frozenset[str]
    """What a context assembled for the file shows."""


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Live through the first half of the sessions; in the second, predict at the beginning of each before living it."""
    rows = cases(data, "usage_trace_git")
    every = QUICK_EVERY if quick else 1
    traces = list(sessions_of(rows))
    moments = [moment for trace in traces for moment in moments_of(trace, every=every)]
    asked = [moment for moment in moments if moment.known]
    sizes = [fitting(moment.ranked[OWN]) for moment in asked]
    told = [*notes(traces, moments, asked, sizes, quick=quick), *(at_pause(rows, hours, every) for hours in PAUSES_H)]
    return {
        "metrics": {
            **figures(asked, OWN, sizes),
            "assembled_ratio": assembled_ratio(asked),
            **calibration(asked),
            "items_in_budget": float(np.mean(sizes)),
        },
        "peers": {
            f"{name}_{key}": value
            for name in PEERS
            for key, value in figures(asked, name, [fitting(moment.ranked[name]) for moment in asked]).items()
        },
        "notes": told,
    }


def moments_of(trace: Sequence[Session], *, every: int = 1) -> Iterator[Moment]:
    """Yield the beginnings of the sessions of the second half that need more than the file opened first.

    With `every`, only of each so many-th of them.
    """
    diary, half = Diary(), len(trace) // 2
    for place, session in enumerate(trace):
        opened, *needed = session.items
        if place >= half and (place - half) % every == 0 and needed:
            yield foresee(diary, session, opened, needed)
        diary.live(session)


def foresee(diary: Diary, session: Session, opened: str, needed: Sequence[str]) -> Moment:
    """Predict from the first file alone, with the product's functions, and with those of its peers."""
    at = session.began_at
    atoms = atoms_of(Signals(current_file=opened), at=at)
    past = diary.past_for(session, atoms, at=at)
    near = diary.near(opened)
    ranking = Ranking(past, atoms, near)
    best = (ranking.at(place) for place in ranking.places()[: len(diary.words)])
    chances = [each for each in best if each.memory != opened]
    known = frozenset(needed) & diary.words.keys()
    return Moment(
        known=known,
        strangers=len(needed) - len(known),
        ranked={
            OWN: [each.memory for each in chances],
            **{name: ranked_by(choose(diary, opened, at), diary, opened) for name, choose in PEERS.items()},
        },
        chances=chances,
        share=expected_share([each.confidence for each in chances[:50]], ranking.expected),
        shown=assembled(past, atoms, near, opened, room=TIER_TOKENS),
    )


def ranked_by(score: Mapping[str, float], diary: Diary, opened: str) -> list[str]:
    """Return the items by a peer's score; of equal ones the last used goes first."""
    last = {item: place for place, recall in enumerate(diary.asked) for item in recall.cited_ids}
    return sorted((item for item in last if item != opened), key=lambda item: (-score.get(item, 0), -last[item]))


def recent(diary: Diary, opened: str, at: datetime) -> dict[str, float]:
    """Score by nothing but the order of the last touches."""
    return {}


def decayed(diary: Diary, opened: str, at: datetime) -> Counter[str]:
    """Count touches by half after 30 days."""
    counts: Counter[str] = Counter()
    for recall in diary.asked:
        weight = 0.5 ** ((at - recall.at).total_seconds() / DAY_S / 30)
        for item in recall.cited_ids:
            counts[item] += weight
    return counts


def together(diary: Diary, opened: str, at: datetime) -> Counter[str]:
    """Count in how many sessions each item was touched with the one that is open."""
    sessions = {name for name, _ in diary.seen.get(f"file:{opened}", ())}
    return Counter(item for name in sessions for item in {i for each in diary.by_session[name] for i in each.cited_ids})


def together_popular(diary: Diary, opened: str, at: datetime) -> Counter[str]:
    """Score by the share of the sessions with the open item that touched another, and half its share of late ones."""
    sessions = max(1, len({name for name, _ in diary.seen.get(f"file:{opened}", ())}))
    scores = Counter({item: count / sessions for item, count in together(diary, opened, at).items()})
    late = list(diary.by_session.values())[-LATE_SESSIONS:]
    weights = [0.5 ** ((at - recalls[-1].at).total_seconds() / DAY_S / LATE_DAYS) for recalls in late]
    for recalls, weight in zip(late, weights, strict=True):
        for item in {item for recall in recalls for item in recall.cited_ids}:
            scores[item] += weight / sum(weights) / 2
    return scores


LATE_SESSIONS, LATE_DAYS = 400, 14
PEERS: Mapping[str, Callable[[Diary, str, datetime], Mapping[str, float]]] = {
    "lru": recent,
    "decayed_30": decayed,
    "co_occurrence": together,
    "together_popular": together_popular,
}


def fitting(items: Sequence[str]) -> int:
    """Return how many of the first items the tier has room for, a line each: its path, with bullet and line end."""
    costs = np.cumsum([cost_of(item) for item in items[:TIER_TOKENS]])
    return int(np.searchsorted(costs, TIER_TOKENS, side="right"))


def figures(asked: Sequence[Moment], name: str, sizes: Sequence[int]) -> dict[str, float]:
    """Return the shares prefetched within the tier, by session and over all items, its precision, and by depth."""
    hits = [
        len(moment.known.intersection(moment.ranked[name][:size])) for moment, size in zip(asked, sizes, strict=True)
    ]
    needed = [len(moment.known) for moment in asked]
    strangers = [moment.strangers for moment in asked]
    return {
        "prefetched_ratio": of_mean(np.divide(hits, needed)),
        "prefetched_of_items_ratio": of_ratio(hits, needed),
        "prefetched_with_strangers_ratio": of_ratio(hits, np.add(needed, strangers)),
        "precision": of_ratio(hits, sizes),
        **{
            f"prefetched_{depth}_ratio": of_mean(
                [len(m.known.intersection(m.ranked[name][:depth])) / len(m.known) for m in asked]
            )
            for depth in DEPTHS
        },
    }


def assembled_ratio(asked: Sequence[Moment]) -> float:
    """Return the share of what sessions need that a context for their first file shows, averaged over sessions."""
    return of_mean([len(moment.known & moment.shown) / len(moment.known) for moment in asked])


def at_pause(rows: Sequence[Mapping[str, Any]], hours: int, every: int) -> str:
    """Return what the shares are where sessions end at other pauses."""
    traces = sessions_of(rows, pause_s=hours * 3600)
    asked = [moment for trace in traces for moment in moments_of(trace, every=every) if moment.known]
    own = figures(asked, OWN, [fitting(moment.ranked[OWN]) for moment in asked])
    return (
        f"with pauses of {hours} h: prefetched_ratio {own['prefetched_ratio']:.3f},"
        f" assembled_ratio {assembled_ratio(asked):.3f}, {len(asked)} sessions"
    )


def calibration(asked: Sequence[Moment]) -> dict[str, float]:
    """Return how far confidences are from what came of them, on average over the first 50 of each session."""
    first = [(each.confidence, each.memory in moment.known) for moment in asked for each in moment.chances[:50]]
    said, came = np.array([chance for chance, _ in first]), np.array([used for _, used in first], np.float64)
    bands = np.digitize(said, BANDS)
    errors = [abs(said[bands == band].sum() - came[bands == band].sum()) for band in np.unique(bands)]
    shares = [len(m.known.intersection(m.ranked[OWN][:50])) / (len(m.known) + m.strangers) for m in asked]
    return {
        "calibration_error": float(np.sum(errors) / len(said)),
        "confidence_minus_prefetched_50": float(np.mean([m.share for m in asked]) - np.mean(shares)),
    }


def notes(
    traces: Sequence[Sequence[Session]],
    moments: Sequence[Moment],
    asked: Sequence[Moment],
    sizes: Sequence[int],
    *,
    quick: bool,
) -> list[str]:
    """Return how each figure came about."""
    needed, strangers = sum(len(moment.known) for moment in asked), sum(moment.strangers for moment in moments)
    return [
        f"{sum(map(len, traces)):,} sessions (touches at most 4 h apart) of {len(traces)} repositories;"
        f" {len(moments):,} in the second half of each need more than the file opened first,"
        f" {len(asked):,} of them something that memory holds: {needed:,} items, and {strangers:,} never seen before",
        "predicted at the beginning of a session from the first file of its first commit and the hour, knowing the"
        " sessions before; an item touched counts as cited, and every file touched in a session as opened in it",
        f"within the relevant tier: {TIER_TOKENS:,} tokens, a line for each path, counted as a context counts them:"
        f" {np.mean(sizes):.0f} items",
        "prefetched_ratio: share of what a session needs and memory holds, averaged over sessions; over all items"
        " (_of_items); with what nobody could know in the denominator (_with_strangers); precision over all items",
        "assembled_ratio: the same share, of what the context's own code shows in that tier: what it recalls for the"
        " file, by words alone, and as many predictions as it reads",
        f"together_popular: co_occurrence by the sessions of the open file, and half the share of the last"
        f" {LATE_SESSIONS} sessions, which count half after {LATE_DAYS} days; nothing of it was fitted",
        "intervals: sessions drawn again, 1,000 times; the weights of ours were fitted on the first half of the trace",
        "calibration_error: expected calibration error over the first 50 of each session, in eight bands;"
        " confidence_minus_prefetched_50: the share of all that is needed said to be among the first 50, less the share"
        " that was",
        *([f"quick: one of every {QUICK_EVERY} sessions of the second half is predicted"] if quick else []),
    ]


# --- what the relevant tier of a context shows when a session begins, by the product's own rules ---


POLICY = ContextPolicy()
NAMESPACE = UUID(int=0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def assembled(
    past: Past[str], atoms: Sequence[str], near: Mapping[str, Nearness], opened: str, *, room: int
) -> frozenset[str]:
    """Return the items told in full in so many tokens, where the file that is open is all that was told."""
    answers = recalled(near, opened)
    used = {item: near[item] for item in past.memories if item in near}
    ranking = Ranking(past, atoms, used)
    best = [ranking.at(place) for place in ranking.places()[: POLICY.predicted]]
    facts = {each.memory: fact(each.memory) for each in best}
    known = Known(
        answered=[Answered(FILE, opened, answers)],
        predicted=[
            Predicted(facts[each.memory].id, "fact", each.confidence, each.reasons, each.is_bearing) for each in best
        ],
        named=[Linked(memory, None) for memory in facts.values()],
    )
    return frozenset(each.entry.first[1] for each in pack(relevant(known), room) if not each.level)


def recalled(near: Mapping[str, Nearness], opened: str) -> list[Recalled]:
    """Return what a context recalls for a file, of memories as near as these."""
    found = [fact(item, lexical=nearness.words) for item, nearness in near.items()]
    best = rank(found, Situation(file_words(opened)), RecallPolicy(), limit=POLICY.budget // POLICY.tokens_an_answer)
    return [Recalled(memory, parts, "index") for memory, parts in best]


def fact(item: str, *, lexical: float = 0.0) -> FoundMemory:
    """Return an item as the fact that a heart keeps of it."""
    return FoundMemory(
        id=uuid5(NAMESPACE, item),
        kind="fact",
        content=item,
        subject=None,
        category=None,
        tags=[],
        confidence=None,
        learned_at=NOON,
        said_at=NOON,
        valid_from=None,
        valid_to=None,
        superseded_by=None,
        contradiction_status="none",
        encoded_frame=None,
        summary=None,
        compressed=None,
        index_word=None,
        state="active",
        source=None,
        source_kind="agent",
        scope="private",
        user_id=None,
        project_id=None,
        trust=50,
        is_pinned=False,
        encoded_censors=None,
        rank_weight=1.0,
        dense=0.0,
        lexical=lexical,
    )
