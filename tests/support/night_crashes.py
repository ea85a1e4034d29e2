"""A whole night in a process of its own, which a test may end at any of its numbered steps."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterable
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
from forks import FORKS, forked
from night_runs import options

from nous_pipelines import failpoints
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import NightOutcome, run_night

TIMES = (
    "created_at", "written_xid", "since_xid", "recorded_at", "decided_at", "applied_at", "stored_at", "measured_at",
    "judged_at", "refreshed_at", "updated_at", "run_id",
)  # fmt: skip
"""Columns that tell when and by which run a row was written, not what it says."""
EXIT_CODE = 86


class Ended(Exception):
    """A night came to the step at which it was to fail."""


def by_exception(name: str) -> None:
    raise Ended(name)


def by_exit(_name: str) -> None:
    os._exit(EXIT_CODE)


def by_kill(_name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def by_full_disk(_name: str) -> None:
    """Let no file of this process grow beyond a kilobyte from here on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def ended_at(point: str, way: Callable[[str], None]) -> Callable[[str], None]:
    """Return what a night is to do at its steps: end at one of them, each time it comes by."""
    return lambda name: way(name) if name == point else None


def night_outcome(url: str, home: Path, night: date, on_reach: Callable[[str], None], **changes: Any) -> NightOutcome:
    """Run a night in this process with something to do at its steps."""
    failpoints.on_reach = on_reach
    try:
        with unrecorded() as instance:
            return run_night(night, options(url, home, **changes), instance=instance)
    finally:
        failpoints.on_reach = failpoints.go_on


def run_and_tell(answer: Connection, url: str, home: Path, night: date, point: str, way: str) -> None:
    """Run a night and send whether it succeeded and what failed, if there is still somebody to send it."""
    ways = {"exception": by_exception, "exit": by_exit, "kill": by_kill, "full disk": by_full_disk}
    on_reach = ended_at(point, ways[way]) if way else failpoints.go_on
    outcome = night_outcome(url, home, night, on_reach)
    answer.send((outcome.is_success, outcome.failures))


def run_apart(
    url: str, home: Path, night: date, *, point: str = "", way: str = ""
) -> tuple[int | None, tuple[bool, tuple[str, ...]] | None]:
    """Run a night in another process; return its exit code, and what it said if it lived to."""
    receiver, sender = FORKS.Pipe(duplex=False)
    code = forked(run_and_tell, sender, url, home, night, point, way)
    return code, receiver.recv() if code == 0 and receiver.poll() else None


def contents(owner: psycopg.Connection, *, without: Iterable[str] = TIMES) -> dict[str, list[Any]]:
    """Return every row of every table but for times and run ids, sorted; events lose their numbers too.

    Which snapshots were taken is left out: that changes whenever one is.
    """
    tables = owner.execute(
        """select table_schema || '.' || table_name from information_schema.tables
           where table_schema in ('heart', 'brain', 'lifecycle') and table_type = 'BASE TABLE'
             and table_name <> 'snapshots' order by 1"""
    ).fetchall()
    found: dict[str, list[Any]] = {}
    for (table,) in tables:
        left_out = [*without, *(["id", "undoes"] if table == "lifecycle.events" else [])]
        query = f"select (to_jsonb(t) - %s::text[])::text from {table} t order by 1"  # noqa: S608 (names of the catalogue)
        found[table] = [row[0] for row in owner.execute(query, [left_out])]
    return found
