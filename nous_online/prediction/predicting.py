"""Predicting at the database: what the latest sessions like this one used, and writing down what this one sees."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.sql import SQL, Composed

from nous_online.prediction.answer import Predicted
from nous_online.prediction.atoms import atoms_of
from nous_online.prediction.odds import likely
from nous_online.prediction.past import Asked, Past, Sighted, past_of
from nous_online.recall import BLOCKS
from nous_online.signals import Signals
from nous_online.statements import statements

PREDICTING = statements("nous_online.prediction", "predicting.sql")
SESSIONS_A_SIGNAL = 40
"""The latest sessions of a signal that are looked at."""
RECALLS_A_SESSION = 20
LATEST_RECALLS = 400
"""Looked at whatever they saw: what is used at all, and lately."""
MOST_STEPS = 8
"""How often a fact may have been superseded since it was used."""
SPARE = 2
"""How many times as many memories are looked up as are wanted: some are gone or out of reach by now."""


def see(connection: Connection, agent_id: str, signals: Signals, session_id: str, at: datetime) -> None:
    """Write down what a session sees; each signal counts once a session, when it was first seen."""
    row = {"agent_id": agent_id, "session_id": session_id, "at": at, "atoms": list(atoms_of(signals, at=at))}
    connection.execute(PREDICTING["see"], row, prepare=True)


def predicted_memories(  # noqa: PLR0913 (who asks, where, when and for whom)
    connection: Connection,
    agent_id: str,
    signals: Signals,
    *,
    session_id: str | None,
    at: datetime,
    limit: int,
    user_id: str | None = None,
    project_id: str | None = None,
) -> list[Predicted]:
    """Return the memories in reach that are most likely to be used, best first, without those the session has cited.

    Reads the latest sessions of each signal and the latest recalls, each by an index and up to a fixed number.
    """
    asking = {"session_id": session_id, "at": at, "user_id": user_id, "project_id": project_id}
    return foreseen(connection, agent_id, signals, asking, limit=limit)[0]


def foreseen(
    connection: Connection, agent_id: str, signals: Signals, asking: dict[str, Any], *, limit: int
) -> tuple[list[Predicted], float]:
    """Return the memories most likely to be used, and the share of what will be used that they are likely to make up.

    `asking` says for which session, user and project, and at which moment.
    """
    atoms = atoms_of(signals, at=asking["at"])
    past = past_sessions(connection, atoms, {"agent_id": agent_id, **asking})
    best, expected = likely(past, atoms, limit=SPARE * limit)
    found = {each.memory: each for each in best}
    heirs = known_memories(connection, list(found), {"agent_id": agent_id, **asking})
    kept: dict[UUID, Predicted] = {}
    for used_id, each in found.items():
        if used_id in heirs:
            memory_id, kind = heirs[used_id]
            kept.setdefault(memory_id, Predicted(memory_id, kind, each.confidence, each.reasons))
    memories = list(kept.values())[:limit]
    return memories, min(sum(each.confidence for each in memories) / expected, 1.0) if memories else 0.0


def past_sessions(connection: Connection, atoms: Sequence[str], asking: dict[str, Any]) -> Past[UUID]:
    """Read the past that bears on a session with these atoms."""
    wanted = {**asking, "atoms": list(atoms), "sessions": SESSIONS_A_SIGNAL}
    rows = connection.execute(PREDICTING["sighted_sessions"], wanted, prepare=True, binary=True)
    sighted = [Sighted(*row) for row in rows]
    session_id: str | None = asking["session_id"]
    named = {each.session_id for each in sighted}.union([session_id] if session_id else [])
    wanted = {**asking, "session_ids": sorted(named), "recalls": RECALLS_A_SESSION, "latest": LATEST_RECALLS}
    rows = connection.execute(PREDICTING["used_in_sessions"], wanted, prepare=True, binary=True)
    return past_of((Asked[UUID](*row) for row in rows), sighted, session_id=session_id, at=asking["at"])


def known_memories(connection: Connection, ids: Sequence[UUID], whose: dict[str, Any]) -> dict[UUID, tuple[UUID, str]]:
    """Return what stands today for each memory that was used, and its kind; nothing for one that is gone."""
    if not ids:
        return {}
    wanted = {**whose, "ids": list(ids), "steps": MOST_STEPS}
    rows = connection.execute(known_statement(), wanted, prepare=True, binary=True).fetchall()
    return {used_id: (memory_id, kind) for used_id, memory_id, kind in rows}


@cache
def known_statement() -> Composed:
    """Return the query of `known_memories` with the rule of who may see what, as recall has it."""
    return SQL(PREDICTING["known_memories"]).format(in_reach=SQL(BLOCKS["in_reach"]))
