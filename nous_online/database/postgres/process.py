"""The processes around one data directory: which is its live postmaster, and which have outlived theirs."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_S = 0.02


@dataclass(frozen=True)
class Postmaster:
    """A live postmaster; its port is None until it listens, and so is the folder of its socket if it has none."""

    pid: int
    port: int | None
    socket_folder: Path | None = None


def postmaster(data: Path) -> Postmaster | None:
    """Return the live postmaster of `data`, None when there is none, whatever postmaster.pid says."""
    try:
        lines = (data / "postmaster.pid").read_text("utf-8").splitlines()
        pid = int(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    if pid <= 0 or not _is_live(pid, data):  # negative: the single-user server that initdb runs
        return None
    port, folder = ([line.strip() for line in lines[3:5]] + ["", ""])[:2]  # lines 4 and 5, by PostgreSQL's pidfile.h
    has_socket = bool(folder) and (Path(folder) / f".s.PGSQL.{port}").exists()
    return Postmaster(pid, int(port) if port.isdigit() else None, Path(folder) if has_socket else None)


def shut_down(data: Path, *, timeout_s: float) -> bool:
    """End the postmaster of `data` as `pg_ctl stop -m fast` would; return whether it ended in `timeout_s` seconds."""
    found, until = postmaster(data), time.monotonic() + timeout_s
    if not found:
        return True
    psutil.Process(found.pid).send_signal(signal.SIGINT)
    while _is_live(found.pid, data):
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True


def clear_dead(data: Path, *, timeout_s: float = 10.0) -> None:
    """Remove postmaster.pid and socket of a dead postmaster, once nothing it left behind touches `data` any more.

    PostgreSQL itself would take the PID of a zombie, or of another program, for a live postmaster. To remove the file
    while a backend lives would let two servers write the same data, hence the killing; call it under the lock.
    """
    until = time.monotonic() + timeout_s
    while leftovers := [process for process in psutil.process_iter() if _touches(process, data)]:
        for process in leftovers:
            _kill(process)
        if time.monotonic() > until:
            raise TimeoutError(f"processes {[process.pid for process in leftovers]} do not die")
        time.sleep(POLL_S)
    for left in (data / "postmaster.pid", *data.glob(".s.PGSQL.*")):
        left.unlink(missing_ok=True)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _is_live(pid: int, data: Path) -> bool:
    try:
        process = psutil.Process(pid)
        return _is_running(process, {"postgres"}) and str(data) in process.cmdline()
    except psutil.Error:
        return False


def _touches(process: psutil.Process, data: Path) -> bool:
    try:
        if not _is_running(process, {"postgres", "initdb", "pg_ctl"}):
            return False
        return str(data) in process.cmdline() or process.cwd() == str(data)
    except psutil.Error:
        return False


def _is_running(process: psutil.Process, names: set[str]) -> bool:
    """A zombie is dead, even where nobody reaps it (a container whose first process is not an init)."""
    return Path(process.name()).stem in names and process.status() != psutil.STATUS_ZOMBIE
