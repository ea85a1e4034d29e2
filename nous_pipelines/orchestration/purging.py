"""Purging: the one job that deletes, by policy and age alone; never a memory, an event or a proposal."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from nous_online.core.errors import InvalidInput
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.queue.outbox import HEART
from nous_pipelines.night_policy import NightPolicy

logger = logging.getLogger(__name__)
SQL = statements("nous_pipelines.orchestration", "purging.sql")
PURGE_TIMEOUT_S = 3600.0
KEPT = {
    "cold_texts": "cold_texts_kept_days",
    "outbox": "outbox_kept_days",
    "completions": "completions_kept_days",
    "requests": "requests_kept_days",
}
"""What is purged, each with the field of the policy that says for how many days it is kept."""


@dataclass(frozen=True)
class Purged:
    """How many rows were deleted, or would be."""

    cold_texts: int
    """Texts of condensed episodes, which can't be restored afterwards."""
    outbox: int
    """Announcements that every consumer has heard."""
    completions: int
    """What is known of how closed episodes were completed."""
    requests: int
    """Idempotency keys, but for those of imports."""
    is_dry_run: bool = False


def purge(database: Database, policy: NightPolicy, *, now: datetime, is_dry_run: bool = False) -> Purged:
    """Delete what is older than the policy keeps, in one transaction; with `is_dry_run` only count it.

    What an agent's own policy says comes before `policy`. `database` must have been opened as `nous_purge`. Raises
    `InvalidInput`, naming the agent, when its policy makes no sense; nothing was deleted then.
    """
    with (
        database.transaction(timeout_s=PURGE_TIMEOUT_S) as connection,
        connection.transaction(force_rollback=is_dry_run),
    ):
        policies = policies_of(connection, policy)
        counts = {name: purge_one(connection, name, policies, now=now) for name in KEPT}
    purged = Purged(**counts, is_dry_run=is_dry_run)
    logger.info("%s", asdict(purged))
    return purged


def policies_of(connection: Connection, policy: NightPolicy) -> dict[str, NightPolicy]:
    """Return the policy of each agent; raise `InvalidInput`, naming the agent, for one that makes no sense."""
    found: dict[str, NightPolicy] = {}
    own: Mapping[str, Any]
    for agent_id, own in connection.execute(SQL["policies"]):
        try:
            found[agent_id] = policy.overridden(own)
        except InvalidInput as error:
            raise InvalidInput(f"the policy of agent {agent_id!r} makes no sense: {error}") from error
    return found


def purge_one(connection: Connection, name: str, policies: Mapping[str, NightPolicy], *, now: datetime) -> int:
    """Delete what is too old of one table and return how many rows that was."""
    days = [getattr(policy, KEPT[name]) for policy in policies.values()]
    parameters = {"agent_ids": list(policies), "days": days, "now": now, "heart": HEART}
    return connection.execute(SQL[f"purge_{name}"], parameters).rowcount
