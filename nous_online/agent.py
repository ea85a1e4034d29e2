"""One agent: who it is, where its memories live, and what embeds and judges for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, RLock
from typing import TYPE_CHECKING

from psycopg import Connection

from nous_online.database import Database
from nous_online.deadline import Deadline, within
from nous_online.embedding import Embedder, Vectors, checked_vectors
from nous_online.errors import InvalidInput, NousError, Unavailable
from nous_online.pairs.judging import Judge, Judgement, Pair
from nous_online.policy import LearnPolicy
from nous_online.store import register_agent

if TYPE_CHECKING:
    from nous_online.outbox import Subscription
    from nous_online.writing.writer import Writer

logger = logging.getLogger(__name__)


class Bell(Event):
    """Rung by verbs that leave work behind; `on_ring` is called each time, to start whoever does the work."""

    def __init__(self) -> None:
        super().__init__()
        self.on_ring: Callable[[], None] | None = None

    def set(self) -> None:
        """Ring: wake who waits."""
        super().set()
        if self.on_ring is not None:
            self.on_ring()


@dataclass(frozen=True)
class Agent:
    """Everything a verb needs besides its arguments."""

    id: str
    database: Database
    embedder: Embedder
    judge: Judge
    writer: Writer
    policy: LearnPolicy
    deadline_s: float
    at_work: RLock = field(default_factory=RLock, compare=False)
    """Held by the thread of this process that completes episodes and delivers events: the others wait for it."""
    awake: Bell = field(default_factory=Bell, compare=False)
    """Set by verbs that leave work behind: a closed episode, an event to deliver."""
    subscriptions: list[Subscription] = field(default_factory=list, compare=False)
    """Who in this process hears of events."""

    def deadline(self, seconds: float | None) -> Deadline:
        """Start the clock of one call."""
        return Deadline(self.deadline_s if seconds is None else seconds)

    @contextmanager
    def transaction(self, deadline: Deadline) -> Generator[Connection]:
        """Yield a connection that sees this agent only."""
        with self.database.transaction(self.id, timeout_s=deadline.remaining()) as connection:
            yield connection

    def embed(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        """Return unit vectors of `texts`, or raise `Unavailable` when the embedder fails."""
        shape = (len(texts), self.embedder.space.dimensions)
        try:
            vectors = within(deadline.remaining(), lambda: self.embedder.embed_documents(texts), name="embedder")
        except NousError:
            raise
        except Exception as error:  # an embedder may be anybody's code
            raise Unavailable(f"the embedder failed: {error!r}; nothing was stored, mend it and try again") from error
        return checked_vectors(vectors, shape=shape)

    def ask(self, pairs: Sequence[Pair], deadline: Deadline) -> list[Judgement] | None:
        """Return a judgement for each pair, or None from a judge that failed or took half of the time that is left."""
        try:
            answer = within(deadline.remaining() / 2, lambda: self.judge.judge(pairs), name="judge")
            return checked_judgements(answer, count=len(pairs))
        except Exception as error:  # a judge may be anybody's code, and none may lose a memory
            logger.warning("the judge failed, so %d pairs are left to the night: %s", len(pairs), error)
            return None


def checked_judgements(answer: Sequence[object], *, count: int) -> list[Judgement]:
    """Return what a judge answered if that is a judgement for each of `count` pairs; raise `ValueError` otherwise."""
    judgements = [each for each in answer if isinstance(each, Judgement)]
    if not len(answer) == len(judgements) == count:
        raise ValueError(f"{len(judgements)} of {len(answer)} answers are judgements, for {count} pairs")
    return judgements


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
