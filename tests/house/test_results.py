"""Published figures: how sure each is, that it comes from a kept full run, and that none is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are run from the root, and not installed

from benchmarks.goals import GOALS
from benchmarks.intervals import Estimate, of_count, of_mean, of_means, of_medians, of_ratio, of_share
from benchmarks.results import commit, described, is_of_this_code, pending, read, write
from benchmarks.rows import CONTRACT, ROWS, SEEN
from benchmarks.table import NOT_MEASURED, all_tables, faults, pages, short_table, with_table

NAMES = [*dict.fromkeys(row.benchmark for row in ROWS)]


def kept(name="recall", *, quick=False, code="0123456789ab", **metrics):
    rows = [row for row in ROWS if row.benchmark == name]
    drawn = {metric: of_mean([0.2, 0.4, 0.9]) for row in rows for metric in row.metrics}
    return described(name, {"metrics": drawn | metrics, "peers": {}, "notes": []}, code=code, quick=quick)


# --- intervals ---


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 241, 0.0, 0.0157), (1, 400, 0.0004, 0.0140), (48, 50, 0.8654, 0.9890), (5, 5, 0.5655, 1.0), (0, 0, 0.0, 1.0)],
)
def test_a_share_has_the_interval_of_wilson(hits, n, low, high):
    share = of_count(hits, n)

    assert (share.n, share.low, share.high) == (n, pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert share == (hits / n if n else 0)
    assert of_share([True] * hits + [False] * (n - hits)).high == share.high


def test_a_mean_is_drawn_again_from_a_fixed_seed():
    values = np.random.default_rng(5).normal(3, 2, 400)

    mean = of_mean(values)

    assert mean == pytest.approx(values.mean())
    assert (mean.low, mean.high) == (of_mean(values).low, of_mean(values).high)
    assert mean.high - mean.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_a_ratio_draws_what_belongs_together_together():
    sure, unsure = of_ratio([1, 2, 3], [2, 4, 6]), of_ratio([2, 1, 3], [2, 4, 6])

    assert sure == unsure == 0.5
    assert sure.low == sure.high == 0.5
    assert unsure.low < 0.5 < unsure.high


def test_medians_are_compared_with_what_chance_does_to_both():
    quick, slow = [1.0, 1.1, 0.9] * 20, [2.0, 2.2, 1.8] * 20

    assert of_medians(slow, quick) == 2
    assert 1.8 < of_medians(slow, quick).low <= 2 <= of_medians(slow, quick).high < 2.3


def test_a_mean_of_sets_counts_each_set_alike():
    both = of_means([Estimate(1, n=10, low=0, high=2), Estimate(3, n=90, low=2, high=4)])

    assert (both, both.n) == (2, 100)
    assert both.high - both.low == pytest.approx(2**0.5)


# --- what is published ---


def test_the_pages_show_what_is_kept():
    assert {str(page.name): text for page, text in pages(read()).items()} == {
        page.name: page.read_text("utf-8") for page in pages(read())
    }


def test_what_is_kept_is_fit_to_be_published():
    assert faults(read()) == []


def test_a_quick_run_and_changed_code_are_not_fit_to_be_published():
    results = {"recall": kept(quick=True), "wording": kept("wording", code="0123456789ab-dirty"), "join": kept("join")}

    assert faults(results) == ["recall: a quick run", "wording: measured at 0123456789ab-dirty"]


def test_a_figure_of_the_contract_that_was_measured_and_left_out_is_named(monkeypatch):
    monkeypatch.setitem(CONTRACT, "recall", f"{CONTRACT['recall']} locomo_r100")

    assert faults({"recall": kept(locomo_r100=0.9)}) == ["recall: locomo_r100 was measured and is in no row"]


def test_a_row_without_a_figure_is_named():
    result = kept()
    del result["metrics"]["lme_r10"]

    assert faults({"recall": result}) == ["recall: a row names lme_r10, which was not measured"]


def test_every_goal_and_every_figure_of_the_contract_has_a_row():
    shown = {(row.benchmark, metric) for row in ROWS for metric in row.metrics}
    beside = {(row.benchmark, key) for row in ROWS for _, pattern in row.peers for key in row.keys(pattern)}

    assert {(name, metric) for name, goals in GOALS.items() for metric in goals} - shown == set()
    assert {(name, key) for name, keys in CONTRACT.items() for key in keys.split()} - shown - beside == set()
    assert GOALS.keys() <= {*NAMES}


def test_the_short_table_has_ten_rows_natural_wording_first():
    shown = [row for row in ROWS if row.is_short]

    assert len(shown) == 10
    assert [row.benchmark for row in shown[:4]] == ["wording", "wording", "wording", "supersession"]
    assert {word for row in ROWS for word in row.seen.split(", ")} <= {*SEEN}
    assert not [row.what for row in shown if "templated" in row.seen]


def test_a_row_tells_its_interval_its_goal_its_peers_and_how_many_cases():
    result = kept(lme_r10=of_count(9, 10), locomo_r10=of_count(5, 10), beam_r10=0.7)
    result["peers"] = {"bm25_lme_r10": 0.8}

    (line,) = [line for line in all_tables({"recall": result}) if "LoCoMo / LongMemEval / BEAM" in line]

    assert "| 10 / 10 / - | ≥ 0.76 / ≥ 0.83 / ≥ 0.63 |" in line
    assert "| 0.5 (0.237 to 0.763), missed / **0.9 (0.596 to 0.982)** / **0.7** |" in line
    assert "| BM25 - / 0.8 / - | tuned |" in line


def test_a_missing_file_is_said_to_be_one():
    lines = [line for line in short_table({}) if line.startswith("| recall")]

    assert NOT_MEASURED in lines[0]
    assert "0123456789ab" in list(short_table({"recall": kept()}))[-1]


def test_a_table_takes_the_place_of_the_one_before():
    page = with_table(Path(pages({}).popitem()[0]).read_text("utf-8"), "| new |")

    assert with_table(page, "| newer |") == page.replace("| new |", "| newer |")


# --- runs ---


@pytest.fixture
def repository(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    for folder in ("nous_online", "benchmarks/results", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a").write_text("1")
    git("add", ".")
    git("commit", "-qm", "Start")
    return tmp_path


def test_a_result_counts_while_the_code_is_the_same(repository):
    result = kept(code=commit(repository))
    (repository / "docs/a").write_text("2")
    (repository / "benchmarks/results/a").write_text("2")

    assert is_of_this_code(result, repository)
    assert commit(repository) == result["commit"]
    (repository / "nous_online/a").write_text("2")
    assert not is_of_this_code(result, repository)
    assert commit(repository) == f"{result['commit']}-dirty"


def test_what_was_measured_with_this_code_is_not_measured_again(repository):
    code = commit(repository)
    results = {"recall": kept(code=code), "join": kept("join", code=code, quick=True), "night": kept("night")}
    names = ["recall", "join", "night", "wording"]

    assert pending(names, results, quick=False, folder=repository) == ["join", "night", "wording"]
    assert pending(names, results, quick=True, folder=repository) == ["night", "wording"]


def test_results_are_read_as_they_were_written(tmp_path):
    write(kept(), tmp_path / "new" / "recall.json")

    (result,) = read(tmp_path / "new").values()

    assert result["intervals"]["lme_r10"][0] < result["metrics"]["lme_r10"] < result["intervals"]["lme_r10"][1]
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["recall.json"]
