"""Programs that outlive the command which started them: recorded, found again, and ended by their own record only."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from nous_online.processes.children import child_environment

STOP_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.1
CREATE_TIME_SLACK_S = 1.0  # a process id that was given out again belongs to a process made at another time


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
        process = subprocess.Popen(  # noqa: S603 (the command is ours)
            command,
            cwd=home,
            env=child_environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=listen_to_signals,  # noqa: PLW1509 (started from one thread)
        )
    record: dict[str, Any] = {
        "pid": process.pid,
        "created": psutil.Process(process.pid).create_time(),
        "command": list(command),
    }
    (folder / f"{name}.json").write_text(json.dumps(record), "utf-8")
    process.returncode = 0  # it outlives this process on purpose, which Python would otherwise warn about
    return record["pid"]


def listen_to_signals() -> None:
    """Take back that a shell in the background made its children deaf to Ctrl-C: some programs pass that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def running(name: str, *, home: Path) -> psutil.Process | None:
    """Return the process recorded under `name` if that very process still runs."""
    try:
        record = json.loads((home / "background" / f"{name}.json").read_text("utf-8"))
        process = psutil.Process(record["pid"])
        is_same = abs(process.create_time() - record["created"]) < CREATE_TIME_SLACK_S
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return None
    return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None


def stop_all(home: Path) -> list[str]:
    """End every program recorded under `home`, with its children, and return the names of those that were running."""
    stopped: list[str] = []
    for record in sorted((home / "background").glob("*.json")):
        process = running(record.stem, home=home)
        if process is not None:
            end(process)
            stopped.append(record.stem)
        record.unlink(missing_ok=True)
    return stopped


def end(process: psutil.Process) -> None:
    """Ask a process and its children to end, and end those that don't."""
    family = [process, *process.children(recursive=True)]
    for member in family:
        signalled(member, signal.SIGTERM)
    alive = left_of(family)
    for member in alive:
        signalled(member, signal.SIGKILL)
    left_of(alive)


def left_of(family: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Wait for processes to end, and return those that don't; one that ended counts though nobody has reaped it.

    In a container without an init such a one stays in the table for good.
    """
    latest = time.monotonic() + STOP_TIMEOUT_S
    while (left := [each for each in family if is_alive(each)]) and time.monotonic() < latest:
        psutil.wait_procs(left, timeout=LOOK_EVERY_S)
    return left


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process still does anything."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def signalled(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone by now."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
