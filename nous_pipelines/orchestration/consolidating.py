"""Nights for the REST API, each a process of its own, so that the API loads neither Dagster nor models for them."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import filelock

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
from nous_online.interfaces.api.server_routes import Planned, RunState, Started, UndoneNights, planned
from nous_online.processes import child_environment, child_folder, python_module
from nous_pipelines.nights import FIRST_NIGHT, last_night
from nous_pipelines.orchestration.instance import HOST, NAME, PORT, home_folder, port_of

PREFIX = "night-"
"""Files of a night are named `night-DATE-RUN.json` and `.log`, so that its state is known however it ended."""
START_WAIT_S = 10.0  # for another start in progress; a process is started in milliseconds
KINDS: Mapping[str, type[NousError]] = {
    kind.__name__: kind for kind in (InvalidInput, NotFound, Conflict, Refused, Unsupported)
}
"""The errors of a night's process that a caller can act on; all others become `Unavailable`."""
SHOWN_CHARACTERS = 300
"""How much of the end of its output is shown when a process ends without a result."""


class NightPrograms:
    """Runs nights with `nous night`; their logs lie beside those of other background programs."""

    def plan(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Planned:
        """Return what a night would do; raise `Conflict` if it can't be run, and the errors of `nous night`."""
        result = run_command(night_command("night", runnable(night), agent_id, "--dry-run"), url, seconds=seconds)
        return planned_night(result["nights"][0])

    def start(self, url: str, *, night: date | None, agent_id: str | None) -> Started:
        """Start a night in the background; raise `Conflict` if it can't be run, or while another one runs."""
        wanted, home = runnable(night), home_folder()
        with start_lock(home):
            # `nous down` deletes the records of the nights it ends.
            names = sorted(path.stem for path in (home / "background").glob(f"{PREFIX}*.json"))
            active = [name for name in names if processes.running(name, home=home)]
            if active:
                raise Conflict(f"run {active[0].rpartition('-')[2]} is under way; wait for it to end")
            run = secrets.token_hex(6)
            launch(f"{PREFIX}{wanted}-{run}", night_command("night", wanted, agent_id), url, home=home)
        return Started(run, wanted, "running", interface_address(home))

    def state(self, run: str) -> Started:
        """Return the state of a night that was started here; raise `NotFound` for an unknown run."""
        home = home_folder()
        logs = sorted((home / "background").glob(f"{PREFIX}????-??-??-*.log"))
        log = next((path for path in logs if path.stem.rpartition("-")[2] == run), None)
        if log is None:
            raise NotFound(f"no run {run!r} was started here; POST /consolidate starts one")
        night = date.fromisoformat(log.stem.removeprefix(PREFIX).rpartition("-")[0])
        if processes.running(log.stem, home=home):
            return Started(run, night, "running", interface_address(home))
        return ended_night(run, night, log.read_text("utf-8", "replace"), interface_address(home))

    def report(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Mapping[str, Any]:
        """Return the report of a night as `nous report --json` prints it."""
        wanted = night or last_night(datetime.now(UTC))
        if not FIRST_NIGHT <= wanted <= datetime.now(UTC).date():
            raise NotFound(f"night {wanted} has not run here; POST /consolidate runs a night")
        return run_command(night_command("report", wanted, agent_id), url, seconds=seconds)

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
        """Take back nights with `nous undo`; nights that were taken back before time runs out stay so."""
        first, last = nights
        options = [f"--from={first}", f"--to={last}", f"--reason={reason}"]
        options += [] if agent_id is None else [f"--agent={agent_id}"]
        options += [] if kind is None else [f"--kind={kind}"]
        command = python_module("nous_online.interfaces.cli", "undo", "--json", *options)
        result = run_command(command, url, seconds=seconds)
        return UndoneNights({each["night"]: len(each["undone"]) for each in result["nights"]}, result["refused"])


def planned_night(outcome: Mapping[str, Any]) -> Planned:
    """Return what a night would do from the outcome of its dry run."""
    failures, notices = failures_and_notices(outcome)
    return planned(
        date.fromisoformat(outcome["night"]),
        outcome["plan_hash"] or "",
        outcome["counts"] or {},
        was_applied=outcome["was_applied"],
        is_success=not outcome["is_stopped"],
        failures=failures,
        notices=notices,
    )


def failures_and_notices(outcome: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the failures of an outcome: as notices, about agents left out, if the night was applied all the same."""
    failures = tuple(outcome["failures"])
    return (failures, ()) if outcome["is_stopped"] else ((), failures)


def runnable(night: date | None) -> date:
    """Return the night to run, by default the last one; raise `Conflict` if it has not begun or is before the first."""
    now = datetime.now(UTC)
    wanted = night or last_night(now)
    if not FIRST_NIGHT <= wanted <= now.date():
        raise Conflict(f"night {wanted} can't be run: the first one is {FIRST_NIGHT}, the latest {now.date()}")
    return wanted


def night_command(verb: str, night: date, agent_id: str | None, *options: str) -> list[str]:
    """Return the command line of `nous` for a night."""
    agent = [] if agent_id is None else [f"--agent={agent_id}"]
    return python_module("nous_online.interfaces.cli", verb, "--json", "--date", night.isoformat(), *agent, *options)


def run_command(command: list[str], url: str, *, seconds: float) -> Mapping[str, Any]:
    """Run a command and return the JSON object it prints, or raise the error it prints.

    Raises `DeadlineExceeded` when it does not end in time, and `Unavailable` when it ends without a result.
    """
    try:
        process = subprocess.run(  # noqa: S603 (the command is ours)
            command,
            cwd=child_folder(),
            env=child_environment(NOUS_DATABASE_URL=url, NOUS_AGENT="", PYTHONWARNINGS="ignore"),  # the caller names it
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeadlineExceeded(f"the night was not done within {seconds:.0f} s and was ended; try again") from error
    result = last_object(process.stdout)
    if result is None:
        raise Unavailable(f"the night ended without a result: {process.stderr.strip()[-SHOWN_CHARACTERS:]}")
    if "error" in result:
        raise KINDS.get(result["error"]["kind"], Unavailable)(result["error"]["message"])
    return result


def last_object(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object in the last line that has one, None when there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return None


def launch(name: str, command: list[str], url: str, *, home: Path) -> None:
    """Start a process that outlives this one, with a record by which `nous down` ends it.

    Raises `Unavailable` when the home can't be written to.
    """
    # Not `processes.start`: its `preexec_fn` is unsafe in a process with several threads, as the API has.
    folder = home / "background"
    try:
        with (folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 (the command is ours)
                command,
                cwd=home,
                env=child_environment(NOUS_DATABASE_URL=url, PYTHONWARNINGS="ignore"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        processes.record(name, process.pid, command, folder=folder)
    except OSError as error:
        raise Unavailable(f"{folder} can't be written to ({error}); see NOUS_HOME") from error
    threading.Thread(target=see_end, args=[process, folder / f"{name}.log"], name=name, daemon=True).start()


def see_end(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a process, which would stay a zombie otherwise, and note in its log a signal that killed it."""
    code = process.wait()
    if code < 0 and log.exists():  # not where its home is gone by now
        with log.open("a", encoding="utf-8") as file:
            file.write(f"the night was killed by signal {-code} ({signal.Signals(-code).name}); run it again\n")


@contextmanager
def start_lock(home: Path) -> Generator[None]:
    """Keep other threads and processes from starting a night during a block.

    Raises `Conflict` when another start takes too long, and `Unavailable` when the home can't be written to.
    """
    folder = home / "background"
    lock = filelock.FileLock(folder / ".nights.lock", timeout=START_WAIT_S)
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


def ended_night(run: str, night: date, log: str, interface: str) -> Started:
    """Return the outcome of a night that has ended, from its log."""
    result = last_object(log)
    if result is None or "nights" not in result:
        failure = result["error"]["message"] if result else log.strip()[-SHOWN_CHARACTERS:] or "it printed nothing"
        return Started(run, night, "failed", interface, failures=(str(failure),))
    outcome: Mapping[str, Any] = result["nights"][0]
    state: RunState = "failed" if outcome["is_stopped"] else "succeeded"
    return Started(run, night, state, interface, outcome["counts"], *failures_and_notices(outcome))


def interface_address(home: Path) -> str:
    """Return the URL at which Dagster's interface shows runs, when it is up."""
    known = processes.running(NAME, home=home)
    return f"http://{HOST}:{PORT if known is None else port_of(known.cmdline())}/runs"
