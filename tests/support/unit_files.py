"""Which files have no test for a run without a server: told from their text, since it takes long to load them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SERVER = "server"
CONFTEST = Path(__file__).parents[1] / "conftest.py"


def needs_server(path: Path) -> bool:
    """Tell whether every test of a file asks for the server, by itself or through fixtures of the file or of all files.

    A fixture that comes from elsewhere counts for nothing: the file is then loaded, and its tests are looked at.
    """
    asked = dict(asked_in(path))
    tests = [name for name in asked if name.startswith("test_")]
    known = {**everywhere(), **asked}
    return bool(tests) and all(reaches_server(name, known, frozenset()) for name in tests)


@cache
def everywhere() -> dict[str, list[str]]:
    """Return what the fixtures of all files ask for."""
    return dict(asked_in(CONFTEST))


def asked_in(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each function of a file with the names it asks for: its parameters, and what `usefixtures` names."""
    module = ast.parse(path.read_text("utf-8"))
    classes = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    for node in (*module.body, *(each for one in classes for each in one.body)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = [each for each in node.decorator_list if isinstance(each, ast.Call)]
            used = [each for mark in marks if ast.unparse(mark.func).endswith("usefixtures") for each in mark.args]
            named = [each.value for each in used if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            yield node.name, [*named, *(each.arg for each in (*node.args.args, *node.args.kwonlyargs))]


def reaches_server(name: str, known: Mapping[str, list[str]], seen: frozenset[str]) -> bool:
    """Tell whether a test or fixture asks for the server in the end."""
    return name == SERVER or (
        name not in seen and any(reaches_server(each, known, seen | {name}) for each in known.get(name, ()))
    )
