"""Servers and writers killed without warning while writers write: is every acknowledged write there once?"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from benchmarks.faults_writer import acknowledged
from nous_online.core.errors import NousError, Unavailable
from nous_online.database import postgres
from nous_online.database.connection import prepare
from nous_online.database.postgres_home import postmaster
from nous_online.database.statements import statements
from nous_online.processes import child_environment, python_module

SQL = statements("benchmarks", "faults.sql")
ROOT = Path(__file__).resolve().parents[1]
WRITERS = (("pump", "north"), ("valve", "north"), ("rotor", "south"))
"""Name and agent of each writing process: two write for one agent at once."""
STALLED_S = 120.0
"""Without an acknowledgement for so long the campaign gives up: something does not come back."""
RECOVERY_S = 60.0
POLL_S = 0.02
PROGRESS = 20


@dataclass
class Tally:
    """What a campaign counted."""

    kills: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    restarts: int = 0
    lost: set[str] = field(default_factory=set)
    doubled: int = 0
    incomplete: int = 0
    seconds: float = 0.0


class Writers:
    """The processes that write, each with its ledger."""

    def __init__(self, home: Path, *, is_forgetful: bool) -> None:
        self._home, self._mode = home, ["--forgetful"] if is_forgetful else []
        self._running = {name: self._started(name, agent) for name, agent in WRITERS}

    def acknowledged(self) -> dict[str, int]:
        """Return how many writes of each writer were acknowledged by now."""
        return {name: acknowledged(self._ledger(name)) for name, _ in WRITERS}

    def kill_one(self, number: int) -> None:
        """Kill a writer in the middle of what it does, and start it again."""
        name, agent = WRITERS[number % len(WRITERS)]
        self._running[name].kill()
        self._running[name].wait()
        self._running[name] = self._started(name, agent)

    def require_alive(self) -> None:
        """Raise `Unavailable` where a writer ended by itself: it goes on after whatever a server does."""
        for name, process in self._running.items():
            if process.poll() is not None:
                told = self._log(name).read_text("utf-8")[-2000:]
                raise Unavailable(f"the writer {name} ended by itself with {process.returncode}: {told}")

    def stop(self) -> None:
        """End them all."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()

    def _started(self, name: str, agent: str) -> subprocess.Popen[bytes]:
        arguments = [str(self._home), str(self._ledger(name)), agent, name, *self._mode]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with self._log(name).open("ab") as log:
            return subprocess.Popen(  # noqa: S603 (our own module)
                python_module("benchmarks.faults_writer", *arguments),
                cwd=self._home.parent,
                env=child_environment(PYTHONPATH=path),
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def _ledger(self, name: str) -> Path:
        return self._home.parent / f"{name}.ledger"

    def _log(self, name: str) -> Path:
        return self._home.parent / f"{name}.log"


def campaign(writes: int, kills: int, *, is_forgetful: bool = False, among: Sequence[str] = ()) -> Tally:
    """Kill one thing after another while writers write, and look for every acknowledged write after each.

    Raises `Unavailable` when the writes do not go on afterwards.
    """
    tally, began = Tally(), time.monotonic()
    with home() as place:
        if is_forgetful:
            forget_on_kill(postgres.ensure(place).dsn())
        writers = Writers(place, is_forgetful=is_forgetful)
        try:
            for number in range(kills):
                kind = (among or tuple(KILLS))[number % len(among or KILLS)]
                before = postgres.ensure(place).pid
                wait_for_writes(writers, (number + 1) * writes // (kills + 1))
                KILLS[kind](place, writers, number)
                tally.kills[kind] = tally.kills.get(kind, 0) + 1
                look(place, writers, tally)
                tally.restarts += postgres.ensure(place).pid != before
                found = f"{tally.acknowledged:,} acknowledged, {len(tally.lost)} lost, {tally.doubled} doubled"
                print(f"kill {number + 1} of {kills} ({kind}): {found}", file=sys.stderr, flush=True)
            wait_for_writes(writers, writes)
        finally:
            writers.stop()
        look(place, writers, tally)
    tally.seconds = time.monotonic() - began
    return tally


@contextmanager
def home() -> Iterator[Path]:
    """Yield a home with a server and an empty memory, on the disk; all of it goes afterwards, also after SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="nous-faults-") as folder:
        place = Path(folder) / "home"
        try:
            prepare(postgres.ensure(place).dsn())
            yield place
        finally:
            with suppress(NousError):
                postgres.stop(place)
            shutil.rmtree(postgres.data_directory(place), ignore_errors=True)  # root's data lie outside the folder


def forget_on_kill(url: str) -> None:
    """Have a server write its log seldom, so that a commit that did not wait for it is not on the disk soon after."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in ("keep_log_in_memory", "flush_log_seldom", "reload"):
            connection.execute(SQL[statement])


def wait_for_writes(writers: Writers, wanted: int) -> None:
    """Wait until so many writes were acknowledged."""
    latest, until = -1, time.monotonic() + STALLED_S
    while (count := sum(writers.acknowledged().values())) < wanted:
        writers.require_alive()
        if count > latest:
            latest, until = count, time.monotonic() + STALLED_S
        if time.monotonic() > until:
            raise Unavailable(f"no write was acknowledged for {STALLED_S:g} s, after {count:,}; see the server's log")
        time.sleep(POLL_S)


def look(place: Path, writers: Writers, tally: Tally) -> None:
    """Compare what was acknowledged by now with what is there; what is lost once stays counted."""
    until = time.monotonic() + RECOVERY_S
    told = writers.acknowledged()
    while True:
        try:
            with psycopg.connect(postgres.ensure(place).dsn()) as connection:
                said = dict(connection.execute(SQL["count_said"]).fetchall())
                (incomplete,) = connection.execute(SQL["count_incomplete"]).fetchone() or (0,)
                (copies,) = connection.execute(SQL["count_doubled"]).fetchone() or (0,)
            break
        except psycopg.OperationalError as error:  # it is recovering, or was killed a moment ago
            if time.monotonic() > until:
                raise Unavailable(f"the server did not come back within {RECOVERY_S:g} s: {error}") from error
            time.sleep(POLL_S)
    tally.acknowledged = sum(told.values())
    tally.lost |= {f"{name}/{n}" for name, count in told.items() for n in range(count)} - said.keys()
    tally.doubled = max(tally.doubled, copies + sum(count - 1 for count in said.values()))
    tally.incomplete = max(tally.incomplete, incomplete)


def progress(what: str, done: int, count: int, step: int, found: str) -> None:
    """Say on standard error, twenty times in all, how far it is; `step` was done since the last call."""
    if done * PROGRESS // count > (done - step) * PROGRESS // count:
        print(f"{what}: {done:,} of {count:,}, {found}", file=sys.stderr, flush=True)


# --- kills ---


def master_of(place: Path) -> psutil.Process:
    """Return the postmaster as its pid file names it, at once: a control that asked first would lose nothing."""
    found = postmaster(postgres.data_directory(place))
    return psutil.Process(found.pid if found else postgres.ensure(place).pid)


def kill_postmaster(place: Path, writers: Writers, number: int) -> None:
    """Kill the postmaster alone: its backends find out by themselves."""
    master_of(place).kill()


def kill_backend(place: Path, writers: Writers, number: int) -> None:
    """Kill a backend at work: the postmaster ends all others and recovers."""
    children = master_of(place).children()
    with suppress(psutil.NoSuchProcess):
        backends = [child for child in children if "nous_login" in " ".join(child.cmdline())]
        random.Random(number).choice(backends or children).kill()


def kill_writer(place: Path, writers: Writers, number: int) -> None:
    """Kill a process that writes; it is started again, and says again what was not acknowledged."""
    writers.kill_one(number)


def kill_server(place: Path, writers: Writers, number: int) -> None:
    """Kill all processes of the server at one moment: what lay in its memory is gone."""
    master = master_of(place)
    master.suspend()  # so that it starts nothing new
    processes = [*master.children(recursive=True), master]
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                act(process)


KILLS: dict[str, Callable[[Path, Writers, int], None]] = {
    "postmaster": kill_postmaster,
    "backend": kill_backend,
    "writer": kill_writer,
    "server": kill_server,
}
"""What is killed, in turn."""
