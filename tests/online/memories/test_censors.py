"""Censors on the real database: kept once, set off by what they warn of, counted, escalated, announced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from nous_online.core.deadline import Deadline
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import censors, checking
from nous_online.memories.checking import POLICY

TRIGGER = "pushing directly to main branch"
REASON = "Always use feature branches and a pull request"
PUSH = "push directly to the main branch"
MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


def announced(owner: psycopg.Connection) -> list[tuple[Any, ...]]:
    return owner.execute(
        "select memory_id, payload from heart.outbox where name = 'censor_activated' order by id"
    ).fetchall()


def censor_count(heart: Heart) -> int:
    return len(heart.list_censors())


@pytest.mark.parametrize(("odds", "severity"), [(1.0, "block"), (-1.4, "block"), (-1.6, "warn")])
def test_what_the_reader_finds_to_be_something_else_is_warned_of_and_not_blocked(
    heart: Heart, monkeypatch: pytest.MonkeyPatch, odds: float, severity: str
) -> None:
    monkeypatch.setattr(checking, "read_actions", lambda pairs: [odds] * len(pairs))
    heart.add_censor(TRIGGER, REASON, severity="block")

    (found,) = heart.check_censors("push straight to the main branch")

    assert found.severity == severity


def test_everything_said_about_a_censor_is_kept(heart: Heart, owner: psycopg.Connection) -> None:
    decision_id = uuid4()

    censor = heart.add_censor(
        TRIGGER, REASON, severity="block", escalation_threshold=3, learned_from_decision_id=decision_id,
        expires_at=JUNE, encoded_frame="debug", encoded_censors=["no-friday-deploys"], scope="project",
        user_id="u", project_id="p", source="review", source_kind="user", trust=70, is_pinned=True, learned_at=MAY,
    )  # fmt: skip

    assert heart.get_censor(censor.id) == censor
    assert (censor.trigger, censor.reason, censor.severity, censor.escalation_threshold) == (
        TRIGGER, REASON, "block", 3,
    )  # fmt: skip
    assert (censor.learned_from_decision_id, censor.expires_at, censor.learned_at) == (decision_id, JUNE, MAY)
    assert (censor.encoded_frame, censor.encoded_censors) == ("debug", ["no-friday-deploys"])
    assert (censor.scope, censor.user_id, censor.project_id) == ("project", "u", "p")
    assert (censor.source, censor.source_kind, censor.trust, censor.is_pinned) == ("review", "user", 70, True)
    assert owner.execute("select action, to_state, actor from lifecycle.events").fetchall() == [
        ("learned", "active", "agent")
    ]


def test_a_censor_told_nothing_else_warns_five_times_and_is_neutral(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    assert (censor.severity, censor.escalation_threshold, censor.is_literal) == ("warn", 5, False)
    assert (censor.encoded_frame, censor.encoded_censors) == (None, None)


@pytest.mark.parametrize(
    ("again", "is_the_same"),
    [
        (TRIGGER, True),
        ("  Pushing DIRECTLY to  main branch ", True),
        ("directly pushing to main branch", True),  # the same words, so the same vector here, and no guard objects
        ("pulling directly to main branch", False),
        ("pushing directly to the staging area", False),
    ],
)
def test_a_trigger_that_says_the_same_is_kept_once(heart: Heart, *, again: str, is_the_same: bool) -> None:
    first = heart.add_censor(TRIGGER, REASON)

    second = heart.add_censor(again, "another reason")

    assert (second.id == first.id) == is_the_same
    assert censor_count(heart) == (1 if is_the_same else 2)


def test_a_guard_keeps_triggers_apart_that_differ_in_a_number(heart: Heart) -> None:
    triggers = [f"offering a discount above {percent} percent to any new customer of the shop" for percent in (20, 30)]

    for trigger in triggers:
        heart.add_censor(trigger, "margins")

    assert censor_count(heart) == 2


def test_adding_a_stricter_censor_again_makes_the_known_one_stricter(heart: Heart) -> None:
    heart.add_censor(TRIGGER, REASON, expires_at=MAY + timedelta(days=3650), learned_at=MAY)

    again = heart.add_censor(TRIGGER, REASON, severity="block", escalation_threshold=2, is_pinned=True, trust=80)

    assert (again.severity, again.escalation_threshold, again.is_pinned, again.trust) == ("block", 2, True, 80)
    assert (again.expires_at, again.row_version) == (None, 2)


def test_adding_a_milder_censor_again_changes_nothing(heart: Heart) -> None:
    strict = heart.add_censor(TRIGGER, REASON, severity="absolute", escalation_threshold=2, trust=80)

    assert heart.add_censor(TRIGGER, REASON, severity="warn", escalation_threshold=9, expires_at=JUNE) == strict


def test_censors_of_different_reach_are_kept_apart(heart: Heart) -> None:
    heart.add_censor(TRIGGER, REASON)
    heart.add_censor(TRIGGER, REASON, user_id="u1")
    heart.add_censor(TRIGGER, REASON, scope="project", project_id="p1")
    heart.add_censor(TRIGGER, REASON, is_literal=True)

    assert censor_count(heart) == 4


def test_two_who_add_the_same_censor_at_once_make_one(heart: Heart) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = {censor.id for censor in pool.map(lambda _: heart.add_censor(TRIGGER, REASON), range(8))}

    assert (len(ids), censor_count(heart)) == (1, 1)


@pytest.mark.parametrize(
    ("trigger", "reason", "details", "said"),
    [
        (" ", REASON, {}, "trigger is empty"),
        (TRIGGER, "", {}, "reason is empty"),
        ("x" * 5000, REASON, {}, "5,000 bytes"),
        (TRIGGER, REASON, {"severity": "stern"}, "warn, block, absolute"),
        (TRIGGER, REASON, {"escalation_threshold": 0}, "escalation_threshold"),
        (TRIGGER, REASON, {"escalation_threshold": True}, "escalation_threshold"),
        (TRIGGER, REASON, {"learned_from_decision_id": 7}, "learned_from_decision_id"),
        (TRIGGER, REASON, {"is_literal": "yes"}, "is_literal"),
        (TRIGGER, REASON, {"colour": "red"}, "colour"),
        ("* *", REASON, {"is_literal": True}, "every action"),
    ],
)
def test_what_cannot_be_a_censor_is_refused(
    heart: Heart, trigger: str, reason: str, details: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        heart.add_censor(trigger, reason, **details)

    assert censor_count(heart) == 0


def test_an_action_sets_off_the_censor_that_means_it(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON, severity="block")

    (activation,) = heart.check_censors(PUSH, at=JUNE)

    assert (activation.severity, activation.reason, activation.match) == ("block", REASON, "near")
    assert activation.similarity is not None
    assert activation.similarity > 0.5
    assert (activation.censor.id, activation.censor.activation_count) == (censor.id, 1)
    assert activation.censor.last_activated_at == JUNE
    assert list(heart.check_censors("pull directly from the main branch")) == []


def test_an_action_sets_off_the_censor_whose_words_it_holds(heart: Heart) -> None:
    heart.add_censor("DROP TABLE *", "migrations only", is_literal=True)

    (activation,) = heart.check_censors("select 1;\n  drop   table customers;")

    assert (activation.match, activation.similarity) == ("literal", None)
    assert list(heart.check_censors("drop\nthe table")) == []


def test_each_thing_a_long_action_does_is_checked(heart: Heart) -> None:
    heart.add_censor(TRIGGER, REASON)
    work = "\n".join(f"write the notes of meeting {number} into the wiki of the garden club" for number in range(30))

    (activation,) = heart.check_censors(f"{work}\n{PUSH}")

    assert activation.part == PUSH


def test_the_firmest_censor_comes_first_and_then_the_one_of_the_same_frame(heart: Heart) -> None:
    for word, severity, frame in [
        ("main", "warn", None),
        ("branch", "block", None),
        ("push", "absolute", None),
        ("the", "warn", "debug"),
    ]:
        heart.add_censor(word, f"because of {word}", severity=severity, is_literal=True, encoded_frame=frame)

    activations = heart.check_censors(PUSH, frame="debug")

    assert [each.censor.trigger for each in activations] == ["push", "branch", "the", "main"]


def test_the_activation_that_reaches_the_threshold_is_the_first_that_blocks(
    heart: Heart, owner: psycopg.Connection
) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    severities = [heart.check_censors(PUSH, session_id="s1")[0].severity for _ in range(6)]

    assert severities == ["warn"] * 4 + ["block"] * 2
    assert [payload["was_blocked"] for _, payload in announced(owner)] == [False] * 4 + [True] * 2
    assert announced(owner)[-1] == (
        censor.id,
        {
            "censor_id": str(censor.id),
            "activation_id": announced(owner)[-1][1]["activation_id"],
            "severity": "block",
            "was_blocked": True,
            "session_id": "s1",
        },
    )
    before = owner.execute("select before from lifecycle.events where version_after = 6").fetchone()
    assert before is not None
    assert (before[0]["severity"], before[0]["activation_count"]) == ("warn", 4)


def test_a_censor_has_a_threshold_of_its_own(heart: Heart) -> None:
    heart.add_censor(TRIGGER, REASON, escalation_threshold=2)

    assert [heart.check_censors(PUSH)[0].severity for _ in range(3)] == ["warn", "block", "block"]


def test_no_count_makes_a_block_absolute(heart: Heart) -> None:
    heart.add_censor(TRIGGER, REASON, severity="block", escalation_threshold=1)

    assert [heart.check_censors(PUSH)[0].severity for _ in range(3)] == ["block"] * 3


def test_looking_only_counts_nothing_and_announces_nothing(heart: Heart, owner: psycopg.Connection) -> None:
    censor = heart.add_censor(TRIGGER, REASON, escalation_threshold=1)

    (activation,) = heart.check_censors(PUSH, is_recorded=False)

    assert activation.severity == "warn"
    assert heart.get_censor(censor.id) == censor
    assert announced(owner) == []


def test_activations_are_counted_exactly_under_concurrency(heart: Heart, owner: psycopg.Connection) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: heart.check_censors(PUSH)[0].severity, range(24)))

    assert heart.get_censor(censor.id).activation_count == 24
    assert (answers.count("warn"), len(announced(owner))) == (4, 24)


def test_a_check_that_was_replayed_does_not_turn_back_the_clock(heart: Heart) -> None:
    heart.add_censor(TRIGGER, REASON)
    heart.check_censors(PUSH, at=JUNE)

    (activation,) = heart.check_censors(PUSH, at=MAY)

    assert (activation.censor.last_activated_at, activation.censor.activation_count) == (JUNE, 2)


def test_an_expired_censor_is_silent_and_gives_way_to_a_new_one(heart: Heart) -> None:
    expired = heart.add_censor(TRIGGER, REASON, expires_at=MAY, learned_at=MAY - timedelta(days=9))

    assert list(heart.check_censors(PUSH, at=MAY - timedelta(days=1), is_recorded=False)) != []
    assert list(heart.check_censors(PUSH, at=MAY)) == []
    assert heart.add_censor(TRIGGER, REASON).id != expired.id


def test_an_archived_censor_is_silent(heart: Heart, database: Database) -> None:
    from nous_online.core.domain import CENSOR
    from nous_online.database.changes import Cause, change_memory, version_of

    censor = heart.add_censor(TRIGGER, REASON)
    cause = Cause("operator", "archived", "a test", effective_at=MAY)
    with database.transaction("aria") as connection:
        values = {"state": "archived", "archived_at": MAY.isoformat()}
        change_memory(connection, "aria", version_of(CENSOR, censor), values, cause=cause)

    assert list(heart.check_censors(PUSH)) == []
    assert [each.id for each in heart.list_censors(state="archived")] == [censor.id]


@pytest.mark.parametrize(
    ("reach", "asking", "is_heard"),
    [
        ({}, {}, True),
        ({}, {"user_id": "u1", "project_id": "p1"}, True),
        ({"user_id": "u1"}, {"user_id": "u1"}, True),
        ({"user_id": "u1"}, {"user_id": "u2"}, False),
        ({"user_id": "u1"}, {}, False),
        ({"scope": "project", "project_id": "p1"}, {"project_id": "p1"}, True),
        ({"scope": "project", "project_id": "p1"}, {"project_id": "p2"}, False),
        ({"scope": "project", "project_id": "p1"}, {}, False),
        ({"scope": "system", "user_id": "u1"}, {"user_id": "u2"}, True),
    ],
)
def test_a_censor_is_heard_within_its_scope(
    heart: Heart, *, reach: dict[str, Any], asking: dict[str, Any], is_heard: bool
) -> None:
    heart.add_censor(TRIGGER, REASON, **reach)
    heart.add_censor("push", REASON, is_literal=True, **reach)

    assert len(heart.check_censors(PUSH, **asking)) == (2 if is_heard else 0)


def test_no_censor_of_another_agent_is_heard_or_seen(heart: Heart, database: Database) -> None:
    ben = Heart.open("ben", database=database, embedder=heart.agent.embedder, judge=heart.agent.judge)
    censor = ben.add_censor(TRIGGER, REASON, scope="system")

    assert list(heart.check_censors(PUSH)) == []
    assert heart.list_censors() == []
    with pytest.raises(NotFound, match=str(censor.id)):
        heart.report_false_positive(censor.id)


def test_a_censor_becomes_absolute_and_milder_by_hand_alone(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    firmest = heart.update_censor(censor.id, severity="absolute", note="after the outage")
    milder = heart.update_censor(censor.id, severity="warn", escalation_threshold=9, expires_at=None, is_pinned=True)

    assert (firmest.severity, milder.severity) == ("absolute", "warn")
    assert (milder.escalation_threshold, milder.is_pinned, milder.row_version) == (9, True, 3)


def test_updating_a_censor_to_what_it_says_already_leaves_no_event(heart: Heart) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    assert heart.update_censor(censor.id, severity="warn") == censor


@pytest.mark.parametrize("changes", [{"severity": "loud"}, {"trigger": "x"}, {"escalation_threshold": -1}])
def test_what_a_censor_cannot_become_is_refused(heart: Heart, changes: dict[str, Any]) -> None:
    censor = heart.add_censor(TRIGGER, REASON)

    with pytest.raises(InvalidInput):
        heart.update_censor(censor.id, **changes)


def test_censors_are_listed_the_firmest_first(heart: Heart) -> None:
    heart.add_censor("leaving the stove on", "fire")
    heart.add_censor("telling a patient the dosage", "ask a doctor", severity="absolute")
    heart.add_censor(TRIGGER, REASON, severity="block")

    assert [censor.severity for censor in heart.list_censors()] == ["absolute", "block", "warn"]


@pytest.mark.parametrize("action", ["", "x" * 40_000, "a\x00b"])
def test_an_action_that_cannot_be_checked_is_refused_rather_than_let_through(heart: Heart, action: str) -> None:
    with pytest.raises(InvalidInput, match="action"):
        heart.check_censors(action)


def test_only_the_closest_of_many_censors_leave_the_store_and_all_that_must_occur_as_written(heart: Heart) -> None:
    others = [heart.add_censor(f"{TRIGGER} of team {number}", REASON) for number in range(2, 9)]
    literal = heart.add_censor("rm -rf", REASON, is_literal=True)
    asked = checking.checked_question(PUSH, {}, now=JUNE)
    vectors = heart.agent.embed(asked.parts, Deadline(60))

    with heart.agent.database.transaction(heart.agent.id) as connection:
        found = censors.find_suspects(connection, heart.agent, asked, vectors)

    cosines = heart.agent.embedder.embed_documents([each.trigger for each in others]) @ vectors[0]
    ranked = sorted(zip(cosines, others, strict=True), key=lambda pair: (-pair[0].round(6), -pair[1].id.int))
    assert [each.id for each in found] == [literal.id, *(each.id for _, each in ranked[: POLICY.most_read])]
