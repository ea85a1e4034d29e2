"""Stores for a whole night: facts with repeats and new values, episodes of every age, and what was recalled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Any

import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks.drawn_memories import SPACE, Drawn, DrawnEmbedder, World
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.language.minilm import Vectors, unit_rows
from nous_online.language.pairs.slots import slot_key
from nous_pipelines.nights import end_of

SQL = statements("benchmarks", "drawn_nights.sql")
REPEAT_SHARE, UPDATE_SHARE = 0.03, 0.01
"""Of a hundred facts three say what another said, and one gives a thing another value."""
REPEAT_CLOSENESS, UPDATE_CLOSENESS = 0.985, 0.95
"""Cosines to what they repeat or change, as MiniLM gives such pairs."""
QUESTION_CLOSENESS = 0.7
"""Cosine of a question to the fact that answers it."""
FACT_DAYS, EPISODE_DAYS = 100, 120
RECALLS_PER_1000 = 20
RESULTS, CITED = 10, 1
EPISODE_SENTENCES = 12
COLUMNS = ("content", "subject", "slot", "learned_at", "embedding")
THINGS = "The {} port of {} is {}."


@dataclass(frozen=True)
class Facts:
    """What one agent learned: texts, slots, moments and vectors, row by row."""

    texts: list[str]
    slots: list[str | None]
    moments: list[datetime]
    vectors: Vectors

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the columns of each fact."""
        for text, slot, moment, vector in zip(self.texts, self.slots, self.moments, self.vectors, strict=True):
            yield text, None, slot, moment, Vector(vector)


def drawn_facts(world: World, count: int, *, until: datetime, days: float, seed: int) -> Facts:
    """Draw `count` facts learned in the `days` before a moment, repeats and new values among them."""
    rng = np.random.default_rng(seed)
    repeats, updates = int(count * REPEAT_SHARE), int(count * UPDATE_SHARE)
    drawn = world.memories(count - repeats - 2 * updates)
    repeated = rng.choice(len(drawn.texts), size=repeats, replace=False)
    words = [text.split()[1] for text in drawn.texts[:updates]]
    old, new = (
        [THINGS.format(f"{word}{seed}x{place}", word, port + place) for place, word in enumerate(words)]
        for port in (2000, 4000)
    )
    texts = [*drawn.texts, *(as_repeated(drawn.texts[place]) for place in repeated), *old, *new]
    about = drawn.vectors[:updates]
    vectors = np.concatenate([
        drawn.vectors,
        beside(drawn.vectors[repeated], REPEAT_CLOSENESS, rng),
        about,
        beside(about, UPDATE_CLOSENESS, rng),
    ])  # fmt: skip
    first, again = rng.uniform(0.2, 1, len(drawn.texts)), rng.uniform(0, 0.2, repeats)
    ages = np.concatenate([first, again, np.full(updates, 0.6), np.full(updates, 0.1)])
    moments = [until - timedelta(days=float(age) * days, minutes=1) for age in ages]
    return Facts(texts, [slot_key(text, None) for text in texts], moments, vectors.astype(np.float32))


def as_repeated(text: str) -> str:
    """Return a text as somebody says it the second time."""
    return f"{text[0].upper()}{text[1:]}."


def beside(vectors: Vectors, closeness: float, rng: np.random.Generator) -> Vectors:
    """Return a vector at a given cosine to each."""
    noise = rng.standard_normal(vectors.shape, dtype=np.float32)
    sideways = unit_rows(noise - np.vecdot(noise, vectors)[:, None] * vectors)
    return unit_rows(closeness * vectors + np.sqrt(1 - closeness**2) * sideways)


def store_facts(connection: psycopg.Connection, agent_id: str, facts: Facts) -> None:
    """Copy facts as an import leaves them, with words and events, the triggers for single rows being off."""
    copy_drawn(connection, facts)
    store_copy(connection, agent_id)
    connection.execute(SQL["drop_drawn"])


def copy_drawn(connection: psycopg.Connection, facts: Facts) -> None:
    """Copy facts to where those of an agent are taken from."""
    connection.execute(SQL["begin_loading"])
    connection.execute(SQL["make_drawn"])
    with connection.cursor().copy(SQL["copy_drawn"]) as copy:
        copy.set_types(("text", "text", "text", "timestamptz", "vector"))
        for row in facts.rows():
            copy.write_row(row)


def store_copy(connection: psycopg.Connection, agent_id: str) -> None:
    """Store the facts copied last as those of an agent."""
    for statement in ("store_agent", "store_facts", "store_postings", "store_word_changes", "store_events"):
        connection.execute(SQL[statement], {"agent_id": agent_id, "space_id": SPACE.id})


