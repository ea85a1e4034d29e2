"""Every command explains itself, refuses what it does not know, and completes in a shell."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import leaves, typed
from typer.testing import CliRunner

from nous_online.interfaces.cli.command_line import application

COMMANDS = {" ".join(words): command for words, command in leaves()}
EXPECTED = """
    up down doctor learn recall context predict feedback history show split contradictions resolve import status check
    forget restore pin unpin update erase worker night diff undo report cost purge policy batches reembed dev demo mcp
    install uninstall
"""
WITHOUT_RESULT = {"demo", "mcp", "api", "console", "hook"}
"""Commands that show or serve, and end with nothing to be read by a machine."""
NOUS = "from nous_online.interfaces.cli.command_line import application; application()(prog_name='nous')"
BARE = "import typer, typer.completion, rich.console, rich.table, rich.panel"
MOST_TIMES_BARE = 4.5
"""Of the processor time of the libraries a command line needs anyway: half a second where those take 0.11."""


def test_everything_a_user_expects_is_a_command():
    assert set(EXPECTED.split()) - {name.split(maxsplit=1)[0] for name in COMMANDS} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_explains_itself_in_a_sentence_with_examples(name: str):
    answer = typed(*name.split(), "--help")

    assert answer.code == 0
    assert f"Usage: nous {name}" in answer.out.replace("root ", "nous ")
    assert COMMANDS[name].help[0].isupper()
    assert f"nous {name.split(maxsplit=1)[0]}" in COMMANDS[name].help.partition("Examples")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_says_what_it_is_for(name: str):
    options = [param for param in COMMANDS[name].params if not param.help and not getattr(param, "hidden", False)]

    assert [option.name for option in options] == []


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_RESULT))
def test_a_command_with_a_result_speaks_json(name: str):
    assert "--json" in {option for param in COMMANDS[name].params for option in param.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_one_line_with_exit_code_2(name: str):
    answer = typed(*name.split(), "--nonsense")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: No such option: --nonsense")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("typed_so_far", "offered", "not_offered"),
    [
        ("nous re", {"recall", "resolve", "report", "reembed"}, {"learn"}),
        ("nous censor ", {"add", "list"}, {"recall"}),
        ("nous recall --det", {"--detail"}, {"--limit"}),
        ("nous recall --detail ", {"full", "summary", "compressed", "index"}, set()),
        ("nous recall --type ", {"fact", "episode", "procedure", "censor"}, set()),
        ("nous censor add a b --severity ", {"warn", "block", "absolute"}, set()),
        ("nous cost --by ", {"night", "purpose", "model", "agent", "way"}, set()),
        ("nous context --frame de", {"decision", "debug"}, {"task"}),
        ("nous undo --kind me", {"merge"}, {"share"}),
        ("nous contradictions --status ", {"open", "resolved", "any"}, set()),
    ],
)
def test_a_shell_completes_commands_options_and_choices(typed_so_far: str, offered: set[str], not_offered: set[str]):
    found = set(completed("bash", typed_so_far).split())

    assert offered <= found
    assert not not_offered & found


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_what_each_command_does(shell: str):
    offered = completed(shell, "nous lea")

    assert "learn" in offered
    assert "Learn one fact" in offered


def test_bash_completes_with_the_script_it_is_given(kept_bytecode: dict[str, str]):
    press_tab = """
        eval "$(nous --show-completion bash)"
        COMP_WORDS=(nous re) COMP_CWORD=1; _nous_completion nous; echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    shown = subprocess.run(
        ["bash", "-c", press_tab], env=kept_bytecode | {"PATH": path}, capture_output=True, text=True, check=True
    )

    assert {"recall", "report"} <= set(shown.stdout.split())


def test_completing_starts_no_server_and_little_but_the_libraries_of_a_command_line(kept_bytecode: dict[str, str]):
    command, environment = [sys.executable, "-c", NOUS], kept_bytecode | asked("bash", "nous re")
    programs = (command, [sys.executable, "-c", BARE])
    home = Path(kept_bytecode["NOUS_HOME"])

    def is_quick() -> bool:
        completing, bare = (processor_seconds(program, environment) for program in programs)
        return completing < MOST_TIMES_BARE * bare

    assert any(is_quick() for _ in range(3))
    assert not home.exists()


@pytest.fixture(scope="module")
def kept_bytecode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of somebody who has no home yet, and whose first run keeps the modules it compiles."""
    folder = tmp_path_factory.mktemp("shell")
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "NOUS_HOME": str(folder / "home")}


def completed(shell: str, line: str) -> str:
    """Return what a shell is told when somebody presses the tab key behind a line."""
    result = CliRunner().invoke(application(), [], prog_name="nous", env=asked(shell, line))
    return result.stdout


def asked(shell: str, line: str) -> dict[str, str]:
    """Return the variables by which a shell asks for completions."""
    return {
        "_NOUS_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the processor time a command takes: what it takes where nothing else runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
