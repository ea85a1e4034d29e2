"""Of two facts about one thing the later comes first; a recall says what contradicts an answer and how sure it is."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise, permutations

import pytest

from nous_online.core.errors import InvalidInput
from nous_online.language.pairs.judging import Verdict

MAY, JUNE, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6, 7))


def contents(found) -> list[str]:
    return [each.content for each in found]


def learn_both(heart, *statements: tuple[str, datetime], **details) -> None:
    """Learn statements as they are, each with when it was said: matching is left to the night."""
    heart.learn_deferred([(text, {"learned_at": at, **details}) for text, at in statements])


@pytest.mark.parametrize("first", [0, 1])
def test_the_value_said_later_comes_first_whatever_was_stored_first(heart, first):
    said = [("I prefer window seats on flights", MAY), ("I prefer aisle seats on flights", JUNE)]
    learn_both(heart, said[first], said[1 - first])

    found = heart.recall("which window or aisle seats do I prefer on flights")

    assert contents(found) == ["I prefer aisle seats on flights", "I prefer window seats on flights"]


def test_an_answer_says_whom_it_was_put_before(heart):
    learn_both(heart, ("The retry limit of the gateway is 3", MAY), ("The retry limit of the gateway is 5", JUNE))

    later, earlier = heart.recall("the retry limit of the gateway is 3")

    assert later.content == "The retry limit of the gateway is 5"
    assert (later.put_before, earlier.put_before) == (earlier.id, None)
    assert earlier.score > later.score


def test_what_was_confirmed_last_or_holds_from_later_on_is_the_later_one(heart):
    learn_both(heart, ("Ana lives in the city of Rome", MAY), ("Ana lives in the city of Paris", JUNE))
    (rome,) = [each for each in heart.recall("Rome", limit=2) if "Rome" in each.content]
    heart.confirm_fact(rome.id, at=JULY)

    assert contents(heart.recall("in which city does Ana live"))[0] == "Ana lives in the city of Rome"


def test_the_number_of_another_thing_never_goes_before_the_one_asked_for(heart):
    names = ("Ana", "Ben", "Carla", "Dmitri", "Elif", "Farid")
    days = (datetime(2026, 5, day, tzinfo=UTC) for day in range(1, 7))
    learn_both(
        heart, *((f"{name}'s desk phone is extension {day.day}417", day) for name, day in zip(names, days, strict=True))
    )

    for name in names:
        assert heart.recall(f"What is {name}'s extension?")[0].content.startswith(name)


def test_what_may_replace_three_facts_alike_replaces_none_and_says_so(heart, judge):
    known = [f"the pager of team {name} is with Ana" for name in ("red", "green", "blue")]
    new = "the pager is with Ben"
    judge.change = 0.9
    judge.verdicts = {(each, new): Verdict.UPDATES for each in known}
    learn_both(heart, *((each, MAY) for each in known))

    learned = heart.learn(new, learned_at=JUNE)

    assert (learned.action, learned.contradicts, heart.contradictions()) == ("stored", (), [])
    assert {each.verdict for each in learned.near} == {"unsure"}
    assert len(learned.memory.perhaps_replaces) == len(known)


def test_what_replaces_one_fact_leaves_no_doubt_about_others_that_it_may_have_meant(heart, judge):
    earlier = ["Ana has her desk on the second floor", "The desk of Ana's son is on the second floor"]
    of_ana, of_her_son = (heart.learn(text, learned_at=MAY).memory for text in earlier)
    later = "Ana has her desk on the fourth floor"
    judge.verdicts = {(text, later): Verdict.UPDATES for text in earlier}
    judge.changes = {(earlier[0], later): 0.95, (earlier[1], later): 0.8}

    learned = heart.learn(later, learned_at=JUNE)

    assert heart.get(of_ana.id).state == "superseded"
    assert learned.memory.perhaps_replaces == []
    assert contents(heart.recall(earlier[1]))[0] == earlier[1]
    assert of_her_son.id in {each.fact.id for each in learned.near}


@pytest.mark.parametrize(("chance", "first"), [(0.09, "the pager is with Ana"), (0.11, "Ben took over the pager duty")])
def test_what_perhaps_replaces_an_earlier_fact_comes_before_it(heart, judge, chance, first):
    judge.change = chance
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    learned = heart.learn("Ben took over the pager duty", learned_at=JUNE)

    later, is_doubted = learned.memory, chance == 0.11
    assert later.perhaps_replaces == ([earlier.id] if is_doubted else [])
    assert learned.reason.startswith(f"perhaps replaces fact {earlier.id}") == is_doubted
    assert contents(heart.recall("pager with Ana or Ben"))[0] == first


def test_what_was_told_late_is_in_no_doubt_about_what_came_after(heart, judge):
    judge.change = 0.9
    heart.learn("Ben took over the pager duty", learned_at=JUNE)

    assert heart.learn("the pager is with Ana", learned_at=MAY).memory.perhaps_replaces == []


def test_turns_of_a_talk_stay_in_the_order_of_their_relevance(heart):
    turns = (
        ("Ben: the kayak trip on the lake was great fun", MAY),
        ("Ana: the kayak trip on the lake sounds like fun", JUNE),
    )
    learn_both(heart, *turns, context="Ana and Ben about their holidays")

    found = heart.recall("was the kayak trip on the lake great fun")

    assert contents(found) == [text for text, _ in turns]


def test_the_later_side_of_an_open_contradiction_comes_first_and_both_are_marked(heart, judge):
    statements = "The database we use is Postgres", "We store all of it in Mongo"
    judge.verdicts.update(dict.fromkeys(permutations(statements, 2), Verdict.CONTRADICTS))
    one, other = (
        heart.learn(text, subject="database", learned_at=at).memory
        for text, at in zip(statements, (MAY, JUNE), strict=True)
    )

    found = heart.recall("which database do we use")

    assert contents(found) == list(reversed(statements))
    assert [each.contradicted_by for each in found] == [(one.id,), (other.id,)]


JOB = (
    "Repair job 4411 on the rear wheel motor is assigned to Ana",
    "Job 4411 moved over to Ben while Ana is away",
    "Ben gave repair job 4411 to Cid",
)


@pytest.mark.parametrize("doubted", [0, 1, 2])
def test_the_latest_of_three_values_comes_first_in_recalls_and_contexts_if_it_is_compared_with_the_middle_one_alone(
    heart, judge, doubted
):
    steps = [*pairwise(JOB)]
    judge.changes = dict.fromkeys(steps[:doubted], 0.2)
    judge.verdicts = dict.fromkeys(steps[doubted:], Verdict.CONTRADICTS)
    for text, at in zip(JOB, (MAY, JUNE, JULY), strict=True):
        heart.learn(text, learned_at=at)

    question = "Who is working on repair job 4411?"
    found, context = heart.recall(question), heart.assemble_context(query=question)
    shown = "".join(line.text for line in context.lines if line.tier == "relevant")
    in_shown = [text for text in reversed(JOB) if text in shown]

    assert contents(found) == [*reversed(JOB)]
    assert found[2].score > found[0].score > found[1].score
    assert [each.put_before for each in found] == [found[1].id, found[2].id, None]
    assert in_shown == sorted(in_shown, key=shown.index)


SEATS = (
    "I take window seats on every flight",
    "I take aisle seats on every flight",
    "I take the last row on every flight",
)


@pytest.mark.parametrize("verdict", [Verdict.UPDATES, Verdict.CONTRADICTS])
def test_an_episode_that_tells_what_was_replaced_since_stands_after_it_and_says_so(heart, judge, verdict):
    window, aisle, last = SEATS
    judge.verdicts = dict.fromkeys(permutations(SEATS, 2), verdict)
    talk = heart.record_episode(f"User: {window}, every single one, and which seats do I take?", started_at=MAY)
    heart.learn(window, learned_at=MAY, source_episode_id=talk.id)
    other = heart.record_episode(f"User: {aisle} now", started_at=JUNE)
    heart.learn(aisle, learned_at=JUNE, source_episode_id=other.id)
    heart.learn(last, learned_at=JULY)

    found = heart.recall("which seats do I take on every flight?")
    places = {each.id: place for place, each in enumerate(found)}
    fact = next(each for each in found if each.content == last)
    episodes = {each.id: each for each in found if each.memory.kind == "episode"}

    assert places[fact.id] < min(places[talk.id], places[other.id])
    assert fact.id in episodes[talk.id].changed_by
    assert episodes[other.id].changed_by == (fact.id,)
    better = heart.recall("which seats do I take on every flight?", min_score=fact.score + 0.01)
    assert [each.changed_by for each in better if each.id == other.id] == [()]


def test_an_episode_that_tells_the_later_value_too_is_no_earlier_one(heart, judge):
    window, aisle, _ = SEATS
    judge.verdicts = dict.fromkeys(permutations(SEATS, 2), Verdict.UPDATES)
    talk = heart.record_episode(f"User: {window}. Since June {aisle}.", started_at=MAY)
    heart.learn(window, learned_at=MAY, source_episode_id=talk.id)
    heart.learn(aisle, learned_at=JUNE, source_episode_id=talk.id)

    episode = next(each for each in heart.recall("which seats do I take on every flight?") if each.id == talk.id)

    assert episode.changed_by == ()


@pytest.mark.parametrize(
    ("asked_at", "first", "begins"),
    [
        (datetime(2026, 11, 28, tzinfo=UTC), "the rent is 1,200", date(2027, 1, 1)),
        (datetime(2027, 1, 2, tzinfo=UTC), "from January the rent is 1,350", None),
        (datetime(2027, 9, 1, tzinfo=UTC), "from January the rent is 1,350", None),
    ],
)
@pytest.mark.parametrize("query", ["what is the rent", "is the rent in January 1,350"])
def test_what_holds_today_comes_before_a_change_that_is_yet_to_begin(heart, judge, query, asked_at, first, begins):
    today, coming = "the rent is 1,200", "from January the rent is 1,350"
    judge.verdicts[today, coming] = Verdict.CONTRADICTS
    november = datetime(2026, 11, 20, tzinfo=UTC)
    heart.learn(today, learned_at=MAY)
    heart.learn(coming, learned_at=november)
    heart.learn("from January the bakery opens at six", learned_at=november)

    found = heart.recall(query, at=asked_at)

    rents = [each for each in found if "rent" in each.content]
    assert [each.content for each in rents] == [first, *({today, coming} - {first})]
    assert {each.content: each.begins_on for each in found if each.begins_on} == ({coming: begins} if begins else {})
    assert rents[0].put_before in {None, rents[1].id}
    assert heart.recall("what is the rent from January on", at=datetime(2026, 11, 28, tzinfo=UTC))[0].content == coming


def test_a_contradiction_out_of_reach_is_no_mark(heart, owner, judge):
    statements = "The database we use is Postgres", "The database we use is Mongo"
    judge.verdicts.update(dict.fromkeys(permutations(statements, 2), Verdict.CONTRADICTS))
    for text in statements:
        heart.learn(text, subject="database")
    (of_ana,) = [each for each in heart.recall("Mongo database", limit=2) if "Mongo" in each.content]
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set user_id = 'ana' where id = %s", [of_ana.id])

    (found,) = heart.recall("which database do we use")

    assert found.contradicted_by == ()


def test_answers_that_score_too_little_are_left_out(heart):
    for text in ("Lunch is at noon", "The door badge is blue", "We migrated from SQLite to Postgres"):
        heart.learn(text)

    found = heart.recall("SQLite migration", min_score=0.3)

    assert contents(found) == ["We migrated from SQLite to Postgres"]
    assert len(heart.recall("SQLite migration")) == 3


@pytest.mark.parametrize("min_score", [-0.1, 1.5, "much", True, float("nan")])
def test_a_least_score_is_a_number_from_0_to_1(heart, min_score):
    with pytest.raises(InvalidInput, match="min_score must be a number between 0 and 1"):
        heart.recall("tea", min_score=min_score)


def test_a_recall_is_confident_where_the_answer_is_known_and_not_where_it_is_not(heart):
    for text in ("The gateway times out after 30 seconds", "Ana leads the harbour project", "Lunch is at noon"):
        heart.learn(text)

    known, unknown = heart.recall("The gateway times out after 30 seconds?"), heart.recall("Who repaired the violin?")

    assert known.is_confident
    assert not unknown.is_confident
    assert 0 < unknown.confidence < 0.5 < known.confidence < 1


def test_a_recall_is_not_confident_of_what_was_never_said_of_somebody_who_is_well_known(heart):
    for text in (
        "Ana leads the harbour project", "Ana started at the company in 2019", "Ana prefers tea to coffee",
        "Ana cycles to the office on Fridays", "Ana shares her desk with Ben", "Ana wrote the billing service",
    ):  # fmt: skip
        heart.learn(text)

    assert heart.recall("When did Ana start at the company?").is_confident
    assert heart.recall("Who wrote the billing service?").is_confident
    assert not heart.recall("What is the blood type of Ana?").is_confident
    assert not heart.recall("Which school did the sister of Ana attend?").is_confident


def test_two_values_of_one_thing_alone_in_a_store_are_an_answer(heart):
    heart.learn("The rent of the flat is 900 euros a month")
    heart.learn("From January the rent of the flat is 950 euros a month")

    assert heart.recall("How much is the rent of the flat?").is_confident


def test_nothing_found_is_nothing_to_be_confident_of(heart):
    found = heart.recall("anything")

    assert (len(found), found.confidence, found.is_confident) == (0, 0.0, False)


def test_an_episode_beside_the_fact_it_tells_makes_a_recall_no_less_sure(heart):
    for number in range(10):
        heart.learn(f"Room {number} has {number} windows and a lamp")
    heart.learn("The brass key opens the barn")
    question = "which key opens the barn?"
    alone = heart.recall(question).confidence
    for _ in range(3):
        heart.record_episode("User: I was out all day. The brass key opens the barn, and which key opens the loft?")

    assert heart.recall(question).confidence >= heart.recall(question, kinds=["fact"]).confidence == alone
    assert heart.recall(question, kinds=["episode"]).confidence < alone
