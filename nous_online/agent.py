"""One agent: who it is, where its memories live, and what embeds and judges for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import Connection

from nous_online.database import Database
from nous_online.deadline import Deadline
from nous_online.embedding import Embedder, Vectors, checked_vectors
from nous_online.errors import InvalidInput
from nous_online.judging import Judge
from nous_online.policy import LearnPolicy
from nous_online.store import register_agent


@dataclass(frozen=True)
class Agent:
    """Everything a verb needs besides its arguments."""

    id: str
    database: Database
    embedder: Embedder
    judge: Judge
    policy: LearnPolicy
    deadline_s: float

    def deadline(self, seconds: float | None) -> Deadline:
        """Start the clock of one call."""
        return Deadline(self.deadline_s if seconds is None else seconds)

    @contextmanager
    def transaction(self, deadline: Deadline) -> Iterator[Connection]:
        """Yield a connection that sees this agent only."""
        with self.database.transaction(self.id, timeout_s=deadline.remaining()) as connection:
            yield connection

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of `texts`, checked before anything is stored."""
        vectors = self.embedder.embed_documents(texts)
        return checked_vectors(vectors, shape=(len(texts), self.embedder.space.dimensions))


def register(agent: Agent) -> None:
    """Make the agent known; raise `InvalidInput` when its memories live in another embedding space."""
    with agent.transaction(agent.deadline(None)) as connection:
        found = register_agent(connection, agent.id, agent.embedder.space.id)
    if found != agent.embedder.space.id:
        message = (
            f"agent {agent.id!r} has its memories in embedding space {found!r}, the embedder offers "
            f"{agent.embedder.space.id!r}; open it with the embedder it was made with, or re-embed it first"
        )
        raise InvalidInput(message)
