"""Times of day in figures and in words are compared as times."""

from __future__ import annotations

import pytest

from nous_online.language.pairs.guards import exact_differences
from nous_online.language.pairs.reading import read
from nous_online.language.pairs.times import clock


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The recital is on Saturday, 3 in the afternoon", "15:00 on Saturday: the recital"),
        ("no screens after 7 pm", "screens until seven in the evening"),
        ("the train leaves at quarter to nine", "the train leaves at 08:45"),
        ("the train leaves at quarter to nine", "the train leaves at 20:45"),
        ("half past three", "3:30 pm"),
        ("twenty minutes to four", "3:40 am"),
        ("one o'clock", "13:00"),
        ("two at night", "02:00"),
        ("eleven at night", "23:00"),
        ("spin it for half an hour", "spin it for 30 minutes"),
        ("it takes three quarters of an hour", "it takes 45 minutes"),
        ("an hour and a half", "90 minutes"),
        ("under-16s stay out", "those under 16 stay out"),
    ],
)
def test_one_time_told_in_two_ways_is_one(one: str, other: str) -> None:
    assert exact_differences(one, other) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the train leaves at quarter to nine", "the train leaves at quarter past nine"),
        ("the train leaves at quarter to nine", "the train leaves at 21:15"),
        ("the shop closes at six in the evening", "the shop opens at six in the morning"),
        ("the talk takes half an hour", "the talk takes 45 minutes"),
        ("from ten to five people come", "at 16:50 people come"),
    ],
)
def test_two_times_are_two(one: str, other: str) -> None:
    assert exact_differences(one, other) != ()


def test_a_number_that_is_no_hour_is_a_number() -> None:
    reading = read("30 in the morning class, 13 o'clock")

    assert reading.times == frozenset()
    assert {number.value for number in reading.numbers} == {30, 13}


def test_a_time_is_shown_as_a_clock_shows_it() -> None:
    assert [clock(time) for time in sorted(read("noon, 5:05 pm and half past three").times)] == [
        "12:00",
        "17:05",
        "03:30",
    ]
