"""Fit weights of `nous_online.language.writing.findings`: `python -m training.findings.keeping found --labelled FILE`.

FILE has a JSON object a line: `text` as a fact would have it, its `form` (`points.form_of`, or `form_of_told` of what
users say), and `kept`: 2 where a reader would keep it, 1 where they might, else 0. Beside them count the statements in
`written_*.tsv` or `told_*.tsv`, with less weight.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from nous_online.language.writing.findings import Said, features_of, weights_path
from nous_online.language.writing.points import (
    LASTING_LABELS,
    Point,
    finding_within,
    form_of,
    form_of_told,
    is_finding,
    points_of,
    standalone_text,
)
from nous_online.language.writing.sentences import Sentence
from nous_online.language.writing.writer import EndedEpisode, parse_episode


@dataclass(frozen=True)
class Fit:
    """How the weights of what one side says are fitted."""

    files: str
    """The written statements …"""
    share: float
    """… and their weight beside labelled ones: equal weights cost of the best 350 findings three in a hundred."""
    strength: float
    """Of the weights, the inverse of their penalty."""
    might_be_kept: float
    """Weight of being kept at all beside being kept without a doubt."""
    leads: tuple[float, ...]
    """Added for each part of the form."""
    lead: float = 0.0
    """Added to all, so that the same least score is asked of both sides."""


FITS: dict[Said, Fit] = {
    # Findings by the rules: with a lead causes in trades that nobody labelled are still heard.
    "found": Fit("written_*.tsv", 0.3, 4.0, 0.7, (1.0, 0.0, 0.0)),
    # What the rules tell for a rule or a preference: readers keep four in ten, and users count on every clear one.
    "told": Fit("told_*.tsv", 0.6, 8.0, 1.5, (3.0, 0.0, 5.0, 0.0, 0.0), -0.5),
}


@dataclass(frozen=True)
class Row:
    """A statement, its form, and whether readers would keep it."""

    text: str
    form: tuple[float, ...]
    kept: int
    weight: float


def labelled(path: Path) -> Iterator[Row]:
    """Yield the statements of real sessions."""
    for line in path.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        yield Row(told["text"], tuple(told["form"]), told["kept"], 1.0)


def written_lines(said: Said) -> list[str]:
    """Return the statements written for this: how much each is worth keeping, a tab, and what is said."""
    paths = sorted(Path(__file__).parent.glob(FITS[said].files))
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def written(lines: Iterable[str], said: Said) -> Iterator[Row]:
    """Yield the statements of written lines, each as the only one of its side in a session."""
    for line in lines:
        kept, _, told = line.partition("\t")
        sentences = parse_episode(EndedEpisode(SESSIONS[said].format(told))).sentences
        for text, form in formed(sentences, said)[:1]:
            yield Row(text, form, int(kept), FITS[said].share)


SESSIONS: dict[Said, str] = {
    "found": "user: Why is it so?\n[Bash] level --log\nassistant: {}",
    "told": "user: {}\n[Bash] level --log\nassistant: Done.",
}


def formed(sentences: list[Sentence], said: Said) -> list[tuple[str, tuple[float, ...]]]:
    """Return the text and form of each statement of one side."""
    points = [finding_within(each, sentences) for each in points_of(sentences)]
    own = [each for each in points if (each.speaker == "user") == (said == "told")]
    return [(text, form_by(said, each, text)) for each in own for text in [standalone_text(each)]]


def form_by(said: Said, point: Point, text: str) -> tuple[float, ...]:
    """Return the form of a statement."""
    if said == "told":
        return form_of_told(point, text)
    return form_of(text, is_found=is_finding(point), is_labelled=point.label in LASTING_LABELS)


def fitted(rows: list[Row], said: Said) -> Any:
    """Return the weights of all features, and the constant behind them."""
    fit = FITS[said]
    features = csr_matrix(np.stack([features_of(row.text, row.form) for row in rows]))
    kept, counts = (np.array([getattr(row, name) for row in rows]) for name in ("kept", "weight"))
    total = np.zeros(features.shape[1] + 1)
    for least, share in ((2, 1.0), (1, fit.might_be_kept)):
        model = LogisticRegression(C=fit.strength, solver="liblinear").fit(
            features, kept >= least, sample_weight=counts
        )
        total += share * np.append(model.coef_[0], model.intercept_[0])
    total[-1 - len(fit.leads) :] += [*fit.leads, fit.lead]
    return total.astype(np.float16)


def main() -> None:
    """Fit, write the weights and say their hash, which belongs into `findings.py`."""
    parser = argparse.ArgumentParser(prog="python -m training.findings.keeping", description=__doc__)
    parser.add_argument("said", choices=[*FITS], help="what an agent found, or what a user told")
    parser.add_argument(
        "--labelled", type=Path, required=True, help="statements of real sessions, a JSON object a line"
    )
    parser.add_argument("--out", type=Path, help="where to write the weights; those in use by default")
    options = parser.parse_args()
    out = options.out or weights_path(options.said)
    np.save(
        out, fitted([*labelled(options.labelled), *written(written_lines(options.said), options.said)], options.said)
    )
    print(f"wrote {out}, SHA-256 {sha256(out.read_bytes()).hexdigest()}")  # noqa: T201 — the output


if __name__ == "__main__":
    main()
