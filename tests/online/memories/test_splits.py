"""Splitting: a statement taken for a fact it does not say becomes a fact of its own, and stays apart."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedJudge
from night_runs import NIGHT, plan_of, remember
from test_learn import JUNE, MAY, NEW, OLD, opened
from test_statements import LOUDER, said

from nous_online.core.domain import Fact, Statement
from nous_online.core.errors import NotFound, Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.undo import Selection, undo

NINE, AT_NINE = "the office opens at nine", "the office opens at nine now"


@pytest.fixture
def reworded(database: Database) -> Heart:
    """An agent whose judge takes NEW for OLD; both are learned, so one fact has two statements."""
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.SAME}))
    heart.agent.embedder.cosines[LOUDER] = 0.99
    heart.learn(OLD, learned_at=MAY, trust=30, source="mail")
    heart.learn(NEW, learned_at=JUNE, trust=30, source="chat", tags=["talk"])
    return heart


def only_fact(heart: Heart) -> Fact:
    (found,) = heart.recall(OLD, limit=9)
    return heart.get(found.memory.id)


def other_words(heart: Heart, fact_id: uuid.UUID) -> Statement:
    (found,) = (each for each in heart.statements(fact_id) if each.reason == "reworded")
    return found


def texts(heart: Heart) -> set[str]:
    return {found.memory.content for found in heart.recall(OLD, limit=9)}


def test_a_statement_becomes_a_fact_with_its_own_words_time_and_source(reworded: Heart) -> None:
    fact = only_fact(reworded)
    statement = other_words(reworded, fact.id)

    new = reworded.split(statement.id, reason="it says otherwise")

    assert (new.content, new.learned_at, new.source, new.state) == (NEW, JUNE, "chat", "active")
    assert texts(reworded) == {OLD, NEW}
    assert said(reworded, new.id) == [(NEW, "first")]
    assert reworded.statements(new.id)[0].id == statement.id
    assert said(reworded, fact.id) == [(OLD, "first")]


def test_the_fact_it_leaves_is_as_it_was_before_it_was_confirmed(reworded: Heart) -> None:
    fact = only_fact(reworded)

    reworded.split(other_words(reworded, fact.id).id)

    left = reworded.get(fact.id)
    assert (left.confirmation_count, left.last_confirmed_at, left.tags, left.sources) == (0, None, [], [])
    assert [event.action for event in reworded.history(fact.id)] == ["split", "confirmed", "learned"]


def test_what_was_confirmed_since_stays_counted(reworded: Heart) -> None:
    fact = only_fact(reworded)
    reworded.confirm_fact(fact.id, source="a call")

    reworded.split(other_words(reworded, fact.id).id)

    left = reworded.get(fact.id)
    assert left.confirmation_count == len(reworded.statements(fact.id)) - 1 == 1
    assert "a call" in left.sources


def test_the_same_words_learned_again_confirm_the_fact_that_was_split_off(reworded: Heart) -> None:
    fact = only_fact(reworded)
    new = reworded.split(other_words(reworded, fact.id).id)

    again = reworded.learn(NEW, trust=30)

    assert (again.action, again.memory.id) == ("confirmed", new.id)
    assert reworded.get(fact.id).confirmation_count == 0


def test_the_same_words_do_not_confirm_the_other_fact_when_their_own_is_gone(reworded: Heart) -> None:
    fact = only_fact(reworded)
    new = reworded.split(other_words(reworded, fact.id).id)
    reworded.supersede_fact(new.id, reworded.learn("bread is baked in the morning").memory.id)

    again = reworded.learn(NEW, trust=30)

    assert (again.action, reworded.get(fact.id).confirmation_count) == ("stored", 0)


def test_the_first_statement_of_a_fact_cannot_be_split_off(heart: Heart) -> None:
    fact = heart.learn(OLD).memory
    (statement,) = heart.statements(fact.id)

    with pytest.raises(Refused, match=f"is what fact {fact.id} says"):
        heart.split(statement.id)

    assert heart.get(fact.id) == fact


def test_an_unknown_statement_is_not_found(heart: Heart) -> None:
    with pytest.raises(NotFound, match="has no statement"):
        heart.split(uuid.uuid4())


def test_another_agents_statement_is_not_found(reworded: Heart) -> None:
    ben = Heart.open("ben", database=reworded.agent.database, embedder=reworded.agent.embedder)

    with pytest.raises(NotFound):
        ben.split(other_words(reworded, only_fact(reworded).id).id)


def test_undoing_a_split_joins_the_two_again(reworded: Heart) -> None:
    fact = only_fact(reworded)
    new = reworded.split(other_words(reworded, fact.id).id)

    event = reworded.undo(new.id, reason="they do say the same")

    joined = reworded.get(fact.id)
    assert event.action == "split"
    assert (joined.confirmation_count, joined.last_confirmed_at, joined.sources) == (1, JUNE, ["chat"])
    assert sorted(said(reworded, fact.id)) == sorted([(OLD, "first"), (NEW, "merged")])
    assert (reworded.get(new.id).state, reworded.get(new.id).superseded_by) == ("superseded", fact.id)
    assert texts(reworded) == {OLD}
    assert reworded.learn(NEW, trust=30).memory.id == fact.id


def test_a_split_can_be_undone_from_either_side(reworded: Heart) -> None:
    fact = only_fact(reworded)
    new = reworded.split(other_words(reworded, fact.id).id)

    reworded.undo(fact.id, reason="they do say the same")

    assert reworded.get(fact.id).confirmation_count == 1
    assert reworded.get(new.id).succession == "merged"


def test_a_split_is_not_undone_where_the_new_fact_changed_since(reworded: Heart) -> None:
    fact = only_fact(reworded)
    new = reworded.split(other_words(reworded, fact.id).id)
    reworded.confirm_fact(new.id)

    with pytest.raises(Refused, match="was changed since: confirmed by agent"):
        reworded.undo(fact.id, reason="they do say the same")

    assert reworded.get(fact.id).confirmation_count == 0


def test_what_was_joined_again_can_be_split_again(reworded: Heart) -> None:
    fact = only_fact(reworded)
    statement = other_words(reworded, fact.id)
    new = reworded.split(statement.id)
    reworded.undo(new.id, reason="they do say the same")

    again = reworded.split(statement.id)

    assert (again.id, again.state) == (new.id, "active")
    assert reworded.get(fact.id).confirmation_count == 0


def test_undoing_a_confirmation_by_other_words_keeps_them_as_a_fact(reworded: Heart) -> None:
    fact = only_fact(reworded)

    event = reworded.undo(fact.id, reason="not the same")

    assert event.action == "confirmed"
    assert texts(reworded) == {OLD, NEW}
    assert reworded.get(fact.id).confirmation_count == 0
    assert said(reworded, fact.id) == [(OLD, "first")]
    assert reworded.learn(LOUDER, trust=30).memory.id == fact.id


def test_undoing_a_repetition_keeps_the_statement_uncounted(heart: Heart) -> None:
    fact = heart.learn(OLD, learned_at=MAY).memory
    heart.confirm_fact(fact.id, at=JUNE)

    heart.undo(fact.id, reason="nobody said so")

    first, again = heart.statements(fact.id)
    assert (first.taken_back_at, again.reason) == (None, "repeat")
    assert again.taken_back_at is not None
    assert heart.get(fact.id).confirmation_count == 0
    with pytest.raises(Refused, match="was undone"):
        heart.split(again.id)


def test_a_confirmation_whose_split_was_undone_can_itself_be_undone(reworded: Heart) -> None:
    fact = only_fact(reworded)
    new = reworded.split(other_words(reworded, fact.id).id)
    reworded.undo(new.id, reason="they do say the same")

    reworded.undo(fact.id, reason="after all not")

    assert reworded.get(fact.id).confirmation_count == 0
    assert reworded.get(new.id).state == "active"
    assert said(reworded, new.id) == [(NEW, "first")]


def test_a_fact_that_a_night_merged_comes_back(heart: Heart, judge, night_database: Database, tmp_path: Path) -> None:
    remember(heart, NINE, AT_NINE)
    judge.verdicts |= {(NINE, AT_NINE): Verdict.SAME, (AT_NINE, NINE): Verdict.SAME}
    (proposal,) = merged_at_night(night_database, tmp_path, judge).proposals
    kept, gone = (uuid.UUID(each) for each in proposal.targets)
    (statement,) = (each for each in heart.statements(kept) if each.fact_id == gone)

    back = heart.split(statement.id)

    assert (statement.reason, back.id, back.state, back.succession) == ("merged", gone, "active", None)
    assert heart.get(kept).confirmation_count == 0
    assert [each.fact_id for each in heart.statements(kept)] == [kept]
    assert plan_of(night_database, tmp_path / "again", judge).proposals == ()
    refused = undo(night_database, Selection(night=NIGHT), reason="too late").refused
    assert "split by agent" in refused[proposal.id]


def merged_at_night(database: Database, folder: Path, judge):
    plan = plan_of(database, folder, judge)
    apply_plan(database, plan, run_id="a run")
    return plan


def test_a_night_does_not_join_again_what_was_split_off(
    heart: Heart, judge, night_database: Database, tmp_path: Path
) -> None:
    judge.verdicts |= {(NINE, AT_NINE): Verdict.SAME, (AT_NINE, NINE): Verdict.SAME}
    fact = heart.learn(NINE, learned_at=MAY).memory
    assert heart.learn(AT_NINE, learned_at=MAY).action == "confirmed"
    heart.split(other_words(heart, fact.id).id)

    assert plan_of(night_database, tmp_path, judge).proposals == ()


def test_a_statement_of_a_fact_merged_away_waits_until_that_fact_is_back(
    heart: Heart, judge, night_database: Database, tmp_path: Path
) -> None:
    remember(heart, NINE, AT_NINE)
    judge.verdicts |= {(NINE, AT_NINE): Verdict.SAME, (AT_NINE, NINE): Verdict.SAME}
    facts = [found.memory.id for found in heart.recall(NINE, limit=2)]
    for each in facts:
        heart.confirm_fact(each, at=MAY)
    (proposal,) = merged_at_night(night_database, tmp_path, judge).proposals
    kept, gone = (uuid.UUID(each) for each in proposal.targets)
    assert heart.get(kept).confirmation_count == len(heart.statements(kept)) - 1 == 3
    (repeat,) = (each for each in heart.statements(gone) if each.reason == "repeat")

    with pytest.raises(Refused, match="split off the first statement"):
        heart.split(repeat.id)


def test_a_ruling_that_merges_two_facts_counts_what_was_said_and_is_undone_whole(database: Database) -> None:
    heart = opened(database, 0.5, ScriptedJudge({(OLD, NEW): Verdict.CONTRADICTS}))
    a, b = heart.learn(OLD, subject="api", learned_at=MAY).memory, heart.learn(NEW, subject="api").memory
    (found,) = heart.contradictions()
    both = heart.learn("the api team deploys on most Fridays", learned_at=JUNE).memory
    heart.resolve_contradiction(found.id, "merged", merged_into=both.id)
    counted = heart.get(both.id).confirmation_count

    for each in (a, b):
        while heart.get(each.id).state != "active":
            heart.undo(each.id, reason="they differ")

    assert counted == 2
    assert heart.get(both.id).confirmation_count == 0
    assert {heart.get(each.id).succession for each in (a, b)} == {None}


def test_what_was_split_off_is_announced_like_any_fact(reworded: Heart, owner: psycopg.Connection) -> None:
    new = reworded.split(other_words(reworded, only_fact(reworded).id).id)

    announced = owner.execute("select memory_id from heart.outbox where name = 'fact_learned' order by id").fetchall()

    assert announced[-1] == (new.id,)
