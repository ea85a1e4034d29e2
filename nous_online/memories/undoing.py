"""Undo: a new change that restores what an event recorded, refused where a later change depends on it.

It undoes one change, or the joining of a statement to a fact; each in one transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from shlex import quote
from typing import Any, cast
from uuid import UUID

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from nous_online.core.domain import FACT, KINDS, VECTORS, Fact, Statement
from nous_online.core.errors import Conflict, NotFound, Refused
from nous_online.core.policy import MAX_REASON_BYTES
from nous_online.core.validation import checked_id, checked_optional, checked_text
from nous_online.database.changes import (
    Alteration,
    Cause,
    EventNote,
    Version,
    change_memories,
    change_memory,
    get_memory,
    lock_memories,
    lock_memory,
    version_of,
)
from nous_online.database.statements import fetch, statements
from nous_online.memories import facts, store
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.contradictions import mark_sides, reopen
from nous_online.memories.replaced_words import INHERITED
from nous_online.memories.store import (
    REEMBEDDED,
    Embedded,
    Split,
    check_names,
    fact_from_statement,
    get_statement,
    is_first_statement,
    revoke_statement,
    statements_of,
)

BLOCKS = statements("nous_online.memories", "undoing.sql")
REDACTED = "redacted"
"""The action of an event that changed a memory because something it pointed to was erased."""
RULED = "contradiction_resolved"
"""The action of the event that a ruling on a contradiction leaves on both sides."""
"""The action of an event that gave a fact the words of one it replaced at night, to be found by; undone with that."""
MARKED = {"contradicted", RULED, "marked"}
"""The actions of events that set the contradiction status of a fact."""
COUNTED = (
    "confirmation_count", "activation_count", "success_count", "failure_count", "false_positive_count",
    "forgiven_count",
)  # fmt: skip
"""Counters: undo subtracts what the event added, so that later additions stay."""
UNITED = ("tags", "sources")
"""Lists that a confirmation extends: undo removes what it added, so that later additions stay."""
LATEST = ("last_confirmed_at", "last_activated_at", "last_activation")
"""Columns that only move forward: a later value stays."""


@dataclass(frozen=True)
class PastChange:
    """One event of a memory's history: who changed it, why, when, and the changed columns before and after."""

    id: int
    memory_kind: str
    memory_id: UUID
    action: str
    from_state: str
    to_state: str
    version_before: int
    version_after: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    actor: str
    reason: str
    effective_at: datetime
    """Logical time: when it was said, or the end of the night."""
    recorded_at: datetime
    night: date | None
    run_id: str | None
    proposal_id: UUID | None
    undoes: int | None

    @property
    def happened_at(self) -> datetime:
        """When it happened, for people: nights take a move to another embedding space to be as old as the memory."""
        return self.recorded_at if self.action == REEMBEDDED else self.effective_at


