from datetime import UTC, date, datetime

import polars as pl
import pytest
from conftest import ScriptedJudge, WordEmbedder
from drawn import drawn, embedded_facts
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_pairs import Agreeing, candidates, phase, proposals

from nous_online.language.pairs.judging import Verdict
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.snapshots.table_schemas import UNDONE


def facts(text):
    return embedded_facts(text, WordEmbedder())


def targets(table, **options):
    return sorted(proposal.targets for proposal in proposals(table, **options))


def pairs(table):
    return list(table.select("left_id", "right_id").iter_rows())


def changed(proposal, memory):
    (change,) = [change for change in proposal.changes if change.id == memory and change.kind == "fact"]
    return change.set


def test_two_wordings_of_one_statement_become_one_memory():
    table = facts("""
        id | content                              | learned_at
        ---|--------------------------------------|-----------
        a  | deploys go through blue green        | 2026-05-01
        b  | deploys always go through blue green | 2026-05-09
        c  | the cat sleeps on the warm oven      | 2026-05-02
    """)

    (proposal,) = proposals(table)

    assert proposal.targets == ("a", "b")
    assert proposal.read_set == (Read("fact", "a", 1), Read("fact", "b", 1))
    assert changed(proposal, "b") == {
        "state": "superseded",
        "superseded_by": "a",
        "succession": "merged",
        "superseded_at": "2026-06-02T00:00:00+00:00",
    }


def test_a_pair_below_the_threshold_is_never_looked_at():
    table = facts("""
        id | content
        ---|---------------------------
        a  | the office opens at nine
        b  | a horse walks along rivers
    """)
    judge = Agreeing()

    assert proposals(table, judge=judge) == []
    assert judge.asked == []


def test_the_earlier_statement_is_shown_first_to_the_judge():
    table = facts("""
        id | content                      | learned_at
        ---|------------------------------|-----------
        a  | the office opens at nine now | 2026-05-09
        b  | the office opens at nine     | 2026-05-01
    """)
    judge = Agreeing()

    found = candidates(table, judge=judge)

    assert pairs(found) == [("b", "a")]
    assert [pair.a.stated_at for pair in judge.asked] == [datetime(2026, 5, 1, tzinfo=UTC)]


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.SAME])
def test_only_the_verdict_same_merges(verdict):
    table = facts("""
        id | content
        ---|-----------------------------
        a  | the office opens at nine
        b  | the office opens at nine now
    """)
    judge = ScriptedJudge({("the office opens at nine", "the office opens at nine now"): verdict})

    found = candidates(table, judge=judge)

    assert found["verdict"].to_list() == [verdict.value]
    assert found["reason"].to_list() == ["so says the script"]
    assert proposals(table, judge=judge) == []


def test_a_chain_of_rewordings_does_not_join_its_ends():
    table = facts("""
        id | content                        | learned_at
        ---|--------------------------------|-----------
        a  | one two three four five        | 2026-05-01
        b  | one two three four five six    | 2026-05-02
        c  | one two three four five six ha | 2026-05-03
    """)
    judge = Agreeing({("one two three four five", "one two three four five six ha"): Verdict.COMPATIBLE})

    (merged,) = targets(table, judge=judge)

    assert len(merged) == 2


@pytest.mark.parametrize("column", ["scope", "user_id", "project_id", "embedding_space_id", "subject"])
@pytest.mark.parametrize("copy", ["the office opens at nine", "the office opens at nine now"])
def test_memories_of_two_places_or_subjects_are_never_compared(column, copy):
    other = "project" if column == "scope" else "other"
    table = facts(f"""
        id | content                  | {column}
        ---|--------------------------|---------
        a  | the office opens at nine | {"private" if column == "scope" else "one"}
        b  | {copy}                   | {other}
    """)
    judge = Agreeing()

    assert proposals(table, judge=judge) == []
    assert judge.asked == []


def test_a_memory_without_a_user_and_one_of_a_user_are_two_places():
    table = facts("""
        id | content                  | user_id
        ---|--------------------------|--------
        a  | the office opens at nine | -
        b  | the office opens at nine | ben
        c  | the office opens at nine | -
    """)

    assert targets(table) == [("a", "c")]


def test_only_active_memories_with_a_vector_and_without_a_later_history_are_touched():
    table = facts("""
        id | content                  | state      | is_rewound
        ---|--------------------------|------------|-----------
        a  | the office opens at nine | active     | no
        b  | the office opens at nine | superseded | no
        c  | the office opens at nine | archived   | no
        d  | the office opens at nine | active     | yes
        e  | the office opens at nine | active     | no
        f  | the office opens at nine | active     | no
    """).with_columns(embedding=pl.when(pl.col("id") != "f").then("embedding"))

    assert targets(table) == [("a", "e")]


