"""How long an agent waits: recall and learn among 1,000 to 100,000 facts, against the bare index and a bare insert."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks import server
from benchmarks.drawn_memories import SPACE, SQL, Drawn, DrawnEmbedder, World, load
from benchmarks.intervals import of_medians
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.minilm import LocalMiniLM
from nous_online.recall.recall import refresh_statistics

AGENT = "aria"
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (1_000, 12_000)
ROUNDS, BLOCK = 6, 40
"""Bare and ours take turns in blocks: one call at a time, each would throw the other's pages out of the cache."""
WARM_UP = 20
LEARN_BLOCK = 25
THREADS, CALLS_A_THREAD = 8, 40
CENSORS, CHECKS = 1_000, 60
SHARES = (50, 95, 99)
Call = Callable[[int], object]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Measure every verb at every size, and the bare statements beside it in the same minute."""
    sizes = QUICK_SIZES if quick else SIZES
    world = World(1)
    memories, questions = world.memories(sizes[-1]), world.questions(ROUNDS * BLOCK * len(sizes))
    news, actions = world.memories(ROUNDS * LEARN_BLOCK * len(sizes)), world.memories(CENSORS + CHECKS)
    embedder = DrawnEmbedder(questions, news, actions)
    with server() as (url, _):
        metrics: dict[str, float] = {}
        for before, size in zip((0, *sizes), sizes, strict=False):
            added = Drawn(memories.texts[before:size], memories.vectors[before:size])
            load(url, {AGENT: added})
            with opened(url, embedder) as heart, bare_table(url) as bare:
                asked = recall_times(heart, bare, questions)
                learned = learn_times(heart, bare, part(news, sizes.index(size), ROUNDS * LEARN_BLOCK))
                metrics |= named(size, {**asked, **learned})
                if size == sizes[-1]:
                    metrics |= goals(asked, learned)
                    metrics["threads8_scaling_ratio"] = scaling(heart, questions)
                    metrics["censor_check_1000_ms"] = censor_check_ms(heart, actions)
    metrics["embed_ms"] = embed_ms()
    peers = {name: value for name, value in metrics.items() if name.startswith("bare_")}
    return {
        "metrics": {name: value for name, value in metrics.items() if name not in peers},
        "peers": peers,
        "notes": notes(sizes),
    }


@contextmanager
def opened(url: str, embedder: DrawnEmbedder) -> Iterator[Heart]:
    """Yield the agent as it is the morning after a night: its words counted."""
    heart = Heart.open(AGENT, database=Database(url), embedder=embedder)
    with heart.agent.database.transaction(AGENT) as connection:
        refresh_statistics(connection, AGENT)
    yield heart
    heart.agent.database.close()


@contextmanager
def bare_table(url: str) -> Iterator[psycopg.Connection]:
    """Yield a connection to a table of the same rows, with pgvector's index as it comes and nothing else."""
    with psycopg.connect(url, autocommit=True) as connection:
        register_vector(connection)
        connection.execute(SQL["allow_memory"])
        for statement in ("make_bare", "fill_bare", "index_bare", "vacuum_bare"):
            connection.execute(SQL[statement])
        yield connection
        connection.execute(SQL["drop_bare"])


