"""What a night costs where many agents remember little and few of them have news: 10,000 agents of 100 facts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from benchmarks.drawn_memories import SPACE, World
from benchmarks.drawn_nights import SQL, Facts, add_facts, copy_drawn, store_copy, store_recalls
from benchmarks.night import one_night, told, with_database
from nous_online.database import postgres
from nous_online.database.connection import prepare
from nous_online.language.pairs.slots import slot_key
from nous_pipelines.nights import end_of, last_night

AGENTS, QUICK_AGENTS, FEW_AGENTS = 10_000, 300, 100
AGENT_FACTS, NEWS_SHARE, AGENTS_WITH_NEWS = 100, 0.1, 0.01
DRAWN_APART = 20
"""How many agents are drawn; the others remember the same as one of them. No step looks across agents."""
FACT_DAYS, AT_REST_DAYS = 100, 3


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Draw a large and a small store, let a night pass over each, and time the next with news for 1 % of the agents."""
    counts = (QUICK_AGENTS if quick else AGENTS, FEW_AGENTS)
    with tempfile.TemporaryDirectory(prefix="nous-many-") as folder:
        home = Path(folder) / "home"
        server = postgres.ensure(home)
        try:
            large, small = (
                measured(with_database(server.dsn(), f"agents{count}"), Path(folder) / f"nights{count}", count)
                for count in counts
            )
        finally:
            postgres.stop(home)
    changed = [changed_facts(count) for count in counts]
    return {
        "metrics": {
            "night_s": large["seconds"],
            "seconds_per_changed_fact_1m_over_10k_ratio": (large["seconds"] / changed[0])
            / (small["seconds"] / changed[1]),
            "peak_mb": large["peak_mb"],
        },
        "peers": {},
        "notes": [
            f"{counts[0]:,} agents x {AGENT_FACTS} facts; {AGENTS_WITH_NEWS:.0%} of them learned {NEWS_SHARE:.0%} more,"
            f" {changed[0]:,} facts; beside it {counts[1]:,} agents, {changed[1]:,} facts",
            f"nothing was learned for {AT_REST_DAYS} days, and a night was run; no vector index, which no night asks",
            f"starting the process takes {large['start_s']:.1f} s more",
            f"large: {told(large)}",
            f"small: {told(small)}",
        ],
    }


def changed_facts(agents: int) -> int:
    """Return how many facts are new in the second night."""
    return len(with_news(names_of(agents))) * int(AGENT_FACTS * NEWS_SHARE)


def names_of(agents: int) -> list[str]:
    """Return the names of so many agents."""
    return [f"agent-{number:05}" for number in range(agents)]


def with_news(names: Sequence[str]) -> list[str]:
    """Return those that learn something, spread over all."""
    return list(names[:: round(1 / AGENTS_WITH_NEWS)])


def measured(url: str, home: Path, agents: int) -> Mapping[str, Any]:
    """Fill a store, run a night over it, and return what the next one takes once some agents have news."""
    second, names = last_night(datetime.now(UTC)), names_of(agents)
    first = second - timedelta(days=1)
    prepare(url)
    fill_many(url, names, night=first)
    one_night(url, home, first)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL["pass_a_day"])
    add_facts(url, dict.fromkeys(with_news(names), AGENT_FACTS), share=NEWS_SHARE, night=second)
    return one_night(url, home, second)


def fill_many(url: str, names: Sequence[str], *, night: date) -> None:
    """Store a hundred facts and some recalls of each agent, nothing of them new in the days before the night."""
    until, world = end_of(night) - timedelta(days=AT_REST_DAYS), World(seed=len(names))
    with psycopg.connect(url) as connection:
        register_vector(connection)
        connection.execute(SQL["store_space"], {"id": SPACE.id, "dimensions": SPACE.dimensions})
        for one in range(min(DRAWN_APART, len(names))):
            facts = plain_facts(world, until=until, seed=one)
            copy_drawn(connection, facts)
            for name in names[one::DRAWN_APART]:
                store_copy(connection, name)
                store_recalls(connection, name, facts, 2, until=until)
            connection.execute(SQL["drop_drawn"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL["vacuum"])


def plain_facts(world: World, *, until: datetime, seed: int) -> Facts:
    """Draw facts that neither repeat nor replace each other."""
    drawn = world.memories(AGENT_FACTS)
    ages = np.random.default_rng(seed).uniform(0, FACT_DAYS, AGENT_FACTS)
    moments = [until - timedelta(days=float(age)) for age in ages]
    return Facts(drawn.texts, [slot_key(text, None) for text in drawn.texts], moments, drawn.vectors)
