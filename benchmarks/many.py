"""What a night costs where many agents remember little and few of them have news: 10,000 agents of 100 facts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from benchmarks import server
from benchmarks.drawn_memories import SPACE, World
from benchmarks.drawn_nights import SQL, Facts, add_facts, copy_drawn, fill, store_copy, store_recalls
from benchmarks.night import one_night, told, with_database
from nous_online.database.connection import prepare
from nous_online.language.pairs.slots import slot_key
from nous_pipelines.nights import end_of, last_night
from nous_pipelines.orchestration.night_assets import EPISODE_SUMMARIES
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES

AGENTS, QUICK_AGENTS, FEW_AGENTS = 10_000, 300, 100
AGENT_FACTS, NEWS_SHARE, AGENTS_WITH_NEWS = 100, 0.1, 0.01
DRAWN_APART = 20
"""How many agents are drawn; the others remember the same as one of them. No step looks across agents."""
FACT_DAYS, AT_REST_DAYS = 100, 3
WORKED, QUICK_WORKED, WORKED_FACTS = 60, 8, 1_000
"""A store of which much is to be decided, for nights in one process and in two."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
MAPPED = {"neighbours", "judgements", *(each.name for each in (*NIGHT_TABLES, EPISODE_SUMMARIES, *PHASES))}
"""The steps that are mapped over chunks of agents."""


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Draw a large and a small store, let a night pass over each, and time the next with news for 1 % of the agents."""
    counts = (QUICK_AGENTS if quick else AGENTS, FEW_AGENTS)
    with server() as (url, home):
        large, small = (
            measured(with_database(url, f"agents{count}"), home.parent / f"nights{count}", count) for count in counts
        )
        workers = by_workers(url, home.parent, QUICK_WORKED if quick else WORKED)
    changed = [changed_facts(count) for count in counts]
    return {
        "metrics": {
            "night_s": large["seconds"],
            "seconds_per_changed_fact_1m_over_10k_ratio": (large["seconds"] / changed[0])
            / (small["seconds"] / changed[1]),
            "peak_mb": large["peak_mb"],
            "two_workers_speedup_ratio": mapped_s(workers[1]) / mapped_s(workers[2]),
        },
        "peers": {},
        "notes": [
            f"{counts[0]:,} agents x {AGENT_FACTS} facts; {AGENTS_WITH_NEWS:.0%} of them learned {NEWS_SHARE:.0%} more,"
            f" {changed[0]:,} facts; beside it {counts[1]:,} agents, {changed[1]:,} facts",
            f"nothing was learned for {AT_REST_DAYS} days, and two nights were run; no vector index: none is asked",
            f"starting the process takes {large['start_s']:.1f} s more",
            f"large: {told(large)}",
            f"small: {told(small)}",
            *workers_told(workers, QUICK_WORKED if quick else WORKED),
        ],
    }


def by_workers(dsn: str, folder: Path, agents: int) -> dict[int, Mapping[str, Any]]:
    """Return what the same first night takes with one worker on one core, and with two on two."""
    night, one = last_night(datetime.now(UTC)), with_database(dsn, "worked1")
    prepare(one)
    fill(one, {f"agent-{number:03}": WORKED_FACTS for number in range(agents)}, episodes=0, night=night)
    urls = {1: one, 2: with_database(dsn, "worked2", template="worked1")}
    found: dict[int, Mapping[str, Any]] = {}
    for count, url in urls.items():
        home, engine = folder / f"worked{count}", f"processes:{count}"
        taken = one_night(url, home, night, cores=count, NOUS_ENGINE=engine, **ONE_THREAD)
        found[count] = {**taken, "load": os.getloadavg()[0]}
    return found


def workers_told(workers: Mapping[int, Mapping[str, Any]], agents: int) -> list[str]:
    """Return what was compared, and what each of the two nights took."""
    compared = "compared are the steps mapped over chunks of agents"
    return [
        f"{agents} agents x {WORKED_FACTS:,} facts, one process on one core, then two on two; {compared}",
        *(
            f"{count}: {night['seconds']:.1f} s, mapped {mapped_s(night):.1f}, load {night['load']:.1f}; {told(night)}"
            for count, night in workers.items()
        ),
    ]


def mapped_s(night: Mapping[str, Any]) -> float:
    """Return the seconds of the steps of a night that are mapped over chunks of agents."""
    return sum(seconds for step, seconds in night["steps"].items() if step in MAPPED)


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
    """Fill a store, run nights until it is at rest, and return what the next one takes once some agents have news.

    The first night changes something of every agent, so that to the second all of them are changed ones.
    """
    last, names = last_night(datetime.now(UTC)), names_of(agents)
    first, second = (last - timedelta(days=days) for days in (2, 1))
    prepare(url)
    fill_many(url, names, night=first)
    for night in (first, second):
        one_night(url, home, night)
    add_facts(url, dict.fromkeys(with_news(names), AGENT_FACTS), share=NEWS_SHARE, night=last)
    return one_night(url, home, last)


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
