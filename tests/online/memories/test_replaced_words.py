"""What takes the place of a fact by hand, or by the key of an import, is found by the words of that fact too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from conftest import WordEmbedder

from nous_online.core.domain import Fact
from nous_online.heart import Heart
from nous_online.memories.erasure import Part, erase_some

FERRY, BOAT, PUNT = "The old ferry crosses at noon", "Jo rows people over now", "Kim poles a punt instead"
ASKED = "old ferry at noon"


def words_of(owner: psycopg.Connection, fact: Fact) -> tuple[Any, ...] | None:
    query = "select context, context_embedding::text from heart.facts where id = %s"
    return owner.execute(query, [fact.id]).fetchone()


def replaced(heart: Heart, *contents: str, by: str) -> tuple[list[Fact], Fact]:
    """Have one fact take the place of others by hand, one after the other."""
    old, new = [heart.learn(each).memory for each in contents], heart.learn(by, source="the pier").memory
    for each in old:
        heart.supersede_fact(each.id, new.id)
    return old, new


def test_what_replaces_a_fact_by_hand_is_found_by_it_until_that_is_undone(
    heart: Heart, owner: psycopg.Connection
) -> None:
    old, new = heart.learn(FERRY).memory, heart.learn(BOAT, context="said by Jo").memory
    before = words_of(owner, new)

    heart.supersede_fact(old.id, new.id)
    found, words = [each.id for each in heart.recall(ASKED)], words_of(owner, new)
    heart.undo(old.id)

    assert found == [new.id]
    assert words is not None
    assert words[0] == f"said by Jo\n{FERRY}"
    assert words_of(owner, new) == before
    assert heart.get_fact(old.id).state == "active"


def test_undoing_one_of_two_leaves_the_words_of_the_other(heart: Heart, owner: psycopg.Connection) -> None:
    (ferry, boat), punt = replaced(heart, FERRY, BOAT, by=PUNT)

    heart.undo(ferry.id)

    assert words_of(owner, punt) == (BOAT, None)
    assert (heart.get_fact(ferry.id).state, heart.get_fact(boat.id).state) == ("active", "superseded")


@pytest.mark.parametrize("is_source", [True, False])
def test_what_inherited_words_can_be_taken_back_itself(
    heart: Heart, owner: psycopg.Connection, *, is_source: bool
) -> None:
    (ferry, boat), punt = replaced(heart, FERRY, BOAT, by=PUNT)

    if is_source:
        assert heart.undo_source("the pier").undone == (punt.id,)
    else:
        heart.undo(punt.id)

    assert [heart.get_fact(each.id).state for each in (ferry, boat, punt)] == ["active", "active", "archived"]
    assert words_of(owner, punt) == (None, None)


def test_erasing_what_was_replaced_by_hand_leaves_no_word_of_it(
    heart: Heart, owner: psycopg.Connection, database_url: str
) -> None:
    (ferry,), boat = replaced(heart, FERRY, by=BOAT)

    erase_some(
        database_url, "aria", Part((ferry.id,)), reason="asked", erasers=(), embedder_of=lambda _: WordEmbedder()
    )

    assert words_of(owner, boat) == (None, None)
    left = owner.execute("select coalesce(string_agg(after::text || before::text, ''), '') from lifecycle.events")
    assert "ferry" not in str(left.fetchall())


def test_what_says_the_same_by_hand_inherits_nothing(heart: Heart, owner: psycopg.Connection) -> None:
    old, new = heart.learn(FERRY).memory, heart.learn(BOAT).memory

    heart.supersede_fact(old.id, new.id, is_same=True)

    assert words_of(owner, new) == (None, None)


def test_an_imported_value_of_a_key_is_found_by_the_one_before_as_a_learned_one_is(
    heart: Heart, owner: psycopg.Connection
) -> None:
    days = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 2, 3)]
    told = [(text, {"key": "crossing", "learned_at": at}) for text, at in zip((FERRY, BOAT, PUNT), days, strict=True)]

    heart.learn_deferred([told[0], told[2]])
    imported = heart.recall(ASKED)[0].memory
    heart.learn_deferred([told[1]])  # told out of order, so that it replaces nothing that holds

    assert imported.content == PUNT
    assert [each.content for each in heart.recall(ASKED)] == [PUNT]
    late = owner.execute("select id from heart.facts where content = %s", [BOAT]).fetchone()
    assert late is not None
    assert words_of(owner, heart.get_fact(UUID(str(late[0])))) == (None, None)
