"""How much an agent remembers, its quota, and the work and decisions that are still open."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.errors import DeadlineExceeded, NotFound, NousError, QuotaExceeded
from nous_online.core.settings import Settings
from nous_online.database.connection import as_night
from nous_online.database.statements import fetch, statements
from nous_online.memories.agent import Agent
from nous_online.memories.contradictions import BLOCKS as CONTRADICTIONS
from nous_online.memories.contradictions import REACH

SQL = statements("nous_online.memories", "status.sql")
STANDS_S = 60.0
"""Seconds a measurement is valid: other processes store memories of the same agent, which are not counted here."""
WORTH = 100.0
"""A measurement is valid for at least so many times as long as it took: that of a large agent takes a second."""
MEASURING_SHARE = 0.25
"""Share of a call's time that measuring may take; a call whose agent can't be measured in it is allowed."""
MOST_KEPT = 10_000  # agents


MISSED = "run `nous night --backfill`, and `nous service install` for every night to come"


@dataclass(frozen=True)
class WaitingWork:
    """Work for the worker: closed episodes, how many of them failed so far, and undelivered events by consumer."""

    episodes: int
    failed_episodes: int
    last_error: str | None
    events: Mapping[str, int]
    set_aside: int = 0
    """Closed episodes that failed too often and are tried no more, until `retry_episode` queues them again."""
    set_aside_ids: tuple[UUID, ...] = ()
    """The latest ten of them."""


@dataclass(frozen=True)
class Nights:
    """Which night an agent was last in, and which have been missed: nights that are over and had changes."""

    last: date | None
    """None where there was none yet."""
    missed_from: date | None = None
    """The first night that was missed, not before the store had what waits; None where none was."""
    missed_changes: int = 0
    """How many changes of memories, all of days that are over, wait for a night."""


@dataclass(frozen=True)
class OpenQuestions:
    """How many things wait for a person's decision."""

    contradictions: int = 0
    doubts: int = 0
    """Pairs of active facts of which the later perhaps replaces the earlier, as `doubts()` lists them."""
    quarantined: int = 0
    """Facts of sources that are not believed."""
    procedures: int = 0
    """Those that failed more often than they worked."""


QUESTIONS = {
    "contradictions": (
        "contradiction is open",
        "contradictions are open",
        "`nous contradictions` and `nous resolve`, or the inbox of `nous console`",
    ),
    "doubts": (
        "pair of facts, of which one perhaps replaces the other",
        "pairs of facts, of which one perhaps replaces the other",
        "`nous contradictions` and `nous resolve`, or the inbox of `nous console`",
    ),
    "quarantined": (
        "fact is quarantined",
        "facts are quarantined",
        "`nous console` lists the state quarantined; forget or restore each",
    ),
    "procedures": (
        "procedure failed more often than it worked",
        "procedures failed more often than they worked",
        "`nous console` lists the state review",
    ),
}
"""The words for one and for several questions of each sort, and where a person decides them."""


def question(name: str, count: int) -> str:
    """Return a sentence with the number of open questions of one sort, and where a person decides them."""
    one, many, how = QUESTIONS[name]
    return f"{count:,} {one if count == 1 else many}: {how}"


@dataclass(frozen=True)
class Status:
    """The memories of one agent by kind and state and by project, its recalls, open work and open questions."""

    agent: str
    memories: Mapping[str, Mapping[str, int]]
    projects: Mapping[str, int]
    """How many memories belong to each project, the largest first."""
    recalls: int
    waiting: WaitingWork
    nights: Nights
    questions: OpenQuestions
    needs: tuple[str, ...]
    """What a person has to do, a sentence each, with the command for it."""


