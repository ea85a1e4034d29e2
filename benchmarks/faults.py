"""Kills, races and foreign queries in numbers: what was acknowledged is there once, and each agent sees its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from benchmarks.faults_kills import KILLS, WRITERS, Tally, campaign
from benchmarks.faults_queries import TENANTS, Asked, ask
from benchmarks.faults_races import Races, race
from benchmarks.faults_writer import BATCH
from nous_online.core.errors import NousError

WRITES, QUICK_WRITES = 101_000, 1_500
KILL_COUNT, QUICK_KILL_COUNT = 52, 8
CONTROL_WRITES, QUICK_CONTROL_WRITES = 3_000, 900
CONTROL_KILLS, QUICK_CONTROL_KILLS = 8, 3
RACES, QUICK_RACES = 10_000, 200
QUERIES, QUICK_QUERIES = 1_000_000, 5_000


class ProvesNothingError(NousError):
    """The campaign could not have seen what it looks for."""


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Run the control first, then the campaign, the races and the queries; raise where the control lost nothing."""
    sizes = (QUICK_CONTROL_WRITES, QUICK_CONTROL_KILLS) if quick else (CONTROL_WRITES, CONTROL_KILLS)
    control = campaign(*sizes, is_forgetful=True, among=("server",))
    require_loss(control)
    with side_by_side() as pool:
        racing = pool.submit(race, QUICK_RACES if quick else RACES)
        asking = pool.submit(ask, QUICK_QUERIES if quick else QUERIES)
        killed = campaign(*((QUICK_WRITES, QUICK_KILL_COUNT) if quick else (WRITES, KILL_COUNT)))
        raced, asked = racing.result(), asking.result()
    if not asked.own:
        raise ProvesNothingError("the queries found no row of the asking tenant either: they could not find any")
    return {
        "metrics": {
            "acknowledged": killed.acknowledged,
            "kills": sum(killed.kills.values()),
            "lost": len(killed.lost),
            "doubled": killed.doubled,
            "incomplete": killed.incomplete,
            "control_lost": len(control.lost),
            "races": raced.races,
            "clobbered": raced.clobbered,
            "queries": asked.statements + asked.verbs,
            "leaked": asked.leaked,
        },
        "peers": {},
        "notes": notes(control, killed, raced, asked),
    }


@contextmanager
def side_by_side() -> Iterator[ProcessPoolExecutor]:
    """Yield two processes, each part with a server of its own; what fails here ends what runs there."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        try:
            yield pool
        except BaseException:
            for process in active_children():
                process.terminate()
            raise


def require_loss(control: Tally) -> None:
    """Raise where a server that need not wait for the disk lost nothing when it was killed."""
    if not control.lost:
        raise ProvesNothingError(
            f"the control lost none of {control.acknowledged:,} writes though the server was killed "
            f"{sum(control.kills.values())} times and commits did not wait for the disk: the campaign proves nothing"
        )


def notes(control: Tally, killed: Tally, raced: Races, asked: Asked) -> list[str]:
    """Return what a reader must know to judge the figures."""
    kills = ", ".join(f"{count} of the {kind}" for kind, count in killed.kills.items())
    night = raced.night
    return [
        f"kills by SIGKILL: {kills} ({', '.join(KILLS)} in turn; server: all its processes at one moment);"
        f" {killed.restarts} restarts; {len(WRITERS)} processes write, two of them for one agent, facts singly and in"
        f" batches of {BATCH}, each fact one write; {killed.seconds:.0f} s, races and queries beside it",
        "after each kill every write acknowledged by then is looked for by name in heart.statements; no power was cut:"
        " what a process leaves in the system's page cache survives it",
        "control: the same with synchronous_commit off and a WAL writer that waits for 10 s,"
        f" {sum(control.kills.values())} kills of the server, {control.acknowledged:,} acknowledged",
        f"a race is one proposal of a night and one confirmation by day of a row that it reads, side by side:"
        f" {night.applied:,} applied, {night.stale:,} stale, {night.refused:,} refused, {raced.refused_by_day:,}"
        f" confirmations refused; {raced.seconds:.0f} s",
        f"queries: {asked.statements:,} single statements as the login of calls with the role of agents, and"
        f" {asked.verbs:,} verbs, of {TENANTS} tenants in turn, {len(asked.kinds)} kinds; {asked.own:,} rows of their"
        f" own were told meanwhile; {asked.seconds:.0f} s",
    ]
