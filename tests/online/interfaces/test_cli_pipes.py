"""What a command reads and writes in a pipe: text from standard input, readers that leave early, no colours."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import pointed_at, typed
from turns import in_turn
from twins import begun, run_nous

NOUS = [sys.executable, "-m", "nous_online.interfaces.cli"]
PIPE_CLOSED = 141


@pytest.fixture(autouse=True)
def _environment(database_url: str, tmp_path: Path) -> Iterator[None]:
    with pointed_at(database_url, tmp_path / "home"):
        yield


def test_a_statement_is_learned_from_standard_input():
    answer = typed("learn", "-", "--json", stdin="\n  Deploys need\ntwo approvals \n")

    assert answer.json["memory"]["content"] == "Deploys need\ntwo approvals"


def test_an_action_and_a_question_are_read_from_standard_input():
    typed("censor", "add", "rm -rf /*", "no", "--literal", "--severity", "block")

    assert typed("check", "-", stdin="sudo rm -rf /usr").code == 1
    assert typed("recall", "-", "--json", stdin="deploys?").json["memories"][0]["memory"]["kind"] == "censor"


def test_an_input_that_is_no_text_is_one_line_with_the_fix():
    answer = typed("learn", "-", stdin=b"\xff\xfe")

    assert answer.code == 1
    assert answer.err.startswith("error: the standard input is no UTF-8")
    assert "iconv" in answer.err


@pytest.mark.parametrize(
    ("arguments", "unbuffered"), in_turn([(["status"], ""), (["status", "--json"], ""), (["status"], "1")], of=3)
)
def test_a_reader_who_leaves_early_ends_the_command_without_a_word(arguments: list[str], unbuffered: str):
    read_end, write_end = os.pipe()
    os.close(read_end)

    ended = subprocess.run(
        [*NOUS, *arguments],
        stdout=write_end,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        check=False,
    )
    os.close(write_end)

    assert (ended.returncode, ended.stderr) == (PIPE_CLOSED, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line_with_exit_code_1():
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([*NOUS, "status"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr.startswith("error: the result can't be written")
    assert ended.stderr.count("\n") == 1


def test_a_command_whose_output_is_closed_does_its_work():
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *NOUS, "learn", "Ada prefers tea", "--json"]

    ended = subprocess.run(command, stderr=subprocess.PIPE, check=False)

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert typed("status", "--json").json["memories"] == {"fact": {"active": 1}}


def test_a_terminal_gets_colours_unless_it_wants_none():
    shown, plain = (on_a_terminal(["up"], {"TERM": "xterm", "NO_COLOR": wish}) for wish in ("", "1"))

    assert "\x1b[32mready" in shown
    assert "ready" in plain
    assert "\x1b[32m" not in plain


def on_a_terminal(arguments: list[str], variables: dict[str, str]) -> str:
    """Return what a command prints where standard output is a terminal."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    streams = [os.dup(theirs) for _ in range(3)]
    process = begun(lambda: run_nous(arguments, environment | variables, streams, [ours, theirs]))
    process.join(60)
    for each in (theirs, *streams):
        os.close(each)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    return shown
