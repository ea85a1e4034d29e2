"""Train the pair model: `python -m nous_pipelines.training --data DIR` writes it where the judge reads it."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from nous_online.embedding import LocalMiniLM
from nous_online.pairs.matching import MODEL_PATH, pair_features
from nous_pipelines.training.examples import labelled_pairs
from nous_pipelines.training.fit import MERGE_AT, SEED, WEIGHTS, exported, fit


def main() -> None:
    """Read the sets in `--data`, fit, and write the model file."""
    parser = argparse.ArgumentParser(prog="python -m nous_pipelines.training", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with pairs_paws.jsonl, pairs_stsb.jsonl, …")
    parser.add_argument("--out", type=Path, default=MODEL_PATH, help="where to write the model")
    options = parser.parse_args()
    # One thread: the order of floating-point sums, and with it each byte of the model, stays the same.
    pairs, similarities = labelled_pairs(options.data, embedder=LocalMiniLM(threads=1), seed=SEED)
    rows = pair_features([(pair.a, pair.b, cosine) for pair, cosine in zip(pairs, similarities, strict=True)])
    labels = np.array([pair.is_same for pair in pairs], dtype=np.int64)
    weights = np.array([WEIGHTS.get(pair.source, WEIGHTS["written"]) for pair in pairs])
    options.out.write_text(exported(fit(rows, labels, weights), merge_at=MERGE_AT), encoding="utf-8")
    for (source, is_same), count in sorted(Counter((pair.source, pair.is_same) for pair in pairs).items()):
        print(f"{source:26} {'same' if is_same else 'different':9} {count:6}")  # noqa: T201 — the command's output
    print(f"wrote {options.out}")  # noqa: T201 — the command's output


if __name__ == "__main__":
    main()
