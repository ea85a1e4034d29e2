"""The networks as PyTorch knows them: the pair reader, MiniLM's six layers over both statements, and its teachers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MPNetModel

from training.pairs.fitting import HEADS

WIDTH, VIEWS, LAYERS, INNER = 384, 12, 6, 1536
WORDS, PLACES = 30_522, 512
READ = ("outcome", "does")
"""The heads of the reader; the others only shape the layers of a teacher."""
PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "after_attention": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "after_inner": "output.LayerNorm",
}
"""Names of a layer's parts here and in the weights one starts from."""


class Layer(nn.Module):
    """One layer of BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.after_attention, self.after_inner = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the next states (pairs, tokens, width); `mask` is 0 where a token may be seen, else very low."""
        rows = x.shape[0]
        query, key, value = (
            part(x).view(rows, -1, VIEWS, WIDTH // VIEWS).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        weights = self.drop(torch.softmax(query @ key.transpose(-1, -2) / (WIDTH // VIEWS) ** 0.5 + mask, -1))
        seen = (weights @ value).transpose(1, 2).reshape(rows, -1, WIDTH)
        x = self.after_attention(x + self.drop(self.out(seen)))
        return self.after_inner(x + self.drop(self.down(functional.gelu(self.up(x)))))


class Network(nn.Module):
    """The reader: scores of seven outcomes, and of an action that does what a trigger warns of."""

    start, separator, padding, separators = 101, 102, 0, 1
    """Word pieces around the texts: [CLS] one [SEP] other [SEP]."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.place, self.side = (
            nn.Embedding(WORDS, WIDTH),
            nn.Embedding(PLACES, WIDTH),
            nn.Embedding(2, WIDTH),
        )
        self.first = nn.LayerNorm(WIDTH, eps=1e-12)
        self.drop = nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.both = nn.Linear(5 * WIDTH, WIDTH)
        self.heads = nn.ModuleDict({head: nn.Linear(WIDTH, HEADS[head]) for head in READ})

    def start_from(self, path: Path) -> None:
        """Take the weights of all-MiniLM-L6-v2 (an .npz by their published names), the heads aside."""
        stored: dict[str, Any] = dict(np.load(path))
        tensors = {name: torch.tensor(value, dtype=torch.float32) for name, value in stored.items()}
        self.word.weight.data.copy_(tensors["embeddings.word_embeddings.weight"])
        self.place.weight.data.copy_(tensors["embeddings.position_embeddings.weight"])
        sides = tensors["embeddings.token_type_embeddings.weight"]
        # Only the first was trained: both start alike, but for a little noise that tells the sides apart.
        self.side.weight.data.copy_(torch.stack([sides[0], sides[0] + 0.02 * torch.randn(WIDTH)]))
        for parameter in ("weight", "bias"):
            getattr(self.first, parameter).data.copy_(tensors[f"embeddings.LayerNorm.{parameter}"])
            for number, layer in enumerate(self.layers):
                for own, theirs in PARTS.items():
                    part = getattr(layer, own)
                    getattr(part, parameter).data.copy_(tensors[f"encoder.layer.{number}.{theirs}.{parameter}"])

    def forward(self, ids: Tensor, sides: Tensor, mask: Tensor) -> Tensor:
        """Return the scores of all heads side by side (pairs, 8); `sides` is 1 for tokens of the later statement."""
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        x = self.drop(self.first(self.word(ids) + self.place(places) + self.side(sides)))
        hidden = (1.0 - mask.to(x.dtype))[:, None, None, :] * -1e4
        for layer in self.layers:
            x = layer(x, hidden)
        both = self.drop(torch.tanh(self.both(self.drop(joined(x, sides, mask)))))
        return torch.cat([self.heads[head](both) for head in READ], 1)


class Teacher(nn.Module):
    """A network five times as large, from all-mpnet-base-v2, with the same heads over the same view of both texts."""

    start, separator, padding, separators = 0, 2, 1, 2
    """Word pieces around the texts: <s> one </s></s> other </s>."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.layers = MPNetModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager")
        width = self.layers.config.hidden_size
        self.drop = nn.Dropout(0.1)
        self.both = nn.Linear(5 * width, width)
        self.heads = nn.ModuleDict({head: nn.Linear(width, columns) for head, columns in HEADS.items()})

    def forward(self, ids: Tensor, sides: Tensor, mask: Tensor) -> Tensor:
        """Return the scores of all heads side by side (pairs, 12)."""
        x = self.layers(input_ids=ids, attention_mask=mask).last_hidden_state
        both = self.drop(torch.tanh(self.both(self.drop(joined(x, sides, mask)))))
        return torch.cat([head(both) for head in self.heads.values()], 1)


def joined(x: Tensor, sides: Tensor, mask: Tensor) -> Tensor:
    """Return the first state, the mean of each text's, how far these two are apart, and their product."""
    one, other = (mean(x, mask * chosen) for chosen in (1 - sides, sides))
    return torch.cat([x[:, 0], one, other, (one - other).abs(), one * other], 1)


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean state of the tokens a mask marks."""
    chosen = mask.unsqueeze(-1).to(states.dtype)
    return (states * chosen).sum(1) / chosen.sum(1).clamp(min=1)
