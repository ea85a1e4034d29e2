"""Train the pair reader: `python -m training.pairs.train --data DIR --start WEIGHTS.npz --out FILE.onnx`.

`--data` is what `training.pairs.prepare` wrote, `--start` the float32 weights of all-MiniLM-L6-v2. Seeded; on one core
with bfloat16 about 100 minutes. A stage that was finished is not done again. Needs torch, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nous_online.language.minilm import tokenizer
from training.pairs.network import HEADS, Network

SEED = 1
Tables: TypeAlias = dict[str, list[dict[str, Any]]]
TABLES = ("own", "near", "nli", "paws", "wording", "actions")
LABELS = "SUNDRVC"
TURNED = {"S": "S", "D": "D", "C": "C", "R": "V", "V": "R"}
"""What a pair is the other way round; an update turned round is one again where its wording is plain."""
ENTAILMENT = ("entailment", "neutral", "contradiction")
MOST_TOKENS = 62
BATCH = 64
SMOOTHING = 0.1
PUBLIC_ROWS = 18_000
"""Rows of entailment in the first stage, which sees everything once."""
TURNED_SHARE, REPEATED_SHARE, NEAR_SHARE, PUBLIC_SHARE = 0.25, 0.05, 0.3, 0.06
VARIED = 700
"""Statements repeated with harmless changes."""
HARMLESS: tuple[Callable[[str], str], ...] = (
    lambda text: text.rstrip("."),
    lambda text: text[:1].lower() + text[1:],
    lambda text: f"Reminder: {text}",
    lambda text: text.replace(" not ", "n't ", 1) if " is not " in text else text,
    lambda text: text.replace("the ", "", 1),
    lambda text: text.replace(" and ", " & ", 1),
    lambda text: text.replace(" two ", " 2 ").replace(" three ", " 3 "),
    str.lower,
)


@dataclass(frozen=True)
class Stage:
    """How long and how fast to train, over the hands up to which, and which of them are seen more often."""

    epochs: int
    rate: float
    """The peak learning rate."""
    last: int
    repeated: frozenset[int] = frozenset()
    times: int = 1
    others: int | None = None
    """How many pairs of all hands are seen beside those that are repeated; None for all."""


STAGES = (
    Stage(1, 1e-4, 16),
    Stage(3, 8e-5, 20),
    Stage(2, 5e-5, 25),
    Stage(1, 5e-5, 27),
    Stage(1, 4e-5, 27, frozenset(range(12, 17)), 2, 8000),
)
"""Over everything once, then over what memories are like; later hands write what the stage before them got wrong."""
ENDINGS = (
    (0.4, Stage(1, 3e-5, 31, frozenset({31}), 8, 4500)),
    (0.3, Stage(2, 4e-5, 30, frozenset({28, 29, 30}), 2, 9000)),
    (0.3, Stage(1, 3e-5, 30, frozenset({28, 29}), 1, 12000)),
)
"""Ways to go on from the last stage, and the share of each in the average of their weights.

Each is better at some pairs and worse at others; the average keeps most of what each of them knows (Wortsman et al.,
"Model soups", 2022).
"""


@dataclass(frozen=True)
class Row:
    """One example: its tokens, how many of them are the earlier statement's, and what one head should say."""

    tokens: list[int]
    split: int
    head: str
    target: int
    weight: float = 1.0


