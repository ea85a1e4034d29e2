"""What a night supersedes answers any question about the past as if it had been learned one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psycopg
from conftest import ScriptedJudge, WordEmbedder
from drawn_pairs import USUAL_PAIR
from night_runs import NIGHT, SAID, events_in, facts_in, snapshot_of

from nous_online.core.domain import FACT
from nous_online.database.changes import Cause, change_memory, get_memory, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict
from nous_online.memories.erasure import Part, erase_some
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
TANNERY = "The tannery that collects our hides is Morrow; they call on Tuesdays and Fridays."
CHANGED = "Morrow gave up the Tuesday run, and it is Fridays only now."
WHICH_DAYS = "On which days are hides collected for the tannery?"


def told(database: Database, agent_id: str) -> Heart:
    judge = ScriptedJudge({**UPDATES, (TANNERY, CHANGED): Verdict.UPDATES, (CHANGED, TANNERY): Verdict.UPDATES})
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


def told_of_the_tannery(heart: Heart, *, is_imported: bool) -> Heart:
    """Tell of the tannery, what changed there, and two strangers."""
    texts = (TANNERY, CHANGED, "The roof is new.", "Ada plays the harp.")
    for day, text in enumerate(texts):
        details: Any = {"learned_at": SAID + timedelta(days=day)}
        if is_imported:
            heart.learn_deferred([(text, {**details, "context": "told at the gate" if text == CHANGED else None})])
        else:
            heart.learn(text, **details, context="told at the gate" if text == CHANGED else None)
    return heart


def found_by(owner: psycopg.Connection, agent_id: str) -> tuple[str, list[float]]:
    """Return the context and the recall vector of what changed at the tannery."""
    query = "select context, context_embedding::text from heart.facts where agent_id = %s and content = %s"
    rows = owner.execute(query, [agent_id, CHANGED]).fetchall()
    return rows[0][0], [float(number) for number in rows[0][1].strip("[]").split(",")]


def supersede_at_night(database: Database, owner: psycopg.Connection, folder: Path) -> None:
    """Have a night find that what changed at the tannery supersedes what was known of it, and nothing else."""
    old, new = ids_of(owner, "ben")[:2]
    taken = snapshot_of(database, folder)
    tables = {name: taken.table(name) for name in ("contradictions", "statements", "undone")}
    row = {**USUAL_PAIR, "agent_id": "ben", "left_id": old, "right_id": new}
    tables |= {"facts": taken.table("facts", columns=FACT_COLUMNS), "copies": COPY.empty()}
    tables |= {"judgements": pl.DataFrame([row], schema=JUDGED)}
    phase = update_phase(tables, policy=NightPolicy(), night=NIGHT)
    plan = planned(NIGHT, phase.proposals, agent_ids=[], policy={})
    assert apply_plan(database, plan, run_id="test").applied == 1
    before = (facts_in(owner, without=()), events_in(owner))
    apply_plan(database, plan, run_id="again")
    assert (facts_in(owner, without=()), events_in(owner)) == before


def test_what_replaced_a_fact_at_night_is_found_by_its_words_as_where_learning_replaced_it(
    database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    aria = told_of_the_tannery(told(database, "aria"), is_imported=False)
    ben = told_of_the_tannery(told(database, "ben"), is_imported=True)
    assert ben.recall(WHICH_DAYS)[0].content == TANNERY

    supersede_at_night(night_database, owner, tmp_path)

    assert [aria.recall(WHICH_DAYS)[0].content, ben.recall(WHICH_DAYS)[0].content] == [CHANGED, CHANGED]
    (learned, one), (inherited, other) = found_by(owner, "aria"), found_by(owner, "ben")
    assert learned == inherited == f"told at the gate\n{TANNERY}"
    assert np.allclose(one, other, atol=1e-6)


def test_undoing_it_leaves_no_word_of_what_was_replaced(
    database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    ben = told_of_the_tannery(told(database, "ben"), is_imported=True)
    before = facts_in(owner)
    supersede_at_night(night_database, owner, tmp_path)

    undo(night_database, Selection(night=NIGHT), reason="both call")

    assert facts_in(owner) == before
    assert ben.recall(WHICH_DAYS)[0].content == TANNERY


def test_what_inherited_words_can_still_be_superseded_or_taken_back_by_itself(
    database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    ben = told_of_the_tannery(told(database, "ben"), is_imported=True)
    old, new = ben.recall(TANNERY)[0].id, ben.recall(CHANGED)[0].id
    supersede_at_night(night_database, owner, tmp_path)
    later = ben.learn("The tannery is shut.", replaces=new).memory

    undo(night_database, Selection(night=NIGHT), reason="both call")

    assert ben.get_fact(old).state == "active"
    kept = facts_in(owner)[str(new)]
    assert (kept["state"], kept["superseded_by"]) == ("superseded", str(later.id))
    assert kept["context"] == "told at the gate"
    assert ben.undo(later.id).action == "learned"
    assert ben.undo(new).action == "learned"


def test_a_context_that_changed_since_loses_what_was_inherited_and_nothing_else(
    database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    ben = told_of_the_tannery(told(database, "ben"), is_imported=True)
    new = ben.recall(CHANGED)[0].id
    supersede_at_night(night_database, owner, tmp_path)
    with night_database.transaction("ben") as connection:
        known = get_memory(connection, "ben", FACT, new)
        cause = Cause("operator", "changed", "more was said", SAID + timedelta(days=40))
        widened = {"context": f"told at the gate\n{TANNERY}\nMorrow is brisk."}
        change_memory(connection, "ben", version_of(FACT, known), widened, cause=cause)

    undo(night_database, Selection(night=NIGHT), reason="both call")

    now = facts_in(owner)[str(new)]
    assert (now["context"], now["context_embedding"]) == ("told at the gate\nMorrow is brisk.", None)


def test_erasing_what_was_replaced_leaves_no_trace_of_it_in_what_replaced_it(
    database: Database, database_url: str, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    ben = told_of_the_tannery(told(database, "ben"), is_imported=True)
    old, new = ben.recall(TANNERY)[0].id, ben.recall(CHANGED)[0].id
    supersede_at_night(night_database, owner, tmp_path)

    erase_some(database_url, "ben", Part((old,)), reason="a request", erasers=(), embedder_of=lambda _: WordEmbedder())

    assert facts_in(owner)[str(new)]["context"] == "told at the gate"
    assert "tannery" not in str(facts_in(owner)) + str(events_in(owner))