def store_episodes(connection: psycopg.Connection, agent_id: str, world: World, count: int, *, until: datetime) -> None:
    """Store completed episodes that ended in the months before a moment."""
    connection.execute(SQL["begin_loading"])
    drawn = world.memories(count)
    sentences = world.memories(count * EPISODE_SENTENCES).texts
    for place, (title, vector) in enumerate(zip(drawn.texts, drawn.vectors, strict=True)):
        told = sentences[place * EPISODE_SENTENCES : (place + 1) * EPISODE_SENTENCES]
        row = {
            "agent_id": agent_id,
            "title": title[:60],
            "detail": ". ".join(told),
            "summary": ". ".join(told[:4]),
            "compressed": told[0],
            "index_word": title.split()[1],
            "ended_at": until - timedelta(days=EPISODE_DAYS * (place + 1) / count),
            "embedding": Vector(vector),
            "space_id": SPACE.id,
        }
        connection.execute(SQL["store_episode"], row)
    for statement in ("store_episode_postings", "store_episode_events"):
        connection.execute(SQL[statement], {"agent_id": agent_id})


def store_recalls(connection: psycopg.Connection, agent_id: str, facts: Facts, count: int, *, until: datetime) -> None:
    """Store what was asked in the last two months, each time near a fact that was then used, and count it as usage."""
    rng = np.random.default_rng(count)
    ids = [row[0] for row in connection.execute(SQL["fact_ids"], {"agent_id": agent_id})]
    shown = (len(ids) * rng.random((count, RESULTS)) ** 3).astype(int)  # some are asked for again and again
    questions = beside(facts.vectors[shown[:, 0]], QUESTION_CLOSENESS, rng)
    for places, vector in zip(shown.tolist(), questions, strict=True):
        results = [ids[place] for place in dict.fromkeys(places)]
        row = {
            "agent_id": agent_id,
            "at": until - timedelta(days=60 * float(rng.random())),
            "query": f"what of {facts.texts[places[0]]}",
            "embedding": Vector(vector),
            "space_id": SPACE.id,
            "results": results,
            "cited": results[:CITED],
        }
        connection.execute(SQL["store_recall"], row)
    connection.execute(SQL["count_usage"], {"agent_id": agent_id})


def fill(url: str, agents: dict[str, int], *, episodes: int, night: date) -> None:
    """Store facts, episodes and recalls of some agents as they are at the end of a night, then the indexes."""
    until, world = end_of(night), World(seed=len(agents))
    with psycopg.connect(url) as connection:
        register_vector(connection)
        connection.execute(SQL["store_space"], {"id": SPACE.id, "dimensions": SPACE.dimensions})
        for seed, (agent_id, count) in enumerate(agents.items()):
            facts = drawn_facts(world, count, until=until, days=FACT_DAYS, seed=seed)
            store_facts(connection, agent_id, facts)
            store_recalls(connection, agent_id, facts, count * RECALLS_PER_1000 // 1000, until=until)
            if episodes:
                store_episodes(connection, agent_id, world, episodes, until=until)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in ("allow_memory", "index_space", "vacuum"):
            connection.execute(SQL[statement])


def learn_facts(url: str, agents: dict[str, int], *, share: float, night: date) -> None:
    """Let each agent learn on the day of a night, through `Heart.learn`, as much as `add_facts` would store."""
    world = World(seed=98)
    with closing(Database(url, max_connections=1)) as database:
        for seed, (agent_id, count) in enumerate(agents.items()):
            facts = drawn_facts(world, int(count * share), until=end_of(night), days=0.9, seed=20_000 + seed)
            embedder = DrawnEmbedder(Drawn(facts.texts, facts.vectors))
            with Heart.open(agent_id, database=database, embedder=embedder, works_in_background=False) as heart:
                for text, moment in sorted(zip(facts.texts, facts.moments, strict=True), key=itemgetter(1)):
                    heart.learn(text, learned_at=moment)


def add_facts(url: str, agents: dict[str, int], *, share: float, night: date) -> None:
    """Import what each agent learned on the day of a night: a share of what it knew, with repeats and new values."""
    world = World(seed=99)
    with psycopg.connect(url) as connection:
        register_vector(connection)
        for seed, (agent_id, count) in enumerate(agents.items()):
            facts = drawn_facts(world, int(count * share), until=end_of(night), days=0.9, seed=10_000 + seed)
            store_facts(connection, agent_id, facts)
