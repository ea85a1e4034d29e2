"""Undo of all that one source said: the latest change first, each memory in a transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.domain import FACT, KINDS, Fact, shortened
from nous_online.core.errors import Forbidden, NotFound, Refused
from nous_online.core.policy import MAX_REASON_BYTES
from nous_online.core.validation import checked_text
from nous_online.database.changes import Cause, change_memory, lock_memory, version_of
from nous_online.database.statements import fetch, statements
from nous_online.memories import store
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.store import revoke_statement
from nous_online.memories.undoing import (
    PastChange,
    effective_changes,
    history,
    is_other_side,
    restore,
    restore_all,
    statement_of,
    supersessions,
)

BLOCKS = statements("nous_online.memories", "source_undo.sql")
MAX_SOURCE_BYTES = 2000  # 500 characters, as wide as they get


@dataclass(frozen=True)
class SourceUndone:
    """The result of `undo_source`."""

    undone: tuple[UUID, ...]
    """Memories whose changes by the source were undone, in that order: the latest change first."""
    refused: Mapping[UUID, str]
    """Memories left as they were, each with the reason."""


class SourceVerbs(Verbs):
    """Undo of all that one source said."""

    def undo_source(self, source: str, *, reason: str | None = None, deadline_s: float | None = None) -> SourceUndone:
        """Undo all changes by one source, the latest first; a memory that can't be undone stays, with the reason.

        `source` is the source of statements and memories, or the name given to an import. Memories it began are
        archived, also those drawn from its episodes, and what they had superseded is active again; memories it only
        confirmed lose the confirmation. Of each memory everything is undone, or nothing: a fact with statements of
        other sources is refused. `restore` brings archived memories back. Raises `NotFound` where nothing is in effect.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        name = checked_text("source", source, max_bytes=MAX_SOURCE_BYTES)
        why = checked_text("reason", "the agent took it back" if reason is None else reason, max_bytes=MAX_REASON_BYTES)
        with agent.transaction(deadline) as connection:
            changes = changes_of(connection, agent.id, name)
        if not changes:
            raise NotFound(f"nothing that source {name!r} told agent {agent.id!r} is left to undo")
        left = list(dict.fromkeys(event.memory_id for event in changes))
        undone: list[UUID] = []
        refused: dict[UUID, str] = {}
        while left:  # again: what had been merged into one that was undone is active by now
            done, refused = undo_each(agent, left, name, deadline, reason=why)
            undone += done
            left = [*refused] if done else []
        return SourceUndone(tuple(undone), refused)


def changes_of(connection: Connection, agent_id: str, source: str) -> list[PastChange]:
    """Return the changes by a source that are in effect, the latest first."""
    return fetch(connection, PastChange, BLOCKS["changes_of_source"], {"agent_id": agent_id, "source": source})


def undo_each(
    agent: Agent, memory_ids: Sequence[UUID], source: str, deadline: Deadline, *, reason: str
) -> tuple[list[UUID], dict[UUID, str]]:
    """Undo what a source said of some memories; return those it was undone of, and the others with the reason."""
    undone: list[UUID] = []
    refused: dict[UUID, str] = {}
    # A transaction for each memory: one that is refused must not keep the others from being undone.
    for memory_id in memory_ids:
        try:
            with agent.transaction(deadline) as connection:
                store.lock_agent(connection, agent.id)
                # Read again under the lock: undoing one memory also undoes changes of others.
                remaining = changes_of(connection, agent.id, source)
                for event in (each for each in remaining if each.memory_id == memory_id):
                    undo_source_change(connection, agent, event, [each.id for each in remaining], reason=reason)
            undone.append(memory_id)
        except (Forbidden, Refused) as refusal:
            refused[memory_id] = str(refusal)
    return undone, refused


def undo_source_change(
    connection: Connection, agent: Agent, event: PastChange, of_source: Sequence[int], *, reason: str
) -> None:
    """Undo a change that a source made; raise `Refused` or `Forbidden` where it can't be undone.

    A memory the source began is archived; its confirmation of a fact is no longer counted. Facts it superseded come
    back.
    """
    kind, now = KINDS[event.memory_kind], datetime.now(UTC)
    memory = lock_memory(connection, agent.id, kind, event.memory_id)
    agent.rights.check_may_change(memory)
    statement, superseded = statement_of(connection, agent.id, event), supersessions(connection, agent.id, event)
    if event.from_state == "new" and memory.state != "archived" and kind is FACT:
        check_said_alone(connection, agent.id, memory, of_source)
    merged = [each for each in superseded if each.after.get("succession") == "merged"]
    if merged:  # while the fact is still as it was when it took over what had been said for them
        events = effective_changes(history(connection, agent.id, event.memory_id))
        joined = [each for each in events if any(is_of_merge(each, other) for other in merged)]
        restore_all(connection, agent, [*joined, *merged], reason=reason)
    cause = Cause("agent", "undone", reason, now, undoes=event.id)
    if event.from_state != "new":
        restore(connection, agent.id, event, cause=cause)
    elif memory.state != "archived":
        values = {"state": "archived", "archived_at": now.isoformat()}
        memory = lock_memory(connection, agent.id, kind, event.memory_id)
        change_memory(connection, agent.id, version_of(kind, memory), values, cause=cause)
    replaced = [each for each in superseded if each not in merged]
    restore_all(connection, agent, replaced, reason=reason, besides=[event.memory_id])
    if statement is not None:
        revoke_statement(connection, agent.id, statement.id)


def is_of_merge(keeper: PastChange, merged: PastChange) -> bool:
    """Tell whether a change of a fact is the other side of one by which another was merged into it."""
    is_of_night = merged.proposal_id is not None and keeper.proposal_id == merged.proposal_id
    return is_of_night or is_other_side(keeper, merged)


def check_said_alone(connection: Connection, agent_id: str, fact: Fact, events: Sequence[int]) -> None:
    """Raise `Refused` unless a fact is active and everything said for it is in some events of one source."""
    if fact.state != "active":
        raise Refused(f"fact {fact.id} is {fact.state}, so it is out of recall; undo what took its place first")
    parameters = {"agent_id": agent_id, "fact_id": fact.id, "events": list(events)}
    ((count,),) = connection.execute(BLOCKS["said_by_others"], parameters).fetchall()
    if count:
        times = "once" if count == 1 else f"{count} times"
        message = f"fact {fact.id} ({shortened(fact.content)}) was said by others too, {times}"
        raise Refused(f"{message}; to take it out of recall, forget it")
