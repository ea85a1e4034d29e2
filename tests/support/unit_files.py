"""Which files have no test for a run without a server: told from their text, since it takes long to load them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SERVER = "server"
CONFTEST = Path(__file__).parents[1] / "conftest.py"
FUNCTION = re.compile(r"^(?: {4})?(?:async )?def (\w+)(?:\(((?:[^()]|\([^()]*\))*)\))?", re.MULTILINE)
"""A function of the file or of a class in it, and its parameters where brackets stand in brackets at most.

To parse every file takes ten times as long.
"""
PARAMETER = re.compile(r"(?:^|,)\s*(\w+)\s*(?=[:,=]|$)")


def needs_server(path: Path) -> bool:
    """Tell whether every test of a file asks for the server, by itself or through fixtures of the file or of all files.

    A fixture that comes from elsewhere or is named by a mark counts for nothing: the file is then loaded, and its tests
    are looked at.
    """
    asked = asked_in(path)
    tests = [name for name in asked if name.startswith("test_")]
    known = {**everywhere(), **asked}
    return bool(tests) and all(reaches_server(name, known, frozenset()) for name in tests)


@cache
def everywhere() -> dict[str, list[str]]:
    """Return what the fixtures of all files ask for."""
    return asked_in(CONFTEST)


def asked_in(path: Path) -> dict[str, list[str]]:
    """Return each function of a file with the names of its parameters."""
    return {name: PARAMETER.findall(asked) for name, asked in FUNCTION.findall(path.read_text("utf-8"))}


def reaches_server(name: str, known: Mapping[str, list[str]], seen: frozenset[str]) -> bool:
    """Tell whether a test or fixture asks for the server in the end."""
    return name == SERVER or (
        name not in seen and any(reaches_server(each, known, seen | {name}) for each in known.get(name, ()))
    )
