"""The one write path for memories that exist."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from nous_online.core.domain import FACT, VECTORS, Fact
from nous_online.core.errors import Conflict, InvalidInput, Refused
from nous_online.database.changes import Cause, UsageDelta, Version, add_usage, change_memory, lock_memories
from nous_online.database.connection import Database
from nous_online.heart import Heart

MAY = datetime(2026, 5, 1, tzinfo=UTC)
CAUSE = Cause("operator", "changed", "a test", effective_at=MAY)


@pytest.fixture
def fact(heart: Heart) -> Fact:
    return heart.learn("The api is deployed on Fridays", subject="deploys", tags=["ops"]).memory


def changed(database: Database, fact: Fact, values: dict[str, Any], *, version: int | None = None) -> Fact:
    with database.transaction("aria") as connection:
        return change_memory(
            connection, "aria", Version(FACT, fact.id, version or fact.row_version), values, cause=CAUSE
        )


def test_a_change_keeps_what_was_before_beside_what_became_of_it(
    database: Database, fact: Fact, owner: psycopg.Connection
) -> None:
    values = {
        "tags": ["ops", "week"],
        "rank_weight": 2.0,
        "valid_to": "2026-06-01T00:00:00+00:00",
        "summary": "Fridays",
    }

    after = changed(database, fact, values)

    event = owner.execute(
        "select before, after, actor, action, reason, effective_at, version_before, version_after "
        "from lifecycle.events where action = 'changed'"
    ).fetchone()
    assert (after.tags, after.rank_weight, after.row_version) == (["ops", "week"], 2.0, 2)
    assert event == (
        {"tags": ["ops"], "rank_weight": 1, "valid_to": None, "summary": None},
        values,
        "operator",
        "changed",
        "a test",
        MAY,
        1,
        2,
    )


def test_a_change_leaves_every_other_column_alone(database: Database, fact: Fact) -> None:
    after = changed(database, fact, {"confidence": 0.5})

    different = {name for name in vars(fact) if getattr(fact, name) != getattr(after, name)}
    assert different == {"confidence", "row_version"}


def test_taking_a_change_back_restores_the_row(database: Database, fact: Fact, owner: psycopg.Connection) -> None:
    frozen = owner.execute("select to_jsonb(f) - 'row_version' - 'written_xid' from heart.facts f").fetchone()
    after = changed(database, fact, {"state": "archived", "archived_at": "2026-06-01T00:00:00Z", "tags": []})
    (before,) = owner.execute("select before from lifecycle.events where action = 'changed'").fetchone() or ({},)

    changed(database, after, before)

    restored = owner.execute("select to_jsonb(f) - 'row_version' - 'written_xid' from heart.facts f").fetchone()
    assert restored == frozen


def test_a_change_of_another_version_is_a_conflict_and_changes_nothing(
    database: Database, fact: Fact, heart: Heart, owner: psycopg.Connection
) -> None:
    with pytest.raises(Conflict, match="no longer at version 7"):
        changed(database, fact, {"confidence": 0.5}, version=7)

    assert heart.get(fact.id) == fact
    assert owner.execute("select count(*) from lifecycle.events").fetchone() == (1,)


def test_two_changes_of_one_version_at_once_end_with_one_of_them(database: Database, fact: Fact) -> None:
    def attempt(confidence: float) -> str:
        try:
            changed(database, fact, {"confidence": confidence})
        except Conflict:
            return "conflict"
        return "changed"

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(attempt, [0.1, 0.2, 0.3, 0.4]))

    assert outcomes == ["changed", "conflict", "conflict", "conflict"]


@pytest.mark.parametrize(
    "column", ["content", "learned_at", "agent_id", "written_xid", "encoded_frame", "confidnece", "id"]
)
def test_a_column_that_never_changes_is_refused_by_name(
    database: Database, fact: Fact, owner: psycopg.Connection, column: str
) -> None:
    with pytest.raises(InvalidInput, match=f"'{column}' can't be changed"):
        changed(database, fact, {column: "x"})

    assert owner.execute("select count(*) from lifecycle.events").fetchone() == (1,)


def test_every_column_said_to_be_changeable_is_written(database: Database, heart: Heart, fact: Fact) -> None:
    """A column named in Python and forgotten in SQL would be a change that changes nothing, with an event."""
    other = heart.learn("Quite another statement").memory
    values: dict[str, Any] = {
        "subject": "s", "slot": "sl", "category": "c", "tags": ["t"], "confidence": 0.5, "summary": "su",
        "compressed": "co", "index_word": "i", "source": "so", "sources": ["a"], "trust": 7, "is_pinned": True,
        "last_confirmed_at": MAY.isoformat(), "confirmation_count": 3, "superseded_at": MAY.isoformat(),
        "superseded_by": str(other.id), "state": "superseded", "succession": "merged", "valid_from": MAY.isoformat(),
        "valid_to": MAY.isoformat(), "contradiction_status": "open", "scope": "project", "user_id": "u",
        "project_id": "p", "rank_weight": 2.0, "key": "k", "perhaps_replaces": [str(other.id)],
        "context": "around",
    }  # fmt: skip
    archived = {"state": "archived", "archived_at": MAY.isoformat(), "is_forgotten": True}

    first = changed(database, fact, values)
    with database.transaction("aria") as connection:
        row = connection.execute("select to_jsonb(f) from heart.facts f where id = %s", [fact.id]).fetchone()
    second = changed(database, first, archived)

    assert set(values) | set(archived) == FACT.changeable - VECTORS
    assert row is not None
    assert {name: row[0][name] for name in values} == values
    assert second.state == "archived"


@pytest.mark.parametrize(
    "values",
    [
        {"state": "superseded"},
        {"confidence": 2},
        {
            "superseded_by": str(UUID(int=9)),
            "superseded_at": "2026-01-01T00:00:00Z",
            "succession": "merged",
            "state": "superseded",
        },
        {"state": "quarantined", "archived_at": "2026-01-01T00:00:00Z"},
    ],
)
def test_what_the_schema_forbids_is_refused_whole(
    database: Database, fact: Fact, heart: Heart, values: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match="rule of the schema"):
        changed(database, fact, values)

    assert heart.get(fact.id) == fact


def test_a_value_of_the_wrong_kind_is_refused(database: Database, fact: Fact, heart: Heart) -> None:
    with pytest.raises(InvalidInput, match="can't hold"):
        changed(database, fact, {"valid_to": "some day"})

    assert heart.get(fact.id) == fact


def test_an_agent_cannot_change_the_fact_of_another(database: Database, fact: Fact) -> None:
    with database.transaction("ben") as connection, pytest.raises(Conflict):
        change_memory(connection, "aria", Version(FACT, fact.id, 1), {"confidence": 0.5}, cause=CAUSE)


def test_the_night_names_its_proposal(database_url: str, fact: Fact) -> None:
    night = Database(database_url, role="nous_night")
    cause = Cause("night", "merged", "a test", effective_at=MAY, night=date(2026, 5, 1))

    with pytest.raises(Refused, match="CheckViolation") as refused, night.transaction(None) as connection:
        change_memory(connection, "aria", Version(FACT, fact.id, 1), {"confidence": 0.5}, cause=cause)
    night.close()
    assert "a_night_names_its_proposal" in str(refused.value.__cause__)


def test_locking_returns_the_versions_of_what_exists(database: Database, heart: Heart, fact: Fact) -> None:
    changed(database, fact, {"confidence": 0.5})
    other = heart.learn("Quite another statement").memory

    with database.transaction("aria") as connection:
        found = lock_memories(connection, "aria", FACT, [other.id, uuid4(), fact.id])

    assert {memory.id: memory.row_version for memory in found} == {fact.id: 2, other.id: 1}


def test_usage_adds_up_whoever_adds_first_and_is_taken_back(
    database: Database, fact: Fact, owner: psycopg.Connection
) -> None:
    deltas = [
        UsageDelta(fact.id, "fact", retrieved_count=2, last_used_at=MAY),
        UsageDelta(fact.id, "fact", cited_count=1),
        UsageDelta(fact.id, "fact", retrieved_count=-1),
    ]

    for delta in deltas:
        with database.transaction("aria") as connection:
            add_usage(connection, "aria", [delta])

    counted = owner.execute(
        "select retrieved_count, cited_count, ignored_count, last_used_at from heart.usage"
    ).fetchone()
    assert counted == (1, 1, 0, MAY)
    assert owner.execute("select row_version from heart.facts").fetchone() == (1,)
