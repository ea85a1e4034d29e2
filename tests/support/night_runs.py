"""A night without an orchestrator: what tests of snapshot, apply and undo share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from judged_pairs import judged_pairs, merges
from psycopg.rows import dict_row

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Judge
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.running import NightOptions
from nous_pipelines.phases.proposals import Plan
from nous_pipelines.plan.planning import planned
from nous_pipelines.snapshots.snapshot import Snapshot, open_snapshot, take_snapshot

NIGHT = date(2026, 6, 1)
SAID = datetime(2026, 5, 1, 9, tzinfo=UTC)
VERSIONING = ("row_version", "written_xid")
POLICY = {"candidate_similarity": 0.7}


def remember(heart: Heart, *contents: str, **details: Any) -> None:
    """Store facts as an import does, unmatched, a day apart from 1 May on; their keys are their places."""
    known = sum(heart.count().values())
    heart.learn_deferred([
        (content, {"learned_at": SAID + timedelta(days=place), "idempotency_key": f"f{place}", **details})
        for place, content in enumerate(contents, start=known)
    ])  # fmt: skip


def store_in_time(owner: psycopg.Connection) -> None:
    """Date the storing of every statement as it was said, as of a history that was lived here."""
    with owner.transaction():
        owner.execute("set local session_replication_role = replica")
        owner.execute("update heart.statements set recorded_at = said_at where recorded_at <> said_at")


def snapshot_of(database: Database, folder: Path, *, night: date = NIGHT) -> Snapshot:
    """Take the snapshot of a night that is over."""
    now = max(datetime.now(UTC), end_of(night))
    return take_snapshot(database, folder / f"night={night}", night=night, probe_days=30, now=now)


def part_of(folder: Path) -> Path:
    """Return the folder of the only part of the snapshot in a folder."""
    taken = open_snapshot(folder)
    assert taken is not None
    (part,) = taken.parts.values()
    return part.folder


def plan_of(
    database: Database, folder: Path, judge: Judge, *, night: date = NIGHT, agent_id: str | None = None
) -> Plan:
    """Return what a night would do for one agent or all, from its snapshot on."""
    taken = snapshot_of(database, folder, night=night)
    facts, undone, contradictions = (taken.table(name) for name in ("facts", "undone", "contradictions"))
    own, policy = facts if agent_id is None else facts.filter(agent_id=agent_id), NightPolicy(candidate_similarity=0.7)
    table, found = judged_pairs(own, judge, policy=policy, undone=undone, contradictions=contradictions)
    phase = merges(own, table, found, policy=policy, night=night)
    return planned(night, phase.proposals, agent_ids=[], policy=policy.as_dict())


def facts_in(owner: psycopg.Connection, *, agent_id: str | None = None, without: Iterable[str] = VERSIONING) -> dict:
    """Return every column of every fact as JSON, by id, but for those that count versions."""
    query = """select id::text, to_jsonb(f) as columns from heart.facts f
               where %(agent)s::text is null or agent_id = %(agent)s"""
    rows = owner.execute(query, {"agent": agent_id}).fetchall()
    return {
        memory: {name: value for name, value in columns.items() if name not in set(without)} for memory, columns in rows
    }


def usage_in(owner: psycopg.Connection, agent_id: str = "aria") -> dict[str, tuple[Any, ...]]:
    """Return the usage counters of every memory that was ever used."""
    query = """select memory_id::text, retrieved_count, cited_count, ignored_count, last_used_at from heart.usage
               where agent_id = %s and retrieved_count + cited_count + ignored_count > 0"""
    return {row[0]: row[1:] for row in owner.execute(query, [agent_id]).fetchall()}


def events_in(owner: psycopg.Connection) -> list[dict[str, Any]]:
    """Return all events, oldest first."""
    with owner.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("select * from lifecycle.events order by id").fetchall()


def proposals_in(owner: psycopg.Connection) -> dict[str, str]:
    """Return the state of each proposal, by id."""
    return dict(owner.execute("select id::text, state from lifecycle.proposals").fetchall())


def everything(owner: psycopg.Connection) -> tuple[Any, ...]:
    """Return all a night could change: facts with their versions, events, proposals, usage."""
    return facts_in(owner, without=()), events_in(owner), proposals_in(owner), usage_in(owner)


def options(database_url: str, home: Path, **changes: Any) -> NightOptions:
    """Return the options of a night of this database that looks at pairs from a cosine of 0.7 on."""
    return NightOptions(**{"database_url": database_url, "home": home, "policy": POLICY, **changes})
