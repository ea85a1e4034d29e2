"""The programs we start: what each is told of ours, and how it is watched and ended.

Some outlive the command which started them: they are recorded, found again, and ended by their own record only. Others
run together with the command and end with it: all of them, and what they began.
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
from typing import Any, Protocol
from urllib.parse import urlsplit

import psutil

from nous_online.core.errors import Unavailable
from nous_online.core.files import default_home, make_directory

FOLDERS = ("NOUS_HOME", "NOUS_PRICES", "DAGSTER_HOME")
"""Variables that name a path, which a program in another folder would misread."""
STOP_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.2
ANSWER_S = 2.0
CREATE_TIME_SLACK_S = 1.0  # a process id that was given out again belongs to a process made at another time
WARNINGS_OFF = {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}


# --- what a child is told: it imports nothing, and reads nothing, from the folder somebody happens to stand in ---


def python_module(module: str, *arguments: str) -> list[str]:
    """Return how to run a module; `-P` keeps Python from looking for it, and what it imports, in the current folder."""
    return [sys.executable, "-P", "-m", module, *arguments]


def python_program(program: str, *arguments: str) -> list[str]:
    """Return how to run a program given as text, as little exposed to the current folder as a module."""
    return [sys.executable, "-P", "-c", program, *arguments]


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: ours and `more`, with every path as it is meant from our current folder.

    PYTHONSAFEPATH says to what the child starts in turn what `-P` says to the child. An empty entry of PYTHONPATH
    means the current folder, so it goes.
    """
    given = {**os.environ, **more, "PYTHONSAFEPATH": "1"}
    absolute = {name: str(Path(given[name]).expanduser().absolute()) for name in FOLDERS if given.get(name)}
    entries = [str(Path(entry).absolute()) for entry in given.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {**given, **absolute, "PYTHONPATH": os.pathsep.join(entries)}


def child_folder() -> Path:
    """Return the folder a child works in: the home of Nous, made if need be, where no stranger puts a `.env`.

    Raises `Unavailable` when it can't be made.
    """
    from nous_online.core.settings import settings  # takes as long to load as all else that a child is told

    home = (settings().home or default_home()).expanduser().absolute()
    make_directory(home)
    return home


def spawn(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], output: Any, errors: Any
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, where Ctrl-C reaches the command alone and not its programs too."""
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
    """Take back that a shell in the background made its children deaf to Ctrl-C: some programs pass that on."""
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
    created = psutil.Process(process.pid).create_time()
    record = {"pid": process.pid, "created": created, "command": list(command)}
    (folder / f"{name}.json").write_text(json.dumps(record), "utf-8")
    process.returncode = 0  # it outlives this process on purpose, which Python would otherwise warn about
    return process.pid


def running(name: str, *, home: Path) -> psutil.Process | None:
    """Return the process recorded under `name` if that very process still runs."""
    try:
        record = json.loads((home / "background" / f"{name}.json").read_text("utf-8"))
        process = psutil.Process(record["pid"])
        is_same = abs(process.create_time() - record["created"]) < CREATE_TIME_SLACK_S
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return None
    return process if is_same and is_alive(process) else None


def stop_all(home: Path) -> list[str]:
    """End every program recorded under `home`, with its children, and return the names of those that were running."""
    stopped: list[str] = []
    for record in sorted((home / "background").glob("*.json")):
        process = running(record.stem, home=home)
        if process is not None:
            end_processes({process, *descendants(process)})
            stopped.append(record.stem)
        record.unlink(missing_ok=True)
    return stopped


# --- in front: programs that end with the command ---


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

    def asked(self) -> int | None:
        """Ask for the probe and return the status of the answer; None where nothing answers in time.

        A program that starts is asked five times a second: httpx takes 60 ms to read certificates for each question.
        """
        from http.client import HTTPConnection, HTTPException  # only what watches over programs needs it

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
        """Raise `Unavailable` when it has ended, with how it ended and what it said last."""
        code = self.process.poll()
        if code is None:
            return
        how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        said = f"; its last words: {self.last_line[0]}" if self.last_line else ""
        raise Unavailable(f"{self.program.name} ended {how}{said}")

    def answers(self) -> bool:
        """Tell whether it answers where it should; an error of its own is no answer."""
        status = self.program.asked()
        return status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR

    def pass_on(self, tell: Callable[[str, str], None]) -> None:
        """Pass on each line it writes, until it and all that write for it have ended."""
        assert self.process.stdout is not None  # noqa: S101 (it was started with a pipe)
        with self.process.stdout as output:
            for line in output:
                text = line.decode("utf-8", "replace").rstrip()
                self.last_line.extend([text] if text else [])
                tell(self.program.name, text)


@contextmanager
def run_together(programs: Sequence[Program], *, tell: Callable[[str, str], None]) -> Generator[list[Running]]:
    """Start programs, each line of theirs going to `tell` with their name, and end all of them after the block.

    Ending them, another Ctrl-C ends at once what has not ended yet.
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
    """Watch over programs until somebody asks to stop, and say of each when it answers.

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
    """Return every process in the sessions of these programs and below them, also where what started it has gone."""
    sessions = {each.process.pid for each in started}
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process.pid) in sessions:
                found.add(process)
    return found.union(*map(descendants, found))


# --- ending ---


def end_processes(members: Collection[psutil.Process], *, at_once: bool = False) -> None:
    """Ask processes to end, wait for that, and end those that don't; `at_once` asks none."""
    if not at_once:
        for member in members:
            send_signal(member, signal.SIGTERM)
        wait_for(members)
    alive = [each for each in members if is_alive(each)]
    for member in alive:
        send_signal(member, signal.SIGKILL)
    wait_for(alive)


def wait_for(members: Collection[psutil.Process]) -> None:
    """Wait for processes to end, up to a limit; one that ended counts though nobody has reaped it.

    In a container without an init such a one stays in the table for good.
    """
    latest = time.monotonic() + STOP_TIMEOUT_S
    while (left := [each for each in members if is_alive(each)]) and time.monotonic() < latest:
        psutil.wait_procs(left, timeout=LOOK_EVERY_S / 2)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process still does anything."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return what a process started, and what that started."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def send_signal(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone by now."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
