"""Train the pair reader: teachers learn from the labels, and the reader from what they answer to many more pairs.

`python -m training.pairs.train --data DIR --teacher-start FILE --start FILE --out FILE.pt`: `--data` is what
`training.pairs.prepare` wrote, the other two are the published weights (.safetensors) of all-mpnet-base-v2 and
all-MiniLM-L6-v2. Seeded; on one H100 half an hour. Needs torch, safetensors and tokenizers. The method is that of
Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015; that the reader also learns what
a teacher's answer is read off is from Romero et al., "FitNets", 2015; the mean of weights before and after the last
round from Wortsman et al., "Robust fine-tuning of zero-shot models", 2022.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from training.pairs.fitting import COLUMNS, FIRST_COLUMN, Pieces, Table, fitted, padded, scored
from training.pairs.network import END, HEADS, START, TEACHER, UNGROWN, Network, Shape
from training.pairs.rows import Question, Tables, labelled, questions_of_actions, questions_of_statements, read_tables

TOKENIZER = Path(__file__).parents[2] / "nous_online" / "language" / "model" / "tokenizer.json"
TEACHERS, TEACHER_EPOCHS, TEACHER_RATE, TEACHER_BATCH = 2, 3, 1e-4, 384
ROUNDS = ((4, 1024, 4e-4), (3, 2048, 4e-4), (6, 2048, 4e-4), (6, 2048, 3e-4))
"""Epochs of the reader, pairs of a batch and the highest rate, with new teachers and questions in each round."""
GROWN_IN, LAST_SHARE = 2, 0.7
"""The round before which the reader grows to its nine layers, and the share of the last round's weights in the mean of
these and those it began with."""
ANSWERED_AT_ONCE = 3072
LABEL_SHARE, LABEL_WEIGHT = 0.5, 2.0
"""Share of the label, beside the teachers' answer, in the target of a labelled pair, and how much the pair counts."""
BEGAN = time.monotonic()


def main() -> None:
    """Write the weights of the reader."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.train", description=__doc__)
    for name in ("data", "teacher-start", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--teachers", type=int, default=TEACHERS)
    options = parser.parse_args()
    tables, pieces = read_tables(options.data), Pieces(cutter(), options.device)
    reader = network_from(UNGROWN, options.start, pieces)
    before: dict[str, Tensor] = {}
    for number, (epochs, batch, rate) in enumerate(ROUNDS):
        random.seed(number)
        torch.manual_seed(number)
        seeds = range(number * options.teachers + 1, (number + 1) * options.teachers + 1)
        table = answered(tables, pieces, options.teacher_start, seeds)
        reader = reader.grown() if number == GROWN_IN else reader
        before = {name: value.float().clone() for name, value in reader.state_dict().items()}
        losses = fitted(reader, pieces, lambda table=table: table, epochs=epochs, rate=rate, batch=batch)
        for epoch, loss in enumerate(losses, start=1):
            said(f"round {number + 1}, epoch {epoch} of {epochs}: loss {loss:.3f}")
        torch.save(reader.state_dict(), options.out)
    after = reader.state_dict()
    torch.save({name: before[name].lerp(after[name].float(), LAST_SHARE) for name in after}, options.out)


def cutter() -> Tokenizer:
    """Return the tokenizer of BERT, which MPNet shares."""
    found = Tokenizer.from_file(str(TOKENIZER))
    found.no_truncation()
    found.no_padding()
    return found


def said(text: str) -> None:
    """Print what was done, and when."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)  # noqa: T201 (the command's output)


