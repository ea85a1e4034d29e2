"""What a prediction leaves ready for the context that is assembled next: ids and vectors, never a text.

Kept in the process that predicted, for a few minutes. What a memory says and whether it is still there is read anew.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from nous_online.agent import Agent
from nous_online.embedding import Vectors
from nous_online.prediction.answer import Predicted
from nous_online.signals import Signals

KEPT_S = 300.0
"""How long a session's prediction is served: what it starts from is rarely older when the next turn begins."""
MOST_SESSIONS = 1_000
"""Kept at once in one process, about 2 KB of vector and 10 KB of prediction each."""

MOST_CHARACTERS = 500
"""Of one error that is searched by: its last lines say what went wrong."""


@dataclass(frozen=True)
class Foreseen:
    """What was asked and found: served again for the same signals and the same reader alone."""

    signals: Signals
    user_id: str | None
    project_id: str | None
    memories: tuple[Predicted, ...]
    vector: Vectors | None
    """Of `words_of(signals)`, in the space of the agent's embedder; None where there were no words, or no embedder."""


@dataclass
class Shelf:
    """Predictions by session, the latest last; safe to share between threads."""

    seconds: float = KEPT_S
    size: int = MOST_SESSIONS
    _kept: OrderedDict[tuple[str, ...], tuple[float, Foreseen]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def put(self, key: tuple[str, ...], found: Foreseen) -> None:
        """Keep one prediction in the place of the session's last; the oldest goes where there are too many."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = (time.monotonic() + self.seconds, found)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)

    def take(self, key: tuple[str, ...]) -> Foreseen | None:
        """Return what is kept and not too old; it stays."""
        with self._lock:
            ends_at, found = self._kept.get(key, (0.0, None))
            if found is not None and ends_at <= time.monotonic():
                del self._kept[key]
                return None
            return found


SHELF = Shelf()


def keep_warm(agent: Agent, session_id: str, found: Foreseen) -> None:
    """Keep a prediction for the context of the same session."""
    SHELF.put(place_of(agent, session_id), found)


def warmed(
    agent: Agent,
    session_id: str | None,
    signals: Signals,
    *,
    user_id: str | None = None,
    project_id: str | None = None,
) -> Foreseen | None:
    """Return what `predict` left ready for this session, these signals and this reader, or None.

    Its memories may have been superseded, archived or erased since: look each up before it is shown.
    """
    if session_id is None:
        return None
    found = SHELF.take(place_of(agent, session_id))
    asked = (signals, user_id, project_id)
    return found if found is not None and (found.signals, found.user_id, found.project_id) == asked else None


def place_of(agent: Agent, session_id: str) -> tuple[str, ...]:
    """Return where a session's prediction is kept: a vector of one space means nothing in another."""
    return (agent.database.url, agent.id, agent.embedder.space.id, session_id)


def words_of(signals: Signals) -> str | None:
    """Return what was told in words, for a search by meaning: task, errors, branch and file; None for nothing told."""
    told = [signals.task, *(error[-MOST_CHARACTERS:] for error in signals.recent_errors), signals.branch]
    return "\n".join(text for text in (*told, signals.current_file) if text) or None
