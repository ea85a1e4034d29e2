"""Moves agents into another embedding space: its vectors are made beside those that serve, then all change at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from time import monotonic
from typing import Any
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composed, Identifier, Literal

from nous_online.core.domain import KINDS, EmbeddingSpace, Kind
from nous_online.core.errors import InvalidInput, Refused
from nous_online.core.settings import settings
from nous_online.database.connection import MIGRATE_S, Database, as_owner
from nous_online.database.statements import statements
from nous_online.language.embedding import Embedder, checked_vectors, passages, recall_vector, remote_embedder
from nous_online.language.minilm import LocalMiniLM, Vectors
from nous_online.memories.episodes import EMBEDDED_CHARACTERS
from nous_online.memories.episodes import text_to_embed as text_of_episode
from nous_online.memories.procedures import text_to_embed as text_of_procedure
from nous_online.memories.store import lock_moving, move_memories

BLOCKS = statements("nous_pipelines.orchestration", "reembedding.sql")
BUCKETS = tuple("0123456789abcdef")
"""The last digits of memory ids: sixteen parts of the work, each of which can be done, and done again, by itself."""
BATCH_SIZE = 128
LAST_FEW = 64
"""So many memories that were learned or changed a moment ago are embedded while their agent can't learn; more wait."""
ROUNDS = 5
MOVE_TIMEOUT_S = 600.0
LARGE_MOVE = 500
"""Memories; from here on a new index over all of a space takes less time than adding them to the one there is."""
NOTHING_LEFT = "an episode nothing is left of"
FIRST = UUID(int=0)

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Due:
    """How much of an agent lives in another space than the one it is moved to."""

    memories: int = 0
    missing: int = 0
    """Those of them that have no vector of the new space yet."""


@dataclass(frozen=True)
class Move:
    """One agent's way into another space."""

    agent_id: str
    from_space: str
    to_space: str
    moved: Mapping[str, int]
    """Memories by kind."""
    seconds: float
    """How long the agent could not learn."""


def embedder_named(model: str, dimensions: int | None = None) -> Embedder:
    """Return the embedder of a model: MiniLM by its name, any other from the server NOUS_EMBEDDING_URL names.

    Raises `InvalidInput` when there is no such server.
    """
    local, chosen = LocalMiniLM(), settings()
    if model in (local.space.id, local.space.model):
        return local
    if chosen.embedding_url is None:
        message = (
            f"embedding model {model!r} needs a server: set NOUS_EMBEDDING_URL, or name the built-in {local.space.id!r}"
        )
        raise InvalidInput(message)
    return remote_embedder(chosen.embedding_url, model=model, dimensions=dimensions or chosen.embedding_dimensions)


# --- filling: beside what serves, in small transactions ---


def fill(
    database: Database,
    embedder: Embedder,
    agent_ids: Sequence[str],
    *,
    buckets: Sequence[str] = BUCKETS,
    on_progress: Progress | None = None,
) -> int:
    """Give the memories of some agents a vector of the embedder's space where they have none, and return how many.

    Each batch is kept as soon as it is made, so that what is interrupted goes on where it was. What serves recall is
    left alone. Raises `Unavailable` or `InvalidInput` as the embedder does.
    """
    filled = 0
    for agent_id in agent_ids:
        for kind in KINDS.values():
            for count in filled_batches(database, embedder, agent_id, kind, buckets):
                filled += count
                if on_progress is not None:
                    on_progress(count)
    return filled


def filled_batches(
    database: Database, embedder: Embedder, agent_id: str, kind: Kind[Any], buckets: Sequence[str]
) -> Iterator[int]:
    """Embed and keep batch after batch of one kind; yield how many memories each had.

    A batch that is not full is the last: what is learned meanwhile is left to the next round or to the switch, or one
    would run behind an agent that goes on learning for ever.
    """
    last, rows = FIRST, None
    while rows is None or len(rows) == BATCH_SIZE:
        with database.transaction(agent_id) as connection:
            wanted = {"buckets": list(buckets), "after": last, "limit": BATCH_SIZE}
            rows = unembedded(connection, agent_id, kind, embedder.space, wanted)
        if not rows:
            return
        ready = embedded(embedder, kind, rows)
        with database.transaction(agent_id) as connection:
            store(connection, agent_id, kind, embedder.space, ready)
        last = rows[-1]["id"]
        yield len(rows)


