"""What a session holds in mind, decided in values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from nous_online.memories.sessions import (
    NOTE,
    Item,
    Session,
    overflow,
    parting_text,
    shortened,
    with_items,
    with_relevance,
    with_task,
    without,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SESSION = Session("s", "Plan the deploy", None, (), (), 20, None, NOON)


def item(number: int, relevance: float, *, minute: int = 0) -> Item:
    return Item("fact", UUID(int=number), relevance, NOON.replace(minute=minute))


def note(number: int, text: str, *, minute: int = 0) -> Item:
    return replace(item(number, 0.5, minute=minute), kind=NOTE, text=text)


def ids(items: list[Item]) -> list[int]:
    return [each.id.int for each in items]


def test_the_least_relevant_goes_and_among_equals_the_one_loaded_longest_ago() -> None:
    items = [item(1, 0.5, minute=3), item(2, 0.1, minute=2), item(3, 0.1, minute=1), item(4, 0.9)]

    assert ids(overflow(items, 1)) == [3, 2, 1]
    assert overflow(items, 4) == []


def test_of_those_loaded_in_one_call_the_first_goes_first() -> None:
    assert ids(overflow([item(1, 0.5), item(2, 0.5), item(3, 0.5)], 2)) == [1]


def test_what_is_set_aside_takes_no_room() -> None:
    aside = replace(note(1, "a note"), is_set_aside=True)

    assert overflow([aside, item(2, 0.5)], 1) == []


def test_a_note_that_goes_is_set_aside_and_a_memory_that_goes_is_gone() -> None:
    left = without([item(1, 0.5), note(2, "a note"), item(3, 0.5)], [item(1, 0.5), note(2, "a note")])

    assert [(each.id.int, each.is_set_aside) for each in left] == [(3, False), (2, True)]


def test_an_item_loaded_again_moves_to_the_end_and_keeps_what_the_agent_said_of_it() -> None:
    said = replace(item(1, 0.9), is_explicit=True)

    (_, again) = with_items([said, item(2, 0.5)], [item(1, 0.2, minute=5)])

    assert (again.id.int, again.relevance, again.loaded_at.minute) == (1, 0.9, 5)


def test_another_task_weighs_all_but_what_the_agent_said() -> None:
    said = replace(item(1, 0.9), is_explicit=True)

    after = with_relevance([said, item(2, 0.5), item(3, 0.5)], {UUID(int=1): 0.1, UUID(int=2): 0.2})

    assert [each.relevance for each in after] == [0.9, 0.2, 0.5]


def test_a_session_tells_its_task_its_notes_in_order_what_is_open_and_what_was_learned() -> None:
    items = (note(2, "second", minute=2), replace(note(1, "first", minute=1), is_set_aside=True), item(3, 0.5))
    session = replace(SESSION, items=items, open_threads=("ask Ann",))

    assert (
        parting_text(session, ["Ask early."])
        == "Task: Plan the deploy\nfirst\nsecond\nStill open: ask Ann\nLesson: Ask early."
    )
    assert parting_text(replace(SESSION, task=None), []) is None


def test_an_earlier_task_is_told_once() -> None:
    session = SESSION
    for minute, task in enumerate(["Bake bread", "Plan the deploy", "Bake bread", "Bake bread"]):
        session = with_task(session, task, note_id=UUID(int=minute), at=NOON.replace(minute=minute))

    assert parting_text(session, []) == "Task: Bake bread\nEarlier task: Plan the deploy\nEarlier task: Bake bread"


def test_items_survive_being_stored() -> None:
    items = [item(1, 0.25), replace(note(2, "ä note", minute=3), is_set_aside=True, is_explicit=True)]

    assert [Item.from_json(each.as_json()) for each in items] == items


def test_long_texts_are_cut_between_words() -> None:
    assert shortened("one two three", 9) == "one two…"
    assert shortened("one two three", 13) == "one two three"
    assert shortened("x" * 20, 10) == "x" * 9 + "…"
