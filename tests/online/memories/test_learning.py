"""What learning decides: values in, values out, no database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from nous_online.core.domain import Fact, Neighbour, NewFact
from nous_online.core.policy import LearnPolicy
from nous_online.language.pairs.judging import Judgement, OfflineJudge, Verdict
from nous_online.memories.facts import new_fact
from nous_online.memories.learning import decide, pair_of, questions, same_subject, slot_of, with_rivals, worth_reading

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(days=30)
POLICY = LearnPolicy()
SENTENCE = "The api team deploys every Friday"
REWORDED = "api team deploys every Friday."


def said(content: str = REWORDED, **details: Any) -> NewFact:
    return new_fact(content, details, now=NOW)  # type: ignore[arg-type]


def known(similarity: float, content: str = SENTENCE, **changed: Any) -> Neighbour:
    columns: dict[str, Any] = dict.fromkeys(Fact.__annotations__)
    columns |= {
        "id": UUID(int=1), "state": "active", "content": content, "tags": [], "confidence": 1.0, "trust": 50,
        "source_kind": "agent", "is_pinned": False, "learned_at": EARLIER, "confirmation_count": 0, "row_version": 1,
        "rank_weight": 1.0, "scope": "private", "contradiction_status": "none",
    }  # fmt: skip
    return Neighbour(fact=Fact(**columns | changed), similarity=similarity)


def verdict(kind: Verdict) -> Judgement:
    return Judgement(kind, 1.0, "so it was judged", None, "b", "scripted", "1")


def judged(near: Neighbour, kind: Verdict) -> dict[UUID, Judgement]:
    return {near.fact.id: verdict(kind)}


@pytest.mark.parametrize(
    ("similarity", "action"), [(1.0, "confirm"), (0.95, "confirm"), (0.9499, "store"), (0.5, "store")]
)
def test_only_from_the_confirm_threshold_on_is_nobody_asked(similarity: float, action: str) -> None:
    assert decide(said(), [known(similarity)], {}, POLICY).action == action


@pytest.mark.parametrize(
    ("similarity", "is_asked"),
    [(0.96, False), (0.95, False), (0.9499, True), (0.1, True), (0.0999, False)],
)
def test_a_judge_is_asked_about_what_is_near_at_all_and_no_clear_repeat(similarity: float, is_asked: bool) -> None:  # noqa: FBT001 (a parameter)
    assert bool(questions(said(), [known(similarity)], POLICY)) is is_asked


def test_values_of_one_slot_are_asked_about_before_what_is_nearer() -> None:
    near = known(0.9, id=UUID(int=1))
    of_slot = known(0.4, id=UUID(int=2), slot="port of staging is")
    nearer = known(0.8, id=UUID(int=3))
    new = replace(said("The port of staging is 9090"), slot="port of staging is")

    assert questions(new, [nearer, of_slot, near], POLICY) == [of_slot, near, nearer]


def test_reads_what_stands_about_as_near_as_the_nearest_and_at_most_six() -> None:
    near = [known(0.6 - step / 100, id=UUID(int=1 + step)) for step in range(20)]
    other = said("Lunch is at noon")

    assert worth_reading(other, near[12:], POLICY) == near[12:18]
    behind, far_behind = known(0.55, id=UUID(int=90)), known(0.53, id=UUID(int=91))
    assert worth_reading(other, [near[0], behind, far_behind], POLICY) == [near[0], behind]


def test_reads_what_shares_words_or_the_slot_from_farther_away() -> None:
    nearest = known(0.6, "The canteen serves lunch")
    sharing = known(0.38, "Cedar Street school closes at noon on Fridays", id=UUID(int=2))
    of_slot = known(0.2, "Closing time: one", id=UUID(int=3), slot="closing time")
    new = replace(said("On Fridays the Cedar Street school is open until noon"), slot="closing time")

    assert worth_reading(new, [nearest, sharing, of_slot], POLICY) == [of_slot, nearest, sharing]


def test_reads_what_contradicts_a_fact_that_is_read_or_named_from_anywhere() -> None:
    nearest, far, farther = (known(each, id=UUID(int=int(100 * each))) for each in (0.6, 0.2, 0.15))
    near, rivals = with_rivals([nearest], [(nearest.fact.id, far), (UUID(int=7), farther)])

    assert [each.fact.id for each in near] == [each.fact.id for each in (nearest, far, farther)]
    assert worth_reading(said("Lunch is at noon"), near, POLICY, rivals) == [nearest, far]
    assert worth_reading(said("Lunch is at noon"), near, POLICY, rivals, [UUID(int=7)]) == near


def test_reads_nothing_where_nobody_is_asked() -> None:
    assert worth_reading(said(), [], POLICY) == []


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        (Verdict.SAME, "confirm"),
        (Verdict.UNSURE, "store"),
        (Verdict.COMPATIBLE, "store"),
        (Verdict.CONTRADICTS, "store"),
        (Verdict.UPDATES, "supersede"),
    ],
)
def test_the_verdict_decides_in_the_grey_band(kind: Verdict, action: str) -> None:
    near = known(0.9)

    assert decide(said(), [near], judged(near, kind), POLICY).action == action


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The pool has 20 connections", "The pool has 40 connections"),
        ("The api is deployed on Fridays", "The api is not deployed on Fridays"),
        ("The release is on 2026-05-01", "The release is on 2026-05-08"),
        ("The service runs on Python 3.11", "The service runs on Python 3.12"),
        ("Anna owns the billing service", "Bernd owns the billing service"),
    ],
)
def test_a_guard_stops_a_confirm_at_any_similarity(old: str, new: str) -> None:
    near = known(1.0, old)

    decision = decide(said(new), [near], {}, POLICY)

    assert decision.action == "store"
    assert questions(said(new), [near], POLICY) == [near]


def test_the_same_words_are_confirmed_although_a_number_is_in_them() -> None:
    sentence = "The pool has 20 connections"

    assert decide(said(sentence), [known(1.0, sentence)], {}, POLICY).action == "confirm"


@pytest.mark.parametrize(("known_trust", "action"), [(49, "store"), (50, "confirm"), (90, "confirm")])
def test_a_judge_alone_never_turns_a_statement_into_one_that_is_trusted_less(known_trust: int, action: str) -> None:
    near = known(0.9, "Deploys go through the console", trust=known_trust)
    new = said("Deploys go through the pipeline", trust=50)

    assert decide(new, [near], judged(near, Verdict.SAME), POLICY).action == action


@pytest.mark.parametrize("similarity", [0.94, 0.99])
@pytest.mark.parametrize(
    ("planted", "action"),
    [(REWORDED, "store"), (f"{SENTENCE} now", "store"), (f" {SENTENCE.replace(' ', '  ')}", "confirm")],
)
def test_only_the_very_words_lend_the_trust_of_a_statement_to_one_that_has_less(
    planted: str, action: str, similarity: float
) -> None:
    near = known(similarity, planted, trust=20)

    assert decide(said(SENTENCE, trust=90), [near], judged(near, Verdict.SAME), POLICY).action == action


@pytest.mark.parametrize(("confidence", "action"), [(0.89, "store"), (0.9, "confirm")])
def test_a_judge_that_is_not_sure_of_same_leaves_both_to_the_night(confidence: float, action: str) -> None:
    near = known(0.9)
    judgement = replace(verdict(Verdict.SAME), confidence=confidence)

    assert decide(said(), [near], {near.fact.id: judgement}, POLICY).action == action


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The pump runs nearly dry", "The pump runs completely dry"),
        ("The api restarts slowly under load", "The api restarts slowly under heavy load"),
    ],
)
def test_another_word_in_a_long_statement_is_no_repeat_however_near(old: str, new: str) -> None:
    near = known(0.99, old)
    (judgement,) = OfflineJudge().judge([pair_of(said(new), near)])

    assert decide(said(new), [near], {near.fact.id: judgement}, POLICY).action == "store"


def test_a_verdict_of_same_about_what_lies_far_apart_confirms_nothing() -> None:
    near = known(0.39, subject="deploys")

    assert decide(said(subject="deploys"), [near], judged(near, Verdict.SAME), POLICY).action == "store"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("deploys", "deploys", True),
        ("Deploys", "deploys", True),
        ("deployment", "deployments", True),
        ("abcde", "abcdf", False),  # a ratio of exactly 0.80
        ("deploys", "invoices", False),
        (None, "deploys", False),
        (None, None, False),
    ],
)
def test_subjects_spelled_alike_are_one_subject(one: str | None, other: str | None, is_same: bool) -> None:  # noqa: FBT001 (a parameter)
    assert same_subject(said("Tea helps", subject=one), known(0.1, subject=other), POLICY) is is_same


def test_another_value_of_the_same_subject_is_asked_about_however_far_its_vector() -> None:
    near = known(0.2, subject="deploy day")

    assert questions(said(subject="deploy days"), [near], POLICY) == [near]


def test_an_update_of_the_same_subject_supersedes_the_old_value() -> None:
    near = known(0.3, subject="deploys")

    decision = decide(said(subject="deploys"), [near], judged(near, Verdict.UPDATES), POLICY)

    assert (decision.action, decision.match) == ("supersede", near)


@pytest.mark.parametrize(("confidence", "is_sure"), [(0.79, False), (0.8, True)])
def test_an_update_the_judge_is_not_sure_of_is_a_contradiction_and_both_stay(confidence: float, is_sure: bool) -> None:  # noqa: FBT001 (a parameter)
    near = known(0.9)
    judgement = replace(verdict(Verdict.UPDATES), confidence=confidence)

    decision = decide(said(), [near], {near.fact.id: judgement}, POLICY)

    assert (decision.superseded, decision.contradicted) == (((near,), ()) if is_sure else ((), (near,)))


@pytest.mark.parametrize(("source", "is_one"), [("list.md", True), ("other.md", False), (None, False)])
def test_what_one_source_tells_at_one_moment_never_excludes_itself(source: str | None, is_one: bool) -> None:  # noqa: FBT001 (a parameter)
    near = known(0.9, source=source and "list.md", learned_at=NOW)

    decision = decide(said(source=source, learned_at=NOW), [near], judged(near, Verdict.UPDATES), POLICY)

    assert (decision.superseded, decision.contradicted) == ((), ()) if is_one else ((near,), ())


def test_an_older_statement_that_arrives_late_gives_way_to_the_newer() -> None:
    near = known(0.3, subject="deploys", learned_at=NOW)
    late = said(subject="deploys", learned_at=EARLIER)

    assert decide(late, [near], judged(near, Verdict.UPDATES), POLICY).action == "store_superseded"


@pytest.mark.parametrize(
    ("new_is_later", "new_trust", "known_trust", "action"),
    [
        (True, 50, 50, "supersede"),
        (True, 90, 10, "supersede"),
        (True, 10, 90, "store"),
        (False, 50, 50, "store_superseded"),
        (False, 10, 90, "store_superseded"),
        (False, 90, 10, "store"),
    ],
)
def test_what_is_trusted_less_never_replaces_what_is_trusted_more(
    new_is_later: bool,  # noqa: FBT001 (a parameter)
    new_trust: int,
    known_trust: int,
    action: str,
) -> None:
    new = said(subject="deploys", trust=new_trust, learned_at=NOW if new_is_later else EARLIER - timedelta(days=1))
    near = known(0.9, subject="deploys", trust=known_trust)

    assert decide(new, [near], judged(near, Verdict.UPDATES), POLICY).action == action


def test_a_fact_that_says_the_same_is_preferred_to_one_it_would_update() -> None:
    update, repeat = known(0.99, "The api team deploys every 2 Fridays", id=UUID(int=2)), known(0.96)
    judgements = judged(update, Verdict.UPDATES)

    decision = decide(said(), [update, repeat], judgements, POLICY)

    assert (decision.action, decision.match) == ("confirm", repeat)


def test_the_nearest_of_several_repeats_is_confirmed_in_whatever_order_they_come() -> None:
    near, nearer = known(0.96, id=UUID(int=1)), known(0.97, id=UUID(int=2))

    forwards = decide(said(), [near, nearer], {}, POLICY)
    backwards = decide(said(), [nearer, near], {}, POLICY)

    assert forwards == backwards
    assert forwards.match == nearer


def test_of_equally_near_repeats_the_smallest_id_is_confirmed() -> None:
    twins = [known(0.96, id=UUID(int=2)), known(0.96, id=UUID(int=1))]

    assert decide(said(), twins, {}, POLICY).match == twins[1]


def test_a_judge_that_decided_nothing_stores() -> None:
    assert decide(said(), [known(0.9)], {}, POLICY).action == "store"


def test_the_first_statement_of_all_is_stored() -> None:
    assert decide(said(), [], {}, POLICY).action == "store"


def test_every_decision_gives_its_reason() -> None:
    near = known(0.9, subject="deploys", trust=90)

    reasons = [decide(said(), [near], judged(near, kind), POLICY).reason for kind in Verdict]

    assert all(reasons)
    assert "trusted more" in decide(said(), [near], judged(near, Verdict.UPDATES), POLICY).reason


def test_a_judge_sees_what_is_known_first_and_what_is_new_second() -> None:
    near = known(0.9, subject="deploys", trust=70)

    pair = pair_of(said(subject="deploy", trust=30), near)

    assert (pair.a.text, pair.a.stated_at, pair.a.trust) == (SENTENCE, EARLIER, 70)
    assert (pair.b.text, pair.b.stated_at, pair.b.trust) == (REWORDED, NOW, 30)
    assert pair.similarity == 0.9


def test_a_slot_too_long_for_its_column_is_no_slot() -> None:
    long = " ".join(["word" * 8] * 36) + " is blue"

    assert slot_of(long, None) is None
    assert slot_of("The colour of the door is blue", None)


@pytest.mark.parametrize("kind", list(Verdict))
def test_nothing_said_of_another_subject_settles_what_becomes_of_a_statement(kind: Verdict) -> None:
    near = known(1.0, "The status is green", subject="server A")

    decision = decide(said("The status is green", subject="server B"), [near], judged(near, kind), POLICY)

    assert (decision.action, decision.contradicted) == ("store", ())


@pytest.mark.parametrize("subject", [None, "Server A", "the server  A"])
def test_a_repetition_of_the_same_subject_or_of_none_is_confirmed(subject: str | None) -> None:
    near = known(1.0, "The status is green", subject="server A")

    assert decide(said("The status is green", subject=subject), [near], {}, POLICY).action == "confirm"


def on(day: int) -> datetime:
    return datetime(2026, 4, day, tzinfo=UTC)


OLD_PORT, NEW_PORT = "The port is 80", "The port is 81"


def decided(new: NewFact, near: Neighbour) -> str:
    return decide(new, [near], judged(near, Verdict.UPDATES), POLICY).action


def test_values_that_hold_one_after_the_other_stand_beside_each_other() -> None:
    near = known(0.9, OLD_PORT, valid_from=on(1), valid_to=on(5))

    assert decided(said(NEW_PORT, valid_from=on(5), valid_to=on(9)), near) == "store"
    assert decided(said(NEW_PORT, valid_to=on(1)), near) == "store"
    assert decided(said(NEW_PORT, valid_from=on(4), valid_to=on(9)), near) == "supersede"


def test_contradictions_need_a_moment_at_which_both_hold() -> None:
    near = known(0.9, OLD_PORT, valid_to=on(5))
    contradicted = judged(near, Verdict.CONTRADICTS)

    assert decide(said(NEW_PORT, valid_from=on(5)), [near], contradicted, POLICY).contradicted == ()
    assert decide(said(NEW_PORT, valid_from=on(4)), [near], contradicted, POLICY).contradicted == (near,)


def test_a_value_is_as_new_as_the_day_it_began_to_hold() -> None:
    near = known(0.9, OLD_PORT, valid_from=on(20))

    assert decided(said(NEW_PORT, valid_from=on(10)), near) == "store_superseded"
    assert decided(said(NEW_PORT, valid_from=on(25)), near) == "supersede"
    assert pair_of(said(NEW_PORT, valid_from=on(10)), near).b.stated_at == on(10)


def test_what_is_over_never_takes_the_place_of_what_still_holds() -> None:
    assert decided(said(NEW_PORT, valid_to=on(20)), known(0.9, OLD_PORT)) == "store"
    assert decided(said(NEW_PORT, valid_from=on(1)), known(0.9, OLD_PORT, valid_from=on(5), valid_to=on(9))) == "store"
    assert decided(said(NEW_PORT), known(0.9, OLD_PORT, valid_to=on(20))) == "supersede"


@pytest.mark.parametrize(
    ("was", "now", "action"),
    [
        ({}, {}, "confirm"),
        ({"valid_from": on(1)}, {}, "confirm"),
        ({"valid_from": on(1)}, {"valid_from": on(1)}, "confirm"),
        ({"valid_from": on(1)}, {"valid_from": on(2)}, "store"),
        ({}, {"valid_from": on(2)}, "store"),
        ({"valid_to": on(9)}, {}, "store"),
        ({"valid_from": NOW + timedelta(days=1)}, {}, "store"),
    ],
)
def test_a_repetition_of_another_time_is_another_statement(was: Any, now: Any, action: str) -> None:
    near = known(1.0, OLD_PORT, **was)

    assert decide(said(OLD_PORT, **now), [near], judged(near, Verdict.SAME), POLICY).action == action


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("My mother's birthday is in May", "My mother's birthday is on May 5"),
        ("The audit takes place in May 2026", "The audit takes place on 7 May 2026"),
        ("The standup takes place every week", "The standup takes place every week on Friday"),
        ("The standup takes place daily", "The standup takes place daily at 9:30"),
        ("The pool is limited", "The pool is limited to 40"),
        ("The billing database was moved", "The billing database was moved to Oslo"),
        ("The bug is fixed", "The bug is fixed in NX-12"),
    ],
)
def test_only_a_repetition_that_says_no_more_is_confirmed(less: str, more: str) -> None:
    near, fuller = known(0.99, less), known(0.99, more)

    assert decide(said(more), [near], judged(near, Verdict.SAME), POLICY).action == "store"
    assert decide(said(less), [fuller], judged(fuller, Verdict.SAME), POLICY).action == "confirm"