@pytest.mark.parametrize("copy", ["the office opens at nine", "the office opens at nine now"])
def test_a_fact_in_an_open_contradiction_never_gives_way(copy):
    def merged(first, second):
        return targets(
            facts(f"""
                id | content                  | contradiction_status
                ---|--------------------------|---------------------
                a  | the office opens at nine | {first}
                b  | {copy}                   | {second}
            """)
        )

    assert merged("open", "open") == merged("none", "open") == []
    assert merged("open", "none") == merged("resolved", "resolved") == [("a", "b")]


def test_copies_are_judged_once_and_merged_all():
    table = facts("""
        id | content
        ---|-----------------------------
        a  | the office opens at nine
        b  | the office opens at nine
        c  | the office opens at nine
        d  | the office opens at nine now
        e  | the office opens at nine now
    """)
    judge = Agreeing()

    (proposal,) = proposals(table, judge=judge)

    assert len(judge.asked) == 1
    assert proposal.targets == ("a", "b", "c", "d", "e")
    assert proposal.evidence["copies"] == 3


def test_the_most_trusted_then_pinned_then_used_then_first_said_memory_stays():
    table = facts("""
        id | content        | trust | is_pinned | cited_count | learned_at
        ---|----------------|-------|-----------|-------------|-----------
        a  | one two three  | 50    | no        | 9           | 2026-05-01
        b  | one two three  | 60    | no        | 0           | 2026-05-01
        c  | red green blue | 50    | no        | 9           | 2026-05-01
        d  | red green blue | 50    | yes       | 0           | 2026-05-01
        e  | lime oak pine  | 50    | no        | 0           | 2026-05-01
        f  | lime oak pine  | 50    | no        | 1           | 2026-05-09
        g  | bread and salt | 50    | no        | 0           | 2026-05-09
        h  | bread and salt | 50    | no        | 0           | 2026-05-01
        i  | wine and water | 50    | no        | 0           | 2026-05-01
        j  | wine and water | 50    | no        | 0           | 2026-05-01
    """)

    assert targets(table) == [("b", "a"), ("d", "c"), ("f", "e"), ("h", "g"), ("i", "j")]


def test_a_pinned_memory_stays_beside_the_one_the_others_point_to():
    table = facts("""
        id | content       | trust | is_pinned
        ---|---------------|-------|----------
        a  | one two three | 60    | no
        b  | one two three | 50    | yes
        c  | one two three | 50    | no
    """)

    assert targets(table) == [("a", "c")]
    assert targets(table.filter(pl.col("id") != "c")) == []


def test_what_stays_takes_over_counts_tags_sources_and_confidence():
    table = facts("""
        id | content       | tags     | source | sources | confidence | confirmation_count | last_confirmed_at
        ---|---------------|----------|--------|---------|------------|--------------------|------------------
        a  | one two three | ops, web | chat-1 |         | 0.7        | 2                  | 2026-05-20
        b  | one two three | ops, api | chat-2 | mail-1  | 0.9        | 1                  | -
    """)

    (proposal,) = proposals(table)

    assert changed(proposal, "a") == {
        "confirmation_count": 4,
        "last_confirmed_at": "2026-05-20T00:00:00+00:00",
        "tags": ["api", "ops", "web"],
        "sources": ["chat-1", "chat-2", "mail-1"],
        "confidence": 0.9,
    }


def test_what_stays_takes_over_the_usage_of_the_others_only():
    table = facts("""
        id | content       | retrieved_count | cited_count | ignored_count
        ---|---------------|-----------------|-------------|--------------
        a  | one two three | 9               | 5           | 1
        b  | one two three | 3               | 2           | 0
        c  | one two three | 1               | 0           | 1
    """)

    (proposal,) = proposals(table)

    assert Change("usage", "a", add={"retrieved_count": 4, "cited_count": 2, "ignored_count": 1}) in proposal.changes


def test_a_merge_a_person_took_back_is_not_proposed_again():
    table = facts("""
        id | content
        ---|-----------------------------
        a  | the office opens at nine
        b  | the office opens at nine now
        c  | the office opens at nine
    """)
    undone = drawn("""
        agent_id | kind  | targets
        ---------|-------|--------
        aria     | merge | a, b, c
    """, UNDONE)  # fmt: skip
    judge = Agreeing()

    found = candidates(table, judge=judge, undone=undone)

    assert pairs(found) == [("a", "b")]
    assert found["model"].to_list() == ["operator"]
    assert judge.asked == []
    assert proposals(table, undone=undone) == []