class HistoryVerbs(Verbs):
    """The history of memories, and undo."""

    def history(self, memory_id: UUID | str, *, deadline_s: float | None = None) -> list[PastChange]:
        """Return every change of one memory, the latest first: who changed it, why, when, and the values before.

        Raises `NotFound` when this agent has no memory of that id.
        """
        known_id = checked_id("memory_id", memory_id)
        with self._transaction(deadline_s) as connection:
            return history(connection, self.agent.id, known_id)

    def undo(self, memory_id: UUID | str, *, reason: str | None = None, deadline_s: float | None = None) -> PastChange:
        """Undo the latest change of a memory that is in effect, and return it; call it again for the one before.

        Undoing that a fact was learned archives it and makes the facts it had superseded active again. Undoing a ruling
        on a contradiction, on either side or by the id of the contradiction, makes what lost by it active again and
        opens the contradiction again. Undoing a confirmation in other words makes these a fact of their own, so that no
        statement is lost. Raises `Refused` for a change by a night (`nous undo` undoes the whole proposal) and where
        later changes depend on it, and `Forbidden` where the caller may not change a memory of it, or what took the
        place of one. `reason` is kept with the event; without one, that the agent took it back.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        why = checked_text("reason", "the agent took it back" if reason is None else reason, max_bytes=MAX_REASON_BYTES)
        known_id = checked_id("memory_id", memory_id)
        ready: dict[UUID, Embedded] = {}
        while True:
            transaction = agent.space_transaction if ready else agent.transaction
            with transaction(deadline) as connection:
                store.lock_agent(connection, agent.id)
                event = last_ruling(connection, agent.id, known_id) or last_change(connection, agent.id, known_id)
                statement = statement_of(connection, agent.id, event)
                if statement is None or statement.reason != "reworded" or statement.id in ready:
                    undo_change(connection, agent, event, statement, ready, reason=why)
                    return event
                fact = get_memory(connection, agent.id, FACT, statement.fact_id)
            # Embedding may take seconds, so never inside a transaction that others wait for; then everything is read
            # again, because it may have changed meanwhile.
            (ready[statement.id],) = facts.embed_facts(agent, [fact_from_statement(statement, fact)], [None], deadline)

    def split(self, statement_id: UUID | str, *, reason: str | None = None, deadline_s: float | None = None) -> Fact:
        """Split a statement off its fact as a fact of its own, and return that; `undo` joins the two again.

        The first fact loses a confirmation, and the two stay apart: neither nights nor learning the same words again
        join them. Splitting the first statement of a merged fact makes that fact active again. Raises `NotFound`, and
        `Refused` for the statement whose words are the fact's content.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        known_id = checked_id("statement_id", statement_id)
        why = checked_optional("reason", reason, max_characters=1000) or "a person said they are not the same"
        with agent.transaction(deadline) as connection:
            statement = get_statement(connection, agent.id, known_id)
            fact = get_memory(connection, agent.id, FACT, statement.fact_id)
        check_splittable(statement, fact)
        agent.rights.check_may_change(fact)
        if is_first_statement(statement):
            with agent.transaction(deadline) as connection:
                store.lock_agent(connection, agent.id)
                return unmerge(connection, agent, statement, reason=why)
        (embedded,) = facts.embed_facts(agent, [fact_from_statement(statement, fact)], [None], deadline)
        with agent.space_transaction(deadline) as connection:
            store.lock_agent(connection, agent.id)
            return split_from_fact(connection, agent, statement, embedded, reason=why)


# --- one change ---


def history(connection: Connection, agent_id: str, memory_id: UUID) -> list[PastChange]:
    """Return every change of one memory, the latest first; raise `NotFound` when it has none."""
    events = fetch(connection, PastChange, BLOCKS["history"], {"agent_id": agent_id, "memory_id": memory_id})
    if not events:
        raise NotFound(f"agent {agent_id!r} has no memory {memory_id}")
    return events


def last_change(connection: Connection, agent_id: str, memory_id: UUID) -> PastChange:
    """Return the latest change of a memory that is not undone; raise `Refused` for one that a night made."""
    events = history(connection, agent_id, memory_id)
    effective = undoable_changes(events)
    if not effective:
        raise Refused(f"memory {memory_id} was undone already{undone_when(events)}; nothing of it is left to undo")
    if effective[0].proposal_id is not None:
        raise Refused(of_a_night(connection, agent_id, effective[0]))
    return effective[0]


def of_a_night(connection: Connection, agent_id: str, event: PastChange) -> str:
    """Return why a change by a night is not undone by itself, and what takes it back.

    Of a fact that was superseded before the night archived it, also what makes it active again.
    """
    message = (
        f"the night of {event.night} changed memory {event.memory_id} ({event.reason}); "
        f"take back all of it with `nous undo --proposal {event.proposal_id}`"
    )
    fact = get_memory(connection, agent_id, FACT, event.memory_id) if event.from_state == "superseded" else None
    if fact is None or fact.state != "archived" or fact.superseded_by is None:
        return message
    back = store.way_back(connection, agent_id, fact)
    return f"{message}, which leaves it superseded: it was {back} (in Python `restore(id, is_active=True)`)"


def last_ruling(connection: Connection, agent_id: str, contradiction_id: UUID) -> PastChange | None:
    """Return the change by which the ruling on a contradiction is undone; None where there is none of that id.

    That is one of the fact trusted most. Raises `Refused` where nothing is ruled.
    """
    key = {"agent_id": agent_id, "id": contradiction_id}
    if (row := connection.execute(BLOCKS["contradiction_ruled"], key).fetchone()) is None:
        return None
    if events := fetch(connection, PastChange, BLOCKS["rulings_on"], key):
        return events[0]
    gone = " and ".join(f"`nous undo {each}`" for each in row[1])
    how = f"a fact of it left recall since: {gone} brings that back" if gone else "`nous resolve` decides it"
    ruled = "a ruling on it is proposed, which `nous resolve --reject` forgets" if row[0] and not gone else how
    raise Refused(f"contradiction {contradiction_id} was not ruled on, so there is nothing to undo; {ruled}")


