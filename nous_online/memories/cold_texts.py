"""Texts that the nights took out of episodes they condensed: still there to be read, until a purge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.errors import NotFound
from nous_online.database.statements import statements

SQL = statements("nous_online.memories", "cold_texts.sql")


@dataclass(frozen=True)
class FullText:
    """The most detailed text there still is of an episode, and where it lies."""

    episode_id: UUID
    title: str | None
    text: str
    """Empty where nothing was ever told."""
    level: Literal["detail", "summary", "compressed", "title"]
    """Which text it is: `detail` unless that was never told or has been purged."""
    is_cold: bool
    """Whether it lies in cold storage: the episode itself shows less."""
    purge_after: datetime | None
    """When a purge may delete it, where that has been settled."""


def full_text(connection: Connection, agent_id: str, episode_id: UUID) -> FullText:
    """Return the most detailed text of an episode, condensed or not; raise `NotFound` when this agent has none such."""
    with connection.cursor(row_factory=class_row(FullText)) as cursor:
        found = cursor.execute(SQL["full_text"], {"agent_id": agent_id, "id": episode_id}).fetchone()
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no episode {episode_id}")
    return found
