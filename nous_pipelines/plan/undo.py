"""Undoes proposals of nights: by new, version-checked changes, refused where a later change built on them."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from shlex import quote
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable, QueryCanceled
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from nous_online.core.domain import FACT, KINDS
from nous_online.core.errors import InvalidInput, NotFound, NousError, Refused, Unavailable
from nous_online.core.validation import checked_choice
from nous_online.database.changes import Alteration, Cause, add_usage, change_memories
from nous_online.database.connection import Database
from nous_online.memories.contradictions import mark_sides
from nous_online.memories.store import check_names
from nous_online.memories.undoing import PastChange, lock_rows, restoration
from nous_pipelines.failpoints import reach
from nous_pipelines.phases.phase_table import PROPOSAL_KINDS
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.plan.apply import (
    CHUNK_SIZE,
    CHUNK_TIMEOUT_S,
    SQL,
    by_id,
    retry_on_deadlock,
    usage_delta,
    violated_rule,
)

PART_TIMEOUT_S = 2.0
"""For each part of a chunk that timed out: the whole has waited `CHUNK_TIMEOUT_S` already."""
BUSY = (QueryCanceled, LockNotAvailable, DeadlockDetected)
"""Errors of a transaction that are caused by concurrent work on the same rows."""


@dataclass(frozen=True)
class Selection:
    """A filter for the applied proposals to undo; None matches everything."""

    agent_id: str | None = None
    night: date | None = None
    kind: str | None = None
    id: UUID | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            checked_choice("kind", self.kind, [*PROPOSAL_KINDS])


@dataclass(frozen=True)
class Undone:
    """The proposals that were undone, and those that were not, with the reason."""

    undone: tuple[UUID, ...]
    refused: Mapping[UUID, str]
    agents: tuple[str, ...] = ()
    """Whose proposals were undone."""


def undo(database: Database, selection: Selection, *, reason: str, chunk_size: int = CHUNK_SIZE) -> Undone:
    """Undo the selected proposals, latest night first, each transaction with some of one agent.

    Restores every column they changed. Refused, and still applied, is a proposal whose memories were changed since in
    the same columns, one whose rows stayed locked, and what is left when the database fails half-way. Raises `NotFound`
    when no selected proposal is applied, `InvalidInput` when the id of one is of several agents, and `Unavailable` when
    nothing could be undone.
    """
    undone: list[AppliedProposal] = []
    refused: list[tuple[AppliedProposal, str]] = []
    # A transaction for each proposal takes 19 times as long as applying them did.
    selected = select_proposals(database, selection)
    chunks = chunks_of(selected, chunk_size)
    parts = deque((chunk, CHUNK_TIMEOUT_S) for chunk in chunks)
    while parts:
        part, timeout_s = parts.popleft()
        try:
            faults = undo_chunk(database, part, reason=reason, timeout_s=timeout_s)
        except (Refused, InvalidInput, Unavailable) as error:
            if is_fatal(error):
                if not undone:
                    raise
                left = [each for missed in (part, *(rest for rest, _ in parts)) for each in missed]
                refused += [(each, f"not reached: {error}") for each in left]
                break
            if len(part) > 1:  # bisect, so that one proposal does not keep its whole chunk from being undone
                half, patience_s = len(part) // 2, min(timeout_s, PART_TIMEOUT_S)
                # `extendleft` reverses: the first half goes first, since changes are undone in order.
                parts.extendleft([(part[half:], patience_s), (part[:half], patience_s)])
                continue
            faults = {part[0].id: refusal_reason(error)}
        refused += [(each, faults[each.id]) for each in part if each.id in faults]
        undone += [each for each in part if each.id not in faults]
        reach("undo committed")
    agents = tuple(sorted({each.agent_id for each in undone}))
    return Undone(tuple(each.id for each in undone), reasons_by_id(selected, refused), agents)


def reasons_by_id(
    selected: Iterable[AppliedProposal], refused: Iterable[tuple[AppliedProposal, str]]
) -> dict[UUID, str]:
    """Return why proposals were refused; of an id that a copied agent has, too, the reasons name the agents."""
    owners = Counter(each.id for each in selected)
    reasons: defaultdict[UUID, list[str]] = defaultdict(list)
    for each, why in refused:
        reasons[each.id].append(why if owners[each.id] == 1 else f"of {each.agent_id}: {why}")
    return {each: "; ".join(found) for each, found in reasons.items()}


def select_proposals(database: Database, selection: Selection) -> list[AppliedProposal]:
    """Return the applied proposals of a selection, in the order to undo them; raise `NotFound` for none."""
    check_owner(database, selection)
    found = database.rows(AppliedProposal, SQL["applied_proposals"], vars(selection))
    if not found:
        wanted = ", ".join(f"{name}={value}" for name, value in vars(selection).items() if value is not None)
        if when := undone_when(database, selection):
            raise NotFound(f"all that has {wanted} was undone already{when}; nothing of it is left to undo")
        raise NotFound(f"no applied proposal has {wanted or 'been found'}; `nous diff` shows what each night did")
    return found


def check_owner(database: Database, selection: Selection) -> None:
    """Raise `InvalidInput` for an id alone that is of several agents: a copied agent keeps the ids of its proposals."""
    if selection.id is None or selection.agent_id is not None:
        return
    with database.transaction() as connection:
        owners = [agent_id for (agent_id,) in connection.execute(SQL["owners"], [selection.id])]
    if len(owners) > 1:
        raise InvalidInput(f"proposal {selection.id} is of several agents: {', '.join(owners)}; name one with --agent")


def undone_when(database: Database, selection: Selection) -> str:
    """Return when the last proposal of a selection was undone, and why: ", on 2026-11-27 at 14:05 UTC (a mistake)"."""
    with database.transaction() as connection:
        found = connection.execute(SQL["last_undone"], vars(selection)).fetchone()
    return f", on {found[0].astimezone(UTC):%Y-%m-%d at %H:%M} UTC ({found[1]})" if found else ""


def chunks_of(proposals: Iterable[AppliedProposal], size: int) -> Iterator[list[AppliedProposal]]:
    """Yield chunks of at most `size` proposals of one agent and night, no two of which changed the same memory.

    Two changes of one memory have to be undone one after the other, the later one first.
    """
    chunk: list[AppliedProposal] = []
    changed: set[str] = set()
    for each in proposals:
        is_other = bool(chunk) and (each.agent_id, each.night) != (chunk[-1].agent_id, chunk[-1].night)
        if is_other or len(chunk) == size or changed & each.changed:
            yield chunk
            chunk, changed = [], set()
        chunk.append(each)
        changed |= each.changed
    if chunk:
        yield chunk


def undo_chunk(
    database: Database, proposals: Sequence[AppliedProposal], *, reason: str, timeout_s: float
) -> dict[UUID, str]:
    """Undo proposals of one agent in one transaction, and return those that were refused with the reason."""

    def attempt() -> dict[UUID, str]:
        with database.transaction(proposals[0].agent_id, timeout_s=timeout_s) as connection:
            return take_back(connection, proposals, reason=reason)

    return retry_on_deadlock(attempt)


def undo_range(database: Database, selection: Selection, nights: Iterable[date], *, reason: str) -> dict[date, Undone]:
    """Undo nights in the order given, newest first, and stop after the first of which something is refused.

    Returns the result of each night that had anything to undo. Raises `NotFound` when none had, and `Unavailable`,
    naming the nights that were undone, when the database fails.
    """
    results: dict[date, Undone] = {}
    missing: NotFound | None = None
    for night in nights:
        try:
            results[night] = undo(database, replace(selection, night=night), reason=reason)
        except NotFound as error:
            missing = missing or error
            continue
        except Unavailable as error:
            done = ", ".join(each.isoformat() for each in results) or "no night"
            raise Unavailable(f"{done} was taken back, then night {night} could not be: {error}") from error
        if results[night].refused:
            break
    if missing is not None and not results:
        raise NotFound(f"no applied proposal is left of these nights, the newest: {missing}") from missing
    return results


def is_fatal(error: NousError) -> bool:
    """Return whether a transaction failed for a reason that the other chunks will meet, too."""
    if isinstance(error, Unavailable):
        return not isinstance(error.__cause__, BUSY)
    return isinstance(error.__cause__, InsufficientPrivilege)


def refusal_reason(error: Refused | InvalidInput | Unavailable) -> str:
    """Return why one proposal can't be undone."""
    if isinstance(error, Unavailable):
        return f"busy: somebody is at work on what it changed ({error}); run it again"
    return violated_rule(error)


