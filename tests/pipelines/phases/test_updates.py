"""Later values retire earlier ones, as of the moment they were said; what a person decided stands."""

from __future__ import annotations

import pytest
from drawn_pairs import THREE_DAYS, only_reason, phase_of, superseded

from nous_pipelines.phases.proposals import Read


def test_an_earlier_value_gives_way_to_a_later_one_at_the_moment_that_was_said():
    phase = phase_of(
        """
        id | learned_at | row_version
        ---|------------|------------
        a  | 2026-05-01 | 3
        b  | 2026-05-09 | 1
        """,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
    )

    (proposal,) = phase.proposals
    (change,) = proposal.changes
    assert (proposal.kind, proposal.targets) == ("supersede", ("a", "b"))
    assert proposal.read_set == (Read("fact", "a", 3), Read("fact", "b", 1))
    assert (change.kind, change.id, change.action) == ("fact", "a", "superseded")
    assert change.set == {
        "state": "superseded",
        "superseded_by": "b",
        "succession": "replaced",
        "superseded_at": "2026-05-09T00:00:00+00:00",
    }
    assert proposal.reason == ("1 earlier value gives way to the one stated 09 May 2026: another value, stated later")
    assert (phase.eligible, phase.proposed, phase.left) == ({"aria": 1}, {"aria": 1}, {})


def test_a_chain_is_one_proposal_and_each_value_ends_when_the_next_was_said():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id
        --------|---------
        a       | b
        b       | c
        """,
    )

    (proposal,) = phase.proposals
    assert proposal.targets == ("a", "b", "c")
    assert superseded(proposal) == {"a": ("c", "2026-05-02"), "b": ("c", "2026-05-03")}
    assert [read.id for read in proposal.read_set] == ["a", "b", "c"]
    assert phase.proposed == {"aria": 2}


def test_a_value_that_comes_back_wins_again():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id | verdict
        --------|----------|--------
        a       | b        | updates
        b       | c        | updates
        a       | c        | same
        """,
    )

    (proposal,) = phase.proposals
    assert superseded(proposal) == {"a": ("c", "2026-05-02"), "b": ("c", "2026-05-03")}


def test_a_value_that_came_back_and_was_merged_into_its_first_mention_still_wins():
    phase = phase_of(
        """
        id | learned_at | last_confirmed_at
        ---|------------|------------------
        a  | 2026-05-01 | 2026-05-03
        b  | 2026-05-02 | -
        """,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
    )

    (proposal,) = phase.proposals
    assert superseded(proposal) == {"b": ("a", "2026-05-03")}


def test_a_confirmation_before_the_update_changes_nothing():
    phase = phase_of(
        """
        id | learned_at | last_confirmed_at
        ---|------------|------------------
        a  | 2026-05-01 | 2026-05-02
        b  | 2026-05-03 | 2026-05-09
        """,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
    )

    assert superseded(phase.proposals[0]) == {"a": ("b", "2026-05-03")}


def test_what_holds_since_later_wins_though_it_was_said_earlier():
    phase = phase_of(
        """
        id | learned_at | valid_from
        ---|------------|-----------
        a  | 2026-05-01 | 2026-05-20
        b  | 2026-05-02 | -
        """,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
    )

    assert superseded(phase.proposals[0]) == {"b": ("a", "2026-05-01")}


def test_a_fact_that_something_else_does_not_update_stays():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id
        --------|---------
        a       | b
        a       | c
        """,
    )

    (proposal,) = phase.proposals
    assert superseded(proposal) == {"a": ("c", "2026-05-02")}


def test_the_end_of_a_chain_that_is_about_something_else_is_nobodys_successor():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id | verdict
        --------|----------|-----------
        a       | b        | updates
        b       | c        | updates
        a       | c        | compatible
        """,
    )

    assert superseded(phase.proposals[0]) == {"a": ("b", "2026-05-02"), "b": ("c", "2026-05-03")}


@pytest.mark.parametrize("verdict", ["updates", "contradicts"])
@pytest.mark.parametrize(("status", "reason"), [("open", "is open"), ("resolved", "a person resolved")])
def test_a_pair_whose_contradiction_is_known_is_left_to_whoever_decides(verdict, status, reason):
    phase = phase_of(
        THREE_DAYS,
        f"""
        left_id | right_id | verdict
        --------|----------|--------
        b       | a        | {verdict}
        """,
        contradictions=f"""
        memory_a | memory_b | status
        ---------|----------|-------
        a        | b        | {status}
        """,
    )

    assert reason in only_reason(phase)


@pytest.mark.parametrize("kind", ["merge", "supersede", "contradiction", "share"])
def test_what_a_person_took_back_is_not_proposed_again(kind):
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
        undone=f"""
        kind   | targets
        -------|--------
        {kind} | c, b, a
        """,
    )

    assert only_reason(phase) == "a person took the two apart"


def test_two_memories_of_two_undone_proposals_were_never_taken_apart():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
        undone="""
        kind    | targets
        --------|--------
        merge   | a, c
        merge   | b, c
        promote | a, b
        """,
    )

    assert len(phase.proposals) == 1


