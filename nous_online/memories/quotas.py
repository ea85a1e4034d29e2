"""How much one agent may keep: measured now and then, estimated in between, and refused where it is too much."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

from nous_online.core.deadline import Deadline
from nous_online.core.errors import DeadlineExceeded, QuotaExceeded
from nous_online.database.statements import statements
from nous_online.memories.agent import Agent

SQL = statements("nous_online.memories", "quotas.sql")
STANDS_S = 60.0
"""How long a measurement stands: other processes store for the same agent."""
WORTH = 100.0
"""So many times as long as it took a measurement stands at least: a large agent takes a second."""
MEASURING_SHARE = 0.25
"""Most of a call's time that measuring may take; what was not measured by then is let pass."""
MOST_KEPT = 10_000


@dataclass(frozen=True)
class Holding:
    """What an agent holds, measured and with what was stored since; and until when that stands."""

    memories: int
    bytes: int
    stands_until: float


KEPT: dict[tuple[str, str], Holding] = {}
LOCK = threading.Lock()


def check_quota(agent: Agent, deadline: Deadline, *, count: int, size: int) -> None:
    """Raise `QuotaExceeded` where so many more memories, or bytes, are more than the policy lets an agent keep.

    Whatever is not new in the end counts as if it were until the next measurement; before it refuses, it measures.
    """
    key = (agent.database.url, agent.id)
    held = KEPT.get(key)
    if held is None or time.monotonic() > held.stands_until or is_over(agent, held, count, size):
        held = measured(agent, deadline)
    if held is None:
        return
    if is_over(agent, held, count, size):
        raise QuotaExceeded(
            f"agent {agent.id!r} holds {held.memories:,} memories of {held.bytes:,} bytes, and its policy lets it keep "
            f"{agent.policy.most_memories:,} of {agent.policy.most_bytes:,}: purge old texts (`nous purge`), erase "
            "what is not needed (`nous erase --memory ID`), or raise most_memories or most_bytes; nothing was stored"
        )
    with LOCK:
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        KEPT[key] = replace(held, memories=held.memories + count, bytes=held.bytes + size)


def is_over(agent: Agent, held: Holding, count: int, size: int) -> bool:
    """Tell whether so much more is more than an agent may keep."""
    return held.memories + count > agent.policy.most_memories or held.bytes + size > agent.policy.most_bytes


def measured(agent: Agent, deadline: Deadline) -> Holding | None:
    """Return what an agent holds now; None where that takes too long."""
    began = time.monotonic()
    try:
        seconds = deadline.remaining() * MEASURING_SHARE
        with agent.database.transaction(agent.id, timeout_s=seconds) as connection:
            row = connection.execute(SQL["measure_agent"], {"agent_id": agent.id}).fetchone()
    except DeadlineExceeded:
        deadline.remaining()
        return None
    memories, size = row or (0, 0)
    now = time.monotonic()
    return Holding(int(memories), int(size), now + max(STANDS_S, WORTH * (now - began)))


def size_of(*texts: str | None) -> int:
    """Return the bytes of texts."""
    return sum(len(text.encode()) for text in texts if text)
