from __future__ import annotations

import pytest

from nous_online.context.packing import rooms, usual_budget
from nous_online.core.details import AssemblyDetails
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import checked_details
from nous_online.core.policy import ContextPolicy

POLICY = ContextPolicy()


def test_a_context_is_divided_as_the_living_memory_says():
    assert rooms(8_000, frame=None, policy=POLICY) == {
        "critical": 2_000, "relevant": 3_000, "background": 2_000, "index": 1_000,
    }  # fmt: skip


@pytest.mark.parametrize("frame", ["debug", "debugging", "Debugging"])
def test_while_debugging_what_is_critical_has_more_room(frame):
    assert rooms(8_000, frame=frame, policy=POLICY) == {
        "critical": 3_000, "relevant": 2_500, "background": 1_500, "index": 1_000,
    }  # fmt: skip


@pytest.mark.parametrize("budget", [1, 7, 13, 999, 12_345])
@pytest.mark.parametrize("frame", ["debug", "task"])
def test_rounding_loses_no_token(budget, frame):
    assert sum(rooms(budget, frame=frame, policy=POLICY).values()) == budget


def test_the_budget_is_that_of_the_frame_unless_one_is_told():
    assert usual_budget(None, POLICY) == 8_000
    assert usual_budget("juggling", POLICY) == 8_000
    assert usual_budget("Conversation", POLICY) == 3_000
    assert checked_details(AssemblyDetails, {"budget": 500, "frame": "conversation"})["budget"] == 500


def test_the_budgets_of_frames_lie_between_three_and_twelve_thousand_tokens():
    budgets = [tokens for _, tokens in POLICY.budgets]

    assert (min(budgets), max(budgets)) == (3_000, 12_000)


@pytest.mark.parametrize("budget", [0, -1, 1.5, "8000", True, 200_001])
def test_a_budget_that_makes_no_sense_is_refused_with_what_would(budget):
    with pytest.raises(InvalidInput, match=r"budget must be a whole number of tokens from 1 to 200,000, got .*8,000"):
        checked_details(AssemblyDetails, {"budget": budget})
