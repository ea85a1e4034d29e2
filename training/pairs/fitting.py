"""Rows to learn from, and the loop in which both the teachers and the reader are trained."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from training.pairs.network import END, HEADS, LONGEST, START

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from training.pairs.network import Network

COLUMNS = sum(HEADS.values())
FIRST_COLUMN = dict(zip(HEADS, accumulate(HEADS.values(), initial=0), strict=False))
MOST_TOKENS = 62
WARM_UP = 0.06
"""Share of the steps in which the learning rate rises; after them it falls to 0."""
RUN = 20
"""Batches cut from one sorted run, so that like lengths stand together and little is padding."""
STEP_OF_WIDTH = 8
"""Batches are padded to a multiple of so many tokens, as the fast products of matrices want it."""
EXIT_WEIGHT, LIKE_WEIGHT = 0.2, 1.0
"""How much an early answer counts beside the last one, and being like a teacher inside."""


@dataclass(frozen=True)
class Row:
    """One example: two texts, the head it is about, the wanted chances of its columns, and how much it counts."""

    first: str
    second: str
    head: str
    target: tuple[float, ...]
    weight: float = 1.0


class Pieces:
    """Texts as word pieces on the device, each cut up once."""

    def __init__(self, tokenizer: Tokenizer, device: str) -> None:
        self.tokenizer, self.device = tokenizer, device
        self.place: dict[str, int] = {}
        self.table = torch.zeros(0, MOST_TOKENS, dtype=torch.int32, device=device)
        self.sizes = torch.zeros(0, dtype=torch.int64)
        """Word pieces of each text; on the CPU, where batches are planned."""

    def places(self, texts: Sequence[str]) -> Tensor:
        """Return where each text stands in the table; those not seen before are cut up."""
        if new := [text for text in dict.fromkeys(texts) if text not in self.place]:
            cut = [each.ids[:MOST_TOKENS] for each in self.tokenizer.encode_batch_fast(new, add_special_tokens=False)]
            sizes = np.fromiter(map(len, cut), np.int64, len(cut))
            rows = np.zeros((len(cut), MOST_TOKENS), np.int32)
            rows[np.arange(MOST_TOKENS) < sizes[:, None]] = np.fromiter(chain.from_iterable(cut), np.int32, sizes.sum())
            self.place |= {text: len(self.place) + at for at, text in enumerate(new)}
            self.table = torch.cat([self.table, torch.from_numpy(rows).to(self.device)])
            self.sizes = torch.cat([self.sizes, torch.from_numpy(sizes)])
        return torch.tensor([self.place[text] for text in texts], device=self.device)

    def pairs(self, one: Tensor, other: Tensor, between: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return tokens, sides and mask of pairs, `between` tokens parting their texts, `width` tokens in all."""
        sizes = self.table[one].count_nonzero(1), self.table[other].count_nonzero(1)
        ones, others = sizes[0][:, None], sizes[1][:, None]
        at = torch.arange(width, device=self.device)[None]
        begins = 1 + ones + between
        in_one, in_other = (at > 0) & (at <= ones), (at >= begins) & (at < begins + others)
        from_one = self.table[one].gather(1, (at - 1).clamp(0, MOST_TOKENS - 1).expand(len(one), -1))
        from_other = self.table[other].gather(1, (at - begins).clamp(0, MOST_TOKENS - 1))
        ids = torch.where(in_one, from_one, torch.where(in_other, from_other, END)).long()
        ids[:, 0] = START
        mask = (at <= begins + others).long()
        return ids * mask, (at >= begins).long() * mask, mask


@dataclass(frozen=True)
class Table:
    """Rows as tensors on the device: places of both texts, which head, how much each counts, and what is wanted."""

    one: Tensor
    other: Tensor
    heads: Tensor
    """Position of each row's head in `HEADS`."""
    weights: Tensor
    targets: Tensor
    """(rows, COLUMNS), zero outside the columns of its head."""
    like: Tensor | None = None
    """What a teacher's answers are read off (rows, width of a teacher)."""

    @classmethod
    def of(cls, rows: Sequence[Row], pieces: Pieces) -> Table:
        """Return the rows as tensors."""
        wanted = [[0.0] * FIRST_COLUMN[row.head] + [*row.target] for row in rows]
        return cls(
            pieces.places([row.first for row in rows]),
            pieces.places([row.second for row in rows]),
            torch.tensor([[*HEADS].index(row.head) for row in rows], device=pieces.device),
            torch.tensor([row.weight for row in rows], device=pieces.device),
            torch.tensor([[*each, *[0.0] * (COLUMNS - len(each))] for each in wanted], device=pieces.device),
        )

    def __len__(self) -> int:
        return len(self.one)


