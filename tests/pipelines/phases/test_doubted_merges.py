"""What becomes of two facts that a judge calls the same without being sure of it, or while a person is to decide."""

from dataclasses import replace

import pytest
from conftest import WordEmbedder
from drawn import embedded_facts
from judged_pairs import Agreeing, phase

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import KEYED, OPEN, TOLD_TOGETHER


class Doubting(Agreeing):
    """Says `same` of every pair, as sure of it as the test wrote down."""

    def __init__(self, name, confidence):
        super().__init__()
        self.name, self.confidence = name, confidence

    def judge(self, pairs):
        return [replace(judgement, confidence=self.confidence) for judgement in super().judge(pairs)]


@pytest.mark.parametrize(
    ("name", "confidence", "merged"),
    [("claude", 0.79, []), ("claude", 0.8, [("a", "b")]), ("offline:1", 0.76, [("a", "b")])],
)
def test_what_a_judge_that_answers_in_words_doubts_is_left_unmerged(name, confidence, merged):
    table = embedded_facts(
        """
        id | content
        ---|-----------------------------
        a  | the office opens at nine
        b  | the office opens at nine now
    """,
        WordEmbedder(),
    )

    found = phase(table, judge=Doubting(name, confidence))

    assert [proposal.targets for proposal in found.proposals] == merged
    assert found.left == ({} if merged else {"aria": {"the judge is not sure that they say the same": 1}})


@pytest.mark.parametrize(
    ("column", "value", "reason"), [("contradiction_status", "open", OPEN), ("key", "office/hours", KEYED)]
)
def test_a_fact_that_waits_for_a_person_or_for_the_next_value_of_its_key_is_not_merged_away(column, value, reason):
    table = embedded_facts(
        f"""
        id | content                      | learned_at | {column}
        ---|------------------------------|------------|---------
        a  | the office opens at nine     | 2026-05-01 | {"none" if column != "key" else "-"}
        b  | the office opens at nine now | 2026-05-09 | {value}
    """,
        WordEmbedder(),
    )

    found = phase(table)

    assert found.proposals == []
    assert found.left == {"aria": {reason: 1}}


@pytest.mark.parametrize(
    ("more", "source", "merged"),
    [
        ("every single day", "notes.md", []),
        ("every single day", "talk.md", [("a", "b")]),
        ("daily", "notes.md", [("a", "b")]),
    ],
)
def test_what_one_source_told_at_one_moment_in_other_words_is_two_things(more, source, merged):
    table = embedded_facts(
        f"""
        id | content                                         | source
        ---|-------------------------------------------------|---------
        a  | this office in that mill opens at nine          | notes.md
        b  | this office in that mill opens at nine {more}   | {source}
    """,
        WordEmbedder(),
    )

    found = phase(table, policy=NightPolicy(neighbour_similarity=0.7))

    assert [proposal.targets for proposal in found.proposals] == merged
    assert found.left == ({} if merged else {"aria": {TOLD_TOGETHER: 1}})