def undone_when(events: Sequence[PastChange]) -> str:
    """Return when the last of some events was undone, and why: ", on 2026-11-27 at 14:05 UTC (a typo)"."""
    undone = [event for event in events if event.undoes is not None]
    if not undone:
        return ""
    last = max(undone, key=lambda event: event.recorded_at)
    return f", on {last.recorded_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC ({last.reason})"


def statement_of(connection: Connection, agent_id: str, event: PastChange) -> Statement | None:
    """Return the statement of a confirmation; None for any other event, and for confirmations without a statement."""
    statement_id = event.after.get("statement")
    is_kept = event.action == "confirmed" and statement_id is not None
    return get_statement(connection, agent_id, UUID(statement_id)) if is_kept else None


def undo_change(
    connection: Connection,
    agent: Agent,
    event: PastChange,
    statement: Statement | None,
    ready: Mapping[UUID, Embedded],
    *,
    reason: str,
) -> None:
    """Undo a change and those made together with it; a rewording that confirmed a fact becomes a fact of its own."""
    restore_all(connection, agent, joint_changes(connection, agent.id, event), reason=reason)
    if statement is None:
        return
    if statement.id in ready:
        split = Split(
            statement.id, event.memory_id, "learned", f"its confirmation of another fact was undone: {reason}"
        )
        store.store_split(connection, agent.id, ready[statement.id], split, space=agent.embedder.space)
        return
    if statement.fact_id == event.memory_id:
        revoke_statement(connection, agent.id, statement.id)
        return
    # It was split off and joined again: its own fact becomes active when it no longer confirms the other.
    (own,) = lock_memories(connection, agent.id, FACT, [statement.fact_id])
    if own.superseded_by == event.memory_id and own.succession == "merged":
        note = EventNote({"statement": str(statement.id), "split_from": str(event.memory_id)})
        cause = Cause("agent", "learned", reason, datetime.now(UTC))
        values = {"state": "active", "superseded_by": None, "superseded_at": None, "succession": None}
        change_memory(connection, agent.id, version_of(FACT, own), values, cause=cause, noted=note)


def undo_supersession(connection: Connection, agent: Agent, fact_id: UUID, *, reason: str) -> None:
    """Undo what superseded a fact, whatever became of it since; raise `Refused` where a night did it."""
    fact = lock_memory(connection, agent.id, FACT, fact_id)
    changes = effective_changes(history(connection, agent.id, fact_id))
    found = (each for each in changes if each.after.get("superseded_by") == str(fact.superseded_by))
    event = next(found, None)
    if event is None or event.proposal_id is not None or late_learning(connection, agent.id, event):
        raise Refused(f"fact {fact_id} is not made active by itself: {store.way_back(connection, agent.id, fact)}")
    restore_all(connection, agent, joint_changes(connection, agent.id, event), reason=reason)


def restore_all(
    connection: Connection, agent: Agent, changes: Sequence[PastChange], *, reason: str, besides: Sequence[UUID] = ()
) -> None:
    """Restore what some events changed, then set the contradiction status of those memories and of `besides`.

    What took the place of a fact by hand loses the words that it inherited with that. Raises `Forbidden` where the
    caller may not change one of the memories, or what took the place of one.
    """
    agent_id = agent.id
    key = {"agent_id": agent_id, "ids": [each.id for each in changes]}
    changes = [*fetch(connection, PastChange, BLOCKS["inherited_with"], key), *changes]
    for kind in KINDS.values():
        of_kind = [each for each in changes if each.memory_kind == kind.name]
        heirs = [UUID(each.after["superseded_by"]) for each in of_kind if each.after.get("superseded_by")]
        for memory in lock_memories(connection, agent_id, kind, [*(each.memory_id for each in of_kind), *heirs]):
            agent.rights.check_may_change(memory)
    for each in changes:
        cause = Cause("agent", "undone", reason, datetime.now(UTC), undoes=each.id)
        restore(connection, agent_id, each, cause=cause)
    check_names(connection, agent_id, [each.memory_id for each in changes])
    for each in (each for each in changes if each.action == RULED or each.to_state == "superseded"):
        ruled = each.after.get("contradiction")
        reopen(connection, agent_id, each.memory_id, each.effective_at, ruled, is_whole=each.action == RULED)
    marked = Cause("agent", "marked", reason, datetime.now(UTC))
    mark_sides(connection, agent_id, {*besides, *(each.memory_id for each in changes)}, cause=marked)


