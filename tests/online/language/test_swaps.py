"""What stands in each other's place in two statements, and how near it is."""

from __future__ import annotations

from nous_online.language.pairs.swaps import least_alike, swapped_phrases


def test_what_stands_in_each_others_place_is_found_and_what_was_added_is_not() -> None:
    assert swapped_phrases("Most users find it helpful", "Most users find it rather useless, sadly") == [
        ("helpful", "rather useless sadly")
    ]
    assert swapped_phrases("Take the first tram", "Take the first tram from the hall") == []


def test_phrases_of_one_meaning_are_nearer_than_those_of_opposite_ones() -> None:
    near = least_alike("They will purchase a press", "They will buy a press")
    far = least_alike("Most users find it helpful", "Most users find it ineffective")

    assert near > 0.7
    assert far < 0.5


def test_the_phrases_furthest_apart_decide() -> None:
    both = least_alike("They will purchase a press in May", "They will buy a boat in May")

    assert both == min(both, least_alike("a press", "a boat"), least_alike("purchase", "buy"))


def test_nothing_swapped_is_nothing_apart() -> None:
    assert least_alike("The hall is open", "The hall is open on Sundays") == 1.0