class Exact:
    """Weights in float32 that learn, beside those in bfloat16 that the network computes with."""

    def __init__(self, network: Network, rate: float, steps: int) -> None:
        self.used = [*network.parameters()]
        self.kept = [each.detach().float().requires_grad_() for each in self.used]
        fused = self.used[0].is_cuda
        self.optimiser = torch.optim.AdamW(self.kept, lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=fused)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: min(1.0, (step + 1) / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
        )

    def step(self, loss: Tensor) -> None:
        """Learn from the loss of one batch."""
        loss.backward()
        for kept, used in zip(self.kept, self.used, strict=True):
            kept.grad = None if used.grad is None else used.grad.float()
            used.grad = None
        torch.nn.utils.clip_grad_norm_(self.kept, 1.0)
        self.optimiser.step()
        self.schedule.step()
        with torch.no_grad():
            torch._foreach_copy_(self.used, self.kept)


def fitted(
    network: Network, pieces: Pieces, draw: Callable[[], Table], *, epochs: int, rate: float, batch: int
) -> Iterator[float]:
    """Train for some epochs, each over rows drawn anew, and yield the mean loss of each; leaves bfloat16 weights."""
    table = draw()
    exact = Exact(network.bfloat16().train(), rate, math.ceil(len(table) / batch) * epochs)
    for epoch in range(epochs):
        table = draw() if epoch else table
        total, batches = torch.zeros((), device=pieces.device), batched(table, pieces, network.shape.separators, batch)
        for chosen, width in batches:
            read = pieces.pairs(table.one[chosen], table.other[chosen], network.shape.separators, width)
            loss = loss_of(network, read, table, chosen)
            exact.step(loss)
            total += loss.detach()
        yield float(total) / len(batches)


def batched(table: Table, pieces: Pieces, between: int, batch: int) -> list[tuple[Tensor, int]]:
    """Return places of rows in batches of like length, in random order, and how many tokens wide each is."""
    order = torch.randperm(len(table))
    sizes = (pieces.sizes[table.one.cpu()] + pieces.sizes[table.other.cpu()])[order]
    found: list[tuple[Tensor, int]] = []
    for start in range(0, len(order), batch * RUN):
        by_size = torch.argsort(sizes[start : start + batch * RUN], stable=True)
        run = order[start : start + batch * RUN][by_size].to(pieces.device)
        widths = [int(each[-1]) for each in torch.split(sizes[start : start + batch * RUN][by_size], batch)]
        found += zip(torch.split(run, batch), (padded(width + 2 + between) for width in widths), strict=True)
    random.shuffle(found)
    return found


def padded(width: int) -> int:
    """Return a width rounded up."""
    return min(-(-width // STEP_OF_WIDTH) * STEP_OF_WIDTH, LONGEST)


def loss_of(network: Network, read: tuple[Tensor, Tensor, Tensor], table: Table, chosen: Tensor) -> Tensor:
    """Return the loss of a batch: of the last answer, of early ones, and of how unlike a teacher it is inside."""
    scores, both, early = network(*read)
    total = loss_of_scores(scores, table, chosen)
    for each in early:
        total = total + EXIT_WEIGHT * loss_of_scores(each, table, chosen)
    if table.like is not None:
        total = total + LIKE_WEIGHT * functional.mse_loss(network.like(both).float(), table.like[chosen].float())
    return total


def loss_of_scores(scores: Tensor, table: Table, chosen: Tensor) -> Tensor:
    """Return the loss of answers: each row counts for the head it is about."""
    total, targets, heads = torch.zeros((), device=scores.device), table.targets[chosen], table.heads[chosen]
    for place, (head, start) in enumerate(FIRST_COLUMN.items()):
        own, wanted = (each[:, start : start + HEADS[head]].float() for each in (scores, targets))
        if not own.shape[1]:
            break  # the reader has no head that learns from public sets
        if own.shape[1] == 1:
            each = functional.binary_cross_entropy_with_logits(own, wanted, reduction="none")[:, 0]
        else:
            each = -(wanted * functional.log_softmax(own, 1)).sum(1)
        total = total + (each * table.weights[chosen] * (heads == place)).sum()
    return total / len(chosen)


@torch.no_grad()
def scored(network: Network, pieces: Pieces, one: Tensor, other: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """Return the scores of pairs in their order (pairs, columns), and what they are read off (pairs, width)."""
    network.eval()
    between = network.shape.separators
    sizes = pieces.sizes[one.cpu()] + pieces.sizes[other.cpu()]
    order = torch.argsort(sizes, stable=True)
    scores = torch.empty(len(one), sum(HEADS[head] for head in network.shape.heads), device=pieces.device)
    inside = torch.empty(len(one), network.shape.width, device=pieces.device, dtype=torch.bfloat16)
    for chosen in torch.split(order, batch):
        width, there = padded(int(sizes[chosen[-1]]) + 2 + between), chosen.to(pieces.device)
        found, both, _ = network(*pieces.pairs(one[there], other[there], between, width))
        scores[there], inside[there] = found.float(), both.to(torch.bfloat16)
    return scores, inside
