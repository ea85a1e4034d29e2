"""The command that does what agents left to be done: worker."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from nous_online.core.errors import NousError
from nous_online.core.policy import WorkerPolicy
from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.output import (
    INTERRUPTED,
    AgentOption,
    JsonOption,
    escaped,
    plain,
    show,
    show_error,
    show_json,
    show_note,
)
from nous_online.interfaces.cli.stopping import CommandStop, stopping

if TYPE_CHECKING:
    from nous_online.queue.worker import Round, Staff

POLICY = WorkerPolicy()


def register(app: typer.Typer) -> None:
    """Add this command."""
    for command in (worker, retry):
        app.command(rich_help_panel="Memories")(command)


def worker(
    *,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, then end.")] = False,
    every: Annotated[
        float, typer.Option(min=0.1, max=3600.0, metavar="SECONDS", help="How long to rest between two looks.")
    ] = POLICY.poll_s,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do what agents left to be done: complete closed episodes, deliver events; of all agents, or of one.

    Several may run at once. Ctrl-C and SIGTERM end it after the step that has begun. With --json each look that found
    something is an object on a line of its own. The exit code is 1 when --once met a failure.

    [bold]Examples[/bold]

    [dim]$[/dim] nous worker

    [dim]$[/dim] nous worker --once --json | jq .completed
    """
    from nous_online.queue.worker import staff

    with stopping() as stop, staff() as opened:
        if not once and not as_json:
            show_note("looking for closed episodes and events; Ctrl-C ends it")
        while not stop.is_asked():
            found = looked(opened, only=agent, stop=stop, is_last=once)
            tell(found, as_json=as_json, is_last=once)
            if once:
                raise typer.Exit(1 if found.failed else 0)
            stop.rest(0 if found.completed else every)
    if stop.signal == signal.SIGINT:
        show_error("interrupted; nothing was left half-done")
        raise typer.Exit(INTERRUPTED)


def retry(
    episode_id: Annotated[UUID, typer.Argument(metavar="ID", help="A closed episode, as `nous status` names it.")],
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Queue an episode that was set aside to be completed after all.

    One is set aside when five attempts failed at it, as its completion note says. Its text stays as it is.

    [bold]Examples[/bold]

    [dim]$[/dim] nous retry 01a202e5-e0bd-7d8c-b5bd-9313b051deb4 && nous worker --once
    """
    with opened(agent) as heart:
        episode = heart.retry_episode(episode_id)
    if as_json:
        show_json({"episode_id": episode.id})
        return
    show(f"episode {episode.id} is queued again")


def looked(opened: Staff, *, only: str | None, stop: CommandStop, is_last: bool) -> Round:
    """Look once; a database that fails now is an error of the last look only, else it is asked again later."""
    from nous_online.queue.worker import Round

    try:
        return opened.look(only=only, is_stopping=stop.is_asked)
    except NousError as error:
        if is_last:
            raise
        show_error(str(error))
        return Round()


def tell(found: Round, *, as_json: bool, is_last: bool) -> None:
    """Tell what a look found; one that found nothing only when it is the last."""
    if as_json and (is_last or not found.is_idle):
        show_json({"completed": found.completed, "delivered": found.delivered, **plain(found)})
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
