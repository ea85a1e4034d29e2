import importlib
import json

import numpy as np
import pytest

from nous_online.language.writing.findings import features_of, weights


@pytest.fixture(scope="module")
def keeping():
    """The script, which loads scikit-learn: two seconds that no other process of a whole run shall take."""
    return importlib.import_module("training.findings.keeping")


@pytest.fixture(scope="module")
def rows(keeping):
    return [*keeping.written()]


def test_weights_are_fitted_to_what_readers_and_writers_say_is_worth_keeping(tmp_path, keeping, rows) -> None:
    told = [
        {"text": f"The mill at weir {n} reads its gauge twice, so `level` must halve it.", "kept": 2} for n in range(20)
    ] + [{"text": f"Now I'll open the log of weir {n} and look.", "kept": n % 2} for n in range(20)]
    path = tmp_path / "labelled.jsonl"
    path.write_text("\n".join(json.dumps({"finding": False, "label": None, **each}) for each in told), "utf-8")
    rows = [*keeping.labelled(path), *rows[::8]]

    made = keeping.fitted(rows)

    scores = np.array([features_of(row.text, row.form) @ made[:-1] for row in rows])
    kept = np.array([row.kept == 2 for row in rows])
    assert made.shape == weights().shape
    assert np.mean(scores[kept][:, None] > scores[~kept]) > 0.9
    assert scores[:20].min() > scores[20:40].max()


def test_of_what_was_written_both_kinds_are_read_and_none_twice(rows) -> None:
    assert len(rows) > 1200
    assert 0.45 < np.mean([row.kept == 2 for row in rows]) < 0.65
    assert len({row.text for row in rows}) == len(rows)
