"""What one or two answers about a pair amount to: nothing that retires a memory rests on one of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.claude.judge import (
    CANARIES,
    RETIRING,
    canaries_failed,
    confirmed,
    needs_confirmation,
    second_opinion_wanted,
    swapped,
)
from nous_online.language.claude.pair_prompt import PROMPT_VERSION, PairAnswer
from nous_online.language.pairs.judging import (
    NOTHING_SHARED,
    JudgedStatement,
    Judgement,
    OfflineJudge,
    Pair,
    Verdict,
    later,
    reasons_apart,
)

MAY, JUNE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
SAME, UPDATES, CONTRADICTS, COMPATIBLE, UNSURE = (
    Verdict.SAME, Verdict.UPDATES, Verdict.CONTRADICTS, Verdict.COMPATIBLE, Verdict.UNSURE,
)  # fmt: skip
ALIKE = Pair(
    JudgedStatement("The api team deploys every Friday"), JudgedStatement("Every Friday the api team deploys"), 0.9
)
ANSWERS = st.builds(
    PairAnswer,
    verdict=st.sampled_from(Verdict),
    confidence=st.floats(0, 1),
    slot=st.none() | st.just("slot"),
    later=st.sampled_from(["a", "b", None]),
    reason=st.just("Because."),
)
STATEMENTS = st.builds(
    JudgedStatement,
    text=st.sampled_from(
        ["The pool has 40 connections", "The pool has 50 connections", "There are 40 connections in the pool"]
    ),
    subject=st.sampled_from(["pool", "db", None]),
    stated_at=st.sampled_from([MAY, JUNE, None]),
    trust=st.integers(0, 100),
)
PAIRS = st.builds(Pair, STATEMENTS, STATEMENTS, st.floats(0, 1))


def said(verdict: Verdict, confidence: float = 0.9, *, later: str | None = None) -> PairAnswer:
    return PairAnswer(verdict, confidence, "slot", later, "Because.")  # pyright: ignore[reportArgumentType]


def moved(
    *, subjects: tuple[str | None, str | None] = (None, None), trust: tuple[int, int] = (50, 50), is_dated: bool = True
) -> Pair:
    """Two values of one slot, the second a month later."""
    times = (MAY, JUNE) if is_dated else (None, None)
    texts = ("The office is in Lisbon", "The office is in Porto")
    a, b = (JudgedStatement(texts[i], subjects[i], times[i], trust[i]) for i in (0, 1))
    return Pair(a, b, 0.9)


def settled(pair: Pair, straight: PairAnswer, back: PairAnswer | None) -> Judgement:
    return confirmed(pair, straight, back, model="claude-haiku-5-5")


def test_only_what_retires_a_memory_needs_both_orders() -> None:
    assert {verdict for verdict in Verdict if needs_confirmation(said(verdict))} == {SAME, UPDATES}


def test_a_swapped_pair_swapped_again_is_the_pair() -> None:
    pair = moved()

    assert (swapped(pair).a, swapped(pair).b) == (pair.b, pair.a)
    assert swapped(swapped(pair)) == pair


def test_same_in_both_orders_is_same() -> None:
    judgement = settled(ALIKE, said(SAME, 0.9), said(SAME, 0.8))

    assert (judgement.verdict, judgement.confidence, judgement.reason) == (SAME, 0.8, "Because.")
    assert (judgement.model, judgement.prompt_version, judgement.slot) == ("claude-haiku-5-5", PROMPT_VERSION, "slot")


def test_same_in_both_orders_falls_to_a_guard() -> None:
    pair = Pair(JudgedStatement("The pool has 40 connections"), JudgedStatement("The pool has 50 connections"), 0.99)

    judgement = settled(pair, said(SAME), said(SAME))

    assert (judgement.verdict, judgement.reason) == (UNSURE, "“same” in both orders, but number 40 ≠ 50")


@pytest.mark.parametrize("verdict", [SAME, UPDATES])
def test_subjects_that_differ_forbid_what_retires(verdict: Verdict) -> None:
    pair = moved(subjects=("office", "canteen"))

    judgement = settled(pair, said(verdict, later="b"), said(verdict, later="a"))

    assert judgement.verdict is UNSURE
    assert "subject office ≠ canteen" in judgement.reason


@pytest.mark.parametrize("verdict", [SAME, UPDATES])
def test_one_order_alone_retires_nothing(verdict: Verdict) -> None:
    judgement = settled(moved(), said(verdict, later="b"), None)

    assert (judgement.verdict, judgement.reason) == (UNSURE, f"“{verdict}” in one order, not answered in the other")


@pytest.mark.parametrize("verdict", [CONTRADICTS, COMPATIBLE, UNSURE])
def test_what_keeps_both_stands_on_one_answer(verdict: Verdict) -> None:
    judgement = settled(moved(), said(verdict, 0.7), None)

    assert (judgement.verdict, judgement.confidence, judgement.reason) == (verdict, 0.7, "Because.")


def test_answers_that_disagree_are_unsure_and_named() -> None:
    judgement = settled(ALIKE, said(SAME), said(COMPATIBLE, 0.6))

    assert (judgement.verdict, judgement.confidence) == (UNSURE, 0.6)
    assert judgement.reason == "“same” in one order, “compatible” in the other"


def test_an_update_both_orders_see_is_an_update() -> None:
    judgement = settled(moved(), said(UPDATES, later="b"), said(UPDATES, 0.85, later="a"))

    assert (judgement.verdict, judgement.confidence, judgement.later) == (UPDATES, 0.85, "b")


def test_the_first_statement_may_be_the_later_one() -> None:
    judgement = settled(swapped(moved()), said(UPDATES, later="a"), said(UPDATES, later="b"))

    assert (judgement.verdict, judgement.later) == (UPDATES, "a")


def test_an_update_of_unknown_order_is_a_contradiction() -> None:
    judgement = settled(moved(is_dated=False), said(UPDATES, later="b"), said(UPDATES, later="a"))

    assert (judgement.verdict, judgement.later) == (CONTRADICTS, None)
    assert judgement.reason.endswith("Nobody knows which was stated later.")


@pytest.mark.parametrize(("straight", "back"), [("a", "b"), (None, None)])
def test_an_update_seen_the_wrong_way_round_is_a_contradiction(straight: str | None, back: str | None) -> None:
    judgement = settled(moved(), said(UPDATES, later=straight), said(UPDATES, later=back))

    assert judgement.verdict is CONTRADICTS
    assert judgement.reason.endswith("The answers did not see which was stated later.")


@pytest.mark.parametrize(("straight", "back"), [("b", "b"), ("a", "a"), ("b", None), (None, "a")])
def test_answers_that_name_different_statements_as_later_are_unsure(straight: str | None, back: str | None) -> None:
    judgement = settled(moved(), said(UPDATES, later=straight), said(UPDATES, later=back))

    assert judgement.verdict is UNSURE


@pytest.mark.parametrize(("trust", "verdict"), [((50, 49), CONTRADICTS), ((50, 50), UPDATES), ((20, 90), UPDATES)])
def test_a_later_statement_that_is_trusted_less_only_contradicts(trust: tuple[int, int], verdict: Verdict) -> None:
    pair = moved(trust=trust)

    assert settled(pair, said(UPDATES, later="b"), said(UPDATES, later="a")).verdict is verdict
    assert settled(swapped(pair), said(UPDATES, later="a"), said(UPDATES, later="b")).verdict is verdict


@given(pair=PAIRS, straight=ANSWERS, back=st.none() | ANSWERS)
def test_whatever_is_answered_nothing_is_retired_against_the_rules(
    pair: Pair, straight: PairAnswer, back: PairAnswer | None
) -> None:
    judgement = settled(pair, straight, back)

    if judgement.verdict in RETIRING:
        assert back is not None
        assert straight.verdict is back.verdict is judgement.verdict
        assert judgement.confidence == min(straight.confidence, back.confidence)
    if judgement.verdict is SAME:
        assert not reasons_apart(pair)
    if judgement.verdict is UPDATES:
        newer, older = {"a": (pair.a, pair.b), "b": (pair.b, pair.a)}[later(pair) or "-"]
        assert newer.stated_at > older.stated_at  # pyright: ignore[reportOptionalOperand]
        assert newer.trust >= older.trust
        assert None in {newer.subject, older.subject} or newer.subject == older.subject


@given(pair=PAIRS, straight=ANSWERS, back=ANSWERS)
def test_it_does_not_matter_which_order_is_called_straight(pair: Pair, straight: PairAnswer, back: PairAnswer) -> None:
    one, other = settled(pair, straight, back), settled(swapped(pair), back, straight)

    assert (one.verdict, one.confidence) == (other.verdict, other.confidence)


@pytest.mark.parametrize(
    ("verdict", "confidence", "is_wanted"),
    [
        (COMPATIBLE, 0.95, False),
        (COMPATIBLE, 0.5, True),
        (SAME, 0.99, True),
        (UPDATES, 0.99, True),
        (UNSURE, 0.9, True),
    ],
)
def test_all_but_what_is_surely_compatible_gets_a_second_opinion(
    verdict: Verdict, confidence: float, *, is_wanted: bool
) -> None:
    judgement = Judgement(verdict, confidence, NOTHING_SHARED, None, None, "offline", "1")

    assert second_opinion_wanted(judgement) is is_wanted


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Order 4711 was shipped on 3 May", "Order 4712 was shipped on 3 May"),
    ],
)
def test_what_a_guard_alone_holds_apart_gets_a_second_opinion(known: str, new: str) -> None:
    pair = Pair(JudgedStatement(known, None, MAY), JudgedStatement(new, None, JUNE), 0.95)

    judgement = OfflineJudge().judge([pair])[0]

    assert judgement.verdict is COMPATIBLE
    assert second_opinion_wanted(judgement)


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (moved(subjects=("office", "canteen")), "subject office ≠ canteen"),
        (
            Pair(JudgedStatement("Ana speaks French"), JudgedStatement("The invoices are kept for ten years"), 0.1),
            "different statements, no shared slot with another value",
        ),
    ],
)
def test_other_subjects_and_what_has_nothing_in_common_get_none(pair: Pair, reason: str) -> None:
    judgement = OfflineJudge().judge([pair])[0]

    assert (judgement.verdict, judgement.reason.partition(";")[0]) == (COMPATIBLE, reason)
    assert not second_opinion_wanted(judgement)


def right_answers() -> dict[str, PairAnswer | None]:
    return {canary.name: said(min(canary.allowed)) for canary in CANARIES}


def test_there_are_enough_canaries_and_each_has_a_name() -> None:
    assert len({canary.name for canary in CANARIES}) == len(CANARIES) >= 12


def test_canaries_answered_rightly_are_believed() -> None:
    assert canaries_failed(right_answers()) == []


@pytest.mark.parametrize("verdict", Verdict)
def test_a_judge_that_always_says_one_thing_fails(verdict: Verdict) -> None:
    assert canaries_failed({canary.name: said(verdict) for canary in CANARIES})


def test_a_judge_that_obeys_one_memory_fails() -> None:
    obedient = {**right_answers(), "asked to say same": said(SAME)}

    assert canaries_failed(obedient) == ["“asked to say same”, whose answer is known, was answered “same”"]


def test_a_canary_that_was_not_answered_is_not_wrong() -> None:
    assert canaries_failed({**right_answers(), CANARIES[0].name: None}) == []


def test_a_batch_without_answers_to_most_canaries_is_not_believed() -> None:
    few = dict.fromkeys((canary.name for canary in CANARIES[1:]), None)

    assert canaries_failed({**right_answers(), **few}) == [
        f"only 1 of {len(CANARIES)} pairs with known answers got one"
    ]
    assert canaries_failed({}) == ["only 0 of 0 pairs with known answers got one"]


def test_the_built_in_judge_passes_the_canaries() -> None:
    judgements = OfflineJudge().judge([canary.pair for canary in CANARIES])
    answers = {canary.name: said(judgement.verdict) for canary, judgement in zip(CANARIES, judgements, strict=True)}

    assert canaries_failed(answers) == []