# --- the proposals of one agent in one transaction: decided on locked rows, then undone together ---


@dataclass(frozen=True)
class AppliedProposal:
    """The columns of an applied proposal that undoing needs."""

    agent_id: str
    id: UUID
    night: date
    kind: str
    reason: str
    read_set: list[dict[str, Any]]
    changes: list[dict[str, Any]]

    @cached_property
    def by_kind(self) -> dict[str, list[Change]]:
        """Its changes by kind; those of memories of any kind under `memory`."""
        found: defaultdict[str, list[Change]] = defaultdict(list)
        for each in self.changes:
            found["memory" if each["kind"] in KINDS else each["kind"]].append(Change(**each))
        return found

    @property
    def changed(self) -> set[str]:
        """The memories it changed, with those that took their place, which inherited words."""
        changes = self.by_kind.get("memory", [])
        return {each for change in changes for each in (change.id, change.set.get("superseded_by")) if each}

    @property
    def contradicting(self) -> set[UUID]:
        """The facts between which it opened a contradiction."""
        opened = self.by_kind.get("contradiction", [])
        return {UUID(each.set[side]) for each in opened for side in ("memory_a", "memory_b")}


def take_back(connection: Connection, proposals: Sequence[AppliedProposal], *, reason: str) -> dict[UUID, str]:
    """Undo proposals of one agent and night in the caller's transaction; return those refused, with the reason.

    No two of them may have changed the same memory. Raises `Refused` when the database forbids a change; the caller
    must roll back then.
    """
    agent_id, ids = proposals[0].agent_id, [proposal.id for proposal in proposals]
    states = dict(connection.execute(SQL["lock_proposals"], {"agent_id": agent_id, "ids": ids}).fetchall())
    standing = [proposal for proposal in proposals if states.get(proposal.id) == "applied"]
    refused = {each: f"proposal {each} is no longer applied" for each in ids if states.get(each) != "applied"}
    sound, alterations, faults = decide(connection, agent_id, standing, reason=reason)
    reach("undo decided")
    change_memories(connection, agent_id, alterations)
    check_names(connection, agent_id, [each.read.id for each in alterations])
    reach("memories restored")
    take_back_usage(connection, agent_id, sound)
    remove_links(connection, agent_id, sound)
    reach("links removed")
    close_contradictions(connection, agent_id, sound, reason=reason)
    restored = {each.read.id for each in alterations if each.read.kind is FACT}
    named = {fact for proposal in sound for fact in proposal.contradicting}
    marked = Cause("operator", "marked", reason, datetime.now(UTC))
    mark_sides(connection, agent_id, restored | named, cause=marked)
    reach("contradictions closed")
    decided = {"agent_id": agent_id, "ids": [proposal.id for proposal in sound], "outcome": reason}
    connection.execute(SQL["mark_undone"], decided)
    connection.execute(SQL["count_taken_back"], {**decided, "night": proposals[0].night})
    reach("proposals undone")
    return refused | faults


