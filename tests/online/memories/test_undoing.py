"""Taking back, online, what was done to a memory."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from nous_online.core.domain import Fact
from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict
from nous_online.memories.undoing import value_after_undo

OLD, NEW = "The office opens at nine", "The office opens at ten"


@pytest.fixture
def update(heart: Heart, judge) -> Callable[[], tuple[Fact, Fact]]:
    """Learn a value and then another one of the same slot."""

    def learn() -> tuple[Fact, Fact]:
        judge.verdicts[OLD, NEW] = Verdict.UPDATES
        old = heart.learn(OLD, subject="office hours").memory
        learned = heart.learn(NEW, subject="office hours")
        assert learned.action == "superseded"
        return old, learned.memory

    return learn


def states(heart: Heart, *ids: UUID) -> list[str]:
    return [heart.get(each).state for each in ids]


def test_the_history_of_a_memory_says_who_changed_it_when_and_why(heart: Heart, update) -> None:
    old, new = update()

    superseded, learned = heart.history(old.id)

    assert (learned.action, learned.version_after, learned.actor) == ("learned", 1, "agent")
    assert (superseded.action, superseded.before["state"]) == ("superseded", "active")
    assert superseded.after["superseded_by"] == str(new.id)
    assert superseded.reason


def test_an_unknown_memory_has_no_history(heart: Heart) -> None:
    with pytest.raises(NotFound, match="has no memory"):
        heart.history(uuid4())


def test_undoing_a_supersession_brings_the_old_value_back(heart: Heart, update) -> None:
    old, new = update()

    event = heart.undo(old.id, reason="it was a typo")

    assert event.action == "superseded"
    assert states(heart, old.id, new.id) == ["active", "active"]
    assert heart.history(old.id)[0].reason == "it was a typo"


def test_undoing_that_a_fact_was_learned_brings_back_what_it_superseded(heart: Heart, update) -> None:
    old, new = update()

    heart.undo(new.id, reason="never said")

    assert states(heart, old.id, new.id) == ["active", "archived"]
    assert [answer.content for answer in heart.recall("office opens")] == [OLD]


def test_undoing_again_goes_one_step_further_back_until_nothing_is_left(heart: Heart) -> None:
    fact = heart.learn(OLD).memory
    heart.learn(OLD)

    first, second = heart.undo(fact.id, reason="once"), heart.undo(fact.id, reason="twice")

    assert (first.action, second.action) == ("confirmed", "learned")
    assert (heart.get(fact.id).state, heart.get(fact.id).confirmation_count) == ("archived", 0)
    with pytest.raises(Refused, match=r"was undone already, on 20\d\d-\d\d-\d\d at \d\d:\d\d UTC \(twice\); nothing"):
        heart.undo(fact.id, reason="thrice")


def test_undoing_needs_a_reason(heart: Heart) -> None:
    fact = heart.learn(OLD).memory

    with pytest.raises(InvalidInput, match="reason is empty"):
        heart.undo(fact.id, reason=" ")

    assert heart.get(fact.id).state == "active"


def test_another_agents_memory_can_not_be_undone(heart: Heart) -> None:
    fact = heart.learn(OLD).memory
    other = Heart.open("ben", database=heart.agent.database, embedder=heart.agent.embedder, judge=heart.agent.judge)

    with pytest.raises(NotFound):
        other.undo(fact.id, reason="mischief")


@pytest.mark.parametrize(
    ("name", "before", "after", "now", "wanted"),
    [
        ("success_count", 2, 3, 5, 4),
        ("confirmation_count", 0, 1, 1, 0),
        ("last_activated_at", None, "2026-05-01", "2026-06-01", "2026-06-01"),
        ("last_activated_at", None, "2026-05-01", "2026-05-01", None),
        ("tags", ["a"], ["a", "b"], ["a", "b"], ["a"]),
    ],
)
def test_counters_are_taken_back_by_what_was_added_and_later_moments_stay(name, before, after, now, wanted) -> None:
    assert value_after_undo(name, before, after, now) == wanted
