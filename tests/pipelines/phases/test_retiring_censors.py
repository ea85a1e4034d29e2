"""Which censors the night retires, and which it leaves to a person."""

from __future__ import annotations

import polars as pl
import pytest
from drawn import NONE_UNDONE
from drawn_uses import NIGHT, censors, undone

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.phases.unreliable import censor_phase


def phase(known, *, taken_back=NONE_UNDONE, policy=None):
    return censor_phase({"censors": known, "undone": taken_back}, policy=policy or NightPolicy(), night=NIGHT)


def wrong(columns="", values=""):
    """A censor that was wrong four times of five, with further columns."""
    return censors(f"""
        id | activation_count | false_positive_count | row_version {columns and "|" + columns}
        ---|------------------|----------------------|------------{columns and "|---"}
        a  | 5                | 4                    | 6           {values and "|" + values}
    """)


def test_a_censor_that_was_mostly_wrong_is_archived():
    (proposal,) = phase(wrong()).proposals

    assert (proposal.kind, proposal.targets) == ("censor", ("a",))
    assert proposal.read_set == (Read("censor", "a", 6),)
    assert proposal.changes == (
        Change("censor", "a", set={"state": "archived", "archived_at": "2026-07-01T00:00:00+00:00"}, action="retired"),
    )
    assert proposal.reason == "4 of 5 activations were reported as false"


@pytest.mark.parametrize(("activations", "false", "is_retired"), [(4, 2, False), (4, 3, True), (2, 2, False)])
def test_only_a_majority_of_enough_activations_counts(activations, false, is_retired):
    known = censors(f"id | activation_count | false_positive_count\n---|---|---\na | {activations} | {false}")

    assert len(phase(known).proposals) == is_retired


def test_one_that_ran_out_retires_whether_it_was_right_or_not():
    known = censors("""
        id | activation_count | false_positive_count | expires_at
        ---|------------------|----------------------|-----------
        a  | 9                | 0                    | 2026-06-30
        b  | 9                | 0                    | 2026-07-02
    """)

    (proposal,) = phase(known).proposals

    assert (proposal.targets, proposal.reason) == (("a",), "ran out on 30 Jun 2026")


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("is_pinned", "yes", "pinned"),
        ("is_rewound", "yes", "changed after the end of the night"),
        ("severity", "absolute", "absolute: only a person retires it"),
        ("trust", "70", "trusted more than the agent that reports: only a person retires it"),
    ],
)
def test_a_censor_that_was_mostly_wrong_stays_for_a_reason(column, value, reason):
    found = phase(wrong(column, value))

    assert found.proposals == []
    assert found.left == {"aria": {reason: 1}}


def test_one_that_a_person_brought_back_stays():
    assert phase(wrong(), taken_back=undone("censor", "a")).left == {"aria": {"a person brought it back": 1}}


def test_the_policy_says_what_a_majority_is():
    known = censors("id | activation_count | false_positive_count\n---|---|---\na | 4 | 3")

    assert phase(known, policy=NightPolicy(false_positive_majority=0.8)).proposals == []


def test_every_censor_looked_at_is_accounted_for_and_blameless_ones_are_not():
    known = censors("""
        id | agent_id | activation_count | false_positive_count | state
        ---|----------|------------------|----------------------|---------
        a  | aria     | 5                | 4                    | active
        b  | aria     | 2                | 1                    | active
        c  | aria     | 9                | 1                    | active
        d  | aria     | 9                | 0                    | active
        e  | aria     | 5                | 5                    | archived
        x  | ben      | 5                | 5                    | active
    """)

    found = phase(known)

    assert found.eligible == {"aria": 3, "ben": 1}
    assert found.left == {"aria": {"fired fewer than 3 times": 1, "right often enough": 1}}
    assert found.unexplained() == {}
    assert found.as_dict() == phase(known.reverse()).as_dict()


def test_no_censors_are_no_trouble():
    found = phase(pl.DataFrame(schema=censors().schema))

    assert (found.proposals, found.eligible) == ([], {})
