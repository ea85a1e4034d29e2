"""Fit the weights of `nous_online.language.writing.findings`: `python -m training.findings.keeping --labelled FILE`.

FILE has a JSON object a line: `text` as a fact would have it, `finding` and `label` of its point, and `kept`: 2 where a
reader would keep it, 1 where they might, else 0. Beside them count the statements in `written_*.tsv`, a third each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from nous_online.language.writing.findings import WEIGHTS_PATH, features_of
from nous_online.language.writing.points import (
    LASTING_LABELS,
    finding_within,
    form_of,
    is_finding,
    points_of,
    standalone_text,
)
from nous_online.language.writing.writer import EndedEpisode, parse_episode

WRITTEN_WEIGHT = 0.3
"""Of a written statement: as much as a labelled one, they cost of the best 350 labelled ones three in a hundred."""
MIGHT_BE_KEPT = 0.7
"""Weight of being kept at all beside being kept without a doubt."""
FINDING_LEAD = 1.0
"""Added for what the rules call a finding: with it causes in trades that nobody labelled are still heard."""
STRENGTH = 4.0  # of the weights, the inverse of their penalty


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
        form = form_of(told["text"], is_found=told["finding"], is_labelled=told["label"] in LASTING_LABELS)
        yield Row(told["text"], form, told["kept"], 1.0)


def written() -> Iterator[Row]:
    """Yield the statements written for this, each as an agent's only one in a session."""
    for path in sorted(Path(__file__).parent.glob("written_*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kept, _, said = line.partition("\t")
            sentences = parse_episode(
                EndedEpisode(f"user: Why is it so?\n[Bash] level --log\nassistant: {said}")
            ).sentences
            found = [finding_within(each, sentences) for each in points_of(sentences) if each.speaker != "user"]
            for point in found[:1]:
                text, is_labelled = standalone_text(point), point.label in LASTING_LABELS
                form = form_of(text, is_found=is_finding(point), is_labelled=is_labelled)
                yield Row(text, form, int(kept), WRITTEN_WEIGHT)


def fitted(rows: list[Row]) -> Any:
    """Return the weights of all features, and the constant behind them."""
    features = csr_matrix(np.stack([features_of(row.text, row.form) for row in rows]))
    kept, counts = (np.array([getattr(row, name) for row in rows]) for name in ("kept", "weight"))
    total = np.zeros(features.shape[1] + 1)
    for least, share in ((2, 1.0), (1, MIGHT_BE_KEPT)):
        model = LogisticRegression(C=STRENGTH, solver="liblinear").fit(features, kept >= least, sample_weight=counts)
        total += share * np.append(model.coef_[0], model.intercept_[0])
    total[-1 - len(rows[0].form)] += FINDING_LEAD
    return total.astype(np.float16)


def main() -> None:
    """Fit, write the weights and say their hash, which belongs into `findings.py`."""
    parser = argparse.ArgumentParser(prog="python -m training.findings.keeping", description=__doc__)
    parser.add_argument(
        "--labelled", type=Path, required=True, help="statements of real sessions, a JSON object a line"
    )
    parser.add_argument("--out", type=Path, default=WEIGHTS_PATH, help="where to write the weights")
    options = parser.parse_args()
    np.save(options.out, fitted([*labelled(options.labelled), *written()]))
    print(f"wrote {options.out}, SHA-256 {sha256(options.out.read_bytes()).hexdigest()}")  # noqa: T201 — the output


if __name__ == "__main__":
    main()
