import importlib
import json

import numpy as np
import pytest
from turns import in_turn

from nous_online.language.writing.findings import features_of, weights


@pytest.fixture(scope="module")
def keeping():
    """The script, which loads scikit-learn: two seconds that no other process of a whole run shall take."""
    return importlib.import_module("training.findings.keeping")


@pytest.fixture(scope="module", params=["found", "told"])
def said(request):
    return request.param


@pytest.fixture(scope="module")
def rows(keeping, said):
    return [*keeping.written(in_turn(keeping.written_lines(said), of=4), said)]


def test_weights_are_fitted_to_what_readers_and_writers_say_is_worth_keeping(tmp_path, keeping, said, rows) -> None:
    told = [
        {"text": f"The mill at weir {n} reads its gauge twice, so `level` must halve it.", "kept": 2} for n in range(20)
    ] + [{"text": f"Now I'll open the log of weir {n} and look.", "kept": n % 2} for n in range(20)]
    path, form = tmp_path / "labelled.jsonl", [0.0] * len(rows[0].form)
    path.write_text("\n".join(json.dumps({"form": form, **each}) for each in told), "utf-8")
    rows = [*keeping.labelled(path), *rows[::2]]

    made = keeping.fitted(rows, said)

    scores = np.array([features_of(row.text, row.form) @ made[:-1] for row in rows])
    kept = np.array([row.kept == 2 for row in rows])
    assert made.shape == weights(said).shape
    assert np.mean(scores[kept][:, None] > scores[~kept]) > 0.9
    assert scores[:20].min() > scores[20:40].max()


def test_of_what_was_written_both_kinds_are_read_and_none_twice(keeping, said, rows) -> None:
    lines = keeping.written_lines(said)
    assert len({*lines}) == len(lines)
    assert len(rows) > {"found": 300, "told": 160}[said]
    assert 0.4 < np.mean([row.kept == 2 for row in rows]) < 0.65
    assert len({row.text for row in rows}) == len(rows)