def joint_changes(connection: Connection, agent_id: str, event: PastChange) -> list[PastChange]:
    """Return an event with those that must be undone with it: of what it superseded, a split, a merge or a ruling.

    Raises `Refused` where a fact that was split off has changed since.
    """
    found = {each.id: each for each in changes_with(connection, agent_id, event)}
    key = {"agent_id": agent_id, "event_id": event.id}
    ruled = {each.id: each for each in fetch(connection, PastChange, BLOCKS["ruled_with"], key)}
    return sorted((found | ruled).values(), key=lambda each: -each.id) if ruled else [*found.values()]


def changes_with(connection: Connection, agent_id: str, event: PastChange) -> list[PastChange]:
    """Return an event with what it superseded, or the other side of a split or merge; raise as `joint_changes`."""
    if (learned := late_learning(connection, agent_id, event)) is not None:
        return [event, *supersessions(connection, agent_id, learned), learned]
    other_id = event.after.get("split_off") or event.after.get("absorbed")
    if event.action == "split":
        other_id = other_id or event.after["split_from"]
    if event.after.get("succession") == "merged":
        other_id = event.after["superseded_by"]
    if other_id is None:
        return [*supersessions(connection, agent_id, event), event]
    effective = effective_changes(history(connection, agent_id, UUID(other_id)))
    other_side = [each for each in effective if is_other_side(each, event)]
    for each in (event, *other_side):
        if each.action == "split" and "split_from" in each.after:
            last = effective_changes(history(connection, agent_id, each.memory_id))[0]
            if last.id != each.id:
                raise Refused(
                    f"fact {each.memory_id}, which was split off, was changed since: {last.action} by {last.actor} "
                    f"({last.reason}); undo that first: nous undo {each.memory_id} --agent {quote(agent_id)}"
                )
    return [*other_side, event]


def late_learning(connection: Connection, agent_id: str, event: PastChange) -> PastChange | None:
    """Return the *learned* event of a value that was superseded in the transaction that stored it; None for others.

    Such a value was learned out of order and never active, so undo must not make it active either.
    """
    if event.after.get("succession") != "replaced":
        return None
    first = history(connection, agent_id, event.memory_id)[-1]
    return first if first.from_state == "new" and first.recorded_at == event.recorded_at else None


def is_other_side(one: PastChange, other: PastChange) -> bool:
    """Tell whether two events of two facts are the two sides of a split, or of a merge that a person ruled."""
    if one.action == other.action == "split":
        return one.after["statement"] == other.after["statement"]
    pairs = ((one, other), (other, one))
    return any(
        keeper.after.get("absorbed") == str(absorbed.memory_id)
        and absorbed.after.get("superseded_by") == str(keeper.memory_id)
        for keeper, absorbed in pairs
    )


def supersessions(connection: Connection, agent_id: str, event: PastChange) -> list[PastChange]:
    """Return the events that superseded other facts by one whose learning or confirmation is to be undone.

    Left alone, those facts would point to an archived one, and neither would be recalled. A confirmation may replace
    other facts too: of those, the ones superseded in its transaction come back.
    """
    if event.from_state != "new" and event.action != "confirmed":
        return []
    key = {"agent_id": agent_id, "memory_id": event.memory_id}
    retired = [row[0] for row in connection.execute(BLOCKS["retired_for"], key)]
    changes = [effective_changes(history(connection, agent_id, memory_id)) for memory_id in retired]
    found = [each for events in changes for each in retirements(connection, agent_id, events, str(event.memory_id))]
    return found if event.from_state == "new" else [each for each in found if each.recorded_at == event.recorded_at]


