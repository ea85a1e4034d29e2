"""The labelled pairs the model learns from: the permissively licensed sets, and sentences written for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nous_online.language.embedding import Embedder
from nous_online.language.pairs.guards import differences
from nous_online.language.pairs.pair_model import LEAST_SIMILARITY
from training.trees.sentences import Example, written_examples

DIFFERENT_BELOW = 4.0  # STS-B score (0 to 5) under which two sentences do not say the same
SAME_FROM = 4.5
FOLDED = 512  # rows multiplied at once when looking for near neighbours


class Texts(Protocol):
    """Anything with two texts."""

    @property
    def a(self) -> str: ...

    @property
    def b(self) -> str: ...


def labelled_pairs(folder: Path, *, embedder: Embedder, seed: int) -> tuple[list[Example], list[float]]:
    """Return the training pairs with their cosines: at least 0.85, no guard firing, no text of `facts_pairs.jsonl`."""
    held_out = held_out_texts(folder)
    read = [*_paws(folder), *_stsb(folder)]
    free = [pair for pair in read if not {pair.a, pair.b} & held_out]
    facts = sorted(set(_fact_texts(folder)) - held_out)
    pairs = [*free, *_neighbours(facts, embedder), *written_examples(seed)]
    similarities = cosines(pairs, embedder)
    kept = [
        (pair, similarity)
        for pair, similarity in zip(pairs, similarities, strict=True)
        if similarity >= LEAST_SIMILARITY and not differences(pair.a, pair.b)
    ]
    return [pair for pair, _ in kept], [similarity for _, similarity in kept]


def held_out_texts(folder: Path) -> set[str]:
    """Return every text of `facts_pairs.jsonl`: what is measured there was never trained on."""
    return {row[side] for row in rows(folder / "facts_pairs.jsonl") for side in ("a", "b")}


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of one file, one a line."""
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


def _paws(folder: Path) -> Iterator[Example]:
    for row in rows(folder / "pairs_paws.jsonl"):
        is_same = row["label"] == "duplicate"
        yield Example(row["a"], row["b"], is_same=is_same, source="PAWS" if is_same else "PAWS-swapped")


def _stsb(folder: Path) -> Iterator[Example]:
    for row in rows(folder / "pairs_stsb.jsonl"):
        if row["score"] < DIFFERENT_BELOW or row["score"] >= SAME_FROM:
            yield Example(row["a"], row["b"], is_same=row["score"] >= SAME_FROM, source="STS-B")


def _fact_texts(folder: Path) -> Iterable[str]:
    yield from (row["fact"] for row in rows(folder / "fc_facts.jsonl"))
    yield from (row["fact"] for row in rows(folder / "dyknow_facts.jsonl"))


def _neighbours(facts: list[str], embedder: Embedder) -> list[Example]:
    """Return every two near facts of FactConsolidation and DyKnow: no two of their facts say the same."""
    vectors = embedder.embed_documents(facts)
    found: list[Example] = []
    for start in range(0, len(facts), FOLDED):
        near = vectors[start : start + FOLDED] @ vectors.T >= LEAST_SIMILARITY
        places = ((start + int(i), int(j)) for i, j in np.argwhere(near))
        found += [Example(facts[i], facts[j], is_same=False, source="facts") for i, j in places if i < j]
    return found


def cosines(pairs: Sequence[Texts], embedder: Embedder) -> list[float]:
    """Return the cosine of each pair, every distinct text embedded once."""
    texts = sorted({text for pair in pairs for text in (pair.a, pair.b)})
    place = {text: index for index, text in enumerate(texts)}
    vectors = embedder.embed_documents(texts)
    left = vectors[[place[pair.a] for pair in pairs]]
    right = vectors[[place[pair.b] for pair in pairs]]
    return np.einsum("ij,ij->i", left, right).astype(float).tolist()
