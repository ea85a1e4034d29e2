"""Predicting the memories a session will use: those that the latest sessions like it used, and those near its texts.

The signals of a session are stored for later predictions; the vectors of its texts are cached for its next context.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from threading import Lock
from uuid import UUID

from psycopg import Connection
from psycopg.sql import SQL, Composed

from nous_online.context.context_lines import Predicted, Prediction
from nous_online.context.scorer import (
    ERRORS,
    Nearness,
    Past,
    PastRecall,
    Ranking,
    Sighted,
    Signals,
    atoms_of,
    expected_share,
    file_words,
    past_of,
)
from nous_online.core.deadline import Deadline
from nous_online.core.errors import NousError
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import Agent
from nous_online.recall.ranking import RecallPolicy
from nous_online.recall.recall import BLOCKS, Cue, Recalled, recall

logger = logging.getLogger(__name__)
PREDICTING = statements("nous_online.context", "predicting.sql")
SESSIONS_A_SIGNAL = 40
"""Latest sessions of a signal that are read."""
RECALLS_A_SESSION = 20
LATEST_RECALLS = 400
"""Latest recalls that are read whatever their signals: they show which memories are used at all."""
MOST_STEPS = 8
"""How often a fact may have been superseded since it was used."""
SPARE = 30
"""More memories that are read at first than are wanted, because some are gone or out of reach by now."""
EMBEDDING_SHARE = 0.5
"""Share of the remaining time that embedding may take: without a vector the statistics still give an answer."""
NEAREST = 100
"""Most memories that are ranked for their nearness: on traces 20 would add only half as much as 100."""
KEPT_S = 300.0
"""How long the vectors of a session are cached: its next turn has begun by then."""
MOST_SESSIONS = 1_000
"""Cached at once in one process, about 2 KB for each text."""


@dataclass(frozen=True)
class PredictionRequest:
    """The checked arguments of a prediction: session, moment, number of memories, user and project."""

    session_id: str
    """Empty for a session that has not begun."""
    at: datetime
    limit: int
    user_id: str | None = None
    project_id: str | None = None
    least: float = 0.0
    """Least probability of a memory that is returned."""


def predict(
    agent: Agent, signals: Signals, wanted: PredictionRequest, deadline: Deadline, *, is_now: bool
) -> Prediction:
    """Return the memories that sessions like this one used, or that are near to its words.

    With `is_now` the signals are stored for later predictions; the vectors of the texts are cached for its context.
    """
    path, branch = (text and file_words(text) for text in (signals.current_file, signals.branch))
    cues = (signals.task, path, *signals.recent_errors[:ERRORS], branch)
    texts = list(dict.fromkeys(text for text in cues if text))
    vectors = None
    try:
        vectors = agent.embed(texts, Deadline(deadline.remaining() * EMBEDDING_SHARE)) if texts else None
    except NousError as error:
        deadline.remaining()
        logger.warning("the embedder failed, so nothing is predicted by meaning: %s", error)
    with agent.transaction(deadline) as connection:
        found: list[Recalled] = []
        for text, vector in zip(texts, () if vectors is None else vectors, strict=vectors is not None):
            cue = Cue(
                query=text,
                embedding=vector,
                limit=NEAREST // len(texts),
                user_id=wanted.user_id,
                project_id=wanted.project_id,
            )
            found += recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy()).answers
        memories, expected = predict_memories(connection, agent.id, signals, wanted, nearness_of(found))
        if is_now:
            record_sighting(connection, agent.id, signals, wanted.session_id, wanted.at)
    if vectors is not None:
        VECTOR_CACHE.put(cache_key(agent, wanted.session_id), dict(zip(map(text_hash, texts), vectors, strict=True)))
    share = expected_share([each.confidence for each in memories], expected)
    return Prediction(wanted.session_id, memories, round(share, 4))


def record_sighting(connection: Connection, agent_id: str, signals: Signals, session_id: str, at: datetime) -> None:
    """Store the signals of a session; each counts once for a session, when it was first seen."""
    row = {"agent_id": agent_id, "session_id": session_id, "at": at, "atoms": list(atoms_of(signals, at=at))}
    connection.execute(PREDICTING["see"], row, prepare=True)


def nearness_of(answers: Iterable[Recalled]) -> dict[bytes, Nearness]:
    """Return the highest scores of each memory over the texts it was recalled for, by the bytes of its id."""
    near: dict[bytes, Nearness] = {}
    for each in answers:
        other = near.get(each.id.bytes, Nearness())
        near[each.id.bytes] = Nearness(max(each.memory.lexical, other.words), max(each.memory.dense, other.meaning))
    return near


def predict_memories(
    connection: Connection,
    agent_id: str,
    signals: Signals,
    wanted: PredictionRequest,
    near: Mapping[bytes, Nearness],
    *,
    is_used_only: bool = False,
) -> tuple[tuple[Predicted, ...], float]:
    """Return the memories in reach that are likeliest to be used, best first, without those the session has cited.

    The second value is the expected number of memories used in the session, among all in reach. With `is_used_only`
    only memories that were used before are returned.
    """
    # Memories are bytes of ids here, not UUIDs: thousands are counted, and few returned.
    atoms = atoms_of(signals, at=wanted.at)
    past = past_sessions(connection, agent_id, atoms, wanted)
    if is_used_only:
        near = {memory: near[memory] for memory in past.memories if memory in near}
    ranking = Ranking(past, atoms, near)
    places = ranking.places(least=wanted.least)
    kept: dict[UUID, Predicted] = {}
    out_of_reach = 0.0
    # Each page is four times as long as the one before: few look-ups, however many are out of reach.
    begin, size = 0, SPARE + wanted.limit
    while begin < len(places) and len(kept) < wanted.limit:
        page = places[begin : begin + size]
        heirs = known_memories(connection, agent_id, [ranking.memories[place] for place in page], wanted)
        for place in page:
            memory_id, kind = heirs.get(ranking.memories[place], (None, ""))
            if memory_id is None:
                out_of_reach += ranking.chance(place)
            elif memory_id not in kept and len(kept) < wanted.limit:
                kept[memory_id] = Predicted(memory_id, kind, *ranking.at(place)[1:])
        begin, size = begin + size, size * 4
    return tuple(kept.values()), ranking.expected - out_of_reach


def past_sessions(
    connection: Connection, agent_id: str, atoms: Sequence[str], wanted: PredictionRequest
) -> Past[bytes]:
    """Read the latest sessions with each of these atoms, and the latest recalls; both by an index, up to a limit."""
    asked = {"agent_id": agent_id, "session_id": wanted.session_id, "at": wanted.at, "atoms": list(atoms)}
    asked |= {"sessions": SESSIONS_A_SIGNAL, "recalls": RECALLS_A_SESSION, "latest": LATEST_RECALLS}
    rows = connection.execute(PREDICTING["sighted_sessions"], asked, prepare=True, binary=True)
    sighted = [Sighted(*row) for row in rows]
    asked["session_ids"] = sorted({each.session_id for each in sighted} | {wanted.session_id})
    rows = connection.execute(PREDICTING["used_in_sessions"], asked, prepare=True, binary=True)
    recalls = (PastRecall(session_id, at, *map(ids_in, sent)) for session_id, at, *sent in rows)
    return past_of(recalls, sighted, session_id=wanted.session_id, at=wanted.at)


def ids_in(sent: bytes) -> list[bytes]:
    """Return the ids of an array in PostgreSQL's binary form: a header of 20 bytes, then 4 for the length of each."""
    return [sent[begin : begin + 16] for begin in range(24, len(sent), 20)]


