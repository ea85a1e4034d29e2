"""Telling of episodes: embed first, then write in one short transaction, and once only for each idempotency key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.domain import Episode
from nous_online.core.errors import Conflict
from nous_online.core.kinds import EPISODE
from nous_online.database.changes import get_memory
from nous_online.language.minilm import Vectors
from nous_online.memories import episodes, store
from nous_online.memories.agent import Agent
from nous_online.memories.episode_changes import Beginning, EpisodeChange, changed_values, checked_end
from nous_online.memories.episodes import text_to_embed
from nous_online.memories.quotas import check_quota, size_of
from nous_online.memories.store import KeyedRequest


@dataclass(frozen=True)
class RetryKey:
    """What makes a retry recognisable: the verb, its idempotency key if it has one, and everything that was told."""

    verb: str
    key: str | None
    told: dict[str, Any]

    @property
    def content_hash(self) -> str:
        """The SHA-256 of the verb and of everything that was told."""
        return hashlib.sha256(json.dumps([self.verb, self.told], default=str, sort_keys=True).encode()).hexdigest()

    def answered(self, agent: Agent, deadline: Deadline) -> Episode | None:
        """Return the episode an earlier call with this key led to; raise `Conflict` if that one told otherwise."""
        if self.key is None:
            return None
        with agent.transaction(deadline) as connection:
            return self.earlier(connection, agent.id, self.key)

    def once(self, connection: Connection, agent: Agent, act: Callable[[], Episode]) -> Episode:
        """Act, or return the episode the first call with this key led to; raise `Conflict` if it told otherwise."""
        if self.key is None:
            return act()
        store.lock_agent(connection, agent.id)
        episode = self.earlier(connection, agent.id, self.key)
        if episode is None:
            episode = act()
            request = KeyedRequest(self.key, self.content_hash, episode.id, "stored")
            store.store_request(connection, agent.id, self.verb, request)
        return episode

    def earlier(self, connection: Connection, agent_id: str, key: str) -> Episode | None:
        """Return the episode a key led to before, as it is now; raise `Conflict` if it was used for anything else."""
        request = store.find_requests(connection, agent_id, [key]).get(key)
        if request is None:
            return None
        if request.content_hash != self.content_hash:
            raise Conflict(f"idempotency key {key!r} was used for another content; use a new key for it")
        return get_memory(connection, agent_id, EPISODE, request.memory_id)


def told_of(beginning: Beginning, change: EpisodeChange, *, is_dated: bool) -> dict[str, Any]:
    """Return what was told of a new episode; when it began only counts if that was told, not if it is this moment."""
    told = {**asdict(beginning), **asdict(change)}
    return {name: told[name] for name in told if name != "idempotency_key" and (is_dated or name != "started_at")}


def start(agent: Agent, beginning: Beginning, change: EpisodeChange, deadline: Deadline) -> Episode:
    """Store an open episode; it gets its vector when it ends."""
    check_quota(agent, deadline, count=1, size=size_of(change.append))
    call = RetryKey("start_episode", beginning.idempotency_key, told_of(beginning, change, is_dated=False))
    with agent.transaction(deadline) as connection:
        return call.once(connection, agent, lambda: episodes.begin(connection, agent.id, beginning, change))


def record(
    agent: Agent, beginning: Beginning, change: EpisodeChange, end: datetime | None, deadline: Deadline
) -> Episode:
    """Store an episode that is over, and leave its completion to whoever works."""
    told = {**told_of(beginning, change, is_dated=end is not None), "ended_at": end}
    call = RetryKey("record_episode", beginning.idempotency_key, told)
    if (known := call.answered(agent, deadline)) is not None:
        return known
    check_quota(agent, deadline, count=1, size=size_of(change.append))
    ended_at = checked_end(end, started_at=beginning.started_at, now=datetime.now(UTC))
    vector = vector_of(agent, None, change, deadline)
    with agent.space_transaction(deadline) as connection:
        episode = call.once(
            connection,
            agent,
            lambda: episodes.record(connection, agent, beginning, change, end=ended_at, vector=vector),
        )
    agent.awake.set()
    return episode


def update(agent: Agent, episode_id: UUID, change: EpisodeChange, key: str | None, deadline: Deadline) -> Episode:
    """Add to an episode; one that is over is embedded anew when its title or summary changes."""
    call = RetryKey("update_episode", key, {**asdict(change), "episode_id": episode_id})
    if (answered := call.answered(agent, deadline)) is not None:
        return answered
    check_may_change(agent, episode_id, deadline)
    check_quota(agent, deadline, count=0, size=size_of(change.append))
    vector = None
    if change.title or change.summary:
        known = episodes.get_episode(agent, episode_id, deadline)
        vector = None if known.state == "open" else vector_of(agent, known, change, deadline)
    at = datetime.now(UTC)
    with agent.space_transaction(deadline) as connection:
        return call.once(
            connection, agent, lambda: episodes.amend(connection, agent, episode_id, change, at=at, vector=vector)
        )


def check_may_change(agent: Agent, episode_id: UUID, deadline: Deadline) -> None:
    """Raise `Forbidden` for an episode trusted more than the caller: what is drawn from it is trusted as it is."""
    if not agent.rights.is_operator:
        agent.rights.check_may_change(episodes.get_episode(agent, episode_id, deadline))


def close(
    agent: Agent, episode_id: UUID, change: EpisodeChange, end: datetime | str | None, deadline: Deadline
) -> Episode:
    """Close an episode, and leave its completion to whoever works; closing it again returns it as it is.

    Raises `Conflict` when it was closed with another outcome.
    """
    known = episodes.get_episode(agent, episode_id, deadline)
    if known.state != "open":
        if change.outcome not in {None, known.outcome}:
            message = f"episode {episode_id} was closed as {known.outcome!r}; update_episode(outcome=…) changes that"
            raise Conflict(message)
        return known
    agent.rights.check_may_change(known)
    ended_at = checked_end(end, started_at=known.started_at, now=datetime.now(UTC))
    vector = vector_of(agent, known, change, deadline)
    with agent.space_transaction(deadline) as connection:
        closed = episodes.close(connection, agent, episode_id, change, ended_at=ended_at, vector=vector)
    agent.awake.set()
    return closed


def vector_of(agent: Agent, known: Episode | None, change: EpisodeChange, deadline: Deadline) -> Vectors | None:
    """Return the vector of an episode as a change would leave it; None while there is nothing to embed."""
    after = changed_values(change, known)
    title, summary, detail = (after.get(name, getattr(known, name, None)) for name in ("title", "summary", "detail"))
    text = text_to_embed(title, summary, detail)
    return agent.embed([text], deadline)[0] if text else None
