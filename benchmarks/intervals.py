"""How sure a figure is: how many cases it rests on, and its 95 % interval.

Shares of yes and no have Wilson's interval (Wilson 1927). Of means, ratios and medians
the cases (questions, sessions, calls) are drawn again with replacement, a thousand times from a fixed seed (the
percentile bootstrap, Efron 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Z = 1.959963984540054
"""Of the normal distribution, 95 % lies within so many standard deviations."""
DRAWS, SEED = 1_000, 13
CELLS = 2_000_000
"""Cases drawn at a time, which bounds the memory."""


class Estimate(float):
    """A figure that knows its interval; a result file names `n`, `low` and `high` beside the figure itself."""

    n: int
    low: float
    high: float

    def __new__(cls, value: float, *, n: int, low: float, high: float) -> Estimate:
        """Return the figure `value`, measured on `n` cases."""
        estimate = super().__new__(cls, value)
        estimate.n, estimate.low, estimate.high = n, float(low), float(high)
        return estimate


def of_count(hits: float, n: int) -> Estimate:
    """Return the share `hits / n` with Wilson's interval; 0 of none, which may be anything."""
    if not n:
        return Estimate(0.0, n=0, low=0.0, high=1.0)
    share, square = hits / n, Z * Z / n
    middle = (share + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(share * (1 - share) / n + square / n / 4)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Estimate(share, n=n, low=min(low, share), high=max(high, share))


def of_share(flags: Iterable[object]) -> Estimate:
    """Return the share of true flags, with Wilson's interval."""
    kept = [bool(flag) for flag in flags]
    return of_count(sum(kept), len(kept))


def of_mean(values: ArrayLike) -> Estimate:
    """Return the mean of one value a case; 0 of none."""
    return of_ratio(values, np.ones(len(np.asarray(values))))


def of_means(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates, each as much as the other, with the interval of a normal error."""
    value = sum(estimates) / len(estimates)
    half = math.sqrt(sum(((each.high - each.low) / 2) ** 2 for each in estimates)) / len(estimates)
    return Estimate(value, n=sum(each.n for each in estimates), low=value - half, high=value + half)


def of_ratio(parts: ArrayLike, wholes: ArrayLike) -> Estimate:
    """Return the sum of the parts over the sum of the wholes, one of each a case; 0 where there is no whole."""
    upper, lower = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    if not lower.sum():
        return Estimate(0.0, n=len(lower), low=0.0, high=0.0)
    drawn = _drawn(len(lower), lambda places: upper[places].sum(axis=1) / np.maximum(lower[places].sum(axis=1), 1e-12))
    return _estimate(float(upper.sum() / lower.sum()), drawn, len(lower))


def of_medians(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """Return the median of one set of measurements over that of another, each drawn again by itself."""
    upper, lower = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    medians = [_drawn(len(side), lambda places, side=side: np.median(side[places], axis=1)) for side in (upper, lower)]
    shuffled = np.random.default_rng(SEED).permutation(medians[1])  # both were drawn from one seed
    return _estimate(float(np.median(upper) / np.median(lower)), medians[0] / shuffled, min(len(upper), len(lower)))


def _drawn(n: int, figure: Callable[[NDArray[np.int64]], Floats]) -> Floats:
    """Return the figure of each draw; `figure` takes the places of the cases drawn, a row for each draw."""
    rng = np.random.default_rng(SEED)
    at_once = max(1, CELLS // n)
    parts = [figure(rng.integers(0, n, (min(at_once, DRAWS - done), n))) for done in range(0, DRAWS, at_once)]
    return np.concatenate(parts)


def _estimate(value: float, drawn: Floats, n: int) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(value, n=n, low=min(low, value), high=max(high, value))
