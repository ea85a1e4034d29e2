"""The house rules: sizes, words, the arrow of imports, pinned dependencies, and prose that stays true."""

from __future__ import annotations

import ast
import functools
import os
import re
import resource
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from executed_pages import blocks_of, reading
from source_statements import statements_in

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SHIPPED = ("nous_online", "nous_pipelines", "sql")
PROSE = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/dependencies.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

LONGEST_FUNCTION = 40
P90_FUNCTION = 25
LONGEST_FILE = 700
COMMENT_SHARE = 0.10
IMPORT_S = 0.3

VAGUE = {"util", "utils", "helper", "helpers", "common", "manager", "handler", "processor", "service", "base"}
VAGUE |= {"data", "info"}
HEAVY = ("anthropic", "dagster", "duckdb", "onnxruntime", "polars", "psycopg_pool", "sklearn")
SQL_TEXT = re.compile(
    r"\s*(select\s|insert\s+into\s|delete\s+from\s|update\s+[\w.]+\s+set\s|with\s+\w+\s+as\s*\(|copy\s+[\w.(]+.*\b(from|to)\b"
    r"|(create|alter|drop)\s+(or\s+replace\s+)?(table|index|unique|database|schema|role|view|function|extension)\b|truncate\s)",
    re.IGNORECASE,
)


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def outline(path: Path) -> dict[str, list[tuple[str, Any]]]:
    """The functions of a file with their lines, docstring not counted; its classes with their names."""
    found: dict[str, list[tuple[str, Any]]] = {"functions": [], "classes": []}
    for node in statements_in(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            found["functions"].append((where, node.end_lineno - node.lineno + 1 - doc_lines(node)))
        elif isinstance(node, ast.ClassDef):
            found["classes"].append((f"{path.relative_to(ROOT)}: {node.name}", node.name))
    return found


def doc_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node) is None:
        return 0
    first = node.body[0]
    assert first.end_lineno is not None
    return first.end_lineno - first.lineno + 1


def tracked_files() -> list[Path]:
    """Every file under version control; outside a clone, every file of the packages and of the root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.split("\0") if name]
    found = [ROOT / name for name in names] or [*ROOT.glob("*.*"), *python_files(*SHIPPED, "tests")]
    return [path for path in found if path.is_file()]


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = [
        f"{name}: {lines}"
        for path in python_files(*SHIPPED, "benchmarks", "tests")
        for name, lines in outline(path)["functions"]
        if lines > LONGEST_FUNCTION
    ]

    assert not too_long


def test_nine_functions_of_ten_are_short() -> None:
    lines = [lines for path in python_files(*SHIPPED) for _, lines in outline(path)["functions"]]

    assert statistics.quantiles(lines, n=10)[-1] <= P90_FUNCTION


def test_no_file_is_too_long_to_read() -> None:
    lengths = {
        path: len(path.read_text("utf-8").splitlines()) for path in python_files(*SHIPPED, "benchmarks", "tests")
    }

    assert {path.name: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_comments_are_rare() -> None:
    lines = [line for path in python_files(*SHIPPED) for line in path.read_text("utf-8").splitlines()]

    assert sum("#" in line for line in lines) / len(lines) <= COMMENT_SHARE  # those in a text are counted, too


def test_names_say_what_a_thing_is() -> None:
    modules = {str(path.relative_to(ROOT)): path.stem for path in python_files(*SHIPPED, "benchmarks")}
    classes = {
        where: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
        for path in python_files(*SHIPPED, "benchmarks")
        for where, name in outline(path)["classes"]
    }

    vague = [where for where, name in (modules | classes).items() if VAGUE & set(name.lower().split("_"))]

    assert not vague


def test_sql_lives_in_sql_files() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.lineno} {text.value[:40]!r}"
        for path in python_files(*SHIPPED)
        for text in texts(path)
        if SQL_TEXT.match(text.value)
    ]

    assert not found


def texts(path: Path) -> Iterator[ast.Constant]:
    """Yield the string literals of a module that are no docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    prose = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            yield node


