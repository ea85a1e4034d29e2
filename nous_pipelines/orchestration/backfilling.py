"""Ageing a history that was imported: what its episodes hold is drawn first, then night after night is made up for."""

from __future__ import annotations

from datetime import date, datetime

import psycopg

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import act_as, connected, open_url
from nous_online.database.statements import statements
from nous_pipelines.nights import FIRST_NIGHT, last_night
from nous_pipelines.orchestration.running import NightOptions, opened
from nous_pipelines.plan.apply import find_agents

SQL = statements("nous_pipelines.orchestration", "backfilling.sql")
TIMEOUT_S = 120.0
LOOK_S = 60.0
EPISODES_AT_A_LOOK = 200


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
        with connected(open_url(), role="nous_night", seconds=LOOK_S) as connection, connection.transaction():
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
    from nous_online.queue.worker import staff

    completed = 0
    with staff(options.database_url) as workers:
        for agent_id in options.agent_ids or (None,):
            while found := workers.look(seconds=LOOK_S, limit=EPISODES_AT_A_LOOK, only=agent_id).completed:
                completed += found
    return completed
