"""What tables of triggers and actions show of firing, on the local model: the figures of decision 0009."""

from __future__ import annotations

from uuid import UUID

import pytest
from turns import TURN, in_turn

from benchmarks.censors import TABLES, ActionPair, counts_of, embed, match, question_of, read_actions
from nous_online.core.deadline import Deadline
from nous_online.memories.checking import POLICY, Suspect, with_readings

HELD_OUT = ("held_out", 243, 0.919, 0.814, 1)
FITTED = [
    ("drawn", 264, 0.992, 0.962, 0),
    ("seen", 244, 0.983, 0.992, 1),
    ("unseen", 241, 1.0, 0.700, 0),
    ("developed", 300, 0.934, 0.950, 2),
]
"""Weights were chosen on them."""
TAKING_TURNS = [table for fitted in FITTED for table in (HELD_OUT, fitted)]
"""Each takes ten seconds: what weights are held to comes every second day, between those they were chosen on."""


@pytest.mark.parametrize(
    ("table", "size", "precision", "recall", "blocked_wrongly"), dict.fromkeys(in_turn(TAKING_TURNS, of=8))
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


def test_what_is_unlike_a_trigger_is_read_with_it_and_more_of_a_longer_action() -> None:
    lines = ["send the client a parcel", "water the plants", "call the plumber"]
    suspects = [
        Suspect(UUID(int=number), "never disclose margins", False, "block", 50, [], part, 0.16 + number / 1000)  # noqa: FBT003
        for part in (1, 2, 3)
        for number in range(1, 4)
    ]

    one, three = (
        with_readings(question_of(text), suspects[:count], Deadline(60))
        for text, count in ((lines[0], 3), ("\n".join(lines), 9))
    )

    assert all(each.read is not None for each in [*one, *three])
    assert [each.id.int for each in one] == [3, 2, 1]
    assert len(three) == POLICY.most_read + len(lines)


def test_an_action_of_another_trigger_hardly_ever_fires() -> None:
    pairs = read_actions(TABLES / "unseen_actions.py")
    triggers = in_turn(sorted({pair.trigger for pair in pairs}), of=4)
    some = in_turn(pairs, of=2, place=TURN // 4)
    strangers = [
        ActionPair(each, pair.action, fires=False) for pair in some for each in triggers if each != pair.trigger
    ]

    embed(strangers)
    fired = [match(pair.trigger, pair.action) for pair in strangers]

    assert len(strangers) > 1500
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
        (
            "Do not send newsletters to customers who opted out.",
            "send the newsletter to customers who opted out",
            "near",
        ),
        ("Do not send offers to customers who opted out.", "send the offer to customers who opted in", None),
        ("Never lend tools to members who checked out", "lend tools to members who checked in", None),
        ("Don't tell customers to open the pack themselves", "tell the customer to open the pack and test it", "near"),
        ("Don't tell customers to open the pack themselves", "tell the customer we open the pack for them", None),
        ("Never let guests light the stove themselves", "let the guest light the stove", "near"),
        ("Never let new users delete themselves", "let new users delete a comment", None),
        ("Never take bookings on Sundays", "take a booking for Sunday 6 December at 10", "near"),
        ("Never take bookings on Sundays", "take a booking for Monday 7 December at 10", None),
    ],
)
def test_another_object_of_the_same_act_is_no_match(trigger: str, action: str, expected: str | None) -> None:
    assert match(trigger, action) == expected
