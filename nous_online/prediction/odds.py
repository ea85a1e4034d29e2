"""How likely each memory is to be used next: shares of past sessions, smoothed, decayed and combined as log-odds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from nous_online.prediction.atoms import in_words
from nous_online.prediction.past import CITED, Floats, M, Past, Places

HALF_LIVES = (1.0, 14.0, 90.0)
"""Days after which a use counts half: on access traces the three together beat any one (benchmark `forgetting`)."""
SHARE_HALF_LIFE = 60.0
"""Days after which a session with a signal counts half."""
PRIOR_SESSIONS = 2.0
"""How many sessions at the memory's own rate each share starts from (the strength of its Beta prior)."""
FLOOR = 0.002
"""The rate of a memory that was hardly ever used."""
CEILING = 0.95
BIAS = -0.6
RATE_WEIGHT = 0.9
RECENCY_WEIGHTS = (0.15, 0.4)
LIFT_WEIGHTS: Mapping[str, float] = {
    "file": 1.0,
    "module": 0.4,
    "import": 0.4,
    "branch": 0.8,
    "word": 0.4,
    "error": 0.4,
    "error-shape": 0.8,
    "with": 0.4,
    "activity": 0.3,
    "hours": 0.2,
    "weekday": 0.2,
}
CO_USE_WEIGHT = 0.5
MOST_REASONS = 3
TELLING = ("file", "error-shape", "branch")
NEAR_COSINES = (0.0, 0.3, 0.6, 0.9)
NEAR_CHANCES = (0.0, 0.02, 0.08, 0.2)


@dataclass(frozen=True)
class Likely(Generic[M]):
    """A memory, the chance that it is used in this session, and what speaks for it."""

    memory: M
    confidence: float
    reasons: tuple[str, ...]


def likely(past: Past[M], atoms: Sequence[str], *, limit: int) -> tuple[list[Likely[M]], float]:
    """Return the memories most likely to be used, best first, and how many will be; without those in use already.

    Each signal a session had gives a share: in how many of the latest sessions with it the memory was used, decayed
    by half in 60 days and smoothed towards the memory's own rate. What the shares add to that rate in log-odds is
    weighed by the kind of signal and summed. Equally likely ones come in the order in which they are known.
    """
    if not past.memories:
        return [], 0.0
    chances = chances_of(past, atoms)
    chances[past.in_use] = 0.0
    best: list[int] = np.argsort(-chances, kind="stable")[:limit].tolist()
    return [
        Likely(past.memories[place], round(float(chances[place]), 4), tuple(reasons(past, atoms, place)))
        for place in best
        if chances[place] > 0
    ], float(chances.sum())


def chances_of(past: Past[M], atoms: Sequence[str]) -> Floats:
    """Return for each memory the chance that it is used in a session that saw `atoms`."""
    day, fortnight, quarter = (0.5 ** (past.ages / days) for days in HALF_LIVES)
    rate = smoothed(used(past, quarter), quarter.sum(), FLOOR)
    score = BIAS + RATE_WEIGHT * log_odds(rate)
    for weight, faded in zip(RECENCY_WEIGHTS, (day, fortnight), strict=True):
        score += weight * np.log(used(past, faded) + 0.01)
    for place, sessions in past.seen_in.items():
        score += LIFT_WEIGHTS[atoms[place].partition(":")[0]] * lift(past, sessions, rate)
    if len(past.in_use):
        score += CO_USE_WEIGHT * np.mean([lift(past, using(past, memory), rate) for memory in past.in_use], axis=0)
    return 1 / (1 + np.exp(-score))


def lift(past: Past[M], sessions: Places, rate: Floats) -> Floats:
    """Return how much the share of these sessions that used each memory adds to its log-odds."""
    weight = np.zeros(len(past.ages))
    weight[sessions] = 0.5 ** (past.ages[sessions] / SHARE_HALF_LIFE)
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


def reasons(past: Past[M], atoms: Sequence[str], memory: int) -> Iterator[str]:
    """Yield in words what speaks for a memory: the signals under which it was used most often, at most three."""
    cited = (past.use_memory == memory) & (past.use_weight == CITED)
    having = set(past.use_session[cited].tolist())
    found: list[tuple[float, int, str]] = []
    for place, sessions in sorted(past.seen_in.items()):
        count = sum(session in having for session in sessions.tolist())
        if count:
            found.append((-count / (len(sessions) + PRIOR_SESSIONS), place, f"{count} of the last {len(sessions)}"))
    for _, place, share in sorted(found)[:MOST_REASONS]:
        yield f"used in {share} sessions {in_words(atoms[place])}"
    if not found:
        yield f"used in {len(having)} of the {len(past.ages)} sessions looked at"


def is_new(past: Past[M], atoms: Sequence[str]) -> bool:
    """Tell whether a file, an error or a branch was never seen before, or none of them is seen now."""
    telling = [place for place, each in enumerate(atoms) if each.partition(":")[0] in TELLING]
    return not telling or any(place not in past.seen_in for place in telling)


def nearness_chance(cosine: float) -> float:
    """Return the chance that a memory is used whose words are so near to what is being done."""
    return round(float(np.interp(cosine, NEAR_COSINES, NEAR_CHANCES)), 4)
