"""The caller says what a fact replaces, by id or by a key: one transaction, one active value, nothing lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.heart import Heart

ROME = "Ana has a small place in Rome"
PARIS = "she packed everything and moved over to Paris"
OSLO = "Oslo it is, since the new job"


def on(day: int, month: int = 10) -> datetime:
    return datetime(2026, month, day, 9, tzinfo=UTC)


def contents(heart: Heart, query: str = "Ana Rome Paris Oslo place moved job", **asked: Any) -> list[str]:
    return sorted(found.content for found in heart.recall(query, **asked))


def test_a_fact_named_by_its_id_gives_way_in_the_same_transaction(heart: Heart) -> None:
    old = heart.learn(ROME, learned_at=on(1)).memory

    learned = heart.learn(PARIS, replaces=old.id, learned_at=on(20))

    assert (learned.action, learned.match.fact.id if learned.match else None) == ("superseded", old.id)
    gone = heart.get(old.id)
    assert (gone.state, gone.superseded_by) == ("superseded", learned.memory.id)
    assert contents(heart) == [PARIS]
    assert contents(heart, as_of=on(10)) == [ROME]


def test_what_replaces_a_fact_is_recalled_by_the_words_of_what_it_replaced(heart: Heart) -> None:
    old = heart.learn(ROME).memory
    stored, replacing = heart.learn(PARIS).memory, heart.learn(OSLO, replaces=old.id).memory

    found = {each.id: each.score for each in heart.recall("a small place in Rome")}

    assert found[replacing.id] > found.get(stored.id, 0.0)
    assert {each.id for each in heart.recall("a small place in Rome", min_score=0.1)} == {replacing.id}


def test_several_facts_give_way_to_one(heart: Heart) -> None:
    old = [heart.learn(text).memory for text in (ROME, PARIS)]

    heart.learn(OSLO, replaces=[old[0].id, str(old[1].id), old[0].id])

    assert {heart.get(fact.id).state for fact in old} == {"superseded"}


def test_the_same_words_as_what_is_named_confirm_it(heart: Heart) -> None:
    old = heart.learn(ROME).memory

    learned = heart.learn(f"{ROME}.", replaces=old.id)

    assert (learned.action, learned.memory.id) == ("confirmed", old.id)


def test_what_is_named_gives_way_to_a_known_fact_that_says_the_new_words(heart: Heart) -> None:
    old, known = heart.learn(ROME).memory, heart.learn(PARIS).memory

    learned = heart.learn(PARIS, replaces=old.id)

    assert (learned.action, learned.memory.id) == ("confirmed", known.id)
    assert heart.get(old.id).superseded_by == known.id


def test_undoing_brings_back_what_was_replaced(heart: Heart) -> None:
    old = heart.learn(ROME).memory
    new = heart.learn(PARIS, replaces=old.id).memory

    heart.undo(new.id, reason="it was a joke")

    assert (heart.get(old.id).state, heart.get(new.id).state) == ("active", "archived")


def test_undoing_brings_back_what_was_replaced_by_words_that_were_known(heart: Heart) -> None:
    old, known, before = (heart.learn(text).memory for text in (ROME, PARIS, OSLO))
    heart.learn(PARIS, replaces=before.id)
    heart.learn(PARIS, replaces=old.id)

    heart.undo(known.id, reason="it was a joke")

    states = [heart.get(fact.id).state for fact in (old, known, before)]
    assert states == ["active", "active", "superseded"]
    assert heart.get(known.id).confirmation_count == 1


def test_what_was_replaced_and_forgotten_since_stays_forgotten_when_that_is_undone(heart: Heart) -> None:
    old, known = heart.learn(ROME).memory, heart.learn(PARIS).memory
    heart.learn(PARIS, replaces=old.id)
    heart.forget(old.id, reason="no longer wanted")

    heart.undo(known.id, reason="it was a joke")

    assert (heart.get(old.id).state, heart.get(known.id).confirmation_count) == ("archived", 0)


def test_taking_a_source_back_brings_back_what_it_replaced_by_words_that_were_known(heart: Heart) -> None:
    old, known = heart.learn(ROME).memory, heart.learn(PARIS).memory
    heart.learn(PARIS, replaces=old.id, source="a forged page")

    heart.undo_source("a forged page", reason="forged")

    assert (heart.get(old.id).state, heart.get(known.id).confirmation_count) == ("active", 0)


def test_what_is_not_there_for_the_same_user_is_not_replaced(heart: Heart) -> None:
    of_ben = heart.learn(ROME, user_id="ben").memory

    for fact_id in (uuid4(), of_ben.id):
        with pytest.raises(NotFound, match=f"no fact {fact_id} of the same scope"):
            heart.learn(PARIS, replaces=fact_id, user_id="ana")

    assert heart.count() == {"active": 1}


def test_what_is_no_longer_active_is_not_replaced(heart: Heart) -> None:
    old = heart.learn(ROME).memory
    heart.learn(PARIS, replaces=old.id)

    with pytest.raises(Conflict, match=f"fact {old.id} is superseded by .* and can't be replaced"):
        heart.learn(OSLO, replaces=old.id)

    assert heart.count() == {"active": 1, "superseded": 1}


def test_a_fact_that_changed_since_it_was_read_is_not_replaced(heart: Heart) -> None:
    read = heart.learn(ROME).memory
    heart.confirm_fact(read.id)

    with pytest.raises(Conflict, match="was changed since it was read"):
        heart.learn(PARIS, replaces=read)

    assert heart.learn(PARIS, replaces=heart.get(read.id)).action == "superseded"


@pytest.mark.parametrize(
    ("known", "reason"), [({"is_pinned": True}, "is pinned"), ({"trust": 90}, r"is trusted more \(90\)")]
)
def test_what_is_pinned_or_trusted_more_is_not_replaced_silently(
    heart: Heart, known: dict[str, Any], reason: str
) -> None:
    old = heart.learn(ROME, learned_at=on(1), **known).memory

    with pytest.raises(Refused, match=f"fact {old.id} {reason}"):
        heart.learn(PARIS, replaces=old.id)

    assert heart.count() == {"active": 1}


@pytest.mark.parametrize(("known", "day"), [({"is_pinned": True}, 3), ({"trust": 90}, 3), ({"trust": 20}, 1)])
def test_a_value_of_a_key_that_stands_less_firm_takes_no_place_and_contradicts(
    heart: Heart, known: dict[str, Any], day: int
) -> None:
    old = heart.learn(ROME, key="ana/home", learned_at=on(2), **known).memory

    told = heart.learn(PARIS, key="ana/home", learned_at=on(day))

    assert (told.action, told.memory.key, told.memory.contradiction_status) == ("stored", None, "open")
    assert [near.fact.id for near in told.contradicts] == [old.id]
    assert (heart.get(old.id).key, heart.get(old.id).state) == ("ana/home", "active")
    (found,) = heart.contradictions()
    assert "another value of its key" in str(found.judgement)


@pytest.mark.parametrize("replaces", ["no id", 7, ["no id"]])
def test_what_is_no_id_is_refused(heart: Heart, replaces: Any) -> None:
    with pytest.raises(InvalidInput, match="replaces"):
        heart.learn(ROME, replaces=replaces)


def test_the_later_value_of_a_key_replaces_the_earlier_whatever_the_words(heart: Heart) -> None:
    first = heart.learn(ROME, key="ana/home", learned_at=on(1)).memory

    second = heart.learn(PARIS, key="ana/home", learned_at=on(20))

    assert (second.action, second.memory.key) == ("superseded", "ana/home")
    assert heart.get(first.id).superseded_by == second.memory.id
    assert contents(heart) == [PARIS]


def test_a_value_told_late_ends_where_the_next_began(heart: Heart) -> None:
    for text, day in ((ROME, 1), (PARIS, 10), (OSLO, 20)):
        heart.learn(text, key="ana/home", learned_at=on(day))

    late = heart.learn("before all that Ana was in a Lisbon place", key="ana/home", learned_at=on(1, 9))

    assert (late.action, late.memory.state) == ("stored", "superseded")
    assert contents(heart) == [OSLO]
    assert contents(heart, as_of=on(15)) == [PARIS]
    assert contents(heart, as_of=on(15, 9)) == [late.memory.content]


LISBON = "Ana was in a Lisbon place for a while"


def told_late(heart: Heart, how: str) -> dict[str, UUID]:
    """Rome since 1 October and Oslo since 20 October are known when Lisbon, since 10 October, is told of."""
    said = {ROME: on(1), OSLO: on(20), LISBON: on(10)}
    if how == "imported":
        for text, at in said.items():
            heart.learn_deferred([(text, {"key": "ana/home", "learned_at": at})])
    else:
        for text, at in said.items():
            heart.learn(text, key="ana/home", learned_at=at)
    with heart.agent.database.transaction(heart.agent.id) as connection:
        return dict(connection.execute("select content, id from heart.facts").fetchall())


@pytest.mark.parametrize("how", ["learned", "imported"])
def test_a_value_told_late_stands_between_those_around_it_each_in_its_own_time(heart: Heart, how: str) -> None:
    ids = told_late(heart, how)

    days = {day: contents(heart, as_of=on(day)) for day in (5, 15, 25)}

    assert days == {5: [ROME], 15: [LISBON], 25: [OSLO]}
    assert contents(heart) == [OSLO]
    assert heart.get(ids[ROME]).superseded_by == ids[LISBON]
    assert heart.get(ids[LISBON]).superseded_by == ids[OSLO]


@pytest.mark.parametrize("order", [(LISBON, OSLO), (OSLO, LISBON)])
def test_taking_values_back_in_any_order_leaves_the_first_one_active(heart: Heart, order: tuple[str, ...]) -> None:
    ids = told_late(heart, "learned")

    heart.undo(ids[order[0]], reason="a joke")
    left = contents(heart)
    heart.undo(ids[order[1]], reason="a joke too")

    assert left == [order[1]]
    assert contents(heart) == [ROME]


def test_the_same_words_under_a_key_confirm_its_value(heart: Heart) -> None:
    first = heart.learn(ROME, key="ana/home").memory

    again = heart.learn(f"{ROME}.", key="ana/home")

    assert (again.action, again.memory.id, again.memory.key) == ("confirmed", first.id, "ana/home")


def test_a_known_fact_takes_over_the_key_it_is_said_again_with(heart: Heart) -> None:
    first = heart.learn(ROME).memory

    again = heart.learn(ROME, key="ana/home")

    assert (again.action, again.memory.id, again.memory.key) == ("confirmed", first.id, "ana/home")
    assert heart.learn(PARIS, key="ana/home").action == "superseded"


def test_what_replaces_the_value_of_a_key_has_that_key(heart: Heart) -> None:
    old = heart.learn(ROME, key="ana/home").memory

    assert heart.learn(PARIS, replaces=old.id).memory.key == "ana/home"
    assert heart.learn(OSLO, key="ana/home").action == "superseded"


def test_values_of_two_keys_never_meet(heart: Heart) -> None:
    home = heart.learn(ROME, key="ana/home").memory

    work = heart.learn(ROME, key="ana/work")

    assert (work.action, heart.get(home.id).state) == ("stored", "active")


@pytest.mark.parametrize("place", [{"user_id": "ben"}, {"scope": "project", "project_id": "atlas"}])
def test_each_user_and_project_has_its_own_value_of_a_key(heart: Heart, place: dict[str, Any]) -> None:
    heart.learn(ROME, key="home")

    assert heart.learn(PARIS, key="home", **place).action == "stored"
    assert heart.count() == {"active": 2}


def test_the_database_keeps_one_active_value_of_a_key(heart: Heart, owner: psycopg.Connection) -> None:
    heart.learn(ROME, key="ana/home")
    other = heart.learn(PARIS).memory

    owner.execute("alter table heart.facts disable trigger user")  # which ask for an event of every change

    with pytest.raises(psycopg.errors.ExclusionViolation):
        owner.execute("update heart.facts set key = 'ana/home' where id = %s", [other.id])


def test_a_value_is_not_brought_back_beside_the_one_that_has_its_key(heart: Heart) -> None:
    old = heart.learn(ROME, key="ana/home").memory
    new = heart.learn(PARIS, key="ana/home").memory

    with pytest.raises(Refused, match=f"would share the key 'ana/home' with {new.id}"):
        heart.undo(old.id, reason="it was right")

    heart.undo(new.id, reason="it was wrong")
    assert heart.get(old.id).state == "active"


def test_imported_values_of_a_key_follow_each_other_in_time(heart: Heart) -> None:
    entries = [(text, {"key": "ana/home", "learned_at": on(day)}) for text, day in ((OSLO, 20), (ROME, 1), (PARIS, 10))]

    heart.learn_deferred(entries)
    heart.learn_deferred([("in June Ana was in a Lisbon place", {"key": "ana/home", "learned_at": on(1, 6)})])

    assert heart.count() == {"active": 1, "superseded": 3}
    assert contents(heart) == [OSLO]
    assert contents(heart, as_of=on(5)) == [ROME]
    assert contents(heart, as_of=on(15)) == [PARIS]


def test_an_import_does_not_replace_the_pinned_value_of_a_key(heart: Heart) -> None:
    heart.learn(ROME, key="ana/home", is_pinned=True, learned_at=on(1))

    heart.learn_deferred([(PARIS, {"key": "ana/home", "learned_at": on(10)})])

    assert contents(heart) == contents(heart, as_of=on(15)) == [ROME]


def test_each_answer_says_what_is_near_and_how_to_replace_it(heart: Heart) -> None:
    old = heart.learn("Ana keeps a place in Rome").memory

    learned = heart.learn("Ana keeps a place in Paris")

    (near,) = learned.near
    assert (near.fact.id, near.verdict) == (old.id, "unsure")
    assert near.suggestion is not None
    assert f"replaces='{old.id}'" in near.suggestion
    replaced = heart.learn("Ana keeps a place in Paris", replaces=UUID(str(old.id)))
    assert (replaced.action, heart.get(old.id).superseded_by) == ("confirmed", learned.memory.id)
    assert replaced.near == ()


def test_five_near_facts_are_told_of_at_most_the_nearest_first(heart: Heart) -> None:
    for colour in ("red", "blue", "green", "white", "black", "grey"):
        heart.learn(f"the door of barn {colour} is painted {colour}")

    near = heart.learn("the door of barn red is painted").near

    assert len(near) == 5
    assert [each.similarity for each in near] == sorted((each.similarity for each in near), reverse=True)


def test_a_late_value_of_a_slot_ends_where_the_next_began(database: Any) -> None:
    heart = Heart.open("aria", database=database, works_in_background=False)
    for number, day in ((3, 1), (5, 10), (3, 20)):
        heart.learn(f"The retry limit is {number}", learned_at=on(day))

    heart.learn("The retry limit is 9", learned_at=on(1, 9))

    def believed(moment: datetime) -> list[str]:
        return [found.content for found in heart.recall("what is the retry limit?", as_of=moment)]

    assert believed(on(15)) == ["The retry limit is 5"]
    assert believed(on(15, 9)) == ["The retry limit is 9"]
    assert believed(on(25)) == ["The retry limit is 3"]


def test_of_two_values_that_gave_way_to_one_the_earlier_ended_where_the_later_began(heart: Heart) -> None:
    said = {f"The retry limit is {number}": on(day) for number, day in ((3, 1), (9, 20), (6, 10))}
    heart.learn_deferred([(text, {"learned_at": at}) for text, at in said.items()])
    known = {each.content: each.id for each in heart.recall("the retry limit")}
    other = heart.learn("Ana sets the limits", learned_at=on(2)).memory
    for text in (*list(said)[::2], other.content):  # as a night does that sees each of them beside the last
        heart.supersede_fact(known.get(text, other.id), known["The retry limit is 9"])

    believed = {day: contents(heart, as_of=on(day), query="the retry limit that Ana sets") for day in (5, 15, 25)}

    assert believed == {
        5: ["Ana sets the limits", "The retry limit is 3"],
        15: ["Ana sets the limits", "The retry limit is 6"],
        25: ["The retry limit is 9"],
    }
