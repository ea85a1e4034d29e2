"""What was erased here before, told by the hashes that erasing leaves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from psycopg import Connection

from nous_online.core.domain import Episode, NewFact
from nous_online.database.statements import statements
from nous_online.memories.episodes import NewEpisode
from nous_online.memories.store import imported_id

BLOCKS = statements("nous_online.memories", "tombstones.sql")
EVER = datetime.min.replace(tzinfo=UTC)


def erased_at(
    connection: Connection, agent_id: str, memories: Sequence[NewFact | NewEpisode | Episode]
) -> list[datetime | None]:
    """Return when each of some memories was erased here, None for one that was not.

    One counts as erased whose words or whose id were, or whose user's everything was erased after it was said. What
    went with a whole agent does not count: that agent begins again.
    """
    signs = [signs_of(agent_id, memory) for memory in memories]
    found = find_erased(connection, agent_id, [sign for each in signs for sign in each])
    return [
        max((found[sign] for sign, until in each.items() if sign in found and until < found[sign]), default=None)
        for each in signs
    ]


def key_erased_at(connection: Connection, agent_id: str, key: str) -> datetime | None:
    """Return when the memory was erased that was imported under an idempotency key; None where it was not."""
    return next(iter(find_erased(connection, agent_id, [f"id\n{imported_id(agent_id, key)}"]).values()), None)


def find_erased(connection: Connection, agent_id: str, signs: Sequence[str]) -> dict[str, datetime]:
    """Return when those of some signs of memories were erased that were."""
    return dict(connection.execute(BLOCKS["erased"], {"agent_id": agent_id, "signs": list(set(signs))}).fetchall())


def signs_of(agent_id: str, memory: NewFact | NewEpisode | Episode) -> dict[str, datetime]:
    """Return by what a memory is recognised, and from which moment on an erasing is about it."""
    if isinstance(memory, NewFact):
        text, said_at = f"fact\n{memory.content}", memory.learned_at
    else:
        text, said_at = f"episode\n{memory.detail}", memory.ended_at or EVER
    own_id = memory.id if isinstance(memory, Episode) else imported_id(agent_id, memory.idempotency_key or "")
    signs = {text: EVER, f"id\n{own_id}": EVER}
    return signs | ({f"user\n{memory.user_id}": said_at} if memory.user_id else {})
