"""The rooms: folders, the picture of them, and the import contracts say the same; a name is found once."""

from __future__ import annotations

import ast
import configparser
import re
from collections import Counter
from pathlib import Path

import pytest
from source_statements import statements_in

ROOT = Path(__file__).parents[2]
PACKAGES = ("nous_online", "nous_pipelines")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def layers(package: str) -> list[str]:
    """Return the rooms of a package as its contract has them, lowest first."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    (rooms,) = (
        section["layers"].split()
        for name, section in contracts.items()
        if name.endswith("-rooms") and section["layers"].split()[0].startswith(f"{package}.")
    )
    return [room.removeprefix(f"{package}.") for room in reversed(rooms)]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_picture_of_the_rooms_is_what_the_contract_holds(package: str) -> None:
    found = re.search(rf"^{package}: +(.+)$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)

    assert found is not None
    assert found[1].split(" ← ") == layers(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_in_a_package_is_in_a_room(package: str) -> None:
    ours = [path.relative_to(ROOT / package) for path in MODULES if path.is_relative_to(ROOT / package)]
    here = {path.parts[0].removesuffix(".py") for path in ours}

    assert here - {"__init__"} == set(layers(package))


def test_every_room_has_a_line() -> None:
    rows = re.findall(r"^\| (`.+?`) \| .+ \|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)
    described = {name.rstrip("/") for row in rows for name in re.findall(r"`(\w+/)`", row)}

    folders = {
        room for package in PACKAGES for room in layers(package) if (ROOT / package / room / "__init__.py").exists()
    }
    assert folders - described == set()


def test_no_two_modules_share_a_name() -> None:
    names = Counter(path.stem for path in MODULES if not path.stem.startswith("__"))

    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_classes_share_a_name() -> None:
    nodes = (node for path in MODULES for node in statements_in(ast.parse(path.read_text("utf-8"))))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))

    assert [name for name, count in names.items() if count > 1] == []
