"""Splitting: a statement that was taken for a fact becomes a fact of its own, and the two stay apart."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.domain import Fact, Statement
from nous_online.core.errors import Conflict, Refused
from nous_online.core.kinds import FACT
from nous_online.database.changes import Cause, EventNote, change_memory, get_memory, locked_memories, version_of
from nous_online.memories import facts, store
from nous_online.memories.agent import Agent
from nous_online.memories.fact_statements import get_statement, is_founding, own_fact, statements_of
from nous_online.memories.store import Embedded, Split
from nous_online.memories.undoing import history, lent


def split(agent: Agent, statement_id: UUID, *, reason: str, deadline: Deadline) -> Fact:
    """Make a statement a fact of its own and return that; the fact it leaves loses a confirmation.

    The first statement of a fact that was merged into another brings that fact back. Raises `NotFound`, `Forbidden` for
    a fact trusted more than the caller may claim, and `Refused` where a fact would be left without its words, or where
    the merge the statement came by has to be taken apart first.
    """
    with agent.transaction(deadline) as connection:
        said = get_statement(connection, agent.id, statement_id)
        known = get_memory(connection, agent.id, FACT, said.fact_id)
    check(said, known)
    agent.rights.check_may_change(known)
    if is_founding(said):
        with agent.transaction(deadline) as connection:
            store.lock_agent(connection, agent.id)
            return taken_out(connection, agent, said, reason=reason)
    (ready,) = facts.embedded(agent, [own_fact(said, known)], [None], deadline)
    with agent.space_transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        return split_off(connection, agent, said, ready, reason=reason)


def check(said: Statement, known: Fact) -> None:
    """Raise `Refused` where a statement can't be split off its fact."""
    if is_founding(said) and known.succession != "merged":
        raise Refused(
            f"statement {said.id} is what fact {known.id} says, so it can't be split off it; split off another of its "
            "statements, or undo the fact"
        )
    if said.taken_back_at is not None:
        raise Refused(f"the confirmation by statement {said.id} was undone, so it no longer counts for fact {known.id}")
    if not is_founding(said) and known.succession == "merged":
        raise Refused(
            f"statement {said.id} came with fact {known.id}, which was merged into {known.superseded_by}; "
            f"split off the first statement of {known.id}, then this one"
        )


def split_off(connection: Connection, agent: Agent, said: Statement, ready: Embedded, *, reason: str) -> Fact:
    """Store a statement as a fact of its own and take back what it lent to the fact it confirmed."""
    (known,) = locked_memories(connection, agent.id, FACT, [said.fact_id])
    check_unmoved(connection, agent, said, known)
    events = history(connection, agent.id, known.id)
    confirmation = next(event for event in events if event.after.get("statement") == str(said.id))
    new = store.store_split(
        connection, agent.id, ready, Split(said.id, known.id, "split", reason), space=agent.embedder.space
    )
    cause = Cause("agent", "split", reason, datetime.now(UTC))
    note = EventNote({"statement": str(said.id), "split_off": str(new.id)})
    values = lent(connection, agent.id, confirmation)
    change_memory(connection, agent.id, version_of(FACT, known), values, cause=cause, noted=note)
    return new


def taken_out(connection: Connection, agent: Agent, said: Statement, *, reason: str) -> Fact:
    """Bring back a fact that was merged into another, which loses what was confirmed by it."""
    (merged,) = locked_memories(connection, agent.id, FACT, [said.fact_id])
    check_unmoved(connection, agent, said, merged)
    if merged.superseded_by is None:
        raise Conflict(f"fact {merged.id} was brought back meanwhile")
    (keeper,) = locked_memories(connection, agent.id, FACT, [merged.superseded_by])
    agent.rights.check_may_change(keeper)
    if keeper.succession == "merged":
        first = next(each.id for each in statements_of(connection, agent.id, keeper.id) if is_founding(each))
        raise Refused(
            f"fact {merged.id} was merged into {keeper.id}, and that into {keeper.superseded_by}; "
            f"split off statement {first} of {keeper.id} first"
        )
    cause = Cause("agent", "split", reason, datetime.now(UTC))
    count = max(0, keeper.confirmation_count - merged.confirmation_count - 1)
    note = EventNote({"statement": str(said.id), "split_off": str(merged.id)})
    change_memory(
        connection, agent.id, version_of(FACT, keeper), {"confirmation_count": count}, cause=cause, noted=note
    )
    back = EventNote({"statement": str(said.id), "split_from": str(keeper.id)})
    values = {"state": "active", "archived_at": None, "superseded_by": None, "superseded_at": None, "succession": None}
    return change_memory(connection, agent.id, version_of(FACT, merged), values, cause=cause, noted=back)


def check_unmoved(connection: Connection, agent: Agent, said: Statement, known: Fact) -> None:
    """Raise `Conflict` when a statement was split off or taken back since it was read, `Refused` as `check` does."""
    now = get_statement(connection, agent.id, said.id)
    if (now.fact_id, now.reason) != (said.fact_id, said.reason):
        raise Conflict(f"statement {said.id} was split off meanwhile, as fact {now.fact_id}")
    check(now, known)
