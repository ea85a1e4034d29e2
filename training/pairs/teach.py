"""Train the teachers of the pair reader and let them answer.

`python -m training.pairs.teach --data DIR --start DIR --out FILE.npz`: `--data` is what `training.pairs.prepare` wrote,
`--start` a folder with all-mpnet-base-v2. Seeded; on one H100 about six minutes. Needs torch, transformers and
tokenizers.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from training.pairs.fitting import HEADS, Pieces, Table, fitted, scored
from training.pairs.network import Teacher, mean
from training.pairs.rows import Tables, labelled, read_tables, unanswered_actions, unlabelled

TEACHERS, EPOCHS, RATE, BATCH = 2, 3, 5e-5, 96
ANSWERED_AT_ONCE = 1024


def main() -> None:
    """Write the mean answers of the teachers to pairs of statements, and of triggers and actions."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.teach", description=__doc__)
    for name in ("data", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--teachers", type=int, default=TEACHERS)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    random.seed(0)
    tables = read_tables(options.data)
    pieces = Pieces(tokenizer_of(options.start), options.device)
    statements, acts = questions(tables, embedder(Teacher(options.start).to(options.device), pieces))
    print(f"{len(statements)} pairs of statements, {len(acts)} of triggers and actions", flush=True)  # noqa: T201
    outcome, does = torch.zeros(len(statements), HEADS["outcome"]), torch.zeros(len(acts))
    for seed in range(1, options.teachers + 1):
        teacher = taught(options.start, tables, pieces, seed, options.epochs)
        torch.save(teacher.state_dict(), options.out.with_suffix(f".{seed}.pt"))
        outcome += functional.softmax(scored(teacher, pieces, statements, ANSWERED_AT_ONCE)[:, : HEADS["outcome"]], 1)
        does += torch.sigmoid(scored(teacher, pieces, acts, ANSWERED_AT_ONCE)[:, HEADS["outcome"]])
        save(options.out, statements, acts, outcome / seed, does / seed)


def save(
    path: Path, statements: Sequence[tuple[str, str]], acts: Sequence[tuple[str, str]], outcome: Tensor, does: Tensor
) -> None:
    """Write the pairs as places in a list of texts, and what was answered."""
    texts = {text: at for at, text in enumerate(dict.fromkeys(text for pair in [*statements, *acts] for text in pair))}
    np.savez_compressed(
        path,
        texts=np.frombuffer(json.dumps([*texts]).encode(), np.uint8),
        statements=np.array([[texts[text] for text in pair] for pair in statements], np.int32),
        actions=np.array([[texts[text] for text in pair] for pair in acts], np.int32),
        outcome=outcome.numpy().astype(np.float16),
        does=does.numpy().astype(np.float16),
    )


def tokenizer_of(folder: Path) -> Tokenizer:
    """Return a teacher's tokenizer."""
    cutter = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cutter.no_truncation()
    cutter.no_padding()
    return cutter


def questions(
    tables: Tables, embedded: Callable[[Sequence[str]], Tensor]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the pairs of statements, and of triggers and actions, that the teachers answer."""
    return unlabelled(tables, embedded), unanswered_actions(tables, embedded)


def taught(folder: Path, tables: Tables, pieces: Pieces, seed: int, epochs: int) -> Teacher:
    """Return a teacher trained from the published weights."""
    random.seed(seed)
    torch.manual_seed(seed)
    teacher = Teacher(folder).to(pieces.device)
    for epoch, loss in enumerate(
        fitted(teacher, pieces, lambda: Table.of(labelled(tables), pieces), epochs=epochs, rate=RATE, batch=BATCH),
        start=1,
    ):
        print(f"teacher {seed}, epoch {epoch} of {epochs}: loss {loss:.3f}", flush=True)  # noqa: T201 (the command's output)
    return teacher


def embedder(teacher: Teacher, pieces: Pieces) -> Callable[[Sequence[str]], Tensor]:
    """Return what embeds texts as the published weights do: the mean of all states, of length 1."""

    @torch.no_grad()
    def embedded(texts: Sequence[str]) -> Tensor:
        teacher.eval()
        places = pieces.places(texts)
        order = torch.argsort(pieces.sizes[places])
        found: list[Tensor] = []
        for chosen in torch.split(places[order], ANSWERED_AT_ONCE):
            sizes = pieces.sizes[chosen].to(pieces.device)[:, None]
            at = torch.arange(int(sizes.max()) + 2, device=pieces.device)[None]
            ids = torch.full((len(chosen), at.shape[1]), teacher.separator, device=pieces.device)
            ids[:, 0], ids[:, 1:-1] = teacher.start, pieces.table[chosen.to(pieces.device), : at.shape[1] - 2].long()
            mask = (at <= sizes + 1).long()
            ids = torch.where(at == sizes + 1, teacher.separator, ids) * mask + teacher.padding * (1 - mask)
            with torch.autocast(pieces.device, dtype=torch.bfloat16, enabled=pieces.device != "cpu"):
                states = teacher.layers(input_ids=ids, attention_mask=mask).last_hidden_state
            found.append(functional.normalize(mean(states.float(), mask), dim=1))
        vectors = torch.empty(len(texts), found[0].shape[1], device=pieces.device)
        vectors[order.to(pieces.device)] = torch.cat(found)
        return vectors.to(torch.bfloat16)

    return embedded


if __name__ == "__main__":
    main()
