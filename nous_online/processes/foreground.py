"""Programs that run together with the command which started them, and end with it: all of them, and what they began."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import httpx
import psutil

from nous_online.core.errors import Unavailable
from nous_online.processes.background import STOP_TIMEOUT_S, listen_to_signals, signalled
from nous_online.processes.children import child_environment

LOOK_EVERY_S = 0.2
ANSWER_S = 2.0
WARNINGS_OFF = {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}


class ProcessStop(Protocol):
    """Whether somebody asked to stop."""

    def is_asked(self) -> bool: ...
    def rest(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Program:
    """A program to run: its name, how it starts, and where it answers once it is there."""

    name: str
    command: Sequence[str]
    address: str
    probe: str
    """The path below `address` that is asked."""
    folder: Path
    """Where it works: never the current folder, whose files it would read."""
    token: str = ""
    """What lets callers in. It goes by the environment: every user of a machine sees the arguments of programs."""
    entrance: str = ""
    """What a person opens, where that is more than `address`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables it is started with, besides ours."""
        return {**WARNINGS_OFF, **({"NOUS_TOKEN": self.token} if self.token else {})}


@dataclass(frozen=True)
class Running:
    """A program that was started, and the last line it wrote."""

    program: Program
    process: subprocess.Popen[bytes]
    last_line: deque[str] = field(default_factory=lambda: deque(maxlen=1))

    def require_alive(self) -> None:
        """Raise `Unavailable` when it has ended, with how it ended and what it said last."""
        code = self.process.poll()
        if code is None:
            return
        how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        said = f"; its last words: {self.last_line[0]}" if self.last_line else ""
        raise Unavailable(f"{self.program.name} ended {how}{said}")

    def answers(self) -> bool:
        """Tell whether it answers where it should; an error of its own is no answer."""
        try:
            answer = httpx.get(f"{self.program.address}{self.program.probe}", timeout=ANSWER_S)
        except httpx.TransportError:
            return False
        return not answer.is_server_error


@contextmanager
def together(programs: Sequence[Program], *, tell: Callable[[str, str], None]) -> Generator[list[Running]]:
    """Start programs, each line of theirs going to `tell` with their name, and end all of them after the block."""
    running: list[Running] = []
    try:
        for program in programs:
            running.append(started(program))
            threading.Thread(target=pass_on, args=(running[-1], tell), daemon=True).start()
        yield running
    finally:
        end_all(running)


def started(program: Program) -> Running:
    """Start a program in a session of its own, where Ctrl-C reaches the command alone and not its programs too."""
    process = subprocess.Popen(  # noqa: S603 (the command is ours)
        program.command,
        cwd=program.folder,
        env=child_environment(**program.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=listen_to_signals,  # noqa: PLW1509 (started from one thread)
    )
    return Running(program, process)


def pass_on(running: Running, tell: Callable[[str, str], None]) -> None:
    """Pass on each line a program writes, until it and all that write for it have ended."""
    output = running.process.stdout
    assert output is not None  # noqa: S101 (it was started with a pipe)
    with output:
        for line in output:
            text = line.decode("utf-8", "replace").rstrip()
            running.last_line.extend([text] if text else [])
            tell(running.program.name, text)


def attend(
    running: Sequence[Running], *, stop: ProcessStop, on_answer: Callable[[Program], None], ready_timeout_s: float
) -> None:
    """Watch over programs until somebody asks to stop, and say of each when it answers.

    Raises `Unavailable` for the first that ends by itself, or that does not answer in `ready_timeout_s` seconds.
    """
    silent, ends_at = list(running), time.monotonic() + ready_timeout_s
    while not stop.is_asked():
        for each in running:
            each.require_alive()
        for each in [one for one in silent if one.answers()]:
            silent.remove(each)
            on_answer(each.program)
        if silent and time.monotonic() > ends_at:
            first = silent[0].program
            raise Unavailable(f"{first.name} did not answer at {first.address} in {ready_timeout_s:.0f} s")
        stop.rest(LOOK_EVERY_S)


def end_all(running: Sequence[Running]) -> None:
    """Ask all programs and what they started to end, and end what doesn't, or at once after another Ctrl-C."""
    members = list(family(running))
    for member in members:
        signalled(member, signal.SIGTERM)
    try:
        psutil.wait_procs(members, timeout=STOP_TIMEOUT_S)
    finally:
        members = list(family(running))
        for member in members:
            signalled(member, signal.SIGKILL)
        psutil.wait_procs(members, timeout=STOP_TIMEOUT_S)
        for each in running:
            each.process.wait()


def family(running: Sequence[Running]) -> Iterator[psutil.Process]:
    """Yield every process in the sessions of these programs and below them, also where what started it has gone."""
    sessions = {each.process.pid for each in running}
    found = {process for process in psutil.process_iter() if session_of(process.pid) in sessions}
    for process in list(found):
        found.update(below(process))
    yield from found


def session_of(pid: int) -> int | None:
    """Return the session of a process, None when it has gone."""
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def below(process: psutil.Process) -> list[psutil.Process]:
    """Return what a process started, and what that started."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
