"""Facts in PostgreSQL: one function a query, connection in, frozen values out; the caller owns the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

from pgvector import Vector
from psycopg import Connection, Cursor
from psycopg.rows import class_row, dict_row
from psycopg.sql import SQL, Composed, Identifier, Literal
from psycopg.types.json import Jsonb

from nous_online.core.domain import EmbeddingSpace, Fact, Neighbour, NewFact
from nous_online.core.errors import Moved, NotFound
from nous_online.core.kinds import FACT
from nous_online.core.texts import folded
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors

FACTS = statements("nous_online.memories", "facts.sql")
EXACT_LIMIT = 10_000  # up to so many facts of an agent are all compared: a few milliseconds, and nothing is missed


@dataclass(frozen=True)
class KeyedRequest:
    """What an idempotency key led to when it was first used."""

    idempotency_key: str
    content_hash: str
    memory_id: UUID
    action: str


@dataclass(frozen=True)
class Embedded:
    """A new fact with the vectors of its content and of its surroundings."""

    fact: NewFact
    embedding: Vectors
    context_embedding: Vectors | None = None
    id: UUID | None = None


@dataclass(frozen=True)
class Split:
    """A statement that becomes a fact of its own, and the fact it is split off from."""

    statement_id: UUID
    from_id: UUID
    action: str
    """`split`; `learned` where its confirmation of the other fact was undone, so that undoing archives it."""
    reason: str


@cache
def composed(
    statement: str,
    space: EmbeddingSpace,
    row: str,
    *,
    has_user: bool = False,
    has_project: bool = False,
    has_statement: bool = False,
) -> Composed:
    """Fill the space, the reach and the columns of a fact, taken from `row`, into a statement.

    Width and name of the space must be constants for its index to be used.
    """
    return SQL(FACTS[statement]).format(
        dimensions=Literal(space.dimensions),
        space_id=Literal(space.id),
        of_user=SQL(FACTS["of_user" if has_user else "of_nobody"]),
        of_project=SQL(FACTS["of_project" if has_project else "of_no_project"]),
        statement=SQL(FACTS["moved_statement" if has_statement else "first_statement"]),
        columns=SQL(", ").join(Identifier(row, name) for name in FACT.columns),
    )


def lock_agent(connection: Connection, agent_id: str) -> None:
    """Wait for other learners of this agent; released when the transaction ends."""
    connection.execute(FACTS["lock_agent"], {"agent_id": agent_id})


def register_agent(connection: Connection, agent_id: str, space_id: str) -> EmbeddingSpace:
    """Make an agent known if it is new, and return the embedding space its memories live in.

    One that is known is only read: a server that takes no writes can still open it.
    """
    known = ask_space(connection, agent_id).fetchone()
    if known is not None:
        return known
    connection.execute(FACTS["register_agent"], {"agent_id": agent_id, "space_id": space_id})
    return settled_space(ask_space(connection, agent_id), agent_id)


def ask_space(connection: Connection, agent_id: str) -> Cursor[EmbeddingSpace]:
    """Ask in which embedding space an agent's memories live now."""
    cursor = connection.cursor(row_factory=class_row(EmbeddingSpace))
    return cursor.execute(FACTS["agent_space"], {"agent_id": agent_id}, prepare=True)


def settled_space(asked: Cursor[EmbeddingSpace], agent_id: str) -> EmbeddingSpace:
    """Return the answer of `ask_space`; raise `NotFound` when nobody knows the agent."""
    space = asked.fetchone()
    if space is None:
        raise NotFound(f"agent {agent_id!r} is not known here")
    return space


def require_space(asked: Cursor[EmbeddingSpace], agent_id: str, space: EmbeddingSpace) -> None:
    """Raise `Moved` when the answer of `ask_space` is another space than the caller's vectors are of."""
    found = settled_space(asked, agent_id)
    if found.id != space.id:
        message = (
            f"agent {agent_id!r} was re-embedded: its memories live in embedding space {found.id!r}, this process "
            f"embeds for {space.id!r}; open its heart again with the embedder of {found.id!r}"
        )
        raise Moved(message, found)


