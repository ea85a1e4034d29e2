"""Are the memories kept that will be used again, and none archived that come back? Asked of traces of files touched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks import cases
from benchmarks.intervals import of_count, of_ratio
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.forgetting import FACT_COLUMNS, PROCEDURE_COLUMNS, forgetting_phase
from nous_pipelines.phases.usage import WINDOW_DAYS, usage_score

KEPT = (50, 200)
QUICK_TOUCHES = 3000
NIGHTS_APART = {False: 7, True: 28}
DAY_S = 86_400
AGAIN_DAYS = 90
BY_THE_BOOK = NightPolicy(unused_return_share=1, unused_asked_days=0)
OWN = "nous"
HALF_LIVES = (3, 7, 10, 14, 21, 24, 30)
"""Days after which a touch counts half, of which the best for this very trace stands beside ours."""
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """What was touched when, in order: items by number, moments in seconds, commits, and names."""

    items: NDArray[np.int64]
    moments: NDArray[np.int64]
    commits: list[tuple[int, int]]
    names: list[str]

    @property
    def size(self) -> int:
        """How many items there are."""
        return int(self.items.max()) + 1

    @property
    def days(self) -> NDArray[np.int64]:
        """The day of each touch, counted from 1970."""
        return self.moments // DAY_S

    def begun(self, touches: int) -> Trace:
        """Return the first commits, up to so many touches."""
        commits = [(begin, end) for begin, end in self.commits if end <= touches] or self.commits[:1]
        end = commits[-1][1]
        return Trace(self.items[:end], self.moments[:end], commits, self.names)


@dataclass
class Past:
    """What is known of each item when a commit arrives: when it was last touched, how often, how lately."""

    trace: Trace
    last: Scores
    count: Scores
    decayed: dict[int, Scores]
    """By half-life."""
    now: int = 0
    seen: int = 0

    def move_to(self, place: int) -> None:
        """Let the decayed counts fade up to the moment of the touch at `place`, which is not yet counted."""
        moment = int(self.trace.moments[place])
        for half_life in self.decayed:
            self.decayed[half_life] *= 0.5 ** ((moment - self.now) / DAY_S / half_life)
        self.now, self.seen = moment, place

    def touch(self, items: NDArray[np.int64]) -> None:
        """Count that items were touched now."""
        self.last[items] = self.now
        self.count[items] += 1
        for scores in self.decayed.values():
            scores[items] += 1


def our_scores(trace: Trace) -> Callable[[Past], Scores]:
    """Return the score of the product over the touches so far, from the days of the last year as a night knows them."""
    day_count, next_place = of_one_day(trace)

    def score(past: Past) -> Scores:
        start = int(np.searchsorted(trace.moments, past.now - WINDOW_DAYS * DAY_S))
        places = start + np.flatnonzero(next_place[start : past.seen] >= past.seen)
        uses = pl.DataFrame({"id": trace.items[places], "cited": day_count[places], "at": trace.moments[places]})
        scored = usage_score(
            uses.select("id", "cited", agent_id=pl.lit(0), used_at=moment("at"), retrieved="cited", ignored=pl.lit(0)),
            at=datetime.fromtimestamp(past.now, UTC),
        )
        found = np.zeros(trace.size)
        found[scored["id"].to_numpy()] = scored["lift"].to_numpy()
        return found

    return score


def moment(column: str) -> pl.Expr:
    """Return seconds since 1970 as moments."""
    return pl.from_epoch(column).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def of_one_day(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return of each touch how often its item was touched that day by then, and the place of the next such touch."""
    counts, following = np.ones(len(trace.items), np.int64), np.full(len(trace.items), len(trace.items) + 1)
    before: dict[tuple[int, int], int] = {}
    for place, key in enumerate(zip(trace.items.tolist(), trace.days.tolist(), strict=True)):
        if key in before:
            counts[place] = counts[before[key]] + 1
            following[before[key]] = place
        before[key] = place
    return counts, following