def status_of(connection: Connection, agent_id: str) -> Status:
    """Return the status of an agent; an unknown one has no memories."""
    key = {"agent_id": agent_id}
    rows = connection.execute(SQL["count_memories"], key).fetchall()
    projects = dict(connection.execute(SQL["count_projects"], key).fetchall())
    (recalls,) = connection.execute(SQL["count_recalls"], key).fetchone() or (0,)
    kinds = sorted({kind for kind, _, _ in rows})
    memories = {kind: {state: count for of, state, count in rows if of == kind} for kind in kinds}
    episodes, failed, last_error = connection.execute(SQL["count_completions"], key).fetchone() or (0, 0, None)
    aside, aside_ids = connection.execute(SQL["count_set_aside"], key).fetchone() or (0, [])
    events = dict(connection.execute(SQL["count_events"], key).fetchall())
    undelivered = {consumer: count for consumer, count in events.items() if count}
    waiting = WaitingWork(episodes, failed, last_error, undelivered, aside, tuple(aside_ids))
    found = connection.execute(SQL["find_nights"], {**key, "over": last_night_end()}).fetchone()
    last, first_change, changes = found or (None, None, 0)
    nights = Nights(last, first_change.astimezone(UTC).date() if first_change else None, changes)
    is_question = CONTRADICTIONS["is_question"]
    (questions,) = fetch(connection, OpenQuestions, SQL["count_questions"], key, is_question=is_question)
    failing = connection.execute(SQL["failing_consumers"], key).fetchall()
    needs = [*needs_of(questions, waiting, nights), *(f"{who} failed {n} times: {error}" for who, n, error in failing)]
    return Status(agent_id, memories, projects, recalls, waiting, nights, questions, tuple(needs))


def knows_project(connection: Connection, agent_id: str, project_id: str) -> bool:
    """Return whether an agent has memories of a project, in any state."""
    row = connection.execute(SQL["knows_project"], {"agent_id": agent_id, "project_id": project_id}).fetchone()
    return row == (True,)


@dataclass(frozen=True)
class OutOfReach:
    """Memories of a project, a user, or both."""

    project_id: str | None
    user_id: str | None
    count: int

    def __str__(self) -> str:
        project = f" in project {self.project_id}" if self.project_id else ""
        return f"{self.count:,}{project}{f' of user {self.user_id}' if self.user_id else ''}"


def out_of_reach(connection: Connection, agent_id: str, *, user_id: str | None, project_id: str | None) -> str:
    """Return in words what a question does not look among, since other users or projects own it; empty for nothing."""
    key = {"agent_id": agent_id, "user_id": user_id, "project_id": project_id}
    found = fetch(connection, OutOfReach, SQL["out_of_reach"], key, in_reach=REACH["in_reach"])
    others = sum(each.count for each in found[MOST_NEAR:])
    return ", ".join([*map(str, found[:MOST_NEAR]), *([f"{others:,} elsewhere"] if others else [])])


def needs_of(questions: OpenQuestions, waiting: WaitingWork, nights: Nights) -> Iterator[str]:
    """Yield what a person has to do, with the command for it."""
    yield from (question(name, count) for name, count in vars(questions).items() if count)
    if waiting.set_aside:
        ids = " ".join(map(str, waiting.set_aside_ids))
        yield f"{waiting.set_aside:,} closed episodes that failed too often: {ids}; `nous retry` tries one again"
    if nights.missed_changes:
        yield f"{waiting_in_words(nights)}: {MISSED}"


def waiting_in_words(nights: Nights) -> str:
    """Return what waits for a night, and since when."""
    changes = f"(changes that wait: {nights.missed_changes:,})"
    since = f" since {nights.missed_from}" if nights.missed_from else ""
    if nights.last is None:
        return f"no night has run yet, and what you told Nous waits for the first one{since} {changes}"
    if since:
        return f"nights have been missed{since} {changes}"
    return f"what came today about earlier days waits for a night {changes}"