def answered(tables: Tables, pieces: Pieces, start: Path, seeds: Sequence[int]) -> Table:
    """Return what a teacher of each seed answers to all questions, the mean of them, with the labels blended in."""
    untaught = network_from(TEACHER, start, pieces).bfloat16().eval()
    statements = questions_of_statements(tables, embedder(untaught, pieces))
    acts = questions_of_actions(tables, embedder(untaught, pieces))
    asked = [*statements, *acts]
    said(f"{len(statements)} pairs of statements, {len(acts)} of triggers and actions")
    one, other = (pieces.places([getattr(each, side) for each in asked]) for side in ("first", "second"))
    said("cut up")
    targets = torch.zeros(len(asked), COLUMNS, device=pieces.device)
    outcome, does = (slice(FIRST_COLUMN[head], FIRST_COLUMN[head] + HEADS[head]) for head in ("outcome", "does"))
    like: Tensor | None = None
    for seed in seeds:
        scores, inside = scored(teacher_of(start, tables, pieces, seed), pieces, one, other, ANSWERED_AT_ONCE)
        targets[: len(statements), outcome] += functional.softmax(scores[: len(statements), outcome], 1) / len(seeds)
        targets[len(statements) :, does] += torch.sigmoid(scores[len(statements) :, does]) / len(seeds)
        like = inside if like is None else like
        said(f"teacher {seed} has answered")
    heads = torch.tensor([[*HEADS].index("outcome")] * len(statements) + [[*HEADS].index("does")] * len(acts))
    weights = torch.tensor([each.weight * (LABEL_WEIGHT if each.label else 1.0) for each in asked])
    blend(targets, asked, len(statements))
    return Table(one, other, heads.to(pieces.device), weights.to(pieces.device), targets, like)


def blend(targets: Tensor, asked: Sequence[Question], statements: int) -> None:
    """Move the targets of labelled pairs half way to their labels."""
    for head, rows in (("outcome", range(statements)), ("does", range(statements, len(asked)))):
        places = [at for at in rows if asked[at].label]
        there = torch.tensor(places, device=targets.device)
        labels = torch.tensor([asked[at].label for at in places], device=targets.device)
        columns = slice(FIRST_COLUMN[head], FIRST_COLUMN[head] + HEADS[head])
        targets[there, columns] = LABEL_SHARE * labels + (1 - LABEL_SHARE) * targets[there, columns]


def network_from(shape: Shape, start: Path, pieces: Pieces) -> Network:
    """Return a network with published weights."""
    network = Network(shape)
    network.start_from(start)
    return network.to(pieces.device)


def teacher_of(start: Path, tables: Tables, pieces: Pieces, seed: int) -> Network:
    """Return a teacher trained from the published weights."""
    random.seed(seed)
    torch.manual_seed(seed)
    teacher = network_from(TEACHER, start, pieces)
    losses = fitted(
        teacher, pieces, lambda: Table.of(labelled(tables), pieces),
        epochs=TEACHER_EPOCHS, rate=TEACHER_RATE, batch=TEACHER_BATCH,
    )  # fmt: skip
    for epoch, loss in enumerate(losses, start=1):
        said(f"teacher {seed}, epoch {epoch} of {TEACHER_EPOCHS}: loss {loss:.3f}")
    return teacher


def embedder(network: Network, pieces: Pieces) -> Callable[[Sequence[str]], Tensor]:
    """Return what embeds texts as the published weights do."""

    @torch.no_grad()
    def embedded(texts: Sequence[str]) -> Tensor:
        places = pieces.places(texts)
        order = torch.argsort(pieces.sizes[places.cpu()], stable=True)
        vectors = torch.empty(len(texts), network.shape.width, device=pieces.device, dtype=torch.bfloat16)
        for chosen in torch.split(order, ANSWERED_AT_ONCE):
            there, most = chosen.to(pieces.device), int(pieces.sizes[places[chosen[-1]].cpu()])
            rows = pieces.table[places[there]]
            sizes, at = rows.count_nonzero(1)[:, None], torch.arange(padded(most + 2), device=pieces.device)[None]
            shifted = rows.gather(1, (at - 1).clamp(0, rows.shape[1] - 1).expand(len(rows), -1))
            ids = torch.where((at > 0) & (at <= sizes), shifted, END)
            ids[:, 0] = START
            mask = (at <= sizes + 1).long()
            vectors[there] = network.embedded(ids.long() * mask, mask).to(vectors.dtype)
        return vectors

    return embedded


if __name__ == "__main__":
    main()
