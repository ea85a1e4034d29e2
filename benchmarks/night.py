"""What a whole night costs: many small agents, one large one, nights with little news, and the same night again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from benchmarks import peak_mb, server
from benchmarks.drawn_nights import SQL, add_facts, fill, learn_facts
from nous_online.database.connection import prepare
from nous_online.processes import child_environment, python_module
from nous_pipelines.nights import last_night

ROOT = Path(__file__).resolve().parents[1]
AGENTS, AGENT_FACTS, LARGE_FACTS, EPISODES = 100, 1_000, 100_000, 5_000
QUICK_AGENTS, QUICK_FACTS, QUICK_EPISODES = 10, 10_000, 500
NEWS_SHARE = 0.01
SAMPLE = 1_000
POLICY = {"max_leaving_share": 1.0, "max_leaving_count": 1e6}
"""A first night over an import changes more than a usual one may; its operator says so."""


@dataclass(frozen=True)
class Measured:
    """Nights of one store: over everything, the same again, and two with one per cent of news each."""

    full: Mapping[str, Any]
    again: Mapping[str, Any]
    news: Mapping[str, Any]
    """What came to the agents through `Heart.learn`, which reads it with what is near."""
    imported: Mapping[str, Any]
    """What was imported, which nobody has read before the night."""
    second_run_changes: int
    sql_s: Mapping[str, float]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Draw two stores and run their nights, each in a process of its own, as `nous night` does."""
    agents, large, episodes = (QUICK_AGENTS, QUICK_FACTS, QUICK_EPISODES) if quick else (AGENTS, LARGE_FACTS, EPISODES)
    with server() as (url, home):
        many = measured(url, home.parent / "many", {f"agent-{n:03}": AGENT_FACTS for n in range(agents)}, episodes=0)
        one_url = with_database(url, "one")
        one = measured(one_url, home.parent / "one", {"aria": large}, episodes=episodes)
    return described(
        many, one, f"{agents} agents x {AGENT_FACTS:,} facts; 1 agent x {large:,} facts, {episodes:,} episodes"
    )


def described(many: Measured, one: Measured, stores: str) -> dict[str, Any]:
    """Put what was measured together."""
    nights = [night for store in (many, one) for night in (store.full, store.again, store.news, store.imported)]
    return {
        "metrics": {
            "many_agents_s": many.full["seconds"],
            "one_agent_s": one.full["seconds"],
            "peak_mb": max(night["peak_mb"] for night in nights),
            "incremental_over_full_ratio": max(over_full(store, store.news) for store in (many, one)),
            "imported_over_full_ratio": max(over_full(store, store.imported) for store in (many, one)),
            "again_over_full_ratio": max(over_full(store, store.again) for store in (many, one)),
            "start_s": one.again["start_s"],
            "second_run_changes": many.second_run_changes + one.second_run_changes,
        },
        "peers": {f"one_agent_sql_{name}_s": seconds for name, seconds in one.sql_s.items()},
        "notes": [
            f"{stores}; 3 % repeats, 1 % new values, 2 % as many recalls as facts; offline judge",
            "default policy but for the blast radius, which a first night over an import has to widen",
            "each night in a process of its own, recorded in Dagster's own database; starting it and loading the assets"
            " (start_s) comes extra, once for a whole backfill; before the third night the agents learn"
            f" {NEWS_SHARE:.0%} more (Heart.learn), before the fourth as much is imported",
            f"many: {summed(many)}",
            f"one: {summed(one)}",
            *(f"{name}: {told(night)}" for name, night in (("many", many.full), ("one", one.full), ("news", one.news))),
            f"plain SQL, without checks, events, reasons or undo; neighbours extrapolated from {SAMPLE:,} facts",
        ],
    }


def summed(store: Measured) -> str:
    """Return the seconds of the nights, those of the processor, and what they did."""
    names = ("full", "again", "1 % learned", "1 % imported")
    nights = zip(names, (store.full, store.again, store.news, store.imported), strict=True)
    return ", ".join(
        f"{name} {night['seconds']:.1f} s, CPU {night['cpu_s']:.1f} ({night['applied']:,} applied)"
        for name, night in nights
    )


def over_full(store: Measured, night: Mapping[str, Any]) -> float:
    """Return what a night takes, times one over everything."""
    return night["seconds"] / store.full["seconds"]


