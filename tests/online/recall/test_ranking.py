from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.recall.ranking import (
    Period,
    RecallPolicy,
    Situation,
    beginning_of,
    censor_boost,
    confidence,
    frame_boost,
    later_first,
    mentions,
    rank,
    score_parts,
    with_firsts,
)

POLICY = RecallPolicy()
ASKED = Situation("how do we deploy?")
SHARE = st.floats(0, 1)
ONE = UUID(int=1)
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
IN_MARCH = Situation("how do we deploy?", periods=(Period(MARCH, MARCH + timedelta(days=31)),))


@dataclass(frozen=True)
class Memory:
    id: UUID = ONE
    dense: float = 0.5
    lexical: float = 0.5
    subject: str | None = None
    source_kind: str = "agent"
    encoded_frame: str | None = None
    encoded_censors: Sequence[str] | None = None
    rank_weight: float = 1.0
    state: str = "active"
    learned_at: datetime = MARCH - timedelta(days=300)
    said_at: datetime = MARCH - timedelta(days=300)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    trust: int = 50
    near_ids: Sequence[UUID] | None = None
    doubted_ids: Sequence[UUID] | None = None
    same_ids: Sequence[UUID] | None = None
    contradicted_by: Sequence[UUID] | None = None
    changed_ids: Sequence[UUID] | None = None
    covered: float = 0.5


def order(*memories: Memory, situation: Situation = ASKED, limit: int = 10) -> list[int]:
    return [memory.id.int for memory, _ in rank(memories, situation, POLICY, limit=limit)]


@pytest.mark.parametrize(
    ("encoded", "frame", "boost"),
    [
        ("decision", "decision", 1.3),
        ("debug", "decision", 1.0),
        (None, "decision", 1.0),
        ("decision", None, 1.0),
        (None, None, 1.0),
    ],
)
def test_only_the_same_frame_is_boosted_and_an_unknown_one_is_neutral(encoded, frame, boost):
    assert frame_boost(encoded, frame, POLICY) == pytest.approx(boost)


@pytest.mark.parametrize(
    ("encoded", "active", "boost"),
    [
        (["a", "b"], ["b", "a"], 1.2),
        (["a"], ["a", "b"], 1.1),
        (["a"], ["b"], 1.0),
        (None, ["a"], 1.0),
        (["a"], None, 1.0),
        ([], [], 1.0),
    ],
)
def test_shared_censors_boost_by_their_overlap(encoded, active, boost):
    assert censor_boost(encoded, active, POLICY) == pytest.approx(boost)


def test_a_score_is_the_product_of_its_parts():
    memory = Memory(dense=0.6, lexical=0.2, encoded_frame="decision", encoded_censors=["a"], rank_weight=0.5)

    parts = score_parts(memory, Situation("deploy?", "decision", ["a", "b"]), POLICY)

    assert parts.relevance == pytest.approx(0.4)
    assert parts.score == pytest.approx(0.4 * 1.3 * 1.1 * 0.5)
    boosts = parts.frame_boost * parts.censor_boost * parts.time_boost
    assert parts.score == pytest.approx(parts.relevance * boosts * parts.rank_weight)


@pytest.mark.parametrize(
    ("field", "day", "boost"),
    [("learned_at", 0, 1.4), ("said_at", 30, 1.4), ("valid_from", 5, 1.4), ("valid_to", 5, 1.4), ("learned_at", 31, 1)],
)
def test_a_memory_of_the_time_the_question_names_is_boosted(field, day, boost):
    memory = replace(Memory(), **{field: MARCH + timedelta(days=day)})

    assert score_parts(memory, IN_MARCH, POLICY).time_boost == pytest.approx(boost)
    assert score_parts(memory, ASKED, POLICY).time_boost == 1


def test_what_held_through_the_named_time_is_of_it_and_what_has_no_end_is_not():
    held = Memory(valid_from=MARCH - timedelta(days=9), valid_to=MARCH + timedelta(days=99))

    assert score_parts(held, IN_MARCH, POLICY).time_boost > 1
    assert score_parts(replace(held, valid_to=None), IN_MARCH, POLICY).time_boost == 1


def test_a_strong_match_of_another_frame_still_beats_a_weak_one_of_the_same_frame():
    strong = Memory(UUID(int=1), dense=0.8, lexical=0.6, encoded_frame="debug")
    weak = Memory(UUID(int=2), dense=0.3, lexical=0.1, encoded_frame="decision")

    assert order(weak, strong, situation=Situation("deploy?", "decision")) == [1, 2]


