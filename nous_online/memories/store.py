"""Queries on facts, their statements and verdicts on pairs: the caller owns the transaction, and gets frozen values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4, uuid5

from pgvector import Vector
from psycopg import Connection, Cursor
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier, Literal
from psycopg.types.json import Jsonb

from nous_online.core.domain import EPISODE, FACT, EmbeddingSpace, Fact, Kind, Memory, Neighbour, NewFact, Statement
from nous_online.core.errors import Conflict, Moved, NotFound, Refused
from nous_online.core.validation import folded
from nous_online.database.changes import ConfirmingStatement, json_values
from nous_online.database.statements import fetch, statements
from nous_online.language.embedding import recall_vector
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.judging import Judgement
from nous_online.memories.learning import pair_hash, slot_of, statement_digest

V = TypeVar("V")
FACTS = statements("nous_online.memories", "facts.sql")
MOVES = statements("nous_online.memories", "moving.sql")
STATEMENTS = statements("nous_online.memories", "fact_statements.sql")
VERDICTS = statements("nous_online.memories", "verdicts.sql")
REEMBEDDED = "re-embedded"
"""The action of an event that moved a memory to another embedding space; it changes no text, so it is never undone."""
IMPORTED = UUID("6f1d2f0e-3c7b-5d0a-9a65-6e6f75730001")  # the namespace of ids made from import keys
EXACT_LIMIT = 10_000  # up to so many facts of an agent are all compared: a few milliseconds, and nothing is missed


@dataclass(frozen=True)
class Retirement:
    """A change that took a memory out of recall, or moved it further from it."""

    action: str
    actor: str
    reason: str
    night: date | None
    proposal_id: UUID | None
    is_in_effect: bool
    """Whether it neither was undone nor undoes another."""


@dataclass(frozen=True)
class KeyedRequest:
    """The first use of an idempotency key: what was stored, and the hash of what the caller passed."""

    idempotency_key: str
    content_hash: str
    memory_id: UUID
    action: str


@dataclass(frozen=True)
class KeyedCall:
    """A call that may be repeated: its verb, its idempotency key if it has one, and a hash of its arguments."""

    verb: str
    key: str | None
    content_hash: str
    action: str = "stored"
    """What is recorded as done."""

    @classmethod
    def of(cls, verb: str, key: str | None, arguments: Mapping[str, Any], action: str = "stored") -> KeyedCall:
        """Return a call by its arguments."""
        text = json.dumps([verb, arguments], default=str, sort_keys=True)
        return cls(verb, key, hashlib.sha256(text.encode()).hexdigest(), action)


@dataclass(frozen=True)
class Embedded:
    """A new fact with the unit vectors of its content, and of its content with context."""

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
    """Action of its event: `split`; `learned` where its confirmation was undone, so that undoing that archives it."""
    reason: str


def imported_id(agent_id: str, idempotency_key: str) -> UUID:
    """Return the id of an imported memory, so that records can name each other by key before any of them is stored."""
    return uuid5(IMPORTED, f"{agent_id}\n{idempotency_key}")


@cache
def storing_statement(*, has_statement: bool = False) -> bytes:
    """Return the statement that stores a fact, with a statement of its own unless it `has_statement`; cached."""
    words = SQL(FACTS["moved_statement" if has_statement else "first_statement"])
    return SQL(FACTS["store_fact"]).format(statement=words, columns=columns_of_fact("stored")).as_bytes()


@cache
def nearest_statement(
    space: EmbeddingSpace, limit: int, exact_limit: int, *, has_user: bool, has_project: bool
) -> bytes:
    """Return the search for the neighbours of a fact, which belongs to a user or project or to nobody; cached."""
    # Width and name of the space must be constants, not parameters, for its partial index to be used.
    parts = SQL(FACTS["nearest_facts"]).format(
        dimensions=Literal(space.dimensions),
        space_id=Literal(space.id),
        of_user=SQL(FACTS["of_user" if has_user else "of_nobody"]),
        of_project=SQL(FACTS["of_project" if has_project else "of_no_project"]),
        limit=Literal(limit),
        exact_limit=Literal(exact_limit),
        columns=columns_of_fact("f"),
    )
    return parts.as_bytes()


def columns_of_fact(row: str) -> Composed:
    """Return the columns of a fact in table `row`."""
    return SQL(", ").join(Identifier(row, name) for name in FACT.columns)


def facts_by_id(connection: Connection, agent_id: str, ids: Sequence[UUID]) -> dict[UUID, Fact]:
    """Return the facts of some ids, as far as there are such."""
    found = fetch(connection, Fact, FACTS["facts_by_id"], {"agent_id": agent_id, "ids": ids})
    return {fact.id: fact for fact in found}


def lock_agent(connection: Connection, agent_id: str) -> None:
    """Take the agent's lock of writers that compare before they write; released when the transaction ends.

    Take it before any row lock, as every verb that needs both does: in different orders two could deadlock.
    """
    # Learning is serial for each agent: else two processes could store the same at once, neither seeing the other.
    connection.execute(FACTS["lock_agent"], {"agent_id": agent_id})


def register_agent(connection: Connection, agent_id: str, space_id: str) -> EmbeddingSpace:
    """Insert an agent if it is new, and return the embedding space its memories live in."""
    known = query_space(connection, agent_id).fetchone()
    if known is not None:  # nothing is written for a known one, so that it can be opened on a standby
        return known
    connection.execute(FACTS["register_agent"], {"agent_id": agent_id, "space_id": space_id})
    return read_space(query_space(connection, agent_id), agent_id)


def query_space(connection: Connection, agent_id: str) -> Cursor[EmbeddingSpace]:
    """Send the query for the embedding space of an agent's memories; `read_space` fetches the answer."""
    cursor = connection.cursor(row_factory=class_row(EmbeddingSpace))
    return cursor.execute(FACTS["agent_space"], {"agent_id": agent_id}, prepare=True)