def test_imports_point_one_way() -> None:
    ended = subprocess.run([BIN / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout.partition("Broken contracts")[2]


def test_importing_the_online_module_is_quick() -> None:
    bare = min(cpu_seconds("pass") for _ in range(3))
    ours = min(cpu_seconds("import nous_online") for _ in range(3))

    assert ours - bare < IMPORT_S


def cpu_seconds(program: str) -> float:
    """Return the CPU time of a program: of the time on the wall a busy machine has its share."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_importing_the_online_module_loads_nothing_heavy() -> None:
    program = f"import sys, nous_online; print(*(set({HEAVY!r}) & set(sys.modules)))"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.split() == []


# --- pinned, explained, and nobody's machine ---


def requirements() -> dict[str, str]:
    """Every direct dependency, as its name and the whole requirement."""
    extras = PROJECT["optional-dependencies"].values()
    listed = [*PROJECT["dependencies"], *(requirement for extra in extras for requirement in extra)]
    return {re.match(r"[\w.-]+", requirement)[0]: requirement for requirement in listed}


@functools.cache
def locked(name: str) -> dict[str, str]:
    """The requirements of a lock file: their names, and everything written for each."""
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    return {line.split("==")[0]: line for line in text.splitlines() if line and not line.startswith("#")}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements-bench.lock"])
def test_every_locked_requirement_has_hashes(name: str) -> None:
    assert [line for line in locked(name).values() if "==" not in line or "--hash=sha256:" not in line] == []


def test_every_dependency_is_locked() -> None:
    assert set(requirements()) - set(locked("requirements-bench.lock")) == set()


def test_the_lock_has_the_dagster_that_was_asked_for() -> None:
    asked = {name: pin for name, pin in requirements().items() if name.startswith("dagster")}

    assert asked
    assert all("==" in pin and locked("requirements.lock")[name].startswith(pin) for name, pin in asked.items())


@pytest.mark.parametrize("name", ["requirements-dev.lock", "requirements-bench.lock"])
def test_what_users_install_is_what_is_tested_and_measured(name: str) -> None:
    installed, here = locked("requirements.lock"), locked(name)

    assert [name for name, line in installed.items() if here[name].split()[0] != line.split()[0]] == []


def test_what_users_install_holds_nothing_of_development() -> None:
    for_development = {re.match(r"[\w-]+", each)[0] for each in PROJECT["optional-dependencies"]["dev"]}

    assert for_development & set(locked("requirements.lock")) == set()
    assert for_development <= set(locked("requirements-dev.lock"))


def test_every_dependency_has_one_line_of_reason() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| .+ \| .+ \|$", (ROOT / "docs/dependencies.md").read_text("utf-8"), re.MULTILINE
    )

    assert sorted(rows) == sorted(requirements())


def test_no_file_names_a_machine_or_an_index() -> None:
    # each begins with a text that is looked for at once, where a look behind would be taken at every byte
    places = (rb"/(?<![\w.]/)(?:home|Users|work|root)/\w", rb"--(?:extra-)?index-url", rb"/simple/\w")
    contents = {path.name: path.read_bytes() for path in tracked_files() if path != Path(__file__)}

    assert [name for name, content in contents.items() if any(re.search(place, content) for place in places)] == []


def test_the_packaged_dagster_settings_equal_those_of_the_root() -> None:
    assert (ROOT / "nous_pipelines/orchestration/dagster.yaml").read_bytes() == (ROOT / "dagster.yaml").read_bytes()


def test_the_changelog_knows_this_version() -> None:
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


# --- prose ---


@functools.cache
def code_in(name: str) -> tuple[str, ...]:
    """The lines of code in a page: those of its shell blocks and its code spans."""
    text = (ROOT / name).read_text("utf-8")
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return (*spans, *(line for block in blocks for line in block.splitlines()))


@pytest.mark.parametrize("page", PROSE)
def test_paths_in_prose_exist(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text("utf-8"))
    missing_links = [link for link in links if not (ROOT / page).parent.joinpath(link).exists()]
    path = re.compile(
        r"(?:(?:sql|nous_online|nous_pipelines|tests|training|docs|benchmarks|\.ci)/[\w./*-]*|[\w.-]+\.(?:md|toml|ya?ml|lock))$"
    )
    named = {line for line in code_in(page) if path.match(line)}

    missing = [name for name in named if not any(ROOT.glob(name.rstrip("/")))]

    assert (missing_links, missing) == ([], [])


def test_the_architecture_fits_in_one_sitting() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 150


def test_the_first_example_printed_by_a_program_of_its_own_is_what_the_readme_says(database_url: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    promised = re.findall(r"^ *print\(.*#\s*(.+)$", "".join(blocks), re.MULTILINE)

    ended = subprocess.run(
        [sys.executable, "-c", "".join(blocks)],
        env={**os.environ, "NOUS_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert promised
    assert ended.stdout.splitlines() == promised


def test_every_verb_does_what_its_page_shows(database_url: str, tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(ROOT / "docs/heart.md") if block.language == "python"]

    assert len(blocks) > 5
    with reading(database_url, tmp_path, agent="aria") as reader:
        for block in blocks:
            reader.follow(block)
