"""Rows to learn from, and the loop in which both the teachers and the reader are trained."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from training.pairs.network import Network, Teacher

HEADS = {"outcome": 7, "does": 1, "entailment": 3, "paraphrase": 1}
"""Columns of each head, in the order a network gives them; the product reads the first two, and teachers have all."""
COLUMNS = sum(HEADS.values())
MOST_TOKENS = 62
WARM_UP = 0.06
"""Share of the steps in which the learning rate rises; after them it falls to 0."""
RUN = 20
"""Batches cut from one sorted run, so that like lengths stand together and little is padding."""


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
        self.sizes = torch.zeros(0, dtype=torch.int32)
        """Word pieces of each text."""

    def places(self, texts: Sequence[str]) -> Tensor:
        """Return where each text stands in the table; those not seen before are cut up."""
        if new := [text for text in dict.fromkeys(texts) if text not in self.place]:
            cut = [each.ids[:MOST_TOKENS] for each in self.tokenizer.encode_batch(new, add_special_tokens=False)]
            rows = torch.tensor([[*ids, *[0] * (MOST_TOKENS - len(ids))] for ids in cut], dtype=torch.int32)
            self.place |= {text: len(self.place) + at for at, text in enumerate(new)}
            self.table = torch.cat([self.table, rows.to(self.device)])
            self.sizes = torch.cat([self.sizes, torch.tensor([len(ids) for ids in cut], dtype=torch.int32)])
        return torch.tensor([self.place[text] for text in texts])

    def pairs(self, network: Network | Teacher, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return tokens, sides and mask of pairs laid out as the network reads them, padded to the longest."""
        ones, others = self.sizes[one], self.sizes[other]
        between = network.separators
        at = torch.arange(int((ones + others).max()) + 2 + between, device=self.device)[None]
        ones, others = ones.to(self.device)[:, None], others.to(self.device)[:, None]
        begins = 1 + ones + between
        in_one, in_other = (at > 0) & (at <= ones), (at >= begins) & (at < begins + others)
        ids = torch.full((len(one), at.shape[1]), network.separator, device=self.device)
        ids[:, 0] = network.start
        from_one = self.table[one.to(self.device)].gather(1, (at - 1).clamp(0, MOST_TOKENS - 1).expand_as(ids))
        from_other = self.table[other.to(self.device)].gather(1, (at - begins).clamp(0, MOST_TOKENS - 1))
        ids = torch.where(in_one, from_one.long(), torch.where(in_other, from_other.long(), ids))
        mask = (at <= begins + others).long()
        return ids * mask + network.padding * (1 - mask), (at >= begins).long() * mask, mask


@dataclass(frozen=True)
class Table:
    """Rows as tensors: places of both texts (on the CPU), and which head, weights and targets (on the device)."""

    one: Tensor
    other: Tensor
    heads: Tensor
    """Position of each row's head in `HEADS`."""
    weights: Tensor
    targets: Tensor
    """(rows, COLUMNS), zero outside the columns of its head."""

    @classmethod
    def of(cls, rows: Sequence[Row], pieces: Pieces) -> Table:
        """Return the rows as tensors."""
        starts = dict(zip(HEADS, (sum([*HEADS.values()][:at]) for at in range(len(HEADS))), strict=True))
        wanted = [[0.0] * starts[row.head] + [*row.target] for row in rows]
        return cls(
            pieces.places([row.first for row in rows]),
            pieces.places([row.second for row in rows]),
            torch.tensor([[*HEADS].index(row.head) for row in rows]).to(pieces.device),
            torch.tensor([row.weight for row in rows]).to(pieces.device),
            torch.tensor([[*each, *[0.0] * (COLUMNS - len(each))] for each in wanted]).to(pieces.device),
        )

    def __len__(self) -> int:
        return len(self.one)

    def sample(self, count: int) -> Table:
        """Return so many rows, drawn without replacement; all, where there are no more."""
        at = torch.randperm(len(self))[:count]
        there = at.to(self.heads.device)
        return Table(self.one[at], self.other[at], self.heads[there], self.weights[there], self.targets[there])

    def with_more(self, other: Table) -> Table:
        """Return the rows of both."""
        return Table(*(torch.cat([getattr(self, each.name), getattr(other, each.name)]) for each in fields(Table)))


def fitted(
    network: Network | Teacher, pieces: Pieces, draw: Callable[[], Table], *, epochs: int, rate: float, batch: int
) -> Iterator[float]:
    """Train for some epochs, each over rows drawn anew; yield the mean loss of each."""
    table = draw()
    steps = math.ceil(len(table) / batch) * epochs
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=pieces.device != "cpu"
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
    )
    for epoch in range(epochs):
        table = draw() if epoch else table
        total, batches = torch.zeros((), device=pieces.device), batched(table, pieces, batch)
        network.train()
        for chosen in batches:
            with torch.autocast(pieces.device, dtype=torch.bfloat16, enabled=pieces.device != "cpu"):
                scores = network(*pieces.pairs(network, table.one[chosen], table.other[chosen]))
            loss = loss_of(scores.float(), table, chosen.to(pieces.device))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.detach()
        yield float(total) / len(batches)


def batched(table: Table, pieces: Pieces, batch: int) -> list[Tensor]:
    """Return the places of rows in batches of like length, in random order."""
    order = torch.randperm(len(table))
    sizes = (pieces.sizes[table.one] + pieces.sizes[table.other])[order]
    found: list[Tensor] = []
    for start in range(0, len(order), batch * RUN):
        by_size = torch.argsort(sizes[start : start + batch * RUN], stable=True)
        found += torch.split(order[start : start + batch * RUN][by_size], batch)
    random.shuffle(found)
    return found


def loss_of(scores: Tensor, table: Table, chosen: Tensor) -> Tensor:
    """Return the loss of a batch: each row counts for the head it is about."""
    total, start = torch.zeros((), device=scores.device), 0
    for place, columns in enumerate(HEADS.values()):
        own, targets = (each[:, start : start + columns] for each in (scores, table.targets[chosen]))
        start += columns
        if not own.shape[1]:
            break  # the reader has no head that learns from public sets
        if columns == 1:
            each = functional.binary_cross_entropy_with_logits(own, targets, reduction="none")[:, 0]
        else:
            each = -(targets * functional.log_softmax(own, 1)).sum(1)
        total = total + (each * table.weights[chosen] * (table.heads[chosen] == place)).sum()
    return total / len(chosen)


@torch.no_grad()
def scored(network: Network | Teacher, pieces: Pieces, texts: Sequence[tuple[str, str]], batch: int) -> Tensor:
    """Return the scores of pairs of texts, in their order (pairs, columns), on the CPU."""
    network.eval()
    one, other = (pieces.places(side) for side in zip(*texts, strict=True))
    order = torch.argsort(pieces.sizes[one] + pieces.sizes[other], stable=True)
    found: list[Tensor] = []
    for chosen in torch.split(order, batch):
        with torch.autocast(pieces.device, dtype=torch.bfloat16, enabled=pieces.device != "cpu"):
            found.append(network(*pieces.pairs(network, one[chosen], other[chosen])).float())
    scores = torch.empty(len(texts), found[0].shape[1])
    scores[order] = torch.cat(found).cpu()
    return scores
