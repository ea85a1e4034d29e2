"""Train the pair reader on what its teachers answer, and on the labels where there are some.

`python -m training.pairs.train --data DIR --answers FILE.npz --start WEIGHTS.npz --out FILE.onnx`: `--data` is what
`training.pairs.prepare` wrote, `--answers` what `training.pairs.teach` wrote, `--start` the float32 weights of
all-MiniLM-L6-v2. Seeded; on one H100 two minutes. Needs torch, onnx and onnxruntime. The method is that of Hinton,
Vinyals and Dean, "Distilling the knowledge in a neural network", 2015.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
import torch

from nous_online.language.minilm import tokenizer
from training.pairs.fitting import Pieces, Row, Table, fitted
from training.pairs.network import Network
from training.pairs.rows import Tables, actions, outcomes, read_tables, varied

SEED = 1
BATCH = 512
STAGES = ((1, 3e-4, 2_000_000), (1, 1e-4, 100_000))
"""Epochs, peak learning rate, and how many of the teachers' answers are seen beside what is labelled; first, all."""
LABEL_SHARE, LABEL_WEIGHT = 0.5, 2.0
"""Share of the label, beside the teachers' answer, in the target of a labelled pair, and how much the pair counts."""


def main() -> None:
    """Train, export and quantise."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.train", description=__doc__)
    for name in ("data", "answers", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-export", action="store_true", help="stop after the .pt file")
    options = parser.parse_args()
    random.seed(SEED)
    torch.manual_seed(SEED)
    tables, answers = read_tables(options.data), read_answers(options.answers)
    network = Network()
    network.start_from(options.start)
    network.to(options.device)
    pieces = Pieces(tokenizer(), options.device)
    answered = Table.of([Row(one, other, head, answer) for (head, one, other), answer in answers.items()], pieces)
    for number, (epochs, rate, most) in enumerate(STAGES, start=1):

        def draw(most: int = most) -> Table:
            return answered.sample(most).with_more(Table.of(blended(tables, answers), pieces))

        losses = fitted(network, pieces, draw, epochs=epochs, rate=rate, batch=BATCH)
        for epoch, loss in enumerate(losses, start=1):
            print(f"stage {number}, epoch {epoch} of {epochs}: loss {loss:.3f}", flush=True)  # noqa: T201 (the command's output)
        torch.save(network.state_dict(), options.out.with_suffix(".pt"))
    if not options.no_export:
        export(network.to("cpu"), options.out)


def read_answers(path: Path) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """Return what the teachers answer to (head, first, second)."""
    stored = np.load(path)
    texts = json.loads(stored["texts"].tobytes())
    return {
        (head, texts[one], texts[other]): tuple(answer)
        for head, pairs, found in (
            ("outcome", stored["statements"].tolist(), stored["outcome"].astype(float).tolist()),
            ("does", stored["actions"].tolist(), stored["does"].astype(float)[:, None].tolist()),
        )
        for (one, other), answer in zip(pairs, found, strict=True)
    }


def blended(tables: Tables, answers: dict[tuple[str, str, str], tuple[float, ...]]) -> list[Row]:
    """Return what is labelled, each row between its label and what the teachers say of it."""
    own = [*tables["own"], *tables["wording"]]
    found: list[Row] = []
    for row in [*outcomes([*own, *varied(own)]), *actions(tables["actions"])]:
        seen = answers.get((row.head, row.first, row.second), row.target)
        target = (LABEL_SHARE * one + (1 - LABEL_SHARE) * other for one, other in zip(row.target, seen, strict=True))
        found.append(Row(row.first, row.second, row.head, tuple(target), LABEL_WEIGHT * row.weight))
    return found


def export(network: Network, path: Path) -> None:
    """Write the network as ONNX with int8 weights."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    network.eval()
    names = ["input_ids", "token_type_ids", "attention_mask"]
    first, second = [101, *range(2000, 2010), 102], [*range(3000, 3007), 102]
    ids, sides = torch.tensor([[*first, *second]] * 2), torch.tensor([[0] * len(first) + [1] * len(second)] * 2)
    example = ids, sides, torch.ones_like(ids)
    draft = path.with_suffix(".fp32")
    torch.onnx.export(
        network, example, str(draft), input_names=names, output_names=["scores"], opset_version=17, dynamo=False,
        dynamic_axes={**{name: {0: "pairs", 1: "tokens"} for name in names}, "scores": {0: "pairs"}},
    )  # fmt: skip
    quantize_dynamic(
        str(draft), str(path), weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gather"]
    )
    draft.unlink()


if __name__ == "__main__":
    main()
