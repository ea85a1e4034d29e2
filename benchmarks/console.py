"""Benchmark `console`: how long a person waits for each page among 100,000 memories."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import httpx
import numpy as np
import psycopg

from benchmarks import server
from benchmarks.drawn_memories import Drawn, DrawnEmbedder, World, load
from benchmarks.online import opened
from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.console.console_server import serve
from nous_online.interfaces.console.rendering import ConsoleState

AGENT = "aria"
SQL = statements("benchmarks", "console.sql")
STORED, QUICK_STORED = 100_000, 5_000
VISITS, QUICK_VISITS, WARM_UP = 60, 15, 3
NIGHTS, PROPOSALS = 90, 300
READY_S = 60.0
Page = Callable[[int], str]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Visit every page as a browser does, over HTTP, one after another."""
    stored, visits = (QUICK_STORED, QUICK_VISITS) if quick else (STORED, VISITS)
    world = World(7)
    memories, questions = world.memories(stored), world.questions(visits + WARM_UP)
    with server() as (url, _):
        load(url, {AGENT: memories})
        facts = lived_in(url, visits + WARM_UP)
        with opened(url, DrawnEmbedder(questions)):  # counts its words, as a night does
            pass
        with console(url, DrawnEmbedder(questions)) as browser:
            seconds = {
                name: [visit(browser, page(number)) for number in range(visits + WARM_UP)][WARM_UP:]
                for name, page in pages(questions, facts).items()
            }
    slowest = {name: float(np.percentile(each, 95)) * 1000 for name, each in seconds.items()}
    return {
        "metrics": {
            "slowest_page_p95_ms": max(slowest.values()),
            **{f"{name}_p95_ms": value for name, value in slowest.items()},
        },
        "peers": {},
        "notes": [
            f"one agent with {stored:,} drawn facts, {NIGHTS} nights of {PROPOSALS} proposals, contradictions and"
            f" doubts; {visits} visits of each page over HTTP on this machine, the first {WARM_UP} not counted",
            "server and browser are threads of one process; a search counts the question's own vector as known",
        ],
    }


def lived_in(url: str, count: int) -> list[UUID]:
    """Give the facts sources, users, doubts and contradictions, and the agent its nights; return some facts."""
    told = {"agent_id": AGENT, "nights": NIGHTS, "proposals": PROPOSALS}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL["skip_triggers"])
        for name in (
            "vary_facts",
            "draw_statements",
            "draw_contradictions",
            "draw_plans",
            "draw_proposals",
            "draw_health",
        ):
            connection.execute(SQL[name], told)
        for name in ("analyze_facts", "analyze_proposals"):
            connection.execute(SQL[name])
        found = [
            connection.execute(SQL["some_fact"], {"agent_id": AGENT, "place": 37 * place}).fetchone()
            for place in range(count)
        ]
    return [row[0] for row in found if row]


def pages(questions: Drawn, facts: list[UUID]) -> Mapping[str, Page]:
    """Return the address of each page for its n-th visit: no two visits ask for quite the same."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    return {
        "memories": lambda _: "/",
        "memories_of_a_state": lambda number: "/?state=" + ("any", "archived")[number % 2],
        "memories_about": lambda number: f"/?about=subject+{number}",
        "memories_from": lambda number: f"/?source=notes/{number}",
        "memories_of_a_user": lambda number: f"/?user=user+{3 * number % 40}",
        "memories_of_a_day": lambda number: f"/?until={yesterday - timedelta(days=number)}",
        "search": lambda number: f"/?{urlencode({'q': questions.texts[number]})}",
        "memory": lambda number: f"/memories/{facts[number]}",
        "inbox": lambda _: "/inbox",
        "nights": lambda _: "/nights",
        "night": lambda number: f"/nights/{yesterday - timedelta(days=number % NIGHTS)}",
        "ask": lambda number: f"/ask?{urlencode({'q': questions.texts[number]})}",
    }


def visit(browser: httpx.Client, address: str) -> float:
    """Return the seconds until a page was there whole."""
    begun = perf_counter()
    answer = browser.get(address)
    seconds = perf_counter() - begun
    answer.raise_for_status()
    return seconds


@contextmanager
def console(url: str, embedder: DrawnEmbedder) -> Iterator[httpx.Client]:
    """Yield a browser that has opened the console of the agent, which a thread serves."""
    hearts = Hearts(opened_by=lambda: Database(url), embedder=embedder, works_in_background=False)
    told: list[str] = []
    is_ready = threading.Event()

    def on_ready(address: str) -> None:
        told.append(address)
        is_ready.set()

    state = ConsoleState(hearts, AGENT, "a-token-of-a-benchmark", is_read_only=True)
    threading.Thread(target=serve, args=(state,), kwargs={"port": 0, "on_ready": on_ready}, daemon=True).start()
    if not is_ready.wait(READY_S):
        raise Unavailable(f"the console was not ready within {READY_S:g} s")
    with httpx.Client(base_url=httpx.URL(told[0]).join("/"), timeout=60, follow_redirects=True) as browser:
        browser.get(told[0]).raise_for_status()
        yield browser
