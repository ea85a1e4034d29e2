"""Nights in a row: which are to run for a history that was imported, one after another, waiting for a lost database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Protocol

import psycopg

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import act_as, connect, open_url
from nous_online.database.statements import statements
from nous_pipelines.nights import FIRST_NIGHT, last_night
from nous_pipelines.orchestration.running import NightOptions, NightOutcome, opened
from nous_pipelines.plan.apply import find_agents

SQL = statements("nous_pipelines.orchestration", "backfilling.sql")
WAITS_S = (2.0, 10.0, 30.0, 60.0, 120.0)
"""How long a lost database is waited for before the night is tried again: a restart, or a network that comes back."""
ASKED_EVERY_S = 0.2
TIMEOUT_S = 120.0
LOOK_S = 60.0
EPISODES_AT_A_LOOK = 200
MINUTE_S, HOUR_S = 60, 3600


class Stop(Protocol):
    """Whether somebody asked to stop."""

    def is_asked(self) -> bool:
        """Tell whether somebody did."""
        ...

    def rest(self, seconds: float) -> None:
        """Wait, unless somebody asks to stop."""
        ...


def run_nights(
    nights: Sequence[date],
    run: Callable[[date], NightOutcome],
    *,
    stop: Stop,
    tell: Callable[[str], None],
    waits_s: Sequence[float] = WAITS_S,
) -> Iterator[NightOutcome]:
    """Run nights in order and yield how each ended, up to one that is stopped, or until somebody asks to stop.

    A night is never left half-done: it is run in a thread of its own, so that a signal is heard when it is over.
    Where the database is lost on the way, the night is run again after each of `waits_s`. `tell` is told what a person
    would want to know meanwhile. Raises what `run` raises.
    """

    def attempt(night: date) -> NightOutcome:
        return uninterrupted(lambda: run(night), stop=stop, tell=tell)

    for night in nights:
        if stop.is_asked():
            return
        outcome = tried(night, attempt, waits_s=waits_s, stop=stop, tell=tell)
        if outcome is None:
            return
        yield outcome
        if outcome.is_stopped:
            return


def tried(
    night: date,
    attempt: Callable[[date], NightOutcome],
    *,
    waits_s: Sequence[float],
    stop: Stop,
    tell: Callable[[str], None],
) -> NightOutcome | None:
    """Run one night, again while the database is lost on the way, and return how the last attempt ended.

    None where somebody asked to stop while the database was waited for: nobody wants another attempt then.
    """
    for wait_s in waits_s:
        try:
            outcome = attempt(night)
            if not outcome.is_lost:
                return outcome
            why = outcome.failures[0]
        except Unavailable as error:
            if isinstance(error.__cause__, OSError):
                raise
            why = str(error)
        tell(f"night {night} lost the database ({why}); it is tried again in {wait_s:g} s")
        stop.rest(wait_s)
        if stop.is_asked():
            return None
    return attempt(night)


def uninterrupted(work: Callable[[], NightOutcome], *, stop: Stop, tell: Callable[[str], None]) -> NightOutcome:
    """Return what a function returns, run where no signal ends it; say once that a request to stop was heard."""
    ended: list[NightOutcome] = []
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            ended.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=attempt, name="night", daemon=True)
    thread.start()
    is_told = stop.is_asked()
    while thread.is_alive():
        thread.join(ASKED_EVERY_S)
        if stop.is_asked() and not is_told:
            is_told = True
            tell("ending when this night is whole; once more ends at once, and the next run finishes it")
    for error in failed:
        raise error
    return ended[0]


def time_left(done: int, total: int, *, seconds: float) -> str:
    """Say how far a range has come and how long the rest takes at that pace."""
    left_s = seconds / done * (total - done)
    if left_s < MINUTE_S:
        rest = f"{left_s:.0f} s"
    elif left_s < HOUR_S:
        rest = f"{left_s / MINUTE_S:.0f} min"
    else:
        rest = f"{left_s / HOUR_S:.1f} h"
    return f"{done} of {total} nights, about {rest} left"


def nights_to_run(options: NightOptions, *, now: datetime) -> list[date]:
    """Return the nights that are over and were not run yet for every agent of the options that needs them, in order.

    An agent needs them from the day of its first memory on. Raises `NotFound` for an agent nobody knows.
    """
    wanted = {"agent_ids": list(options.agent_ids), "first_night": FIRST_NIGHT, "last_night": last_night(now)}
    with opened(options) as database:
        find_agents(database, options.agent_ids)
        with database.transaction(timeout_s=TIMEOUT_S) as connection:
            return [row[0] for row in connection.execute(SQL["nights_to_run"], wanted)]


def first_night(now: datetime) -> date:
    """Return the night of the first memory of anybody, or the last one that is over where there is none before it.

    Without a server that answers it is the first night there may be: none is hidden. None is started for this.
    """
    told, home = settings(), settings().home
    if told.database_url is None and postgres.running(home) is None:
        return FIRST_NIGHT
    try:
        with connect(open_url(), role="nous_night", seconds=LOOK_S) as connection, connection.transaction():
            act_as(connection, "nous_night")
            found = connection.execute(SQL["first_memory"]).fetchone()
    except (Unavailable, psycopg.OperationalError):
        return FIRST_NIGHT
    except psycopg.Error:  # no schema yet, and so no memory
        found = None
    first = found[0] if found else None
    return max(FIRST_NIGHT, min(first or last_night(now), last_night(now)))


def complete_episodes(options: NightOptions) -> int:
    """Complete the closed episodes that are due, oldest first, and return how many; what fails waits for the worker."""
    from nous_online.queue.worker import open_staff

    completed = 0
    with open_staff(options.database_url) as workers:
        for agent_id in options.agent_ids or (None,):
            while found := workers.look(seconds=LOOK_S, limit=EPISODES_AT_A_LOOK, only=agent_id).completed:
                completed += found
    return completed
