"""Finds contradictions of facts within a minute of their learning, and opens them until a person decides.

Nothing is superseded here: updates whose order is known are left to the night, which sees all facts of a slot at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
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
from nous_online.memories.learning import are_told_together, nomination_bonus
from nous_online.memories.store import EXACT_LIMIT, nearest_statement
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
from nous_pipelines.nights import end_of
from nous_pipelines.phases.asking import KEY, NOBODY, STATEMENT_SCHEMA, VERDICTS, with_hashes
from nous_pipelines.phases.neighbours import FOUND
from nous_pipelines.phases.rulings import PAIRING
from nous_pipelines.phases.updates import CONTRADICTS_FROM, SUPERSEDES_FROM, with_share

BLOCKS = statements("nous_pipelines.orchestration", "fresh_facts.sql")
CONSUMER = "fresh_facts"
"""The name of its cursor in the outbox, whose order of transactions skips no event that is committed late."""
BATCH = 50  # facts; the cursor moves after each batch, so a crash repeats one at most
ATTEMPTS = 5  # at a batch whose facts change between reading and writing
SCAN_S = 20.0
FINISHING_SHARE = 0.25  # of the time: no batch is begun in the last quarter
SIDES = ("left_id", "right_id")
ACTIVE_FACTS = SQL(BLOCKS["active_facts"]).format(
    columns=SQL(", ").join(Identifier("f", name) for name in FACT.columns)
)


@dataclass(frozen=True)
class Scanned:
    """The outcome of a scan: numbers of facts compared, pairs judged and contradictions opened, and agents delayed."""

    facts: int = 0
    pairs: int = 0
    opened: int = 0
    delayed: Mapping[str, str] = field(default_factory=dict[str, str])
    """The agents whose facts could not be compared, each with the reason; the next scan tries again."""

    def __add__(self, other: Scanned) -> Scanned:
        return Scanned(
            self.facts + other.facts,
            self.pairs + other.pairs,
            self.opened + other.opened,
            {**self.delayed, **other.delayed},
        )


@dataclass(frozen=True)
class FreshBatch:
    """A batch as it was read: the agent's cursor, how far to move it, and the pairs of facts to judge (`FOUND`)."""

    cursor: Cursor
    progress: DeliveryProgress
    facts: Mapping[str, Fact]
    spaces: Mapping[str, str]
    """The embedding space of each fact."""
    pairs: pl.DataFrame

    @property
    def is_last(self) -> bool:
        """Whether no event follows."""
        return self.progress.delivered_count < BATCH


def scan_fresh_facts(database: Database, judge: Judge, *, seconds: float = SCAN_S) -> Scanned:
    """Compare the facts learned since the last scan with those near them, and open the contradictions found.

    `database` must be opened as the role of nights. Agents take turns, a batch each, until no fact or little time is
    left. Each fact is compared once: the cursor of its agent moves in the transaction that opens the contradictions. An
    agent whose facts get no verdict now is named in `delayed` and keeps its cursor. Raises `Unavailable` when the
    database can't be reached.
    """
    deadline = Deadline(seconds)
    with database.transaction(timeout_s=deadline.remaining()) as connection:
        waiting = deque(connection.execute(BLOCKS["agents_to_scan"], {"consumer": CONSUMER}).fetchall())
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
    """Compare the next facts of one agent; return the outcome, and whether they were the last.

    Verdicts are asked for outside any transaction, and stored at once. Raises `Unavailable` when the judge gives none,
    and `Stale` when the facts kept changing.
    """
    for _ in range(ATTEMPTS):
        batch = read_batch(database, agent_id, policy=policy, deadline=deadline)
        if batch is None:
            return Scanned(), True
        judged = judge_batch(database, judge, batch)
        try:
            opened = open_contradictions(database, agent_id, batch, judged, deadline=deadline)
        except Stale:  # a fact changed in between; its content can't, so the next attempt finds the verdicts stored
            continue
        return Scanned(batch.progress.delivered_count, len(judged), opened), batch.is_last
    raise Stale(f"the fresh facts of agent {agent_id!r} changed {ATTEMPTS} times while they were compared")


