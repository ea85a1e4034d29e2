"""Ageing a history that was imported: what its episodes hold is drawn first, then night after night is made up for."""

from __future__ import annotations

from datetime import date, datetime

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


def complete_episodes(options: NightOptions) -> int:
    """Complete the closed episodes that are due, oldest first, and return how many; what fails waits for the worker."""
    from nous_online.queue.worker import staff

    completed = 0
    with staff(options.database_url) as workers:
        for agent_id in options.agent_ids or (None,):
            while found := workers.look(seconds=LOOK_S, limit=EPISODES_AT_A_LOOK, only=agent_id).completed:
                completed += found
    return completed
