"""Programs in the background are found again, and only those that were started here are ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from stopwatch import stopwatch

from nous_online import processes

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def home(tmp_path: Path):
    yield tmp_path
    processes.stop_all(tmp_path)


def test_starts_a_program_once(home: Path):
    first = processes.start("sleeper", SLEEPER, home=home, environment={})

    assert processes.start("sleeper", SLEEPER, home=home, environment={}) == first


def test_stops_a_program_with_its_children(home: Path):
    parent = [sys.executable, "-c", f"import subprocess; subprocess.run({SLEEPER!r})"]
    process = psutil.Process(processes.start("parent", parent, home=home, environment={}))
    child = waited_for_child(process)

    assert processes.stop_all(home) == ["parent"]

    assert not is_alive(process)
    assert not is_alive(child)


def test_stops_a_program_started_from_a_shell_that_ignores_interrupts(home: Path):
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "from pathlib import Path; from nous_online import processes;"
        f"print(processes.start('sleeper', {SLEEPER!r}, home=Path({str(home)!r}), environment={{}}))"
    )
    pid = int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    took_s = stopwatch()

    processes.stop_all(home)

    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert took_s() < processes.STOP_TIMEOUT_S


def test_never_touches_a_process_that_got_the_same_id(home: Path):
    folder = home / "background"
    folder.mkdir()
    record = {"pid": os.getpid(), "created": psutil.Process().create_time() - 1000, "command": ["gone"]}
    (folder / "gone.json").write_text(json.dumps(record))

    assert processes.stop_all(home) == []


def test_a_damaged_record_is_no_running_program(home: Path):
    (home / "background").mkdir()
    (home / "background" / "broken.json").write_text("{")

    assert processes.running("broken", home=home) is None
    assert processes.stop_all(home) == []


def waited_for_child(process: psutil.Process) -> psutil.Process:
    for _ in range(200):
        children = process.children()
        if children:
            return children[0]
        time.sleep(0.05)
    raise AssertionError("the program started no child")


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
