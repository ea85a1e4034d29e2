"""How likely each memory is to be used next: shares of past sessions, smoothed, decayed and combined as log-odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np

from nous_online.context.prediction.features import in_words, kind_of
from nous_online.context.prediction.past_sessions import CITED, Floats, M, Past, Places

HALF_LIVES = (1.0, 14.0, 90.0)
"""Days after which a use counts half: on access traces the three together beat any one (benchmark `forgetting`)."""
SHARE_HALF_LIFE = 60.0
"""Days after which a session with a signal counts half."""
PRIOR_SESSIONS = 2.0
"""How many sessions at the memory's own rate each share starts from: the strength of its Beta prior."""
FLOOR, CEILING = 0.002, 0.95
"""The rate of a memory that was never used, and the share of one that always was."""
LEAST_USED = 0.01
"""What a decayed count starts from, so that it has a logarithm."""
FURTHER = 0.4
"""What a second or third signal of one kind counts beside the first: a folder above, another import."""
LATEST_IN_USE = 10
"""Memories cited in this session whose company is looked at."""
BIAS = -0.9
MEASURED: Mapping[str, float] = {
    "rate": 0.73,
    "day": 0.17,
    "fortnight": 0.21,
    "file": 0.16,
    "module": 0.24,
    "company": 0.07,
    "words": 1.96,
    "meaning": 0.6,
}
"""What each feature adds to the log-odds: a logistic regression over the first half of a trace of files touched in a
public repository (`python -m benchmarks.prediction_weights`); `meaning` in place of `words`, over the same paths."""
BY_ANALOGY: Mapping[str, float] = {
    "branch": 0.24,
    "error-shape": 0.24,
    "import": 0.16,
    "error": 0.16,
    "word": 0.1,
    "with": 0.1,
    "activity": 0.1,
    "hours": 0.05,
    "weekday": 0.05,
}
"""What no trace at hand has: as telling as a module, as a file, or less. Of the clock the trace says nothing either
way (0.00 and -0.01, by many hands in many places); an agent with a routine still shows it."""
WEIGHTS: Mapping[str, float] = {**MEASURED, **BY_ANALOGY}
CLOCK = ("hours", "weekday")
MOST_REASONS = 3
NEAR_ENOUGH = 0.5
"""What nearness adds to the log-odds where it is worth telling."""
UNKNOWN = 1.0
"""How many things a session wants, besides those expected, that no session before it used."""


@dataclass(frozen=True)
class Nearness:
    """How near a memory is to the words of what is being done, as recall scores it: by its words, by its vector."""

    words: float = 0.0
    meaning: float = 0.0


@dataclass(frozen=True)
class Likely(Generic[M]):
    """A memory, the chance that it is used in this session, and what speaks for it."""

    memory: M
    confidence: float
    reasons: tuple[str, ...]
    is_bearing: bool
    """Something of what is being done speaks for it, not only how often it is used."""


class Ranking(Generic[M]):
    """Memories by the chance that they are used in this session, without those in use already."""

    def __init__(self, past: Past[M], atoms: Sequence[str], near: Mapping[M, Nearness]) -> None:
        past = past.joined_by(near)
        self.memories = past.memories
        self._chances = chances_of(features(past, atoms, near)) if past.memories else np.zeros(0)
        self._chances[past.in_use] = 0.0
        self._told = WordEvidence(past, atoms, near)

    @property
    def expected(self) -> float:
        """How many of them will be used."""
        return float(self._chances.sum())

    def places(self, *, least: float = 0.0) -> list[int]:
        """Return the places of memories with at least a chance, the likeliest first; equally likely ones as known."""
        order: list[int] = np.argsort(-self._chances, kind="stable").tolist()
        return order[: np.count_nonzero((self._chances > 0) & (self._chances >= least))]

    def chance(self, place: int) -> float:
        """Return how likely one memory is."""
        return float(self._chances[place])

    def at(self, place: int) -> Likely[M]:
        """Return one memory with what speaks for it."""
        return Likely(self.memories[place], round(self.chance(place), 4), *self._told.reasons(place))


def likely(
    past: Past[M], atoms: Sequence[str], near: Mapping[M, Nearness] | None = None, *, limit: int
) -> tuple[list[Likely[M]], float]:
    """Return the memories most likely to be used, best first, and how many will be; without those in use already.

    `near` says how near memories are to the words of what is being done; those never used before come in with it.
    """
    ranking = Ranking(past, atoms, near or {})
    return [ranking.at(place) for place in ranking.places()[:limit]], ranking.expected


def expected_share(chances: Sequence[float], expected: float) -> float:
    """Return the share of what a session will want that memories with these chances are likely to make up."""
    return min(sum(chances) / (expected + UNKNOWN), 1.0)


def chances_of(named: Mapping[str, Floats]) -> Floats:
    """Return the chance of each memory: the logistic function of its weighed features."""
    score = BIAS + np.sum([WEIGHTS[name] * values for name, values in named.items()], axis=0)
    return 1 / (1 + np.exp(-score))


