"""Memories that belong together are linked once, boundedly, and never against a person's word."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import NIGHT
from drawn_links import CITED_TWICE, FOUR, linked, phase_of
from hypothesis import given
from hypothesis import strategies as st

from nous_pipelines.phases import links
from nous_pipelines.phases.proposals import Read
from nous_pipelines.plan.apply import decide
from nous_pipelines.plan.planning import planned


def test_facts_that_are_alike_but_not_the_same_are_related_by_their_cosine():
    phase = phase_of(
        """
        left_id | right_id | verdict     | similarity
        --------|----------|-------------|-----------
        a       | b        | compatible  | 0.85
        b       | c        | unsure      | 0.93
        a       | c        | same        | 0.99
        a       | d        | updates     | 0.91
        b       | d        | contradicts | 0.91
        """,
        facts=FOUR,
    )

    assert linked(phase) == [("a", "b", "related", 0.85), ("b", "c", "related", 0.93)]
    assert (phase.eligible, phase.proposed, phase.left) == ({"aria": 2}, {"aria": 2}, {})


FAN = """
    left_id | right_id
    --------|---------
    a       | b
    a       | c
    b       | c
    """


def test_the_links_that_lead_from_one_memory_are_one_proposal_that_read_both_ends_of_each():
    phase = phase_of(
        FAN,
        facts="""
        id | row_version
        ---|------------
        a  | 1
        b  | 4
        c  | 2
        """,
    )

    first, second = phase.proposals
    assert (first.kind, first.targets, second.targets) == ("link", ("a", "b", "a", "c"), ("b", "c"))
    assert first.read_set == (Read("fact", "a", 1), Read("fact", "b", 4), Read("fact", "c", 2))
    assert second.read_set == (Read("fact", "b", 4), Read("fact", "c", 2))
    assert [(change.kind, change.id) for change in first.changes] == [("link", "a"), ("link", "a")]
    assert first.changes[0].set == {
        "to_id": "b",
        "kind": "related",
        "weight": 0.9,
        "evidence": {"verdict": "compatible"},
        "created_at": "2026-06-02T00:00:00+00:00",
    }
    assert (first.reason, second.reason) == (
        "3 memories belong together: 2 related",
        "2 memories belong together: 1 related",
    )
    assert (phase.eligible, phase.proposed) == ({"aria": 3}, {"aria": 3})


def test_links_that_lead_on_from_the_end_of_another_make_nobody_wait():
    phase = phase_of(FAN, facts=FOUR)

    plan = planned(NIGHT, phase.proposals, agent_ids=[], policy={})

    assert (len(plan.proposals), plan.waiting) == (2, ())


def test_a_memory_that_changed_meanwhile_costs_its_own_links_and_no_others():
    phase = phase_of(
        """
        left_id | right_id
        --------|---------
        a       | b
        c       | d
        """,
        facts=FOUR,
    )

    assert [each.state for each in decide(phase.proposals, {"a": 1, "b": 2, "c": 1, "d": 1})] == ["stale", "applied"]


@pytest.mark.parametrize("cell", ["0.79 | no", "0.95 | yes"])
def test_pairs_below_the_threshold_and_across_users_are_no_candidates(cell):
    phase = phase_of(
        f"""
        left_id | right_id | similarity | is_across_users
        --------|----------|------------|----------------
        a       | b        | {cell}
        """,
        facts=FOUR,
    )

    assert (phase.proposals, phase.eligible) == ([], {})


def test_memories_of_any_kind_cited_by_the_same_recalls_are_linked_by_the_share_of_them():
    phase = phase_of(
        facts="""
        id
        --
        a
        c
        """,
        procedures="""
        id | row_version
        ---|------------
        b  | 7
        """,
        recalls=CITED_TWICE,
    )

    assert linked(phase) == [("a", "b", "together", pytest.approx(2 / 3, abs=1e-4))]
    assert phase.proposals[0].changes[0].set["evidence"] == {"recalls": 2}
    assert phase.proposals[0].read_set[1] == Read("procedure", "b", 7)


def test_a_memory_cited_twice_by_one_recall_counts_once_and_a_recall_of_very_many_not_at_all():
    many = ", ".join(["a", "b", *(f"m{place}" for place in range(19))])
    phase = phase_of(
        facts=FOUR,
        recalls=f"""
        id | cited_ids
        ---|----------
        r1 | a, b, a, b
        r2 | {many}
        r3 | {many}
        """,
    )

    assert (phase.proposals, phase.eligible) == ([], {})


def test_a_fact_is_linked_to_the_episode_it_was_drawn_from_unless_that_is_open():
    phase = phase_of(
        facts="""
        id | state  | source_episode_id
        ---|--------|------------------
        a  | active | e
        b  | active | open
        c  | active | -
        d  | superseded | e
        """,
        episodes="""
        id   | state
        -----|-------
        e    | closed
        open | open
        """,
    )

    assert linked(phase) == [("a", "e", "drawn_from", 1.0)]
    assert phase.left == {"aria": {"one of the two is no longer in use": 1}}
    assert phase.eligible == {"aria": 2}


def test_an_episode_leads_to_any_number_of_facts():
    rows = "\n".join(f"        f{place} | e" for place in range(9))
    phase = phase_of(
        most=2,
        facts=f"""
        id | source_episode_id
        ---|------------------
{rows}
        """,
        episodes="""
        id
        --
        e
        """,
    )

    assert len(linked(phase)) == 9


@pytest.mark.parametrize("ends", ["a | b", "b | a"])
def test_a_link_that_exists_either_way_is_not_proposed_again(ends):
    phase = phase_of(
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
        facts=FOUR,
        recalls=CITED_TWICE,
        links=f"""
        from_id | to_id
        --------|------
        {ends}
        """,
    )

    assert [kind for _, _, kind, _ in linked(phase)] == ["together"]
    assert phase.left == {"aria": {"already linked": 1}}


@pytest.mark.parametrize(
    ("columns", "cell", "reason"),
    [
        ("state", "archived", "one of the two is no longer in use"),
        ("is_rewound", "yes", "one of the two changed after the end of the night"),
        ("user_id", "ben", "the two belong to different users"),
    ],
)
def test_memories_that_can_not_be_linked_are_left_with_the_reason(columns, cell, reason):
    usual = {"state": "active", "is_rewound": "no", "user_id": "mara"}[columns]
    phase = phase_of(
        """
        left_id | right_id
        --------|---------
        a       | b
        """,
        facts=f"""
        id | {columns}
        ---|----------
        a  | {usual}
        b  | {cell}
        """,
    )

    assert (phase.proposals, phase.left) == ([], {"aria": {reason: 1}})


def test_a_memory_that_changes_tonight_is_linked_another_night():
    phase = phase_of(
        """
        left_id | right_id
        --------|---------
        a       | b
        c       | d
        """,
        facts=FOUR,
        changed="b",
    )

    assert [each[:2] for each in linked(phase)] == [("c", "d")]
    assert phase.left == {"aria": {"one of the two changes tonight": 1}}


def test_a_link_that_was_taken_back_is_not_proposed_again_and_its_neighbours_are():
    phase = phase_of(
        """
        left_id | right_id
        --------|---------
        a       | b
        b       | c
        c       | d
        """,
        facts=FOUR,
        undone="""
        kind  | targets
        ------|--------
        link  | b, a, d, c
        merge | b, c
        """,
    )

    assert [each[:2] for each in linked(phase)] == [("b", "c")]
    assert phase.left == {"aria": {"a person took the link back": 2}}


def test_each_memory_keeps_its_strongest_links_and_those_it_has_count():
    phase = phase_of(
        """
        left_id | right_id | similarity
        --------|----------|-----------
        a       | b        | 0.91
        a       | c        | 0.92
        a       | d        | 0.93
        b       | c        | 0.85
        """,
        most=2,
        facts=FOUR,
        links="""
        from_id | to_id
        --------|------
        x       | a
        """,
    )

    assert [each[:2] for each in linked(phase)] == [("a", "d"), ("b", "c")]
    assert phase.left == {"aria": {"has enough links": 2}}


def test_a_night_adds_the_strongest_of_each_kind_and_leaves_the_rest_to_the_next(monkeypatch):
    monkeypatch.setattr(links, "LEAST_A_NIGHT", 2)

    phase = phase_of(
        """
        left_id | right_id | similarity
        --------|----------|-----------
        a       | d        | 0.81
        c       | d        | 0.93
        """,
        facts=FOUR,
        recalls=CITED_TWICE,
    )

    assert [each[:3] for each in linked(phase)] == [("a", "b", "together"), ("c", "d", "related")]
    assert phase.left == {"aria": {"stronger links come first": 1}}
    assert phase.unexplained() == {}


def test_each_agent_has_a_proposal_of_its_own_though_ids_coincide():
    phase = phase_of(
        """
        agent_id | left_id | right_id
        ---------|---------|---------
        ben      | a       | b
        aria     | a       | b
        """,
        facts="""
        agent_id | id | row_version
        ---------|----|------------
        aria     | a  | 1
        aria     | b  | 1
        ben      | a  | 5
        ben      | b  | 1
        """,
        links="""
        agent_id | from_id | to_id
        ---------|---------|------
        aria     | a       | b
        """,
    )

    (proposal,) = phase.proposals
    assert (proposal.agent_id, proposal.read_set[0].row_version) == ("ben", 5)


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), max_size=40),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
)
def test_the_strongest_pairs_are_those_one_would_keep_going_through_them_one_by_one(pairs, capacity):
    room, expected = list(capacity), []
    for left, right in pairs:
        expected.append(room[left] > 0 and room[right] > 0)
        if expected[-1]:
            room[left] -= 1
            room[right] -= 1

    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    kept = links._strongest(ends[:, 0], ends[:, 1], np.array(capacity, dtype=np.int64))

    assert kept.tolist() == expected
