"""Telling of episodes: embed first, then write in one short transaction, and once only for each idempotency key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from psycopg import Connection

from nous_online import episodes, store
from nous_online.agent import Agent
from nous_online.changes import get_memory
from nous_online.deadline import Deadline
from nous_online.domain import Episode
from nous_online.embedding import Vectors
from nous_online.episode_changes import Beginning, EpisodeChange, changed_values, checked_end
from nous_online.episodes import hash_of, text_to_embed
from nous_online.errors import Conflict
from nous_online.kinds import EPISODE
from nous_online.store import Request


@dataclass(frozen=True)
class Call:
    """What makes a retry recognisable: the verb, its idempotency key if it has one, and a hash of what was told."""

    verb: str
    key: str | None
    content_hash: str

    def once(self, connection: Connection, agent: Agent, act: Callable[[], Episode]) -> Episode:
        """Act, or return the episode the first call with this key led to; raise `Conflict` if it told otherwise."""
        if self.key is None:
            return act()
        store.lock_agent(connection, agent.id)
        earlier = store.find_requests(connection, agent.id, [self.key]).get(self.key)
        if earlier is None:
            episode = act()
            request = Request(self.key, self.content_hash, episode.id, "stored")
            store.store_request(connection, agent.id, self.verb, request)
            return episode
        if earlier.content_hash != self.content_hash:
            raise Conflict(f"idempotency key {self.key!r} was used for another content; use a new key for it")
        return get_memory(connection, agent.id, EPISODE, earlier.memory_id)


def start(agent: Agent, beginning: Beginning, change: EpisodeChange, deadline: Deadline) -> Episode:
    """Store an open episode; it gets its vector when it ends."""
    call = Call("start_episode", beginning.idempotency_key, hash_of(change.title, None))
    with agent.transaction(deadline) as connection:
        return call.once(connection, agent, lambda: episodes.begin(connection, agent.id, beginning, change))


def record(
    agent: Agent, beginning: Beginning, change: EpisodeChange, end: datetime | None, deadline: Deadline
) -> Episode:
    """Store an episode that is over, and leave its completion to whoever works."""
    ended_at = checked_end(end, started_at=beginning.started_at, now=datetime.now(UTC))
    vector = vector_of(agent, None, change, deadline)
    call = Call("record_episode", beginning.idempotency_key, hash_of(change.title, change.append))
    with agent.transaction(deadline) as connection:
        episode = call.once(
            connection,
            agent,
            lambda: episodes.record(connection, agent, beginning, change, end=ended_at, vector=vector),
        )
    agent.awake.set()
    return episode


def update(agent: Agent, episode_id: UUID, change: EpisodeChange, key: str | None, deadline: Deadline) -> Episode:
    """Add to an episode; one that is over is embedded anew when its title or summary changes."""
    vector = None
    if change.title or change.summary:
        known = episodes.get_episode(agent, episode_id, deadline)
        vector = None if known.state == "open" else vector_of(agent, known, change, deadline)
    call = Call("update_episode", key, hash_of(change.title, change.append))
    at = datetime.now(UTC)
    with agent.transaction(deadline) as connection:
        return call.once(
            connection, agent, lambda: episodes.amend(connection, agent, episode_id, change, at=at, vector=vector)
        )


def close(
    agent: Agent, episode_id: UUID, change: EpisodeChange, end: datetime | str | None, deadline: Deadline
) -> Episode:
    """Close an episode, and leave its completion to whoever works; closing it again returns it as it is."""
    known = episodes.get_episode(agent, episode_id, deadline)
    if known.state != "open":
        return known
    ended_at = checked_end(end, started_at=known.started_at, now=datetime.now(UTC))
    vector = vector_of(agent, known, change, deadline)
    with agent.transaction(deadline) as connection:
        closed = episodes.close(connection, agent, episode_id, change, ended_at=ended_at, vector=vector)
    agent.awake.set()
    return closed


def vector_of(agent: Agent, known: Episode | None, change: EpisodeChange, deadline: Deadline) -> Vectors | None:
    """Return the vector of an episode as a change would leave it; None while there is nothing to embed."""
    after = changed_values(change, known)
    title, summary, detail = (after.get(name, getattr(known, name, None)) for name in ("title", "summary", "detail"))
    text = text_to_embed(title, summary, detail)
    return agent.embed([text], deadline)[0] if text else None