def features(past: Past[M], atoms: Sequence[str], near: Mapping[M, Nearness]) -> dict[str, Floats]:
    """Return what speaks for each memory, by name; each a column of the logistic regression behind `WEIGHTS`.

    The rate of a memory is its decayed share of all sessions. A signal of this session gives a share of its own, in
    which of the latest sessions with it the memory was used; what that adds to the rate, in log-odds, is its lift.
    """
    day, fortnight, quarter = (0.5 ** (past.ages / days) for days in HALF_LIVES)
    rate = smoothed(used(past, quarter), quarter.sum(), FLOOR)
    found = {
        "rate": log_odds(rate),
        "day": np.log(used(past, day) + LEAST_USED),
        "fortnight": np.log(used(past, fortnight) + LEAST_USED),
        "company": company(past, rate),
        "words": np.array([near[memory].words if memory in near else 0.0 for memory in past.memories]),
        "meaning": np.array([near[memory].meaning if memory in near else 0.0 for memory in past.memories]),
    }
    first: dict[str, int] = {}
    for place, each in enumerate(atoms):
        kind = kind_of(each)
        weight = 1.0 if first.setdefault(kind, place) == place else FURTHER
        if place in past.seen_in:
            found[kind] = found.get(kind, 0.0) + weight * lift(past, past.seen_in[place], rate)
    return found


def company(past: Past[M], rate: Floats) -> Floats:
    """Return the mean lift of the sessions that used what this one has cited last."""
    lifts = [lift(past, using(past, memory), rate) for memory in past.in_use[-LATEST_IN_USE:].tolist()]
    return np.mean(lifts, axis=0) if lifts else np.zeros(len(past.memories))


def lift(past: Past[M], sessions: Places, rate: Floats) -> Floats:
    """Return how much the share of these sessions that used each memory adds to its log-odds."""
    weight = among(past, sessions) * 0.5 ** (past.ages / SHARE_HALF_LIFE)
    return log_odds(smoothed(used(past, weight), weight.sum(), rate)) - log_odds(rate)


def used(past: Past[M], weight: Floats) -> Floats:
    """Return the weights of the sessions that used each memory, summed."""
    sums = np.bincount(past.use_memory, past.use_weight * weight[past.use_session], minlength=len(past.memories))
    return sums.astype(np.float64)


def smoothed(sums: Floats, total: float, prior: Floats | float) -> Floats:
    """Return shares of `total` that start from a prior: the mean of a Beta distribution."""
    return np.clip((sums + PRIOR_SESSIONS * prior) / (total + PRIOR_SESSIONS), FLOOR / 2, CEILING)


def log_odds(share: Floats) -> Floats:
    """Return the logarithm of the odds of a share."""
    return np.log(share) - np.log1p(-share)


def using(past: Past[M], memory: int) -> Places:
    """Return the sessions that used a memory."""
    return past.use_session[past.use_memory == memory]


class WordEvidence(Generic[M]):
    """What speaks for memories, in words."""

    def __init__(self, past: Past[M], atoms: Sequence[str], near: Mapping[M, Nearness]) -> None:
        cited = replace(past, use_weight=(past.use_weight == CITED).astype(np.float64))
        self._past, self._atoms, self._near = past, atoms, near
        self._places = sorted(past.seen_in, key=lambda place: (kind_of(atoms[place]) in CLOCK, place))
        self._sizes = np.array([len(past.seen_in[place]) for place in self._places])
        self._counts = np.array([used(cited, among(past, past.seen_in[place])) for place in self._places])
        self._sessions = used(cited, np.ones(len(past.ages)))
        self._found = np.bincount(past.use_memory, minlength=len(past.memories))

    def reasons(self, memory: int) -> tuple[tuple[str, ...], bool]:
        """Return the signals under which a memory was cited most often, at most three, and whether it is near.

        The second value says whether any of that bears on what is being done: the clock does not.
        """
        counts = self._counts[:, memory] if self._places else np.zeros(0)
        best = np.argsort(-counts / (self._sizes + PRIOR_SESSIONS), kind="stable")[:MOST_REASONS].tolist()
        said = [self._of_signal(place, int(counts[place])) for place in best if counts[place]]
        if not said and self._sessions[memory]:
            said.append(f"used in {self._sessions[memory]:.0f} of the {len(self._past.ages)} sessions looked at")
        elif not said and self._found[memory]:
            said.append(f"found in {self._found[memory]:.0f} earlier sessions, and not ignored")
        near = self._near.get(self._past.memories[memory], Nearness())
        is_near = not said or WEIGHTS["words"] * near.words + WEIGHTS["meaning"] * near.meaning >= NEAR_ENOUGH
        is_bearing = is_near or any(counts[place] for place in best if not self._is_clock(place))
        return (*said, "near in words or meaning to what is being done") if is_near else tuple(said), is_bearing

    def _is_clock(self, place: int) -> bool:
        return kind_of(self._atoms[self._places[place]]) in CLOCK

    def _of_signal(self, place: int, count: int) -> str:
        """Return in how many sessions with one signal a memory was cited."""
        shared = in_words(self._atoms[self._places[place]])
        return f"used in {count} of the last {self._sizes[place]} sessions {shared}"


def among(past: Past[M], sessions: Places) -> Floats:
    """Return 1 for each of these sessions, and 0 for the others."""
    weight = np.zeros(len(past.ages))
    weight[sessions] = 1.0
    return weight