def recall_times(heart: Heart, bare: psycopg.Connection, questions: Drawn) -> dict[str, list[float]]:
    """Return the seconds of each bare query and of each recall of the same question."""

    def query(number: int) -> object:
        return bare.execute(SQL["query_bare"], [Vector(questions.vectors[number])]).fetchall()

    def recall(number: int) -> object:
        return heart.recall(questions.texts[number])

    return in_turns({"bare_query": query, "recall": recall}, ROUNDS * BLOCK, BLOCK, min(WARM_UP, BLOCK // 4))


def learn_times(heart: Heart, bare: psycopg.Connection, news: Drawn) -> dict[str, list[float]]:
    """Return the seconds of a bare query and a bare insert, and of learning the same."""

    def insert(number: int) -> object:
        vector = Vector(news.vectors[number])
        bare.execute(SQL["query_bare"], [vector]).fetchall()
        return bare.execute(SQL["insert_bare"], [news.texts[number], vector])

    def learn(number: int) -> object:
        return heart.learn(news.texts[number])

    return in_turns({"bare_insert": insert, "learn": learn}, ROUNDS * LEARN_BLOCK, LEARN_BLOCK, LEARN_BLOCK // 4)


def in_turns(calls: dict[str, Call], count: int, block: int, warm_up: int) -> dict[str, list[float]]:
    """Return the seconds of each call, made in blocks that take turns; the first calls of a block warm it up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for start in range(0, count, block):
        for name, call in calls.items():
            times[name] += [timed(call, number) for number in range(start, start + block)][warm_up:]
    return times


def timed(call: Call, number: int) -> float:
    """Return the seconds of one call."""
    start = perf_counter()
    call(number)
    return perf_counter() - start


def part(drawn: Drawn, place: int, size: int) -> Drawn:
    """Return one of several equal parts of what was drawn."""
    cut = slice(place * size, (place + 1) * size)
    return Drawn(drawn.texts[cut], drawn.vectors[cut])


def named(size: int, times: dict[str, list[float]]) -> dict[str, float]:
    """Return the percentiles of each call in milliseconds, named by call, size and share."""
    return {
        f"{name}_{size // 1000}k_p{share}_ms": float(np.percentile(seconds, share)) * 1000
        for name, seconds in times.items()
        for share in SHARES
    }


def goals(asked: dict[str, list[float]], learned: dict[str, list[float]]) -> dict[str, float]:
    """Return what the goals are about."""
    return {
        "recall_p50_over_bare_ratio": of_medians(asked["recall"], asked["bare_query"]),
        "recall_p95_ms": float(np.percentile(asked["recall"], 95)) * 1000,
        "learn_over_bare_ratio": of_medians(learned["learn"], learned["bare_insert"]),
    }


def scaling(heart: Heart, questions: Drawn) -> float:
    """Return how many times as many recalls eight threads do in a second as one does; the median of several turns."""

    def rate(threads: int) -> float:
        def ask(first: int) -> None:
            for number in range(first, first + CALLS_A_THREAD):
                heart.recall(questions.texts[number % len(questions.texts)])

        workers = [threading.Thread(target=ask, args=(place * CALLS_A_THREAD,)) for place in range(threads)]
        start = perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return threads * CALLS_A_THREAD / (perf_counter() - start)

    rate(THREADS)  # opens the connections
    return median(rate(THREADS) / rate(1) for _ in range(ROUNDS))


def censor_check_ms(heart: Heart, actions: Drawn) -> float:
    """Return the median milliseconds of checking an action against a thousand censors, recorded as in earnest."""
    for trigger in actions.texts[:CENSORS]:
        heart.add_censor(trigger, "it was drawn")
    checked = actions.texts[CENSORS:]
    return median(timed(lambda number: heart.check_censors(checked[number]), number) for number in range(CHECKS)) * 1000


def embed_ms() -> float:
    """Return the median milliseconds the default model takes for a question, after the first."""
    model, questions = LocalMiniLM(), World(2).questions(WARM_UP).texts
    model.embed_query(questions[0])
    return (
        median(timed(lambda number: model.embed_query(questions[number]), number) for number in range(WARM_UP)) * 1000
    )


def notes(sizes: tuple[int, ...]) -> list[str]:
    """Return what a reader must know to compare the figures."""
    return [
        f"facts of one agent, {', '.join(f'{size:,}' for size in sizes)}; texts and vectors of width {SPACE.dimensions}"
        " drawn, clustered by topic and word; the goals are about the largest size",
        "recall: Heart.recall among all kinds, ten answers, logged and counted; the embedding is looked up",
        "bare query: order by embedding <=> $1 limit 10 on a table of the same rows with pgvector's default HNSW index,"
        " through the same driver; bare insert: that query and an insert into that table, committed",
        f"medians of {ROUNDS} blocks that take turns; the first calls of a block are not counted",
        "embed_ms: the default model, one question; it comes on top of every recall and learn",
    ]
