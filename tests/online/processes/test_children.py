"""Programs we start import and read nothing from the folder somebody stands in, and mean the paths that were meant."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_homes import wait_for

from nous_online import processes
from nous_online.core.settings import settings
from nous_online.processes import Program, child_environment, child_folder, python_module, run_together
from nous_pipelines.orchestration.consolidating import launch, run_command

ROOT = Path(__file__).parents[3]
STARTING = {"run", "Popen", "call", "check_call", "check_output"}
ELSEWHERE = (
    # started in the repository alone, whose code it runs anyway
    "benchmarks/faults.py:",
    # worker processes, which their own tests start in a stranger's folder
    "nous_pipelines/engines/engine.py:",
)
OTHER_WAYS = re.compile(
    r"os\.(exec|spawn|posix_spawn|fork|system|popen)|multiprocessing\.|asyncio\.create_sub|.*ProcessPool"
)
STARTS = re.compile(rf"subprocess\.|{OTHER_WAYS.pattern}")
"""Stands in every file that starts a program, however it does."""


@pytest.fixture
def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A foreign folder to stand in: its `uvicorn.py` and `json.py` would be imported by a program that looks there."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    for name in ("json", "uvicorn", "dagster", "nous_online"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'a').write({name!r})")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    return folder


@pytest.fixture(autouse=True)
def _fresh_settings() -> Iterator[None]:
    yield
    settings.cache_clear()


def test_a_module_is_never_looked_for_in_the_current_folder(cloned: Path, tmp_path: Path) -> None:
    command = python_module("json.tool", "--help")

    ended = subprocess.run(command, cwd=cloned, capture_output=True, text=True, check=False)

    assert "usage" in ended.stdout
    assert not (tmp_path / "was-run").exists()


def test_what_a_child_starts_in_turn_does_not_look_there_either(cloned: Path, tmp_path: Path) -> None:
    grandchild = [sys.executable, "-m", "json.tool", "--help"]

    ended = subprocess.run(grandchild, cwd=cloned, env=child_environment(), capture_output=True, text=True, check=False)

    assert "usage" in ended.stdout
    assert not (tmp_path / "was-run").exists()


def test_a_path_that_was_given_from_the_current_folder_keeps_its_meaning(
    cloned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_HOME", "mine/memory")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "lib", str(tmp_path)]))
    settings.cache_clear()

    environment = child_environment(NOUS_PRICES="prices.toml")

    assert environment["NOUS_HOME"] == str(cloned / "mine/memory") == str(child_folder())
    assert environment["NOUS_PRICES"] == str(cloned / "prices.toml")
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(cloned / "lib"), str(tmp_path)]


WHERE = "import json, os, sys; print(json.dumps({'at': os.getcwd(), 'path': sys.path[0]}), flush=True)"


@pytest.mark.usefixtures("cloned")
def test_every_way_we_start_a_program_leaves_the_current_folder(tmp_path: Path) -> None:
    home = child_folder()
    (home / "background").mkdir()
    command = [sys.executable, "-P", "-c", WHERE]
    lines: list[str] = []

    asked = run_command(command, "postgresql://", seconds=30)
    launch("launched", command, "postgresql://", home=home)
    processes.start("started", command, home=home, environment={})
    with run_together(
        [Program("x", command, "http://127.0.0.1:1", "/", home)], tell=lambda _, line: lines.append(line)
    ):
        wait_for(lambda: lines and all((home / f"background/{name}.log").read_text() for name in BACKGROUND))

    told = [*lines, *((home / f"background/{name}.log").read_text() for name in BACKGROUND)]
    assert asked["at"] == str(home)
    assert all(f'"at": "{home}"' in line for line in told)
    assert not (tmp_path / "was-run").exists()
    processes.stop_all(home)


BACKGROUND = ("launched", "started")


# --- in the source ---


@functools.cache
def calls() -> list[tuple[str, ast.Call, str]]:
    """Return every call in files that could start a program: where it stands, the call, and what is called."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node, ast.unparse(node.func))
        for path in shipped()
        if STARTS.search(text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    ]


def shipped() -> list[Path]:
    folders = ("nous_online", "nous_pipelines", "benchmarks", "docs")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_program_is_started_in_a_folder_that_is_named() -> None:
    started = [
        (where, call)
        for where, call, function in calls()
        if function.startswith("subprocess.") and function.rpartition(".")[2] in STARTING
    ]

    nameless = [where for where, call in started if "cwd" not in {keyword.arg for keyword in call.keywords}]
    others = [
        f"{where} {function}"
        for where, _, function in calls()
        if OTHER_WAYS.match(function) and not where.startswith(ELSEWHERE)
    ]

    assert len(started) > 5
    assert (nameless, others) == ([], [])


def test_python_is_started_in_one_way() -> None:
    naming = [path.relative_to(ROOT).as_posix() for path in shipped() if "sys.executable" in path.read_text("utf-8")]

    # A hook has no time for what processes.py imports.
    assert sorted(naming) == ["nous_online/interfaces/hooks/hook.py", "nous_online/processes.py"]
