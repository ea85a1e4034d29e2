"""The list of faults names tests that there are: every one exists, is collected and runs somewhere."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from docs.generate.faults import Fault, faults, listed

ROOT = Path(__file__).resolve().parents[2]
LEAST = 110


@cache
def collected(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return what pytest collects from a file: functions at its top that are named for it."""
    file = ROOT / path
    if not (file.is_file() and file.name.startswith("test_")):
        return {}
    nodes = ast.parse(file.read_text("utf-8")).body
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: node for node in functions if node.name.startswith("test_")}


def is_always_skipped(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).startswith(("pytest.mark.skip(", "pytest.mark.xfail")) for each in test.decorator_list)


def missing(fault: Fault) -> bool:
    path, _, name = fault.test.partition("::")
    return name not in collected(path) or is_always_skipped(collected(path)[name])


def test_every_fault_names_a_test_that_is_collected() -> None:
    assert [fault.test for fault in faults() if missing(fault)] == []


def test_a_test_that_is_not_there_is_missed() -> None:
    gone = Fault("gone", "python", "a fault", "an error", "tests/faults/test_no_embedder.py::test_that_is_not_there")

    assert missing(gone)


def test_there_are_as_many_faults_as_promised_each_with_an_id_and_a_test_of_its_own() -> None:
    found = faults()

    assert len(found) >= LEAST
    assert [name for name, count in Counter(fault.id for fault in found).items() if count > 1] == []
    assert [name for name, count in Counter(fault.test for fault in found).items() if count > 1] == []


def test_every_fault_comes_in_at_a_door_and_every_door_has_some() -> None:
    assert {fault.door for fault in faults()} == listed()["doors"].keys()
    assert all((fault.fault, fault.expected, fault.id) for fault in faults())


def test_what_is_not_covered_is_said() -> None:
    assert len(listed()["not_covered"]) >= 3
