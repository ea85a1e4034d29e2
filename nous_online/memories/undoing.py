"""Taking back what was done to a memory: another change, refused where somebody built on it since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, cast
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Identifier

from nous_online.core.deadline import Deadline
from nous_online.core.domain import Statement
from nous_online.core.errors import NotFound, Refused
from nous_online.core.kinds import FACT, KINDS, VECTORS
from nous_online.database.changes import (
    Alteration,
    Cause,
    EventNote,
    Version,
    change_memories,
    change_memory,
    get_memory,
    locked_memories,
    version_of,
)
from nous_online.database.statements import statements
from nous_online.memories import fact_statements, facts
from nous_online.memories.agent import Agent
from nous_online.memories.contradictions import mark_sides
from nous_online.memories.fact_statements import own_fact
from nous_online.memories.moving import REEMBEDDED
from nous_online.memories.store import Embedded, Split, lock_agent, store_split

BLOCKS = statements("nous_online.memories", "undoing.sql")
REDACTED = "redacted"
"""What is done to a memory when something it rested on, or pointed to, is erased."""
MARKED = {"contradicted", "contradiction_resolved", "marked"}
"""What says of a fact how its contradictions stand."""
COUNTED = (
    "confirmation_count", "activation_count", "success_count", "failure_count", "false_positive_count",
    "forgiven_count",
)  # fmt: skip
"""Columns that are added to: taking back subtracts what was added, whatever was added since."""
UNITED = ("tags", "sources")
"""Lists that a confirmation adds to: taking it back leaves out what it added."""
LATEST = ("last_confirmed_at", "last_activated_at", "last_activation")
"""Columns that only move forward: a later value stays."""


@dataclass(frozen=True)
class PastChange:
    """One change of one memory: who, why, when, and what it was before."""

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


def history(connection: Connection, agent_id: str, memory_id: UUID) -> list[PastChange]:
    """Return every change of one memory, the latest first; raise `NotFound` when it has none."""
    with connection.cursor(row_factory=class_row(PastChange)) as cursor:
        events = cursor.execute(BLOCKS["history"], {"agent_id": agent_id, "memory_id": memory_id}).fetchall()
    if not events:
        raise NotFound(f"agent {agent_id!r} has no memory {memory_id}")
    return events


def undo_last(agent: Agent, memory_id: UUID, *, reason: str, deadline: Deadline) -> PastChange:
    """Take back the latest change of a memory that still stands, and return it.

    Raises `Refused` for a change that a night made as part of a proposal, which is taken back as a whole, where
    nothing is left to take back, and for a document whose name was given to another. Words that confirmed a fact stay:
    other words become a fact of their own, the same ones no longer count.
    """
    ready: dict[UUID, Embedded] = {}
    while True:
        transaction = agent.space_transaction if ready else agent.transaction
        with transaction(deadline) as connection:
            lock_agent(connection, agent.id)
            event = last_change(connection, agent.id, memory_id)
            if not agent.rights.is_operator:
                agent.rights.check_may_change(get_memory(connection, agent.id, KINDS[event.memory_kind], memory_id))
            said = statement_of(connection, agent.id, event)
            if said is None or said.reason != "reworded" or said.id in ready:
                take_back(connection, agent, event, said, ready, reason=reason)
                return event
            known = get_memory(connection, agent.id, FACT, said.fact_id)
        # Embedding may take seconds: never inside a transaction that others wait for.
        (ready[said.id],) = facts.embedded(agent, [own_fact(said, known)], [None], deadline)


def last_change(connection: Connection, agent_id: str, memory_id: UUID) -> PastChange:
    """Return the latest change of a memory that still stands; raise `Refused` where undoing it is not the agent's."""
    left = standing(history(connection, agent_id, memory_id))
    if not left:
        raise Refused(f"every change of memory {memory_id} has been taken back")
    event = left[0]
    if event.proposal_id is not None:
        message = (
            f"the night of {event.night} changed memory {memory_id} ({event.reason}); "
            f"take back all of it with `nous undo --proposal {event.proposal_id}`"
        )
        raise Refused(message)
    return event


