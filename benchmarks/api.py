"""Benchmark `api`: what HTTP costs, for learning and recalling, against the same calls in process."""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks import server
from benchmarks.drawn_memories import World
from benchmarks.intervals import of_medians
from benchmarks.online import in_turns
from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api import keys
from nous_online.language.minilm import LocalMiniLM
from nous_online.processes import child_environment, python_module

AGENT = "benchmark"
VERBS = ("recall", "learn")
STORED, QUICK_STORED = 10_000, 500
IMPORTED, CONNECTIONS = 500, 16
CALLS, QUICK_CALLS = 240, 80
BLOCK, WARM_UP = 20, 4
"""Over HTTP and in process take turns in blocks, so that both meet the same machine; the first calls warm it up."""
CLIENTS = 8
READY_S = 60.0
Call = Callable[[int], object]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Measure both verbs by both ways, by one caller and by eight."""
    stored, calls = (QUICK_STORED, QUICK_CALLS) if quick else (STORED, CALLS)
    world = World(3)
    questions, news = world.questions(calls).texts, itertools.cycle(world.memories(calls * 4).texts)
    with server() as (url, _), opened(url, world.memories(stored).texts) as heart, served(url) as (address, headers):

        def over_http(path: str, body: Callable[[int], dict[str, str]]) -> Call:
            local = threading.local()

            def call(number: int) -> object:
                if not hasattr(local, "client"):
                    local.client = httpx.Client(base_url=address, headers=headers, timeout=30)
                return local.client.post(path, json=body(number)).raise_for_status().json()

            return call

        ways: dict[str, Call] = {
            "http_recall": over_http("/recall", lambda number: {"query": questions[number % calls]}),
            "inprocess_recall": lambda number: heart.recall(questions[number % calls]),
            "http_learn": over_http("/facts", lambda _: {"content": next(news)}),
            "inprocess_learn": lambda _: heart.learn(next(news)),
        }
        times = in_turns(ways, calls, BLOCK, WARM_UP)
        rates = {name: rate(call, calls) for name, call in ways.items()}
    return {"metrics": metrics_of(times, rates), "peers": peers_of(times, rates), "notes": notes(stored, calls)}


@contextmanager
def opened(url: str, texts: list[str]) -> Iterator[Heart]:
    """Yield the agent in process, with memories as a history would leave them."""
    with closing(Database(url, max_connections=CONNECTIONS)) as database:
        heart = Heart.open(AGENT, database=database, embedder=LocalMiniLM())
        for start in range(0, len(texts), IMPORTED):
            heart.learn_deferred([(text, {}) for text in texts[start : start + IMPORTED]], deadline_s=120)
        yield heart
        heart.close()


@contextmanager
def served(url: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the address of `nous api` in a process of its own, and the headers of a caller with a key."""
    key = keys.new_key(AGENT)
    with closing(Database(url, max_connections=1)) as database, database.transaction(AGENT) as connection:
        keys.store(connection, key)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = python_module("nous_online.interfaces.cli", "api", "--port", str(port), "--rate", "10000000")
    process = subprocess.Popen(  # noqa: S603 (the command is ours)
        command,
        cwd="/",
        env=child_environment(NOUS_DATABASE_URL=url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/ready")
        yield f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {key.text}"}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=READY_S)


def wait_for(address: str) -> None:
    """Wait until the interface is ready."""
    ends_at = time.monotonic() + READY_S
    while time.monotonic() < ends_at:
        try:
            if httpx.get(address, timeout=10).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise Unavailable(f"`nous api` was not ready within {READY_S:g} s at {address}")


def rate(call: Call, calls: int) -> float:
    """Return how many calls a second eight callers get answered."""

    def several(first: int) -> None:
        for number in range(first, first + calls // CLIENTS):
            call(number)

    callers = [threading.Thread(target=several, args=(place * (calls // CLIENTS),)) for place in range(CLIENTS)]
    start = time.perf_counter()
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return calls / (time.perf_counter() - start)


def metrics_of(times: dict[str, list[float]], rates: dict[str, float]) -> dict[str, float]:
    """Return what the goals are about, and what it is made of."""
    ratios = {verb: of_medians(times[f"http_{verb}"], times[f"inprocess_{verb}"]) for verb in VERBS}
    return {
        "rest_over_inprocess_p50_ratio": max(ratios.values()),
        "requests_per_s": rates["http_recall"],
        "learns_per_s": rates["http_learn"],
        **{f"{verb}_over_inprocess_p50_ratio": ratio for verb, ratio in ratios.items()},
        **percentiles(times, "http"),
    }


def peers_of(times: dict[str, list[float]], rates: dict[str, float]) -> dict[str, float]:
    """Return the same of the calls in process."""
    return {
        "inprocess_recalls_per_s": rates["inprocess_recall"],
        "inprocess_learns_per_s": rates["inprocess_learn"],
        **percentiles(times, "inprocess"),
    }


def percentiles(times: dict[str, list[float]], way: str) -> dict[str, float]:
    """Return the middle and the slowest twentieth of one way, in milliseconds."""
    return {
        f"{way}_{verb}_p{share}_ms": float(np.percentile(times[f"{way}_{verb}"], share)) * 1000
        for verb in VERBS
        for share in (50, 95)
    }


def notes(stored: int, calls: int) -> list[str]:
    """Return what a reader must know to compare the figures."""
    return [
        f"one agent with {stored:,} drawn facts; {calls} calls of each verb by each way, in blocks of {BLOCK} that take"
        f" turns, the first {WARM_UP} of each not counted; the default embedding model on both sides",
        "over HTTP: `nous api` in a process of its own, one key, connections kept alive, the client's parsing included",
        f"rest_over_inprocess_p50_ratio: the worse of both verbs, one caller; requests_per_s: recalls by {CLIENTS}"
        " callers at once, who share the machine with the server and its database",
    ]
