"""A night applies its plan while an agent writes the same rows: does either undo what the other did?"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from uuid import UUID

import psycopg

from benchmarks.faults_kills import SQL, home, progress
from benchmarks.faults_writer import HashedEmbedder
from nous_online.core.errors import Conflict
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.phases.proposals import Change, Plan, Proposal, Read
from nous_pipelines.plan.apply import Applied, apply_plan
from nous_pipelines.plan.planning import planned

AGENT = "aria"
NIGHT = date(2026, 6, 1)
ENDS = "2026-06-02T00:00:00+00:00"
NOON = datetime(2026, 6, 2, 12, tzinfo=UTC)
DAY_THREADS = 3
CHUNK = 20
"""Proposals that the night applies together: as many races are decided at once."""
LEAD = 40
"""By how many pairs the day may be ahead of the night: it writes what the night is about to apply, or applies."""
DEADLINE_S = 60.0
POLL_S = 0.001
Pair = tuple[str, str]


@dataclass
class Races:
    """What was counted."""

    races: int = 0
    night: Applied = field(default_factory=Applied)
    refused_by_day: int = 0
    clobbered: int = 0
    seconds: float = 0.0


def race(count: int) -> Races:
    """Apply a plan of `count` proposals while three threads confirm one fact of each, side by side."""
    began = time.monotonic()
    with home() as place:
        url = postgres.ensure(place).dsn()
        with closing(Database(url)) as database, closing(Database(url, role="nous_night")) as night:
            heart = Heart.open(AGENT, database=database, embedder=HashedEmbedder(), works_in_background=False)
            with psycopg.connect(url, autocommit=True) as owner:
                pairs = drawn_pairs(owner, count)
                applied, confirmed = both_at_once(heart, night, pairs)
                ids, counts = [*confirmed], [*confirmed.values()]
                (clobbered,) = owner.execute(SQL["count_clobbered"], {"ids": ids, "counts": counts}).fetchone() or (0,)
    refused = count - confirmed.total()
    return Races(count, applied, refused, clobbered, time.monotonic() - began)


def drawn_pairs(owner: psycopg.Connection, count: int) -> list[Pair]:
    """Store two facts for each race, set by set, and return their ids."""
    with owner.transaction():
        for statement in ("begin_loading", "store_raced", "store_raced_statements", "store_raced_events"):
            told = {"agent_id": AGENT, "count": 2 * count} if statement == "store_raced" else None
            owner.execute(SQL[statement], told)
    ids = [str(row[0]) for row in owner.execute(SQL["find_raced"]).fetchall()]
    return [*zip(ids[::2], ids[1::2], strict=True)]


def both_at_once(heart: Heart, night: Database, pairs: Sequence[Pair]) -> tuple[Applied, Counter[str]]:
    """Apply the plan while others confirm; return what became of it, and how often each fact was confirmed."""
    plan = plan_of(pairs)
    place_of = {pair[0]: pair for pair in pairs} | {pair[1]: pair for pair in pairs}
    order = [place_of[proposal.targets[0]] for proposal in plan.proposals]
    course = Course()

    def confirm(start: int) -> Counter[str]:
        confirmed: Counter[str] = Counter()
        for number in range(start, len(order), DAY_THREADS):
            course.wait(lambda number=number: course.night >= number - LEAD)
            memory = order[number][number % 2]
            try:
                heart.confirm_fact(UUID(memory), at=NOON, source=f"day {number}", deadline_s=DEADLINE_S)
                confirmed[memory] += 1
            except Conflict:  # the night retired it first, and said so
                pass
            except BaseException:
                course.is_over.set()
                raise
            course.step()
        return confirmed

    def keep_in_step(decided: int, _: int) -> None:
        course.night = decided
        course.wait(lambda: course.day >= decided)
        progress("races", decided, len(order), CHUNK, f"{course.day} written by day")

    with ThreadPoolExecutor(DAY_THREADS) as pool:
        running = [pool.submit(confirm, start) for start in range(DAY_THREADS)]
        try:
            applied = apply_plan(night, plan, run_id="races", chunk_size=CHUNK, on_progress=keep_in_step)
        finally:
            course.is_over.set()
        return applied, sum((part.result() for part in running), Counter[str]())


class Course:
    """How far night and day have come; neither gets far ahead."""

    def __init__(self) -> None:
        self.night = self.day = 0
        self.is_over = threading.Event()
        self._lock = threading.Lock()

    def step(self) -> None:
        """Count one more pair that the day is done with."""
        with self._lock:
            self.day += 1

    def wait(self, has_caught_up: Callable[[], bool]) -> None:
        """Wait for the other, or for the end of the night."""
        while not has_caught_up() and not self.is_over.is_set():
            time.sleep(POLL_S)


def plan_of(pairs: Sequence[Pair]) -> Plan:
    """Return a plan that merges, supersedes, promotes and archives in turn, having read version 1 of all."""
    return planned(NIGHT, [proposal_of(pair, place) for place, pair in enumerate(pairs)], agent_ids=[], policy={})


def proposal_of(pair: Pair, place: int) -> Proposal:
    """Return what the night wants of one pair."""
    one, other = pair
    kept = Change("fact", one, set={"confirmation_count": 1}, action="absorbed")
    archived = Change("fact", other, set={"state": "archived", "archived_at": ENDS}, action="archived")
    kind, targets, changes = (
        ("merge", (one, other), (kept, retired(other, one, "merged"))),
        ("supersede", (one, other), (retired(one, other, "replaced"),)),
        ("promote", (one,), (Change("fact", one, set={"rank_weight": 1.25}, action="promoted"),)),
        ("archive", (other,), (archived,)),
    )[place % 4]
    return Proposal(
        night=NIGHT, agent_id=AGENT, kind=kind, targets=targets, changes=changes, reason="drawn", evidence={},
        read_set=tuple(Read("fact", memory, 1) for memory in targets),
    )  # fmt: skip


def retired(gone: str, heir: str, how: str) -> Change:
    """Return the change by which one fact gives way to another."""
    values = {"state": "superseded", "superseded_by": heir, "superseded_at": ENDS, "succession": how}
    return Change("fact", gone, set=values, action="superseded" if how == "replaced" else "merged")