def find_requests(connection: Connection, agent_id: str, keys: Sequence[str]) -> dict[str, KeyedRequest]:
    """Return what was stored under these idempotency keys."""
    return {row.idempotency_key: row for row in sought(connection, agent_id, keys).fetchall()}


def sought(connection: Connection, agent_id: str, keys: Sequence[str]) -> Cursor[KeyedRequest]:
    """Ask what was stored under these idempotency keys."""
    cursor = connection.cursor(row_factory=class_row(KeyedRequest))
    return cursor.execute(FACTS["find_requests"], {"agent_id": agent_id, "keys": list(keys)})


def store_request(connection: Connection, agent_id: str, verb: str, request: KeyedRequest) -> None:
    """Remember what an idempotency key led to."""
    connection.execute(FACTS["store_request"], {"agent_id": agent_id, "verb": verb, **vars(request)})


def store_requests(connection: Connection, agent_id: str, verb: str, requests: Sequence[KeyedRequest]) -> None:
    """Remember what many idempotency keys led to."""
    with connection.cursor() as cursor:
        cursor.executemany(
            FACTS["store_request"], [{"agent_id": agent_id, "verb": verb, **vars(request)} for request in requests]
        )


def look_around(
    connection: Connection,
    agent_id: str,
    new: Embedded,
    *,
    space: EmbeddingSpace,
    limit: int,
    replaces: Sequence[UUID] = (),
) -> tuple[KeyedRequest | None, list[Neighbour], UUID | None]:
    """Wait for other learners of this agent, then return what its key led to before and the facts it may touch.

    Those are the active ones of the same scope nearest by cosine, of the same slot, or of the same key, but for facts
    from which a person split off the same words; and in any state those it `replaces`. The third answer is a fact of
    the same words that was forgotten. One round trip, and another where something was split off or forgotten. Raises
    `Moved` when the agent's memories live in another space.
    """
    with connection.pipeline(), connection.cursor(row_factory=dict_row) as neighbours:
        home = ask_space(connection, agent_id)
        connection.execute(FACTS["lock_agent"], {"agent_id": agent_id})
        requests = sought(connection, agent_id, [new.fact.idempotency_key]) if new.fact.idempotency_key else None
        asked = connection.execute(FACTS["has_splits_and_forgotten"], {"agent_id": agent_id})
        parameters = around(agent_id, new, limit, replaces)
        neighbours.execute(nearest_to(new.fact, space), parameters)
        rows = neighbours.fetchall()
        has_splits, has_forgotten = asked.fetchone() or (False, False)
        require_space(home, agent_id, space)
        earlier = requests.fetchone() if requests else None
    near = [Neighbour(similarity=row.pop("similarity"), fact=Fact(**row)) for row in rows]
    apart = split_from(connection, agent_id, new.fact.content) if has_splits else frozenset[UUID]()
    gone = connection.execute(FACTS["find_forgotten"], parameters).fetchone() if has_forgotten else None
    said = {*replaces, *(each.fact.id for each in near if new.fact.key and each.fact.key == new.fact.key)}
    return earlier, [each for each in near if each.fact.id not in apart - said], gone[0] if gone else None


def split_from(connection: Connection, agent_id: str, content: str) -> frozenset[UUID]:
    """Return the facts from which a person split off these words."""
    words, splits = folded(content), connection.execute(FACTS["split_off"], {"agent_id": agent_id})
    return frozenset(fact_id for text, fact_id in splits if folded(text) == words)


def nearest_to(fact: NewFact, space: EmbeddingSpace) -> Composed:
    """Return the search for what is near a new fact, among the facts of the same user and project."""
    whose = {"has_user": fact.user_id is not None, "has_project": fact.project_id is not None}
    return composed("nearest_facts", space, "f", **whose)


def around(agent_id: str, new: Embedded, limit: int, replaces: Sequence[UUID]) -> dict[str, Any]:
    """Return the parameters of `nearest_facts`."""
    return {
        "agent_id": agent_id,
        "embedding": Vector(new.embedding),
        "content": new.fact.content,
        "slot": new.fact.slot,
        "key": new.fact.key,
        "replaces": list(replaces),
        "scope": new.fact.scope,
        "user_id": new.fact.user_id,
        "project_id": new.fact.project_id,
        "limit": limit,
        "exact_limit": EXACT_LIMIT,
    }


