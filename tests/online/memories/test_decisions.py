"""Decisions: recorded once, resolved once, found again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.database.connection import Database
from nous_online.heart import Heart

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def announced(owner: psycopg.Connection) -> list[str]:
    return [row[0] for row in owner.execute("select name from heart.outbox order by id").fetchall()]


def test_a_decision_is_kept_with_everything_said_about_it(heart: Heart) -> None:
    recorded = heart.record_decision(
        "Keep one store",
        rationale="Two stores drift apart",
        confidence=0.8,
        files=["src/store.py"],
        tags=["storage"],
        session_id="s",
        decided_at=MAY,
    )

    kept = heart.get_decision(recorded.id)

    assert (kept.title, kept.rationale, kept.confidence, kept.status) == (
        "Keep one store",
        "Two stores drift apart",
        pytest.approx(0.8),
        "pending",
    )
    assert (kept.files, kept.tags, kept.session_id, kept.decided_at) == (["src/store.py"], ["storage"], "s", MAY)


def test_recording_announces_the_decision(heart: Heart, owner: psycopg.Connection) -> None:
    decision = heart.record_decision("Keep one store")

    row = owner.execute("select name, memory_id, payload->>'title' from heart.outbox").fetchone()
    assert row == ("decision_recorded", decision.id, "Keep one store")


def test_a_retry_with_the_same_key_records_nothing_twice(heart: Heart, owner: psycopg.Connection) -> None:
    first = heart.record_decision("Keep one store", idempotency_key="k")

    again = heart.record_decision("Keep one store", idempotency_key="k")

    assert again.id == first.id
    assert announced(owner) == ["decision_recorded"]


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "Keep two stores"},
        {"rationale": "They drift"},
        {"confidence": 0.5},
        {"files": ["b.py"]},
        {"tags": ["x"]},
        {"session_id": "s"},
        {"decided_at": MAY},
    ],
)
def test_the_same_key_with_anything_else_said_is_a_conflict(heart: Heart, changed: dict[str, Any]) -> None:
    heart.record_decision("Keep one store", files=["a.py"], idempotency_key="k")

    with pytest.raises(Conflict, match="'k' was used for something else"):
        heart.record_decision(**{"title": "Keep one store", "files": ["a.py"], "idempotency_key": "k", **changed})


def test_the_key_of_another_verb_is_a_conflict(heart: Heart) -> None:
    heart.learn("Keep one store\n", idempotency_key="learned")
    heart.record_decision("Keep one store", idempotency_key="recorded")

    with pytest.raises(Conflict, match="'learned' was used"):
        heart.record_decision("Keep one store", idempotency_key="learned")
    with pytest.raises(Conflict, match="'recorded' was used"):
        heart.learn("Keep one store", idempotency_key="recorded")


def test_many_retries_at_once_record_one_decision(heart: Heart, owner: psycopg.Connection) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = {each.id for each in pool.map(lambda _: heart.record_decision("D", idempotency_key="k"), range(4))}

    assert len(ids) == 1
    assert owner.execute("select count(*) from brain.decisions").fetchone() == (1,)


@pytest.mark.parametrize("status", ["succeeded", "failed", "abandoned"])
def test_a_decision_is_resolved_with_its_outcome(heart: Heart, status: Any) -> None:
    decision = heart.record_decision("Keep one store")

    heart.resolve_decision(decision.id, status=status, outcome="so it went", at=MAY)

    resolved = heart.get_decision(decision.id)
    assert (resolved.status, resolved.outcome, resolved.resolved_at) == (status, "so it went", MAY)


def test_only_a_failure_is_announced_when_it_is_resolved(heart: Heart, owner: psycopg.Connection) -> None:
    for status in ("succeeded", "failed", "abandoned"):
        heart.resolve_decision(heart.record_decision(f"It {status}").id, status=status)

    assert [name for name in announced(owner) if name != "decision_recorded"] == ["decision_failed"]


def test_resolving_twice_alike_is_one_answer_and_otherwise_a_conflict(heart: Heart, owner: psycopg.Connection) -> None:
    decision = heart.record_decision("Keep one store")
    first = heart.resolve_decision(decision.id, status="failed", outcome="they drifted")

    again = heart.resolve_decision(decision.id, status="failed", outcome="they drifted")
    with_less_said = heart.resolve_decision(decision.id, status="failed")

    assert again == with_less_said == first
    for status, outcome in (("succeeded", "they drifted"), ("failed", "said otherwise")):
        with pytest.raises(Conflict, match="'failed' already"):
            heart.resolve_decision(decision.id, status=status, outcome=outcome)
    assert announced(owner).count("decision_failed") == 1


def test_two_who_resolve_at_once_end_with_one_outcome(heart: Heart) -> None:
    decision = heart.record_decision("Keep one store")

    def attempt(status: Any) -> str:
        try:
            return heart.resolve_decision(decision.id, status=status).status
        except Conflict:
            return "conflict"

    with ThreadPoolExecutor(2) as pool:
        outcomes = sorted(pool.map(attempt, ["succeeded", "abandoned"]))

    assert "conflict" in outcomes
    assert heart.get_decision(decision.id).status in outcomes


def test_decisions_are_found_by_what_they_are_about_the_latest_first(heart: Heart) -> None:
    old, *_ = [
        heart.record_decision(title, decided_at=moment, files=files, tags=tags)
        for title, moment, files, tags in (
            ("old", "2026-05-01T00:00:00Z", ["a.py"], ["x"]),
            ("new", "2026-05-02T00:00:00Z", ["a.py", "b.py"], ["x", "y"]),
            ("other", "2026-05-03T00:00:00Z", [], []),
        )
    ]
    heart.resolve_decision(old.id, status="succeeded")

    assert [each.title for each in heart.decisions()] == ["other", "new", "old"]
    assert [each.title for each in heart.decisions(file="a.py")] == ["new", "old"]
    assert [each.title for each in heart.decisions(file="a.py", status="pending")] == ["new"]
    assert [each.title for each in heart.decisions(tag="y")] == ["new"]
    assert [each.title for each in heart.decisions(limit=1)] == ["other"]
    assert heart.decisions(session_id="s") == []
    assert heart.decisions(episode_id=uuid4()) == []


@pytest.mark.parametrize("stored", ["a/b.py", "./a//b.py", "a\\b.py", "a/./b.py"])
@pytest.mark.parametrize("asked", ["a/b.py", "./a/b.py", ".\\a\\b.py"])
def test_a_decision_is_found_by_its_file_however_either_is_spelled(heart: Heart, stored: str, asked: str) -> None:
    heart.record_decision("Keep one store", files=[stored])
    heart.record_decision("Keep two", files=["/a/b.py", "b.py"])

    assert [each.title for each in heart.decisions(file=asked)] == ["Keep one store"]


def test_decisions_of_another_agent_are_not_there(heart: Heart, database: Database, embedder: Any, judge: Any) -> None:
    decision = Heart.open(
        "ben", database=database, embedder=embedder, judge=judge, works_in_background=False
    ).record_decision("Ben's own")

    assert heart.decisions() == []
    with pytest.raises(NotFound, match=str(decision.id)):
        heart.get_decision(decision.id)
    with pytest.raises(NotFound):
        heart.resolve_decision(decision.id, status="failed")


@pytest.mark.parametrize(
    "details",
    [
        {"title": ""},
        {"title": "x" * 3000},
        {"confidence": 1.5},
        {"decided_at": "on Friday"},
        {"files": "a.py"},
        {"why": "because"},
        {"episode_id": "abc"},
    ],
)
def test_what_cannot_be_recorded_is_refused(heart: Heart, owner: psycopg.Connection, details: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        heart.record_decision(**{"title": "Keep one store", **details})

    assert announced(owner) == []


def test_a_decision_of_an_unknown_episode_is_not_recorded(heart: Heart, owner: psycopg.Connection) -> None:
    with pytest.raises(NotFound, match="no episode"):
        heart.record_decision("Keep one store", episode_id=uuid4())

    assert announced(owner) == []


@pytest.mark.parametrize("wanted", [{"status": "done"}, {"limit": 0}, {"limit": "all"}, {"files": "a.py"}])
def test_a_filter_that_makes_no_sense_is_refused(heart: Heart, wanted: Any) -> None:
    with pytest.raises(InvalidInput):
        heart.decisions(**wanted)


def test_a_decision_becomes_nothing_but_what_is_known(heart: Heart) -> None:
    decision = heart.record_decision("Keep one store")

    with pytest.raises(InvalidInput, match="status"):
        heart.resolve_decision(decision.id, status="pending")  # pyright: ignore[reportArgumentType]


def test_a_decision_that_cannot_be_read_again_is_returned_as_it_was_recorded(
    heart: Heart, owner: psycopg.Connection
) -> None:
    """Whoever holds the cursor of the reactions keeps them from linking, until the time of the call is up."""
    heart.start_episode("Choosing a store")
    heart.record_decision("The cursor is there now")
    with owner.transaction():
        owner.execute("select from heart.outbox_cursors for update")
        recorded = heart.record_decision("Keep one store", deadline_s=1)

    heart.deliver()

    assert recorded.episode_id is None
    assert heart.get_decision(recorded.id).episode_id is not None


def test_decisions_taken_elsewhere_are_named_as_they_are_there(heart: Heart, judge: Any) -> None:
    episode = heart.record_episode(
        "Decided on Postgres and pgvector.", decision_ids=["abc123", "def456", "abc123"], outcome="success"
    )
    fact = heart.learn("pgvector has two kinds of index", source_decision_id="abc123").memory
    censor = heart.add_censor("pushing directly to main", "use a branch", learned_from_decision="abc123")
    procedure = heart.store_procedure("Decide", steps=["look", "choose"], related_decision_ids=["def456"])
    known = uuid4()
    told = heart.update_episode(heart.start_episode().id, decision_ids=["0" * 32, str(known)])

    assert heart.get_episode(episode.id).decision_ids == ["abc123", "def456"]
    assert heart.get_fact(fact.id).source_decision_id == "abc123"
    assert [each.decision_id for each in heart.statements(fact.id)] == ["abc123"]
    assert heart.get_censor(censor.id).learned_from_decision_id == "abc123"
    assert heart.get_procedure(procedure.id).related_decision_ids == ["def456"]
    assert told.decision_ids == ["0" * 32, known]
    heart.undo(told.id, reason="a slip")
    assert heart.get_episode(told.id).decision_ids == []


def test_a_decision_is_found_and_resolved_by_the_reference_its_agent_gave_it(heart: Heart) -> None:
    episode = heart.start_episode("Storage")
    recorded = heart.record_decision("Keep one store", reference="abc123")

    assert recorded.reference == "abc123"
    assert heart.get_decision("abc123").id == recorded.id
    assert heart.get_episode(episode.id).decision_ids == ["abc123"]
    with pytest.raises(Conflict, match="has the reference 'abc123' already"):
        heart.record_decision("Keep two stores", reference="abc123")
    with pytest.raises(NotFound, match="no decision xyz"):
        heart.resolve_decision("xyz", status="failed")
    for wrong in (str(uuid4()), "x" * 201):
        with pytest.raises(InvalidInput, match="reference"):
            heart.record_decision("Keep two stores", reference=wrong)
    assert heart.resolve_decision("abc123", status="failed", outcome="It broke").id == recorded.id
    (warning,) = heart.list_censors()
    assert warning.learned_from_decision_id == "abc123"


def test_an_episode_that_names_a_decision_by_its_reference_is_linked_to_it(heart: Heart) -> None:
    recorded = heart.record_decision("Keep one store", reference="abc123", decided_at=MAY)
    episode = heart.record_episode("We kept one store after all.", decision_ids=["abc123", "elsewhere"])

    assert heart.work().completed == 1

    assert heart.get_decision(recorded.id).episode_id == episode.id
    assert heart.get_episode(episode.id).decision_ids == ["abc123", "elsewhere"]
