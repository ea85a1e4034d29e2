"""Contradictions between facts learned since the last look: found within a minute, kept open until somebody decides.

Nothing is superseded here: an update whose order is known is left to the night, which sees all of a slot at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import polars as pl
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from nous_online.core.deadline import Deadline
from nous_online.core.domain import FACT, EmbeddingSpace, Fact
from nous_online.core.errors import NousError, Stale, Unavailable
from nous_online.database.changes import Cause, lock_memories
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.pairs.judging import SURE_FROM, Judge, Verdict
from nous_online.language.pairs.wordings import other_subjects
from nous_online.memories.contradictions import open_between
from nous_online.memories.learning import nomination_bonus
from nous_online.memories.store import EXACT_LIMIT, fact_statement
from nous_online.queue.outbox import (
    Cursor,
    DeliveryProgress,
    add_cursor,
    get_cursor,
    move_cursor,
    next_events,
    read_horizon,
)
from nous_pipelines.batches.verdict_cache import verdicts_for
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.asking import KEY, NOBODY, STATEMENT_SCHEMA, VERDICTS, with_hashes
from nous_pipelines.phases.neighbours import FOUND
from nous_pipelines.phases.rulings import PAIRING

BLOCKS = statements("nous_pipelines.orchestration", "fresh_facts.sql")
CONSUMER = "fresh_facts"
"""Its place in the queue of announcements: ordered by transaction, so that none committed late is passed over."""
BATCH = 50  # facts between two moves of the place; as many are looked at again after a crash
LOOKS = 5  # at one batch, when its facts change between look and write
SCAN_S = 20.0
FINISHING_SHARE = 0.25  # of the time, in which no further batch is begun
SIDES = ("left_id", "right_id")
FRESH = SQL(BLOCKS["fresh_facts"]).format(columns=SQL(", ").join(Identifier("f", name) for name in FACT.columns))


@dataclass(frozen=True)
class Scanned:
    """What one look came to: facts looked at, pairs with a verdict, contradictions opened, and who has to wait why."""

    facts: int = 0
    pairs: int = 0
    opened: int = 0
    delayed: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each agent whose facts could not be looked at, why; they are looked at again next time."""

    def __add__(self, other: Scanned) -> Scanned:
        return Scanned(
            self.facts + other.facts,
            self.pairs + other.pairs,
            self.opened + other.opened,
            {**self.delayed, **other.delayed},
        )


@dataclass(frozen=True)
class FreshBatch:
    """A batch as it was read: where the agent's place stands and where it goes, and which facts to compare."""

    cursor: Cursor
    progress: DeliveryProgress
    facts: Mapping[str, Fact]
    spaces: Mapping[str, str]
    """The space each of the facts lives in."""
    pairs: pl.DataFrame

    @property
    def is_last(self) -> bool:
        """Whether nothing further is announced."""
        return self.progress.delivered_count < BATCH


def scan_fresh_facts(database: Database, judge: Judge, *, seconds: float = SCAN_S, only: str | None = None) -> Scanned:
    """Compare the facts learned since the last look with those near them, and open the contradictions found.

    `database` is opened as the role of the night. All agents take turns, a batch each, until nothing is left or most
    of the time is over. Each fact is looked at once: its agent's place moves in the transaction that opens the
    contradictions. An agent whose facts get no verdict now is named in `delayed` and keeps its place. Raises
    `Unavailable` when the database can't be asked.
    """
    deadline = Deadline(seconds)
    with database.transaction(timeout_s=deadline.remaining()) as connection:
        parameters = {"consumer": CONSUMER, "only": only}
        waiting = deque(connection.execute(BLOCKS["agents_to_look_at"], parameters).fetchall())
    done = Scanned()
    while waiting and time.monotonic() < deadline.began + seconds * (1 - FINISHING_SHARE):
        agent_id, own = waiting.popleft()
        try:
            policy = NightPolicy().overridden(own)
            scanned, is_last = scan_batch(database, judge, agent_id, policy=policy, deadline=deadline)
        except NousError as error:
            done += Scanned(delayed={agent_id: str(error)})
            continue
        done += scanned
        if not is_last:
            waiting.append((agent_id, own))
    return done


def scan_batch(
    database: Database, judge: Judge, agent_id: str, *, policy: NightPolicy, deadline: Deadline
) -> tuple[Scanned, bool]:
    """Look at the next facts of one agent and return what came of it, and whether they were the last.

    Verdicts are asked for outside any transaction, and kept at once. Raises `Unavailable` when the judge gives none,
    and `Stale` when the facts kept changing.
    """
    for _ in range(LOOKS):
        look = look_around(database, agent_id, policy=policy, deadline=deadline)
        if look is None:
            return Scanned(), True
        judged = with_verdicts(database, judge, look)
        try:
            opened = settle(database, agent_id, look, judged, deadline=deadline)
        except Stale:  # a fact changed in between; its words can't, so the verdicts are known by now
            continue
        return Scanned(look.progress.delivered_count, len(judged), opened), look.is_last
    raise Stale(f"the fresh facts of agent {agent_id!r} changed {LOOKS} times while they were looked at")


