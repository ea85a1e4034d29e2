"""Choose operating points and curves: `python -m training.pairs.calibrate --model DIR --version NAME`.

`DIR` is where `training.pairs.export` wrote to; `pair_reader.json` is written beside it.


Everything comes from the hands that trained nothing, but for the strangers: statements of different pairs of one hand,
as they stand near each other, trained nothing as pairs either. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from nous_online.core.policy import LearnPolicy
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import MOST_SHORT_WORDS
from nous_online.language.pairs.pair_model import LEAST_SIMILARITY
from nous_online.language.pairs.reader import (
    LEAST_CHANCE,
    OUTCOMES,
    cores,
    encodings,
    is_in_depth,
    of_two_things,
    scores,
    shared_content,
    weights_in,
)
from nous_online.language.pairs.wordings import never_same, other_conditions, other_things
from training.pairs.prepare import written_pairs

GRID = [0.0, 0.02, 0.05, *(step / 20 for step in range(2, 20)), 0.97, 1.0]
LEAST, MOST = 0.005, 0.995
MOST_HURT = 0.028
"""Share of the pairs that both hold which may be called a change; a caller sees what was said, and can undo it."""
MOST_RETIRED = 0.022
"""Share of the pairs that both hold of which the earlier may be retired; between the two points both stay, in doubt."""
LOOSELY_HURT, LOOSELY_RETIRED = 0.045, 0.03
"""The same shares for looser points, at which the limits for neighbours are chosen, so that these hold alone, too."""
CHANGING = 0.15
"""Share of what a person says that changes something said before: a guess, between a diary and an operations log."""
MOST_STRANGERS_NOTICED, MOST_STRANGERS_RETIRED = 0.03, 0.005
"""Of the statements of one store how many may be taken for a change of something else, or retire it."""
LEAST_NOTICED = 0.34
"""Of three neighbours that are as likely to have changed none is taken for it."""
MOST_SHARED = 3
MOST_JOINED = 0.0025
"""Share of the pairs that are not the same which the reader alone may call so, as it may of far ones only."""
EARLY, EARLY_DOES = 0.08, -4.0
"""Below which chance of `same` and of a change, and log odds of an act, the early answer is taken."""
LEAST_POINT = 0.4
FOREIGN_AT = 2.0


def main() -> None:
    """Write the numbers that belong to a model, and print what it finds at them."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.calibrate", description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--version", required=True, help="how verdicts name the model")
    options = parser.parse_args()
    folder = options.model.resolve()
    first_sha256, onnx_sha256 = (
        hashlib.sha256((folder / f"{name}.onnx").read_bytes()).hexdigest()
        for name in ("pair_reader_first", "pair_reader")
    )
    model = weights_in(folder, first_sha256, onnx_sha256)
    pairs = [row for row in written_pairs() if row["is_held_out"]]
    texts = [(row["a"], row["b"]) for row in pairs]
    chances = chances_of(model, texts)
    same = np.minimum(chances[:, 0], chances_of(model, [(second, first) for first, second in texts])[:, 0])
    labels = np.array([row["label"] for row in pairs])
    replaces = chances[:, 1] + chances[:, 2]
    change = replaces + chances[:, 6]
    two_things = np.array([other_things(*both) is not None for both in texts])
    apart = np.array([bool(never_same(*both)) for both in texts])
    may_be_same = np.where(apart | ~is_far(texts), 0, same)
    may_change, likely_same = np.where(two_things, 0, change), np.where(apart, 0, same)
    may_replace = np.where(two_things, 0, replaces)
    points = {
        "same_at": point(may_be_same[~np.isin(labels, ["S", "V"])], MOST_JOINED),
        "change_at": point(may_change[labels == "D"], MOST_HURT),
        "retire_at": point(may_replace[labels == "D"], MOST_RETIRED),
    }
    loose = point(may_change[labels == "D"], LOOSELY_HURT), point(may_replace[labels == "D"], LOOSELY_RETIRED)
    neighbours = neighbour_odds(model, pairs, chances, two_things, loose)
    curves = {
        "same": curve(likely_same, labels == "S"),
        "change": curve(may_change, np.isin(labels, ["U", "N", "C"])),
    }
    numbers: dict[str, Any] = {
        "version": options.version, "first_sha256": first_sha256, "onnx_sha256": onnx_sha256, "temperature": 1.0,
        "early": EARLY, "early_does": EARLY_DOES, **points,
        "foreign_at": FOREIGN_AT, "neighbours": neighbours, "curves": curves,
    }  # fmt: skip
    (folder / "pair_reader.json").write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    families = np.array([row["family"] for row in pairs])
    is_change, is_same = may_change >= points["change_at"], may_be_same >= points["same_at"]
    is_retired = is_change & (may_replace >= points["retire_at"])
    for what, chosen, hit in (
        ("changes noticed, in words of their own", (labels == "U") & (families == "chatty"), is_change),
        ("changes noticed, in the same wording", (labels == "U") & (families == "plain"), is_change),
        ("endings and denials noticed", labels == "N", is_change),
        ("statements that both hold, called a change", labels == "D", is_change),
        ("statements that both hold, one of them retired", labels == "D", is_retired),
        ("changes that retire the earlier statement", labels == "U", is_retired),
        ("repeats in other words found by the reader alone", labels == "S", is_same),
        ("anything else called the same", ~np.isin(labels, ["S", "V"]), is_same),
    ):
        print(f"{what}: {hit[chosen].mean():.3f} of {chosen.sum()}")  # noqa: T201 (the command's output)
    print(json.dumps(points), json.dumps(neighbours))  # noqa: T201