def read_space(query: Cursor[EmbeddingSpace], agent_id: str) -> EmbeddingSpace:
    """Return the answer to `query_space`; raise `NotFound` for an unknown agent."""
    space = query.fetchone()
    if space is None:
        raise NotFound(f"agent {agent_id!r} is not known here")
    return space


def require_space(query: Cursor[EmbeddingSpace], agent_id: str, space: EmbeddingSpace) -> None:
    """Raise `Moved` when the answer to `query_space` is another space than that of the caller's vectors."""
    check_home(read_space(query, agent_id), agent_id, space)


def check_home(home: EmbeddingSpace, agent_id: str, space: EmbeddingSpace) -> None:
    """Raise `Moved` when the memories of an agent live in another space than that of the caller's vectors."""
    if home.id != space.id:
        message = (
            f"agent {agent_id!r} was re-embedded: its memories live in embedding space {home.id!r}, this process "
            f"embeds for {space.id!r}; open its heart again with the embedder of {home.id!r}"
        )
        raise Moved(message, home)


def lock_moving(connection: Connection, agent_id: str, kind: Kind[Any], space_id: str) -> int:
    """Lock the memories of a kind that live in another embedding space than this one, and return their number."""
    statement = SQL(MOVES["lock_moving"]).format(table=Identifier("heart", kind.table))
    row = connection.execute(statement, {"agent_id": agent_id, "space_id": space_id}).fetchone()
    return row[0] if row else 0


def move_memories(
    connection: Connection, agent_id: str, kind: Kind[Any], space_id: str, *, reason: str, run_id: str | None
) -> int:
    """Replace the vectors of a kind by those of another space, with an event each, and return how many were replaced.

    A memory without a new vector, or changed since that was made, is left as it is.
    """
    began_at = Identifier("started_at" if kind is EPISODE else "learned_at")
    statement = SQL(MOVES["move_memories"]).format(table=Identifier("heart", kind.table), began_at=began_at)
    parameters = {"agent_id": agent_id, "kind": kind.name, "space_id": space_id, "action": REEMBEDDED}
    return connection.execute(statement, {**parameters, "reason": reason, "run_id": run_id}).rowcount


def find_requests(connection: Connection, agent_id: str, keys: Sequence[str]) -> dict[str, KeyedRequest]:
    return {row.idempotency_key: row for row in query_requests(connection, agent_id, keys).fetchall()}


def earlier_request(connection: Connection, agent_id: str, call: KeyedCall) -> KeyedRequest | None:
    """Return the earlier use of a call's idempotency key; raise `Conflict` if it was for other arguments."""
    request = find_requests(connection, agent_id, [call.key]).get(call.key) if call.key else None
    if request is not None and request.content_hash != call.content_hash:
        raise Conflict(f"idempotency key {call.key!r} was used for something else; use a new key for this")
    return request