def nights_of_all(connection: Connection) -> str:
    """Return in words which night was the last, and how many agents have changes that no night has seen yet."""
    (last,) = connection.execute(SQL["last_night"]).fetchone() or (None,)
    waiting, missed = connection.execute(SQL["agents_waiting"], {"over": last_night_end()}).fetchone() or (0, 0)
    state = f"the last was {last}" if last else "none yet"
    if not waiting:
        return state
    if last is None:
        what = f"memories wait for the first (agents: {waiting:,})"
    elif missed:
        what = f"nights were missed (agents that wait for one: {waiting:,})"
    else:
        what = f"what came today about earlier days waits for a night (agents: {waiting:,})"
    return f"{state}; warning: {what}: {MISSED}"


def last_night_end() -> datetime:
    """Return when the latest complete night ended: the last midnight UTC."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


# --- the quota of an agent: measured from time to time, estimated in between ---


@dataclass(frozen=True)
class Holding:
    """The memories and bytes of an agent: a measurement plus what was stored since, and until when it is valid."""

    memories: int
    bytes: int
    stands_until: float


KEPT: dict[tuple[str, str], Holding] = {}
LOCK = threading.Lock()


def check_quota(agent: Agent, deadline: Deadline, *, count: int, size: int) -> None:
    """Raise `QuotaExceeded` where `count` more memories of `size` bytes exceed the agent's policy."""
    # Between measurements the count is an upper bound: a fact that only confirms another is counted too. So a refusal
    # is always based on a fresh measurement.
    key = (agent.database.url, agent.id)
    held = KEPT.get(key)
    if held is None or time.monotonic() > held.stands_until or exceeds_quota(agent, held, count, size):
        held = measure(agent, deadline)
    if held is None:
        return
    if exceeds_quota(agent, held, count, size):
        raise QuotaExceeded(
            f"agent {agent.id!r} holds {held.memories:,} memories of {held.bytes:,} bytes, and its policy lets it keep "
            f"{agent.policy.most_memories:,} of {agent.policy.most_bytes:,}: purge old texts (`nous purge`), erase "
            "what is not needed (`nous erase --memory ID`), or raise most_memories or most_bytes; nothing was stored"
        )
    with LOCK:
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        KEPT[key] = replace(held, memories=held.memories + count, bytes=held.bytes + size)


def exceeds_quota(agent: Agent, held: Holding, count: int, size: int) -> bool:
    return held.memories + count > agent.policy.most_memories or held.bytes + size > agent.policy.most_bytes


def measure(agent: Agent, deadline: Deadline) -> Holding | None:
    """Return the number and bytes of an agent's memories now; None where that takes too long."""
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
    return sum(len(text.encode()) for text in texts if text)


# --- agents that nobody began: who reads is told of the nearest names, and nothing is created ---

UNNAMED = str(Settings.model_fields["agent"].default)
"""The agent of whoever names none: it may be read before it knows anything, since its name is no mistake."""
MOST_NEAR, CONNECT_S = 3, 3.0


def unknown_agent(url: str, agent_id: str) -> NotFound:
    """Return the error for an agent that is not known: its name, the nearest known ones, and how an agent begins."""
    known = known_agents(url)
    near = get_close_matches(agent_id, known, n=MOST_NEAR, cutoff=0.5) or known[:MOST_NEAR]
    others = len(known) - len(near)
    more = f" and {others:,} more (`nous agents` lists them)" if others else ""
    names = f"; known are: {', '.join(near)}{more}" if near else ""
    begins = f'nous learn "…" --agent {agent_id}, or nous import FILE --agent {agent_id}'
    return NotFound(f"agent {agent_id!r} is not known here{names}. One begins with the first thing it learns: {begins}")


def check_known(url: str, agent_id: str) -> None:
    """Raise `NotFound` for an agent that is not known, where all agents can be listed."""
    known = known_agents(url)
    if known and agent_id not in {UNNAMED, *known}:
        raise unknown_agent(url, agent_id)


def known_agents(url: str) -> list[str]:
    """Return all agents by name; none where they can't be listed."""
    try:
        # The role of calls sees one agent only; that of nights sees all.
        with as_night(url, seconds=CONNECT_S) as connection:
            return [row[0] for row in connection.execute(SQL["known_agents"])]
    except NousError:
        return []
