"""What a person decided about facts holds for those that say so now: their successors and their copies."""

from __future__ import annotations

import pytest
from conftest import WordEmbedder
from drawn import NIGHT, drawn, embedded_facts
from judged_pairs import (
    NO_CONTRADICTIONS,
    NONE_UNDONE,
    POLICY,
    Agreeing,
    candidates,
    judged_pairs,
    phase,
    proposals,
)

from nous_online.language.pairs.judging import Verdict
from nous_pipelines.phases.merging import share_phase
from nous_pipelines.phases.rulings import follow_successors, successors
from nous_pipelines.phases.updates import update_phase
from nous_pipelines.snapshots.table_schemas import CONTRADICTIONS, STATEMENTS, UNDONE

OLD, NEW = "the office opens at nine", "the office opens at nine now"


def facts(text):
    return embedded_facts(text, WordEmbedder())


def undone(*groups):
    rows = "\n".join(f"aria | {kind} | {targets}" for kind, targets in groups)
    return drawn(f"agent_id | kind | targets\n---|---|---\n{rows}", UNDONE)


def contradiction(status, *, between):
    resolution = "both_valid" if status == "resolved" else "-"
    row = f"c | aria | {between} | {status} | {resolution}"
    return drawn(
        f"id | agent_id | memory_a | memory_b | status | resolution\n---|---|---|---|---|---\n{row}", CONTRADICTIONS
    )


def later(table, judge, *, contradictions=NO_CONTRADICTIONS, undone=NONE_UNDONE):
    """Return the supersessions and contradictions of a night, as its assets find them."""
    judged, found = judged_pairs(table, judge, policy=POLICY, contradictions=contradictions, undone=undone)
    tables = {"facts": table, "statements": STATEMENTS.empty(), "judgements": judged}
    rulings = {"copies": found.copies, "undone": undone, "contradictions": contradictions}
    return update_phase({**tables, **rulings}, policy=POLICY, night=NIGHT)


def replaced(column, memory="a"):
    """Return facts of which `memory` gave way to its copy c, or has an older copy."""
    if column == "superseded":
        return facts(f"""
            id | content | state      | superseded_by | learned_at
            ---|---------|------------|---------------|-----------
            {memory}  | {OLD}   | superseded | c             | 2026-05-01
            c  | {OLD}   | active     | -             | 2026-05-03
            x  | {NEW}   | active     | -             | 2026-05-02
        """)
    return facts(f"""
        id | content | learned_at
        ---|---------|-----------
        {memory}  | {OLD}   | 2026-05-01
        0  | {OLD}   | 2026-05-03
        x  | {NEW}   | 2026-05-02
    """)


@pytest.mark.parametrize("column", ["superseded", "copied"])
@pytest.mark.parametrize("kind", ["merge", "supersede", "contradiction", "share"])
def test_what_a_person_took_apart_stays_so_for_successors_and_copies(column, kind):
    table, taken_back = replaced(column), undone((kind, "a, x"))

    found = candidates(table, undone=taken_back)

    assert found["model"].to_list() == ["operator"]
    assert not any("x" in proposal.targets for proposal in proposals(table, undone=taken_back))


@pytest.mark.parametrize("column", ["superseded", "copied"])
def test_what_nobody_took_apart_is_judged_and_proposed(column):
    judge = Agreeing({(OLD, NEW): Verdict.UPDATES, (NEW, OLD): Verdict.UPDATES})

    assert len(candidates(replaced(column)).filter(model="scripted")) == 1
    assert len(later(replaced(column), judge).proposals) == 1


@pytest.mark.parametrize("column", ["superseded", "copied"])
def test_a_ruling_that_both_are_valid_holds_for_successors_and_copies(column):
    found = candidates(replaced(column), contradictions=contradiction("resolved", between="a | x"))

    assert found["reason"].to_list() == ["a person ruled that both are valid"]


@pytest.mark.parametrize("verdict", [Verdict.UPDATES, Verdict.CONTRADICTS])
def test_an_open_contradiction_goes_over_to_copies(verdict):
    judge = Agreeing({(OLD, NEW): verdict, (NEW, OLD): verdict})

    made = later(replaced("copied"), judge, contradictions=contradiction("open", between="a | x"))

    assert made.proposals == []
    assert made.left == {"aria": {"their contradiction is open and waits for a person": 1}}


@pytest.mark.parametrize(("verdict", "kind"), [(Verdict.UPDATES, "supersede"), (Verdict.CONTRADICTS, "contradiction")])
def test_a_contradiction_of_which_a_side_gave_way_keeps_nobody_from_deciding_about_its_successor(verdict, kind):
    judge = Agreeing({(OLD, NEW): verdict, (NEW, OLD): verdict})

    made = later(replaced("superseded"), judge, contradictions=contradiction("open", between="a | x"))

    assert [(proposal.kind, {*proposal.targets}) for proposal in made.proposals] == [(kind, {"c", "x"})]


def test_what_was_taken_apart_is_not_superseded_by_a_successor():
    judge = Agreeing({(NEW, OLD): Verdict.UPDATES})

    assert later(replaced("superseded"), judge, undone=undone(("supersede", "x, a"))).proposals == []
    assert len(later(replaced("superseded"), judge).proposals) == 1


