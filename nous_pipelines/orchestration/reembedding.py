"""Moves agents to another embedding space: makes vectors beside those in use, then switches an agent at once."""

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
from nous_online.language.embedding import (
    LOCAL,
    Embedder,
    checked_vectors,
    local_embedder,
    passages,
    recall_vector,
    remote_embedder,
)
from nous_online.language.minilm import Vectors
from nous_online.memories.episodes import EMBEDDED_CHARACTERS
from nous_online.memories.episodes import text_to_embed as text_of_episode
from nous_online.memories.procedures import text_to_embed as text_of_procedure
from nous_online.memories.store import lock_moving, move_memories

BLOCKS = statements("nous_pipelines.orchestration", "reembedding.sql")
BUCKETS = tuple("0123456789abcdef")
"""The last digits of memory ids, by which the work is divided into sixteen parts."""
BATCH_SIZE = 128
MOST_MISSING = 64
"""How many memories, learned or changed a moment ago, are embedded at the switch, while their agent can't learn."""
ROUNDS = 5
MOVE_TIMEOUT_S = 600.0
LARGE_MOVE = 500
"""Memories from which on building the indexes of a space takes less time than adding the memories to them."""
EMPTY_EPISODE = "an episode nothing is left of"
LOWEST_ID = UUID(int=0)

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Due:
    """How many memories of an agent are in another space than the one it moves to."""

    memories: int = 0
    missing: int = 0
    """Those of them without a vector of the new space."""


@dataclass(frozen=True)
class Move:
    """One agent's move to another space."""

    agent_id: str
    from_space: str
    to_space: str
    moved: Mapping[str, int]
    """Memories by kind."""
    seconds: float
    """How long the agent could not learn."""


def embedder_named(model: str, dimensions: int | None = None) -> Embedder:
    """Return the embedder of a model: one in process by its name, any other of the server at NOUS_EMBEDDING_URL.

    Raises `InvalidInput` when NOUS_EMBEDDING_URL is not set.
    """
    local, chosen = local_embedder(model), settings()
    if local is not None:
        return local
    if chosen.embedding_url is None:
        built_in = " or ".join(each.space.id for each in LOCAL.values())
        message = f"embedding model {model!r} needs a server: set NOUS_EMBEDDING_URL, or name one of here: {built_in}"
        raise InvalidInput(message)
    return remote_embedder(chosen.embedding_url, model=model, dimensions=dimensions or chosen.embedding_dimensions)


# --- making vectors beside those in use, in small transactions ---


def fill_vectors(
    database: Database,
    embedder: Embedder,
    agent_ids: Sequence[str],
    *,
    buckets: Sequence[str] = BUCKETS,
    on_progress: Progress | None = None,
) -> int:
    """Make a vector of the embedder's space for the memories of some agents without one, and return how many.

    Each batch is stored at once, so that an interrupted run continues where it was. The vectors in use stay as they
    are. Raises `Unavailable` or `InvalidInput` as the embedder does.
    """
    filled = 0
    for agent_id in agent_ids:
        for kind in KINDS.values():
            for count in fill_kind(database, embedder, agent_id, kind, buckets):
                filled += count
                if on_progress is not None:
                    on_progress(count)
    return filled


def fill_kind(
    database: Database, embedder: Embedder, agent_id: str, kind: Kind[Any], buckets: Sequence[str]
) -> Iterator[int]:
    """Make and store the missing vectors of one kind, batch after batch; yield the number of memories in each."""
    last, rows = LOWEST_ID, None
    # A batch that is not full is the last one. Memories learned meanwhile are left to the next round or to the switch:
    # the loop would never end for an agent that learns as fast.
    while rows is None or len(rows) == BATCH_SIZE:
        with database.transaction(agent_id) as connection:
            selection = {"buckets": list(buckets), "after": last, "limit": BATCH_SIZE}
            rows = unembedded_memories(connection, agent_id, kind, embedder.space, selection)
        if not rows:
            return
        vectors = embed_memories(embedder, kind, rows)
        with database.transaction(agent_id) as connection:
            store_next_vectors(connection, agent_id, kind, embedder.space, vectors)
        last = rows[-1]["id"]
        yield len(rows)


