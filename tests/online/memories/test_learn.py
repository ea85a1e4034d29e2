"""`Heart.learn` and `Heart.learn_deferred` on the real database, with vectors whose cosines the test chooses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from stopwatch import stopwatch

from nous_online.core.details import FactDetails
from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import InvalidInput, NotFound, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.judging import Judgement, Pair, Verdict
from nous_online.memories import store
from nous_online.recall.recall import refresh_statistics

OLD = "The api team deploys every Friday"
NEW = "api team deploys every Friday."
MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


class TableEmbedder:
    """A text's vector has the cosine with the first axis that the test wrote down, and 0 where it wrote nothing.

    Its space is one that every test's database knows: to make the indexes of another and drop them takes 100 ms.
    """

    def __init__(self, cosines: dict[str, float], space: EmbeddingSpace = WordEmbedder.space) -> None:
        self.cosines, self.space = cosines, space
        self.others: dict[str, int] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.asarray([self.vector(text) for text in texts], dtype=np.float32).reshape(len(texts), 64)

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])[0]

    def vector(self, text: str) -> np.ndarray:
        """Texts share the first axis only, so that their cosine is the product of what the table says of them."""
        cosine = self.cosines.get(text, 0.0)
        row = np.zeros(64)
        row[0] = cosine
        row[1 + self.others.setdefault(text, len(self.others)) % 63] = np.sqrt(1 - cosine**2)
        return row


class FailingJudge:
    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        raise self.error


class SlowJudge(ScriptedJudge):
    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        time.sleep(3)
        return super().judge(pairs)


class ForgetfulJudge(ScriptedJudge):
    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        return super().judge(pairs)[:-1]


def opened(database: Database, similarity: float, judge: Any = None) -> Heart:
    """An agent for whom OLD and NEW have this cosine."""
    embedder = TableEmbedder({OLD: 1.0, NEW: similarity})
    return Heart.open("aria", database=database, embedder=embedder, judge=judge or ScriptedJudge())


def events(owner: psycopg.Connection) -> list[tuple[Any, ...]]:
    return owner.execute(
        "select action, from_state, to_state, version_before, version_after, actor from lifecycle.events order by id"
    ).fetchall()


@pytest.mark.parametrize(
    ("similarity", "action", "asked"),
    [(0.99, "confirmed", 0), (0.951, "confirmed", 0), (0.949, "stored", 1), (0.101, "stored", 1), (0.099, "stored", 0)],
)
def test_the_three_bands_hold_on_stored_vectors(database: Database, similarity: float, action: str, asked: int) -> None:
    judge = ScriptedJudge()
    heart = opened(database, similarity, judge)
    heart.learn(OLD)

    learned = heart.learn(NEW)

    assert (learned.action, len(judge.asked)) == (action, asked)
    assert heart.count() == {"active": 1 if action == "confirmed" else 2}


def test_a_judge_who_says_same_confirms_the_known_fact(database: Database) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.SAME}))
    first = heart.learn(OLD, learned_at=MAY).memory

    learned = heart.learn(NEW, learned_at=JUNE)

    assert learned.action == "confirmed"
    assert (learned.memory.id, learned.memory.confirmation_count) == (first.id, 1)
    assert learned.memory.last_confirmed_at == JUNE
    assert learned.match is not None
    assert learned.match.similarity == pytest.approx(0.9, abs=1e-6)


def test_a_guard_stops_a_confirm_on_identical_vectors(database: Database) -> None:
    forty, fifty = "The pool has 40 connections", "The pool has 50 connections"
    heart = Heart.open("aria", database=database, embedder=TableEmbedder({forty: 1, fifty: 1}), judge=ScriptedJudge())
    heart.learn(forty)

    assert heart.learn(fifty).action == "stored"
    assert heart.count() == {"active": 2}


def test_a_confirmation_that_was_said_earlier_does_not_turn_back_the_clock(database: Database) -> None:
    heart = opened(database, 0.99)
    heart.learn(OLD, learned_at=JUNE)

    confirmed = heart.learn(NEW, learned_at=MAY).memory

    assert (confirmed.learned_at, confirmed.last_confirmed_at) == (JUNE, JUNE)


def test_a_confirmation_keeps_the_highest_trust_and_a_pin(database: Database) -> None:
    heart = opened(database, 0.99)
    heart.learn(OLD, trust=20)

    pinned = heart.learn(OLD, trust=90, is_pinned=True).memory
    again = heart.learn(NEW, trust=10).memory

    assert (pinned.trust, pinned.is_pinned) == (90, True)
    assert (again.trust, again.is_pinned, again.confirmation_count) == (90, True, 2)


def test_an_update_supersedes_the_old_value_and_keeps_it(database: Database) -> None:
    heart = opened(database, 0.2, ScriptedJudge({(OLD, NEW): Verdict.UPDATES}))
    old = heart.learn(OLD, subject="deploy", learned_at=MAY).memory

    learned = heart.learn(NEW, subject="The Deploy", learned_at=JUNE)

    assert learned.action == "superseded"
    assert (learned.memory.content, learned.memory.state) == (NEW, "active")
    assert heart.get(old.id).content == OLD
    assert (heart.get(old.id).state, heart.get(old.id).superseded_by) == ("superseded", learned.memory.id)


def test_an_older_statement_that_arrives_late_leaves_the_newer_in_force(database: Database) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(NEW, OLD): Verdict.UPDATES}))
    newer = heart.learn(NEW, learned_at=JUNE).memory

    late = heart.learn(OLD, learned_at=MAY)

    assert late.action == "stored"
    assert (late.memory.state, late.memory.superseded_by) == ("superseded", newer.id)
    assert heart.get(newer.id) == newer


def test_a_value_that_comes_back_is_in_force_again(database: Database) -> None:
    verdicts = {(OLD, NEW): Verdict.UPDATES, (NEW, OLD): Verdict.UPDATES}
    heart = opened(database, 0.9, ScriptedJudge(verdicts))
    heart.learn(OLD)
    heart.learn(NEW)

    back = heart.learn(OLD)

    assert (back.action, back.memory.content, back.memory.state) == ("superseded", OLD, "active")
    assert heart.count() == {"active": 1, "superseded": 2}


def test_what_is_trusted_less_supersedes_nothing(database: Database) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.UPDATES}))
    trusted = heart.learn(OLD, trust=90).memory

    learned = heart.learn(NEW, trust=10)

    assert learned.action == "stored"
    assert "trusted more" in learned.reason
    kept = heart.get(trusted.id)
    assert (kept.state, kept.content, kept.trust, kept.contradiction_status) == ("active", OLD, 90, "open")
    assert [near.fact.id for near in learned.contradicts] == [trusted.id]


def test_facts_of_different_scopes_are_never_matched(database: Database) -> None:
    heart = opened(database, 1.0)
    heart.learn(OLD)

    actions = [
        heart.learn(OLD, scope="project", project_id="p1").action,
        heart.learn(OLD, scope="project", project_id="p2").action,
        heart.learn(OLD, user_id="u1").action,
    ]

    assert actions == ["stored"] * 3


def test_a_superseded_fact_is_not_confirmed_by_its_own_words(database: Database) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.UPDATES}))
    old = heart.learn(OLD).memory
    heart.learn(NEW)

    assert heart.learn(OLD).memory.id != old.id
    assert heart.get(old.id).confirmation_count == 0


@pytest.mark.parametrize(
    "judge",
    [
        FailingJudge(Unavailable("the judge is down")),
        FailingJudge(RuntimeError("a bug of the judge")),
        ForgetfulJudge(),
    ],
)
def test_a_judge_that_fails_never_loses_the_memory(database: Database, judge: Any) -> None:
    heart = opened(database, 0.9, judge)
    heart.learn(OLD)

    learned = heart.learn(NEW)

    assert learned.action == "stored"
    assert heart.count() == {"active": 2}


def test_a_judge_that_is_slow_never_loses_the_memory_nor_the_deadline(database: Database) -> None:
    heart = opened(database, 0.9, SlowJudge())
    heart.learn(OLD)

    took_s = stopwatch()
    learned = heart.learn(NEW, deadline_s=1.0)

    assert learned.action == "stored"
    assert took_s() < 1.5


def test_what_was_said_about_a_fact_is_kept(database: Database, owner: psycopg.Connection) -> None:
    heart = opened(database, 0.1)
    details: FactDetails = {
        "subject": "deploys", "category": "habit", "tags": ["ops", "week"], "context": "We spoke of releases.",
        "confidence": 0.25, "source": "chat", "source_kind": "user", "trust": 70, "is_pinned": True, "learned_at": MAY,
        "valid_from": "2026-01-01T00:00:00Z", "valid_to": JUNE, "encoded_frame": "decision",
        "encoded_censors": ["no-friday-deploys"], "scope": "project", "user_id": "u", "project_id": "p",
    }  # fmt: skip

    fact = heart.get(heart.learn(OLD, **details).memory.id)

    for name in set(details) - {"context", "valid_from"}:
        assert getattr(fact, name) == details[name], name  # type: ignore[literal-required]
    assert fact.valid_from == datetime(2026, 1, 1, tzinfo=UTC)
    context = owner.execute(
        "select context, context_embedding is not null, embedding_space_id from heart.facts"
    ).fetchone()
    assert context == ("We spoke of releases.", True, "words-64")


def test_a_fact_without_frame_and_censors_is_neutral(database: Database, owner: psycopg.Connection) -> None:
    fact = opened(database, 0.1).learn(OLD).memory

    stored = owner.execute(
        "select encoded_frame, encoded_censors, context, context_embedding from heart.facts"
    ).fetchone()

    assert (fact.encoded_frame, fact.encoded_censors) == (None, None)
    assert stored == (None, None, None, None)


def test_learned_at_is_now_unless_it_was_said_earlier(database: Database) -> None:
    heart = opened(database, 0.1)

    now, then = heart.learn(OLD).memory, heart.learn(NEW, learned_at="2026-05-01T02:00:00+02:00").memory

    assert abs(now.learned_at - datetime.now(UTC)) < timedelta(seconds=30)
    assert then.learned_at == MAY


def test_every_change_leaves_one_event_with_what_was_before(database: Database, owner: psycopg.Connection) -> None:
    heart = opened(database, 0.9, ScriptedJudge({(OLD, NEW): Verdict.UPDATES}))
    heart.learn(OLD, learned_at=MAY)
    heart.learn(OLD, learned_at=MAY)
    new = heart.learn(NEW, learned_at=JUNE).memory

    told = events(owner)
    before, after, effective_at = owner.execute(
        "select before, after, effective_at from lifecycle.events where action = 'superseded'"
    ).fetchone() or (None, None, None)

    assert told == [
        ("learned", "new", "active", 0, 1, "agent"),
        ("confirmed", "active", "active", 1, 2, "agent"),
        ("learned", "new", "active", 0, 1, "agent"),
        ("superseded", "active", "superseded", 2, 3, "agent"),
    ]
    assert before == {"state": "active", "superseded_by": None, "superseded_at": None, "succession": None}
    assert (after["state"], after["superseded_by"]) == ("superseded", str(new.id))
    assert effective_at == JUNE


def test_each_learned_fact_is_announced_once(database: Database, owner: psycopg.Connection) -> None:
    heart = opened(database, 0.99)
    fact = heart.learn(OLD, subject="deploys").memory
    heart.learn(NEW)

    announced = owner.execute("select agent_id, name, memory_id, payload from heart.outbox").fetchall()

    assert announced == [("aria", "fact_learned", fact.id, {"content": OLD, "subject": "deploys"})]


def test_a_fact_of_another_agent_is_not_found(database: Database) -> None:
    aria = opened(database, 1.0)
    ben = Heart.open("ben", database=database, embedder=aria.agent.embedder, judge=ScriptedJudge())
    fact = aria.learn(OLD).memory

    with pytest.raises(NotFound, match=str(fact.id)):
        ben.get(fact.id)


def test_one_statement_of_two_agents_is_two_facts(database: Database) -> None:
    aria = opened(database, 1.0)
    ben = Heart.open("ben", database=database, embedder=aria.agent.embedder, judge=ScriptedJudge())
    aria.learn(OLD)

    assert ben.learn(OLD).action == "stored"
    assert (aria.count(), ben.count()) == ({"active": 1}, {"active": 1})


def test_a_small_agent_among_large_ones_finds_its_own_repeat(database: Database) -> None:
    """The vector index holds everybody's vectors, and loses some when many of them are equal."""
    others = {f"Remark {number}": 1.0 for number in range(200)}
    embedder = TableEmbedder({OLD: 0.99, NEW: 0.99} | others)
    crowd = Heart.open("crowd", database=database, embedder=embedder, judge=ScriptedJudge())
    aria = Heart.open("aria", database=database, embedder=embedder, judge=ScriptedJudge())
    crowd.learn_deferred([(content, {}) for content in others], deadline_s=60)
    aria.learn(OLD)

    assert aria.learn(NEW).action == "confirmed"