def decide(
    connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal], *, reason: str
) -> tuple[list[AppliedProposal], list[Alteration[Any]], dict[UUID, str]]:
    """Lock what the proposals changed; return those that can be undone, the changes needed, and the others' reasons."""
    events: defaultdict[UUID | None, list[PastChange]] = defaultdict(list)
    key = {"agent_id": agent_id, "ids": [proposal.id for proposal in proposals]}
    with connection.cursor(row_factory=class_row(PastChange)) as cursor:
        for event in cursor.execute(SQL["proposal_events"], key):
            events[event.proposal_id].append(event)
    named = {fact for proposal in proposals for fact in proposal.contradicting}
    found = lock_rows(connection, agent_id, [each for own in events.values() for each in own], and_facts=named)
    resolved = resolved_since(connection, agent_id, proposals)
    at = datetime.now(UTC)

    sound: list[AppliedProposal] = []
    alterations: list[Alteration[Any]] = []
    refused: dict[UUID, str] = {}
    for proposal in proposals:
        own: list[Alteration[Any]] = []
        try:
            check_unresolved(proposal, resolved)
            for event in events[proposal.id]:
                cause = Cause("operator", "undone", reason, at, proposal_id=proposal.id, undoes=event.id)
                own.append(restoration(connection, agent_id, event, found, cause=cause))
        except Refused as refusal:
            refused[proposal.id] = str(refusal)
            continue
        sound.append(proposal)
        alterations += own
    return sound, alterations, refused


