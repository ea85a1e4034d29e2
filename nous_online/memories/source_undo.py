"""Taking back what one source said: every memory it began and every fact it confirmed, the latest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.deadline import Deadline
from nous_online.core.errors import Forbidden, NotFound, Refused
from nous_online.core.kinds import FACT, KINDS
from nous_online.database.changes import Cause, change_memory, locked_memory, version_of
from nous_online.database.statements import statements
from nous_online.memories import fact_statements
from nous_online.memories.agent import Agent
from nous_online.memories.contradictions import mark_sides
from nous_online.memories.store import lock_agent
from nous_online.memories.undoing import PastChange, check_names, restore, statement_of, superseding

BLOCKS = statements("nous_online.memories", "source_undo.sql")


@dataclass(frozen=True)
class SourceUndone:
    """Which memories no longer hold what a source said, and which still do and why."""

    undone: tuple[UUID, ...]
    """In the order they were taken back, the latest change first."""
    refused: Mapping[UUID, str]


def undo_source(agent: Agent, source: str, *, reason: str, deadline: Deadline) -> SourceUndone:
    """Take back all that a source said, memory by memory, each in one transaction: all of its changes, or none.

    Raises `NotFound` where nothing of the source stands.
    """
    with agent.transaction(deadline) as connection:
        found = changes_of(connection, agent.id, source)
    if not found:
        raise NotFound(f"agent {agent.id!r} has nothing that still stands from source {source!r}")
    undone: list[UUID] = []
    refused: dict[UUID, str] = {}
    for memory_id in dict.fromkeys(event.memory_id for event in found):
        try:
            with agent.transaction(deadline) as connection:
                lock_agent(connection, agent.id)
                now = changes_of(connection, agent.id, source)
                mine = [event for event in now if event.memory_id == memory_id]
                take_back(connection, agent, mine, [event.id for event in now], reason=reason)
            undone.append(memory_id)
        except (Forbidden, Refused) as refusal:
            refused[memory_id] = str(refusal)
    return SourceUndone(tuple(undone), refused)


def changes_of(connection: Connection, agent_id: str, source: str) -> list[PastChange]:
    """Return the changes that a source made and nobody took back, the latest first."""
    with connection.cursor(row_factory=class_row(PastChange)) as cursor:
        return cursor.execute(BLOCKS["changes_of_source"], {"agent_id": agent_id, "source": source}).fetchall()


def take_back(
    connection: Connection, agent: Agent, changes: Sequence[PastChange], of_source: Sequence[int], *, reason: str
) -> None:
    """Take back the changes a source made to one memory; raise `Refused` or `Forbidden` where one can't be.

    What the source began is archived; what it said of a fact that others said too counts no longer.
    """
    for event in changes:
        kind = KINDS[event.memory_kind]
        agent.rights.check_may_change(locked_memory(connection, agent.id, kind, event.memory_id))
        cause = Cause("agent", "undone", reason, datetime.now(UTC), undoes=event.id)
        said = statement_of(connection, agent.id, event)
        if event.from_state == "new":
            archive(connection, agent, event, of_source, cause=cause)
        else:
            restore(connection, agent.id, event, cause=cause)
        bring_back(connection, agent.id, event, cause=cause)
        if said is not None:
            fact_statements.take_back(connection, agent.id, said.id)


def archive(connection: Connection, agent: Agent, event: PastChange, of_source: Sequence[int], *, cause: Cause) -> None:
    """Archive a memory that a source began."""
    kind = KINDS[event.memory_kind]
    memory = locked_memory(connection, agent.id, kind, event.memory_id)
    if memory.state == "archived":
        return
    if kind is FACT:
        check_unshared(connection, agent.id, event, memory.state, of_source)
    values = {"state": "archived", "archived_at": cause.effective_at.isoformat()}
    change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)


def bring_back(connection: Connection, agent_id: str, event: PastChange, *, cause: Cause) -> None:
    """Bring back the facts that gave way when a source began or confirmed a memory."""
    back = superseding(connection, agent_id, event)
    for each in back:
        given = Cause("agent", "undone", cause.reason, cause.effective_at, undoes=each.id)
        restore(connection, agent_id, each, cause=given)
    check_names(connection, agent_id, [each.memory_id for each in back])
    marked = Cause("agent", "marked", cause.reason, cause.effective_at)
    for memory_id in {event.memory_id, *(each.memory_id for each in back)}:
        mark_sides(connection, agent_id, memory_id, cause=marked)


def check_unshared(
    connection: Connection, agent_id: str, event: PastChange, state: str, of_source: Sequence[int]
) -> None:
    """Raise `Refused` for a fact that gave way to another, or that others said too."""
    if state != "active":
        raise Refused(f"fact {event.memory_id} is {state}, so it is out of recall; undo what took its place first")
    parameters = {"agent_id": agent_id, "fact_id": event.memory_id, "events": list(of_source)}
    ((count,),) = connection.execute(BLOCKS["said_by_others"], parameters).fetchall()
    if count:
        times = "once" if count == 1 else f"{count} times"
        raise Refused(f"fact {event.memory_id} was said by others too, {times}; to take it out of recall, forget it")
