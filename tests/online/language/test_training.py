import json

import numpy as np
import pytest
from conftest import WordEmbedder

from nous_online.language.pairs.pair_model import trees_from
from training.trees.examples import labelled_pairs
from training.trees.fit import Shape, Table, curve, exported, fit, folds, unseen_chances

SMALL = Shape(trees=12, depth=3, learning_rate=0.1, features_tried=0.5, least_pairs=5)
NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    rows = rng.random((300, len(NAMES)))
    labels = (rows[:, 0] + 0.3 * rng.random(300) > 0.6).astype(np.int64)
    return Table(rows, labels, np.ones(300), [f"family {place % 9}" for place in range(300)])


@pytest.fixture
def sets(tmp_path):
    """Return a folder with one row or two of each set, of which `facts_pairs` holds some texts back."""
    files = {
        "facts_pairs": [{"a": "The port is 1", "b": "The port is 2"}],
        "pairs_paws": [{"a": "Ana beat Ben", "b": "Ben beat Ana", "label": "different"}],
        "pairs_stsb": [{"a": "A man runs", "b": "A man walks", "score": 2.0}],
        "fc_facts": [{"fact": "The host is Elm"}, {"fact": "The host is Oak"}, {"fact": "The port is 2"}],
        "dyknow_facts": [
            {"slot": "mayor", "fact": "The mayor is Ana", "value": "Ana"},
            {"slot": "mayor", "fact": "The mayor is Ben", "value": "Ben"},
        ],
    }
    for name, rows in files.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


def test_equal_rows_give_an_equal_model(table):
    first, second = (exported(fit(table, SMALL), SMALL, features=NAMES, decide_at=0.5) for _ in range(2))

    assert json.dumps(first) == json.dumps(second)


def test_stored_trees_give_the_chances_that_were_fitted(table):
    fitted = fit(table, SMALL)
    stored = exported(fitted, SMALL, features=NAMES, decide_at=0.5)

    trees = trees_from({**stored, "version": "small", "curve": {"given": [0, 1], "came_true": [0, 1]}})

    assert np.allclose(trees.raw_chance(table.rows), fitted.predict_proba(table.rows)[:, 1], atol=1e-4)


def test_no_family_is_learned_from_and_held_out(table):
    for learned, held_out in folds(table.families):
        assert not {table.families[place] for place in learned} & {table.families[place] for place in held_out}


def test_every_row_is_held_out_once(table):
    assert sorted(np.concatenate([held_out for _, held_out in folds(table.families)])) == list(range(300))


def test_a_curve_says_how_often_what_was_given_came_true_and_never_falls(table):
    points = curve(unseen_chances(table, SMALL), table.labels, table.weights)

    assert points["came_true"] == sorted(points["came_true"])
    assert 0 < points["came_true"][0] < 0.5 < points["came_true"][-1] < 1


def test_what_is_measured_is_left_out_and_the_same_seed_draws_the_same_pairs(sets, monkeypatch):
    monkeypatch.setattr("training.trees.sentences.FACT_ROUNDS", 1)
    monkeypatch.setattr("training.trees.sentences.SCENE_ROUNDS", 20)

    first, second = (labelled_pairs(sets, embedder=WordEmbedder(), seed=1) for _ in range(2))

    assert first == second
    assert not {"The port is 1", "The port is 2"} & {text for pair in first[0] for text in (pair.a, pair.b)}
    assert "written-wording" in {pair.source for pair in first[0]}
