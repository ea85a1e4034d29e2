"""The four hooks as Claude Code starts them: processes that say what is remembered, or nothing, and never fail."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from cli_runs import typed
from import_files import written
from postgres_homes import wait_for
from stopwatch import stopwatch
from test_transcript_import import BEFORE

from nous_online.interfaces.hooks.hook import EVENTS
from nous_online.interfaces.projects import project_of
from nous_online.processes import stop_all

NOUS = Path(sys.executable).with_name("nous")
PATIENT = ("--within", "60")
LONGEST_S = 60


@contextmanager
def somebody(folder: Path, url: str) -> Iterator[dict[str, str]]:
    """Yield the environment of somebody who works in a repository, with a home whose hook server ends with it."""
    (folder / "atlas" / ".git").mkdir(parents=True)
    home = folder / "nous"
    yield {"PATH": "", "HOME": str(folder), "NOUS_HOME": str(home), "NOUS_DATABASE_URL": url}
    stop_all(home)


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Iterator[dict[str, str]]:
    """Where nothing runs yet."""
    with somebody(tmp_path, database_url) as environment:
        yield environment


@pytest.fixture(scope="module")
def served_place(
    tmp_path_factory: pytest.TempPathFactory, copy_of: Callable[[str], AbstractContextManager[str]], template: str
) -> Iterator[dict[str, str]]:
    """Where a hook server runs, for all tests that leave one running: it takes two seconds to start."""
    with copy_of(template) as url, somebody(tmp_path_factory.mktemp("served"), url) as environment:
        hook(environment, "SessionStart", *PATIENT)
        yield environment


def hook(place: dict[str, str], event: str, *options: str, **told: object) -> subprocess.CompletedProcess[str]:
    """Start a hook as Claude Code does."""
    call = {
        "session_id": "s-1", "hook_event_name": event, "cwd": str(Path(place["HOME"]) / "atlas"), "transcript_path": "",
        **told,
    }  # fmt: skip
    return subprocess.run(
        [str(NOUS), "hook", event, *options],
        input=json.dumps(call),
        text=True,
        capture_output=True,
        env=place,
        cwd="/",
        check=False,
        timeout=LONGEST_S * 2,
    )


def told(answer: subprocess.CompletedProcess[str]) -> str:
    """Return the context of an answer in the documented shape."""
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout, "nothing was told"
    found: dict[str, Any] = json.loads(answer.stdout)["hookSpecificOutput"]
    assert set(found) == {"hookEventName", "additionalContext"}
    return found["additionalContext"]


def log_of(place: dict[str, str]) -> str:
    path = Path(place["NOUS_HOME"]) / "hooks.log"
    return path.read_text("utf-8") if path.exists() else ""


def test_a_session_is_told_what_is_remembered_of_its_repository_and_a_prompt_what_answers_it_with_the_local_model(
    served_place: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    place = served_place
    project = project_of(Path(place["HOME"]) / "atlas")
    monkeypatch.setenv("NOUS_DATABASE_URL", place["NOUS_DATABASE_URL"])
    for text, where in (("runs PostgreSQL 18", project), ("listens on port 5433", None), ("is blue", "other-1")):
        options = ("--project", where) if where else ()
        assert typed("learn", f"The staging database {text}", "--category", "convention", *options).code == 0

    first = told(hook(place, "SessionStart", *PATIENT, source="startup"))
    question = {"prompt": "Which PostgreSQL does the staging database run?"}
    again = hook(place, "UserPromptSubmit", *PATIENT, **question)
    second = told(hook(place, "UserPromptSubmit", *PATIENT, session_id="s-2", **question))
    third = hook(place, "UserPromptSubmit", *PATIENT, prompt="Write a poem about bees in spring")

    assert "runs PostgreSQL 18" in first
    assert "listens on port 5433" in first
    assert "is blue" not in first + second
    assert "PostgreSQL 18" not in again.stdout  # this session was told so at its start
    assert second.splitlines()[1].endswith("The staging database runs PostgreSQL 18")
    assert (third.returncode, third.stdout, third.stderr) == (0, "", "")


def test_a_prompt_never_waits_for_a_server_that_has_to_be_started(place: dict[str, str]):
    took_s = stopwatch()
    answer = hook(place, "UserPromptSubmit", prompt="Which PostgreSQL does the staging database run?")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert took_s() < 10
    assert "it has been started" in log_of(place)
    wait_for((Path(place["NOUS_HOME"]) / "hooks.sock").exists, timeout_s=LONGEST_S)


def test_the_end_of_a_session_takes_it_in_and_a_compaction_before_it_changes_nothing(
    place: dict[str, str], owner: psycopg.Connection, tmp_path: Path
):
    transcript = str(written(tmp_path / "s-1.jsonl", *BEFORE))

    took_s = stopwatch()
    answers = [
        hook(place, "PreCompact", transcript_path=transcript, trigger="auto"),
        hook(place, "SessionEnd", transcript_path=transcript, reason="clear"),
    ]

    assert [(each.returncode, each.stdout, each.stderr) for each in answers] == [(0, "", "")] * 2
    assert took_s() < 20
    wait_for(lambda: not imports_of(transcript), timeout_s=LONGEST_S * 2)
    found = owner.execute("select detail, project_id, session_id from heart.episodes").fetchall()
    project = project_of(tmp_path / "atlas")
    assert found == [("user: Why do payments fail?\nassistant: Retries are off.", project, "s-1")]
    assert log_of(place) == ""


def imports_of(transcript: str) -> list[psutil.Process]:
    """Return the processes that import a transcript."""
    return [each for each in psutil.process_iter(["cmdline"]) if transcript in (each.info["cmdline"] or [])]


@pytest.mark.parametrize(
    ("event", "stdin"),
    [
        *zip(EVENTS, cycle(["", "{not json", "[1]"]), strict=False),
        *((event, '{"cwd": 5, "prompt": ["x"], "transcript_path": "/nowhere"}') for event in EVENTS),
    ],
)
def test_what_is_no_call_of_a_hook_is_one_line_in_the_log_and_nothing_else(tmp_path: Path, event: str, stdin: str):
    environment = {
        "HOME": str(tmp_path),
        "NOUS_HOME": str(tmp_path / "nous"),
        "NOUS_DATABASE_URL": "postgresql://127.0.0.1:1/x",
    }

    ended = subprocess.run(
        [str(NOUS), "hook", event], input=stdin, text=True, capture_output=True, env=environment, cwd="/", check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert f" {event}: " in (tmp_path / "nous" / "hooks.log").read_text("utf-8")


def test_a_hook_for_an_agent_without_a_name_answers_nothing_and_says_so(tmp_path: Path):
    environment = {"HOME": str(tmp_path), "NOUS_HOME": str(tmp_path / "nous"), "NOUS_AGENT": "aria"}
    command = [str(NOUS), "hook", "SessionStart", "--agent", ""]

    ended = subprocess.run(
        command, input='{"cwd": "."}', text=True, capture_output=True, env=environment, cwd="/", check=False
    )

    assert (ended.returncode, ended.stdout) == (0, "")
    assert "agent_id is empty; name the agent" in ended.stderr
    assert "--agent is empty" in (tmp_path / "nous" / "hooks.log").read_text("utf-8")


@pytest.mark.parametrize("arguments", [[], ["Nonsense"], ["SessionStart", "--within"], ["SessionStart", "--loud", "1"]])
def test_a_command_line_nobody_wrote_ends_silently_too(tmp_path: Path, arguments: list[str]):
    environment = {"HOME": str(tmp_path), "NOUS_HOME": str(tmp_path / "nous")}
    (tmp_path / "nous").mkdir()

    ended = subprocess.run(
        [str(NOUS), "hook", *arguments], input="{}", text=True, capture_output=True, env=environment, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_database_that_is_away_leaves_the_session_alone(tmp_path: Path):
    environment = {
        "HOME": str(tmp_path),
        "NOUS_HOME": str(tmp_path / "nous"),
        "NOUS_DATABASE_URL": "postgresql://127.0.0.1:1/x",
    }

    answer = hook(environment, "SessionStart", source="startup")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    wait_for(lambda: "Unavailable" in log_of(environment), timeout_s=LONGEST_S)


def test_a_locked_database_leaves_the_session_alone(served_place: dict[str, str]):
    with psycopg.connect(served_place["NOUS_DATABASE_URL"]) as owner:
        owner.execute("lock table heart.facts, heart.recalls in access exclusive mode")

        took_s = stopwatch()
        answer = hook(served_place, "UserPromptSubmit", prompt="Which PostgreSQL does the staging database run?")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert took_s() < 10


def test_a_hook_that_is_told_nothing_at_all_ends_in_time(place: dict[str, str]):
    with subprocess.Popen(
        [str(NOUS), "hook", "SessionStart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=place
    ) as held:
        assert held.stdin is not None
        assert held.stdout is not None
        assert (held.stdout.read(), held.wait(LONGEST_S)) == (b"", 0)
    assert "time was up" in log_of(place)


def test_nobody_else_can_read_what_hooks_leave_in_the_home(served_place: dict[str, str]):
    hook(served_place, "SessionStart", *PATIENT)

    home = Path(served_place["NOUS_HOME"])
    left = [home / "hooks.sock", home / "background" / "hooks.json"]
    assert [path.stat().st_mode & 0o077 for path in left] == [0, 0]
    assert home.stat().st_mode & 0o066 == 0


def test_a_server_of_another_environment_makes_room_for_one_of_this(served_place: dict[str, str]):
    hook(served_place, "SessionStart", *PATIENT)
    first = server_of(served_place)

    hook({**served_place, "NOUS_AGENT": "basil"}, "SessionStart", *PATIENT)

    assert server_of(served_place) != first
    wait_for(lambda: not psutil.pid_exists(first), timeout_s=LONGEST_S)


def server_of(place: dict[str, str]) -> int:
    return json.loads((Path(place["NOUS_HOME"]) / "background" / "hooks.json").read_text("utf-8"))["pid"]


def test_the_command_of_a_hook_runs_from_any_folder_with_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    typed("install", "claude-code")
    hooks = json.loads((tmp_path / ".claude" / "settings.json").read_text("utf-8"))["hooks"]
    command = hooks["SessionEnd"][0]["hooks"][0]["command"]
    environment = {"PATH": "", "HOME": str(tmp_path), "NOUS_HOME": str(tmp_path / "nous")}

    ended = subprocess.run(
        ["/bin/sh", "-c", command], input="{}", text=True, capture_output=True, cwd="/", env=environment, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert Path(shlex.split(command)[0]).is_absolute()
    assert "no transcript" in (tmp_path / "nous" / "hooks.log").read_text("utf-8")


def test_starting_a_hook_imports_neither_a_driver_nor_a_model():
    heavy = (
        "psycopg",
        "pydantic",
        "numpy",
        "typer",
        "rich",
        "subprocess",
        "nous_online.heart",
        "nous_online.core.settings",
    )
    program = (
        "import sys; sys.argv = ['nous', 'hook', 'x']; from nous_online.interfaces.cli import main\n"
        "import nous_online.interfaces.hooks.hook\n"
        f"print([each for each in {heavy!r} if each in sys.modules])"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )

    assert ended.stdout == "[]\n"
