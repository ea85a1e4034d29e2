"""What a night supersedes answers any question about the past as if it had been learned one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import psycopg
from conftest import ScriptedJudge, WordEmbedder
from drawn_pairs import USUAL_PAIR
from night_runs import NIGHT, SAID, snapshot_of

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.neighbours import COPY
from nous_pipelines.phases.updates import FACT_COLUMNS, update_phase
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.planning import planned
from nous_pipelines.plan.undo import Selection, undo

VALUES = tuple(f"The weekly team meeting in the big room starts at {hour}" for hour in ("nine", "ten", "noon"))
UPDATES = {(one, other): Verdict.UPDATES for one in VALUES for other in VALUES if one != other}
QUESTION = "when does the weekly team meeting in the big room start"


def told(database: Database, agent_id: str) -> Heart:
    judge = ScriptedJudge(UPDATES)
    return Heart.open(
        agent_id, database=database, embedder=WordEmbedder(), judge=judge, works_in_background=False
    )  # fmt: skip


def known_on(heart: Heart, day: int) -> list[str]:
    """Return which values are recalled as of some days after the first was said."""
    return [each.content for each in heart.recall(QUESTION, as_of=SAID + timedelta(days=day, hours=1))]


def ids_of(owner: psycopg.Connection, agent_id: str) -> list[str]:
    rows = owner.execute("select id::text from heart.facts where agent_id = %s order by learned_at", [agent_id])
    return [row[0] for row in rows]


def apply_updates(database: Database, owner: psycopg.Connection, folder: Path, agent_id: str) -> int:
    """Judge each value an update of the one before, apply what the phase proposes, and return how much that was."""
    ids = ids_of(owner, agent_id)
    rows = [{**USUAL_PAIR, "agent_id": agent_id, "left_id": a, "right_id": b} for a, b in pairwise(ids)]
    taken = snapshot_of(database, folder)
    tables = {name: taken.table(name) for name in ("contradictions", "statements", "undone")}
    facts, judged = taken.table("facts", columns=FACT_COLUMNS), pl.DataFrame(rows, schema=JUDGED)
    tables |= {"facts": facts, "judgements": judged, "copies": COPY.empty()}
    phase = update_phase(tables, policy=NightPolicy(), night=NIGHT)
    return apply_plan(database, planned(NIGHT, phase.proposals, agent_ids=[], policy={}), run_id="test").applied


def test_the_past_reads_the_same_whether_learned_one_by_one_or_in_a_night(
    database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    aria, ben = told(database, "aria"), told(database, "ben")
    for day, value in enumerate(VALUES):
        aria.learn(value, learned_at=SAID + timedelta(days=day))
        ben.learn_deferred([(value, {"learned_at": SAID + timedelta(days=day)})])

    applied = apply_updates(night_database, owner, tmp_path, "ben")

    assert applied == 1
    by_day = [[value] for value in VALUES]
    assert [known_on(aria, day) for day in range(3)] == by_day
    assert [known_on(ben, day) for day in range(3)] == by_day
    dates = "select superseded_at from heart.facts where agent_id = %s order by learned_at"
    assert owner.execute(dates, ["ben"]).fetchall() == owner.execute(dates, ["aria"]).fetchall()
    heirs = owner.execute("select superseded_by::text from heart.facts where agent_id = 'ben' order by learned_at")
    assert [row[0] for row in heirs] == [ids_of(owner, "ben")[-1], ids_of(owner, "ben")[-1], None]


def test_a_chain_that_was_taken_back_is_whole_again_and_stays_so(
    database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    ben = told(database, "ben")
    for day, value in enumerate(VALUES):
        ben.learn_deferred([(value, {"learned_at": datetime(2026, 5, 1, tzinfo=UTC) + timedelta(days=day)})])
    first = apply_updates(night_database, owner, tmp_path / "first", "ben")

    undo(night_database, Selection(night=NIGHT), reason="these are three meetings")

    again = apply_updates(night_database, owner, tmp_path / "again", "ben")

    assert (first, again) == (1, 0)
    assert ben.count() == {"active": 3}
