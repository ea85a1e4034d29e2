"""What several users of a project hold becomes the project's."""

from __future__ import annotations

import pytest
from conftest import WordEmbedder
from drawn import NIGHT, drawn, embedded_facts
from judged_pairs import POLICY, Agreeing, judged_pairs
from night_runs import facts_in, remember, snapshot_of

from nous_online.database.connection import Database
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import share_phase
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.planning import planned
from nous_pipelines.plan.undo import Selection, undo
from nous_pipelines.snapshots.table_schemas import UNDONE

AWAY = {"state": "superseded", "succession": "merged"}


def facts(text):
    return embedded_facts(text, WordEmbedder())


def phase(table, *, judge=None, policy=POLICY, **options):
    judged, found = judged_pairs(table, judge or Agreeing(), policy=policy, **options)
    made = share_phase({"facts": table, "judgements": judged, "copies": found.copies}, policy=policy, night=NIGHT)
    assert made.unexplained() == {}
    return made


def targets(table, **options):
    return sorted(proposal.targets for proposal in phase(table, **options).proposals)


def test_a_fact_of_two_users_becomes_the_projects():
    table = facts("""
        id | content                      | user_id | project_id | trust | source | cited_count | learned_at
        ---|------------------------------|---------|------------|-------|--------|-------------|-----------
        a  | deploys go through green     | ana     | web        | 40    | chat-1 | 2           | 2026-05-01
        b  | deploys now go through green | ben     | web        | 40    | chat-2 | 1           | 2026-05-09
        c  | the cat sleeps on the oven   | ben     | web        | 50    | -      | 0           | 2026-05-09
    """)

    (proposal,) = phase(table).proposals

    assert proposal.kind == "share"
    assert proposal.targets == ("a", "b")
    assert proposal.read_set == (Read("fact", "a", 1), Read("fact", "b", 1))
    assert proposal.changes == (
        Change(
            "fact",
            "a",
            set={
                "confirmation_count": 1,
                "last_confirmed_at": "2026-05-09T00:00:00+00:00",
                "tags": [],
                "sources": ["chat-1", "chat-2"],
                "confidence": 1.0,
                "scope": "project",
                "user_id": None,
            },
            action="shared",
        ),
        Change("usage", "a", add={"retrieved_count": 0, "cited_count": 1, "ignored_count": 0}),
        Change(
            "fact",
            "b",
            set={"superseded_by": "a", "superseded_at": "2026-06-02T00:00:00+00:00", **AWAY},
            action="merged",
        ),
    )


def test_the_reason_says_how_many_users_hold_it_and_never_who():
    table = facts("""
        id | content       | user_id | project_id
        ---|---------------|---------|-----------
        a  | one two three | ana     | web
        b  | one two three | ben     | web
        c  | one two three | eva     | web
    """)

    (proposal,) = phase(table).proposals

    assert proposal.reason.startswith("3 users of the project hold it")
    assert not any(name in str(proposal.as_dict()) for name in ("ana", "ben", "eva"))


@pytest.mark.parametrize(
    "columns",
    ["private | ana | web | private | ana | web", "private | ana | web | private | ben | api",
     "private | ana | web | project | ben | web", "private | ana | - | private | ben | -"],
)  # fmt: skip
def test_only_private_facts_of_two_users_of_one_project_are_shared(columns):
    first, second = columns.split(" | ")[:3], columns.split(" | ")[3:]
    table = facts(f"""
        id | content       | scope | user_id | project_id
        ---|---------------|-------|---------|-----------
        a  | one two three | {" | ".join(first)}
        b  | one two three | {" | ".join(second)}
    """)

    assert targets(table) == []


def test_what_too_few_users_hold_stays_theirs():
    table = facts("""
        id | content       | user_id | project_id
        ---|---------------|---------|-----------
        a  | one two three | ana     | web
        b  | one two three | ben     | web
        c  | one two three | ben     | web
    """)

    made = phase(table, policy=NightPolicy(candidate_similarity=0.7, share_among_users=3))

    assert made.proposals == []
    assert made.left == {"aria": {"held by fewer than 3 users": 2}}


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("-", "I live in old Rome"),
        ("-", "my dog is called Rex"),
        ("-", "the user prefers dark mode"),
        ("-", "We live in old Rome"),
        ("-", "the users dislike dark mode"),
        ("-", "the landlord visits us monthly"),
        ("-", "Our salary is 5000 crowns"),
        ("-", "that old dog is ours"),
        ("user", "prefers dark mode"),
        ("The users", "prefer dark mode"),
    ],
)
def test_what_speaks_of_its_user_is_never_shared(subject, text):
    table = facts(f"""
        id | content | subject   | user_id | project_id
        ---|---------|-----------|---------|-----------
        a  | {text}  | {subject} | ana     | web
        b  | {text}  | {subject} | ben     | web
    """)

    made = phase(table)

    assert made.proposals == []
    assert made.left == {"aria": {"it speaks of the user who told it": 2}}