def test_a_successor_a_person_took_apart_is_not_reached_by_a_detour():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id
        --------|---------
        a       | b
        b       | c
        """,
        undone="""
        kind      | targets
        ----------|--------
        supersede | a, c
        """,
    )

    assert superseded(phase.proposals[0]) == {"a": ("b", "2026-05-02"), "b": ("c", "2026-05-03")}


@pytest.mark.parametrize(
    ("columns", "cells", "reason"),
    [
        ("state", ("archived", "active"), "one of the two is no longer active"),
        ("is_rewound", ("no", "yes"), "one of the two changed after the end of the night"),
        ("user_id", ("ben", "-"), "the two live in different places"),
        ("valid_to | valid_from", ("2026-05-01 | -", "- | 2026-05-01"), "each holds in its own time"),
        ("valid_from", ("-", "2026-06-02T00:00:01"), "the later value has not begun"),
        ("valid_to", ("-", "2026-05-02"), "the later value is over already, so each holds in its own time"),
    ],
)
def test_a_pair_that_is_none_of_the_nights_business_is_left_with_the_reason(columns, cells, reason):
    phase = phase_of(
        f"""
        id | learned_at | {columns}
        ---|------------|----------
        a  | 2026-05-01 | {cells[0]}
        b  | 2026-05-02 | {cells[1]}
        """,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
    )

    assert only_reason(phase) == reason


@pytest.mark.parametrize(
    ("sources", "second", "is_left"),
    [(("a/notes.md", "a/notes.md"), "2026-05-01", True), (("a/notes.md", "a/notes.md"), "2026-05-02", False),
     (("a/notes.md", "b/notes.md"), "2026-05-01", False), (("-", "-"), "2026-05-01", False)],
)  # fmt: skip
def test_what_one_source_told_at_one_moment_is_no_contradiction(sources, second, is_left):
    phase = phase_of(
        f"""
        id | learned_at | source
        ---|------------|-------
        a  | 2026-05-01 | {sources[0]}
        b  | {second} | {sources[1]}
        """,
        """
        left_id | right_id | verdict
        --------|----------|------------
        a       | b        | contradicts
        """,
    )

    assert (only_reason(phase) == "one source told both at the same moment") if is_left else phase.proposals


def test_a_value_takes_the_place_of_another_on_the_night_it_has_begun():
    phase = phase_of(
        """
        id | valid_from
        ---|-----------
        a  | -
        b  | 2026-06-02
        """,
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
    )

    assert [proposal.targets for proposal in phase.proposals] == [("a", "b")]


def test_a_pair_of_a_fact_that_is_gone_is_left_with_the_reason():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id
        --------|---------
        a       | gone
        """,
    )

    assert only_reason(phase) == "one of the two is no longer active"


def test_pairs_of_several_users_and_other_verdicts_are_not_looked_at():
    phase = phase_of(
        THREE_DAYS,
        """
        left_id | right_id | verdict    | is_across_users
        --------|----------|------------|----------------
        a       | b        | updates    | yes
        a       | c        | compatible | no
        b       | c        | unsure     | no
        """,
    )

    assert (phase.proposals, phase.eligible) == ([], {})


def test_agents_are_kept_apart_even_where_ids_coincide():
    rows = """
        agent_id | id | learned_at
        ---------|----|-----------
        aria     | a  | 2026-05-01
        aria     | b  | 2026-05-02
        ben      | a  | 2026-05-04
        ben      | b  | 2026-05-03
    """
    phase = phase_of(
        rows,
        """
        agent_id | left_id | right_id
        ---------|---------|---------
        ben      | b       | a
        aria     | a       | b
        """,
    )

    assert [(proposal.agent_id, superseded(proposal)) for proposal in phase.proposals] == [
        ("aria", {"a": ("b", "2026-05-02")}),
        ("ben", {"b": ("a", "2026-05-04")}),
    ]


READ = """
    left_id | right_id | slot | change | is_ordered
    --------|----------|------|--------|-----------
    a       | c        | -    | {of_a} | {ordered}
    b       | c        | -    | {of_b} | {ordered}
"""


@pytest.mark.parametrize(
    ("of_a", "of_b", "decided"),
    [
        ("0.99", "0.10", {"a": "supersede"}),
        ("0.95", "0.10", {"a": "contradiction"}),
        ("0.95", "0.80", {}),
        ("0.95", "0.95", {}),
        ("0.50", "0.10", {}),
    ],
)
def test_a_statement_changes_the_likeliest_of_what_it_may_change(of_a, of_b, decided):
    phase = phase_of(THREE_DAYS, READ.format(of_a=of_a, of_b=of_b, ordered="yes"))

    assert kinds_of(phase) == decided


@pytest.mark.parametrize(
    ("of_a", "of_b", "decided"),
    [
        ("0.95", "0.10", {"a": "supersede"}),
        ("0.95", "0.80", {"a": "contradiction"}),
        ("0.95", "0.95", {}),
    ],
)
def test_of_what_was_imported_unread_less_is_asked(of_a, of_b, decided):
    pairs = READ.format(of_a=of_a, of_b=of_b, ordered="yes")

    assert kinds_of(phase_of(THREE_DAYS, pairs, imported=["c"])) == decided
    assert kinds_of(phase_of(THREE_DAYS, pairs, imported=["a", "b"])) == kinds_of(phase_of(THREE_DAYS, pairs))


def kinds_of(phase):
    return {memory: each.kind for each in phase.proposals for memory in each.targets if memory != "c"}


def test_of_statements_without_an_order_either_may_have_changed_the_other():
    pairs = """
        left_id | right_id | slot | change | is_ordered
        --------|----------|------|--------|-----------
        a       | b        | -    | 0.90   | no
        a       | c        | -    | 0.90   | no
        a       | d        | -    | 0.90   | no
    """
    four = THREE_DAYS + "    d  | 2026-05-03\n"

    assert phase_of(four, pairs).proposals == []