def look_around(database: Database, agent_id: str, *, policy: NightPolicy, deadline: Deadline) -> FreshBatch | None:
    """Read the next facts announced and those near them; None when another process has taken the place to rest."""
    with database.transaction(agent_id, timeout_s=deadline.remaining()) as connection:
        add_cursor(connection, agent_id, CONSUMER, is_from_now=False)
        cursor = get_cursor(connection, agent_id, CONSUMER, "read")
        if cursor is None:
            return None
        horizon = read_horizon(connection, cursor)
        events = next_events(connection, agent_id, cursor, horizon=horizon, names=["fact_learned"], limit=BATCH)
        wanted = [event.memory_id for event, _ in events if event.memory_id]
        found = [
            (fact, other, similarity, str(place["space_id"]))
            for fact, place in fresh_facts(connection, agent_id, wanted)
            for other, similarity in worth_asking(fact, near(connection, agent_id, fact, place, policy=policy), policy)
        ]
    is_full = len(events) == BATCH
    last_xid, last_id = (events[-1][1], events[-1][0].id) if is_full else (horizon, 0)
    facts = {str(fact.id): fact for *both, _, _ in found for fact in both}
    spaces = {str(fact.id): space for *both, _, space in found for fact in both}
    pairs = as_pairs(agent_id, [pair[:3] for pair in found])
    return FreshBatch(cursor, DeliveryProgress(last_xid, last_id, len(events)), facts, spaces, pairs)


def fresh_facts(connection: Connection, agent_id: str, fact_ids: Sequence[UUID]) -> list[tuple[Fact, dict[str, Any]]]:
    """Return those of the facts that are active, each with its vector and the space that lives in."""
    if not fact_ids:
        return []
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(FRESH, {"agent_id": agent_id, "ids": list(fact_ids)}).fetchall()
    names = ("embedding", "space_id", "model", "weights_sha256", "dimensions")
    places = [{name: row.pop(name) for name in names} for row in rows]
    return [(Fact(**row), place) for row, place in zip(rows, places, strict=True)]


