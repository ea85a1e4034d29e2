"""Contradictions: two facts of one slot, of which it is unknown which is later; both stay until somebody decides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, LiteralString
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from nous_online.core.domain import FACT, Fact, Neighbour, shortened
from nous_online.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Refused
from nous_online.core.policy import MAX_REASON_BYTES
from nous_online.core.rights import Rights
from nous_online.core.validation import checked_choice, checked_id, checked_moment, checked_text
from nous_online.database.changes import (
    Alteration,
    Cause,
    EventNote,
    Version,
    change_memories,
    change_memory,
    lock_memories,
    version_of,
)
from nous_online.database.statements import statements
from nous_online.memories import store
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.learning import check_begun, check_in_place

BLOCKS = statements("nous_online.memories", "contradictions.sql")
REACH = statements("nous_online.memories", "reach.sql")
Reach = Mapping[str, str | None]
"""The `user_id` and `project_id` whose facts are searched."""
Resolution = Literal["a_wins", "b_wins", "both_valid", "merged", "same"]
RESOLUTIONS = ("a_wins", "b_wins", "both_valid", "merged", "same")
STATUSES = ("open", "resolved")


@dataclass(frozen=True)
class Contradiction:
    """Two facts that can't both be true; `memory_a` is the one with the smaller id, which has no meaning."""

    def __repr__(self) -> str:
        a, b = (shortened(side.content) for _, side in sides_of(self))
        return f"<contradiction {str(self.id)[:8]} {self.resolution or self.status}: {a!r} and {b!r}>"

    id: UUID
    memory_a: UUID
    memory_b: UUID
    detected_at: datetime
    status: str
    resolution: str | None
    resolved_at: datetime | None
    note: str | None
    judgement: Mapping[str, Any] | None
    a: Fact = field(compare=False)  # a fact goes on changing, by which a contradiction is no other
    """The fact of `memory_a`, as it is now."""
    b: Fact = field(compare=False)
    """The fact of `memory_b`."""
    proposed: Mapping[str, Any] | None = None
    """A ruling proposed by a caller who may not decide: `resolution`, `merged_into`, `note`, `by` and `at`.

    An operator confirms it by ruling the same, or rejects it."""


def sides_of(found: Contradiction) -> list[tuple[str, Fact]]:
    """Return the two facts of a contradiction, each with its name in resolutions."""
    return [("a", found.a), ("b", found.b)]


@dataclass(frozen=True)
class Ruling:
    """How to resolve a contradiction: the winner, a note, and the fact that both are merged into."""

    resolution: Resolution | None
    note: str | None = None
    merged_into: UUID | None = None
    keep: UUID | None = None
    """The fact that wins, instead of a resolution."""

    def __post_init__(self) -> None:
        if (self.resolution is None) == (self.keep is None):
            raise InvalidInput(
                f"tell either a resolution ({', '.join(RESOLUTIONS)}) or keep, the id of the fact that wins"
            )
        if self.keep is not None and self.merged_into is None:
            return
        if self.resolution not in RESOLUTIONS:
            raise InvalidInput(f"resolution must be one of {', '.join(RESOLUTIONS)}; got {self.resolution!r}")
        if (self.resolution == "merged") != (self.merged_into is not None):
            raise InvalidInput(
                "resolution 'merged', and only that one, needs the fact that supersedes both: "
                f"learn it first and pass its id as merged_into; got {self.resolution!r} and {self.merged_into!r}"
            )


