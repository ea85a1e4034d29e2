"""The networks as PyTorch knows them: layers over both texts at once, few for the reader, many for its teachers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

HEADS = {"outcome": 7, "does": 1, "entailment": 3, "paraphrase": 1}
"""Columns of each head, in the order a network gives them; the product reads the first two, and teachers have all."""
READ = ("outcome", "does")
"""The heads of the reader; the others only shape the layers of a teacher."""
START, END, PAD, UNKNOWN = 101, 102, 0, 100
"""Word pieces around the texts, after them, and for what is no word piece."""
WORDS = 30_522
WIDTH_OF_A_VIEW = {384: 32, 768: 64}
LONGEST = 136
"""Word pieces of two texts and of what stands around them, rounded up to a multiple of 8."""
EXITS = (2, 3)
"""Layers of the reader after which it also answers, so that a pair about two things need not be read to the end."""
EXIT_WIDTH = 96
GROWN_FROM = (0, 1, 2, 3, 3, 4, 4, 5, 5)
"""Which of the six layers of all-MiniLM-L6-v2 each of the reader's starts as, once those are trained."""
BLOCK, BITS = 32, 4
"""Values of the reader's word pieces that share a scale, and bits of each of them."""
CLIPPED = (1.0, 0.95, 0.9, 0.85)
"""Shares of a block's largest value that its scale may reach to: the one with the least error is taken."""


@dataclass(frozen=True)
class Shape:
    """What tells the reader's network from a teacher's."""

    width: int
    layers: int
    separators: int
    """Word pieces between the texts."""
    heads: tuple[str, ...]
    exits: tuple[int, ...]
    drop: float
    parts: Mapping[str, str]
    """Names of a layer's parts here and in the weights one starts from."""


def parts(query: str, key: str, value: str, out: str, norm: str) -> dict[str, str]:
    """Return the names of a layer's parts."""
    return {
        "query": query, "key": key, "value": value, "out": out, "after_attention": norm, "up": "intermediate.dense",
        "down": "output.dense", "after_inner": "output.LayerNorm",
    }  # fmt: skip


BERT = parts(
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    "attention.output.dense",
    "attention.output.LayerNorm",
)
MPNET = parts(*(f"attention.attn.{name}" for name in "qkvo"), "attention.LayerNorm")
READER = Shape(384, len(GROWN_FROM), 1, READ, EXITS, 0.0, BERT)
"""Nothing is dropped: the teachers' answers are too many to be learned by heart."""
UNGROWN = replace(READER, layers=6)
"""all-MiniLM-L6-v2, of which the reader is made."""
TEACHER = Shape(768, 12, 2, tuple(HEADS), (), 0.1, MPNET)
"""all-mpnet-base-v2, five times as large."""


class Layer(nn.Module):
    """One layer of BERT."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.views, self.share = width // WIDTH_OF_A_VIEW[width], shape.drop
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.after_attention, self.after_inner = (nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.drop = nn.Dropout(shape.drop)

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """Return the next states (pairs, tokens, width); `seen` is added to the weights: very low for what is none."""
        query, key, value = (
            part(x).unflatten(-1, (self.views, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        if torch.onnx.is_in_onnx_export():
            found = torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5, -1) @ value
        else:
            share = self.share if self.training else 0.0
            found = functional.scaled_dot_product_attention(query, key, value, seen, dropout_p=share)
        x = self.after_attention(x + self.drop(self.out(found.transpose(1, 2).flatten(2))))
        return self.after_inner(x + self.drop(self.down(functional.gelu(self.up(x)))))


class Head(nn.Module):
    """Scores of a pair from its states: all heads side by side."""

    def __init__(self, shape: Shape, inner: int) -> None:
        super().__init__()
        self.both, self.drop = nn.Linear(5 * shape.width, inner), nn.Dropout(shape.drop)
        self.scores = nn.Linear(inner, sum(HEADS[head] for head in shape.heads))

    def forward(self, x: Tensor, sides: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores (pairs, columns), and what they are read off (pairs, inner)."""
        both = torch.tanh(self.both(self.drop(joined(x, sides, mask))))
        return self.scores(self.drop(both)), both


