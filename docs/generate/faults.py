"""What the reference page of faults shows: each fault, what is to happen then, and the test that shows it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LISTED = Path(__file__).parents[2] / "tests" / "faults" / "faults.toml"


@dataclass(frozen=True)
class Fault:
    """One thing that may fail; `test` is `path::name`."""

    id: str
    door: str
    fault: str
    expected: str
    test: str


@cache
def listed() -> Mapping[str, Any]:
    """Return the list as it is written."""
    return tomllib.loads(LISTED.read_text("utf-8"))


def faults() -> list[Fault]:
    """Return every fault, in the order of the list."""
    return [Fault(**row) for row in listed()["fault"]]


def fault_page() -> str:
    """Return the page: a table for each door, and what no test shows."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    found = faults()
    yield "# Faults, one by one\n"
    yield f"{len(found)} things that may fail, what happens then, and the test that shows it. Written by `make docs`"
    yield "from `tests/faults/faults.toml`; [reliability](../reliability.md) is the short of it."
    for door, title in listed()["doors"].items():
        yield f"\n## {title[0].upper()}{title[1:]}\n"
        yield "| id | fault | what happens | shown by |"
        yield "|---|---|---|---|"
        for each in found:
            if each.door == door:
                yield f"| {each.id} | {each.fault} | {each.expected} | {_test(each)} |"
    yield "\n## Not covered\n"
    yield from (f"- {line}" for line in listed()["not_covered"])


def _test(fault: Fault) -> str:
    path, _, name = fault.test.partition("::")
    return f"`{path}`: {name.removeprefix('test_').replace('_', ' ')}"