class ContradictionVerbs(Verbs):
    """What an agent does with contradictions."""

    def contradictions(self, *, status: str | None = "open", deadline_s: float | None = None) -> list[Contradiction]:
        """Return the agent's contradictions in one status, or with None in any, the oldest first.

        One of which a side was superseded or archived is settled, and in none until that is undone.
        """
        if status is not None:
            checked_choice("status", status, STATUSES)
        with self._transaction(deadline_s) as connection:
            return fetch_contradictions(
                connection, "find_contradictions", {"agent_id": self.agent.id, "status": status}
            )

    def resolve_contradiction(  # noqa: PLR0913 (one parameter for each thing a ruling may say)
        self,
        contradiction_id: UUID | str,
        resolution: Resolution | None = None,
        *,
        keep: UUID | str | None = None,
        note: str | None = None,
        merged_into: UUID | str | None = None,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Contradiction:
        """Resolve a contradiction: `a_wins`, `b_wins`, `both_valid`, `same`, or `merged` into a fact learned for it.

        Or give the id of the winning fact as `keep`; `contradiction.a` and `.b` are both facts. Two that say the
        `same` are merged as by a night: into the earlier, unless the other is pinned, trusted more or has a key.
        The loser is superseded; `undo` of either makes it active again and opens the contradiction again, also where
        both hold. A fact that had given way to the other one since is active again where it holds; one that something
        else took out of recall raises `Conflict`, which says how to bring it back. The same ruling twice changes
        nothing; another ruling raises `Conflict`. A ruling against a fact that is pinned, trusted more than the other
        or trusted more than the caller may claim is only stored as `proposed` for a caller who is not an operator: the
        contradiction is returned open, for a person to decide.
        """
        why = None if note is None else checked_text("note", note, max_bytes=MAX_REASON_BYTES)
        into = None if merged_into is None else checked_id("merged_into", merged_into)
        ruling = Ruling(resolution, why, into, None if keep is None else checked_id("keep", keep))
        known_id = checked_id("contradiction_id", contradiction_id)
        moment = checked_moment("at", at) or datetime.now(UTC)
        with self._transaction(deadline_s) as connection:
            store.lock_agent(connection, self.agent.id)
            return resolve(connection, self.agent, known_id, ruling, at=moment)

    def reject_ruling(self, contradiction_id: UUID | str, *, deadline_s: float | None = None) -> Contradiction:
        """Delete the proposed ruling of a contradiction, which stays open; for operators.

        Raises `Forbidden` for others, `NotFound`, and `Refused` where nothing is proposed.
        """
        agent, known_id = self.agent, checked_id("contradiction_id", contradiction_id)
        if not agent.rights.is_operator:
            raise Forbidden(f"only an operator rejects how a contradiction is to be decided, not {agent.rights.holder}")
        with self._transaction(deadline_s) as connection:
            found = lock_contradiction(connection, agent.id, known_id)
            if found.proposed is None or found.status == "resolved":
                raise Refused(f"nobody proposed how to decide contradiction {found.id}, or it is resolved already")
            connection.execute(BLOCKS["propose_ruling"], {"agent_id": agent.id, "id": found.id, "proposed": None})
            return replace(found, proposed=None)


def fetch_contradictions(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> list[Contradiction]:
    """Return the contradictions a query finds, with both facts as they are now."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(of_questions(BLOCKS[statement]), parameters).fetchall()
    ids = [row[side] for row in rows for side in ("memory_a", "memory_b")]
    facts = store.facts_by_id(connection, parameters["agent_id"], ids)
    pairs = [(row, facts.get(row["memory_a"]), facts.get(row["memory_b"])) for row in rows]
    # A fact that was erased since the first query took its contradictions with it.
    return [Contradiction(**row, a=a, b=b) for row, a, b in pairs if a and b]


@cache
def of_questions(statement: LiteralString) -> bytes:
    """Return a statement with the condition filled in by which a contradiction `c` is still to be decided; cached."""
    # Of a statement that reads facts `f`, their columns too, and whom they are within reach of.
    is_question, in_reach = SQL(BLOCKS["is_question"]), SQL(REACH["in_reach"])
    columns = store.columns_of_fact("f")
    return SQL(statement).format(is_question=is_question, in_reach=in_reach, columns=columns).as_bytes()


def rivals_of(
    connection: Connection, agent_id: str, near: Sequence[Neighbour], new: store.Embedded, space_id: str
) -> list[tuple[UUID, Neighbour]]:
    """Return the facts that an open contradiction sets against neighbours of a new one, each with that one's id."""
    disputed = [each.fact.id for each in near if each.fact.contradiction_status == "open"]
    if not disputed:
        return []
    key = {"agent_id": agent_id, "ids": disputed, "embedding": Vector(new.embedding), "space_id": space_id}
    rows = connection.execute(of_questions(BLOCKS["rivals"]), key).fetchall()
    return [(one, Neighbour(similarity=similarity, fact=Fact(*row))) for one, *row, similarity in rows]


def lock_contradiction(connection: Connection, agent_id: str, contradiction_id: UUID) -> Contradiction:
    """Lock a contradiction until the transaction ends and return it; raise `NotFound` where there is none."""
    for found in fetch_contradictions(connection, "lock_contradiction", {"agent_id": agent_id, "id": contradiction_id}):
        return found
    raise NotFound(f"agent {agent_id!r} has no contradiction {contradiction_id}")


def find_in_reach(connection: Connection, agent_id: str, reach: Reach, *, limit: int) -> list[Contradiction]:
    """Return the oldest open contradictions between facts that the caller could recall, at most `limit`."""
    wanted = {"agent_id": agent_id, "id": None, "merged_into": None, "limit": limit, **reach}
    return fetch_contradictions(connection, "contradictions_in_reach", wanted)


def check_reach(
    connection: Connection, agent_id: str, reach: Reach, contradiction_id: UUID, *, merged_into: UUID | None
) -> None:
    """Raise `NotFound` unless the caller could recall both facts, and the fact they are merged into."""
    wanted = {"id": contradiction_id, "merged_into": merged_into, "limit": None, **reach}
    if not fetch_contradictions(connection, "contradictions_in_reach", {"agent_id": agent_id, **wanted}):
        ruled = f"contradiction {contradiction_id}" + (f" to merge into fact {merged_into}" if merged_into else "")
        raise NotFound(f"agent {agent_id!r} has no {ruled} within reach of this call's user and project")


def open_between(
    connection: Connection, agent_id: str, one: Fact, other: Fact, *, judgement: Mapping[str, Any], cause: Cause
) -> bool:
    """Open a contradiction between two facts and mark both; return False where there is one already."""
    row = {
        "agent_id": agent_id,
        "one": one.id,
        "other": other.id,
        "at": cause.effective_at,
        "judgement": Jsonb(dict(judgement)),
    }
    if connection.execute(BLOCKS["open_contradiction"], row).fetchone() is None:
        return False
    for fact in lock_memories(connection, agent_id, FACT, [one.id, other.id]):
        set_contradiction_status(connection, agent_id, fact, "open", cause=cause)
    return True


def resolve(
    connection: Connection, agent: Agent, contradiction_id: UUID, ruling: Ruling, *, at: datetime
) -> Contradiction:
    """Resolve a contradiction as ruled: the loser is superseded by the winner, or both by the fact they merge into.

    Where the caller may not decide it, the ruling is stored as a proposal, replacing an earlier one, and the
    contradiction is returned open. Repeating a ruling returns the same answer. Raises `Conflict` for another ruling and
    for a winner that is not active, `NotFound` for an unknown contradiction or fact.
    """
    found = lock_contradiction(connection, agent.id, contradiction_id)
    if ruling.keep is not None:
        ruling = replace(ruling, resolution=winner_of(found, ruling.keep), keep=None)
    if found.status == "resolved":
        if found.resolution == ("merged" if ruling.resolution == "same" else ruling.resolution):
            return found
        raise Conflict(
            f"contradiction {found.id} was resolved as {found.resolution!r} at {found.resolved_at}; "
            "to rule otherwise, undo it by that id, or name the winner with supersede_fact"
        )
    fact_ids = [found.memory_a, found.memory_b, *filter(None, [ruling.merged_into])]
    facts = {fact.id: fact for fact in lock_memories(connection, agent.id, FACT, fact_ids)}
    if ruling.resolution == "same":
        kept = keeper(facts[found.memory_a], facts[found.memory_b])
        ruling = replace(ruling, resolution="merged", merged_into=kept.id)
    check_winners(agent.id, found, ruling, facts)
    key = {"agent_id": agent.id, "id": found.id}
    outcome = {"resolution": ruling.resolution, "note": ruling.note}
    if not may_decide(agent.rights, found, ruling, facts):
        into = None if ruling.merged_into is None else str(ruling.merged_into)
        proposed = {**outcome, "merged_into": into, "by": agent.rights.holder, "at": at.isoformat()}
        connection.execute(BLOCKS["propose_ruling"], {**key, "proposed": Jsonb(proposed)})
    else:
        connection.execute(BLOCKS["resolve_contradiction"], {**key, **outcome, "at": at})
        apply_ruling(connection, agent, found, ruling, facts, at=at)
    return lock_contradiction(connection, agent.id, found.id)  # with both facts as they are now


def check_winners(agent_id: str, found: Contradiction, ruling: Ruling, facts: Mapping[UUID, Fact]) -> None:
    """Raise `NotFound` where there is no fact to merge into, or one that loses is recalled where its winner is not."""
    for loser, winner in losers(found.memory_a, found.memory_b, ruling).items():
        if winner not in facts:
            raise NotFound(f"agent {agent_id!r} has no fact {winner} to merge into")
        check_in_place(agent_id, facts[winner], facts[loser])


def keeper(one: Fact, other: Fact) -> Fact:
    """Return the one to keep of two that say the same: active, pinned, trusted more, with a key, or the earlier."""

    def rank(fact: Fact) -> tuple[object, ...]:
        return fact.state != "active", not fact.is_pinned, -fact.trust, fact.key is None, fact.learned_at, fact.id

    return min(one, other, key=rank)


def may_decide(rights: Rights, found: Contradiction, ruling: Ruling, facts: Mapping[UUID, Fact]) -> bool:
    """Tell whether a caller may rule so: by `Rights.may_retire` each fact that loses can."""
    a, b = facts[found.memory_a], facts[found.memory_b]
    # `both_valid` clears the doubt about the fact with less trust, so it needs two of equal rank.
    if ruling.resolution == "both_valid":
        return rights.may_retire(a, b) and rights.may_retire(b, a)
    return all(
        rights.may_retire(facts[loser], facts[winner])
        for loser, winner in losers(found.memory_a, found.memory_b, ruling).items()
    )


def winner_of(found: Contradiction, keep: UUID) -> Resolution:
    """Return the resolution that keeps a fact; raise `InvalidInput` when it is on neither side."""
    if keep not in {found.memory_a, found.memory_b}:
        raise InvalidInput(
            f"contradiction {found.id} is between facts {found.memory_a} and {found.memory_b}; keep names {keep}"
        )
    return "a_wins" if keep == found.memory_a else "b_wins"


def apply_ruling(
    connection: Connection, agent: Agent, found: Contradiction, ruling: Ruling, facts: dict[UUID, Fact], *, at: datetime
) -> None:
    """Supersede the losers that are still active, and clear the contradiction status of facts without another one.

    A fact that holds by the ruling and had given way to the other one becomes active again.
    """
    agent_id, (a, b) = agent.id, (found.memory_a, found.memory_b)
    reason = f"contradiction resolved: {ruling.resolution}" + (f" ({ruling.note})" if ruling.note else "")
    how = "merged" if ruling.resolution == "merged" else "replaced"
    cause = Cause("agent", "superseded", reason, at)
    lost = losers(a, b, ruling)
    for each in (a, b) if ruling.resolution == "both_valid" else set(lost.values()):
        facts[each] = reinstate(connection, agent, facts[each], {a: b, b: a}.get(each), cause=cause)
    for loser, winner in lost.items():
        if facts[loser].state != "active":
            continue
        if how == "replaced":
            check_begun(facts[winner], facts[loser])
        if how == "merged":  # the version of the winner moves with each fact that is merged into it
            facts[winner] = merge_counts(connection, agent_id, facts[winner], facts[loser], cause=cause)
        values = {
            "state": "superseded",
            "superseded_by": str(winner),
            "superseded_at": at.isoformat(),
            "succession": how,
        }
        facts[loser] = change_memory(connection, agent_id, version_of(FACT, facts[loser]), values, cause=cause)
    cause = Cause("agent", "contradiction_resolved", reason, at)
    for memory_id in (found.memory_a, found.memory_b):
        key = {"agent_id": agent_id, "memory_id": memory_id}
        ((is_open,),) = connection.execute(of_questions(BLOCKS["has_open_contradiction"]), key).fetchall()
        status, read = {"contradiction_status": "open" if is_open else "resolved"}, version_of(FACT, facts[memory_id])
        # An event of each side, whatever its status was, by which the ruling is undone.
        change_memory(
            connection, agent_id, read, status, cause=cause, noted=EventNote({"contradiction": str(found.id)})
        )
    mark_sides(connection, agent_id, [found.memory_a, found.memory_b], cause=replace(cause, action="marked"))


def reinstate(connection: Connection, agent: Agent, fact: Fact, rival: UUID | None, *, cause: Cause) -> Fact:
    """Make a fact active again that its rival replaced; raise `Conflict` where something else took it out of recall."""
    if fact.state == "active":
        return fact
    if fact.superseded_by is None or fact.superseded_by != rival or fact.succession == "merged" or fact.is_forgotten:
        why = store.way_back(connection, agent.id, fact)
        raise Conflict(f"fact {fact.id} is {fact.state}, so it can't win or hold: {why}, and then you can rule so")
    agent.rights.check_may_change(fact)
    values = {"state": "active", "archived_at": None, "superseded_by": None, "superseded_at": None, "succession": None}
    cause = replace(cause, action="restored")
    back = change_memory(connection, agent.id, version_of(FACT, fact), values, cause=cause)
    store.check_names(connection, agent.id, [fact.id])
    return back


def losers(a: UUID, b: UUID, ruling: Ruling) -> dict[UUID, UUID]:
    """Return which of two facts lose by a ruling, each with the fact it is superseded by."""
    if ruling.merged_into is not None:
        return {each: ruling.merged_into for each in (a, b) if each != ruling.merged_into}
    return {"a_wins": {b: a}, "b_wins": {a: b}}.get(str(ruling.resolution), {})


def merge_counts(connection: Connection, agent_id: str, winner: Fact, loser: Fact, *, cause: Cause) -> Fact:
    """Add a fact's confirmations, times and sources to the one it is merged into, as a night's merge does."""
    is_weighty = loser.trust >= winner.trust  # as when a fact is confirmed, less trust makes nothing newer
    moments = [winner.last_confirmed_at, winner.learned_at]
    moments += [loser.last_confirmed_at, loser.learned_at] if is_weighty else []
    values = {
        "confirmation_count": winner.confirmation_count + loser.confirmation_count + 1,
        "last_confirmed_at": max(filter(None, moments)).isoformat(),
        "sources": list(dict.fromkeys([*winner.sources, *loser.sources, *filter(None, [loser.source])])),
    }
    note = EventNote({"absorbed": str(loser.id)})
    return change_memory(
        connection, agent_id, version_of(FACT, winner), values, cause=replace(cause, action="absorbed"), noted=note
    )


def reopen(
    connection: Connection, agent_id: str, fact_id: UUID, at: datetime, contradiction_id: str | None, *, is_whole: bool
) -> None:
    """Open the contradictions of a fact, or the one of an id, that were decided at a moment.

    Unless the whole ruling is undone: those decided by superseding the fact, once both sides are active again.
    """
    key = {"agent_id": agent_id, "id": fact_id, "at": at, "ruled": contradiction_id, "is_whole": is_whole}
    connection.execute(BLOCKS["reopen_contradictions"], key)


def mark_sides(connection: Connection, agent_id: str, fact_ids: Collection[UUID], *, cause: Cause) -> None:
    """Update the contradiction status of facts that were retired or came back, and of all they contradict."""
    key = {"agent_id": agent_id, "ids": list(fact_ids)}
    sides = connection.execute(BLOCKS["sides_of_open"], key).fetchall()
    update_contradiction_status(connection, agent_id, [row[0] for row in sides], cause=cause)


def update_contradiction_status(
    connection: Connection, agent_id: str, fact_ids: Collection[UUID], *, cause: Cause
) -> None:
    """Set the contradiction status of those facts whose status does not say whether one is open."""
    key = {"agent_id": agent_id, "ids": list(fact_ids)}
    found = connection.execute(of_questions(BLOCKS["wrong_marks"]), key).fetchall()
    marks = [
        Alteration(Version(FACT, fact_id, version), {"contradiction_status": status}, cause)
        for fact_id, version, status in found
    ]
    change_memories(connection, agent_id, marks)


def set_contradiction_status(connection: Connection, agent_id: str, fact: Fact, status: str, *, cause: Cause) -> None:
    """Set a fact's contradiction status, unless it has it already."""
    if fact.contradiction_status != status:
        change_memory(connection, agent_id, version_of(FACT, fact), {"contradiction_status": status}, cause=cause)