def main() -> None:
    """Train, export and quantise."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.train", description=__doc__)
    for name in ("data", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    tables = {name: read(options.data / f"{name}.jsonl") for name in TABLES}
    network = Network()
    network.start_from(options.start)
    start, last = network.state_dict(), len(STAGES) + 1
    for number, stage in enumerate(STAGES, start=1):
        start = trained(network, stage, tables, options.out.with_suffix(f".{number}.pt"), seed=number)
        network.load_state_dict(start)
    average = {name: torch.zeros_like(weights) for name, weights in start.items()}
    for letter, (share, stage) in zip("abc", ENDINGS, strict=True):
        network.load_state_dict(start)
        done = options.out.with_suffix(f".{last}{letter}.pt")
        for name, weights in trained(network, stage, tables, done, seed=last).items():
            average[name] += share * weights
    network.load_state_dict(average)
    export(network, options.out)


def trained(network: Network, stage: Stage, tables: Tables, done: Path, *, seed: int) -> dict[str, Tensor]:
    """Train a stage on, unless it was finished before; return its weights, which `done` keeps."""
    if not done.is_file():
        random.seed(SEED + seed - 1)
        torch.manual_seed(SEED + seed - 1)
        own = [row for row in tables["own"] if hand_of(row) <= stage.last]
        if stage.others is not None:
            repeated = [row for row in own if hand_of(row) in stage.repeated]
            own = [*random.sample(own, min(stage.others, len(own))), *repeated * stage.times]
        draw = partial(everything if seed == 1 else memories, {**tables, "own": own})
        for epoch, loss in fitted(network, draw, epochs=stage.epochs, rate=stage.rate):
            print(f"{done.name}, epoch {epoch + 1} of {stage.epochs}: loss {loss:.3f}", flush=True)  # noqa: T201 (the command's output)
        torch.save(network.state_dict(), done)
    return torch.load(done, weights_only=True)


def hand_of(row: dict[str, Any]) -> int:
    """Return the number of the hand that wrote a pair."""
    return int(row["author"].removeprefix("author_"))


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table that may be trained on."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [row for row in rows if not row.get("is_held_out")]


def everything(tables: Tables) -> list[Row]:
    """Return the first stage's rows: entailment, paraphrases, and pairs of memories."""
    public = random.sample(tables["nli"], min(PUBLIC_ROWS, len(tables["nli"])))
    return [*entailment(public), *paraphrases(tables["paws"]), *outcomes(tables["own"])]


