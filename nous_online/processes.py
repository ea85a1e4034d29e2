"""Child processes: their environment, and how they are started, watched and ended.

Background programs outlive the command that started them; they are recorded in files, and found and ended by these.
Foreground programs run together with the command and end with it, with all their children.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import psutil

from nous_online.core.errors import Unavailable
from nous_online.core.files import default_home, make_directory

FOLDERS = ("NOUS_HOME", "NOUS_PRICES", "DAGSTER_HOME")
"""Variables that hold a path, which would mean another place in another working directory."""
STOP_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.2
ANSWER_S = 2.0
CREATE_TIME_SLACK_S = 1.0  # a process with the recorded id but another creation time is a different one: ids are reused
WARNINGS_OFF = {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}


# --- the environment of a child: it imports and reads nothing from the current directory ---


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module; `-P` keeps Python from importing from the current directory."""
    return [sys.executable, "-P", "-m", module, *arguments]


def python_program(program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program given as text; `-P` as for a module."""
    return [sys.executable, "-P", "-c", program, *arguments]


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: ours and `more`, with absolute paths."""
    # PYTHONSAFEPATH does for the child's own children what `-P` does for the child. An empty entry of PYTHONPATH means
    # the current directory, so it is left out.
    given = {**os.environ, **more, "PYTHONSAFEPATH": "1"}
    absolute = {name: str(Path(given[name]).expanduser().absolute()) for name in FOLDERS if given.get(name)}
    entries = [str(Path(entry).absolute()) for entry in given.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {**given, **absolute, "PYTHONPATH": os.pathsep.join(entries)}


def child_folder() -> Path:
    """Return the working directory of children: the home of Nous, where nobody else can put a `.env`.

    Raises `Unavailable` when it can't be created.
    """
    from nous_online.core.settings import settings  # takes as long to import as the rest of this module

    home = (settings().home or default_home()).expanduser().absolute()
    make_directory(home)
    return home


def spawn(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], output: Any, errors: Any
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C reaches the command only, which then ends the program."""
    return subprocess.Popen(  # noqa: S603 (the command is ours)
        command,
        cwd=folder,
        env=child_environment(**environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        preexec_fn=listen_to_signals,  # noqa: PLW1509 (started from one thread)
    )


def listen_to_signals() -> None:
    """Reset SIGINT and SIGTERM: a shell ignores SIGINT for background jobs, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


# --- in the background: programs that outlive the command ---


def start(name: str, command: Sequence[str], *, home: Path, environment: Mapping[str, str]) -> int:
    """Start a program in the background, its output going to `home`/background/`name`.log, and return its process id.

    One that is already running under this name is left running.
    """
    folder = home / "background"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = running(name, home=home)
    if known is not None:
        return known.pid
    with (folder / f"{name}.log").open("ab") as log:
        process = spawn(command, folder=home, environment=environment, output=log, errors=log)
    record(name, process.pid, command, folder=folder)
    process.returncode = 0  # it outlives this process on purpose, which Python would otherwise warn about
    return process.pid


def record(name: str, pid: int, command: Sequence[str], *, folder: Path) -> None:
    """Write down the process of a background program, by which it is found and ended."""
    known = {"pid": pid, "created": psutil.Process(pid).create_time(), "command": list(command)}
    (folder / f"{name}.json").write_text(json.dumps(known), "utf-8")


def running(name: str, *, home: Path) -> psutil.Process | None:
    """Return the process recorded under `name` if that very process still runs."""
    try:
        known = json.loads((home / "background" / f"{name}.json").read_text("utf-8"))
        process = psutil.Process(known["pid"])
        is_same = abs(process.create_time() - known["created"]) < CREATE_TIME_SLACK_S
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return None
    return process if is_same and is_alive(process) else None


def stop_all(home: Path) -> list[str]:
    """End every program recorded under `home`, with its children, and return the names of those that were running."""
    stopped: list[str] = []
    for path in sorted((home / "background").glob("*.json")):
        process = running(path.stem, home=home)
        if process is not None:
            end_processes({process, *descendants(process)})
            stopped.append(path.stem)
        path.unlink(missing_ok=True)
    return stopped


# --- in front: programs that end with the command ---


class ProcessStop:
    """Remembers the first signal to stop; a second one has its default effect at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._requested = threading.Event()

    def handle(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number
        self._requested.set()
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    def is_asked(self) -> bool:
        return self._requested.is_set()

    def rest(self, seconds: float) -> None:
        self._requested.wait(seconds)


@dataclass(frozen=True)
class Program:
    """A program to run: its name, how it starts, and where it answers once it is there."""

    name: str
    command: Sequence[str]
    address: str
    probe: str
    """The path below `address` that is requested to see whether it answers."""
    folder: Path
    """Its working directory: never the current one, whose files it would read."""
    token: str = ""
    """The key of its callers, passed in the environment: every user of a machine sees the arguments of programs."""
    entrance: str = ""
    """The URL a person opens, where it is not `address`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables added to ours for it."""
        return {**WARNINGS_OFF, **({"NOUS_TOKEN": self.token} if self.token else {})}

    def asked(self) -> int | None:
        """Request the probe and return the HTTP status; None where nothing answers in time."""
        # Not httpx: a starting program is probed five times a second, and httpx reads certificates for 60 ms each time.
        from http.client import HTTPConnection, HTTPException  # imported only where programs are watched

        place = urlsplit(self.address)
        with closing(HTTPConnection(place.hostname or "", place.port, timeout=ANSWER_S)) as connection:
            try:
                connection.request("GET", self.probe)
                return connection.getresponse().status
            except (OSError, HTTPException):
                return None


@dataclass(frozen=True)
class Running:
    """A program that was started, and the last line it wrote."""

    program: Program
    process: subprocess.Popen[bytes]
    last_line: deque[str] = field(default_factory=lambda: deque(maxlen=1))

    def require_alive(self) -> None:
        """Raise `Unavailable` when it has ended, with its exit code or signal and its last line."""
        code = self.process.poll()
        if code is None:
            return
        how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        said = f"; its last words: {self.last_line[0]}" if self.last_line else ""
        raise Unavailable(f"{self.program.name} ended {how}{said}")

    def answers(self) -> bool:
        """Tell whether it answers its probe with a status below 500."""
        status = self.program.asked()
        return status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR

    def pass_on(self, tell: Callable[[str, str], None]) -> None:
        """Call `tell` with each line of its output, until it and all its children have closed the pipe."""
        assert self.process.stdout is not None  # noqa: S101 (it was started with a pipe)
        with self.process.stdout as output:
            for line in output:
                text = line.decode("utf-8", "replace").rstrip()
                self.last_line.extend([text] if text else [])
                tell(self.program.name, text)


@contextmanager
def run_together(programs: Sequence[Program], *, tell: Callable[[str, str], None]) -> Generator[list[Running]]:
    """Start programs, pass each line of their output to `tell` with their name, and end all after the block.

    Another Ctrl-C while they are ending kills those that are left.
    """
    started: list[Running] = []
    try:
        for each in programs:
            pipe, same = subprocess.PIPE, subprocess.STDOUT
            process = spawn(each.command, folder=each.folder, environment=each.environment, output=pipe, errors=same)
            started.append(Running(each, process))
            threading.Thread(target=started[-1].pass_on, args=(tell,), daemon=True).start()
        yield started
    finally:
        try:
            end_processes(session_processes(started))
        finally:
            end_processes(session_processes(started), at_once=True)  # also what was begun meanwhile
            for each in started:
                each.process.wait()


def watch_programs(
    started: Sequence[Running], *, stop: ProcessStop, on_answer: Callable[[Program], None], ready_timeout_s: float
) -> None:
    """Watch programs until `stop` is requested, and call `on_answer` for each when it first answers.

    Raises `Unavailable` for the first that ends by itself, or that does not answer in `ready_timeout_s` seconds.
    """
    silent, ends_at = list(started), time.monotonic() + ready_timeout_s
    while not stop.is_asked():
        for each in started:
            each.require_alive()
        for each in [one for one in silent if one.answers()]:
            silent.remove(each)
            on_answer(each.program)
        if silent and time.monotonic() > ends_at:
            first = silent[0].program
            raise Unavailable(f"{first.name} did not answer at {first.address} in {ready_timeout_s:.0f} s")
        stop.rest(LOOK_EVERY_S)


def session_processes(started: Sequence[Running]) -> set[psutil.Process]:
    """Return every process in the sessions of these programs and their descendants, also those whose parent ended."""
    sessions = {each.process.pid for each in started}
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process.pid) in sessions:
                found.add(process)
    return found.union(*map(descendants, found))


# --- ending ---


def end_processes(members: Collection[psutil.Process], *, at_once: bool = False) -> None:
    """Send SIGTERM to processes, wait, and kill those that are left; `at_once` kills without asking."""
    if not at_once:
        for member in members:
            send_signal(member, signal.SIGTERM)
        wait_for(members)
    alive = [each for each in members if is_alive(each)]
    for member in alive:
        send_signal(member, signal.SIGKILL)
    wait_for(alive)


def wait_for(members: Collection[psutil.Process]) -> None:
    """Wait up to `STOP_TIMEOUT_S` for processes to end; a zombie counts as ended."""
    # In a container without an init a zombie is never reaped, so psutil alone would wait for it in vain.
    latest = time.monotonic() + STOP_TIMEOUT_S
    while (left := [each for each in members if is_alive(each)]) and time.monotonic() < latest:
        psutil.wait_procs(left, timeout=LOOK_EVERY_S / 2)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process exists and is not a zombie."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return the descendants of a process; none when it is gone."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def send_signal(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone by now."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
