"""Nights for the HTTP interface: each runs as a program of its own, so that the interface stays small and quick."""

from __future__ import annotations

import json
import secrets
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import filelock
import psutil

from nous_online import processes
from nous_online.core.errors import (
    Conflict,
    DeadlineExceeded,
    InvalidInput,
    NotFound,
    NousError,
    Refused,
    Unavailable,
    Unsupported,
)
from nous_online.interfaces.api.server_routes import Planned, RunState, Started, UndoneNights, planned, started
from nous_online.processes import child_environment, child_folder, python_module
from nous_pipelines.nights import FIRST_NIGHT, last_night
from nous_pipelines.orchestration.instance import HOST, NAME, PORT, home_folder, port_of

PREFIX = "night-"
"""A night's files are called by its date and its run: what it left tells of both, however it ended."""
STARTING_S = 10.0
"""How long a start waits for another one, seconds; a program is started in milliseconds."""
KINDS: Mapping[str, type[NousError]] = {
    kind.__name__: kind for kind in (InvalidInput, NotFound, Conflict, Refused, Unsupported)
}
"""What a night's program may tell of that a caller would do something about."""
LAST_WORDS = 300
"""Characters of what a program said last, where it ended without a result."""


class NightPrograms:
    """Runs nights with `nous night`; what they print is kept beside other programs of the background."""

    def plan(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Planned:
        """Return what a night would do; raise `Conflict` for one that can't be run, and what `nous night` raises."""
        found = printed(command_of("night", runnable(night), agent_id, "--dry-run"), url, seconds=seconds)
        outcome: Mapping[str, Any] = found["nights"][0]
        return planned(
            date.fromisoformat(outcome["night"]),
            outcome["plan_hash"] or "",
            outcome["counts"] or {},
            is_success=not outcome["is_stopped"],
            **said_of(outcome),
        )

    def start(self, url: str, *, night: date | None, agent_id: str | None) -> Started:
        """Start a night in the background; raise `Conflict` for one that can't be run, or while another is."""
        wanted, home = runnable(night), home_folder()
        with one_at_a_time(home):
            under_way = [name for name in names(home) if processes.running(name, home=home)]
            if under_way:
                raise Conflict(f"run {under_way[0].rpartition('-')[2]} is under way; wait for it to end")
            run = secrets.token_hex(6)
            launch(f"{PREFIX}{wanted}-{run}", command_of("night", wanted, agent_id), url, home=home)
        return started(run, wanted, "running", interface_address(home))

    def state(self, run: str) -> Started:
        """Return how a night started here stands; raise `NotFound` for one that was not."""
        home = home_folder()
        log = next((path for path in logs(home) if path.stem.rpartition("-")[2] == run), None)
        if log is None:
            raise NotFound(f"no run {run!r} was started here; POST /consolidate starts one")
        night = date.fromisoformat(log.stem.removeprefix(PREFIX).rpartition("-")[0])
        if processes.running(log.stem, home=home):
            return started(run, night, "running", interface_address(home))
        return ended(run, night, log.read_text("utf-8", "replace"), interface_address(home))

    def report(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Mapping[str, Any]:
        """Return the report of a night, as `nous report --json` tells it."""
        wanted = night or last_night(datetime.now(UTC))
        if not FIRST_NIGHT <= wanted <= datetime.now(UTC).date():
            raise NotFound(f"night {wanted} has not run here; POST /consolidate runs a night")
        return printed(command_of("report", wanted, agent_id), url, seconds=seconds)

    def undo(
        self,
        url: str,
        *,
        nights: tuple[date, date],
        kind: str | None,
        agent_id: str | None,
        reason: str,
        seconds: float,
    ) -> UndoneNights:
        """Take back nights with `nous undo`; what was taken back when time runs out stays so."""
        first, last = nights
        options = [f"--reason={reason}", *([] if kind is None else [f"--kind={kind}"])]
        whose = [] if agent_id is None else [f"--agent={agent_id}"]
        range_ = (f"--from={first}", f"--to={last}")
        command = python_module("nous_online.interfaces.cli", "undo", "--json", *range_, *whose, *options)
        found = printed(command, url, seconds=seconds)
        return UndoneNights({each["night"]: len(each["undone"]) for each in found["nights"]}, found["refused"])


def said_of(outcome: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return what stopped a night, or else whom it left out."""
    said = tuple(outcome["failures"])
    return {"failures": said, "notices": ()} if outcome["is_stopped"] else {"failures": (), "notices": said}


def runnable(night: date | None) -> date:
    """Return the night to be run; raise `Conflict` for one before the first, or that has not begun."""
    now = datetime.now(UTC)
    wanted = night or last_night(now)
    if not FIRST_NIGHT <= wanted <= now.date():
        raise Conflict(f"night {wanted} can't be run: the first one is {FIRST_NIGHT}, the latest {now.date()}")
    return wanted


def command_of(verb: str, night: date, agent_id: str | None, *options: str) -> list[str]:
    """Return how a night's program is started."""
    whose = [] if agent_id is None else [f"--agent={agent_id}"]
    return python_module("nous_online.interfaces.cli", verb, "--json", "--date", night.isoformat(), *whose, *options)


def environment(url: str) -> dict[str, str]:
    """Return the environment of a program that works on the same database."""
    return child_environment(NOUS_DATABASE_URL=url, PYTHONWARNINGS="ignore")


def printed(command: list[str], url: str, *, seconds: float) -> Mapping[str, Any]:
    """Return the JSON object a program printed, or raise the error it told."""
    try:
        ended = subprocess.run(  # noqa: S603 (the command is ours)
            command,
            cwd=child_folder(),
            env=environment(url),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeadlineExceeded(f"the night was not done within {seconds:.0f} s and was ended; try again") from error
    found = last_object(ended.stdout)
    if found is None:
        raise Unavailable(f"the night ended without a result: {ended.stderr.strip()[-LAST_WORDS:]}")
    if "error" in found:
        raise told_error(found["error"])
    return found


def told_error(told: Mapping[str, str]) -> NousError:
    """Return the error a program of ours told, of the same kind."""
    return KINDS.get(told["kind"], Unavailable)(told["message"])


def last_object(text: str) -> Mapping[str, Any] | None:
    """Return the last line of a text that is a JSON object, None when there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return None


def launch(name: str, command: list[str], url: str, *, home: Path) -> None:
    """Start a program that outlives this one, recorded so that `nous down` ends it.

    Raises `Unavailable` when the home can't be written to.
    """
    folder = home / "background"
    try:
        with (folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 (the command is ours)
                command,
                cwd=home,
                env=environment(url),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        record = {"pid": process.pid, "created": psutil.Process(process.pid).create_time(), "command": command}
        (folder / f"{name}.json").write_text(json.dumps(record), "utf-8")
    except OSError as error:
        raise Unavailable(f"{folder} can't be written to ({error}); see NOUS_HOME") from error
    threading.Thread(target=process.wait, name=name, daemon=True).start()  # else it would stay a zombie


@contextmanager
def one_at_a_time(home: Path) -> Generator[None]:
    """Keep other threads and processes from starting a night meanwhile.

    Raises `Conflict` while another one is being started, and `Unavailable` when the home can't be written to.
    """
    folder = home / "background"
    lock = filelock.FileLock(folder / ".nights.lock", timeout=STARTING_S)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout as error:
        raise Conflict("another night is being started; ask again") from error
    except OSError as error:
        raise Unavailable(f"{folder} can't be written to ({error}); see NOUS_HOME") from error
    try:
        yield
    finally:
        lock.release()


def names(home: Path) -> list[str]:
    """Return the names of the nights that were started here, as far as `nous down` did not end them."""
    return sorted(path.stem for path in (home / "background").glob(f"{PREFIX}*.json"))


def logs(home: Path) -> list[Path]:
    """Return what the nights printed that were started here."""
    return sorted((home / "background").glob(f"{PREFIX}????-??-??-*.log"))


def ended(run: str, night: date, text: str, interface: str) -> Started:
    """Return how a night ended, from what its program printed."""
    found = last_object(text)
    if found is None or "nights" not in found:
        said = found["error"]["message"] if found else text.strip()[-LAST_WORDS:] or "it said nothing"
        return started(run, night, "failed", interface, failures=(str(said),))
    outcome: Mapping[str, Any] = found["nights"][0]
    state: RunState = "failed" if outcome["is_stopped"] else "succeeded"
    return started(run, night, state, interface, counts=outcome["counts"], **said_of(outcome))


def interface_address(home: Path) -> str:
    """Return where the Dagster interface shows runs, when it is up."""
    known = processes.running(NAME, home=home)
    return f"http://{HOST}:{PORT if known is None else port_of(known.cmdline())}/runs"
