"""An agent with something of every kind, and a second embedding space for it to move to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from conftest import ScriptedJudge, ScriptedWriter, words
from psycopg.sql import SQL, Identifier

from nous_online.core.domain import KINDS, EmbeddingSpace
from nous_online.database.connection import Database, register_space
from nous_online.heart import Heart
from nous_online.language.embedding import Embedder
from nous_online.language.minilm import Vectors, unit_rows

STATEMENTS = [
    f"The {word} is deployed by team {number}" for number, word in enumerate(("api", "web", "worker", "docs"))
]


class WideEmbedder:
    """Another space than that of `WordEmbedder`, and wider: a cosine of the two can't even be computed."""

    space = EmbeddingSpace(id="words-96", model="wide words", weights_sha256="", dimensions=96)

    def __init__(self, on_embed: Callable[[], None] = lambda: None) -> None:
        self.on_embed = on_embed
        self.embedded_count = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.on_embed()
        self.embedded_count += len(texts)
        seeds = [[int.from_bytes(word.encode()[-4:], "big") for word in words(text)] for text in texts]
        rows = [
            sum((np.random.default_rng(seed).standard_normal(96) for seed in each), np.full(96, 1e-6)) for each in seeds
        ]
        return unit_rows(np.asarray(rows, dtype=np.float32).reshape(len(texts), 96))

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])[0]


@contextmanager
def as_night(database: Database) -> Iterator[Database]:
    """Open the database as the night, with the wide space known."""
    register_space(database, WideEmbedder.space, is_indexed=False)
    opened = Database(database.url, role="nous_night", max_connections=3)
    try:
        yield opened
    finally:
        opened.close()


def filled(heart: Heart) -> Heart:
    """Give an agent something of every kind, and something retired."""
    for statement in STATEMENTS:
        heart.learn(statement)
    heart.learn("Backups are kept for 30 days", context="They spoke about the backups of the api")
    heart.learn("Backups are kept for 90 days")
    heart.record_episode("We deployed the web app. It went well.", title="A deployment")
    heart.store_procedure("roll back", goals=["undo a deployment"], core_tools=["helm"])
    heart.add_censor("deploy on friday", "it failed before")
    heart.work()
    return heart


def opened(database: Database, embedder: Embedder, **details: Any) -> Heart:
    return Heart.open(
        "aria", database=database, embedder=embedder, judge=ScriptedJudge(), writer=ScriptedWriter(),
        works_in_background=False, **details,
    )  # fmt: skip


def vectors_in(owner: psycopg.Connection) -> set[tuple[str, int, int]]:
    """Return which space ids, vector widths and widths of the space itself occur among all memories."""
    query = SQL("""
        select s.id, width, s.dimensions from heart.{table} m
        join heart.embedding_spaces s on s.id = m.embedding_space_id
        cross join lateral (values (vector_dims(embedding)), (vector_dims(context_embedding))) v(width)
        where width is not null""")
    tables = [Identifier(kind.table) for kind in KINDS.values()]
    return {row for table in tables for row in owner.execute(query.format(table=table)).fetchall()}