def test_a_new_copy_joins_one_of_two_that_were_taken_apart_but_never_both():
    table = facts("""
        id | content
        ---|-------------------------
        a  | the office opens at nine
        b  | the office opens at nine
        c  | the office opens at nine
    """)
    undone = drawn("""
        agent_id | kind  | targets
        ---------|-------|--------
        aria     | merge | a, b
    """, UNDONE)  # fmt: skip

    (merged,) = targets(table, undone=undone)

    assert len(merged) == 2
    assert "c" in merged


@pytest.mark.parametrize("column", ["valid_from", "valid_to"])
@pytest.mark.parametrize("copy", ["the office opens at nine", "the office opens at nine now"])
def test_what_holds_in_another_interval_is_never_merged(column, copy):
    table = facts(f"""
        id | content                  | {column}
        ---|--------------------------|-----------
        a  | the office opens at nine | 2023-01-01
        b  | {copy}                   | -
    """)

    made = phase(table)

    assert made.proposals == []
    assert made.left == {"aria": {"each holds in its own time": 1}}


def test_what_holds_in_one_interval_is_merged():
    table = facts("""
        id | content                      | valid_from | valid_to
        ---|------------------------------|------------|-----------
        a  | the office opens at nine     | 2023-01-01 | 2024-01-01
        b  | the office opens at nine     | 2023-01-01 | 2024-01-01
        c  | the office opens at nine now | 2023-01-01 | 2024-01-01
        d  | the office opens at nine now | 2024-01-01 | -
    """)

    assert targets(table) == [("a", "b", "c")]


def test_an_agent_without_facts_has_no_candidates_and_no_clusters():
    empty = facts("""
        id | content
        ---|--------
        a  | nothing
    """).clear()

    assert candidates(empty).is_empty()
    assert proposals(empty) == []


def test_the_reason_says_how_often_when_and_how_alike():
    table = facts("""
        id | content                  | learned_at
        ---|--------------------------|-----------
        a  | the office opens at nine | 2026-05-01
        b  | the office opens at nine | 2026-05-09
    """)

    (proposal,) = proposals(table)

    for part in ("said 2 times", "01 May 2026", "09 May 2026", "word for word", "keeps the one of 01 May 2026"):
        assert part in proposal.reason


def test_agents_are_merged_together_and_each_keeps_to_itself():
    table = facts("""
        id | agent_id | content
        ---|----------|-----------------------------
        a  | aria     | the office opens at nine
        b  | aria     | the office opens at nine now
        a  | ben      | the office opens at nine
        x  | ben      | the office opens at nine
        y  | ben      | the office opens at nine now
    """)

    found = {(proposal.agent_id, proposal.targets) for proposal in proposals(table)}

    assert found == {("aria", ("a", "b")), ("ben", ("a", "x", "y"))}
    for agent_id in ("aria", "ben"):
        alone = table.filter(pl.col("agent_id") == agent_id)
        assert [p.as_dict() for p in proposals(alone)] == [
            p.as_dict() for p in proposals(table) if p.agent_id == agent_id
        ]


VOCABULARY = ["the", "office", "opens", "at", "nine", "ten", "closes"]
SENTENCES = st.lists(
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=12
)


@settings(max_examples=examples(5), deadline=None)
@given(sentences=SENTENCES, order=st.randoms(use_true_random=False))
def test_proposals_do_not_depend_on_the_order_of_the_rows(sentences, order):
    rows = "\n".join(f"f{index:02} | {text}" for index, text in enumerate(sentences))
    table = facts(f"id | content\n---|---\n{rows}")
    shuffled = list(range(len(table)))
    order.shuffle(shuffled)

    assert [p.as_dict() for p in proposals(table[shuffled])] == [p.as_dict() for p in proposals(table)]


@settings(max_examples=examples(5), deadline=None)
@given(sentences=SENTENCES)
def test_after_a_night_no_two_copies_are_left_and_the_next_one_has_nothing_to_do(sentences):
    rows = "\n".join(f"f{index:02} | {text}" for index, text in enumerate(sentences))
    table = facts(f"id | content\n---|---\n{rows}")
    judge = ScriptedJudge()

    gone = {change.id for p in proposals(table, judge=judge) for change in p.changes if change.set.get("superseded_by")}
    left = table.filter(~pl.col("id").is_in(list(gone)))

    assert proposals(left, judge=judge) == []
    assert left["content"].n_unique() == len(left) == len(set(sentences))


def test_proposals_of_another_night_have_other_ids():
    table = facts("""
        id | content
        ---|-------------------------
        a  | the office opens at nine
        b  | the office opens at nine
    """)
    (one,), (other,) = (proposals(table, night=night) for night in (date(2026, 6, 1), date(2026, 6, 2)))

    assert one.id != other.id
