from __future__ import annotations

import json

import pytest

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.pair_model import (
    FEATURES,
    MODEL_PATH,
    checksum,
    gist_features,
    load_model,
    pair_features,
    parse_model,
    roots,
    things,
)
from nous_online.language.pairs.reading import read


def test_features_do_not_depend_on_which_statement_comes_first():
    a, b = "Northwind Labs was founded by Rosa Jimenez in 1987.", "In 1987 Rosa Jimenez founded Northwind Labs"

    one, other = pair_features([(a, b, 0.93), (b, a, 0.93)])

    assert one.tolist() == other.tolist()


def test_no_pairs_make_an_empty_table_of_the_right_width():
    assert pair_features([]).shape == (0, len(FEATURES))


def test_dates_and_numbers_become_one_term_however_they_are_written():
    assert read("born on 2023-05-05 with 3,000 euros").terms == read("born on May 5, 2023 with 3000 euros").terms


def test_a_wording_scores_above_a_narrower_statement_and_that_above_an_exchange():
    rows = pair_features(
        [
            ("The user prefers dark mode.", "User prefers dark mode", 0.97),
            ("The user prefers dark mode.", "The user prefers dark mode in the editor at night.", 0.93),
            (
                "The team moved from Kafka in Berlin to Redis in Rome.",
                "The team moved from Redis in Rome to Kafka in Berlin.",
                0.97,
            ),
        ]
    )

    wording, narrower, exchange = load_model().raw_chance(rows)

    assert wording > load_model().decide_at > narrower
    assert exchange < load_model().decide_at


def test_an_altered_model_file_is_refused():
    stored = json.loads(MODEL_PATH.read_text("utf-8"))
    stored["decide_at"] = 0.1

    with pytest.raises(Unavailable, match="SHA-256"):
        parse_model(json.dumps(stored))


def test_a_model_for_other_features_is_refused():
    stored = json.loads(MODEL_PATH.read_text("utf-8"))
    del stored["sha256"]
    stored["features"] = ["similarity"]

    with pytest.raises(Unavailable, match="other features"):
        parse_model(json.dumps({**stored, "sha256": checksum(stored)}))


def test_a_missing_model_file_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(Unavailable, match=r"training\.trees"):
        load_model(tmp_path / "absent.json")


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