class First(nn.Module):
    """Word pieces to states: their own vector, that of their place, and of their side."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.word, self.place, self.side = (nn.Embedding(rows, shape.width) for rows in (WORDS, LONGEST, 2))
        self.norm, self.drop = nn.LayerNorm(shape.width, eps=1e-12), nn.Dropout(shape.drop)

    def forward(self, ids: Tensor, sides: Tensor) -> Tensor:
        """Return the states before the first layer; `sides` is 1 for tokens of the later text."""
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        return self.drop(self.norm(self.word(ids) + self.place(places) + self.side(sides)))


class Network(nn.Module):
    """Scores of seven outcomes, of an action that does what a trigger warns of, and in a teacher of public sets."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.first = First(shape)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.head = Head(shape, shape.width)
        self.exits = nn.ModuleList(Head(shape, EXIT_WIDTH) for _ in shape.exits)
        self.like = nn.Linear(shape.width, TEACHER.width)
        """To what a teacher's answer is read off; learned from and not shipped."""
        views = shape.width // WIDTH_OF_A_VIEW[shape.width] if shape is TEACHER else 1
        self.register_buffer("nearness", torch.zeros(views, LONGEST, LONGEST))

    def forward(self, ids: Tensor, sides: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return the scores (pairs, columns), what they are read off, and the scores of each exit."""
        x = self.first(ids, sides)
        seen = self.seen(mask, x.dtype)
        early: list[Tensor] = []
        for number, layer in enumerate(self.layers, start=1):
            x = layer(x, seen)
            if number in self.shape.exits:
                early.append(self.exits[len(early)](x, sides, mask)[0])
        return (*self.head(x, sides, mask), early)

    def seen(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        """Return what is added to the weights of tokens: very little for what is none, in a teacher by distance."""
        found = (1.0 - mask.to(dtype))[:, None, None, :] * -1e4
        if self.shape is not TEACHER:
            return found
        return found + self.nearness[None, :, : mask.shape[1], : mask.shape[1]].to(dtype)

    def start_from(self, path: Path) -> None:
        """Take published weights (a .safetensors), the heads aside."""
        stored = load_file(path)
        words, places = (stored[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position"))
        if self.shape is TEACHER:
            words, places = as_in_bert(words), places[2:]
            self.nearness.copy_(nearness(stored["encoder.relative_attention_bias.weight"]))
        self.first.word.weight.data.copy_(words)
        self.first.place.weight.data.copy_(places[:LONGEST])
        side = stored.get("embeddings.token_type_embeddings.weight", torch.zeros(1, self.shape.width))[0]
        # Only one side was trained: both start alike, but for a little noise that tells them apart.
        self.first.side.weight.data.copy_(torch.stack([side, side + 0.02 * torch.randn(self.shape.width)]))
        for parameter in ("weight", "bias"):
            getattr(self.first.norm, parameter).data.copy_(stored[f"embeddings.LayerNorm.{parameter}"])
            for number, layer in enumerate(self.layers):
                for own, theirs in self.shape.parts.items():
                    part = getattr(layer, own)
                    getattr(part, parameter).data.copy_(stored[f"encoder.layer.{number}.{theirs}.{parameter}"])

    def grown(self) -> Network:
        """Return the reader: these layers, the later ones twice, above vectors of word pieces in `BITS` bits."""
        found = Network(READER)
        kept = {name: value for name, value in self.state_dict().items() if not name.startswith("layers.")}
        found.load_state_dict(kept, strict=False)
        for layer, place in zip(found.layers, GROWN_FROM, strict=True):
            layer.load_state_dict(self.layers[place].state_dict())
        found.first.word.weight.data.copy_(restored(*rounded(found.first.word.weight.data.float())))
        found.first.word.weight.requires_grad_(requires_grad=False)
        return found.to(self.nearness.device)

    def embedded(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return what the published weights say of texts: the mean of their last states, of length 1."""
        x = self.first(ids, torch.zeros_like(ids))
        seen = self.seen(mask, x.dtype)
        for layer in self.layers:
            x = layer(x, seen)
        return functional.normalize(mean(x, mask), dim=1)


def rounded(words: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors in `BITS` bits as (rows, width) of int8, and the scale of each block (rows, width / BLOCK)."""
    blocks, most = words.unflatten(1, (-1, BLOCK)), 2 ** (BITS - 1) - 1
    scales = torch.stack([share * blocks.abs().amax(2).clamp(min=1e-6) / most for share in CLIPPED]).half()
    values = (blocks / scales.float()[..., None]).round().clamp(-most - 1, most)
    error = (values * scales.float()[..., None] - blocks).square().sum(3)
    best = error.argmin(0, keepdim=True)
    chosen = values.gather(0, best[..., None].expand(1, *blocks.shape))[0]
    return chosen.flatten(1).to(torch.int8), scales.gather(0, best)[0]


def restored(values: Tensor, scales: Tensor) -> Tensor:
    """Return the vectors that `rounded` stands for."""
    return values.float() * scales.float().repeat_interleave(BLOCK, 1)


def as_in_bert(words: Tensor) -> Tensor:
    """Return MPNet's vectors of word pieces in BERT's order: four places earlier, but for the special ones."""
    found = words[4 : WORDS + 4].clone()
    for place, theirs in ((START, 0), (PAD, 1), (END, 2), (UNKNOWN, 3)):
        found[place] = words[theirs]
    return found


def nearness(bias: Tensor) -> Tensor:
    """Return what MPNet adds to a weight by the distance of two tokens (views, tokens, tokens), from (buckets, views).

    Distances up to 7 have a bucket each, farther ones share logarithmic ones up to 128; before and after differ.
    """
    half, at = len(bias) // 2, torch.arange(LONGEST)
    apart = at[:, None] - at[None]
    near = half // 2
    far = near + (torch.log(apart.abs().clamp(min=1) / near) / math.log(128 / near) * (half - near)).long()
    bucket = torch.where(apart.abs() < near, apart.abs(), far.clamp(max=half - 1)) + (apart < 0) * half
    return bias[bucket].permute(2, 0, 1)


def joined(x: Tensor, sides: Tensor, mask: Tensor) -> Tensor:
    """Return the first state, the mean of each text's, how far these two are apart, and their product."""
    one, other = (mean(x, mask * chosen) for chosen in (1 - sides, sides))
    return torch.cat([x[:, 0], one, other, (one - other).abs(), one * other], 1)


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean state of the tokens a mask marks."""
    chosen = mask.unsqueeze(-1).to(states.dtype)
    return (states * chosen).sum(1) / chosen.sum(1).clamp(min=1)
