"""Predicting at the database: what the latest sessions like this one used, and writing down what this one sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from uuid import UUID

from psycopg import Connection
from psycopg.sql import SQL, Composed

from nous_online.context.prediction.features import atoms_of
from nous_online.context.prediction.past_sessions import Past, PastRecall, Sighted, past_of
from nous_online.context.prediction.prediction_answer import Predicted
from nous_online.context.prediction.scorer import Nearness, Ranking
from nous_online.context.signals import Signals
from nous_online.database.statements import statements
from nous_online.recall.recall import BLOCKS, Recalled

PREDICTING = statements("nous_online.context.prediction", "predicting.sql")
SESSIONS_A_SIGNAL = 40
"""The latest sessions of a signal that are looked at."""
RECALLS_A_SESSION = 20
LATEST_RECALLS = 400
"""Looked at whatever they saw: what is used at all, and lately."""
MOST_STEPS = 8
"""How often a fact may have been superseded since it was used."""
SPARE = 30
"""How many more memories are looked up at first than are wanted: some are gone or out of reach by now."""


@dataclass(frozen=True)
class PredictionRequest:
    """For which session, at which moment, how many memories and for whom; checked."""

    session_id: str
    """Empty for a session that has not begun."""
    at: datetime
    limit: int
    user_id: str | None = None
    project_id: str | None = None
    least: float = 0.0
    """The chance below which none is wanted."""


@dataclass(frozen=True)
class Outlook:
    """What the past says of a session."""

    memories: tuple[Predicted, ...]
    expected: float
    """How many of the memories ever used, or near, will be used in it."""


def see(connection: Connection, agent_id: str, signals: Signals, session_id: str, at: datetime) -> None:
    """Write down what a session sees; each signal counts once a session, when it was first seen."""
    row = {"agent_id": agent_id, "session_id": session_id, "at": at, "atoms": list(atoms_of(signals, at=at))}
    connection.execute(PREDICTING["see"], row, prepare=True)


def predicted_memories(
    connection: Connection, agent_id: str, signals: Signals, wanted: PredictionRequest, near: Mapping[bytes, Nearness]
) -> Sequence[Predicted]:
    """Return the memories in reach that are most likely to be used, best first, without those the session has cited.

    Only what was used before is among them, however near others are. Reads the latest sessions of each signal and the
    latest recalls, each by an index and up to a fixed number.
    """
    atoms = atoms_of(signals, at=wanted.at)
    past = past_sessions(connection, agent_id, atoms, wanted)
    near = {memory: near[memory] for memory in past.memories if memory in near}
    return standing(connection, agent_id, Ranking(past, atoms, near), wanted).memories


def outlook(
    connection: Connection, agent_id: str, signals: Signals, wanted: PredictionRequest, near: Mapping[bytes, Nearness]
) -> Outlook:
    """Return what the past, and nearness to what is being done, say of a session with these signals.

    Here memories go by the bytes of their ids: thousands are counted, and few returned.
    """
    atoms = atoms_of(signals, at=wanted.at)
    past = past_sessions(connection, agent_id, atoms, wanted)
    return standing(connection, agent_id, Ranking(past, atoms, near), wanted)


def nearness_of(answers: Iterable[Recalled]) -> dict[bytes, Nearness]:
    """Return how near memories are to the nearest of the texts they were recalled for."""
    near: dict[bytes, Nearness] = {}
    for each in answers:
        other = near.get(each.id.bytes, Nearness())
        near[each.id.bytes] = Nearness(max(each.memory.lexical, other.words), max(each.memory.dense, other.meaning))
    return near


def standing(connection: Connection, agent_id: str, ranking: Ranking[bytes], wanted: PredictionRequest) -> Outlook:
    """Return the likeliest that still stand and are in reach; what is not is expected no more."""
    kept: dict[UUID, Predicted] = {}
    out_of_reach = 0.0
    for places in pages(ranking.places(least=wanted.least), SPARE + wanted.limit):
        heirs = known_memories(connection, agent_id, [ranking.memories[place] for place in places], wanted)
        for place in places:
            memory_id, kind = heirs.get(ranking.memories[place], (None, ""))
            if memory_id is None:
                out_of_reach += ranking.chance(place)
            elif memory_id not in kept and len(kept) < wanted.limit:
                each = ranking.at(place)
                kept[memory_id] = Predicted(memory_id, kind, each.confidence, each.reasons, each.is_bearing)
        if len(kept) == wanted.limit:
            break
    return Outlook(tuple(kept.values()), ranking.expected - out_of_reach)


def pages(places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield places in pages, each four times as long as the one before: few look-ups, however many are out of reach."""
    begin = 0
    while begin < len(places):
        yield places[begin : begin + size]
        begin, size = begin + size, size * 4


def past_sessions(
    connection: Connection, agent_id: str, atoms: Sequence[str], wanted: PredictionRequest
) -> Past[bytes]:
    """Read the past that bears on a session with these atoms."""
    asked = {"agent_id": agent_id, "session_id": wanted.session_id, "at": wanted.at, "atoms": list(atoms)}
    asked |= {"sessions": SESSIONS_A_SIGNAL, "recalls": RECALLS_A_SESSION, "latest": LATEST_RECALLS}
    rows = connection.execute(PREDICTING["sighted_sessions"], asked, prepare=True, binary=True)
    sighted = [Sighted(*row) for row in rows]
    asked["session_ids"] = sorted({each.session_id for each in sighted} | {wanted.session_id})
    rows = connection.execute(PREDICTING["used_in_sessions"], asked, prepare=True, binary=True)
    return past_of(map(asked_of, rows), sighted, session_id=wanted.session_id, at=wanted.at)


def asked_of(row: tuple[str, datetime, bytes, bytes, bytes]) -> PastRecall[bytes]:
    """Return one recall as the database sends it."""
    session_id, at, results, cited, ignored = row
    return PastRecall(session_id, at, ids_in(results), ids_in(cited), ids_in(ignored))


def ids_in(sent: bytes) -> list[bytes]:
    """Return the ids of an array in PostgreSQL's binary form: a header of 20 bytes, then 4 for the length of each."""
    return [sent[begin : begin + 16] for begin in range(24, len(sent), 20)]


def known_memories(
    connection: Connection, agent_id: str, ids: Sequence[bytes], wanted: PredictionRequest
) -> dict[bytes, tuple[UUID, str]]:
    """Return what stands today for each memory that was used, and its kind; nothing for one that is gone."""
    if not ids:
        return {}
    asked = {"agent_id": agent_id, "at": wanted.at, "user_id": wanted.user_id, "project_id": wanted.project_id}
    asked |= {"ids": [UUID(bytes=each) for each in ids], "steps": MOST_STEPS}
    rows = connection.execute(known_statement(), asked, prepare=True, binary=True).fetchall()
    return {used_id.bytes: (memory_id, kind) for used_id, memory_id, kind in rows}


@cache
def known_statement() -> Composed:
    """Return the query of `known_memories` with the rule of who may see what, as recall has it."""
    return SQL(PREDICTING["known_memories"]).format(in_reach=SQL(BLOCKS["in_reach"]))
