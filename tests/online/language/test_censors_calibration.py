"""What tables of triggers and actions show of firing, on the local model: the figures of decision 0009."""

from __future__ import annotations

import pytest
from turns import in_turn

from benchmarks.censors import TABLES, counts_of, embed, match, read_actions

HELD_OUT = ("held_out", 243, 0.783, 0.670, 1)
FITTED = [
    ("drawn", 264, 0.952, 0.902, 0),
    ("seen", 244, 0.920, 0.975, 1),
    ("unseen", 241, 0.958, 0.767, 0),
    ("developed", 300, 0.882, 0.750, 2),
]
"""Weights were chosen on them: each takes as long as what they are held to."""


@pytest.mark.parametrize(
    ("table", "size", "precision", "recall", "blocked_wrongly"), [HELD_OUT, *in_turn(FITTED, of=4)]
)
def test_firing_on_the_local_model_is_as_good_as_published(
    table: str, size: int, precision: float, recall: float, blocked_wrongly: int
) -> None:
    pairs = read_actions(TABLES / f"{table}_actions.py")

    counts = counts_of(pairs)

    assert len({(pair.trigger, pair.action) for pair in pairs}) == len(pairs) == size
    assert counts["precision"] >= precision - 0.01
    assert counts["recall"] >= recall - 0.01
    assert counts["near_miss_blocked"] <= blocked_wrongly


def test_an_action_of_another_trigger_hardly_ever_fires() -> None:
    pairs = read_actions(TABLES / "unseen_actions.py")
    triggers = sorted({pair.trigger for pair in pairs})
    strangers = [(trigger, pair.action) for pair in pairs for trigger in triggers[::4] if trigger != pair.trigger]

    embed(pairs)
    fired = [match(trigger, action) for trigger, action in strangers]

    assert len(strangers) > 3000
    assert sum(found is not None for found in fired) / len(strangers) <= 0.006
    assert fired.count("near") == 0


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("pushing directly to main branch", "git push origin main", "near"),
        ("pushing directly to main branch", "git push origin feature/login", None),
        ("pushing directly to main branch", "git pull origin main", None),
        ("pushing directly to main branch", "pushing directly to main branch", "near"),
        ("booking flights before 8 am", "book the 7:15 flight", "near"),
        ("booking flights before 8 am", "book the 10:30 flight", None),
        ("booking flights before 8 am", "booking flights before 8 am", "near"),
        ("calling Mr Petrov on weekends", "call Mr Petrov on Tuesday", None),
        ("running npm install with sudo", "npm run build", None),
    ],
)
def test_another_object_of_the_same_act_is_no_match(trigger: str, action: str, expected: str | None) -> None:
    assert match(trigger, action) == expected