PEERS: Mapping[str, Callable[[Past], Scores]] = {
    "lfu": lambda past: past.count,
    "lru": lambda past: past.last,
    **{f"decayed_{days}": lambda past, days=days: past.decayed[days] for days in HALF_LIVES},
    "two_decays": lambda past: past.decayed[3] + past.decayed[24] / 2,
}


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Replay each repository's touches, then its nights; the product's own code decides."""
    traces = list(read(cases(data, "usage_trace_git")))
    replayed = [trace.begun(QUICK_TOUCHES) for trace in traces] if quick else traces
    hits = [hits_of(trace) for trace in replayed]
    rates = rates_of(hits)
    every = NIGHTS_APART[quick]
    ours = nights_of(traces, NightPolicy(), every=every)
    alone = counted(nights_of([trace], NightPolicy(), every=every) for trace in traces)
    book = nights_of(traces, BY_THE_BOOK, every=every)
    items = sum(trace.size for trace in traces)
    decayed = {kept: max((rates[f"decayed_{days}"][kept], days) for days in HALF_LIVES) for kept in KEPT}
    peers = {f"{name}_hit_{kept}": rates[name][kept] for name in ("lfu", "lru", "two_decays") for kept in KEPT}
    return {
        "metrics": {**hit_metrics(hits, rates), **archive_metrics(ours, items)},
        "peers": {
            **peers,
            **{f"decayed_best_hit_{kept}": rate for kept, (rate, _) in decayed.items()},
            **{f"alone_{name}": value for name, value in archive_metrics(alone, items).items()},
            **{f"by_the_book_{name}": value for name, value in archive_metrics(book, items).items()},
        },
        "notes": notes(replayed, {kept: days for kept, (_, days) in decayed.items()}, ours, quick=quick),
    }


def read(rows: list[dict[str, Any]]) -> Iterator[Trace]:
    """Yield the trace of each repository, oldest touch first."""
    rows = sorted(rows, key=lambda row: (row["repo"], row["t"], row["commit"], row["item"]))
    for _, group in groupby(rows, key=lambda row: row["repo"]):
        touches = list(group)
        numbers: dict[str, int] = {}
        items = [numbers.setdefault(row["item"], len(numbers)) for row in touches]
        sizes = [len(list(part)) for _, part in groupby(touches, key=lambda row: (row["t"], row["commit"]))]
        ends = np.cumsum(sizes).tolist()
        yield Trace(
            np.array(items, np.int64),
            np.array([row["t"] for row in touches], np.int64),
            list(zip([0, *ends[:-1]], ends, strict=True)),
            list(numbers),
        )


@dataclass
class Replayed:
    """For each commit that touches something known: how much, and how much of it each way to choose had kept."""

    known: list[int]
    hits: Mapping[tuple[str, int], list[int]]


def hits_of(trace: Trace) -> Replayed:
    """Replay a trace with every way to choose, for each number kept."""
    size = trace.size
    past = Past(trace, np.zeros(size), np.zeros(size), {days: np.zeros(size) for days in HALF_LIVES})
    scores = {OWN: our_scores(trace), **PEERS}
    replayed = Replayed([], defaultdict(list))
    for begin, end in trace.commits:
        past.move_to(begin)
        touched = np.unique(trace.items[begin:end])
        known = touched[past.count[touched] > 0]
        if len(known):
            replayed.known.append(len(known))
            for name, score in scores.items():
                best = best_first(score(past), past)
                for kept in KEPT:
                    replayed.hits[name, kept].append(int(np.isin(known, best[:kept]).sum()))
        past.touch(touched)
    return replayed


def rates_of(replayed: Sequence[Replayed]) -> dict[str, dict[int, float]]:
    """Return the share of touches of known items that found theirs kept, for each way to choose and number kept."""
    known = [count for each in replayed for count in each.known]
    return {
        name: {kept: of_ratio([hit for each in replayed for hit in each.hits[name, kept]], known) for kept in KEPT}
        for name in (OWN, *PEERS)
    }


def best_first(score: Scores, past: Past) -> NDArray[np.int64]:
    """Return the items seen so far by score; of equal ones the last used goes first, then the first learned."""
    seen = np.flatnonzero(past.count)
    return seen[np.lexsort((seen, -past.last[seen], -score[seen]))]


def hit_metrics(replayed: Sequence[Replayed], rates: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Return our share of hits, that of the best peer, and their ratio."""
    best = {kept: max(PEERS, key=lambda name, kept=kept: rates[name][kept]) for kept in KEPT}
    hits = {
        (name, kept): [hit for each in replayed for hit in each.hits[name, kept]]
        for kept in KEPT
        for name in (OWN, best[kept])
    }
    return {
        **{f"hit_{kept}": rates[OWN][kept] for kept in KEPT},
        **{f"best_peer_hit_{kept}": rates[best[kept]][kept] for kept in KEPT},
        **{f"hit_{kept}_over_best_peer_ratio": of_ratio(hits[OWN, kept], hits[best[kept], kept]) for kept in KEPT},
    }


