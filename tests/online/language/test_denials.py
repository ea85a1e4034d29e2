import pytest

from nous_online.language.pairs.denials import denied, opposed


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
        ("Orders may be changed before noon", "Orders may not be changed after noon"),
        ("Members enter with a card", "Visitors can't enter without a card"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The cafe opens at 8", "The cafe closes at 8"),
        ("The train arrives at 9 every day", "The train leaves at 9 every day"),
        ("The sale begins on Monday", "The sale ends on Monday"),
        ("Ana's father lives in Rome", "Ana's mother lives in Rome"),
        ("Ana's son is called Max", "Ana's daughter is called Max"),
        ("The front door is locked", "The back door is locked"),
        ("The daily backup is stored in S3", "The weekly backup is stored in S3"),
        ("The production database is hosted in Oslo", "The staging database is hosted in Oslo"),
        ("The password is stored in the production database", "The password is stored in the staging database"),
        ("The minimum pool size is 20", "The maximum pool size is 20"),
        ("The public key is stored in the vault", "The private key is stored in the vault"),
        ("Ana is the old manager of the shop", "Ana is the new manager of the shop"),
    ],
)
def test_an_opposite_that_tells_two_things_or_moments_apart_denies_nothing(one, other):
    assert opposed(one, other) is None
    assert denied(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The garden door is open", "The garden door is closed"),
        ("The feature flag is now enabled", "The feature flag is now disabled"),
        ("The mail server is up", "The mail server is down"),
        ("The nightly backup is very slow", "The nightly backup is very fast"),
    ],
)
def test_opposites_that_say_how_a_thing_is_deny_each_other(one, other):
    assert denied(one, other) is not None
    assert denied(other, one) is not None
