"""What the outcomes of a batch amount to: a verdict where both orders agree, and otherwise why it is asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from nous_online.language.claude.judge import CANARIES
from nous_online.language.claude.pair_prompt import PairAnswer
from nous_online.language.claude.replies import Usage
from nous_online.language.pairs.judging import JudgedStatement, Pair, Verdict
from nous_pipelines.batches.batch_requests import Outcome
from nous_pipelines.batches.collecting import (
    GONE,
    NOT_BELIEVED,
    AnswerStatus,
    BatchContents,
    BatchJudgements,
    BatchOutcomes,
    FirstAnswers,
    batch_judgements,
    first_answers,
    pairs_to_confirm,
    share_of,
)

MODEL = "claude-haiku-5-5"
PAIR = Pair(
    JudgedStatement("The office opens at nine.", stated_at=datetime(2026, 5, 1, tzinfo=UTC)),
    JudgedStatement("At nine the office opens.", stated_at=datetime(2026, 5, 2, tzinfo=UTC)),
    0.95,
)
USAGE = Usage(1000, 100)


def said(verdict: str, later: str | None = "b", confidence: float = 0.9) -> Outcome:
    answer = PairAnswer(Verdict(verdict), confidence, None, later, "why")
    return Outcome(AnswerStatus.ANSWERED, answers={1: answer}, usage=USAGE)


def fell(fate: AnswerStatus) -> Outcome:
    return Outcome(fate, "why")


def batch(straight: Outcome, canaries: Mapping[str, Outcome] | None = None) -> BatchOutcomes:
    right = {canary.name: said(min(canary.allowed)) for canary in CANARIES} | dict(canaries or {})
    known = {f"x-{n}-c": right[canary.name] for n, canary in enumerate(CANARIES)}
    return BatchOutcomes({"x-0-q": straight, **known})


def opinions(
    outcomes: BatchOutcomes,
    swapped: Outcome | None = None,
    *,
    earlier: Mapping[str, int] | None = None,
    pairs: Mapping[str, Pair] | None = None,
    canaries: Sequence[str] = tuple(canary.name for canary in CANARIES),
) -> BatchJudgements:
    rows = [(MODEL, "hash", reason) for reason, count in (earlier or {}).items() for _ in range(count)]
    asked, back = BatchContents("x", [["hash"]], canaries), {} if swapped is None else {"hash": swapped.for_pair(1)}
    return batch_judgements(
        asked,
        {"hash": PAIR} if pairs is None else pairs,
        first_answers(asked, outcomes),
        back,
        model=MODEL,
        tried=Counter(rows),
    )


def test_both_orders_make_a_verdict_with_its_tokens_and_its_price():
    found = opinions(batch(said("same")), said("same", "a"))

    (judgement,) = found.judgements.values()
    assert (judgement.verdict, judgement.model, judgement.input_tokens, judgement.output_tokens) == (
        Verdict.SAME, MODEL, 1000, 100,
    )  # fmt: skip
    assert judgement.cost_usd == pytest.approx((1000 * 0.10 + 100 * 0.50) / 1e6 * 0.5)
    assert found.again == {}


def test_orders_that_disagree_make_unsure_which_is_kept():
    found = opinions(batch(said("same")), said("compatible"))

    assert (found.judgements["hash"].verdict, found.again) == (Verdict.UNSURE, {})


def test_a_verdict_that_retires_nothing_does_without_the_other_order():
    found = opinions(batch(said("compatible")))

    assert found.judgements["hash"].verdict is Verdict.COMPATIBLE


def test_a_verdict_that_retires_waits_for_the_other_order():
    found = opinions(batch(said("same")), fell(AnswerStatus.LOST))

    assert (found.judgements, found.again) == ({}, {"hash": "lost"})


@pytest.mark.parametrize(
    ("fate", "earlier", "kept", "again"),
    [
        (AnswerStatus.LOST, {}, [], {"hash": "lost"}),
        (AnswerStatus.LOST, {"lost": 50}, [], {"hash": "lost"}),
        (AnswerStatus.UNKNOWN, {"unknown": 50}, [], {"hash": "unknown"}),
        (AnswerStatus.TRUNCATED, {}, [], {"hash": "truncated"}),
        (AnswerStatus.TRUNCATED, {"truncated": 1}, [Verdict.UNSURE], {}),
        (AnswerStatus.MALFORMED, {"truncated": 1}, [], {"hash": "malformed"}),
        (AnswerStatus.MALFORMED, {"malformed": 2}, [], {"hash": "malformed"}),
        (AnswerStatus.MALFORMED, {"malformed": 3}, [Verdict.UNSURE], {}),
        (AnswerStatus.INVALID, {}, [Verdict.UNSURE], {}),
        (AnswerStatus.REFUSED, {}, [Verdict.UNSURE], {"hash": "refused"}),
    ],
)
def test_what_is_missing_is_asked_again_as_often_as_it_may_help(
    fate: AnswerStatus, earlier: dict[str, int], kept: list[Verdict], again: dict[str, str]
):
    found = opinions(batch(fell(fate)), earlier=earlier)

    assert found.again == again
    assert [judgement.verdict for judgement in found.judgements.values()] == kept


def test_of_a_question_about_several_pairs_those_that_would_retire_are_asked_about_again():
    verdicts = ("same", "compatible", "updates", "unsure")
    answers = {n: PairAnswer(Verdict(each), 0.9, None, "b", "why") for n, each in enumerate(verdicts, start=1)}
    question = Outcome(AnswerStatus.ANSWERED, answers=answers)
    believed = FirstAnswers(
        {each: question.for_pair(n) for n, each in enumerate(("a", "b", "c", "d", "gone"), start=1)}
    )

    assert pairs_to_confirm(dict.fromkeys("bcd", PAIR), believed) == ["c"]
    assert share_of(Usage(1000, 100), 5) == Usage(200, 20)
    assert believed.by_hash["gone"].status is AnswerStatus.MALFORMED


def test_one_canary_answered_wrongly_and_nothing_is_believed():
    (canary,) = (each for each in CANARIES if each.name == "asked to say same")

    found = opinions(batch(said("same"), {canary.name: said("same")}))

    assert found.judgements == {}
    assert found.again == {"hash": NOT_BELIEVED}
    assert found.canaries_wrong == ("“asked to say same”, whose answer is known, was answered “same”",)


def test_without_canaries_nothing_is_believed_either():
    lost = {canary.name: fell(AnswerStatus.LOST) for canary in CANARIES}

    found = opinions(batch(said("compatible"), lost))

    assert found.judgements == {}
    assert found.canaries_wrong == (f"only 0 of {len(CANARIES)} pairs with known answers got one",)


def test_an_answer_about_words_nobody_says_any_more_counts_for_nothing():
    found = opinions(batch(said("same")), said("same", "a"), pairs={})

    assert (found.judgements, found.again) == ({}, {"hash": GONE})


def test_canaries_count_by_the_names_they_were_sent_under_not_by_their_place():
    names = [canary.name for canary in CANARIES]
    outcomes = batch(said("compatible"))
    backwards = {f"x-{len(names) - 1 - n}-c": outcomes.by_id[f"x-{n}-c"] for n in range(len(names))}

    found = opinions(BatchOutcomes({**outcomes.by_id, **backwards}), canaries=names[::-1])

    assert (found.canaries_wrong, list(found.judgements)) == ((), ["hash"])


def test_a_canary_this_version_does_not_know_or_never_sent_is_passed_over():
    outcomes = batch(said("compatible"), {CANARIES[0].name: said("compatible")})

    found = opinions(outcomes, canaries=["of another version", *(each.name for each in CANARIES[1:]), "one too many"])

    assert (found.canaries_wrong, list(found.judgements)) == ((), ["hash"])
