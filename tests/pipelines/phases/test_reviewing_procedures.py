"""Which procedures the night flags for review, and which it trusts again."""

from __future__ import annotations

import pytest
from drawn import NONE_UNDONE
from drawn_uses import NIGHT, procedures, undone

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.phases.unreliable import procedure_phase

FAILING = "worked in only 1 of 5 uses, less than 40%"


def phase(known, *, taken_back=NONE_UNDONE, policy=None):
    return procedure_phase({"procedures": known, "undone": taken_back}, policy=policy or NightPolicy(), night=NIGHT)


def failing(column="name", value="deploy"):
    """A procedure that worked once in five uses, with one further column."""
    return procedures(f"""
        id | success_count | failure_count | row_version | {column}
        ---|---------------|---------------|-------------|---
        p  | 1             | 4             | 8           | {value}
    """)


def test_a_procedure_that_mostly_fails_is_put_under_review():
    (proposal,) = phase(failing()).proposals

    assert (proposal.kind, proposal.targets, proposal.reason) == ("procedure", ("p",), FAILING)
    assert proposal.read_set == (Read("procedure", "p", 8),)
    assert proposal.changes == (
        Change("procedure", "p", set={"state": "review", "review_reason": FAILING}, action="flagged"),
    )
    assert proposal.evidence == {"success_count": 1, "failure_count": 4}


@pytest.mark.parametrize(
    ("success", "failure", "reason"),
    [(2, 3, "works often enough"), (0, 4, "used fewer than 5 times")],
)
def test_one_that_works_often_enough_or_was_hardly_tried_stays(success, failure, reason):
    known = procedures(f"id | success_count | failure_count\n---|---|---\np | {success} | {failure}")

    assert phase(known).left == {"aria": {reason: 1}}


def test_one_that_works_again_is_trusted_again():
    known = procedures(f"""
        id | state  | success_count | failure_count | review_reason
        ---|--------|---------------|---------------|--------------
        p  | review | 4             | 4             | {FAILING}
    """)

    (proposal,) = phase(known).proposals

    assert proposal.changes == (
        Change("procedure", "p", set={"state": "active", "review_reason": None}, action="trusted"),
    )
    assert proposal.reason == "works again: in 4 of 8 uses, at least 40%"


def test_one_under_review_that_still_fails_stays_there():
    known = procedures(f"""
        id | state  | success_count | failure_count | review_reason
        ---|--------|---------------|---------------|--------------
        p  | review | 1             | 6             | {FAILING}
    """)

    assert phase(known).left == {"aria": {"under review, and still fails too often": 1}}


def test_what_something_else_put_under_review_waits_for_a_person():
    known = procedures("""
        id | state  | success_count | failure_count | review_reason
        ---|--------|---------------|---------------|-------------------------
        p  | review | 9             | 0             | a decision of it failed
        q  | review | 9             | 0             | -
    """)

    found = phase(known)

    assert (found.proposals, found.eligible) == ([], {})


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [("is_pinned", "yes", "pinned"), ("is_rewound", "yes", "changed after the end of the night")],
)
def test_a_failing_procedure_stays_for_a_reason(column, value, reason):
    found = phase(failing(column, value))

    assert found.proposals == []
    assert found.left == {"aria": {reason: 1}}


def test_one_whose_review_a_person_took_back_is_not_flagged_again():
    found = phase(failing(), taken_back=undone("procedure", "p"))

    assert found.left == {"aria": {"a person took its review back": 1}}


def test_the_policy_says_how_often_a_procedure_must_work():
    assert phase(failing(), policy=NightPolicy(review_below_success=0.2)).proposals == []
    assert phase(failing(), policy=NightPolicy(review_after_uses=6)).proposals == []


def test_every_procedure_looked_at_is_accounted_for():
    known = procedures("""
        id | agent_id | success_count | failure_count | state
        ---|----------|---------------|---------------|---------
        a  | aria     | 0             | 5             | active
        b  | aria     | 9             | 1             | active
        c  | aria     | 9             | 0             | active
        d  | aria     | 0             | 9             | archived
        x  | ben      | 1             | 9             | active
    """)

    found = phase(known)

    assert found.eligible == {"aria": 2, "ben": 1}
    assert found.proposed == {"aria": 1, "ben": 1}
    assert found.unexplained() == {}
    assert found.as_dict() == phase(known.reverse()).as_dict()
