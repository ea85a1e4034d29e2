"""Whether row-level security holds: asked of the database itself, before the first call of an agent."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.errors import NotIsolated
from nous_online.database.statements import statements

SQL = statements("nous_online.database", "isolation.sql")
SHOWN = 3
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opening:
    """One thing that lets an agent see or change what is another's, and the statement that closes it."""

    opening: str
    fix: str


def find_openings(connection: Connection) -> list[Opening]:
    """Return everything by which the role in force could pass row-level security; none when it holds.

    The connection is in a transaction, whose agent and search path are changed.
    """
    connection.execute(SQL["bind_to_nobody"])
    with connection.cursor(row_factory=class_row(Opening)) as cursor:
        return cursor.execute(SQL["find_openings"]).fetchall()


def require_isolation(connection: Connection) -> None:
    """Raise `NotIsolated` when one agent could see or change what is another's."""
    openings = find_openings(connection)
    if not openings:
        return
    shown = "; ".join(f"{each.opening} (close it: {each.fix})" for each in openings[:SHOWN])
    rest = f"; and {len(openings) - SHOWN} more" if len(openings) > SHOWN else ""
    raise NotIsolated(f"agents are not kept apart here: {shown}{rest}; nothing is served until that is mended")


def powers(connection: Connection) -> str | None:
    """Return what the user who logged in may do beyond being an agent; None when that is nothing."""
    found = connection.execute(SQL["find_powers"]).fetchone()
    return found[0] if found else None


def warn_of_powers(connection: Connection) -> None:
    """Log a warning where calls log in as a user who may do more than the role they take, which can be left."""
    found = powers(connection)
    if found:
        logger.warning("%s; docs/roles.md has a login that is nothing but an agent", found)
