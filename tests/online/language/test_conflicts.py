import pytest

from nous_online.language.pairs.conflicts import (
    CONFLICT_FEATURES,
    conflict_features,
    conflict_rows,
    may_conflict,
    shared_words,
    speak_of_one_thing,
)
from nous_online.language.pairs.reading import read


def test_the_features_do_not_depend_on_which_statement_comes_first():
    a, b = "Rice is an ingredient of Plum dumplings.", "Plum dumplings contain ginger"

    one, other = conflict_rows([(a, b, 0.8), (b, a, 0.8)])

    assert one.tolist() == other.tolist()


def test_no_pairs_make_an_empty_table_of_the_right_width():
    assert conflict_rows([]).shape == (0, len(CONFLICT_FEATURES))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The mayor of Ghent is Ana Lima", "Ghent is led by mayor Ben Roth"),
        ("A courier is loading the northern van", "There is no courier loading the northern van"),
        ("Ana lives in Rome", "Ana does not live in Rome"),
    ],
)
def test_what_lasts_of_something_known_and_what_is_denied_may_conflict(a, b):
    assert may_conflict(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("A clerk is stamping the permit", "A clerk is stamping the ledger"),  # which clerk?
        ("Two clerks wait in the archive", "Two clerks sleep in the archive"),
        ("The clerk is stamping the permit", "The clerk is stamping the ledger"),  # of the moment
        ("Ana lives in Rome", "Ana lives in Rome " + "and likes it there " * 6),  # more than one claim
    ],
)
def test_what_is_true_beside_the_other_is_not_asked_about(a, b):
    assert not may_conflict(a, b)


@pytest.mark.parametrize(
    ("denial", "said", "missing"),
    [
        ("There is no clerk stamping permits", "A clerk is stamping a pile of permits", 0),
        ("Nobody is repairing the ferry", "Two women are repairing the ferry", 0),
        ("A clerk is not stamping permits at noon", "A clerk is stamping permits", 1),
    ],
)
def test_who_denies_something_denies_all_that_says_it_in_more_words(denial, said, missing):
    assert conflict_features(read(denial), read(said), 0.8)["denied_missing"] == missing


def test_what_both_speak_of_is_named_in_the_order_of_the_first():
    assert shared_words("Ghent is led by Ana Lima", "The mayor who led Ghent is Ben") == "ghent led"


def test_statements_that_share_next_to_no_words_are_compared_only_when_one_denies():
    assert speak_of_one_thing("The mayor of Ghent is Ana Lima", "The mayor of Ghent is Ben Roth")
    assert speak_of_one_thing("Nobody repairs the ferry", "Two women are welding")
    assert not speak_of_one_thing("The mayor of Ghent is Ana Lima", "Tea is served at noon in the garden")