def statement_of(connection: Connection, agent_id: str, event: PastChange) -> Statement | None:
    """Return the statement by which a fact was confirmed; None for any other change, and for one that kept no words."""
    named = event.after.get("statement")
    is_kept = event.action == "confirmed" and named is not None
    return fact_statements.get_statement(connection, agent_id, UUID(named)) if is_kept else None


def take_back(
    connection: Connection,
    agent: Agent,
    event: PastChange,
    said: Statement | None,
    ready: Mapping[UUID, Embedded],
    *,
    reason: str,
) -> None:
    """Take back a change and those it was made with; the words that confirmed a fact stay, in a fact of their own."""
    changes = together(connection, agent.id, event)
    for each in changes:
        cause = Cause("agent", "undone", reason, datetime.now(UTC), undoes=each.id)
        restore(connection, agent.id, each, cause=cause)
    check_names(connection, agent.id, [each.memory_id for each in changes])
    cause = Cause("agent", "marked", reason, datetime.now(UTC))
    for memory_id in {each.memory_id for each in changes}:
        mark_sides(connection, agent.id, memory_id, cause=cause)
    if said is None:
        return
    if said.id in ready:
        split = Split(said.id, event.memory_id, "learned", f"its confirmation of another fact was undone: {reason}")
        store_split(connection, agent.id, ready[said.id], split, space=agent.embedder.space)
    elif said.fact_id == event.memory_id:
        fact_statements.take_back(connection, agent.id, said.id)
    else:
        bring_back(connection, agent.id, said, event.memory_id, reason=reason)


def bring_back(connection: Connection, agent_id: str, said: Statement, confirmed_id: UUID, *, reason: str) -> None:
    """Make active again the fact of a statement that was split off, joined again, and no longer confirms the other."""
    (own,) = locked_memories(connection, agent_id, FACT, [said.fact_id])
    if own.superseded_by == confirmed_id and own.succession == "merged":
        note = EventNote({"statement": str(said.id), "split_from": str(confirmed_id)})
        cause = Cause("agent", "learned", reason, datetime.now(UTC))
        values = {"state": "active", "superseded_by": None, "superseded_at": None, "succession": None}
        change_memory(connection, agent_id, version_of(FACT, own), values, cause=cause, noted=note)


def together(connection: Connection, agent_id: str, event: PastChange) -> list[PastChange]:
    """Return the changes that are taken back with one of them: those it superseded, both sides of a split or a merge.

    Raises `Refused` where a fact that was split off has changed since.
    """
    if (learned := learned_late(connection, agent_id, event)) is not None:
        return [event, *superseding(connection, agent_id, learned), learned]
    other = event.after.get("split_off") or event.after.get("absorbed")
    if event.action == "split":
        other = other or event.after["split_from"]
    if event.after.get("succession") == "merged":
        other = event.after["superseded_by"]
    if other is None:
        return [*superseding(connection, agent_id, event), event]
    left = standing(history(connection, agent_id, UUID(other)))
    found = [each for each in left if is_other_side(each, event)]
    for each in (event, *found):
        if each.action == "split" and "split_from" in each.after:
            check_last(connection, agent_id, each)
    return [*found, event]


def learned_late(connection: Connection, agent_id: str, event: PastChange) -> PastChange | None:
    """Return how a value was learned that gave way to a later one in the same transaction; None for any other change.

    It was never believed in the present, so it does not become what the agent believes when it is taken back.
    """
    if event.after.get("succession") != "replaced":
        return None
    first = history(connection, agent_id, event.memory_id)[-1]
    return first if first.from_state == "new" and first.recorded_at == event.recorded_at else None


def is_other_side(one: PastChange, other: PastChange) -> bool:
    """Tell whether two changes of two facts are a split, or a merge that a person ruled."""
    if one.action == other.action == "split":
        return one.after["statement"] == other.after["statement"]
    pairs = ((one, other), (other, one))
    return any(
        keeper.after.get("absorbed") == str(gone.memory_id) and gone.after.get("superseded_by") == str(keeper.memory_id)
        for keeper, gone in pairs
    )


def check_last(connection: Connection, agent_id: str, event: PastChange) -> None:
    """Raise `Refused` when the fact that was split off changed after that."""
    last = standing(history(connection, agent_id, event.memory_id))[0]
    if last.id != event.id:
        raise Refused(
            f"fact {event.memory_id}, which was split off, was changed since: {last.action} by {last.actor} "
            f"({last.reason}); undo that first"
        )


