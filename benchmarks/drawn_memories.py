"""Memories drawn, not written: sentences with words as uneven as real ones, and vectors that follow the words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector

from nous_online.core.domain import EmbeddingSpace
from nous_online.database.connection import prepare
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors, tokenizer, unit_rows

SQL = statements("benchmarks", "drawn_memories.sql")
SPACE = EmbeddingSpace(id="drawn-384", model="drawn", weights_sha256="", dimensions=384)
WORDS, THEMES, TOPICS, TOPIC_WORDS = 20_000, 40, 2_000, 60
"""Topics belong to themes: no walk finds its way between clusters that have nothing in common, and an index misses ten
times as many neighbours there as among real sentences."""
TOPIC_DECAY = 0.7
"""How unevenly topics are spoken of: the first of them in three memories of a hundred. Words follow Zipf's law."""
MOST_COMMON, SHORTEST = 1000, 3
"""What stands at the head of the vocabulary joins other words or denies them, and says nothing alone."""
FRAME = "the {} {} of {} {} is {} when {} {} has a {} {} and {}"
QUESTION = "when does the {} {} of {} have a {}?"
SPECTRUM_DECAY = 0.4
"""How fast the spread of the vectors falls from direction to direction: rank to the power of -0.40, as measured on the
embeddings of 31,000 sentences of public sets."""
TOPIC_SHARE, CHANCE_SHARE = 0.7, 0.4
"""Lengths of the direction of a topic and of chance beside that of the words."""
CHUNK = 4096


@dataclass(frozen=True)
class Drawn:
    """Texts and the unit vector of each."""

    texts: list[str]
    vectors: Vectors


class World:
    """What can be spoken of: words of a Zipfian frequency, and topics that prefer some of them."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._words = known_words(WORDS)
        self._directions = self._drawn_directions(WORDS)
        themes = self._drawn_directions(THEMES)[self._rng.integers(THEMES, size=TOPICS)]
        self._topics = unit_rows(themes + self._drawn_directions(TOPICS))
        self._own = self._rng.integers(WORDS, size=(TOPICS, TOPIC_WORDS))

    def memories(self, count: int) -> Drawn:
        """Draw what an agent might learn: about seventy characters, ten words that carry meaning."""
        return self._drawn(FRAME, count, own=6, any_topic=4)

    def questions(self, count: int) -> Drawn:
        """Draw what it might ask."""
        return self._drawn(QUESTION, count, own=3, any_topic=1)

    def _drawn(self, frame: str, count: int, *, own: int, any_topic: int) -> Drawn:
        topics = self._uneven(TOPICS, (count, 1), TOPIC_DECAY)
        of_topic = self._own[topics, self._uneven(TOPIC_WORDS, (count, own))]
        chosen = np.concatenate([of_topic, self._uneven(WORDS, (count, any_topic))], axis=1)
        starts = range(0, count, CHUNK)
        vectors = [self._vectors(topics[at : at + CHUNK, 0], chosen[at : at + CHUNK]) for at in starts]
        return Drawn([frame.format(*(self._words[word] for word in row)) for row in chosen], np.concatenate(vectors))

    def _vectors(self, topics: NDArray[np.int64], chosen: NDArray[np.int64]) -> Vectors:
        words = unit_rows(self._directions[chosen].sum(axis=1))
        chance = self._drawn_directions(len(words))
        return unit_rows(words + TOPIC_SHARE * self._topics[topics] + CHANCE_SHARE * chance)

    def _drawn_directions(self, count: int) -> Vectors:
        scale = np.arange(1, SPACE.dimensions + 1, dtype=np.float32) ** -SPECTRUM_DECAY
        return unit_rows(self._rng.standard_normal((count, SPACE.dimensions), dtype=np.float32) * scale)

    def _uneven(self, size: int, shape: tuple[int, int], decay: float = 1.0) -> NDArray[np.int64]:
        shares = np.arange(1, size + 1) ** -decay
        return np.searchsorted(np.cumsum(shares / shares.sum()), self._rng.random(shape)).clip(max=size - 1)


class DrawnEmbedder:
    """An embedder that knows the vectors of what was drawn, so that only the memory is measured."""

    space = SPACE

    def __init__(self, *known: Drawn) -> None:
        self._known = {text: row for drawn in known for text, row in zip(drawn.texts, drawn.vectors, strict=True)}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the drawn vectors; what was not drawn lies where nothing does."""
        nowhere = np.eye(1, SPACE.dimensions, dtype=np.float32)[0]
        return np.stack([self._known.get(text, nowhere) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Return the drawn vector of one question."""
        return self.embed_documents([text])[0]


def known_words(count: int) -> list[str]:
    """Return whole words of the default model's vocabulary, the common ones first.

    A judge reads what is learned, and an invented word is three pieces to it where a real one is hardly more than one.
    """
    places = sorted((place, piece) for piece, place in tokenizer().get_vocab().items())
    words = [piece for _, piece in places if piece.isascii() and piece.isalpha() and len(piece) >= SHORTEST]
    return words[MOST_COMMON : MOST_COMMON + count]


def load(url: str, agents: dict[str, Drawn]) -> None:
    """Store what was drawn as active facts of each agent, with words and events, then the indexes over vectors.

    The triggers that do this for a single row are off meanwhile: set by set takes seconds instead of minutes.
    """
    prepare(url)
    with psycopg.connect(url, autocommit=True) as connection:
        register_vector(connection)
        connection.execute(SQL["forget_indexes"])
        with connection.transaction():
            connection.execute(SQL["begin_loading"])
            connection.execute(SQL["store_space"], {"id": SPACE.id, "dimensions": SPACE.dimensions})
            for agent_id, drawn in agents.items():
                store(connection, agent_id, drawn)
        for statement in ("index_space", "vacuum_facts", "vacuum_postings", "vacuum_events"):
            connection.execute(SQL["allow_memory"])
            connection.execute(SQL[statement])


def store(connection: psycopg.Connection, agent_id: str, drawn: Drawn) -> None:
    """Copy the facts of one agent, and derive from them what the triggers would have."""
    key = {"agent_id": agent_id, "space_id": SPACE.id}
    connection.execute(SQL["store_agent"], key)
    connection.execute(SQL["make_drawn"])
    with connection.cursor().copy(SQL["copy_drawn"]) as copy:
        copy.set_types(("text", "vector"))
        for row in rows(drawn):
            copy.write_row(row)
    for statement in ("store_facts", "store_postings", "store_events", "drop_drawn"):
        connection.execute(SQL[statement], key if statement == "store_facts" else {"agent_id": agent_id})


def rows(drawn: Drawn) -> Iterator[tuple[str, Vector]]:
    """Yield the columns of each drawn memory."""
    for text, vector in zip(drawn.texts, drawn.vectors, strict=True):
        yield text, Vector(vector)
