"""What a context shows of what is likely to be wanted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FILE = {"current_file": "src/pump/station.py"}


@pytest.fixture
def used(heart):
    """Fifty facts, cited once each, long ago."""
    told = [f"Lesson {n} of the manual{' on the pump station' * (n == 30)}" for n in range(50)]
    facts = [heart.learn(text, learned_at=NOON).memory for text in told]
    recall = heart.recall("lesson of the manual", session_id="old", at=NOON, limit=50)
    heart.cite(recall.id, [each.id for each in facts], at=NOON)
    return facts


def relevant(context) -> list:
    return [each for line in context.lines if line.tier == "relevant" for each in line.memory_ids]


def test_a_file_alone_brings_what_is_near_to_it_and_nothing_that_was_merely_used_once(heart, used):
    assert relevant(heart.assemble_context(signals=FILE)) == [used[30].id]


def test_what_is_near_to_the_file_comes_first_of_what_was_used_as_often(heart, used):
    assert relevant(heart.assemble_context(signals=FILE))[0] == used[30].id


def test_beside_a_question_or_a_task_what_is_unlikely_is_left_out(heart, used):
    heart.learn("Tea is green", learned_at=NOON)

    asked = heart.assemble_context(signals=FILE, query="Which tea is green?")
    working = heart.assemble_context(signals={**FILE, "task": "make green tea"})

    assert len(relevant(asked)) < 5
    assert len(relevant(working)) < 5


def test_what_was_never_used_is_not_called_likely_for_being_near(heart):
    heart.learn("The pump station restarts at night", learned_at=NOON)
    heart.learn("A pump costs 300 euros at the shop around the corner of the old market", learned_at=NOON)

    context = heart.assemble_context(signals=FILE, at=NOON + timedelta(days=1))

    assert all(line.reason.startswith("recalled") for line in context.lines if line.tier == "relevant")


def test_what_was_used_often_is_shown_beside_a_file_and_what_was_used_seldom_is_not(heart):
    often, seldom = (heart.learn(text).memory for text in ("Oil the gate", "Feed the cat"))
    for day in range(10):
        at = datetime.now(UTC) - timedelta(days=10 - day)
        recall = heart.recall("oil gate feed cat", session_id=f"s{day}", at=at)
        heart.cite(recall.id, [(often if day % 4 else seldom).id], at=at)

    assert relevant(heart.assemble_context(signals=FILE)) == [often.id]
