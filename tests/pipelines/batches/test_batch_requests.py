"""Open pairs become requests in their order, as far as the budget goes, and never for less than they will cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from batch_answers import MODEL, is_canary
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.anthropic_server.answers import pairs_in
from nous_online.core.errors import InvalidInput
from nous_online.language.claude.judge import CANARIES
from nous_online.language.pairs.judging import JudgedStatement, Pair
from nous_pipelines.batches.batch_requests import (
    DraftedBatches,
    Models,
    PairQuestion,
    draft_batches,
    estimate,
    prefix,
)

MODELS = Models(MODEL, "claude-sonnet-5-5")
MAY = datetime(2026, 5, 1, tzinfo=UTC)


def question(name: str, length: int = 1) -> PairQuestion:
    told = [
        JudgedStatement(f"{name} {side} ".ljust(length, "x"), None, MAY + timedelta(days=n))
        for n, side in enumerate("ab")
    ]
    return PairQuestion(name, "l", "r", is_ordered=True, pair=Pair(*told, similarity=0.9))


def write(
    questions: Sequence[PairQuestion],
    *,
    left_usd: float = 5.0,
    tried: Sequence[tuple[str, str, str]] = (),
    stops_when_full: bool = False,
) -> DraftedBatches:
    known = Counter(tried)
    return draft_batches(
        "aria", questions, models=MODELS, tried=known, left_usd=left_usd, stops_when_full=stops_when_full
    )


def names(made: DraftedBatches) -> list[str]:
    return [each.pair_hash for draft in made.drafts for each in draft.pairs]


FIVE = [question(name) for name in "pqrst"]


def test_the_nearest_come_first_and_canaries_before_them():
    (draft,) = write(FIVE).drafts

    assert [each.pair_hash for each in draft.pairs] == list("pqrst")
    assert [is_canary(request) for _, request in draft.requests] == [True] * len(CANARIES) + [False] * 5


def test_custom_ids_begin_with_the_row_and_tell_questions_apart():
    row_id = uuid4()
    (draft,) = write(FIVE[:2]).drafts

    named = [custom_id for custom_id, _ in draft.named(row_id)]

    assert named[0] == f"{row_id.hex[:12]}-0-c"
    assert named[-2:] == [f"{prefix(row_id)}-{n}-q" for n in (0, 1)]
    assert len(set(named)) == len(named)


def test_pairs_of_one_newer_statement_are_one_request_but_for_those_that_got_no_answer_before():
    new = FIVE[0].pair.b
    around = [replace(each, pair=replace(each.pair, b=new)) for each in FIVE]

    (draft,) = write(around, tried=[(MODEL, "r", "malformed"), (MODEL, "t", "lost")]).drafts

    assert [[each.pair_hash for each in together] for together in draft.questions] == [["p", "q", "s", "t"], ["r"]]
    assert [len(pairs_in(request)) for _, request in draft.requests[len(CANARIES) :]] == [4, 1]


def test_a_pair_that_does_not_fit_holds_back_all_that_follow():
    enough_for_two_short_ones = write(FIVE[:2]).estimated_usd

    made = write([FIVE[0], question("long", 3000), FIVE[1]], left_usd=enough_for_two_short_ones)

    assert (names(made), made.held_back) == (["p"], 2)


@given(st.floats(0, 0.03))
def test_the_estimate_never_exceeds_what_is_left(left_usd: float):
    made = write(FIVE, left_usd=left_usd)

    assert made.estimated_usd <= left_usd
    assert names(made) == list("pqrst")[: made.pair_count]
    assert made.pair_count + made.held_back == 5


def test_the_estimate_of_a_batch_is_the_sum_over_its_requests_canaries_included():
    (draft,) = write(FIVE).drafts

    asked = [estimate(request, is_confirmed=ending.endswith("q")) for ending, request in draft.requests]
    assert draft.estimated_usd == pytest.approx(sum(asked))


def test_pairs_too_long_to_be_asked_about_are_counted_and_left_out():
    made = write([question("long", 7000), *FIVE])

    assert (names(made), made.too_long, made.held_back) == (list("pqrst"), 1, 0)


def test_what_the_judge_refused_goes_to_the_other_model_with_canaries_of_its_own():
    made = write(FIVE, tried=[(MODEL, "q", "refused")])

    judge, fallback = made.drafts
    assert (judge.model, [each.pair_hash for each in judge.pairs]) == (MODEL, list("prst"))
    assert (fallback.model, [each.pair_hash for each in fallback.pairs]) == (MODELS.fallback, ["q"])
    assert len(fallback.requests) == len(CANARIES) + 1


def test_what_was_cut_short_gets_more_room():
    (draft,) = write(FIVE[:2], tried=[(MODEL, "p", "truncated"), (MODEL, "q", "lost")]).drafts

    rooms = [request["max_tokens"] for _, request in draft.requests[len(CANARIES) :]]
    assert rooms[0] == 4 * rooms[1]


@pytest.mark.parametrize("limit", ["MOST_REQUESTS", "MOST_BYTES"])
def test_a_batch_that_would_grow_too_large_is_followed_by_another(monkeypatch: pytest.MonkeyPatch, limit: str):
    (whole,) = write(FIVE[:2]).drafts
    size = len(whole.requests) if limit == "MOST_REQUESTS" else whole.bytes + 10
    monkeypatch.setattr(f"nous_pipelines.batches.batch_requests.{limit}", size)

    made, first = write(FIVE), write(FIVE, stops_when_full=True)

    assert [len(draft.questions) for draft in made.drafts] == [2, 2, 1]
    assert [ending for ending, _ in made.drafts[1].requests[-2:]] == ["0-q", "1-q"]
    assert (names(first), first.held_back) == (["p", "q"], 3)


def test_a_model_without_a_price_is_never_asked():
    with pytest.raises(InvalidInput, match="no price is known for the model 'claude-unheard-of'"):
        draft_batches("aria", FIVE, models=Models("claude-unheard-of", MODEL), tried=Counter(), left_usd=5)