@dataclass(frozen=True)
class Forgotten:
    """How many items the nights archived, how many of those were touched again too soon, and how many lay idle."""

    archived: int
    wrongly: int
    idle_nights: int
    """Nights on which an item was past the age and unused, summed over all items."""


def counted(parts: Iterator[Forgotten]) -> Forgotten:
    """Return the sum over repositories."""
    all_parts = list(parts)
    return Forgotten(
        sum(part.archived for part in all_parts),
        sum(part.wrongly for part in all_parts),
        sum(part.idle_nights for part in all_parts),
    )


def nights_of(traces: Sequence[Trace], policy: NightPolicy, *, every: int) -> Forgotten:
    """Live through every so many nights of a store whose agents the traces are.

    An item is learned when first touched, used at each further touch.
    """
    touched = [first_touches(trace) for trace in traces]
    gone = [np.full(trace.size, -1, np.int64) for trace in traces]
    idle = 0
    begins = min(int(trace.days[0]) for trace in traces) + policy.unused_after_days
    for day in range(begins, max(int(trace.days[-1]) for trace in traces), every):
        known = [
            known_on(trace, learned, archived, day, name=str(place))
            for place, (trace, (learned, _), archived) in enumerate(zip(traces, touched, gone, strict=True))
            if trace.days[0] <= day < trace.days[-1]
        ]
        if not known:
            continue
        phase = forgetting_phase(
            {
                "facts": pl.concat(facts for facts, _ in known),
                "uses": pl.concat(uses for _, uses in known),
                **{name: pl.DataFrame(schema=schema) for name, schema in NONE_OF.items()},
            },
            policy=policy,
            night=date(1970, 1, 1) + timedelta(days=day),
        )
        for proposal in phase.proposals:
            gone[int(proposal.agent_id)][int(proposal.targets[0])] = day
        idle += sum(phase.eligible.values()) * every
    found = counted(
        forgotten(archived, returned, last=int(trace.days[-1]))
        for trace, (_, returned), archived in zip(traces, touched, gone, strict=True)
    )
    return replace(found, idle_nights=idle)


def forgotten(archived: NDArray[np.int64], returned: NDArray[np.int64], *, last: int) -> Forgotten:
    """Return how many items of a trace were archived and followed for 90 days, and how many of them came back."""
    wrongly = (archived >= 0) & (returned > archived) & (returned <= archived + AGAIN_DAYS)
    followed = (archived >= 0) & ((archived + AGAIN_DAYS <= last) | wrongly)
    return Forgotten(int(followed.sum()), int(wrongly.sum()), 0)