def told(night: Mapping[str, Any]) -> str:
    """Return what each step of a night took."""
    return ", ".join(f"{step} {seconds:.2f}" for step, seconds in night["steps"].items() if seconds >= 0.05)


def with_database(dsn: str, name: str, *, template: str = "template1") -> str:
    """Make another database on the same server, or a copy of one, and return its URL."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")  # type: ignore[arg-type]  # one of ours
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def measured(url: str, home: Path, agents: dict[str, int], *, episodes: int) -> Measured:
    """Fill a store and run its nights."""
    third = last_night(datetime.now(UTC))
    first, second = (third - timedelta(days=days) for days in (2, 1))
    prepare(url)
    fill(url, agents, episodes=episodes, night=first)
    sql_s = in_sql(url)
    full = one_night(url, home, first)
    before = changes(url)
    again = one_night(url, home, first)
    second_run_changes = changes(url) - before
    found: list[dict[str, Any]] = []
    for night, store in ((second, learn_facts), (third, add_facts)):
        store(url, agents, share=NEWS_SHARE, night=night)
        found.append(one_night(url, home, night))
    learned, imported = found
    return Measured(full, again, learned, imported, second_run_changes, sql_s)


def changes(url: str) -> int:
    """Count the events there are."""
    with psycopg.connect(url) as connection:
        return connection.execute(SQL["count_changes"]).fetchall()[0][0]


def in_sql(url: str) -> dict[str, float]:
    """Return the seconds of the same work as single statements over plain copies, where that is possible."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL["copy_for_sql"])
        seconds = {name: timed(connection, f"sql_{name}") for name in ("archive", "copies", "ranks")}
        facts = connection.execute("select count(*) from plain").fetchall()[0][0]
        sample = min(SAMPLE, facts)
        connection.execute(SQL["by_index"])
        seconds["neighbours"] = timed(connection, "sql_neighbours", sample=sample) * facts / sample
        connection.execute(SQL["drop_plain"])
    return seconds


def timed(connection: psycopg.Connection, statement: str, **parameters: Any) -> float:
    """Run a statement and return its seconds."""
    start = perf_counter()
    connection.execute(SQL[statement], parameters)
    return perf_counter() - start


def one_night(url: str, home: Path, night: date, *, cores: int = 0, **settings: str) -> dict[str, Any]:
    """Run a night in a fresh process, on some of the cores or all, and return what it took.

    A night that fails stops the benchmark.
    """
    # As `nous night` has it, which imports `nous_pipelines` before NumPy, and the benchmarks do not.
    settings = {"OPENBLAS_NUM_THREADS": "1", **settings}
    environment = child_environment(NOUS_HOME=str(home), NOUS_DATABASE_URL=url, PYTHONPATH=str(ROOT), **settings)
    start = perf_counter()
    finished = subprocess.run(  # noqa: S603 - our own module
        python_module("benchmarks.night", night.isoformat(), str(cores)),
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    night_itself = json.loads(finished.stdout.splitlines()[-1])
    return {**night_itself, "start_s": perf_counter() - start - night_itself["seconds"]}


def main(night: str, cores: str) -> None:
    """Run one night as `nous night` does, and print its peak memory, its steps and what was applied."""
    if cores != "0":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    from nous_pipelines import definitions
    from nous_pipelines.commands.night_commands import options_for
    from nous_pipelines.orchestration.instance import dagster_instance
    from nous_pipelines.orchestration.running import run_night

    definitions.defs.resolve_job_def("nightly")  # part of starting, once for all nights of a process

    with dagster_instance() as instance:
        start, cpu = perf_counter(), process_time()
        outcome = run_night(date.fromisoformat(night), options_for(None, policy=POLICY), instance=instance)
        took, cpu_s = perf_counter() - start, process_time() - cpu
        steps = instance.get_run_step_stats(outcome.run_id)
    if not outcome.is_success:
        raise SystemExit(f"the night of {night} failed: {outcome.failures}")
    seconds = {
        stats.step_key: stats.end_time - stats.start_time for stats in steps if stats.start_time and stats.end_time
    }
    with psycopg.connect(os.environ["NOUS_DATABASE_URL"]) as connection:
        rows = connection.execute(
            "select count(*) from lifecycle.proposals where night = %s and state = 'applied'", [night]
        ).fetchall()
    print(json.dumps({"seconds": took, "cpu_s": cpu_s, "peak_mb": peak_mb(), "steps": seconds, "applied": rows[0][0]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