def memories(tables: Tables) -> list[Row]:
    """Return the second stage's rows: what all hands wrote, neighbours that both hold, and a little of the first."""
    own = [*tables["own"], *tables["wording"]]
    varied = [{**row, "b": harmlessly_changed(row["a"]), "label": "S"} for row in random.sample(own, VARIED)]
    near = random.sample(tables["near"], min(len(tables["near"]), int(NEAR_SHARE * len(own))))
    count = int(PUBLIC_SHARE * len(own))
    return [
        *outcomes([*own, *varied]),
        *both_holding(near),
        *actions(random.sample(tables["actions"], min(len(tables["actions"]), len(own) // 2))),
        *entailment(random.sample(tables["nli"], count)),
        *paraphrases(random.sample(tables["paws"], count // 2)),
        *reworded(random.sample(tables["paws"], count)),
    ]


def both_holding(near: Sequence[dict[str, Any]]) -> list[Row]:
    """Return statements of different pairs that look alike as two that both hold."""
    return [Row(*encoded(row["a"], row["b"]), "outcome", LABELS.index("D"), 0.6) for row in near]


def harmlessly_changed(text: str) -> str:
    """Return a statement with three changes that never change what is said."""
    for change in random.sample(HARMLESS, 3):
        text = change(text)
    return text


def outcomes(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return pairs of memories, some of them turned round, and some statements repeated word for word."""
    found: list[Row] = []
    for row in rows:
        label = row["label"]
        found.append(Row(*encoded(row["a"], row["b"]), "outcome", LABELS.index(label)))
        turned = TURNED.get(label) or ("U" if row["family"] == "plain" else None)
        if turned and random.random() < TURNED_SHARE:  # noqa: S311 (no secret)
            found.append(Row(*encoded(row["b"], row["a"]), "outcome", LABELS.index(turned), 0.7))
        if random.random() < REPEATED_SHARE:  # noqa: S311 (no secret)
            found.append(Row(*encoded(row["a"], row["a"]), "outcome", LABELS.index("S"), 0.5))
    return found


def entailment(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return rows for the head that learns entailment."""
    return [Row(*encoded(row["a"], row["b"]), "entailment", ENTAILMENT.index(row["label"])) for row in rows]


def paraphrases(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return rows for the head that learns paraphrases."""
    return [Row(*encoded(row["a"], row["b"]), "paraphrase", row["label"]) for row in rows]


def actions(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return rows for the head that learns if an action does what a trigger warns of, some with another's trigger."""
    others = random.sample(rows, len(rows))
    mixed = [(row, other) for row, other in zip(rows, others, strict=True) if row["trigger"] != other["trigger"]]
    return [
        *(Row(*encoded(row["trigger"], row["action"]), "does", int(row["does"])) for row in rows),
        *(Row(*encoded(row["trigger"], other["action"]), "does", 0, 0.5) for row, other in mixed[::2]),
    ]


def reworded(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return pairs of the same words in another order as pairs of memories: the same, or two that both hold."""
    return [Row(*encoded(row["a"], row["b"]), "outcome", LABELS.index("DS"[row["label"]]), 0.6) for row in rows]


def encoded(first: str, second: str) -> tuple[list[int], int]:
    """Return [CLS] first [SEP] second [SEP] as tokens, and where the second begins."""
    start, end = (tokenizer().token_to_id(name) for name in ("[CLS]", "[SEP]"))
    one, other = (tokenizer().encode(text, add_special_tokens=False).ids[:MOST_TOKENS] for text in (first, second))
    return [start, *one, end, *other, end], len(one) + 2


def fitted(network: Network, draw: Callable[[], list[Row]], *, epochs: int, rate: float) -> Iterator[tuple[int, float]]:
    """Train for some epochs, each over rows drawn anew; yield the mean loss of each."""
    rows = draw()
    steps = math.ceil(len(rows) / BATCH) * epochs
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (0.06 * steps)) * max(0.0, 1 - step / steps)
    )
    for epoch in range(epochs):
        batches, total = batched(draw() if epoch else rows), 0.0
        network.train()
        for batch in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = network(*tensors(batch))
            loss = loss_of(scores.float(), batch)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        yield epoch, total / len(batches)


def batched(rows: list[Row]) -> list[list[Row]]:
    """Return the rows in batches of like length, in random order."""
    random.shuffle(rows)
    found: list[list[Row]] = []
    for start in range(0, len(rows), BATCH * 20):
        near = sorted(rows[start : start + BATCH * 20], key=lambda row: len(row.tokens))
        found += [near[at : at + BATCH] for at in range(0, len(near), BATCH)]
    random.shuffle(found)
    return found


def tensors(rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens, sides and mask of a batch, padded to its longest."""
    width = max(len(row.tokens) for row in rows)
    ids, sides, mask = (torch.zeros(len(rows), width, dtype=torch.long) for _ in range(3))
    for at, row in enumerate(rows):
        size = len(row.tokens)
        ids[at, :size], mask[at, :size] = torch.tensor(row.tokens), 1
        sides[at, row.split : size] = 1
    return ids, sides, mask


def loss_of(scores: Tensor, rows: Sequence[Row]) -> Tensor:
    """Return the loss of a batch: each row counts for the head it is about."""
    total, start = torch.zeros(()), 0
    for head, columns in HEADS.items():
        own, start = scores[:, start : start + columns], start + columns
        at = [place for place, row in enumerate(rows) if row.head == head]
        if not at:
            continue
        targets, weights = torch.tensor([rows[i].target for i in at]), torch.tensor([rows[i].weight for i in at])
        if columns == 1:
            each = functional.binary_cross_entropy_with_logits(own[at, 0], targets.float(), reduction="none")
        else:
            smoothing = SMOOTHING if head == "outcome" else 0.0
            each = functional.cross_entropy(own[at], targets, label_smoothing=smoothing, reduction="none")
        total = total + (each * weights).sum() / len(rows)
    return total


def export(network: Network, path: Path) -> None:
    """Write the network as ONNX with int8 weights."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    network.eval()
    names = ["input_ids", "token_type_ids", "attention_mask"]
    example = tensors([Row([101, *range(2000, 2010), 102, *range(3000, 3007), 102], 12, "outcome", 0)] * 2)
    draft = path.with_suffix(".fp32")
    torch.onnx.export(
        network, example, str(draft), input_names=names, output_names=["scores"], opset_version=17, dynamo=False,
        dynamic_axes={**{name: {0: "pairs", 1: "tokens"} for name in names}, "scores": {0: "pairs"}},
    )  # fmt: skip
    quantize_dynamic(
        str(draft), str(path), weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gather"]
    )
    draft.unlink()
    keep_unsigned(path)


def keep_unsigned(path: Path) -> None:
    """Move the int8 weights of a model's products, and their zero points, up by 128: what it answers stays the same.

    Processors without VNNI add signed weights up in 16 bits, which overflow: there chances were off by up to 0.5.
    """
    import onnx

    model = onnx.load(str(path))
    named = {tensor.name: tensor for tensor in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type == "MatMulInteger"]
    for name in {node.input[place] for node in products for place in (1, 3)}:
        values = onnx.numpy_helper.to_array(named[name]).astype(np.int16) + 128
        named[name].CopyFrom(onnx.numpy_helper.from_array(values.astype(np.uint8), name))
    onnx.save(model, str(path))


if __name__ == "__main__":
    main()