def test_a_copy_in_the_place_of_one_that_was_taken_apart_is_not_merged_with_the_other():
    table = facts(f"""
        id | content | state      | superseded_by
        ---|---------|------------|--------------
        a  | {OLD}   | superseded | c
        b  | {OLD}   | active     | -
        c  | {OLD}   | active     | -
    """)

    made = phase(table, undone=undone(("merge", "a, b")))

    assert made.proposals == []
    assert made.left == {"aria": {"copies that a person took apart": 1}}


def test_a_decision_about_a_copy_that_was_taken_apart_holds_for_the_one_that_speaks_for_it():
    table = facts(f"""
        id | content
        ---|--------
        a  | {OLD}
        b  | {OLD}
        x  | {NEW}
    """)

    found = candidates(table, undone=undone(("merge", "a, b"), ("merge", "b, x")))

    assert found.select("left_id", "right_id", "model").rows() == [("a", "x", "operator")]


def test_a_contradiction_whose_sides_came_together_stands_between_nothing():
    table = facts(f"""
        id | content | state      | superseded_by
        ---|---------|------------|--------------
        a  | {OLD}   | superseded | x
        x  | {NEW}   | active     | -
    """)
    copies = judged_pairs(table, Agreeing(), policy=POLICY)[1].copies

    _, left = follow_successors(NONE_UNDONE, contradiction("open", between="a | x"), facts=table, copies=copies)

    assert left.is_empty()


def test_a_successor_is_the_last_of_its_chain_and_a_circle_ends():
    table = facts("""
        id | agent_id | content | state      | superseded_by
        ---|----------|---------|------------|--------------
        a  | aria     | one     | superseded | b
        b  | aria     | two     | superseded | c
        c  | aria     | three   | active     | -
        d  | aria     | four    | archived   | c
        a  | ben      | one     | superseded | b
        b  | ben      | two     | superseded | a
    """)

    found = successors(table).sort("agent_id", "id").rows()

    assert found[:2] == [("aria", "a", "c"), ("aria", "b", "c")]
    assert [row[:2] for row in found[2:]] == [("ben", "a"), ("ben", "b")]


def test_a_fact_in_an_open_contradiction_is_not_retired_by_a_merge():
    table = facts(f"""
        id | content | contradiction_status | cited_count
        ---|---------|----------------------|------------
        a  | {OLD}   | open                 | 0
        b  | {OLD}   | none                 | 9
        c  | {OLD}   | none                 | 0
        d  | rain    | open                 | 9
        e  | rain    | none                 | 0
    """)

    made = phase(table)

    assert made.unexplained() == {}
    assert [proposal.targets for proposal in made.proposals] == [("b", "c"), ("d", "e")]
    assert made.left == {"aria": {"one of the two is in an open contradiction, which waits for a person": 2}}


def test_a_fact_in_an_open_contradiction_is_not_shared():
    table = facts(f"""
        id | content | contradiction_status | user_id | project_id
        ---|---------|----------------------|---------|-----------
        a  | {OLD}   | open                 | ana     | web
        b  | {OLD}   | none                 | ben     | web
        c  | {OLD}   | none                 | eva     | web
    """)
    judged, found = judged_pairs(table, Agreeing(), policy=POLICY)

    tables = {"facts": table, "judgements": judged, "copies": found.copies}
    made = share_phase(tables, policy=POLICY, night=NIGHT)

    assert [proposal.targets for proposal in made.proposals] == [("b", "c")]
    assert made.left == {"aria": {"one of the two is in an open contradiction, which waits for a person": 1}}


def test_a_fact_in_an_open_contradiction_does_not_give_way_to_what_says_the_same_as_the_other_side():
    table = facts(f"""
        id | content           | learned_at | contradiction_status
        ---|-------------------|------------|---------------------
        a  | {OLD}             | 2026-05-01 | open
        m  | {NEW}             | 2026-05-02 | open
        n  | {NEW} ha          | 2026-05-03 | none
    """)
    judge = Agreeing({(OLD, NEW): Verdict.UPDATES, (OLD, f"{NEW} ha"): Verdict.UPDATES})

    made = later(table, judge, contradictions=contradiction("open", between="a | m"))

    assert made.proposals == []
    assert made.left == {"aria": {"their contradiction is open and waits for a person": 2}}


def test_a_fact_in_an_open_contradiction_does_not_come_to_the_other_side_by_a_detour():
    table = facts("""
        id | content                            | learned_at
        ---|------------------------------------|-----------
        a  | the oak deploys on each free tue   | 2026-05-01
        b  | the oak deploys on each free wed   | 2026-05-02
        m  | the oak deploys on each free thu   | 2026-05-03
    """)
    texts = table["content"].to_list()
    judge = Agreeing({(one, other): Verdict.UPDATES for one in texts for other in texts if one != other})

    made = later(table, judge, contradictions=contradiction("open", between="a | m"))

    (proposal,) = made.proposals
    assert {change.id: change.set["superseded_by"] for change in proposal.changes} == {"a": "b", "b": "m"}
