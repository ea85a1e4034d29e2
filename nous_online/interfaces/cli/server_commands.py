"""Commands about the server and background work: up, down, doctor, worker, retry."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from typer import Argument, Option

from nous_online.core.errors import NousError
from nous_online.core.files import demo_home
from nous_online.core.policy import WorkerPolicy
from nous_online.interfaces.cli.output import (
    AgentOption,
    Ended,
    JsonOption,
    as_json_value,
    escaped,
    open_heart,
    show,
    show_error,
    show_json,
    show_note,
    waiting,
)

if TYPE_CHECKING:
    from nous_online.processes import ProcessStop
    from nous_online.queue.worker import Round, Staff

HANGUP: signal.Signals = getattr(signal, "SIGHUP", signal.SIGTERM)  # Windows has none


@contextmanager
def stopping() -> Generator[ProcessStop]:
    """Handle SIGINT, SIGTERM and SIGHUP for a block, which checks for them between two steps."""
    from nous_online.processes import ProcessStop

    stop = ProcessStop()
    with handled({signal.SIGINT, signal.SIGTERM, HANGUP}, stop.handle):
        yield stop


@contextmanager
def handled(numbers: Collection[signal.Signals], handler: Callable[[int, FrameType | None], object]) -> Generator[None]:
    """Handle signals for a block; SIGHUP not where it is ignored, as `nohup` does."""
    heard = [each for each in numbers if each != HANGUP or signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


DEMO = "demo"  # the folder in the home where demos of earlier versions kept a server of their own


def up() -> object:
    """Start the embedded server if need be, and bring the schema up to date.

    With NOUS_DATABASE_URL that server is prepared instead.

    $ nous up
    $ NOUS_DATABASE_URL=postgresql://nous@db/nous nous up
    """
    from nous_online.core.settings import settings
    from nous_online.database import postgres
    from nous_online.database.connection import open_url, prepare

    with waiting("starting PostgreSQL …"):
        url = open_url()
        prepare(url)
    place = place_of(url)
    show(f"[green]ready[/green]  PostgreSQL at {escaped(address_of(place))}")
    if settings().database_url is None and (note := postgres.note_on_backup(settings().home)):
        show_note(note)
    return {"is_ready": True, **place}


def place_of(url: str) -> dict[str, str]:
    """Return host, port, database and user of a server's URL, without the password."""
    from psycopg.conninfo import conninfo_to_dict

    address = conninfo_to_dict(url)
    return {name: str(address[name]) for name in ("host", "port", "dbname", "user") if address.get(name)}


def address_of(place: dict[str, str]) -> str:
    return f"{place.get('host', 'localhost')}:{place.get('port', '5432')}/{place.get('dbname', '')}"


def down(*, demo: Annotated[bool, Option(help="Only what the demo started.")] = False) -> object:
    """Stop the embedded server and what runs in the background, the demo's too; memories stay where they are.

    $ nous down
    $ nous down --demo
    """
    from nous_online.core.settings import settings
    from nous_online.database import postgres
    from nous_online.processes import stop_all

    home = settings().home or postgres.default_home()
    stopped: list[str] = []
    with waiting("stopping …"):
        demos = (demo_home(home), home / DEMO)
        for place in demos if demo else (*demos, home):
            stopped += stop_all(place)
            if place.is_dir() and postgres.stop(place):
                stopped.append(f"PostgreSQL in {place}")
    show(f"stopped {', '.join(stopped)}; memories stay where they are" if stopped else "nothing was running")
    return {"was_running": bool(stopped), "stopped": stopped}


def doctor() -> object:
    """Check what Nous needs, and say how to mend what is wrong (exit code 1).

    $ nous doctor
    $ nous doctor --json | jq '.checks\\[] | select(.is_ok | not)'
    """
    from nous_online.interfaces.cli.command_line import USES, absent_extras
    from nous_online.interfaces.doctor import checks

    found = list(checks())
    is_ok = all(check.is_ok for check in found)
    for check in found:
        mark = "[green]ok [/green]" if check.is_ok else "[red]fix[/red]"
        show(f"{mark}  {check.name:<9} {escaped(check.message)}")
    absent = absent_extras()
    for extra in absent:
        show_note(f"not installed, extra `{extra}`: {USES[extra]}; pip install 'nous-pipelines[{extra}]'")
    return Ended(0 if is_ok else 1, {"is_ok": is_ok, "checks": found, "absent_extras": absent})


POLICY = WorkerPolicy()


def worker(
    *,
    once: Annotated[bool, Option(help="Do what is due now, then end.")] = False,
    every: Annotated[
        float, Option(min=0.1, max=3600.0, metavar="SECONDS", help="How long to rest between two looks.")
    ] = POLICY.poll_s,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do background work: complete closed episodes and deliver events, of all agents or of one.

    Several may run at once. Ctrl-C and SIGTERM end it after the step that has begun. With --json each look that found
    something is an object on a line of its own. The exit code is 1 when --once met a failure.

    $ nous worker
    $ nous worker --once --json | jq .completed
    """
    from nous_online.queue.worker import open_staff

    with stopping() as stop, open_staff() as workers:
        if not once and not as_json:
            show_note("looking for closed episodes and events; Ctrl-C ends it")
        while not stop.is_asked():
            found = run_round(workers, only=agent, stop=stop, is_last=once)
            show_round(found, as_json=as_json, is_last=once)
            if once:
                raise typer.Exit(1 if found.failed else 0)
            stop.rest(0 if found.completed else every)  # finished episodes may have left more to do
    if stop.signal == signal.SIGINT:
        raise KeyboardInterrupt


def retry(
    episode_id: Annotated[UUID, Argument(metavar="ID", help="A closed episode, as `nous status` names it.")],
    *,
    agent: AgentOption = None,
) -> object:
    """Queue an episode that was set aside to be completed after all.

    One is set aside when five attempts failed at it, as its completion note says. Its text stays as it is.

    $ nous retry 01a202e5-e0bd-7d8c-b5bd-9313b051deb4 && nous worker --once
    """
    with open_heart(agent) as heart:
        episode = heart.retry_episode(episode_id)
    show(f"episode {episode.id} is queued again")
    return {"episode_id": episode.id}


def run_round(workers: Staff, *, only: str | None, stop: ProcessStop, is_last: bool) -> Round:
    """Do what is due once; a failure of the database is raised in the last round only, else the next tries again."""
    from nous_online.queue.worker import Round

    try:
        return workers.look(only=only, is_stopping=stop.is_asked)
    except NousError as error:
        if is_last:
            raise
        show_error(str(error))
        return Round()


def show_round(found: Round, *, as_json: bool, is_last: bool) -> None:
    """Print the result of a round; an idle one only if it is the last."""
    if as_json and (is_last or not found.is_idle):
        show_json({"completed": found.completed, "delivered": found.delivered, **as_json_value(found)})
    if as_json:
        return
    for name, worked in found.worked.items():
        if worked:
            done = f"episodes completed: {worked.completed:,}, events delivered: {worked.delivered:,}"
            show(f"[green]done[/green]  {escaped(name)}: {done}")
    for name, reason in found.skipped.items():
        show_note(f"{name}: passed over, {reason}")
    for name, reason in found.failed.items():
        show_error(f"{name}: {reason}")
    if is_last and found.is_idle:
        show("nothing is due")
