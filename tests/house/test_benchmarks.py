import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from nous_online.core.errors import NotFound
from nous_online.language.minilm import unit_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are run from the root, and not installed

from benchmarks import cases
from benchmarks.__main__ import listing, measure, show
from benchmarks.goals import GOALS, at_least, at_most
from benchmarks.intervals import of_count
from benchmarks.join_contenders import METHODS
from benchmarks.join_vectors import decaying, more_like, nearest_cosines, sentences, wider
from benchmarks.results import commit, described

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    """Run the program in this process."""
    program = typer.Typer(add_completion=False)
    program.command()(measure)
    return CliRunner().invoke(program, arguments, env={"COLUMNS": "200", "TERM": "dumb"})


def pairs_of(method, vectors):
    left, right = METHODS[method](vectors)()
    return sorted(zip(left.tolist(), right.tolist(), strict=True))


def test_without_a_name_the_benchmarks_and_their_goals_are_listed():
    command = [sys.executable, "-m", "benchmarks"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert asked.returncode == 0
    assert "join: faiss_over_ours_100k_384_ratio ≥ 8" in asked.stdout
    assert len(asked.stdout.splitlines()) == len(GOALS)


def test_an_unknown_name_is_refused_with_the_known_ones():
    asked = run("speed")

    assert asked.exit_code == 2
    assert "there is no benchmark 'speed'; choose from join" in asked.stderr


def test_help_shows_an_example():
    assert "python -m benchmarks join --quick" in run("--help").stdout


def test_a_missing_file_of_cases_is_named(tmp_path):
    with pytest.raises(NotFound, match=r"facts_pairs\.jsonl is missing; give the folder that holds it with --data"):
        cases(tmp_path, "facts_pairs")


def test_cases_are_the_lines_of_a_file(tmp_path):
    (tmp_path / "drawn.jsonl").write_text('{"text": "tea"}\n\n{"text": "milk"}\n')

    assert cases(tmp_path, "drawn") == [{"text": "tea"}, {"text": "milk"}]


def test_a_result_says_when_where_and_on_which_commit():
    share = of_count(3, 4)
    measured = {"metrics": {"pairs_missed": 0}, "peers": {"faiss": share}, "notes": []}

    result = described("join", measured, code="abc", quick=True)

    told = ["name", "date", "commit", "machine", "quick", "metrics", "n", "intervals", "peers", "notes"]
    assert list(result) == told
    assert (result["commit"], result["quick"]) == ("abc", True)
    assert (result["n"], result["intervals"]) == ({"faiss": 4}, {"faiss": [0.300642, 0.954413]})
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize("value", [float("nan"), "8", None, True])
def test_a_metric_that_is_no_finite_number_is_refused(value):
    with pytest.raises(TypeError, match=r"join: the metric peak_mb is .*, expected a finite number"):
        described("join", {"metrics": {"peak_mb": value}, "peers": {}, "notes": []}, code="abc", quick=False)


def test_a_folder_outside_of_any_repository_has_no_commit(tmp_path):
    assert commit(tmp_path) == "unknown"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_the_one_checked_out(tmp_path):
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, *identity, "commit", "-q", "--allow-empty", "-m", "Start"], check=True)

    assert len(commit(tmp_path)) == 12


def test_goals_are_kept_at_their_bound():
    assert at_least(8).is_met_by(8)
    assert not at_least(8).is_met_by(7.9)
    assert at_most(1.5).is_met_by(1.5)
    assert not at_most(1.5).is_met_by(1.6)


def test_the_table_says_which_goals_are_met_not_met_or_not_measured():
    measured = {"metrics": {"faiss_over_ours_100k_384_ratio": 9.5, "pairs_missed": 3}, "peers": {}, "notes": ["a note"]}
    console = Console(record=True, width=120, force_terminal=False)

    show(described("join", measured, code="abc", quick=False), console)

    lines = {line.split()[1]: line for line in console.export_text().splitlines() if line.startswith("│")}
    assert " met " in lines["faiss_over_ours_100k_384_ratio"]
    assert "not met" in lines["pairs_missed"]
    assert "not measured" in lines["pairs_extra"]


def test_every_goal_is_listed():
    assert all(metric in listing() for goals in GOALS.values() for metric in goals)


def test_sentences_of_pairs_and_turns_are_read_once_each_and_long_texts_left_out(tmp_path):
    (tmp_path / "pairs_drawn.jsonl").write_text('{"a": "tea", "b": "milk", "label": "same"}\n{"a": "tea", "b": " "}\n')
    (tmp_path / "drawn_turns.jsonl").write_text(json.dumps({"text": "x" * 500}) + "\n" + json.dumps({"text": "bread"}))
    (tmp_path / "questions.jsonl").write_text('{"text": "unread"}')

    assert sorted(sentences(tmp_path)) == ["bread", "milk", "tea"]


def test_drawn_vectors_keep_the_spectrum_and_the_neighbourhoods_of_the_real_ones():
    real = more_like(decaying(500, 48), 1200)

    drawn = more_like(real, 3000)

    shares = [np.linalg.eigvalsh(rows.T @ rows / len(rows))[::-1][:8].sum() for rows in (real, drawn)]
    nearest = [np.median(nearest_cosines(rows, np.random.default_rng(0))) for rows in (real, drawn)]
    assert drawn.shape == (3000, 48)
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-5)
    assert abs(shares[0] - shares[1]) < 0.05
    assert abs(nearest[0] - nearest[1]) < 0.1


def test_wider_vectors_have_the_width_asked_for():
    drawn = wider(decaying(600, 32), 900, 128)

    assert drawn.shape == (900, 128)
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("method", ["faiss", "sklearn"])
def test_all_exact_methods_find_the_same_pairs(method):
    pytest.importorskip(method, exc_type=ImportError)
    drawn = decaying(400, 48)
    vectors = unit_rows(np.vstack([drawn, drawn + 0.05 * decaying(400, 48)[::-1], -drawn]))

    assert len(pairs_of("gemm", vectors)) > 100
    assert pairs_of("ours", vectors) == pairs_of("gemm", vectors)
    assert pairs_of(method, vectors) == pairs_of("gemm", vectors)
