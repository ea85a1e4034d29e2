"""False alarms of censors on the real database: an exception at once, counted once, and what they cannot open."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from nous_online.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from nous_online.core.rights import WITHOUT_KEY, Rights
from nous_online.heart import Heart

TRIGGER = "pushing directly to main branch"
REASON = "Always use feature branches and a pull request"
PUSH = "push directly to the main branch"


def test_a_false_alarm_is_an_exception_at_once_and_counts_no_longer(heart: Heart, owner: psycopg.Connection) -> None:
    censor = heart.add_censor(TRIGGER, REASON, escalation_threshold=2)
    (first,) = heart.check_censors(PUSH)

    reported = heart.report_false_positive(censor.id, activation_id=first.id, note="it was a dry run")

    assert (reported.activation_count, reported.false_positive_count, reported.forgiven_count) == (1, 1, 1)
    assert [(each["action"], each["source_kind"]) for each in reported.exceptions] == [(PUSH, "agent")]
    assert list(heart.check_censors(PUSH)) == []
    assert list(heart.check_censors(f"  {PUSH.upper()} ")) == []
    said = owner.execute("select reason from lifecycle.events where action = 'reported'").fetchall()
    assert said == [("it was a dry run",)]


def test_an_activation_is_reported_once(heart: Heart) -> None:
    censor = heart.add_censor("push", REASON, is_literal=True)
    (first,), (second,) = heart.check_censors("git push a"), heart.check_censors("git push b")
    heart.report_false_positive(censor.id, activation_id=first.id)

    with pytest.raises(Conflict, match=str(first.id)):
        heart.report_false_positive(censor.id, activation_id=first.id)
    with pytest.raises(Conflict, match=str(first.id)):
        heart.report_false_positive(censor.id, action="git push a")

    latest = heart.report_false_positive(censor.id)
    assert [each["activation_id"] for each in latest.exceptions] == [str(first.id), str(second.id)]
    with pytest.raises(Conflict):
        heart.report_false_positive(censor.id)
    assert heart.get_censor(censor.id).false_positive_count == 2


def test_two_who_report_one_activation_at_once_count_it_once(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)
    (fired,) = heart.check_censors(PUSH)

    def report(_number: int) -> bool:
        try:
            heart.report_false_positive(censor.id, activation_id=fired.id)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(report, range(8))) == 1
    assert heart.get_censor(censor.id).false_positive_count == 1


def test_an_action_that_set_nothing_off_becomes_an_exception_and_counts_nothing(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON, severity="block")

    reported = heart.report_false_positive(censor.id, action=PUSH)

    assert (reported.false_positive_count, reported.exceptions[0]["activation_id"]) == (0, None)
    assert list(heart.check_censors(PUSH)) == []


def test_there_is_nothing_to_report_of_a_censor_that_never_fired(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    with pytest.raises(NotFound, match="has not fired yet"):
        heart.report_false_positive(censor.id)
    with pytest.raises(NotFound, match="no activation"):
        heart.report_false_positive(censor.id, activation_id=uuid4())
    with pytest.raises(InvalidInput, match="source_kind"):
        heart.report_false_positive(censor.id, action=PUSH, source_kind="system")


def test_an_exception_lets_pass_no_action_that_says_more_of_the_trigger(heart: Heart) -> None:
    censor = heart.add_censor("push * main", REASON, is_literal=True, severity="block")

    heart.report_false_positive(censor.id, action="push docs main")

    assert list(heart.check_censors("push docs main")) == []
    assert [each.severity for each in heart.check_censors("push code main")] == ["block"]


def test_a_block_that_only_false_alarms_made_is_a_warning_again(heart: Heart) -> None:
    censor = heart.add_censor("push", REASON, is_literal=True, escalation_threshold=2)
    heart.check_censors("git push a")
    (second,) = heart.check_censors("git push b")
    assert second.severity == "block"

    reported = heart.report_false_positive(censor.id, activation_id=second.id)

    assert (reported.severity, reported.is_escalated) == ("warn", False)
    assert [each.severity for each in heart.check_censors("git push c")] == ["block"]


def test_reports_do_not_soften_a_block_that_a_person_set(heart: Heart) -> None:
    censor = heart.add_censor("push", REASON, is_literal=True, severity="block")
    heart.check_censors("git push a")

    assert heart.report_false_positive(censor.id).severity == "block"


def test_a_lowered_severity_holds_until_new_activations_reach_the_threshold(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON, escalation_threshold=3)
    assert [heart.check_censors(PUSH)[0].severity for _ in range(4)] == ["warn", "warn", "block", "block"]

    heart.update_censor(censor.id, severity="warn")

    assert [heart.check_censors(PUSH)[0].severity for _ in range(3)] == ["warn", "warn", "block"]


@pytest.mark.parametrize("details", [{"severity": "absolute"}, {"severity": "block", "trust": 90}])
def test_an_agent_cannot_talk_its_own_guard_away(heart: Heart, details: dict[str, Any]) -> None:
    censor = heart.add_censor(TRIGGER, REASON, **details)
    (fired,) = heart.check_censors(PUSH)

    heart.report_false_positive(censor.id, activation_id=fired.id)

    assert not heart.check_censors(PUSH).is_allowed
    heart.report_false_positive(censor.id, source_kind="user")
    assert list(heart.check_censors(PUSH)) == []


@pytest.mark.parametrize("severity", ["block", "absolute"])
def test_a_match_by_meaning_alone_asks_and_never_blocks(heart: Heart, severity: str) -> None:
    censor = heart.add_censor("pushing directly to the main branch", REASON, severity=severity)

    check = heart.check_censors("no time for a review, my commits go to the main branch directly")

    (activation,) = check
    assert (activation.match, activation.severity, check.is_allowed) == ("meaning", "warn", True)
    assert activation.message == f"did you mean {censor.trigger!r}? {REASON}"
    assert activation.censor.severity == severity


def test_an_action_that_says_nothing_of_a_condition_warns_and_names_it(heart: Heart) -> None:
    censor = heart.add_censor("don't email customers without approval", REASON, severity="block")

    (activation,) = heart.check_censors("email customers")

    assert (activation.match, activation.severity) == ("meaning", "warn")
    assert activation.message == f"did you mean {censor.trigger!r}? The action says nothing of 'approval'. {REASON}"
    heart.report_false_positive(censor.id, activation_id=activation.id)
    assert list(heart.check_censors("email customers")) == []


def test_matches_by_meaning_do_not_count_towards_a_block(heart: Heart) -> None:
    censor = heart.add_censor("pushing directly to the main branch", REASON, escalation_threshold=2)

    for _ in range(3):
        heart.check_censors("no time for a review, my commits go to the main branch directly")

    kept = heart.get_censor(censor.id)
    assert (kept.severity, kept.activation_count, kept.forgiven_count) == ("warn", 3, 3)


def test_a_check_says_whether_the_action_is_allowed_and_how_firmly(heart: Heart) -> None:
    heart.add_censor("push", "look twice", is_literal=True)
    heart.add_censor("main", REASON, is_literal=True, severity="block")

    allowed, warned, blocked = map(heart.check_censors, ("git status", "git push", "git push origin main"))

    assert [each.is_allowed for each in (allowed, warned, blocked)] == [True, True, False]
    assert [each.severity for each in (allowed, warned, blocked)] == [None, "warn", "block"]
    assert [len(each) for each in (allowed, warned, blocked)] == [0, 1, 2]
    assert blocked[0].censor.trigger == "main"
    assert heart.check_censors("git push", is_recorded=False)[0].id is None


def test_a_check_is_neither_true_nor_false(heart: Heart) -> None:
    with pytest.raises(TypeError, match="is_allowed"):
        assert heart.check_censors("git status")


def test_undoing_a_report_takes_the_exception_back(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)
    heart.check_censors(PUSH)
    heart.report_false_positive(censor.id)

    heart.undo(censor.id, reason="it was right after all")

    assert len(heart.check_censors(PUSH)) == 1
    kept = heart.get_censor(censor.id)
    assert (kept.exceptions, kept.false_positive_count, kept.forgiven_count) == ([], 0, 0)


def test_a_caller_changes_no_censor_that_is_trusted_more_than_it(heart: Heart) -> None:
    mine = heart.add_censor(TRIGGER, REASON, severity="block", trust=80)
    pinned = heart.add_censor("posting salaries", REASON, is_pinned=True)
    caller = heart.limited_to(WITHOUT_KEY)

    for censor in (mine, pinned):
        with pytest.raises(Forbidden, match=str(censor.id)):
            caller.update_censor(censor.id, severity="warn")
        with pytest.raises(Forbidden, match=str(censor.id)):
            caller.report_false_positive(censor.id, action=PUSH)
        assert heart.get_censor(censor.id) == censor


def test_a_caller_changes_its_own_censors_but_pins_none(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)
    caller = heart.limited_to(WITHOUT_KEY)

    assert caller.update_censor(censor.id, severity="block").severity == "block"
    assert len(caller.report_false_positive(censor.id, action=PUSH).exceptions) == 1
    with pytest.raises(Forbidden, match="pinned"):
        caller.update_censor(censor.id, is_pinned=True)


def test_who_is_trusted_less_than_the_user_does_not_report_for_the_user(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON, trust=20)
    crawler = heart.limited_to(Rights(max_trust=20, may_pin=False, is_operator=False, holder="key 1"))

    with pytest.raises(Forbidden, match="source_kind 'user' is not what key 1 may claim"):
        crawler.report_false_positive(censor.id, action=PUSH, source_kind="user")

    assert len(crawler.report_false_positive(censor.id, action=PUSH).exceptions) == 1