def test_the_frame_decides_between_equal_matches():
    other, same = Memory(UUID(int=1), encoded_frame="debug"), Memory(UUID(int=2), encoded_frame="decision")

    assert order(other, same, situation=Situation("deploy?", "decision")) == [2, 1]


def test_words_and_meaning_together_beat_either_alone():
    words, meaning, both = (
        Memory(UUID(int=1), dense=0.2, lexical=0.7),
        Memory(UUID(int=2), dense=0.7, lexical=0.0),
        Memory(UUID(int=3), dense=0.6, lexical=0.6),
    )

    assert order(words, meaning, both) == [3, 1, 2]


def test_what_the_user_said_comes_before_the_answer_that_echoes_it():
    assert order(Memory(UUID(int=1), source_kind="agent"), Memory(UUID(int=2), source_kind="user")) == [2, 1]


def test_a_memory_about_whom_the_question_names_comes_first():
    melanie, caroline = Memory(UUID(int=1), subject="Melanie"), Memory(UUID(int=2), subject="Caroline")

    assert order(melanie, caroline, situation=Situation("What did Caroline adopt?")) == [2, 1]


@pytest.mark.parametrize(
    ("query", "subject", "named"),
    [
        ("What did Caroline adopt?", "caroline", True),
        ("When is the release train due?", "release train", True),
        ("When is the train due?", "release train", False),
        ("Is it art?", "Art Basel", False),
        ("Is a cart there?", "art", False),
        ("anything", "", False),
        ("anything", None, False),
        ("anything", "?!", False),
    ],
)
def test_a_subject_is_named_when_all_its_words_are(query, subject, named):
    assert mentions(query, subject) is named


def test_ties_are_settled_by_id_whatever_order_they_came_in():
    one, two, three = (Memory(UUID(int=number)) for number in (1, 2, 3))

    assert order(three, one, two) == order(two, three, one) == [1, 2, 3]


def test_no_more_than_the_limit_comes_back():
    assert order(*(Memory(UUID(int=number)) for number in range(1, 9)), limit=3) == [1, 2, 3]


@given(dense=st.floats(-1, 1), lexical=SHARE, weight=st.floats(0.25, 4))
def test_every_score_is_positive_so_that_boosts_can_multiply_it(dense, lexical, weight):
    memory = Memory(dense=dense, lexical=lexical, rank_weight=weight, encoded_frame="decision")

    plain = score_parts(memory, ASKED, POLICY)
    boosted = score_parts(memory, Situation(ASKED.query, "decision"), POLICY)

    assert 0 < plain.score < boosted.score


@given(st.lists(st.tuples(SHARE, SHARE), min_size=1, max_size=20), SHARE, SHARE)
def test_finding_one_more_memory_changes_no_other_score(scores, dense, lexical):
    memories = [Memory(UUID(int=number), d, w) for number, (d, w) in enumerate(scores)]
    newcomer = Memory(UUID(int=99), dense, lexical)

    before = order(*memories, limit=100)
    after = order(newcomer, *memories, limit=100)

    assert [number for number in after if number != 99] == before


def test_a_frame_never_filters():
    memories = [
        replace(Memory(UUID(int=number)), encoded_frame=frame)
        for number, frame in ((1, None), (2, "debug"), (3, "task"))
    ]

    assert sorted(order(*memories, situation=Situation("deploy?", "decision"))) == [1, 2, 3]


def later_order(*memories: Memory, situation: Situation = ASKED, limit: int = 3) -> list[int]:
    ranked = rank(memories, situation, POLICY, limit=len(memories))
    return [memory.id.int for memory, _, _ in later_first(ranked, POLICY, limit=limit)]