def check_names(connection: Connection, agent_id: str, memory_ids: Sequence[UUID]) -> None:
    """Raise `Refused` when one of some memories is a document whose name, or a value whose key, another one holds."""
    parameters = {"agent_id": agent_id, "ids": list(memory_ids)}
    for fact_id, key, holder in connection.execute(BLOCKS["keys_held_twice"], parameters):
        raise Refused(
            f"fact {fact_id} would share the key {key!r} with {holder}; undo that first, or learn the value again"
        )
    for (name,) in connection.execute(BLOCKS["documents_of_one_name"], parameters):
        raise Refused(f"document {name!r} was written anew since; remove or rename that one first, then undo this")


def superseding(connection: Connection, agent_id: str, event: PastChange) -> list[PastChange]:
    """Return the changes that retired other facts in favour of one whose learning or confirming is to be taken back.

    Without them, those facts would point to an archived one, and neither would be recalled. Who confirms a fact may say
    that it replaces others: of those facts, the ones that gave way at that moment come back.
    """
    if event.from_state != "new" and event.action != "confirmed":
        return []
    key = {"agent_id": agent_id, "memory_id": event.memory_id}
    retired = [row[0] for row in connection.execute(BLOCKS["retired_for"], key)]
    changes = [standing(history(connection, agent_id, memory_id)) for memory_id in retired]
    found = [each for events in changes for each in retiring(connection, agent_id, events, str(event.memory_id))]
    return found if event.from_state == "new" else [each for each in found if each.recorded_at == event.recorded_at]


def retiring(
    connection: Connection, agent_id: str, events: Sequence[PastChange], successor_id: str
) -> list[PastChange]:
    """Return the changes by which a fact gave way to one whose learning is to be taken back.

    Before a value that was told late, it had given way to the one after that: to that too, where its learning has been
    taken back since.
    """
    found: list[PastChange] = []
    for event in events:
        if event.after.get("superseded_by") == successor_id:
            found.append(event)
            earlier_id = event.before.get("superseded_by")
            if earlier_id is None or standing(history(connection, agent_id, UUID(earlier_id))):
                return found
            successor_id = earlier_id
    return found


def standing(events: Sequence[PastChange]) -> list[PastChange]:
    """Return the events that are no undoing and were not undone, as ordered.

    Moves between spaces don't count, nor does what erasing something else changed: that can't be taken back. Marks say
    how the contradictions of a fact stand, and follow those by themselves, unless a night's proposal made them.
    """
    undone = {event.undoes for event in events}
    followed = {REEMBEDDED, REDACTED}
    changes = [
        event
        for event in events
        if event.undoes is None and event.action not in (followed if event.proposal_id else followed | MARKED)
    ]
    return [event for event in changes if event.id not in undone]


def restore(connection: Connection, agent_id: str, event: PastChange, *, cause: Cause) -> None:
    """Put back what one event changed; raise `Refused`, changing nothing, where a later change depends on it."""
    found = locked_rows(connection, agent_id, [event])
    change_memories(connection, agent_id, [restoration(connection, agent_id, event, found, cause=cause)])


@dataclass(frozen=True)
class LockedRows:
    """Memories as they stand while nobody else can change them, and what lies in cold storage of them."""

    rows: Mapping[UUID, tuple[int, Mapping[str, Any]]]
    """The version and the columns, vectors left out, by id."""
    cold: Mapping[UUID, Mapping[str, Mapping[str, Any]]]
    """The row of cold storage of each tier, by id."""


