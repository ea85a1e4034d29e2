"""What was said is kept word for word: every statement is a row, whichever fact it was taken for."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge
from inserted_rows import INSERT_EVENT, INSERT_FACT
from night_runs import NIGHT, plan_of, remember, snapshot_of
from psycopg.sql import SQL
from test_learn import JUNE, MAY, NEW, OLD, opened

from nous_online.core.errors import NotFound, Refused
from nous_online.core.validation import folded
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict
from nous_online.memories.store import unrecorded_count
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.evidence import statement_counts
from nous_pipelines.plan.undo import Selection, undo

LOUDER = "the API team  deploys every Friday!"


def said(heart: Heart, fact_id: uuid.UUID) -> list[tuple[str, str]]:
    """The words of each statement for a fact and why it speaks for it."""
    return [(each.content, each.reason) for each in heart.statements(fact_id)]


def test_what_is_learned_is_a_statement_with_its_time_and_source(heart: Heart) -> None:
    details: dict[str, Any] = {"source": "mail", "source_kind": "user", "trust": 70, "subject": "api", "user_id": "ana"}
    fact = heart.learn(OLD, learned_at=MAY, encoded_frame="debug", **details).memory

    (statement,) = heart.statements(fact.id)

    assert (statement.content, statement.fact_id, statement.reason) == (OLD, fact.id, "first")
    assert (statement.said_at, statement.source, statement.source_kind, statement.trust) == (MAY, "mail", "user", 70)
    assert (statement.subject, statement.user_id, statement.scope, statement.frame) == (
        "api",
        "ana",
        "private",
        "debug",
    )
    assert statement.recorded_at > MAY
    assert statement.taken_back_at is None


def test_a_confirmation_by_other_words_keeps_them(database: Database) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.SAME}))
    fact = heart.learn(OLD, learned_at=MAY).memory

    learned = heart.learn(NEW, learned_at=JUNE, source="chat")

    assert (learned.action, learned.memory.id) == ("confirmed", fact.id)
    assert said(heart, fact.id) == [(OLD, "first"), (NEW, "reworded")]
    assert [(each.said_at, each.source) for each in heart.statements(fact.id)] == [(MAY, None), (JUNE, "chat")]
    assert learned.memory.confirmation_count == len(heart.statements(fact.id)) - 1


def test_a_statement_in_other_words_keeps_the_situation_it_was_said_in_not_that_of_its_fact(
    database: Database, owner: psycopg.Connection
) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.SAME}))
    whose: dict[str, Any] = {"user_id": "ana", "project_id": "api", "scope": "project"}
    fact = heart.learn(OLD, learned_at=MAY, frame="debug", session_id="s-1", source="mail", **whose).memory
    episode = heart.start_episode("Stand-up", session_id="s-2")
    told = {"source": "chat", "source_kind": "user", "trust": 45, "source_episode_id": episode.id}

    heart.learn(NEW, learned_at=JUNE, frame="plan", session_id="s-2", **told, **whose)

    columns = "reason, subject, frame, session_id, user_id, project_id, scope, source, source_kind, trust, episode_id"
    query = SQL("select {} from heart.statements order by said_at").format(SQL(columns))
    rows = owner.execute(query).fetchall()
    first = ("first", None, "debug", "s-1", "ana", "api", "project", "mail", "agent", 50, None)
    own = ("reworded", None, "plan", "s-2", "ana", "api", "project", "chat", "user", 45, episode.id)
    assert rows == [first, own]
    shown = heart.statements(fact.id)
    assert [tuple(getattr(each, name) for name in columns.split(", ")) for each in shown] == [first, own]
    assert heart.get_fact(fact.id).encoded_frame == "debug"


def test_a_repetition_is_told_from_other_words_by_the_words_alone(database: Database) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, LOUDER): Verdict.SAME}))
    heart.agent.embedder.cosines[LOUDER] = 0.9
    fact = heart.learn(OLD, learned_at=MAY).memory

    heart.learn(LOUDER, learned_at=JUNE)

    assert said(heart, fact.id) == [(OLD, "first"), (LOUDER, "repeat")]


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("Ana likes tea", "ana  likes\ttea.", True),
        ("“Ana likes tea”, she said", "Ana likes tea she said!", True),
        ("It is -5 degrees", "It is 5 degrees", False),
        ("100% of it", "100 of it", False),
        ("version 1.5", "version 15", False),
        ("茶が好き", "茶が嫌い", False),
        ("Straße", "STRASSE", True),
    ],
)
def test_case_spacing_and_punctuation_make_no_other_words(one: str, other: str, *, is_equal: bool) -> None:
    assert (folded(one) == folded(other)) is is_equal


def test_confirming_by_id_is_one_more_statement_of_the_same_words(heart: Heart) -> None:
    fact = heart.learn(OLD, learned_at=MAY, trust=30, user_id="ana").memory

    confirmed = heart.confirm_fact(fact.id, at=JUNE, source="a call")

    first, again = heart.statements(fact.id)
    assert (again.content, again.reason, again.said_at, again.source) == (OLD, "repeat", JUNE, "a call")
    assert (again.trust, again.user_id, first.source) == (30, "ana", None)
    assert confirmed.confirmation_count == 1


def test_what_is_imported_says_so(heart: Heart) -> None:
    heart.learn_deferred([(OLD, {"learned_at": MAY, "source": "log", "idempotency_key": "1"})])
    (found,) = heart.recall(OLD, limit=1)

    assert said(heart, found.memory.id) == [(OLD, "imported")]


def test_statements_of_a_replaced_fact_stay_with_it(heart: Heart) -> None:
    old, new = (heart.learn(text).memory for text in (OLD, "bread is baked in the morning"))

    heart.supersede_fact(old.id, new.id)

    assert heart.get(old.id).succession == "replaced"
    assert said(heart, old.id) == [(OLD, "first")]
    assert said(heart, new.id) == [("bread is baked in the morning", "first")]


def test_statements_of_facts_a_person_merged_speak_for_what_they_were_merged_into(database: Database) -> None:
    heart = opened(database, 0.5, ScriptedJudge({(OLD, NEW): Verdict.CONTRADICTS}))
    a, b = heart.learn(OLD, subject="api", learned_at=MAY).memory, heart.learn(NEW, subject="api").memory
    (found,) = heart.contradictions()
    both = heart.learn("the api team deploys on most Fridays", learned_at=JUNE).memory

    heart.resolve_contradiction(found.id, "merged", merged_into=both.id)

    assert {heart.get(each.id).succession for each in (a, b)} == {"merged"}
    assert sorted(said(heart, both.id)) == sorted([(OLD, "merged"), (NEW, "merged"), (both.content, "first")])
    assert said(heart, a.id) == [(OLD, "first")]


def test_a_fact_of_another_agent_has_no_statements(heart: Heart) -> None:
    with pytest.raises(NotFound, match="no fact"):
        heart.statements(uuid.uuid4())


def test_confirmations_without_words_are_counted(heart: Heart, owner: psycopg.Connection) -> None:
    fact = heart.learn(OLD).memory
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set confirmation_count = 3")

    assert unrecorded_count(heart.get(fact.id), heart.statements(fact.id)) == 3


# --- what a night sees of it ---


def test_a_snapshot_holds_what_was_said_when_the_night_ended(
    heart: Heart, night_database: Database, tmp_path: Path
) -> None:
    fact = heart.learn(OLD, learned_at=MAY, source="mail").memory
    heart.confirm_fact(fact.id, at=JUNE + timedelta(days=9))

    table = snapshot_of(night_database, tmp_path).table("statements")

    assert table.select("fact_id", "content", "said_at", "source", "reason").rows() == [
        (str(fact.id), OLD, MAY, "mail", "first")
    ]


def test_a_night_reaches_statements_of_merged_facts_through_those_they_were_merged_into(
    heart: Heart, judge: ScriptedJudge, night_database: Database, tmp_path: Path
) -> None:
    remember(heart, OLD, OLD, OLD)
    plan = plan_of(night_database, tmp_path, judge)
    apply_plan(night_database, plan, run_id="a run")
    kept, *_ = plan.proposals[0].targets

    counted = statement_counts(snapshot_of(night_database, tmp_path, night=NIGHT + timedelta(days=1)))

    assert counted.rows() == [("aria", kept, 3)]
    assert heart.get(uuid.UUID(kept)).confirmation_count == 2
    assert [reason for _, reason in said(heart, uuid.UUID(kept))] == ["imported", "merged", "merged"]
    undo(night_database, Selection(night=NIGHT), reason="a mistake")
    assert said(heart, uuid.UUID(kept)) == [(OLD, "imported")]


# --- what the database refuses, whoever asks ---


@pytest.mark.parametrize("change", ["content = 'other'", "said_at = now()", "source = 'me'", "trust = 99"])
def test_not_even_the_owner_rewrites_a_statement(heart: Heart, owner: psycopg.Connection, change: str) -> None:
    heart.learn(OLD, learned_at=MAY)

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="was said so"):
        owner.execute(f"update heart.statements set {change}")  # noqa: S608 (the changes above)


@pytest.mark.parametrize("role", ["nous_app", "nous_night"])
@pytest.mark.parametrize("statement", ["delete from heart.statements", "truncate heart.statements"])
def test_no_statement_is_deleted(heart: Heart, database_url: str, role: str, statement: str) -> None:
    heart.learn(OLD)

    with (
        psycopg.connect(database_url, options=f"-c role={role} -c nous.agent_id=aria") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement)


def test_a_fact_without_a_statement_is_refused_at_commit(heart: Heart, database: Database) -> None:
    fact_id = uuid.uuid4()

    def write() -> None:
        with database.transaction("aria") as connection:
            connection.execute(INSERT_FACT, [fact_id, "aria"])
            connection.execute(INSERT_EVENT, ["aria", fact_id, "new", "active", 1])

    with pytest.raises(Refused, match="no statement with its words"):
        write()

    assert heart.count() == {}


def test_the_statement_a_fact_stands_on_cannot_be_given_to_another(heart: Heart, database: Database) -> None:
    one, other = (heart.learn(text).memory for text in (OLD, "bread is baked in the morning"))

    with pytest.raises(Refused, match=f"fact {one.id} has no statement"), database.transaction("aria") as connection:
        connection.execute("update heart.statements set fact_id = %s where fact_id = %s", [other.id, one.id])

    assert said(heart, one.id) == [(OLD, "first")]


def test_a_confirmation_that_comes_too_late_leaves_no_statement(heart: Heart, owner: psycopg.Connection) -> None:
    fact = heart.learn(OLD).memory
    heart.undo(fact.id, reason="a mistake")

    with pytest.raises(Exception, match="archived"):
        heart.confirm_fact(fact.id)

    assert owner.execute("select count(*) from heart.statements").fetchone() == (1,)
