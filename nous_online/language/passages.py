"""What of a memory is embedded for recall: the whole, each of its sentences, and what was said around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from nous_online.language.minilm import Vectors

BOUNDARY = re.compile(r"(?<=[.!?])\s+|\n+")
SHORTEST_PASSAGE = 40  # characters; a shorter sentence ("Wow!") says too little alone and joins the next one
MOST_PASSAGES = 32  # what embedding one memory may cost; a longer text keeps its first passages, and all of its words
CONTEXT_SHARE = 0.25  # length of the context's direction beside that of the memory's own


def sentences(content: str, subject: str | None) -> list[str]:
    """Return the sentences of `content`, each with its subject before it: "She moved" names nobody."""
    pieces: list[str] = []
    for piece in filter(None, map(str.strip, BOUNDARY.split(content))):
        if pieces and len(pieces[-1]) < SHORTEST_PASSAGE:
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
    return [about(subject, piece) for piece in pieces[:MOST_PASSAGES] or [content]]


def surroundings(context: str | None) -> list[str]:
    """Return the lines of a context: one passage for each thing said around the memory."""
    return [line.strip() for line in (context or "").splitlines() if line.strip()][:MOST_PASSAGES]


def about(subject: str | None, text: str) -> str:
    """Return `text` opened by its subject, unless it opens with it already."""
    if not subject or text.casefold().startswith(subject.casefold()):
        return text
    return f"{subject}: {text}"


def passages(content: str, subject: str | None, context: str | None) -> list[str]:
    """Return every text whose vector `recall_vector` needs."""
    return [content, *sentences(content, subject), *surroundings(context)]


def recall_vector(
    content: str, subject: str | None, context: str | None, vectors: Mapping[str, Vectors]
) -> Vectors | None:
    """Return the unit vector a memory is recalled by, or None where it is that of its content.

    It is content + mean of its sentences + a quarter of the mean of its surroundings, each of length one: the mean
    of a few short texts keeps what one vector of a long text drowns. `vectors` holds a unit vector for every passage.
    """
    own, around = sentences(content, subject), surroundings(context)
    if own == [content] and not around:
        return None
    blend = direction([vectors[content], direction([vectors[text] for text in own])])
    if around:
        blend = direction([blend, CONTEXT_SHARE * direction([vectors[text] for text in around])])
    return blend


def direction(vectors: Sequence[Vectors]) -> Vectors:
    """Return the unit vector along the sum of `vectors`; opposite ones that cancel out give the first."""
    total = np.stack(vectors).sum(axis=0, dtype=np.float32)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if length > 0 else vectors[0]