def near(
    connection: Connection, agent_id: str, fact: Fact, place: Mapping[str, Any], *, policy: NightPolicy
) -> list[tuple[Fact, float]]:
    """Return the active facts nearest to one in its place, and those of its slot, with the cosine, nearest first."""
    space = EmbeddingSpace(place["space_id"], place["model"], place["weights_sha256"], place["dimensions"])
    search = fact_statement(
        "nearest_facts", space, "f", has_user=fact.user_id is not None, has_project=fact.project_id is not None
    )
    parameters = {
        **{name: getattr(fact, name) for name in ("slot", "key", "scope", "user_id", "project_id")},
        "replaces": [],
        "agent_id": agent_id,
        "embedding": place["embedding"],
        "limit": max(policy.neighbour_count, policy.ranked_count) + 1,  # it is among its own neighbours
        "exact_limit": EXACT_LIMIT,
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(search, parameters).fetchall()
    found = [(row.pop("similarity"), Fact(**row)) for row in rows]
    others = [(other, similarity) for similarity, other in found if other.id != fact.id]
    return sorted(others, key=lambda other: (-other[1], str(other[0].id)))


def worth_asking(one: Fact, around: Sequence[tuple[Fact, float]], policy: NightPolicy) -> list[tuple[Fact, float]]:
    """Return which of the facts around one, with their cosines and nearest first, may be about its thing at one time.

    Those of its slot, near ones, and of the others the likeliest, as a night looks at them.
    """

    least = around[0][1] - policy.ranked_within if around else 0.0
    leads = {other.id: similarity + nomination_bonus(one, other) for other, similarity in around}
    likely = [other.id for other, near in around if near >= policy.ranked_similarity and leads[other.id] >= least]
    likeliest = sorted(likely, key=lambda each: -leads[each])[: policy.ranked_count]
    return [
        (other, similarity)
        for other, similarity in around
        if (
            similarity >= policy.neighbour_similarity
            or (one.slot is not None and one.slot == other.slot)
            or other.id in likeliest
        )
        and not is_after(one, other)
        and not is_after(other, one)
        and not other_subjects(one.subject, other.subject)
    ]


def is_after(later: Fact, earlier: Fact) -> bool:
    """Tell whether one fact holds only from when the other has ceased to."""
    return later.valid_from is not None and earlier.valid_to is not None and later.valid_from >= earlier.valid_to


def as_pairs(agent_id: str, found: Sequence[tuple[Fact, Fact, float]]) -> pl.DataFrame:
    """Return each two facts once, the one stated earlier left (`FOUND`)."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for *both, similarity in found:
        left, right = sorted(both, key=lambda fact: (stated_at(fact), str(fact.id)))
        rows[str(left.id), str(right.id)] = {
            "agent_id": agent_id,
            "left_id": str(left.id),
            "right_id": str(right.id),
            "similarity": similarity,
            "is_across_users": False,
            "is_ordered": stated_at(left) < stated_at(right),
            "left_said_at": stated_at(left),
            "right_said_at": stated_at(right),
        }
    return pl.DataFrame(list(rows.values()), schema=FOUND)


def stated_at(fact: Fact) -> datetime:
    """Return the moment that orders statements of one slot: since when it holds, else when it was said last."""
    return fact.valid_from or max(filter(None, (fact.learned_at, fact.last_confirmed_at)))


def with_verdicts(database: Database, judge: Judge, look: FreshBatch) -> pl.DataFrame:
    """Return the pairs with a verdict each, asked for once ever; raise `Unavailable` when one can't be had now."""
    told = [
        (look.pairs["agent_id"][0], key, fact.content, fact.subject, fact.trust, look.spaces[key])
        for key, fact in look.facts.items()
    ]
    facts = pl.DataFrame(told, schema=STATEMENT_SCHEMA, orient="row")
    pairs = with_hashes(look.pairs, facts)
    asked = pairs.unique(KEY, keep="first", maintain_order=True)
    verdicts, account = verdicts_for(database, judge, asked, facts, earlier=pl.DataFrame(schema=VERDICTS))
    if account.left_open:
        (why,) = verdicts.filter(pl.col("model") == NOBODY)["reason"].unique()
        raise Unavailable(why)
    return pairs.join(verdicts, on=KEY).sort("left_id", "right_id")


def settle(database: Database, agent_id: str, look: FreshBatch, judged: pl.DataFrame, *, deadline: Deadline) -> int:
    """Open the contradictions found and move the agent's place, in one transaction; return how many were news.

    Nothing is done when another process moved the place meanwhile. Raises `Stale` when one of the facts is no longer
    as it was read.
    """
    is_certain = pl.col("is_ordered") & (pl.col("confidence") >= SURE_FROM)
    is_doubted = (pl.col("verdict") == Verdict.UPDATES.value) & ~is_certain
    rows = judged.filter((pl.col("verdict") == Verdict.CONTRADICTS.value) | is_doubted).to_dicts()
    with database.transaction(agent_id, timeout_s=deadline.remaining()) as connection:
        if get_cursor(connection, agent_id, CONSUMER, "lock") != look.cursor:
            return 0
        check_unchanged(connection, agent_id, [look.facts[row[side]] for row in rows for side in SIDES])
        apart = taken_apart(connection, agent_id, rows)
        opened = sum(
            contradict(connection, agent_id, row, look.facts)
            for row in rows
            if not any({row["left_id"], row["right_id"]} <= targets for targets in apart)
        )
        move_cursor(connection, agent_id, look.cursor, look.progress)
    return opened


def check_unchanged(connection: Connection, agent_id: str, facts: Sequence[Fact]) -> None:
    """Lock facts; raise `Stale` when one is gone or no longer at the version it was read at."""
    read = {fact.id: fact.row_version for fact in facts}
    now = {fact.id: fact.row_version for fact in lock_memories(connection, agent_id, FACT, list(read))}
    for fact_id, version in read.items():
        if now.get(fact_id) != version:
            raise Stale(f"fact {fact_id} is no longer at version {version}; read it again and decide anew")


def taken_apart(connection: Connection, agent_id: str, rows: Sequence[Mapping[str, Any]]) -> list[set[str]]:
    """Return the facts of each change that a person took back, as far as these pairs are concerned."""
    ids = sorted({row[side] for row in rows for side in SIDES})
    if not ids:
        return []
    parameters = {"agent_id": agent_id, "kinds": list(PAIRING), "ids": [UUID(each) for each in ids]}
    found = connection.execute(BLOCKS["taken_back"], parameters).fetchall()
    return [{str(target) for target in targets} for (targets,) in found]


def contradict(connection: Connection, agent_id: str, row: Mapping[str, Any], facts: Mapping[str, Fact]) -> bool:
    """Open the contradiction of one pair and mark both facts; return whether it is news."""
    one, other = (facts[row[side]] for side in SIDES)
    since = max(one.learned_at, other.learned_at)
    judgement = {name: row[name] for name in ("model", "verdict", "reason")}
    cause = Cause("agent", "contradicted", row["reason"], effective_at=since)
    return open_between(
        connection,
        agent_id,
        one,
        other,
        judgement={**judgement, "confidence": round(row["confidence"], 4)},
        cause=cause,
    )