@pytest.mark.parametrize("is_counted", [False, True])
def test_an_agent_too_large_to_compare_all_is_searched_by_the_index(
    database: Database, monkeypatch: pytest.MonkeyPatch, *, is_counted: bool
) -> None:
    monkeypatch.setattr(store, "EXACT_LIMIT", 0)
    heart = opened(database, 0.99)
    heart.learn("Quite another statement")
    heart.learn(OLD)
    if is_counted:
        with database.transaction("aria") as connection:
            refresh_statistics(connection, "aria")

    learned = heart.learn(NEW)

    assert learned.action == "confirmed"
    assert learned.match is not None
    assert learned.match.similarity == pytest.approx(0.99, abs=1e-6)


def test_an_agent_stays_in_the_embedding_space_it_was_made_in(database: Database, heart: Heart) -> None:
    other = EmbeddingSpace(id="table-16", model="table", weights_sha256="", dimensions=16)

    with pytest.raises(InvalidInput, match=r"'aria'.*'words-64'.*'table-16'"):
        Heart.open("aria", database=database, embedder=TableEmbedder({}, other), judge=heart.agent.judge)


def test_closing_a_heart_leaves_a_borrowed_database_open(database: Database) -> None:
    with opened(database, 1.0) as heart:
        heart.learn(OLD)

    assert opened(database, 1.0).count() == {"active": 1}


def test_a_statement_about_facts_is_put_together_once() -> None:
    first, again = (
        store.nearest_statement(WordEmbedder.space, 20, 10_000, has_user=False, has_project=False) for _ in range(2)
    )

    assert first is again


def test_the_search_for_neighbours_is_planned_once_and_serves_every_statement(database_url: str) -> None:
    with closing(Database(database_url, max_connections=1)) as alone:
        heart = opened(alone, 0.05)
        for content in (OLD, NEW, "Quite another statement"):
            heart.learn(content)

        with alone.transaction(heart.agent.id) as connection:
            planned = connection.execute(
                """select sum(generic_plans), sum(custom_plans) from pg_prepared_statements
                   where statement like '%same_slot%'"""
            ).fetchall()

    assert planned == [(3, 0)]
