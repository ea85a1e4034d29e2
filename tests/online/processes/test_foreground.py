"""Programs in front run together and end together, with all that they started."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from stopwatch import stopwatch

from nous_online.core.errors import Unavailable
from nous_online.processes import Program, Running, run_together, watch_programs
from nous_pipelines.orchestration.instance import HOST, free_port

SERVER = """
import http.server, subprocess, sys
print("hello from", sys.argv[1], flush=True)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[3])); self.end_headers()
    def log_message(self, *_): pass
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=len(sys.argv) > 4)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Page).serve_forever()
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"


class Stop:
    """A wish to stop that a test utters."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.ask, self.is_asked, self.rest = self._asked.set, self._asked.is_set, self._asked.wait


@pytest.fixture
def stop() -> Stop:
    return Stop()


@pytest.fixture
def said() -> list[tuple[str, str]]:
    """What the programs of a test wrote."""
    return []


def server(name: str, *, answer: int = 200, child: str = "") -> Program:
    port = free_port(0)
    command = [sys.executable, "-c", SERVER, name, str(port), str(answer), *([child] if child else [])]
    return Program(name, command, f"http://{HOST}:{port}", "/", Path("/"))


def everyone(running: list[Running]) -> list[psutil.Process]:
    parents = [psutil.Process(each.process.pid) for each in running]
    return [*parents, *(child for parent in parents for child in parent.children(recursive=True))]


def test_says_of_each_program_when_it_answers_and_ends_all_with_their_children(stop: Stop, said: list):
    programs, answered = [server("one"), server("two", child="in a session of its own")], []

    def on_answer(program: Program) -> None:
        answered.append(program.name)
        if len(answered) == len(programs):
            stop.ask()

    with run_together(programs, tell=lambda *line: said.append(line)) as running:
        watch_programs(running, stop=stop, on_answer=on_answer, ready_timeout_s=30)
        family = everyone(running)

    assert sorted(answered) == ["one", "two"]
    assert len(family) == 4
    assert not [member for member in family if is_alive(member)]
    assert set(said) == {("one", "hello from one"), ("two", "hello from two")}


def test_a_program_that_ends_by_itself_is_named_and_takes_the_others_with_it(stop: Stop, said: list):
    quitter = Program(
        "API",
        [sys.executable, "-c", "print('port is gone'); raise SystemExit(3)"],
        "http://127.0.0.1:1",
        "/",
        Path("/"),
    )

    with (
        pytest.raises(Unavailable, match="API ended with exit code 3; its last words: port is gone"),
        run_together([server("one"), quitter], tell=lambda *line: said.append(line)) as running,
    ):
        watch_programs(running, stop=stop, on_answer=lambda _: None, ready_timeout_s=30)

    assert [each.process.returncode is None for each in running] == [False, False]


def test_a_program_that_was_killed_says_by_which_signal_and_leaves_no_orphan(stop: Stop, said: list):
    killed: list[psutil.Process] = []

    def kill(_: Program) -> None:
        killed.extend(everyone(running))
        killed[0].send_signal(signal.SIGKILL)

    with (
        pytest.raises(Unavailable, match="one ended by SIGKILL"),
        run_together([server("one")], tell=lambda *line: said.append(line)) as running,
    ):
        watch_programs(running, stop=stop, on_answer=kill, ready_timeout_s=30)

    assert len(killed) == 2
    assert not [member for member in killed if is_alive(member)]


def test_a_program_that_answers_with_errors_is_not_ready(stop: Stop, said: list):
    with (
        pytest.raises(Unavailable, match=r"one did not answer at http://127.0.0.1:\d+ in 1 s"),
        run_together([server("one", answer=500)], tell=lambda *line: said.append(line)) as running,
    ):
        watch_programs(running, stop=stop, on_answer=lambda _: None, ready_timeout_s=1)


def test_what_is_deaf_to_being_asked_is_ended_all_the_same(stop: Stop, said: list, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nous_online.processes.STOP_TIMEOUT_S", 0.5)

    with run_together(
        [Program("deaf", [sys.executable, "-c", DEAF], "http://127.0.0.1:1", "/", Path("/"))],
        tell=lambda *line: said.append(line),
    ) as running:
        wait_for(lambda: said)
        took_s = stopwatch()

    assert running[0].process.returncode is not None
    assert took_s() < 5


def test_a_port_that_is_taken_is_replaced_by_one_that_is_free():
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        wanted = taken.getsockname()[1]

        assert free_port(wanted) != wanted
    assert free_port(wanted) == wanted


def wait_for(condition) -> None:
    ends_at = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