def resolved_since(
    connection: Connection, agent_id: str, proposals: Collection[AppliedProposal]
) -> dict[str, tuple[str, str | None]]:
    """Lock the contradictions that proposals opened; return resolution and note of those resolved since, by id."""
    ids = [each.id for proposal in proposals for each in proposal.by_kind.get("contradiction", [])]
    if not ids:
        return {}
    rows = connection.execute(SQL["lock_contradictions"], {"agent_id": agent_id, "ids": ids}).fetchall()
    return {str(each): (resolution, note) for each, status, resolution, note in rows if status == "resolved"}


def check_unresolved(proposal: AppliedProposal, resolved: dict[str, tuple[str, str | None]]) -> None:
    """Raise `Refused` if a contradiction that the proposal opened has been resolved."""
    for each in proposal.by_kind.get("contradiction", []):
        if each.id in resolved:
            resolution, note = resolved[each.id]
            pair = f"{each.set['memory_a']} and {each.set['memory_b']}"
            why = f" ({note})" if note else ""
            what = f"the contradiction between facts {pair} has been resolved since, as {resolution!r}{why}"
            command = f"nous undo {each.set['memory_a']} --agent {quote(proposal.agent_id)}"
            raise Refused(f"{what}; undo that first: {command}")


def take_back_usage(connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal]) -> None:
    """Subtract what proposals added to the usage counters."""
    deltas = [
        usage_delta(reads[each.id], each, sign=-1)
        for proposal in proposals
        if "usage" in proposal.by_kind
        for reads in [by_id(Read(**read) for read in proposal.read_set)]
        for each in proposal.by_kind["usage"]
    ]
    add_usage(connection, agent_id, deltas)


def remove_links(connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal]) -> None:
    """Remove the links that proposals made."""
    links = [{"id": each.id, **each.set} for proposal in proposals for each in proposal.by_kind.get("link", [])]
    if links:
        connection.execute(SQL["remove_links"], {"agent_id": agent_id, "links": Jsonb(links)})


def close_contradictions(
    connection: Connection, agent_id: str, proposals: Sequence[AppliedProposal], *, reason: str
) -> None:
    """Resolve the contradictions that proposals opened as both valid."""
    ids = [each.id for proposal in proposals for each in proposal.by_kind.get("contradiction", [])]
    if ids:
        closed = {"agent_id": agent_id, "ids": ids, "note": f"taken back: {reason}"}
        connection.execute(SQL["close_contradictions"], closed)
