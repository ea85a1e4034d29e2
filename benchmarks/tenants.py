"""Do tenants of every size find their own nearest memories, all of them and nobody else's, in one table?"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks import server
from benchmarks.drawn_memories import SPACE, SQL, Drawn, World, load
from benchmarks.intervals import of_count
from nous_online.core.errors import NotFound
from nous_online.database.connection import Database
from nous_online.language.minilm import Vectors
from nous_online.recall.ranking import RecallPolicy
from nous_online.recall.recall import Cue, recall, refresh_statistics

SIZES, QUICK_LARGEST = (10, 200, 5_000, 100_000), 15_000
QUESTIONS = 100
DEPTH = 10
WORDLESS = "?"
"""A question that no word can answer: what is found is found by its vector."""


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Ask every tenant the same questions and compare the answers with an exact scan of its own rows."""
    tenants = {f"tenant-{size}": QUICK_LARGEST if quick and size == SIZES[-1] else size for size in SIZES}
    world = World(3)
    questions = world.questions(QUESTIONS)
    with server() as (url, _):
        load(url, {name: world.memories(rows) for name, rows in tenants.items()})
        database = Database(url)
        with psycopg.connect(url, autocommit=True) as owner:
            register_vector(owner)
            for name in tenants:
                with database.transaction(name) as connection:
                    refresh_statistics(connection, name)
            measured = {name: recall_at(database, owner, name, questions) for name in tenants}
            leaked = sum(leaked_rows(database, owner, name, list(tenants), questions) for name in tenants)
        database.close()
    return {
        "metrics": {
            **{f"recall_at10_{size}": measured[f"tenant-{size}"] for size in SIZES},
            "leaked_rows": leaked,
        },
        "peers": {},
        "notes": [
            f"tenants of {', '.join(f'{rows:,}' for rows in tenants.values())} rows in a table, {QUESTIONS} questions",
            "recall as Heart calls it, with a question that has no words, against an exact scan by the owner",
            "leaked: answers that belong to another tenant, in one's own recall and when recall is told another's name",
        ],
    }


def found(database: Database, speaking: str, about: str, vector: Vectors) -> list[UUID]:
    """Return what `speaking` is told when it asks for the memories of `about`: nothing where it is refused."""
    cue = Cue(WORDLESS, vector, types=("fact",), limit=DEPTH)
    try:
        with database.transaction(speaking, is_pipelined=True) as connection:
            answers = recall(connection, about, cue, space=SPACE, policy=RecallPolicy()).answers
    except NotFound:
        if speaking == about:
            raise
        return []
    return [answer.id for answer in answers]


def recall_at(database: Database, owner: psycopg.Connection, name: str, questions: Drawn) -> float:
    """Return the share of the nearest ten that recall finds."""
    hits = wanted = 0
    for vector in questions.vectors:
        rows = owner.execute(SQL["exact_nearest"], {"agent_id": name, "embedding": Vector(vector)}).fetchall()
        exact = {row[0] for row in rows}
        hits += len(exact & set(found(database, name, name, vector)))
        wanted += len(exact)
    return of_count(hits, wanted)


def leaked_rows(database: Database, owner: psycopg.Connection, name: str, others: list[str], questions: Drawn) -> int:
    """Return how many answers were not the tenant's own, whomever it asked about."""
    ids = [
        answer for other in others for vector in questions.vectors for answer in found(database, name, other, vector)
    ]
    row = owner.execute(SQL["count_strangers"], {"agent_id": name, "ids": ids}).fetchone()
    return row[0] if row else 0