def read_batch(database: Database, agent_id: str, *, policy: NightPolicy, deadline: Deadline) -> FreshBatch | None:
    """Return the next facts that were announced with those near them; None when another process removed the cursor."""
    with database.transaction(agent_id, timeout_s=deadline.remaining()) as connection:
        add_cursor(connection, agent_id, CONSUMER, is_from_now=False)
        cursor = get_cursor(connection, agent_id, CONSUMER, "read")
        if cursor is None:
            return None
        horizon = read_horizon(connection, cursor)
        events = next_events(connection, agent_id, cursor, horizon=horizon, names=["fact_learned"], limit=BATCH)
        learned = {event.memory_id: event.created_at for event, _ in events if event.memory_id}
        weighed = connection.execute(BLOCKS["last_night"], {"agent_id": agent_id}).fetchone()
        candidates = [
            (fact, other, similarity, str(place["space_id"]))
            for fact, place in active_facts(connection, agent_id, list(learned))
            if not was_weighed(fact, learned[fact.id], weighed)
            for other, similarity in candidates_of(
                fact, nearest_facts(connection, agent_id, fact, place, policy=policy), policy
            )
        ]
    # A full batch ends at its last event; after a smaller one all events up to the horizon have been read.
    is_full = len(events) == BATCH
    last_xid, last_id = (events[-1][1], events[-1][0].id) if is_full else (horizon, 0)
    facts = {str(fact.id): fact for *both, _, _ in candidates for fact in both}
    spaces = {str(fact.id): space for *both, _, space in candidates for fact in both}
    pairs = as_pairs(agent_id, [candidate[:3] for candidate in candidates])
    return FreshBatch(cursor, DeliveryProgress(last_xid, last_id, len(events)), facts, spaces, pairs)


def was_weighed(fact: Fact, stored_at: datetime, night: tuple[date, datetime] | None) -> bool:
    """Tell whether the agent's last night saw a fact: what it left alone, knowing all facts, is not opened after it."""
    return night is not None and stored_at < night[1] and fact.learned_at < end_of(night[0])


def active_facts(connection: Connection, agent_id: str, fact_ids: Sequence[UUID]) -> list[tuple[Fact, dict[str, Any]]]:
    """Return those of the facts that are active, each with its vector and its embedding space."""
    if not fact_ids:
        return []
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(ACTIVE_FACTS, {"agent_id": agent_id, "ids": list(fact_ids)}).fetchall()
    names = ("embedding", "space_id", "model", "weights_sha256", "dimensions")
    places = [{name: row.pop(name) for name in names} for row in rows]
    return [(Fact(**row), place) for row, place in zip(rows, places, strict=True)]