def act_once(
    connection: Connection, agent_id: str, call: KeyedCall, *, read: Callable[[UUID], V], act: Callable[[], V]
) -> V:
    """Return what `act` stores, or, for a key that was used before, what `read` returns for the id stored then.

    Raises `Conflict` as `earlier_request` does. With a key it takes the agent's lock.
    """
    if call.key is None:
        return act()
    lock_agent(connection, agent_id)  # so that two calls with one key can't both find it unused
    request = earlier_request(connection, agent_id, call)
    if request is not None:
        return read(request.memory_id)
    stored = act()
    row_id: UUID = cast("Any", stored).id
    store_request(connection, agent_id, call.verb, KeyedRequest(call.key, call.content_hash, row_id, call.action))
    return stored


def query_requests(connection: Connection, agent_id: str, keys: Sequence[str]) -> Cursor[KeyedRequest]:
    """Send the query for what was stored under these idempotency keys."""
    cursor = connection.cursor(row_factory=class_row(KeyedRequest))
    return cursor.execute(FACTS["find_requests"], {"agent_id": agent_id, "keys": list(keys)})


def store_request(connection: Connection, agent_id: str, verb: str, request: KeyedRequest) -> None:
    connection.execute(FACTS["store_request"], {"agent_id": agent_id, "verb": verb, **vars(request)})


def store_requests(connection: Connection, agent_id: str, verb: str, requests: Sequence[KeyedRequest]) -> None:
    rows = [{"agent_id": agent_id, "verb": verb, **vars(request)} for request in requests]
    with connection.cursor() as cursor:
        cursor.executemany(FACTS["store_request"], rows)


def import_verb(source: str | None) -> str:
    """Return the verb of requests by which an import is known, with its name: a key may hold a hash in place of it."""
    return "import" if source is None else f"import:{source}"


def lock_and_search(
    connection: Connection,
    agent_id: str,
    new: Embedded,
    *,
    space: EmbeddingSpace,
    limit: int,
    replaces: Sequence[UUID] = (),
) -> Callable[[], tuple[KeyedRequest | None, list[Neighbour], UUID | None]]:
    """Take the agent's lock, send the search for neighbours, and return a function that waits for its answer.

    That is the earlier use of the idempotency key, the neighbours and a forgotten id. Neighbours are the active facts
    of the same scope nearest by cosine, of the same slot, or of the same key, except those from which a person split
    off the same words; and in any state those it `replaces`. The third value is the id of a forgotten fact of the same
    words. The function raises `Moved` when the agent's memories live in another space.
    """
    fact = new.fact
    reach = {"has_user": fact.user_id is not None, "has_project": fact.project_id is not None}
    connection.execute(FACTS["prepare_learning"], {"agent_id": agent_id}, prepare=True)
    requests = query_requests(connection, agent_id, [fact.idempotency_key]) if fact.idempotency_key else None
    parameters = {**match_parameters(agent_id, new), "replaces": list(replaces)}
    search = nearest_statement(space, limit, EXACT_LIMIT, **reach)
    neighbours = connection.execute(search, parameters, prepare=True)
    home = query_space(connection, agent_id)
    flags = connection.execute(FACTS["prepare_writing"], {"agent_id": agent_id}, prepare=True)

    def found() -> tuple[KeyedRequest | None, list[Neighbour], UUID | None]:
        near = [Neighbour(similarity=similarity, fact=Fact(*row)) for *row, similarity in neighbours]
        has_splits, has_forgotten, *_ = flags.fetchone() or (False, False)
        require_space(home, agent_id, space)
        # Few agents have any of these, so they are statements of their own instead of parts of the one above.
        if has_splits:
            splits = connection.execute(FACTS["split_off"], {"agent_id": agent_id})
            apart = {fact_id for text, fact_id in splits if folded(text) == folded(fact.content)}
            named = {*replaces, *(each.fact.id for each in near if fact.key and each.fact.key == fact.key)}
            near = [each for each in near if each.fact.id not in apart - named]
        forgotten = connection.execute(FACTS["find_forgotten"], parameters).fetchone() if has_forgotten else None
        return requests.fetchone() if requests else None, near, forgotten[0] if forgotten else None

    return found


