"""Commands where no extra is installed: whatever one imports, it names the extra that it needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import pointed_at, typed

from nous_online.interfaces.cli import command_line
from nous_online.interfaces.cli.command_line import EXTRAS, NIGHTS, USES

ROOT = Path(__file__).parents[3]
COMMANDS = ("nous_online/interfaces/cli", "nous_pipelines/commands")
WITHOUT_EXTRAS = """
import json, sys
from nous_online.interfaces.cli.command_line import extra_of

hidden, wanted = json.load(sys.stdin)

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
found = {}
for function, imports in wanted.items():
    try:
        exec(imports)
    except ModuleNotFoundError as error:
        found[function] = extra_of(error) or str(error)
json.dump(found, sys.stdout)
"""


def imports_by_function() -> dict[str, str]:
    """Return what each function of the commands imports of ours when it is called, in its order."""
    found: dict[str, str] = {}
    for path in (each for folder in COMMANDS for each in sorted((ROOT / folder).glob("[a-z]*.py"))):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                named = [each for each in ast.walk(function) if isinstance(each, ast.ImportFrom)]
                ours = [ast.unparse(each) for each in named if (each.module or "").startswith("nous_")]
                found[f"{path.stem}.{function.name}"] = "\n".join(ours)
    return found


def test_every_command_names_the_extra_it_needs():
    hidden = sorted({"starlette", *frozenset().union(*EXTRAS.values())})

    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS],
        input=json.dumps([hidden, imports_by_function()]),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    found = json.loads(answer.stdout)
    doors = {name.partition(".")[2]: extra for name, extra in found.items() if name.startswith("door_commands.")}
    assert doors == {"api": "api", "console": "api", "mcp": "mcp"}
    nights = {name: extra for name, extra in found.items() if not name.startswith("door_commands.")}
    assert {"night_commands.run_in_order", "night_commands.dev", "night_commands.demo"} <= nights.keys()
    assert {name: extra for name, extra in nights.items() if extra != NIGHTS} == {}


@pytest.fixture
def without_mcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "find_spec", lambda module: None if module == "mcp" else module)


@pytest.mark.usefixtures("without_mcp")
def test_doctor_says_which_extras_are_not_installed_and_what_for(database_url: str, tmp_path: Path):
    with pointed_at(database_url, tmp_path / "home"):
        told, machine = typed("doctor"), typed("doctor", "--json").json

    assert told.code == 0
    assert told.err == f"not installed, extra `mcp`: {USES['mcp']}; pip install 'nous-pipelines[mcp]'\n"
    assert (machine["is_ok"], machine["absent_extras"]) == (True, ["mcp"])
    assert USES.keys() == EXTRAS.keys()


@pytest.mark.usefixtures("without_mcp")
@pytest.mark.parametrize("option", ["--dry-run", "--agent=aria"])
def test_an_install_says_what_its_server_still_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    told, machine = typed("install", "claude-code", option), typed("install", "claude-code", option, "--json").json

    assert told.code == 0
    assert "can't start yet: `nous mcp` needs the extra `mcp`" in told.err
    assert "pip install 'nous-pipelines[mcp]'" in machine["missing"]