def first_touches(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places where each item was touched first, and the days when it was touched for the second time."""
    places: dict[int, list[int]] = {}
    for place, item in enumerate(trace.items.tolist()):
        places.setdefault(item, []).append(place)
    again = [int(trace.days[touched[1]]) if len(touched) > 1 else -1 for _, touched in sorted(places.items())]
    return np.array([touched[0] for _, touched in sorted(places.items())]), np.array(again)


def known_on(
    trace: Trace, learned: NDArray[np.int64], archived: NDArray[np.int64], day: int, *, name: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the items as facts, and their uses, as a snapshot has them at the end of a day.

    What is archived stays so and is not used any more: nobody learns from it that it should have stayed.
    """
    seen = int(np.searchsorted(trace.days, day, side="right"))
    known = np.flatnonzero(learned < seen)
    is_use = learned[trace.items[:seen]] != np.arange(seen)
    gone = archived >= 0
    is_use &= ~gone[trace.items[:seen]]
    used = np.bincount(trace.items[:seen][is_use], minlength=trace.size)
    facts = pl.DataFrame(
        {
            "id": known,
            "content": [trace.names[item] for item in known.tolist()],
            "learned_at": trace.moments[learned[known]],
            "retrieved_count": used[known],
            "state": np.where(gone[known], "archived", "active"),
            "archived_at": np.where(gone[known], (archived[known] + 1) * DAY_S, -1),
        }
    ).select(
        **{**STILL, "agent_id": pl.lit(name), "id": pl.col("id").cast(pl.String), "learned_at": moment("learned_at")},
        retrieved_count="retrieved_count",
        cited_count="retrieved_count",
        state="state",
        content="content",
        archived_at=pl.when(pl.col("archived_at") >= 0).then(moment("archived_at")),
    )
    lately = is_use & (trace.days[:seen] > day - WINDOW_DAYS)
    uses = pl.DataFrame({"id": trace.items[:seen][lately], "day": trace.days[:seen][lately].astype(np.int32)})
    return facts.select(FACT_COLUMNS), uses.group_by("id", "day").agg(retrieved=pl.len().cast(pl.Int64)).select(
        agent_id=pl.lit(name),
        memory_id=pl.col("id").cast(pl.String),
        day=pl.col("day").cast(pl.Date),
        retrieved="retrieved",
        cited="retrieved",
        ignored=pl.lit(0, pl.Int64),
    )


NO_MOMENT = pl.lit(None, pl.Datetime("us", "UTC"))
STILL: Mapping[str, pl.Expr] = {
    "is_pinned": pl.lit(value=False),
    "is_rewound": pl.lit(value=False),
    "row_version": pl.lit(1, pl.Int64),
    "last_confirmed_at": NO_MOMENT,
    "superseded_by": pl.lit(None, pl.String),
    "superseded_at": NO_MOMENT,
    "contradiction_status": pl.lit("none"),
    "source_kind": pl.lit("agent"),
    "last_used_at": NO_MOMENT,
}
"""What a trace says nothing about."""
PROCEDURES = {
    **dict.fromkeys(PROCEDURE_COLUMNS, pl.Int64),
    **dict.fromkeys(("agent_id", "id", "state"), pl.String),
    **dict.fromkeys(("is_pinned", "is_rewound"), pl.Boolean),
    **dict.fromkeys(("learned_at", "archived_at"), pl.Datetime("us", "UTC")),
    "related_procedures": pl.List(pl.String),
}
NONE_OF = {
    "statements": {"agent_id": pl.String, "fact_id": pl.String, "recorded_at": pl.Datetime("us", "UTC")},
    "procedures": PROCEDURES,
    "contradictions": {"agent_id": pl.String, "memory_a": pl.String, "memory_b": pl.String, "status": pl.String},
    "undone": {"agent_id": pl.String, "kind": pl.String, "targets": pl.List(pl.String)},
}
"""Tables of which a trace has nothing."""


def archive_metrics(found: Forgotten, items: int) -> dict[str, float]:
    """Return how many items were archived and which share of them wrongly, by three denominators."""
    return {
        "wrongly_archived_ratio": of_count(found.wrongly, found.archived),
        "wrongly_archived_of_items_ratio": found.wrongly / max(items, 1),
        "wrongly_archived_of_idle_nights_ratio": found.wrongly / max(found.idle_nights, 1),
        "archived_of_items_ratio": found.archived / max(items, 1),
        "archived": found.archived,
    }


def notes(traces: list[Trace], best: Mapping[int, int], ours: Forgotten, *, quick: bool) -> list[str]:
    """Return how each figure came about; `traces` are those the hits were counted on, `best` the best half-lives."""
    touches = sum(len(trace.items) for trace in traces)
    again = touches - sum(trace.size for trace in traces)
    return [
        f"{touches:,} touches of {sum(trace.size for trace in traces):,} items in {len(traces)} repositories;"
        f" {again:,} touch an item known before",
        "hit_k: before each commit the k best items seen so far are kept; a hit is a touched item among them. A touch"
        " counts as cited; of equal scores the last used is kept; nous sees the last year, the others everything",
        "decayed_best: touches that count half after a number of days, of "
        f"{', '.join(map(str, HALF_LIVES))} the best for this trace: "
        + ", ".join(f"{days} days for {kept}" for kept, days in best.items())
        + "; two_decays: half-lives of 3 and, by half, of 24 days summed; ours averages 1, 14 and 90 days, chosen here",
        "intervals: commits drawn again, 1,000 times",
        "wrongly_archived_ratio: of the items archived at the default policy and followed for 90 days, those touched"
        f" again within them ({ours.wrongly} of {ours.archived}); also as a share of all items, and of the nights on"
        " which an item lay idle past the age; an item is learned when first touched; nights"
        f" {NIGHTS_APART[quick]} days apart",
        "the repositories are the agents of one store; alone: each in a store of its own",
        "by_the_book: archived at 90 days without use, whatever came back before",
        *(
            [f"quick: hits over the first {QUICK_TOUCHES:,} touches of each repository, nights over all"]
            if quick
            else []
        ),
    ]