def retirements(
    connection: Connection, agent_id: str, events: Sequence[PastChange], successor_id: str
) -> list[PastChange]:
    """Return the events by which a fact was superseded by `successor_id`, the latest first.

    A value learned out of order moves the successor of the one before it: where the learning of the earlier successor
    has been undone since, the event that set that one is included too.
    """
    found: list[PastChange] = []
    for event in events:
        if event.after.get("superseded_by") == successor_id:
            found.append(event)
            earlier_id = event.before.get("superseded_by")
            if earlier_id is None or effective_changes(history(connection, agent_id, UUID(earlier_id))):
                return found
            successor_id = earlier_id
    return found


def effective_changes(events: Sequence[PastChange]) -> list[PastChange]:
    """Return the events that are in effect and can be undone, in the given order."""
    # Not counted: undos and what they undid; moves between spaces and the traces of an erasure, which can't be undone;
    # words inherited from a replaced fact, which go with the supersession;
    # contradiction statuses, which follow the contradictions by themselves, except those a night proposed.
    undone = {event.undoes for event in events}
    ignored = {REEMBEDDED, REDACTED, INHERITED}
    changes = [
        event
        for event in events
        if event.undoes is None and event.action not in (ignored if event.proposal_id else ignored | MARKED)
    ]
    return [event for event in changes if event.id not in undone]


def undoable_changes(events: Sequence[PastChange]) -> list[PastChange]:
    """Return the changes that `undo` takes back one after the other: the effective ones, and rulings on this memory.

    What a ruling superseded or made active stands for it.
    """
    undone, effective = {event.undoes for event in events}, {event.id for event in effective_changes(events)}
    told = {event.recorded_at for event in events if event.action not in MARKED}

    def is_ruling(event: PastChange) -> bool:
        return event.action == RULED and event.recorded_at not in told and event.id not in undone

    return [event for event in events if event.id in effective or is_ruling(event)]


def restore(connection: Connection, agent_id: str, event: PastChange, *, cause: Cause) -> None:
    """Restore what one event changed; raise `Refused`, changing nothing, where a later change depends on it."""
    locked = lock_rows(connection, agent_id, [event])
    change_memories(connection, agent_id, [restoration(connection, agent_id, event, locked, cause=cause)])


@dataclass(frozen=True)
class LockedRows:
    """Locked memories, and their rows in cold storage."""

    rows: Mapping[UUID, tuple[int, Mapping[str, Any]]]
    """The version and the columns, vectors left out, by id."""
    cold: Mapping[UUID, Mapping[str, Mapping[str, Any]]]
    """The row of cold storage of each tier, by id."""


