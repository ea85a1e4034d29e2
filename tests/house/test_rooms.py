"""The rooms: folders, the picture of them, and the import contracts say the same; a name is found once."""

from __future__ import annotations

import ast
import configparser
import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from source_statements import statements_in

ROOT = Path(__file__).parents[2]
PACKAGES = ("nous_online", "nous_pipelines")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LEADS_ON = re.compile(r'"""A documented name of `([\w.]+)`\."""\n')
DOCUMENTED = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): found[1]
    for path in MODULES
    if (found := LEADS_ON.match(path.read_text("utf-8")))
}


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
    leading_on = {name.split(".")[1] for name in DOCUMENTED if name.startswith(f"{package}.")}
    ours = [path.relative_to(ROOT / package) for path in MODULES if path.is_relative_to(ROOT / package)]
    here = {path.parts[0].removesuffix(".py") for path in ours}

    assert here - leading_on - {"__init__"} == set(layers(package))


def test_every_room_has_a_line() -> None:
    rows = re.findall(r"^\| (`.+?`) \| .+ \|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)
    described = {name.rstrip("/") for row in rows for name in re.findall(r"`(\w+/)`", row)}

    folders = {
        room for package in PACKAGES for room in layers(package) if (ROOT / package / room / "__init__.py").exists()
    }
    assert folders - described == set()


def test_no_two_modules_share_a_name() -> None:
    names = Counter(
        path.stem
        for path in MODULES
        if not path.stem.startswith("__") and ".".join(path.relative_to(ROOT).with_suffix("").parts) not in DOCUMENTED
    )

    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_a_documented_name_leads_to_the_code(name: str) -> None:
    old, new = vars(import_module(name)), vars(import_module(DOCUMENTED[name]))

    public = new.get("__all__", [each for each in new if not each.startswith("_")])
    assert [each for each in public if old.get(each) is not new[each]] == []


@cache
def outlines() -> tuple[tuple[str, str], ...]:
    """Return every class ("class", name) and every module that names are imported from (path, module)."""
    nodes = ((path, node) for path in MODULES for node in statements_in(ast.parse(path.read_text("utf-8"))))
    return tuple(
        ("class", node.name) if isinstance(node, ast.ClassDef) else (str(path.relative_to(ROOT)), node.module or "")
        for path, node in nodes
        if isinstance(node, ast.ClassDef | ast.ImportFrom)
    )


def test_our_own_code_imports_from_the_rooms() -> None:
    imports = {f"{where}: {name}" for where, name in outlines() if where != "class" and name in DOCUMENTED}

    assert imports == set()


def test_no_two_classes_share_a_name() -> None:
    names = Counter(name for where, name in outlines() if where == "class")

    assert [name for name, count in names.items() if count > 1] == []
