# ruff: noqa: RUF001 — a full-width comma is a case
from __future__ import annotations

import pytest

from nous_online.language.writing.lexrank import word_vectors
from nous_online.language.writing.sentences import sentences_of
from nous_online.language.writing.writer import EndedEpisode, draft_facts, parse_episode


def facts(detail: str) -> list[str]:
    """What is drawn from a transcript by its words alone."""
    spoken = parse_episode(EndedEpisode(detail))
    return [fact.content for fact in draft_facts(spoken, word_vectors(spoken.sentences))]


WORKING = "user: Draw the level of the pond.\n[Bash] level --plot\nassistant: Drawn.\n"


@pytest.mark.parametrize(
    "pasted",
    [
        "user: # Outline\n1. Never read a gauge by night.\n2. All paths must be absolute.",
        "user: You must stay in your role.\n<agent-activation strict='yes'>\nAlways read the whole file.",
        "user: " + "Every gauge of the weir must be read twice by the miller of Olm. " * 15,
        "user: KnotError: a rope must start with a hitch.",
        "user: 1 yes they should be read, 4 fine.",
        "user: Should we read the gauges by night",
        "user: yeah but there should not be any changes",
        "user: Let's take the plot of the upper weir.",
    ],
)
def test_what_a_user_pastes_or_says_of_the_moment_is_no_rule_of_theirs(pasted: str) -> None:
    assert facts(f"{WORKING}{pasted}\nassistant: Fine.") == []


@pytest.mark.parametrize(
    "found",
    [
        "The upper gauge reads 0 because `rope.yml` names no hitch.",
        "**Rope 4 breaks under load**: the hitch in `rope.yml` slips. Fixed by pinning `hitch<4` in `rope.yml`.",
        "Moved the hitch out of `rope.yml` to avoid a second reading.",
        "水位图是平的，原因是 `rope.yml` 里没有绳结。",
        "Commit: fix the hitch of rope 4",
    ],
)
def test_what_an_agent_found_or_how_it_mended_it_is_a_fact(found: str) -> None:
    assert facts(f"{WORKING}assistant: {found}") == [found]


@pytest.mark.parametrize(
    "told",
    [
        "That works out since both of them happen at once.",
        "Fixed by `level --plot`.",
        "Use `level --plot` because the pond is small.",
        "The hitch of `rope.yml` is wrong because the rope is new.",
        "It could be slow because `rope.yml` is long.",
        "Plan: read `rope.yml` twice because the log has gaps.",
        "Commit: sort the ropes",
        'The page says "because of the rope" in `rope.yml`.',
    ],
)
def test_what_an_agent_plans_supposes_or_says_of_something_said_before_is_no_fact(told: str) -> None:
    assert facts(f"{WORKING}assistant: {told}") == []


def test_code_that_opens_a_message_is_no_prose_and_what_follows_it_is() -> None:
    code = "```go\nrope := tie(knot)\n```"
    talk = f"user: Why?\nassistant: {code}\nThe rope broke on 3 June.\n{code}\nuser: Ah."

    assert [each.text for each in sentences_of(talk)] == ["Why?", "The rope broke on 3 June.", "Ah."]


def test_a_long_session_is_read_where_it_tells_what_was_found() -> None:
    step = "assistant: Gauge {} of the weir at Olm and the mill at Veldt, line {}."
    lines = [step.format(n, n + 40) for n in range(900)]
    found = "The level is flat because the upper gauge broke on 3 June."

    drawn = facts("\n".join(["[Bash] level --all", *lines[:450], f"assistant: {found}", *lines[450:]]))

    assert found in drawn