def unembedded_memories(
    connection: Connection, agent_id: str, kind: Kind[Any], space: EmbeddingSpace, selection: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return memories without a vector of a space, ordered by id, with the texts to embed.

    `selection` has the `buckets`, the id `after` which to begin, and the `limit`.
    """
    texts = SQL(BLOCKS[f"texts_of_{kind.name}"]).format(characters=Literal(EMBEDDED_CHARACTERS))
    statement = SQL(BLOCKS["unembedded"]).format(texts=texts, table=Identifier("heart", kind.table))
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, {"agent_id": agent_id, "space_id": space.id, **selection}).fetchall()


def embed_memories(embedder: Embedder, kind: Kind[Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return id, version and vectors of each memory; each distinct text is embedded once."""
    texts = [texts_of(kind, row) for row in rows]
    unique = list(dict.fromkeys(text for each in texts for text in each))
    made = checked_vectors(embedder.embed_documents(unique), shape=(len(unique), embedder.space.dimensions))
    vectors = dict(zip(unique, made, strict=True))
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
    """Return the texts of a memory that are embedded, the same as when it was learned; that of its own vector first."""
    match kind.name:
        case "fact":
            return passages(row["content"], row["subject"], row["context"])
        case "episode":
            text = text_of_episode(row["title"], row["summary"] or row["detail"] or row["rest"], None)
            return [text or EMPTY_EPISODE]
        case "procedure":
            return [text_of_procedure(row["name"], row)]
        case _:
            return [row["trigger"]]


def context_vector(kind: Kind[Any], row: Mapping[str, Any], vectors: Mapping[str, Vectors]) -> Vector | None:
    """Return the vector by which a fact is recalled if it is not the one of its content; other kinds have none."""
    if kind.name != "fact":
        return None
    vector = recall_vector(row["content"], row["subject"], row["context"], vectors)
    return None if vector is None else Vector(vector)


def store_next_vectors(
    connection: Connection,
    agent_id: str,
    kind: Kind[Any],
    space: EmbeddingSpace,
    vectors: Sequence[Mapping[str, Any]],
) -> None:
    """Store vectors of `embed_memories` beside the memories, except for memories that changed meanwhile."""
    statement = SQL(BLOCKS["store_next"]).format(table=Identifier("heart", kind.table))
    common = {"agent_id": agent_id, "kind": kind.name, "space_id": space.id}
    with connection.cursor() as cursor:
        cursor.executemany(statement, [{**common, **row} for row in vectors])


def count_due(connection: Connection, agent_ids: Sequence[str], space_id: str) -> dict[str, Due]:
    """Return the numbers of memories to move to a space by agent, without agents that have none."""
    counts: dict[str, Due] = {}
    parameters = {"agent_ids": list(agent_ids), "space_id": space_id}
    for kind in KINDS.values():
        statement = SQL(BLOCKS["due"]).format(table=Identifier("heart", kind.table))
        for agent_id, memories, missing in connection.execute(statement, parameters):
            known = counts.get(agent_id, Due())
            counts[agent_id] = Due(known.memories + memories, known.missing + missing)
    return counts


def all_due(database: Database, agent_ids: Sequence[str], space_id: str) -> dict[str, Due]:
    """Return the same as `count_due`, read in a transaction of its own."""
    with database.transaction(timeout_s=MOVE_TIMEOUT_S) as connection:
        connection.execute(BLOCKS["plan_for_many"])
        return count_due(connection, agent_ids, space_id)


# --- switching all memories of an agent at once ---


def switch_agent(database: Database, embedder: Embedder, agent_id: str, *, run_id: str | None = None) -> Move:
    """Move one agent to the embedder's space in one transaction, and return what was moved.

    Recall goes on in the old space until the commit; calls that store vectors wait. Raises `Refused`, changing nothing,
    while more than `MOST_MISSING` memories have no vector of the space.
    """
    space = embedder.space
    with database.transaction(agent_id, timeout_s=MOVE_TIMEOUT_S) as connection:
        connection.execute(BLOCKS["hold_space"], {"agent_id": agent_id})
        connection.execute(BLOCKS["plan_for_many"])
        began = monotonic()
        from_space = spaces_of(connection, [agent_id])[agent_id]
        for kind in KINDS.values():
            lock_moving(connection, agent_id, kind, space.id)
        embed_missing(connection, embedder, agent_id)
        reason = f"from embedding space {from_space} to {space.id}"
        moved = {
            kind.name: move_memories(connection, agent_id, kind, space.id, reason=reason, run_id=run_id)
            for kind in KINDS.values()
        }
        connection.execute(BLOCKS["move_agent"], {"agent_id": agent_id, "space_id": space.id})
    seconds = monotonic() - began
    # In a transaction of its own, so that learning does not wait for it.
    with database.transaction(agent_id, timeout_s=MOVE_TIMEOUT_S) as connection:
        connection.execute(BLOCKS["clear"], {"agent_id": agent_id, "space_id": space.id})
    return Move(agent_id, from_space, space.id, moved, seconds)


def embed_missing(connection: Connection, embedder: Embedder, agent_id: str) -> None:
    """Make the missing vectors of an agent whose memories are locked; raise `Refused` if they are too many."""
    left = count_due(connection, [agent_id], embedder.space.id).get(agent_id, Due())
    check_missing(agent_id, left, embedder.space.id)
    selection = {"buckets": list(BUCKETS), "after": LOWEST_ID, "limit": MOST_MISSING}
    for kind in KINDS.values() if left.missing else ():
        rows = unembedded_memories(connection, agent_id, kind, embedder.space, selection)
        vectors = embed_memories(embedder, kind, rows) if rows else []
        store_next_vectors(connection, agent_id, kind, embedder.space, vectors)


def check_missing(agent_id: str, left: Due, space_id: str) -> None:
    """Raise `Refused` if too many memories of an agent have no vector of a space."""
    if left.missing > MOST_MISSING:
        message = (
            f"{left.missing:,} of {left.memories:,} memories of agent {agent_id!r} have no vector of embedding space "
            f"{space_id!r} yet, so it stays where it is; materialise all partitions of `next_embeddings` again, or run "
            "`nous reembed`"
        )
        raise Refused(message)


def spaces_of(connection: Connection, agent_ids: Sequence[str]) -> dict[str, str]:
    """Return the embedding space of each agent."""
    return dict(connection.execute(BLOCKS["spaces"], {"agent_ids": list(agent_ids)}).fetchall())


def switch_agents(
    database: Database, embedder: Embedder, agent_ids: Sequence[str], *, run_id: str | None = None
) -> list[Move]:
    """Move all agents that are not in the embedder's space, and index it.

    Raises `Refused`, before any is moved, if too many memories of one of them have no vector of the space.
    """
    space = embedder.space
    left = all_due(database, agent_ids, space.id)
    for agent_id, each in left.items():
        check_missing(agent_id, each, space.id)
    with database.transaction() as connection:
        homes = spaces_of(connection, agent_ids)
    moving = [agent_id for agent_id in agent_ids if homes[agent_id] != space.id or agent_id in left]
    if sum(each.memories for each in left.values()) >= LARGE_MOVE:
        drop_indexes(database.url, space.id)
    try:
        return [switch_agent(database, embedder, agent_id, run_id=run_id) for agent_id in moving]
    finally:
        build_indexes(database.url, space)


def reembed(
    database: Database, embedder: Embedder, agent_ids: Sequence[str], *, on_progress: Progress | None = None
) -> list[Move]:
    """Move agents to the embedder's space while they go on recalling and learning."""
    for _ in range(ROUNDS):
        if fill_vectors(database, embedder, agent_ids, on_progress=on_progress) <= MOST_MISSING:
            break
    return switch_agents(database, embedder, agent_ids)


# --- indexes: dropped before a large move and built after it, concurrently with reads and writes ---


def drop_indexes(url: str, space_id: str, *, only_broken: bool = False) -> None:
    """Drop the vector indexes of a space, or only those whose building was interrupted."""
    with as_owner(url, seconds=MIGRATE_S) as connection:
        for name, is_whole in connection.execute(BLOCKS["index_names"], {"space_id": space_id}).fetchall():
            if not (only_broken and is_whole):
                connection.execute(SQL(BLOCKS["drop_index"]).format(name=Identifier(name)))


def build_indexes(url: str, space: EmbeddingSpace) -> None:
    """Build the vector indexes that a space lacks; until then recall compares all vectors."""
    drop_indexes(url, space.id, only_broken=True)
    with as_owner(url, seconds=MIGRATE_S) as connection:
        for kind in KINDS.values():
            for column in ("embedding", "context_embedding"):
                connection.execute(index_statement(kind, column, space))


def index_statement(kind: Kind[Any], column: str, space: EmbeddingSpace) -> Composed:
    """Return the statement that builds one vector index."""
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