def lock_rows(
    connection: Connection, agent_id: str, events: Sequence[PastChange], *, and_facts: Collection[UUID] = ()
) -> LockedRows:
    """Lock the memories that some events changed, and the facts `and_facts`, and return them as they are now."""
    rows: dict[UUID, tuple[int, Mapping[str, Any]]] = {}
    for kind in KINDS.values():
        ids = {event.memory_id for event in events if event.memory_kind == kind.name}
        if wanted := sorted(ids | set(and_facts) if kind is FACT else ids):
            statement = SQL(BLOCKS["memories_as_json"]).format(table=Identifier("heart", kind.table))
            for memory_id, version, now in connection.execute(statement, {"agent_id": agent_id, "ids": wanted}):
                rows[memory_id] = version, now
    cold: defaultdict[UUID, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    if cooled := [event.memory_id for event in events if cold_tiers(event)]:
        for memory_id, tier, row in connection.execute(BLOCKS["cold_texts"], {"agent_id": agent_id, "ids": cooled}):
            cold[memory_id][tier] = row
    return LockedRows(rows, cold)


def restoration(
    connection: Connection, agent_id: str, event: PastChange, locked: LockedRows, *, cause: Cause
) -> Alteration[Any]:
    """Return the change that restores what one event changed; raise `Refused` where a later change depends on it."""
    kind = KINDS[event.memory_kind]
    if event.memory_id not in locked.rows:
        raise Refused(f"{kind.name} {event.memory_id} is gone")
    version, now = locked.rows[event.memory_id]
    after_event = {
        "state": event.to_state,
        **{name: value_after_event(event, name, now.get(name)) for name in event.after},
    }
    compared = set(now) - VECTORS  # a move to another embedding space changes no text
    compared -= {*COUNTED, *LATEST, *(UNITED if event.action == "confirmed" else ())}
    compared -= {"contradiction_status"} if event.action in MARKED else set()  # whoever undoes sets it again
    compared -= {"context", "state"} if event.action == INHERITED else set()  # words go, wherever the fact is by now
    changed = [name for name in after_event if name in compared and after_event[name] != now[name]]
    if changed:
        later = history(connection, agent_id, event.memory_id)[0]
        raise Refused(
            f"{kind.name} {event.memory_id} was changed since ({', '.join(changed)}): "
            f"{later.action} by {later.actor} ({later.reason}); "
            f"undo that first: nous undo {event.memory_id} --agent {quote(agent_id)}"
        )
    cold = locked.cold.get(event.memory_id, {})
    values = values_before(event, now, cause) | texts_from_cold_storage(event, cold)
    return Alteration(Version(kind, event.memory_id, version), values, cause)


def values_before(event: PastChange, now: Mapping[str, Any], cause: Cause) -> dict[str, Any]:
    """Return the columns of a memory before an event; undoing its first event archives it, since none is deleted."""
    at = cause.effective_at.isoformat()
    if event.from_state == "new" and event.action == "split":
        values = {"state": "superseded", "superseded_by": event.after["split_from"], "superseded_at": at}
        return {**values, "succession": "merged"}
    if event.from_state == "new" or event.action == "learned":
        return {"state": "archived", "archived_at": at}
    is_of_another_space = event.before.get("embedding_space_id") not in (None, now.get("embedding_space_id"))
    if event.action == INHERITED and now.get("context") != event.after["context"]:
        return without_inherited(event, now.get("context"))
    names = set(event.before) - (VECTORS if is_of_another_space else set())  # an old vector means nothing there
    values = {
        name: value_after_undo(name, event.before[name], event.after[name], now.get(name)) for name in sorted(names)
    }
    if "superseded_by" in values:  # an event from before the succession was kept does not name it
        values["succession"] = event.before.get("succession")
    return values


def without_inherited(event: PastChange, context: str | None) -> dict[str, Any]:
    """Return the columns of a fact whose context changed since it inherited words, without these.

    Its vector blends all of its context, so it is dropped: the fact is found by its own until it is re-embedded.
    """
    inherited = event.after["context"].removeprefix(event.before["context"] or "").strip("\n")
    lines = f"\n{context or ''}\n".replace(f"\n{inherited}\n", "\n", 1).strip("\n")
    return {"context": lines or None, "context_embedding": None}


def texts_from_cold_storage(event: PastChange, cold: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the texts an event moved to cold storage, by column; raise `Refused` when one was purged since."""
    tiers = cold_tiers(event)
    purged = [name for name, tier in tiers.items() if cold.get(tier, {}).get(name) is None]
    if purged:
        raise Refused(
            f"the {' and '.join(sorted(purged))} of {event.memory_kind} {event.memory_id} left cold storage for good "
            f"when its time there was over; what the night of {event.night} made of it is all there is"
        )
    return {name: cold[tier][name] for name, tier in tiers.items()}


def value_after_event(event: PastChange, name: str, now: Any) -> Any:
    """Return a column's value right after an event; for a text that grew, the event keeps its old length only."""
    length, after = placeholder(event.before.get(name), "characters"), event.after[name]
    return after if length is None or not isinstance(now, str) else now[:length] + after["appended"]


def placeholder(before: Any, what: str) -> Any:
    """Return what an event keeps in place of a text: its length (`characters`) or its tier (`cold_text`); or None."""
    stored = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
    return stored[what] if set(stored) == {what} else None


def cold_tiers(event: PastChange) -> dict[str, str]:
    """Return the tiers of the texts an event moved to cold storage, by column."""
    tiers = {name: placeholder(before, "cold_text") for name, before in event.before.items()}
    return {name: tier for name, tier in tiers.items() if tier is not None}


def value_after_undo(name: str, before: Any, after: Any, now: Any) -> Any:
    """Return a column's value, now `now`, once a change from `before` to `after` is undone."""
    if name in COUNTED:
        return max(0, now - (after - before))  # an erasure lowers counters by the statements it deletes
    if (length := placeholder(before, "characters")) is not None:
        return now[:length]
    if name in UNITED and now != after:
        return [each for each in now if each in before or each not in after]
    if name in LATEST and now != after:
        return now
    return before


# --- splitting a statement off its fact ---


def check_splittable(statement: Statement, fact: Fact) -> None:
    """Raise `Refused` where a statement can't be split off its fact."""
    if is_first_statement(statement) and fact.succession != "merged":
        raise Refused(
            f"statement {statement.id} is what fact {fact.id} says, so it can't be split off it; split off another "
            "of its statements, or undo the fact"
        )
    if statement.taken_back_at is not None:
        raise Refused(
            f"the confirmation by statement {statement.id} was undone, so it no longer counts for fact {fact.id}"
        )
    if not is_first_statement(statement) and fact.succession == "merged":
        raise Refused(
            f"statement {statement.id} came with fact {fact.id}, which was merged into {fact.superseded_by}; "
            f"split off the first statement of {fact.id}, then this one"
        )


def split_from_fact(
    connection: Connection, agent: Agent, statement: Statement, embedded: Embedded, *, reason: str
) -> Fact:
    """Store a statement as a fact of its own, and remove what it added to the fact it confirmed."""
    (fact,) = lock_memories(connection, agent.id, FACT, [statement.fact_id])
    check_unmoved(connection, agent, statement, fact)
    events = history(connection, agent.id, fact.id)
    confirmation = next(event for event in events if event.after.get("statement") == str(statement.id))
    new = store.store_split(
        connection, agent.id, embedded, Split(statement.id, fact.id, "split", reason), space=agent.embedder.space
    )
    cause = Cause("agent", "split", reason, datetime.now(UTC))
    note = EventNote({"statement": str(statement.id), "split_off": str(new.id)})
    # Columns that were changed since are left as they are.
    _, columns = lock_rows(connection, agent.id, [confirmation]).rows[confirmation.memory_id]
    values = {
        name: value_after_undo(name, before, confirmation.after[name], columns[name])
        for name, before in confirmation.before.items()
        if name in COUNTED or columns[name] == confirmation.after[name]
    }
    change_memory(connection, agent.id, version_of(FACT, fact), values, cause=cause, noted=note)
    return new


def unmerge(connection: Connection, agent: Agent, statement: Statement, *, reason: str) -> Fact:
    """Make a merged fact active again, and remove what the merge added to the other one."""
    (merged,) = lock_memories(connection, agent.id, FACT, [statement.fact_id])
    check_unmoved(connection, agent, statement, merged)
    if merged.superseded_by is None:
        raise Conflict(f"fact {merged.id} was brought back meanwhile")
    (keeper,) = lock_memories(connection, agent.id, FACT, [merged.superseded_by])
    agent.rights.check_may_change(keeper)
    if keeper.succession == "merged":
        first = next(each.id for each in statements_of(connection, agent.id, keeper.id) if is_first_statement(each))
        raise Refused(
            f"fact {merged.id} was merged into {keeper.id}, and that into {keeper.superseded_by}; "
            f"split off statement {first} of {keeper.id} first"
        )
    cause = Cause("agent", "split", reason, datetime.now(UTC))
    count = max(0, keeper.confirmation_count - merged.confirmation_count - 1)
    note = EventNote({"statement": str(statement.id), "split_off": str(merged.id)})
    change_memory(
        connection, agent.id, version_of(FACT, keeper), {"confirmation_count": count}, cause=cause, noted=note
    )
    back = EventNote({"statement": str(statement.id), "split_from": str(keeper.id)})
    values = {"state": "active", "archived_at": None, "superseded_by": None, "superseded_at": None, "succession": None}
    change_memory(connection, agent.id, version_of(FACT, merged), values, cause=cause, noted=back)
    mark_sides(connection, agent.id, [merged.id], cause=replace(cause, action="marked"))
    return get_memory(connection, agent.id, FACT, merged.id)


def check_unmoved(connection: Connection, agent: Agent, statement: Statement, fact: Fact) -> None:
    """Raise `Conflict` when a statement was split off since it was read, `Refused` as `check_splittable` does."""
    now = get_statement(connection, agent.id, statement.id)
    if (now.fact_id, now.reason) != (statement.fact_id, statement.reason):
        raise Conflict(f"statement {statement.id} was split off meanwhile, as fact {now.fact_id}")
    check_splittable(now, fact)