@pytest.mark.parametrize(
    ("relevance", "evidence", "order"),
    [
        (0.46, {"near_ids": [ONE]}, [2, 1, 3]),
        (0.44, {"near_ids": [ONE]}, [1, 2, 3]),
        (0.26, {"same_ids": [ONE]}, [2, 1, 3]),
        (0.24, {"same_ids": [ONE]}, [1, 3, 2]),
        (0.16, {"doubted_ids": [ONE]}, [2, 1, 3]),
        (0.14, {"doubted_ids": [ONE]}, [1, 3, 2]),
        (0.24, {"same_ids": [ONE], "contradicted_by": [ONE]}, [2, 1, 3]),
        (0.26, {"changed_ids": [ONE]}, [2, 1, 3]),
        (0.24, {"changed_ids": [ONE]}, [1, 3, 2]),
        (0.46, {}, [1, 2, 3]),
    ],
)
def test_the_later_of_two_facts_about_one_thing_comes_first_if_it_answers_about_as_well(relevance, evidence, order):
    earlier = Memory(ONE)
    later = Memory(UUID(int=2), dense=relevance, lexical=relevance, **evidence)
    other = Memory(UUID(int=3), dense=0.25, lexical=0.25)

    assert later_order(earlier, later, other) == order


@pytest.mark.parametrize(
    ("evidence", "limit", "place"),
    [
        ({"near_ids": [ONE]}, 10, 10),
        ({"near_ids": [ONE]}, 11, 0),
        ({"same_ids": [ONE]}, 10, 0),
        ({"same_ids": [ONE]}, 1, 0),
    ],
)
def test_from_beyond_what_is_shown_only_another_value_of_one_thing_comes_in(evidence, limit, place):
    earlier = Memory(ONE)
    others = [Memory(UUID(int=number)) for number in range(2, 11)]
    later = Memory(UUID(int=11), **evidence)

    order = later_order(earlier, *others, later, limit=limit)

    assert order.index(11) == place
    assert [each for each in order if each != 11] == list(range(1, 11))


def test_what_is_trusted_less_stays_behind_what_it_resembles_or_contradicts_however_late_and_relevant_it_is():
    two = UUID(int=2)
    known = Memory(ONE, trust=60, contradicted_by=[two])

    assert later_order(known, Memory(two, dense=0.49, trust=20, near_ids=[ONE])) == [1, 2]
    assert later_order(known, Memory(two, dense=0.9, trust=20, same_ids=[ONE], contradicted_by=[ONE])) == [1, 2]
    assert later_order(replace(known, contradicted_by=None), Memory(two, dense=0.9, trust=20)) == [2, 1]


def test_a_later_fact_stays_behind_the_one_of_the_time_the_question_names():
    earlier = Memory(ONE, said_at=MARCH)
    later = Memory(UUID(int=2), dense=0.49, near_ids=[ONE])

    assert later_order(earlier, later, situation=IN_MARCH) == [1, 2]
    assert later_order(earlier, later) == [2, 1]


def test_of_three_values_the_latest_comes_first():
    two, three = UUID(int=2), UUID(int=3)
    values = Memory(ONE), Memory(two, dense=0.49, near_ids=[ONE]), Memory(three, dense=0.48, near_ids=[ONE, two])

    assert later_order(*values) == [3, 2, 1]


LINKS = st.sampled_from(("near", "doubted", "same", "contradicted"))


def chain_of(links: Sequence[str], standings: Sequence[int]) -> list[Memory]:
    """Return values of one thing, the earliest first, each with its standing: it is compared with the one before it."""
    values = [Memory(UUID(int=number), dense=0.5 - 0.002 * place) for number, place in enumerate(standings, start=1)]
    for place, link in enumerate(links, start=1):
        before, after = values[place - 1], values[place]
        values[place] = replace(after, **{f"{'same' if link == 'contradicted' else link}_ids": [before.id]})
        if link == "contradicted":
            values[place] = replace(values[place], contradicted_by=[before.id])
            values[place - 1] = replace(before, contradicted_by=[*(before.contradicted_by or ()), after.id])
    return values


@given(data=st.data(), links=st.lists(LINKS, min_size=2, max_size=4))
def test_the_values_of_one_thing_come_the_latest_first_whichever_of_them_scores_more(data, links):
    standings = data.draw(st.permutations(range(len(links) + 1)))
    others = [Memory(UUID(int=99 + each), dense=0.5 - 0.002 * each) for each in data.draw(st.sets(st.integers(0, 4)))]
    values = chain_of(links, standings)

    order = later_order(*data.draw(st.permutations([*values, *others])), limit=10)

    assert [each for each in order if each < 99] == [*range(len(values), 0, -1)]
    assert [each for each in order if each >= 99] == sorted(each.id.int for each in others)
    assert order[0] == len(values)


