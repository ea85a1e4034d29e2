import pytest

from nous_online.pairs.denials import denied, opposed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The build cache is shared", "The build cache is not shared"),
        ("Ana eats meat", "Ana doesn't eat meat"),
        ("A man is playing the harp", "There is no man playing the harp"),
        ("Nobody is peeling an onion in the yard", "Someone is peeling an onion in the yard"),
        ("The boy is opening the crate", "The boy is closing the crate"),
    ],
)
def test_a_denial_shares_its_words_with_what_it_denies(one, other):
    assert denied(one, other) is not None
    assert (denied(other, one) is None) is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana eats meat", "Ben doesn't drink wine"),
        ("The cache is not shared", "The queue is not shared"),
        ("Ana eats meat", "Ana eats fish"),
        ("Ana wrote Low Tide", "Ana wrote High Tide"),
        ("No", "Yes"),
        ("Ana never eats meat at work because the kitchen is small", "Ana eats"),
    ],
)
def test_what_speaks_of_something_else_denies_nothing(one, other):
    assert denied(one, other) is None


def test_two_negations_are_none():
    assert denied("The cache is not shared", "The cache isn't shared") is None


def test_opposites_show_where_they_stand():
    assert opposed("The front door is open today", "The front door is closed today") == "front door is … today"
    assert opposed("The front door is open today", "The garden gate is closed today") is None
