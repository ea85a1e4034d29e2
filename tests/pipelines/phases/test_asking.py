"""Whom a judge is asked about and whom not, and the account of what was left as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import WordEmbedder
from drawn import drawn, embedded_facts
from judged_pairs import POLICY, Agreeing, candidates, phase, proposals

from nous_online.language.pairs.judging import Verdict
from nous_pipelines.snapshots.table_schemas import CONTRADICTIONS, UNDONE


def facts(text):
    return embedded_facts(text, WordEmbedder())


@pytest.mark.parametrize("kind", ["merge", "supersede", "contradiction", "share"])
def test_whatever_joined_two_memories_and_was_undone_keeps_them_apart(kind):
    table = facts("""
        id | content
        ---|-----------------------------
        a  | the office opens at nine
        b  | the office opens at nine now
    """)
    undone = drawn(f"agent_id | kind | targets\n---|---|---\naria | {kind} | b, a", UNDONE)
    judge = Agreeing()

    found = candidates(table, judge=judge, undone=undone)

    assert found.select("verdict", "model").rows() == [("compatible", "operator")]
    assert judge.asked == []


@pytest.mark.parametrize("resolution", ["both_valid", "a_wins"])
def test_two_facts_a_person_ruled_both_valid_are_not_asked_about_again(resolution):
    table = facts("""
        id | content
        ---|-----------------------------
        a  | the office opens at nine now
        b  | the office opens at nine
    """)
    contradictions = drawn(f"""
        id | agent_id | memory_a | memory_b | status   | resolution
        ---|----------|----------|----------|----------|-------------
        c  | aria     | b        | a        | resolved | {resolution}
        d  | ben      | a        | b        | resolved | both_valid
    """, CONTRADICTIONS)  # fmt: skip
    judge = Agreeing()

    found = candidates(table, judge=judge, contradictions=contradictions)

    is_ruled = resolution == "both_valid"
    assert found["model"].to_list() == ["operator" if is_ruled else "scripted"]
    assert len(judge.asked) == (0 if is_ruled else 1)


def test_pairs_of_one_content_are_judged_once_for_each_agent():
    table = facts("""
        id | agent_id | user_id | content
        ---|----------|---------|-----------------------------
        a  | aria     | ana     | the office opens at nine
        b  | aria     | ana     | the office opens at nine now
        c  | aria     | eva     | the office opens at nine
        d  | aria     | eva     | the office opens at nine now
        e  | ben      | -       | the office opens at nine
        f  | ben      | -       | the office opens at nine now
    """)
    judge = Agreeing()

    found = candidates(table, judge=judge)

    assert len(found) == 3
    assert found["pair_hash"].n_unique() == 1
    assert len(judge.asked) == 2


@pytest.mark.parametrize("column", ["content", "subject", "learned_at"])
def test_another_text_subject_or_order_is_another_content(column):
    rows = """
        id | content                      | subject | learned_at
        ---|------------------------------|---------|-----------
        a  | the office opens at nine     | -       | 2026-05-01
        b  | the office opens at nine now | -       | 2026-05-02
    """
    old = {"content": "at nine now", "subject": "now | -      ", "learned_at": "2026-05-02"}[column]
    new = {"content": "at nine ha!", "subject": "now | office ", "learned_at": "2026-05-01"}[column]

    one, other = (candidates(facts(text))["pair_hash"].item() for text in (rows, rows.replace(old, new)))

    assert one != other


def test_a_verdict_on_two_texts_is_not_taken_over_into_another_space():
    table = facts("""
        id | content                      | embedding_space_id
        ---|------------------------------|-------------------
        a  | the office opens at nine     | words-64
        b  | the office opens at nine now | words-64
        c  | the office opens at nine     | letters-64
        d  | the office opens at nine now | letters-64
    """)
    judge = Agreeing()

    found = candidates(table, judge=judge)

    assert found["pair_hash"].n_unique() == len(found) == len(judge.asked) == 2


def test_the_more_detailed_of_two_equals_stays_and_detail_never_outranks_trust():
    table = facts("""
        id | content                                | trust | cited_count
        ---|----------------------------------------|-------|------------
        a  | deploys go through blue green          | 50    | 3
        b  | deploys go through blue green at Acme  | 50    | 0
        c  | the cat sleeps on the oven             | 60    | 0
        d  | the cat sleeps on the oven since 2019  | 50    | 0
        e  | bread with salt and oil in May         | 50    | 1
        f  | bread with salt and oil in Rome        | 50    | 0
    """)

    assert sorted(proposal.targets[0] for proposal in proposals(table)) == ["b", "c", "e"]


def test_the_account_says_why_what_says_the_same_was_left():
    table = facts("""
        id | content                        | is_pinned
        ---|--------------------------------|----------
        a  | one two three four five        | no
        b  | one two three four five six    | no
        c  | one two three four five six ha | no
        d  | red green blue                 | yes
        e  | red green blue                 | yes
        f  | lime oak pine                  | no
        g  | lime oak pine                  | no
        h  | lime oak pine                  | no
    """)
    undone = drawn("agent_id | kind | targets\n---|---|---\naria | merge | f, h", UNDONE)
    judge = Agreeing({("one two three four five", "one two three four five six ha"): Verdict.COMPATIBLE})

    made = phase(table, judge=judge, undone=undone)

    assert made.unexplained() == {}
    assert made.proposed == {"aria": 2}
    assert made.left["aria"] == {
        "another fact that says the same as one of the two was not judged the same as the other": 1,
        "copies that a person took apart": 1,
        "pinned": 1,
    }


def test_what_is_only_a_neighbour_is_not_merged():
    table = facts("""
        id | content
        ---|-----------------------------
        a  | the office opens at nine
        b  | the office opens at nine now
    """)

    assert proposals(table, policy=replace(POLICY, candidate_similarity=0.99, same_similarity=0.99)) == []