@given(
    data=st.data(),
    trusts=st.lists(st.sampled_from((20, 50)), min_size=3, max_size=5),
    coming=st.sets(st.integers(1, 5)),
)
def test_whatever_contradicts_what_each_memory_is_answered_once(data, trusts, coming):
    ids = st.lists(st.sampled_from([UUID(int=number) for number in range(1, len(trusts) + 1)]), unique=True)
    memories = [
        Memory(UUID(int=number), trust=trust, same_ids=data.draw(ids), contradicted_by=data.draw(ids))
        for number, trust in enumerate(trusts, start=1)
    ]

    ranked = rank(memories, ASKED, POLICY, limit=len(memories))
    placed = later_first(ranked, POLICY, limit=3, is_coming=lambda each: each.id.int in coming)

    assert sorted(memory.id.int for memory, _, _ in placed) == [*range(1, len(trusts) + 1)]


def test_a_later_fact_of_another_frame_stays_behind_and_much_use_keeps_no_old_one_in_front():
    earlier = Memory(ONE, encoded_frame="decision")
    later = Memory(UUID(int=2), encoded_frame="debug", same_ids=[ONE])

    assert later_order(earlier, later, situation=Situation("how?", frame="decision")) == [1, 2]
    assert later_order(replace(earlier, rank_weight=2.0), later) == [2, 1]


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        ("from January the rent is 1,350", (2027, 1, 1)),
        ("As of 1 March 2027 the rent is 1,350", (2027, 3, 1)),
        ("ab dem 15. Februar kostet es mehr", (2027, 2, 15)),
        ("the fee goes up next month", (2026, 12, 1)),
        ("das gilt ab nächstem Monat, also nächsten Monat", (2026, 12, 1)),
        ("the fee goes up next year", (2027, 1, 1)),
        ("from October the rent is 1,350", None),
        ("the rent is 1,200", None),
    ],
)
def test_the_day_from_which_a_statement_holds_is_counted_from_when_it_was_said(said, begins):
    november = datetime(2026, 11, 27, 15, 30, tzinfo=UTC)

    assert beginning_of(said, november) == (begins and datetime(*begins, tzinfo=UTC))


@pytest.mark.parametrize("trust", [0, 10])
@pytest.mark.parametrize("relevance", [0.4, 0.6])
@pytest.mark.parametrize("evidence", [{"same_ids": [ONE], "contradicted_by": [ONE]}, {"same_ids": [ONE]}])
def test_what_is_yet_to_begin_comes_after_what_holds_until_then(relevance, evidence, trust):
    two = UUID(int=2)
    today = Memory(ONE, contradicted_by=[two] if "contradicted_by" in evidence else None)
    coming = Memory(two, dense=relevance, lexical=relevance, **evidence)
    other = Memory(UUID(int=3), dense=0.55, lexical=0.55)

    def order(*memories: Memory, is_coming: bool) -> list[int]:
        ranked = rank(memories, ASKED, POLICY, limit=10)
        placed = later_first(ranked, POLICY, limit=10, is_coming=lambda each: is_coming and each.id == two)
        return [memory.id.int for memory, _, _ in placed if memory.id != other.id]

    assert order(today, coming, other, is_coming=True) == [1, 2]
    assert order(today, coming, other, is_coming=False) == [2, 1]
    more_trusted = replace(coming, trust=coming.trust + trust)
    assert order(today, more_trusted, other, is_coming=True) == ([1, 2] if not trust or relevance < 0.5 else [2, 1])


def sureness(best: Memory, *others: Memory) -> float:
    return confidence([(each, score_parts(each, ASKED, POLICY)) for each in (best, *others)], POLICY)


def test_a_recall_is_surer_of_what_is_nearer_has_more_of_the_words_and_stands_out():
    best, others = Memory(dense=0.6), [Memory(dense=0.3)] * 10

    sure = sureness(best, *others)

    assert sureness(replace(best, dense=0.7), *others) > sure
    assert sureness(replace(best, covered=0.7), *others) > sure
    assert sureness(best, Memory(dense=0.5), *others[1:]) < sure
    assert sureness(best, *others, Memory(dense=0.6)) == pytest.approx(sure)  # the eleventh is far off
    assert sureness(best) == pytest.approx(sureness(best, *[Memory(dense=0.2)] * 10))  # alone as among strangers
    assert confidence([], POLICY) == 0.0


def test_a_chain_of_thousands_of_values_is_placed_too() -> None:
    count = 5_000

    assert [*with_firsts(range(count), {each: [each + 1] for each in range(count - 1)})] == [*reversed(range(count))]