def forgotten_fact(connection: Connection, agent_id: str, new: NewFact) -> tuple[UUID, datetime] | None:
    """Return the fact of the same words and reach that somebody asked to forget last, and when it left recall."""
    names = ("content", "scope", "user_id", "project_id")
    key = {"agent_id": agent_id, **{name: getattr(new, name) for name in names}}
    return next(iter(connection.execute(FACTS["find_forgotten"], key)), None)


def embedding_of(connection: Connection, agent_id: str, fact_id: UUID) -> Vectors:
    """Return the unit vector of a fact that exists."""
    ((vector,),) = connection.execute(FACTS["embedding_of"], {"agent_id": agent_id, "id": fact_id}).fetchall()
    return vector.to_numpy()


def match_parameters(agent_id: str, new: Embedded) -> dict[str, Any]:
    """Return the parameters of a new fact for `nearest_facts` and `find_forgotten`."""
    names = ("content", "slot", "key", "scope", "user_id", "project_id")
    values = {name: getattr(new.fact, name) for name in names}
    return {"agent_id": agent_id, "embedding": Vector(new.embedding), **values}


def next_value(connection: Connection, agent_id: str, known: Fact, *, learned_at: datetime) -> Fact:
    """Return the first value after `learned_at` in the chain of values that ends at `known`."""
    key = {"agent_id": agent_id, "known_id": known.id, "learned_at": learned_at}
    return next(iter(fetch(connection, Fact, FACTS["next_value"], key, row="f")), known)


def values_before(connection: Connection, agent_id: str, late: Fact, *, heir: Fact) -> list[Fact]:
    """Return the values superseded by `heir` that should have ended when `late`, learned out of order, began."""
    late_values = {"late_id": late.id, "learned_at": late.learned_at, "key": late.key, "slot": late.slot}
    key = {"agent_id": agent_id, "heir_id": heir.id, **late_values}
    return fetch(connection, Fact, FACTS["values_before"], key, row="f")


def value_of_key(connection: Connection, agent_id: str, new: NewFact) -> Fact | None:
    """Return the active value of the key of a new fact, None where there is none yet."""
    key = {"agent_id": agent_id, **{name: getattr(new, name) for name in ("key", "scope", "user_id", "project_id")}}
    return next(iter(fetch(connection, Fact, FACTS["value_of_key"], key, row="f")), None)


def find_superseded(connection: Connection, agent_id: str, memory_id: UUID) -> list[tuple[UUID, bool]]:
    """Return the ids of the facts superseded by a memory, each with whether it was merged into it (else replaced)."""
    return connection.execute(FACTS["gave_way_to"], {"agent_id": agent_id, "id": memory_id}).fetchall()


def store_fact(
    connection: Connection, agent_id: str, new: Embedded, *, space: EmbeddingSpace, actor: str, reason: str
) -> Fact:
    """Insert one fact with its event of the history and of the outbox, and return it."""
    (fact,) = send_fact(connection, agent_id, new, space=space, actor=actor, reason=reason).fetchall()
    return fact


def send_fact(
    connection: Connection, agent_id: str, new: Embedded, *, space: EmbeddingSpace, actor: str, reason: str
) -> Cursor[Fact]:
    """Send one fact with its event of the history and of the outbox to be stored; the cursor returns it.

    On a connection in pipeline mode this waits for nothing.
    """
    cursor = connection.cursor(row_factory=class_row(Fact))
    row = fact_row(agent_id, new, space, actor, reason)
    return cursor.execute(storing_statement(), row, prepare=True)


def store_facts(
    connection: Connection, agent_id: str, news: Sequence[Embedded], *, space: EmbeddingSpace, actor: str, reason: str
) -> None:
    """Insert many facts, each with its event, in one round trip."""
    rows = [fact_row(agent_id, new, space, actor, reason) for new in news]
    with connection.cursor() as cursor:
        cursor.executemany(storing_statement(), rows)


def fact_row(agent_id: str, new: Embedded, space: EmbeddingSpace, actor: str, reason: str) -> dict[str, Any]:
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


def vector_columns(
    content: str, subject: str | None, context: str | None, vectors: Mapping[str, Vectors], space_id: str
) -> dict[str, Any]:
    """Return the vector columns of a fact, from the vectors of its passages."""
    context_vector = recall_vector(content, subject, context, vectors)
    return {
        "embedding": Vector(vectors[content]).to_text(),
        "context_embedding": None if context_vector is None else Vector(context_vector).to_text(),
        "embedding_space_id": space_id,
    }


