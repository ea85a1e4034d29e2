"""Undoing a ruling leaves facts and contradictions as they were before it, from whichever side it is undone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of

from nous_online.core.domain import Fact
from nous_online.core.errors import Forbidden, NotFound, Refused
from nous_online.core.rights import WITHOUT_KEY
from nous_online.database.changes import Cause
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import contradictions
from nous_online.memories.contradictions import Contradiction, Resolution

MAY = datetime(2026, 5, 1, tzinfo=UTC)
CAUSE = Cause("agent", "contradicted", "they can't both be so", MAY)


@pytest.fixture
def pair(heart: Heart) -> tuple[Fact, Fact]:
    """Two active facts that contradict each other."""
    earlier, later = (heart.learn(text).memory for text in ("Ana sits in Lima", "The desk of Ana stands in Oslo"))
    open_between(heart, earlier.id, later.id)
    return earlier, later


def open_between(heart: Heart, *ids: UUID) -> None:
    one, other = (heart.get_fact(each) for each in ids)
    with heart.agent.database.transaction("aria") as connection:
        assert contradictions.open_between(connection, "aria", one, other, judgement={}, cause=CAUSE)


def between(heart: Heart, owner: psycopg.Connection, pair: tuple[Fact, Fact]) -> Contradiction:
    """Return the contradiction of two facts, settled or not."""
    row = owner.execute("select id from heart.contradictions where memory_a = any(%(ids)s) and memory_b = any(%(ids)s)",
                        {"ids": [each.id for each in pair]}).fetchone()  # fmt: skip
    assert row is not None
    with heart.agent.database.transaction("aria") as connection:
        return contradictions.lock_contradiction(connection, "aria", row[0])


def rows(owner: psycopg.Connection) -> list[dict[str, Any]]:
    """Every fact and contradiction, but for the columns that count versions."""
    found = owner.execute(
        """
        select to_jsonb(f) - array['row_version', 'written_xid'] from heart.facts f
        union all select to_jsonb(c) - array['row_version', 'written_xid'] from heart.contradictions c
        """
    )
    return sorted((row[0] for row in found), key=lambda row: row["id"])


def both_active(heart: Heart, pair: tuple[Fact, Fact]) -> None:
    """Leave both as they are."""


def one_gave_way(heart: Heart, pair: tuple[Fact, Fact]) -> None:
    heart.supersede_fact(pair[0].id, pair[1].id)


def each_in_another(heart: Heart, pair: tuple[Fact, Fact]) -> None:
    for fact in pair:
        open_between(heart, fact.id, heart.learn(f"Not so: {fact.content}").memory.id)


def rule(heart: Heart, contradiction_id: UUID, pair: tuple[Fact, Fact], keep: Resolution | int) -> None:
    """Rule on a contradiction, or, for a number, keep that side."""
    if isinstance(keep, int):
        heart.resolve_contradiction(contradiction_id, keep=pair[keep].id)
    else:
        heart.resolve_contradiction(contradiction_id, keep)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("before", [both_active, one_gave_way, each_in_another])
@pytest.mark.parametrize("keep", ["both_valid", "same", 0, 1])
def test_undoing_a_ruling_restores_both_facts_and_the_contradiction(
    heart: Heart,
    owner: psycopg.Connection,
    pair,
    keep: Resolution | int,
    before: Callable[[Heart, tuple[Fact, Fact]], None],
    side: int,
) -> None:
    before(heart, pair)
    found, then = between(heart, owner, pair), rows(owner)
    rule(heart, found.id, pair, keep)

    undone = heart.undo(pair[side].id, reason="asked again")
    if "restored" in {each.action for each in heart.history(pair[1 - side].id)}:
        assert heart.contradictions() == [found]  # what the ruling made active stays so, until that is undone
        heart.undo(pair[1 - side].id)

    assert undone.action in {"contradiction_resolved", "superseded", "restored", "absorbed"}
    assert rows(owner) == then
    assert [each.undoes for each in heart.history(pair[side].id) if each.undoes] != []


@pytest.mark.parametrize("before", [both_active, each_in_another])
@pytest.mark.parametrize("keep", ["both_valid", "same", 0, 1])
def test_a_ruling_is_undone_by_the_id_of_its_contradiction_whatever_was_done_since(
    heart: Heart,
    owner: psycopg.Connection,
    pair,
    keep: Resolution | int,
    before: Callable[[Heart, tuple[Fact, Fact]], None],
) -> None:
    before(heart, pair)
    found, then = between(heart, owner, pair), rows(owner)
    rule(heart, found.id, pair, keep)
    for fact in pair:
        heart.pin(fact.id)

    undone = heart.undo(found.id, reason="asked again")

    assert undone.action == "contradiction_resolved"
    assert [{**row, "is_pinned": False} if "is_pinned" in row else row for row in rows(owner)] == then
    assert between(heart, owner, pair).status == "open"
    with pytest.raises(Refused, match=f"contradiction {found.id} was not ruled on, .*; `nous resolve` decides it"):
        heart.undo(found.id)


def test_a_contradiction_nobody_ruled_on_says_what_settled_it_and_what_is_proposed(
    heart: Heart, owner: psycopg.Connection, pair
) -> None:
    found = between(heart, owner, pair)
    heart.supersede_fact(pair[0].id, pair[1].id)
    with pytest.raises(Refused, match=f"left recall since: `nous undo {pair[0].id}` brings that back"):
        heart.undo(found.id)
    heart.undo(pair[0].id)
    heart.pin(pair[0].id)
    heart.limited_to(WITHOUT_KEY).resolve_contradiction(found.id, keep=pair[1].id)

    with pytest.raises(Refused, match="a ruling on it is proposed, which `nous resolve --reject` forgets"):
        heart.undo(found.id)
    with pytest.raises(NotFound, match="has no memory"):
        heart.undo(UUID(int=7))


def test_below_operator_a_ruling_is_not_undone_by_its_contradiction_where_a_side_is_pinned(
    heart: Heart, owner: psycopg.Connection, pair
) -> None:
    found = between(heart, owner, pair)
    heart.resolve_contradiction(found.id, keep=pair[0].id)
    heart.pin(pair[0].id)

    with pytest.raises(Forbidden, match="pinned"):
        heart.limited_to(WITHOUT_KEY).undo(found.id)

    assert between(heart, owner, pair).status == "resolved"


def test_a_ruling_is_undone_once_and_then_what_was_before_it(heart: Heart, owner: psycopg.Connection, pair) -> None:
    found = between(heart, owner, pair)
    heart.resolve_contradiction(found.id, "both_valid", note="two desks")

    undone = [heart.undo(fact.id, reason="not so") for fact in pair]

    assert [each.action for each in undone] == ["contradiction_resolved", "learned"]


def test_what_was_done_since_a_ruling_is_undone_first_and_stays_where_the_other_side_is_undone(
    heart: Heart, owner: psycopg.Connection, pair
) -> None:
    found = between(heart, owner, pair)
    heart.resolve_contradiction(found.id, "both_valid")
    heart.update(pair[0].id, tags=["desk"])

    assert heart.undo(pair[0].id).action == "changed"
    heart.update(pair[0].id, tags=["desk"])
    heart.undo(pair[1].id)

    assert heart.contradictions() == [found]
    assert heart.get_fact(pair[0].id).tags == ["desk"]


def test_of_several_rulings_of_one_moment_the_last_alone_is_undone(
    heart: Heart, owner: psycopg.Connection, pair
) -> None:
    each_in_another(heart, pair)
    first = between(heart, owner, pair)
    (second,) = (each for each in heart.contradictions() if pair[0].id in {each.memory_a, each.memory_b} - {pair[1].id}
                 and each.id != first.id)  # fmt: skip
    for found in (first, second):
        heart.resolve_contradiction(found.id, "both_valid", at=MAY)

    heart.undo(pair[0].id)
    after_one = {each.id for each in heart.contradictions(status="resolved")}
    heart.undo(pair[0].id)

    assert after_one == {first.id}
    assert heart.contradictions(status="resolved") == []


def test_below_operator_undoing_a_ruling_retires_no_pinned_fact(heart: Heart, owner: psycopg.Connection, pair) -> None:
    one_gave_way(heart, pair)
    heart.pin(pair[0].id)
    heart.resolve_contradiction(between(heart, owner, pair).id, "both_valid")
    agent = heart.limited_to(WITHOUT_KEY)

    for side in pair:  # a ruling has both sides, whichever it is undone by
        with pytest.raises(Forbidden, match="is pinned"):
            agent.undo(side.id)

    assert heart.get_fact(pair[0].id).state == "active"


@pytest.mark.parametrize("side", [0, 1])
def test_rest_asks_again_once_a_ruling_that_both_hold_is_undone(
    heart: Heart, database: Database, database_url: str, embedder, pair, side: int
) -> None:
    (found,) = heart.contradictions()
    heart.resolve_contradiction(found.id, "both_valid", note="two desks")

    with client_of(app_over(database_url, embedder), bearer(key_of(database, "aria"))) as client:
        answer = client.post(f"/memories/{pair[side].id}/undo", json={"reason": "one desk"}).json()
        asked = client.get("/contradictions").json()

    assert answer["action"] == "contradiction_resolved"
    assert [each["id"] for each in asked["contradictions"]] == [str(found.id)]
    assert heart.contradictions() == [found]
    assert [heart.get(fact.id).state for fact in pair] == ["active", "active"]
