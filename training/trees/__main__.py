"""Train the pair model: `python -m training.trees --data DIR` writes it where the judge reads it."""

from __future__ import annotations

import argparse
from pathlib import Path

from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.pair_model import MODEL_PATH
from training.trees.model import trained


def main() -> None:
    """Read the sets in `--data`, fit, and write the model file."""
    parser = argparse.ArgumentParser(prog="python -m training.trees", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with pairs_paws.jsonl, pairs_stsb.jsonl, …")
    parser.add_argument("--out", type=Path, default=MODEL_PATH, help="where to write the model")
    options = parser.parse_args()
    # One thread: the order of floating-point sums, and with it each byte of the model, stays the same.
    made = trained(options.data, embedder=LocalMiniLM(threads=1))
    options.out.write_text(made.text, encoding="utf-8")
    for (source, label), count in sorted(made.counts.items()):
        print(f"{source:26} {label:9} {count:6}")  # noqa: T201 — the command's output
    print(f"wrote {options.out}")  # noqa: T201 — the command's output


if __name__ == "__main__":
    main()
