"""Doubts as they are listed: both facts as of one moment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge

from nous_online.core.domain import Fact
from nous_online.heart import Heart

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
