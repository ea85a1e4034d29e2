"""Procedures: how something is done, stored under its name, loaded when it is needed, judged by how it went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier

from nous_online.changes import Cause, change_memory, locked_memories, locked_memory, version_of
from nous_online.domain import Procedure
from nous_online.kinds import PROCEDURE
from nous_online.statements import statements

BLOCKS = statements("nous_online", "procedures.sql")


def record_outcome(
    connection: Connection, agent_id: str, procedure_id: UUID, *, is_success: bool, cause: Cause
) -> Procedure:
    """Count one more time that a procedure worked or failed; raise `NotFound` when there is none of that id."""
    found = locked_memory(connection, agent_id, PROCEDURE, procedure_id)
    counter = "success_count" if is_success else "failure_count"
    values = {counter: getattr(found, counter) + 1}
    return change_memory(connection, agent_id, version_of(PROCEDURE, found), values, cause=cause)


def flag_for_review(
    connection: Connection,
    agent_id: str,
    *,
    procedure_ids: Sequence[UUID] = (),
    domain: str | None = None,
    reason: str,
    cause: Cause,
) -> int:
    """Put the active procedures named, and those of `domain`, under review; return how many that were."""
    parameters = {"agent_id": agent_id, "ids": list(procedure_ids), "domain": domain}
    ids = [row[0] for row in connection.execute(BLOCKS["reviewable_procedures"], parameters)]
    found = [each for each in locked_memories(connection, agent_id, PROCEDURE, ids) if each.state == "active"]
    for procedure in found:
        values = {"state": "review", "review_reason": reason}
        change_memory(connection, agent_id, version_of(PROCEDURE, procedure), values, cause=cause)
    return len(found)


def effectiveness(procedure: Procedure) -> float | None:
    """Return the share of uses that succeeded, None before the first use was judged."""
    judged = procedure.success_count + procedure.failure_count
    return procedure.success_count / judged if judged else None


def list_procedures(
    connection: Connection, agent_id: str, *, domain: str | None = None, state: str | None = None
) -> list[Procedure]:
    """Return the procedures of a domain and a state (all but the archived, unless named), what worked best first.

    What was seen once weighs little: they are ordered by (successes + 1) / (uses + 2), the mean of a Beta(1, 1) prior.
    """
    parameters = {"agent_id": agent_id, "domain": domain, "state": state}
    return fetched(connection, "list_procedures", parameters)


def fetched(connection: Connection, statement: str, parameters: dict[str, Any]) -> list[Procedure]:
    """Run a statement that returns procedures."""
    with connection.cursor(row_factory=class_row(Procedure)) as cursor:
        return cursor.execute(composed(statement), parameters).fetchall()


@cache
def composed(statement: str) -> Composed:
    """Fill the columns of a procedure, of the row `p` where there are several, into a statement."""
    text: LiteralString = BLOCKS[statement]
    return SQL(text).format(columns=SQL(", ").join(Identifier("p", name) for name in PROCEDURE.columns))