def test_a_chain_of_wordings_of_three_users_does_not_join_its_ends():
    table = facts("""
        id | content                        | user_id | project_id | learned_at
        ---|--------------------------------|---------|------------|-----------
        a  | one two three four five        | ana     | web        | 2026-05-01
        b  | one two three four five six    | ben     | web        | 2026-05-02
        c  | one two three four five six ha | eva     | web        | 2026-05-03
    """)
    judge = Agreeing({("one two three four five", "one two three four five six ha"): Verdict.COMPATIBLE})

    made = phase(table, judge=judge)

    assert [len(proposal.targets) for proposal in made.proposals] == [2]
    assert made.left == {"aria": {"not judged the same as all others that say so": 1}}


def test_all_copies_of_all_users_point_to_the_one_that_is_shared():
    table = facts("""
        id | content           | user_id | project_id
        ---|-------------------|---------|-----------
        a  | one two three     | ben     | web
        b  | one two three     | ana     | web
        c  | one two three     | ana     | web
        d  | one two three now | eva     | web
        e  | one two three now | ana     | web
    """)

    assert targets(table) == [("a", "b", "c", "d", "e")]


def test_what_a_person_took_apart_is_not_shared_again_but_with_others():
    table = facts("""
        id | content       | user_id | project_id
        ---|---------------|---------|-----------
        a  | one two three | ana     | web
        b  | one two three | ben     | web
        c  | one two three | eva     | web
    """)
    undone = drawn("agent_id | kind | targets\n---|---|---\naria | share | a, b", UNDONE)

    assert targets(table, undone=undone) == [("a", "c")]


def test_pinned_facts_stay_with_their_users():
    table = facts("""
        id | content       | user_id | project_id | is_pinned
        ---|---------------|---------|------------|----------
        a  | one two three | ana     | web        | yes
        b  | one two three | ben     | web        | no
    """)

    made = phase(table)

    assert made.proposals == []
    assert made.left == {"aria": {"pinned by a user": 2}}


@pytest.mark.parametrize(
    ("trusts", "shared", "left"),
    [
        ((90, 60, 10), [], 3),
        ((90, 10, 10), [("b", "c")], 1),
        ((90, 90, 10), [("a", "b")], 1),
        ((60, 60, 60), [("a", "b", "c")], 0),
    ],
)
def test_a_copy_of_lower_trust_never_takes_trust_from_a_fact(trusts, shared, left):
    table = facts(f"""
        id | content       | user_id | project_id | trust
        ---|---------------|---------|------------|------
        a  | one two three | ana     | web        | {trusts[0]}
        b  | one two three | ben     | web        | {trusts[1]}
        c  | one two three | eva     | web        | {trusts[2]}
    """)

    made = phase(table)

    assert [proposal.targets for proposal in made.proposals] == shared
    assert not any("trust" in change.set for proposal in made.proposals for change in proposal.changes)
    assert made.left == ({"aria": {"more or less trusted than what others hold": left}} if left else {})


@pytest.mark.parametrize("text", ["one two three", "one two three now"])
def test_what_users_hold_of_different_times_stays_theirs(text):
    table = facts(f"""
        id | content       | user_id | project_id | valid_to
        ---|---------------|---------|------------|-----------
        a  | one two three | ana     | web        | 2026-02-01
        b  | {text}        | ben     | web        | -
    """)

    made = phase(table)

    assert made.proposals == []
    assert made.left == {"aria": {"each holds in its own time": 2}}


def test_what_users_hold_now_is_shared_and_what_is_over_stays():
    table = facts("""
        id | content       | user_id | project_id | valid_to
        ---|---------------|---------|------------|-----------
        a  | one two three | ana     | web        | 2026-02-01
        b  | one two three | ana     | web        | -
        c  | one two three | ben     | web        | -
    """)

    assert targets(table) == [("b", "c")]


def test_the_account_reveals_a_fact_that_the_phase_lost():
    table = facts("""
        id | content       | user_id | project_id
        ---|---------------|---------|-----------
        a  | one two three | ana     | web
        b  | one two three | ben     | web
        c  | one two three | eva     | web
    """)
    judged, found = judged_pairs(table, Agreeing(), policy=POLICY)

    tables = {"facts": table.filter(table["id"] != "b"), "judgements": judged, "copies": found.copies}
    made = share_phase(tables, policy=POLICY, night=NIGHT)

    assert made.eligible == {"aria": 3}
    assert made.unexplained() == {"aria": 1}


def test_without_users_nothing_is_shared():
    table = facts("""
        id | content
        ---|--------------
        a  | one two three
        b  | one two three
    """)

    assert phase(table).eligible == {}


def test_sharing_is_applied_and_taken_back(heart, database_url, owner, tmp_path):
    for user in ("ana", "ben"):
        remember(heart, "the office opens at nine", user_id=user, project_id="web", source=f"chat of {user}")
    before, night = facts_in(owner), Database(database_url, role="nous_night")
    table = snapshot_of(night, tmp_path).table("facts")
    plan = planned(NIGHT, phase(table).proposals, agent_ids=[], policy={})

    apply_plan(night, plan, run_id="run")
    shared = [fact for fact in facts_in(owner).values() if fact["state"] == "active"]
    undo(night, Selection(night=NIGHT), reason="a mistake")
    night.close()

    assert [(fact["scope"], fact["user_id"], fact["project_id"]) for fact in shared] == [("project", None, "web")]
    assert facts_in(owner) == before