def nearest_facts(
    connection: Connection, agent_id: str, fact: Fact, place: Mapping[str, Any], *, policy: NightPolicy
) -> list[tuple[Fact, float]]:
    """Return the active facts nearest to one, and those of its slot, with their cosines, nearest first.

    `place` is the vector and embedding space that `active_facts` returns with the fact.
    """
    space = EmbeddingSpace(place["space_id"], place["model"], place["weights_sha256"], place["dimensions"])
    reach = {"has_user": fact.user_id is not None, "has_project": fact.project_id is not None}
    limit = max(policy.neighbour_count, policy.ranked_count) + 1  # the fact is its own nearest
    search = nearest_statement(space, limit, EXACT_LIMIT, **reach)
    parameters = {
        **{name: getattr(fact, name) for name in ("slot", "key", "scope", "user_id", "project_id")},
        "replaces": [],
        "agent_id": agent_id,
        "embedding": place["embedding"],
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(search, parameters).fetchall()
    facts = [(row.pop("similarity"), Fact(**row)) for row in rows]
    others = [(other, similarity) for similarity, other in facts if other.id != fact.id]
    return sorted(others, key=lambda other: (-other[1], str(other[0].id)))


def candidates_of(fact: Fact, nearest: Sequence[tuple[Fact, float]], policy: NightPolicy) -> list[tuple[Fact, float]]:
    """Return the facts to judge with one: of its slot, near it, or ranked best as a night ranks its candidate pairs.

    Without those of another time or another subject. `nearest` has facts and cosines, nearest first.
    """
    least = nearest[0][1] - policy.ranked_within if nearest else 0.0
    scores = {other.id: similarity + nomination_bonus(fact, other) for other, similarity in nearest}
    ranked = [
        other.id
        for other, similarity in nearest
        if similarity >= policy.ranked_similarity and scores[other.id] >= least
    ]
    best = sorted(ranked, key=lambda other_id: -scores[other_id])[: policy.ranked_count]
    return [
        (other, similarity)
        for other, similarity in nearest
        if (
            similarity >= policy.neighbour_similarity
            or (fact.slot is not None and fact.slot == other.slot)
            or other.id in best
        )
        and not begins_after(fact, other)
        and not begins_after(other, fact)
        and not other_subjects(fact.subject, other.subject, (fact.content, other.content))
    ]


def begins_after(later: Fact, earlier: Fact) -> bool:
    """Return whether one fact is valid only from the end of the other on."""
    return later.valid_from is not None and earlier.valid_to is not None and later.valid_from >= earlier.valid_to


def as_pairs(agent_id: str, candidates: Sequence[tuple[Fact, Fact, float]]) -> pl.DataFrame:
    """Return the distinct pairs of facts as a table (`FOUND`), the fact that was stated earlier on the left."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for *both, similarity in candidates:
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
    """Return the moment that orders statements of one slot: `valid_from`, else when the fact was last confirmed."""
    return fact.valid_from or max(filter(None, (fact.learned_at, fact.last_confirmed_at)))


def judge_batch(database: Database, judge: Judge, batch: FreshBatch) -> pl.DataFrame:
    """Return the pairs of a batch with a verdict each; raise `Unavailable` when the judge gives none."""
    statements = [
        (batch.pairs["agent_id"][0], key, fact.content, fact.subject, fact.trust, batch.spaces[key])
        for key, fact in batch.facts.items()
    ]
    facts = pl.DataFrame(statements, schema=STATEMENT_SCHEMA, orient="row")
    pairs = with_hashes(batch.pairs, facts)
    asked = pairs.unique(KEY, keep="first", maintain_order=True)
    verdicts, counts = verdicts_for(database, judge, asked, facts, earlier=pl.DataFrame(schema=VERDICTS))
    if counts.left_open:
        (why,) = verdicts.filter(pl.col("model") == NOBODY)["reason"].unique()
        raise Unavailable(why)
    return pairs.join(verdicts, on=KEY).sort("left_id", "right_id")


def open_contradictions(
    database: Database, agent_id: str, batch: FreshBatch, judged: pl.DataFrame, *, deadline: Deadline
) -> int:
    """Open the contradictions among judged pairs and move the agent's cursor, in one transaction; return how many.

    Does nothing when another process moved the cursor meanwhile. Raises `Stale` when a fact has changed since it was
    read.
    """
    # The night supersedes by an update whose order is certain; of any other a person decides which statement holds.
    share = pl.col("share").fill_null(1.0)
    is_certain = pl.col("is_ordered") & (pl.col("confidence") >= SURE_FROM) & (share >= SUPERSEDES_FROM)
    is_doubted = (pl.col("verdict") == Verdict.UPDATES.value) & ~is_certain
    is_against = (pl.col("verdict") == Verdict.CONTRADICTS.value) | is_doubted
    rows = with_share(judged).filter(is_against, share >= CONTRADICTS_FROM).to_dicts()
    with database.transaction(agent_id, timeout_s=deadline.remaining()) as connection:
        if get_cursor(connection, agent_id, CONSUMER, "lock") != batch.cursor:
            return 0
        lock_unchanged(connection, agent_id, [batch.facts[row[side]] for row in rows for side in SIDES])
        separated = separated_facts(connection, agent_id, rows)
        opened = sum(
            open_contradiction(connection, agent_id, row, batch.facts)
            for row in rows
            if not any({row["left_id"], row["right_id"]} <= facts for facts in separated)
            and not are_told_together(batch.facts[row[SIDES[0]]], batch.facts[row[SIDES[1]]])
        )
        move_cursor(connection, agent_id, batch.cursor, batch.progress)
    return opened


def lock_unchanged(connection: Connection, agent_id: str, facts: Sequence[Fact]) -> None:
    """Lock facts; raise `Stale` when one is gone or no longer at the version it was read at."""
    read = {fact.id: fact.row_version for fact in facts}
    now = {fact.id: fact.row_version for fact in lock_memories(connection, agent_id, FACT, list(read))}
    for fact_id, version in read.items():
        if now.get(fact_id) != version:
            raise Stale(f"fact {fact_id} is no longer at version {version}; read it again and repeat the decision")


def separated_facts(connection: Connection, agent_id: str, rows: Sequence[Mapping[str, Any]]) -> list[set[str]]:
    """Return the sets of facts that a person took apart, with facts of these pairs among them."""
    ids = sorted({row[side] for row in rows for side in SIDES})
    if not ids:
        return []
    parameters = {"agent_id": agent_id, "kinds": list(PAIRING), "ids": [UUID(each) for each in ids]}
    separated = connection.execute(BLOCKS["separated_facts"], parameters).fetchall()
    return [{str(fact_id) for fact_id in fact_ids} for (fact_ids,) in separated]


def open_contradiction(
    connection: Connection, agent_id: str, row: Mapping[str, Any], facts: Mapping[str, Fact]
) -> bool:
    """Open the contradiction of one pair and mark both facts; return whether it was not open yet."""
    one, other = (facts[row[side]] for side in SIDES)
    judgement = {name: row[name] for name in ("model", "verdict", "reason")}
    cause = Cause("agent", "contradicted", row["reason"], effective_at=max(one.learned_at, other.learned_at))
    return open_between(
        connection,
        agent_id,
        one,
        other,
        judgement={**judgement, "confidence": round(row["confidence"], 4)},
        cause=cause,
    )