def known_memories(
    connection: Connection, agent_id: str, ids: Sequence[bytes], wanted: PredictionRequest
) -> dict[bytes, tuple[UUID, str]]:
    """Return today's successor of each used memory, and its kind, by id; none for one that is gone or out of reach."""
    asked = {"agent_id": agent_id, "at": wanted.at, "user_id": wanted.user_id, "project_id": wanted.project_id}
    asked |= {"ids": [UUID(bytes=each) for each in ids], "steps": MOST_STEPS}
    rows = connection.execute(known_statement(), asked, prepare=True, binary=True).fetchall()
    return {used_id.bytes: (memory_id, kind) for used_id, memory_id, kind in rows}


@cache
def known_statement() -> Composed:
    """Return the query of `known_memories`, with recall's rule of who may see what."""
    return SQL(PREDICTING["known_memories"]).format(in_reach=SQL(BLOCKS["in_reach"]))


# --- the cache of a prediction: vectors by text hash, never a text or a memory ---

Key = tuple[str, ...]


@dataclass
class VectorCache:
    """A thread-safe cache of vectors, by session and by the hash of their text; the oldest session is evicted.

    Predictions are not cached: reading them takes milliseconds, and nothing stale is shown then.
    """

    seconds: float = KEPT_S
    size: int = MOST_SESSIONS
    _kept: OrderedDict[Key, tuple[float, Mapping[bytes, Vectors]]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def put(self, key: Key, vectors: Mapping[bytes, Vectors]) -> None:
        """Store the vectors of a session in place of its earlier ones; evict the oldest session beyond `size`."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = (time.monotonic() + self.seconds, vectors)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)

    def look(self, key: Key) -> Mapping[bytes, Vectors]:
        """Return the vectors of a session; empty when there are none, or they have expired."""
        with self._lock:
            ends_at, vectors = self._kept.get(key, (0.0, {}))
            if vectors and ends_at <= time.monotonic():
                del self._kept[key]
                return {}
            return vectors


VECTOR_CACHE = VectorCache()


def vectors_of(agent: Agent, session_id: str | None, texts: Sequence[str], deadline: Deadline) -> list[Vectors] | None:
    """Return the unit vectors of texts, from the cache of the session's prediction where they are in it.

    None where the embedder is needed and fails.
    """
    found = {} if session_id is None else dict(VECTOR_CACHE.look(cache_key(agent, session_id)))
    wanting = [text for text in texts if text_hash(text) not in found]
    if wanting:
        vectors = agent.embed_if_able(wanting, deadline)
        if vectors is None:
            return None
        found |= dict(zip(map(text_hash, wanting), vectors, strict=True))
    return [found[text_hash(text)] for text in texts]


def cache_key(agent: Agent, session_id: str) -> Key:
    """Return the cache key of a session; the space is part of it, because vectors of two spaces can't be compared."""
    return (agent.database.url, agent.id, agent.embedder.space.id, session_id)


def text_hash(text: str) -> bytes:
    """Return the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
