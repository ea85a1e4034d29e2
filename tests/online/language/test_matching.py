import json

import pytest

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.matching import (
    FEATURES,
    MODEL_PATH,
    load_model,
    pair_features,
    parse_model,
)
from nous_online.language.pairs.reading import read
from nous_online.language.pairs.trees import checksum


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

    wording, narrower, exchange = load_model().probability(rows)

    assert wording > load_model().merge_at > narrower
    assert exchange < load_model().merge_at


def test_an_altered_model_file_is_refused():
    stored = json.loads(MODEL_PATH.read_text("utf-8"))
    stored["denial_at"] = 0.1

    with pytest.raises(Unavailable, match="SHA-256"):
        parse_model(json.dumps(stored))


def test_a_model_for_other_features_is_refused():
    stored = json.loads(MODEL_PATH.read_text("utf-8"))
    del stored["sha256"]
    stored["same"]["features"] = ["similarity"]

    with pytest.raises(Unavailable, match="other features"):
        parse_model(json.dumps({**stored, "sha256": checksum(stored)}))


def test_a_missing_model_file_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(Unavailable, match=r"training\.trees"):
        load_model(tmp_path / "absent.json")
