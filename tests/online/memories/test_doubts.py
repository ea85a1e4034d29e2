"""Doubts as they are listed: both facts as of one moment, and those that were decided with how and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from conftest import ScriptedJudge

from nous_online.core.domain import Fact
from nous_online.heart import Heart
from nous_online.interfaces.questions import settle_doubt
from nous_online.memories.contradictions import Resolution, Ruling

MAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def doubted(heart: Heart, judge: ScriptedJudge) -> tuple[Fact, Fact]:
    """Two active facts, of which the later perhaps replaces the earlier."""
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    later = heart.learn("Ana has the pager now").memory
    assert later.perhaps_replaces == [earlier.id]
    return earlier, later


def test_both_facts_are_read_as_of_one_moment(
    heart: Heart, doubted: tuple[Fact, Fact], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, changed = psycopg.Cursor.execute, list[Fact]()

    def execute(self: psycopg.Cursor, query: Any, *told: Any, **options: Any) -> psycopg.Cursor:
        answer = real(self, query, *told, **options)
        if not changed and "perhaps_replaces" in str(query):
            changed.append(doubted[0])
            heart.supersede_fact(doubted[0].id, doubted[1].id)
        return answer

    monkeypatch.setattr(psycopg.Cursor, "execute", execute)

    (found,) = heart.doubts()

    assert (found.earlier, found.later) == doubted
    assert heart.doubts() == []


def settled(heart: Heart) -> list[tuple[str | None, str | None, tuple[UUID, ...]]]:
    assert heart.doubts() == []
    return [
        (each.resolution, each.note, tuple(one.id for one in each.decided_on))
        for each in heart.doubts(status="resolved")
    ]


@pytest.mark.parametrize("resolution", ["b_wins", "a_wins", "both_valid", "same", "merged"])
def test_a_doubt_that_was_decided_is_listed_with_how_and_why_until_that_is_undone(
    heart: Heart, doubted: tuple[Fact, Fact], resolution: Resolution
) -> None:
    earlier, later = doubted
    into = heart.learn("Two take turns on call").memory.id if resolution == "merged" else None
    assert heart.doubts(status="resolved") == []

    settle_doubt(heart, later, Ruling(resolution, merged_into=into), why="asked Ana")

    ((how, why, decided_on),) = settled(heart)
    assert (how, why) == (resolution, "asked Ana")
    (found,) = heart.doubts(status=None)
    assert (found.earlier.id, found.later.id) == (earlier.id, later.id)
    assert found.resolved_at is not None
    for each in decided_on:
        heart.undo(each)
    assert heart.doubts(status="resolved") == []
    assert [(each.earlier.id, each.later.id) for each in heart.doubts()] == [(earlier.id, later.id)]


def test_what_was_decided_again_is_listed_once_and_what_gave_way_to_something_else_is_not(
    heart: Heart, doubted: tuple[Fact, Fact], judge: ScriptedJudge
) -> None:
    earlier, later = doubted
    heart.keep_both(later.id, earlier.id, reason="two pagers")
    heart.undo(later.id)
    heart.keep_both(later.id, earlier.id, reason="three pagers")
    other = heart.learn("Cid carries the spare pager by now").memory
    judge.change = 0.0
    for each in other.perhaps_replaces:
        heart.supersede_fact(each, heart.learn(f"Nobody is on call, not even {each}").memory.id)

    assert [each[:2] for each in settled(heart)] == [("both_valid", "three pagers")]