def store_split(connection: Connection, agent_id: str, new: Embedded, split: Split, *, space: EmbeddingSpace) -> Fact:
    """Insert the fact that a statement becomes, with its events, and move the statement to it."""
    moved = {"statement": str(split.statement_id), "split_from": str(split.from_id)}
    row = {
        **fact_row(agent_id, new, space, "agent", split.reason),
        "statement_id": split.statement_id,
        "action": split.action,
        "after": Jsonb(moved),
        "effective_at": datetime.now(UTC),
    }
    with connection.cursor(row_factory=class_row(Fact)) as cursor:
        (fact,) = cursor.execute(storing_statement(has_statement=True), row).fetchall()
    return fact


def count_facts(connection: Connection, agent_id: str) -> dict[str, int]:
    return dict(connection.execute(FACTS["count_facts"], {"agent_id": agent_id}).fetchall())


# --- statements: what was said for a fact, kept word for word whatever becomes of the fact ---


def confirming_statement(known: Fact, new: NewFact) -> ConfirmingStatement:
    """Return the statement by which `new` confirms a known fact."""
    values = {name: getattr(new, name) for name in ("content", "subject", "source", "source_kind", "trust", "scope")}
    reach = {"user_id": new.user_id, "project_id": new.project_id, "session_id": new.session_id}
    values["frame"] = new.encoded_frame
    drawn_from = {"episode_id": new.source_episode_id, "decision_id": new.source_decision_id}
    reason = "repeat" if folded(new.content) == folded(known.content) else "reworded"
    moments = {"id": uuid4(), "said_at": new.learned_at, "reason": reason}
    return ConfirmingStatement(json_values({**values, **reach, **drawn_from, **moments}))


def statements_of(connection: Connection, agent_id: str, fact_id: UUID) -> list[Statement]:
    """Return the statements of a fact, the oldest first; raise `NotFound` for an unknown fact."""
    found = fetch(connection, Statement, STATEMENTS["statements_of"], {"agent_id": agent_id, "fact_id": fact_id})
    if not found:
        raise NotFound(f"agent {agent_id!r} has no fact {fact_id}")
    return found


def facts_drawn_from(connection: Connection, agent_id: str, episode_id: UUID) -> list[Fact]:
    """Return the facts in any state that were drawn from an episode, the oldest first."""
    return fetch(connection, Fact, STATEMENTS["facts_drawn_from"], {"agent_id": agent_id, "episode_id": episode_id})


def get_statement(connection: Connection, agent_id: str, statement_id: UUID) -> Statement:
    """Return one statement; raise `NotFound` when this agent has none of that id."""
    for found in fetch(connection, Statement, STATEMENTS["get_statement"], {"agent_id": agent_id, "id": statement_id}):
        return found
    raise NotFound(f"agent {agent_id!r} has no statement {statement_id}")


def revoke_statement(connection: Connection, agent_id: str, statement_id: UUID) -> None:
    """Mark a statement as taken back: it is kept, and no longer counts as a confirmation."""
    connection.execute(STATEMENTS["take_back"], {"agent_id": agent_id, "id": statement_id})


def is_first_statement(statement: Statement) -> bool:
    """Tell whether a fact was stored with this statement, whose words are its content."""
    return statement.reason in {"first", "imported"}


def fact_from_statement(statement: Statement, fact: Fact) -> NewFact:
    """Return the new fact of a statement that is split off: its own fields, and those of its fact it has none for."""
    own = ("content", "subject", "source", "source_kind", "trust", "scope", "user_id", "project_id")
    rest = ("category", "tags", "confidence", "valid_from", "valid_to")
    return NewFact(
        **{name: getattr(statement, name) for name in own},
        **{name: getattr(fact, name) for name in rest},
        slot=slot_of(statement.content, statement.subject),
        context=None,
        is_pinned=False,
        learned_at=statement.said_at,
        encoded_frame=statement.frame,
        encoded_censors=None,
        idempotency_key=None,
        source_episode_id=statement.episode_id,
        source_decision_id=statement.decision_id,
    )


def unrecorded_count(fact: Fact, stated: Sequence[Statement]) -> int:
    """Return how many confirmations of a fact have no statement: those counted before statements were stored."""
    return max(0, fact.confirmation_count + 1 - sum(each.taken_back_at is None for each in stated))


# --- the verdict cache: judgements by the content of a pair, so that no judge reads the same pair twice ---