def locked_rows(
    connection: Connection, agent_id: str, events: Sequence[PastChange], *, and_facts: Collection[UUID] = ()
) -> LockedRows:
    """Lock what some events changed, and other facts, and return how it stands."""
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
    connection: Connection, agent_id: str, event: PastChange, found: LockedRows, *, cause: Cause
) -> Alteration[Any]:
    """Return what puts back what one event changed; raise `Refused` where a later change depends on it."""
    kind = KINDS[event.memory_kind]
    if event.memory_id not in found.rows:
        raise Refused(f"{kind.name} {event.memory_id} is gone")
    version, now = found.rows[event.memory_id]
    left = {"state": event.to_state, **{name: image(event, name, now.get(name)) for name in event.after}}
    told = set(now) - VECTORS  # a memory that moved to another embedding space says what it said
    united = UNITED if event.action == "confirmed" else ()
    changed = [name for name in left if name in told and name not in united and is_changed(name, left[name], now[name])]
    if changed:
        later = history(connection, agent_id, event.memory_id)[0]
        raise Refused(
            f"{kind.name} {event.memory_id} was changed since ({', '.join(changed)}): "
            f"{later.action} by {later.actor} ({later.reason}); undo that first"
        )
    values = earlier(event, now, cause) | warmed(event, found.cold.get(event.memory_id, {}))
    return Alteration(Version(kind, event.memory_id, version), values, cause)


def earlier(event: PastChange, now: Mapping[str, Any], cause: Cause) -> dict[str, Any]:
    """Return the columns of a memory as they were before an event; what had just been stored is archived instead."""
    at = cause.effective_at.isoformat()
    if event.from_state == "new" and event.action == "split":
        gone = {"state": "superseded", "superseded_by": event.after["split_from"], "superseded_at": at}
        return {**gone, "succession": "merged"}
    if event.from_state == "new" or event.action == "learned":
        return {"state": "archived", "archived_at": at}
    is_of_another_space = event.before.get("embedding_space_id") not in (None, now.get("embedding_space_id"))
    names = set(event.before) - (VECTORS if is_of_another_space else set())
    values = {name: restored(name, event.before[name], event.after[name], now.get(name)) for name in sorted(names)}
    if "superseded_by" in values:  # an event from before the succession was kept does not name it
        values["succession"] = event.before.get("succession")
    return values


def lent(connection: Connection, agent_id: str, event: PastChange) -> dict[str, Any]:
    """Return the columns of a fact without what a confirmation lent to it, as far as nothing was added to it since."""
    _, columns = locked_rows(connection, agent_id, [event]).rows[event.memory_id]
    return {
        name: restored(name, before, event.after[name], columns[name])
        for name, before in event.before.items()
        if name in COUNTED or columns[name] == event.after[name]
    }


def warmed(event: PastChange, kept: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the texts an event sent to cold storage; raise `Refused` when one of them has been purged since."""
    tiers = cold_tiers(event)
    purged = [name for name, tier in tiers.items() if kept.get(tier, {}).get(name) is None]
    if purged:
        raise Refused(
            f"the {' and '.join(sorted(purged))} of {event.memory_kind} {event.memory_id} left cold storage for good "
            f"when its time there was over; what the night of {event.night} made of it is all there is"
        )
    return {name: kept[tier][name] for name, tier in tiers.items()}


def image(event: PastChange, name: str, now: Any) -> Any:
    """Return what a column became by an event; of a text that only grew, the event knows how long it was before."""
    length, after = length_before(event.before.get(name)), event.after[name]
    return after if length is None or not isinstance(now, str) else now[:length] + after["appended"]


def length_before(before: Any) -> int | None:
    """Return how long a text was, where an event keeps only by how much it grew."""
    kept = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
    return kept["characters"] if set(kept) == {"characters"} else None


def cold_tiers(event: PastChange) -> dict[str, str]:
    """Return the tiers under which texts lie in cold storage, by column: an event keeps those instead of the texts."""
    kept = {name: cast("dict[str, Any]", each) for name, each in event.before.items() if isinstance(each, dict)}
    return {name: each["cold_text"] for name, each in kept.items() if set(each) == {"cold_text"}}


def is_changed(name: str, after: Any, now: Any) -> bool:
    """Tell whether somebody changed a column since, in a way that taking back would destroy."""
    return name not in COUNTED and name not in LATEST and after != now


def restored(name: str, before: Any, after: Any, now: Any) -> Any:
    """Return what a column should hold once a change from `before` to `after` is taken back from `now`."""
    if name in COUNTED:
        return max(0, now - (after - before))  # what was erased since is counted no more
    if (length := length_before(before)) is not None:
        return now[:length]
    if name in UNITED and now != after:
        return [each for each in now if each in before or each not in after]
    if name in LATEST and now != after:
        return now
    return before