def unembedded(
    connection: Connection, agent_id: str, kind: Kind[Any], space: EmbeddingSpace, wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return memories without a vector of a space, by id, with the texts it is made from.

    `wanted` names the buckets, the id `after` which to begin, and the limit.
    """
    texts = SQL(BLOCKS[f"texts_of_{kind.name}"]).format(characters=Literal(EMBEDDED_CHARACTERS))
    statement = SQL(BLOCKS["unembedded"]).format(texts=texts, table=Identifier("heart", kind.table))
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, {"agent_id": agent_id, "space_id": space.id, **wanted}).fetchall()


def embedded(embedder: Embedder, kind: Kind[Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each memory, its id, its version and its vectors; no text is embedded twice."""
    texts = [texts_of(kind, row) for row in rows]
    unique = list(dict.fromkeys(text for each in texts for text in each))
    found = checked_vectors(embedder.embed_documents(unique), shape=(len(unique), embedder.space.dimensions))
    vectors = dict(zip(unique, found, strict=True))
    return [
        {
            "id": row["id"],
            "row_version": row["row_version"],
            "embedding": Vector(vectors[own]),
            "context_embedding": context_vector(kind, row, vectors),
        }
        for row, (own, *_) in zip(rows, texts, strict=True)
    ]


def texts_of(kind: Kind[Any], row: Mapping[str, Any]) -> list[str]:
    """Return what of a memory is embedded, as when it was learned: what it says itself comes first."""
    match kind.name:
        case "fact":
            return passages(row["content"], row["subject"], row["context"])
        case "episode":
            return [text_of_episode(row["title"], row["summary"] or row["detail"] or row["rest"], None) or NOTHING_LEFT]
        case "procedure":
            return [text_of_procedure(row["name"], row)]
        case _:
            return [row["trigger"]]


def context_vector(kind: Kind[Any], row: Mapping[str, Any], vectors: Mapping[str, Vectors]) -> Vector | None:
    """Return the vector a fact is recalled by where that is not the one of its content; other kinds have none."""
    if kind.name != "fact":
        return None
    vector = recall_vector(row["content"], row["subject"], row["context"], vectors)
    return None if vector is None else Vector(vector)


def store(
    connection: Connection,
    agent_id: str,
    kind: Kind[Any],
    space: EmbeddingSpace,
    ready: Sequence[Mapping[str, Any]],
) -> None:
    """Keep vectors beside the memories, as far as these still are what was embedded."""
    statement = SQL(BLOCKS["store_next"]).format(table=Identifier("heart", kind.table))
    common = {"agent_id": agent_id, "kind": kind.name, "space_id": space.id}
    with connection.cursor() as cursor:
        cursor.executemany(statement, [{**common, **row} for row in ready])


def due(connection: Connection, agent_ids: Sequence[str], space_id: str) -> dict[str, Due]:
    """Return how much of each agent is to be moved into a space; nothing of one that is all there."""
    found: dict[str, Due] = {}
    wanted = {"agent_ids": list(agent_ids), "space_id": space_id}
    for kind in KINDS.values():
        statement = SQL(BLOCKS["due"]).format(table=Identifier("heart", kind.table))
        for agent_id, memories, missing in connection.execute(statement, wanted):
            known = found.get(agent_id, Due())
            found[agent_id] = Due(known.memories + memories, known.missing + missing)
    return found


def all_due(database: Database, agent_ids: Sequence[str], space_id: str) -> dict[str, Due]:
    """Return how much of each agent is to be moved into a space, read in a transaction of its own."""
    with database.transaction(timeout_s=MOVE_TIMEOUT_S) as connection:
        connection.execute(BLOCKS["plan_for_many"])
        return due(connection, agent_ids, space_id)


# --- switching: everything of an agent at once ---


def switch(database: Database, embedder: Embedder, agent_id: str, *, run_id: str | None = None) -> Move:
    """Move one agent into the embedder's space, all of it in one transaction, and return what was moved.

    Recall goes on from the old space until that moment; who stores vectors waits. Raises `Refused`, changing nothing,
    while more than the last few memories have no vector of the space.
    """
    space = embedder.space
    with database.transaction(agent_id, timeout_s=MOVE_TIMEOUT_S) as connection:
        connection.execute(BLOCKS["hold_space"], {"agent_id": agent_id})
        connection.execute(BLOCKS["plan_for_many"])
        began = monotonic()
        from_space = spaces_of(connection, [agent_id])[agent_id]
        for kind in KINDS.values():
            lock_moving(connection, agent_id, kind, space.id)
        catch_up(connection, embedder, agent_id)
        reason = f"from embedding space {from_space} to {space.id}"
        moved = {
            kind.name: move_memories(connection, agent_id, kind, space.id, reason=reason, run_id=run_id)
            for kind in KINDS.values()
        }
        connection.execute(BLOCKS["move_agent"], {"agent_id": agent_id, "space_id": space.id})
    seconds = monotonic() - began
    with database.transaction(agent_id, timeout_s=MOVE_TIMEOUT_S) as connection:
        connection.execute(BLOCKS["clear"], {"agent_id": agent_id, "space_id": space.id})
    return Move(agent_id, from_space, space.id, moved, seconds)


def catch_up(connection: Connection, embedder: Embedder, agent_id: str) -> None:
    """Embed the last few memories of an agent nobody can change now; raise `Refused` when they are too many."""
    left = due(connection, [agent_id], embedder.space.id).get(agent_id, Due())
    if left.missing > LAST_FEW:
        raise Refused(still_missing(agent_id, left, embedder.space.id))
    wanted = {"buckets": list(BUCKETS), "after": FIRST, "limit": LAST_FEW}
    for kind in KINDS.values() if left.missing else ():
        rows = unembedded(connection, agent_id, kind, embedder.space, wanted)
        store(connection, agent_id, kind, embedder.space, embedded(embedder, kind, rows) if rows else [])


def still_missing(agent_id: str, left: Due, space_id: str) -> str:
    """Say that an agent can't be moved yet, and what to do."""
    return (
        f"{left.missing:,} of {left.memories:,} memories of agent {agent_id!r} have no vector of embedding space "
        f"{space_id!r} yet, so it stays where it is; materialise all partitions of `next_embeddings` again, or run "
        "`nous reembed`"
    )


def spaces_of(connection: Connection, agent_ids: Sequence[str]) -> dict[str, str]:
    """Return in which embedding space each agent lives."""
    return dict(connection.execute(BLOCKS["spaces"], {"agent_ids": list(agent_ids)}).fetchall())


def settle(
    database: Database, embedder: Embedder, agent_ids: Sequence[str], *, run_id: str | None = None
) -> list[Move]:
    """Move all agents that are not in the embedder's space yet, and see that it is indexed.

    Raises `Refused`, before any was moved, while one of them still misses more than a few vectors.
    """
    space = embedder.space
    left = all_due(database, agent_ids, space.id)
    for agent_id, each in left.items():
        if each.missing > LAST_FEW:
            raise Refused(still_missing(agent_id, each, space.id))
    with database.transaction() as connection:
        homes = spaces_of(connection, agent_ids)
    moving = [agent_id for agent_id in agent_ids if homes[agent_id] != space.id or agent_id in left]
    if sum(each.memories for each in left.values()) >= LARGE_MOVE:
        drop_indexes(database.url, space.id)
    try:
        return [switch(database, embedder, agent_id, run_id=run_id) for agent_id in moving]
    finally:
        build_indexes(database.url, space)


def reembed(
    database: Database, embedder: Embedder, agent_ids: Sequence[str], *, on_progress: Progress | None = None
) -> list[Move]:
    """Fill and switch: move agents into the embedder's space while they go on recalling and learning."""
    for _ in range(ROUNDS):
        if fill(database, embedder, agent_ids, on_progress=on_progress) <= LAST_FEW:
            break
    return settle(database, embedder, agent_ids)


# --- indexes: laid aside for a large move and built after it, while everybody goes on ---


def drop_indexes(url: str, space_id: str, *, only_broken: bool = False) -> None:
    """Remove the vector indexes of a space, keeping nobody out; or those only whose making was interrupted."""
    with as_owner(url, seconds=MIGRATE_S) as connection:
        for name, is_whole in connection.execute(BLOCKS["index_names"], {"space_id": space_id}).fetchall():
            if not (only_broken and is_whole):
                connection.execute(SQL(BLOCKS["drop_index"]).format(name=Identifier(name)))


def build_indexes(url: str, space: EmbeddingSpace) -> None:
    """Make the vector indexes that a space lacks, keeping nobody out; until then all vectors are compared."""
    drop_indexes(url, space.id, only_broken=True)
    with as_owner(url, seconds=MIGRATE_S) as connection:
        for kind in KINDS.values():
            for column in ("embedding", "context_embedding"):
                connection.execute(index_statement(kind, column, space))


def index_statement(kind: Kind[Any], column: str, space: EmbeddingSpace) -> Composed:
    """Return the statement that makes one vector index."""
    has_context = column == "context_embedding"
    suffix = md5(space.id.encode(), usedforsecurity=False).hexdigest()[:8]
    return SQL(BLOCKS["build_index"]).format(
        name=Identifier(f"{kind.table}_{'context_' if has_context else ''}hnsw_{suffix}"),
        table=Identifier(kind.table),
        column=Identifier(column),
        dimensions=Literal(space.dimensions),
        space_id=Literal(space.id),
        recalled=SQL(BLOCKS[f"{kind.table}_recalled"]),
        has_context=SQL(BLOCKS["has_context"] if has_context else ""),
    )