def neighbour_odds(
    model: Any,
    pairs: Sequence[dict[str, Any]],
    chances: NDArray[np.float64],
    two_things: NDArray[np.bool_],
    loose: tuple[float, float],
) -> dict[str, Any]:
    """Return `NeighbourOdds`: fitted on the held-out pairs, and on strangers that are read as often as in a store."""
    met, count = strangers()
    apart = np.array([other_things(*both) is not None or other_conditions(*both) is not None for both in met])
    of_met = chances_of(model, met)
    labels = np.array([row["label"] for row in pairs])
    is_change = np.isin(labels, ["U", "N", "C"]) & ~two_things
    wanted = is_change | np.isin(labels, ["D", "R", "V", "S"])
    both = odds_rows(of_met, met), odds_rows(chances, [(row["a"], row["b"]) for row in pairs])
    apart |= is_far_out(met, both[0][:, 1])
    wanted &= ~is_far_out([(row["a"], row["b"]) for row in pairs], both[1][:, 1])
    rows = np.concatenate([both[0][~apart], both[1][wanted]])
    truth = np.concatenate([np.zeros(int((~apart).sum())), is_change[wanted]])
    share = {kind: CHANGING * count / max(1, int((is_change[wanted] == kind).sum())) for kind in (True, False)}
    weights = np.concatenate([np.ones(int((~apart).sum())), [share[bool(kind)] for kind in is_change[wanted]]])
    fit = LogisticRegression(C=10).fit(rows, truth, sample_weight=weights)
    likely = np.where(apart, 0.0, fit.predict_proba(both[0])[:, 1])
    replaces = of_met[:, 1] + of_met[:, 2]
    noticed = likely[replaces + of_met[:, 6] >= loose[0]]
    retired = likely[replaces >= loose[1]]
    change, shared = (round(float(value), 2) for value in fit.coef_[0])
    return {
        "intercept": round(float(fit.intercept_[0]), 2), "change": change, "shared": shared, "most_shared": MOST_SHARED,
        "notice_from": max(LEAST_NOTICED, least_for(noticed, MOST_STRANGERS_NOTICED * count)),
        "retire_from": least_for(retired, MOST_STRANGERS_RETIRED * count),
    }  # fmt: skip


def strangers() -> tuple[list[tuple[str, str]], int]:
    """Return (earlier, later) statements near each other in stores of one hand and language each, and of how many."""
    hands: dict[tuple[str, str], list[str]] = {}
    for row in written_pairs():
        if row["is_held_out"] and row["a"] not in hands.setdefault((row["author"], row["lang"]), []):
            hands[row["author"], row["lang"]].append(row["a"])
    met: list[tuple[str, str]] = []
    count = 0
    for told in hands.values():
        texts = random.Random(1).sample(told, len(told))  # noqa: S311 (no secret)
        near = np.asarray(LocalMiniLM().embed_documents(texts))
        for at in range(len(texts)):
            closest = np.argsort(-(near[:at] @ near[at]))[: LearnPolicy.read_count]
            met += [(texts[other], texts[at]) for other in closest if texts[other] != texts[at]]
        count += len(texts)
    return met, count


def odds_rows(chances: NDArray[np.float64], texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Return what `NeighbourOdds` goes by: log odds of a change, and what is shared."""
    change = np.clip(chances[:, 1] + chances[:, 2] + chances[:, 6], LEAST_CHANCE, 1 - LEAST_CHANCE)
    shared = np.array([min(shared_content(*both), MOST_SHARED) for both in texts])
    return np.column_stack([np.log(change / (1 - change)), shared])


def is_far_out(texts: Sequence[tuple[str, str]], shared: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell of each pair whether the reader was not trained for it and it shares no word: no change is read there."""
    is_deep = np.array([is_in_depth(*each) for each in zip(encodings(texts), texts, strict=True)])
    return ~is_deep & (shared == 0)


def least_for(likely: NDArray[np.float64], most: float) -> float:
    """Return the least chance, in steps of 0.01, that at most so many are given."""
    return next(step / 100 for step in range(100) if (likely >= step / 100).sum() <= most)


def is_far(texts: Sequence[tuple[str, str]]) -> NDArray[np.bool_]:
    """Tell of each pair whether the reader alone may call it the same: short statements whose vectors are not near."""
    first, second = (LocalMiniLM().embed_documents(side) for side in zip(*texts, strict=True))
    is_short = [max(len(text.split()) for text in pair) <= MOST_SHORT_WORDS for pair in texts]
    return ((first * second).sum(axis=1) < LEAST_SIMILARITY) & np.array(is_short)


def chances_of(model: Any, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Return the model's chance of each outcome for pairs of texts, read in this order."""
    is_enough = partial(of_two_things, below=EARLY)
    found = cores().map(lambda both: scores(model, is_enough, *both), encodings(texts))
    return softmax(np.array([*found])[:, : len(OUTCOMES)])


def softmax(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return chances of each row."""
    exponents = np.exp(raw - raw.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def point(wrong: NDArray[np.float64], most: float) -> float:
    """Return the least chance, in steps of 0.01, that at most a share of what is wrong is given."""
    return next(
        (step / 100 for step in range(int(LEAST_POINT * 100), 100) if (wrong >= step / 100).mean() <= most), 0.99
    )


def curve(given: NDArray[np.float64], is_true: NDArray[np.bool_]) -> list[list[float]]:
    """Return chances and how often what was given them came true, never falling (isotonic regression)."""
    fitted = IsotonicRegression(out_of_bounds="clip", y_min=LEAST, y_max=MOST).fit(given, is_true)
    return [GRID, [round(float(value), 4) for value in fitted.predict(GRID)]]


if __name__ == "__main__":
    main()
