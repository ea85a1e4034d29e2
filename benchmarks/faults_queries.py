"""Tenants ask for what belongs to others, in every way a call could: is any row of another told?"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import psycopg

from benchmarks.faults_kills import SQL, home, progress
from benchmarks.faults_writer import HashedEmbedder
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart

TENANTS, FACTS = 20, 30
STATEMENTS_A_CALL = 500
VERB_SHARE = 200
"""One in so many queries is a verb of `Heart`; the others are statements as the login of calls, with its role."""
NAMES = [f"tenant-{number}" for number in range(TENANTS)]
LOOKUPS = tuple(name for name in SQL if name.startswith("look_"))
"""Statements of the hostile mixture; each returns the agent of every row it finds."""
TIMEOUT_S = 60.0
PAYLOADS = (
    "'; select set_config('nous.agent_id', '{other}', false); --",
    "') or agent_id = '{other}' or ('' = '",
    "$$; set role nous_night; select * from heart.facts; $$",
    "{other}\\'; reset role; --",
    "1 union select content from heart.facts where agent_id = '{other}'",
)
Memories = dict[str, list[UUID]]


@dataclass
class Asked:
    """What was counted."""

    statements: int = 0
    verbs: int = 0
    own: int = 0
    """Rows of one's own that were found: a mixture that finds nothing at all would prove nothing."""
    leaked: int = 0
    kinds: set[str] = field(default_factory=set)
    seconds: float = 0.0


def ask(count: int) -> Asked:
    """Ask `count` queries, each as one tenant that wants rows of another."""
    began, asked, rng = time.monotonic(), Asked(), random.Random(7)
    with home() as place, closing(Database(postgres.ensure(place).dsn())) as database:
        hearts = {name: opened(name, database) for name in NAMES}
        with psycopg.connect(database.url) as owner:
            memories: Memories = {name: [] for name in NAMES}
            for name, memory in owner.execute(SQL["find_all_facts"]).fetchall():
                memories[name].append(memory)
        while asked.statements + asked.verbs < count:
            name = rng.choice(NAMES)
            batch = min(STATEMENTS_A_CALL, count - asked.statements - asked.verbs)
            send(database, name, [*mixture(rng, name, memories, batch)], asked)
            for _ in range(min(batch // VERB_SHARE, count - asked.statements - asked.verbs)):
                call(hearts[name], rng, memories, asked)
            progress("queries", asked.statements + asked.verbs, count, batch, f"{asked.leaked} leaked")
    asked.seconds = time.monotonic() - began
    return asked


def opened(name: str, database: Database) -> Heart:
    """Return the memory of a tenant with some facts, all of which say the same as those of every other tenant."""
    heart = Heart.open(name, database=database, embedder=HashedEmbedder(), works_in_background=False)
    heart.learn_deferred([(f"the secret of shelf {number}", {"user_id": "maya"}) for number in range(FACTS)])
    return heart


def mixture(rng: random.Random, name: str, memories: Memories, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield statements and what they ask: another's name, its ids, ids of nobody, and one's own among them."""
    for _ in range(count):
        other = rng.choice([each for each in NAMES if each != name])
        wanted = [*rng.choices(memories[other], k=3), uuid4(), rng.choice(memories[name])]
        payload = rng.choice(PAYLOADS).format(other=other)
        yield rng.choice(LOOKUPS), {"other": other, "ids": wanted, "id": wanted[0], "payload": payload}


def send(database: Database, name: str, queries: Sequence[tuple[str, dict[str, Any]]], asked: Asked) -> None:
    """Send statements in one call of a tenant, and count the rows that come back by whose they are."""
    with database.transaction(name, timeout_s=TIMEOUT_S, is_pipelined=True) as connection:
        connection.execute(SQL["reuse_plans"])
        sent = [connection.execute(SQL[query], told) for query, told in queries]
        for cursor in sent:
            for (owner,) in cursor.fetchall():
                asked.own += owner == name
                asked.leaked += owner != name
    asked.statements += len(queries)
    asked.kinds |= {query for query, _ in queries}


def call(heart: Heart, rng: random.Random, memories: Memories, asked: Asked) -> None:
    """Call one verb with what belongs to another, and count what comes back that is not one's own."""
    name = heart.agent.id
    other = rng.choice([each for each in NAMES if each != name])
    verb = rng.choice([*VERBS])
    told = rng.choice(PAYLOADS).format(other=other)
    try:
        answered = VERBS[verb](heart, rng.choice(memories[other]), told)
    except (NotFound, InvalidInput, Refused, Conflict):
        answered = []
    asked.verbs += 1
    asked.kinds.add(verb)
    own = {*memories[name]}
    asked.own += sum(memory in own for memory in answered)
    asked.leaked += sum(memory not in own for memory in answered)


def ids_of(found: Any) -> list[UUID]:
    """Return the ids of what a verb told."""
    return [each.id for each in found]


VERBS: dict[str, Callable[[Heart, UUID, str], list[UUID]]] = {
    "get": lambda heart, memory, _: [heart.get(memory).id],
    "get_fact": lambda heart, memory, _: [heart.get_fact(memory).id],
    "confirm_fact": lambda heart, memory, told: [heart.confirm_fact(memory, source=told).id],
    "supersede_fact": lambda heart, memory, told: [heart.supersede_fact(memory, uuid4(), reason=told).id],
    "statements": lambda heart, memory, _: ids_of(heart.statements(memory)),
    "predecessors": lambda heart, memory, _: ids_of(heart.predecessors(memory)),
    "recall": lambda heart, _, told: ids_of(heart.recall(f"the secret of shelf 3 {told}")),
    "recall of a user": lambda heart, _, told: ids_of(heart.recall("the secret of shelf 3", user_id=told)),
    "recall of a project": lambda heart, _, told: ids_of(heart.recall("the secret", project_id=told[:100])),
    "recall in a frame": lambda heart, _, told: ids_of(heart.recall("the secret", frame=told[:100])),
}
"""Verbs that tell memories, each told another's id and a text that means to change whom the call speaks for."""