def next_value(connection: Connection, agent_id: str, known: Fact, *, learned_at: datetime) -> Fact:
    """Return the first value learned after a moment among those that led to the one known, which is the last."""
    key = {"agent_id": agent_id, "known_id": known.id, "learned_at": learned_at}
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        found = cursor.execute(of_facts("next_value"), key).fetchone()
    return found or known


def values_before(connection: Connection, agent_id: str, late: Fact, *, heir: Fact) -> list[Fact]:
    """Return the values that gave way to `heir` although `late`, told after that, had begun before they ended."""
    told = {"late_id": late.id, "learned_at": late.learned_at, "key": late.key, "slot": late.slot}
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        parameters = {"agent_id": agent_id, "heir_id": heir.id, **told}
        return cursor.execute(of_facts("values_before"), parameters).fetchall()


def value_of_key(connection: Connection, agent_id: str, new: NewFact) -> Fact | None:
    """Return the active value of the key of a new fact, None where there is none yet."""
    key = {"agent_id": agent_id, **{name: getattr(new, name) for name in ("key", "scope", "user_id", "project_id")}}
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        return cursor.execute(of_facts("value_of_key"), key).fetchone()


@cache
def of_facts(statement: str) -> Composed:
    """Fill the columns of a fact into a statement that needs no vectors."""
    return SQL(FACTS[statement]).format(columns=SQL(", ").join(Identifier("f", name) for name in FACT.columns))


def store_fact(
    connection: Connection, agent_id: str, new: Embedded, *, space: EmbeddingSpace, actor: str, reason: str
) -> Fact:
    """Insert one fact with its event and its announcement, and return it."""
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        row = fact_row(agent_id, new, space, actor, reason)
        fact = cursor.execute(composed("store_fact", space, "stored"), row).fetchone()
    if fact is None:
        raise NotFound(f"the fact of agent {agent_id!r} was not stored")
    return fact


def store_facts(
    connection: Connection, agent_id: str, news: Sequence[Embedded], *, space: EmbeddingSpace, actor: str, reason: str
) -> None:
    """Insert many facts, each with its event, in one round trip."""
    rows = [fact_row(agent_id, new, space, actor, reason) for new in news]
    with connection.cursor() as cursor:
        cursor.executemany(composed("store_fact", space, "stored"), rows)


def fact_row(agent_id: str, new: Embedded, space: EmbeddingSpace, actor: str, reason: str) -> dict[str, Any]:
    """Return the parameters of `store_fact`."""
    fact = new.fact
    return {
        **vars(fact),
        "id": new.id,
        "agent_id": agent_id,
        "source_decision_id": fact.source_decision_id and str(fact.source_decision_id),
        "sources": Jsonb(fact.sources),
        "encoded_censors": None if fact.encoded_censors is None else Jsonb(fact.encoded_censors),
        "embedding": Vector(new.embedding),
        "context_embedding": None if new.context_embedding is None else Vector(new.context_embedding),
        "space_id": space.id,
        "actor": actor,
        "reason": reason,
        "stated_as": "imported" if actor == "import" else "first",
        "action": "learned",
        "after": Jsonb({}),
        "effective_at": fact.learned_at,
    }


def store_split(connection: Connection, agent_id: str, new: Embedded, split: Split, *, space: EmbeddingSpace) -> Fact:
    """Insert the fact a statement becomes, with its event and its announcement; it speaks for that one from now on."""
    moved = {"statement": str(split.statement_id), "split_from": str(split.from_id)}
    row = {
        **fact_row(agent_id, new, space, "agent", split.reason),
        "statement_id": split.statement_id,
        "action": split.action,
        "after": Jsonb(moved),
        "effective_at": datetime.now(UTC),
    }
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        (fact,) = cursor.execute(composed("store_fact", space, "stored", has_statement=True), row).fetchall()
    return fact


def count_facts(connection: Connection, agent_id: str) -> dict[str, int]:
    """Return how many facts this agent has in each state."""
    return dict(connection.execute(FACTS["count_facts"], {"agent_id": agent_id}).fetchall())
