"""What a prediction leaves ready for the context that is assembled next: vectors, and never a text or a memory.

What is predicted is read anew each time, in milliseconds, so that nothing stale is served; embedding is what takes
long. Kept in the process that predicted, for a few minutes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import TypeAlias

from nous_online.core.deadline import Deadline
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import Agent

Key: TypeAlias = tuple[str, ...]
KEPT_S = 300.0
"""How long the vectors of a session are served: its next turn has begun by then."""
MOST_SESSIONS = 1_000
"""Kept at once in one process, about 2 KB for each text."""


@dataclass
class Shelf:
    """Vectors by session and by the hash of their text, the latest session last; safe to share between threads."""

    seconds: float = KEPT_S
    size: int = MOST_SESSIONS
    _kept: OrderedDict[Key, tuple[float, Mapping[bytes, Vectors]]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def put(self, key: Key, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep vectors in place of the session's last; the oldest session goes where there are too many."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = (time.monotonic() + self.seconds, vectors)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)

    def look(self, key: Key) -> Mapping[bytes, Vectors]:
        """Return what is kept of a session and not too old."""
        with self._lock:
            ends_at, vectors = self._kept.get(key, (0.0, {}))
            if vectors and ends_at <= time.monotonic():
                del self._kept[key]
                return {}
            return vectors


SHELF = Shelf()


def keep_warm(agent: Agent, session_id: str, texts: Sequence[str], vectors: Vectors) -> None:
    """Keep the vectors of texts for the next context of a session."""
    found = {digest(text): vector for text, vector in zip(texts, vectors, strict=True)}
    SHELF.put(place_of(agent, session_id), found)


def vectors_of(agent: Agent, session_id: str | None, texts: Sequence[str], deadline: Deadline) -> list[Vectors] | None:
    """Return the unit vectors of texts, embedding those alone that a prediction of the session has not left ready.

    None where that takes an embedder that fails.
    """
    found = {} if session_id is None else dict(SHELF.look(place_of(agent, session_id)))
    wanting = [text for text in texts if digest(text) not in found]
    if wanting:
        vectors = agent.embed_if_able(wanting, deadline)
        if vectors is None:
            return None
        found |= {digest(text): vector for text, vector in zip(wanting, vectors, strict=True)}
    return [found[digest(text)] for text in texts]


def place_of(agent: Agent, session_id: str) -> Key:
    """Return where a session's vectors are kept: one of one space means nothing in another."""
    return (agent.database.url, agent.id, agent.embedder.space.id, session_id)


def digest(text: str) -> bytes:
    """Return the hash of a text, which is not kept itself."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
