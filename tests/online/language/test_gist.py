import pytest

from nous_online.language.pairs.content_features import gist_features, roots, things
from nous_online.language.pairs.reading import read


def gist(a, b):
    return gist_features(read(a), read(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Rosa Jimenez founded Helix Foods.", "The founder of Helix Foods is Rosa Jimenez."),
        ("Blue Harbour was written by Chen Wei.", "Chen Wei is the author of Blue Harbour."),
        ("The city of Leipzig is in Germany.", "Leipzig is located in Germany."),
        ("Ghent has an area of 156.2 square kilometres.", "Ghent has a total area of 156.2 sq km."),
        ("The operator of the line is Tidal Systems.", "Tidal Systems operates the line."),
    ],
)
def test_wordings_of_one_statement_have_one_gist(a, b):
    assert gist(a, b)["same_gist"] == gist(b, a)["same_gist"] == 1


@pytest.mark.parametrize(
    ("a", "b", "changed"),
    [
        ("The hall is in Belgium.", "The hall is in Ghent, Belgium.", "things_demoted"),
        ("The hall is in Ghent.", "The hall is in Ghent, Belgium.", "last_narrowed"),
        ("Rice is an ingredient of the stew.", "Rice is the main ingredient of the stew.", "restrictors"),
        ("Rice is in the stew.", "Rice and garlic are in the stew.", "joined_gap"),
        ("Blue Harbour precedes Nine Rooms.", "Nine Rooms precedes Blue Harbour.", "things_turned_wrongly"),
        ("Kavya Nair owns the index.", "Kavya Nair rewrote the index.", "root_words_more"),
    ],
)
def test_names_what_another_gist_changes(a, b, changed):
    assert gist(a, b)[changed] == gist(b, a)[changed] > 0
    assert gist(a, b)["same_gist"] == 0


def test_a_passive_may_turn_the_names_round():
    turned = gist("Blue Harbour was preceded by Nine Rooms.", "Nine Rooms precedes Blue Harbour.")

    assert turned["things_turned_freely"] == 1
    assert turned["things_turned_wrongly"] == 0


def test_a_name_after_a_comma_narrows_the_one_before():
    named = things(read("Marlow Township, Orrin County is in the United States"))

    assert [(" ".join(thing.words), thing.is_qualifier) for thing in named] == [
        ("marlow township", False),
        ("orrin county", True),
        ("usa", False),
    ]


def test_derivations_share_a_root_and_light_words_none():
    assert roots(read("The text was written by its author")) == ("text", "write")
    assert roots(read("It is located there")) == ()


def test_an_empty_text_has_no_gist_to_lose():
    assert gist("", "")["same_gist"] == 1
