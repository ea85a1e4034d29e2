"""What a user tells an agent that uses tools: rules, owners and dates last, and requests of the minute pass."""

from __future__ import annotations

import pytest

from nous_online.language.writing.lexrank import word_vectors
from nous_online.language.writing.told_rules import asks_for_rule, states_rule
from nous_online.language.writing.writer import EndedEpisode, draft_facts, parse_episode

WORKING = "user: Draw the level of the pond.\n[Bash] level --plot\nassistant: Drawn.\n"


def facts(detail: str) -> list[str]:
    """What is drawn from a session by its words alone."""
    spoken = parse_episode(EndedEpisode(WORKING + detail))
    return [fact.content for fact in draft_facts(spoken, word_vectors(spoken.sentences))]


LASTING = [
    "wait, we only use oak sluices, no pine ones",
    "every gauge has to be read twice, results in levels/",
    "For the record we mill rye from batch 16 on",
    "careful: no foreign grain goes into the silo",
    "tag everything with mill=olm, the guild complains otherwise",
    "worn stones get marked with chalk, then dressed within a week or thrown out",
    "sacks are counted in the ledger, never by eye",
    "Orla has the key of the weir too since October",
    "For new ropes on the hoist I want double hitches",
    "Round weights please, the guild insists",
    "the opening of the new race is 18 November at six",
    "I don't want you to write notes that repeat the drawing",
    "Gauges with more than three faults get replaced, not mended",
    "The sluice gate belongs to the abbey",
    "flour goes through the fine sieve only",
    "while you are at it: cracked wheels get a red mark and an entry in the book",
    "in this mill we grind by weight, not by volume",
    "Für das Wehr ist Piet zuständig, Änderungen nur über ihn",
    "Jeder Sack bekommt das Siegel, sonst nimmt ihn keiner",
]
OF_THE_MINUTE = [
    "make the pond bluer",
    "hm, no, that is too much",
    "read all of the gauges again",
    "wait a minute then",
    "the wheel is broken",
    "all gauges fail when I open the sluice",
    "put the pond on the left",
    "can you show me every gauge",
    "looks good, but the rope hangs in the water",
    "now the stones are missing",
    "you turned every wheel the wrong way",
    "if I close the gate, all wheels stop",
    "check the ledger and any sacks that are in the yard",
    "the miller was here on Monday",
    "that is what we do today",
    "we should paint the gate",
    "zeig mir alle Pegel",
    "draw a plan of what happens if the weir breaks and then we move the gate",
    "ok, we don't really need a ledger",
    "(87) Run the sieve over the flour \u2014 sacks are split into two heaps",
]


@pytest.mark.parametrize("told", LASTING)
def test_what_holds_beyond_the_minute_is_a_fact(told: str) -> None:
    assert states_rule(told)
    assert any(told[8:30] in fact for fact in facts(f"user: {told}"))


@pytest.mark.parametrize("told", OF_THE_MINUTE)
def test_a_request_of_the_minute_is_none(told: str) -> None:
    assert not states_rule(told)
    assert not facts(f"user: {told}")


def test_an_answer_is_told_with_the_question_of_the_agent() -> None:
    told = facts(
        "assistant: I draw a trough. How long should a batch rest?\nuser: 20 minutes, then it goes to the sieve."
    )
    assert "How long should a batch rest? 20 minutes, then it goes to the sieve." in told


@pytest.mark.parametrize("question", ["Which gauge should I draw first?", "What do you see?", "Shall I go on?"])
def test_a_question_about_the_next_step_asks_for_no_rule(question: str) -> None:
    assert not asks_for_rule(question)


def test_a_request_behind_a_decision_is_left_out() -> None:
    told = facts("user: The old race is too slow in spring. We decided on an iron flume. Prepare the drawing")
    assert told == ["The old race is too slow in spring. We decided on an iron flume."]


def test_an_order_is_told_with_what_it_is_about() -> None:
    told = facts(
        "assistant: The ledger takes its levels from the upper gauge.\n"
        "user: take them from the lower gauge, never from the upper one"
    )
    assert told == [
        "The ledger takes its levels from the upper gauge. Take them from the lower gauge, never from the upper one"
    ]


def test_a_thing_is_told_with_the_name_it_has_just_before() -> None:
    told = facts(
        "assistant: The hoist runs beside olm-sieve. "
        "Root cause: the sieve is not safe to run twice, because `rope.yml` names one hitch."
    )
    assert any(fact.startswith("The hoist runs beside olm-sieve. Root cause") for fact in told)


def test_a_package_keeps_its_small_letter() -> None:
    assert facts("user: olm-gauge, please not weir-gauge, that is abandoned") == [
        "olm-gauge, please not weir-gauge, that is abandoned"
    ]