def keep_readings(
    connection: Connection, agent_id: str, new: NewFact, read: Sequence[tuple[Fact, Judgement]], *, space_id: str
) -> None:
    """Store the built-in judge's verdicts on a new fact and its neighbours, so that no night reads the pairs again.

    On a connection in pipeline mode this waits for nothing.
    """
    # A night reads every pair with the earlier statement first, so only verdicts in that order can serve it.
    known = [(fact, judgement) for fact, judgement in read if judgement.later == "b"]
    if not known:
        return
    later = statement_digest(new.content, new.subject)
    earlier = [statement_digest(fact.content, fact.subject) for fact, _ in known]
    keys = [(agent_id, pair_hash(each, later, space_id, is_ordered=True)) for each in earlier]
    judgements = [judgement for _, judgement in known]
    first = judgements[0]
    store_verdicts(connection, keys, judgements, model=first.model, prompt_version=first.prompt_version)


def store_verdicts(
    connection: Connection,
    keys: Sequence[tuple[str, str]],
    judgements: Sequence[Judgement],
    *,
    model: str,
    prompt_version: str,
) -> None:
    """Store a judgement for each agent and hash of a pair; what is stored already stays."""
    columns = {
        "model": model,
        "prompt_version": prompt_version,
        "agent_ids": [agent_id for agent_id, _ in keys],
        "pair_hashes": [pair_hash for _, pair_hash in keys],
        "verdicts": [judgement.verdict.value for judgement in judgements],
        "confidences": [judgement.confidence for judgement in judgements],
        "slots": [judgement.slot for judgement in judgements],
        "laters": [judgement.later for judgement in judgements],
        "reasons": [judgement.reason for judgement in judgements],
        "changes": [judgement.change for judgement in judgements],
        "input_tokens": [judgement.input_tokens for judgement in judgements],
        "output_tokens": [judgement.output_tokens for judgement in judgements],
        "costs_usd": [judgement.cost_usd for judgement in judgements],
    }
    connection.execute(VERDICTS["keep_verdicts"], columns)


def check_names(connection: Connection, agent_id: str, memory_ids: Sequence[UUID]) -> None:
    """Raise `Refused` when a restored memory has the document name or the key of another active one."""
    parameters = {"agent_id": agent_id, "ids": list(memory_ids)}
    for fact_id, key, holder in connection.execute(FACTS["keys_held_twice"], parameters):
        raise Refused(
            f"fact {fact_id} would share the key {key!r} with {holder}; undo that first, or learn the value again"
        )
    for (name,) in connection.execute(FACTS["documents_of_one_name"], parameters):
        raise Refused(f"document {name!r} was written anew since; remove or rename that one first, then undo this")


def standing_of(connection: Connection, agent_id: str, restored: Memory) -> list[str]:
    """Return what is to be known of a restored fact: that another says the same, or why no recall finds it."""
    if restored.state == "active":
        found = connection.execute(FACTS["said_too"], {"agent_id": agent_id, "id": restored.id}).fetchone()
        return [f"{found[0]} says the same and is active too: forget one, or leave both to a night"] if found else []
    if not isinstance(restored, Fact) or restored.state != "superseded":
        return []
    last = restored
    while last.superseded_by:
        (last,) = facts_by_id(connection, agent_id, [last.superseded_by]).values()
    back = way_back(connection, agent_id, restored)
    return [f"no recall finds it: it was {back}", f"in its place: {last.content} ({last.id}, {last.state})"]


def way_back(connection: Connection, agent_id: str, fact: Fact) -> str:
    """Return what took a fact out of recall, and the command that makes it active again.

    Of a fact that nights retired several times, the commands in their order.
    """
    key = {"agent_id": agent_id, "memory_id": fact.id}
    found = fetch(connection, Retirement, FACTS["retirements"], key)
    changes = [each for each in found if each.is_in_effect]
    first = (changes or found)[-1]
    if fact.state == "superseded" and first.proposal_id is not None:
        changes = [first]  # of a night all else may stay
    commands = [f"`nous undo {f'--proposal {each.proposal_id}' if each.proposal_id else fact.id}`" for each in changes]
    if not changes or (len(changes) > 1 and first.proposal_id is None):
        commands = [f"`nous restore {fact.id}{' --active' if changes else ''}`"]
    by = f"by {f'the night of {first.night}' if first.night else first.actor} ({first.reason})"
    return f"{first.action} {by}; {', then '.join(commands)} makes it active again"
