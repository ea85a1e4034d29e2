"""Commands about one memory, named by its id: forget, restore, pin, unpin, update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast
from uuid import UUID

import typer

from nous_online.core.details import MemoryChanges
from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.options import with_options
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.core.domain import Memory

MemoryId = Annotated[UUID, typer.Argument(metavar="ID", help="A memory of any kind, as `nous recall` names it.")]
Why = Annotated[str | None, typer.Option(help="Why; kept with the event.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (forget, restore, pin, unpin, update):
        app.command(rich_help_panel="Memories")(command)


def forget(
    memory_id: MemoryId,
    *,
    reason: Annotated[str, typer.Option(help="Why; kept with the event.")],
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget a memory: out of recall, contexts and questions about the past, however often it was confirmed.

    It stays in the store: `nous restore` brings it back. What must leave the disk is erased: `nous erase --memory`.

    [bold]Examples[/bold]

    [dim]$[/dim] nous forget $ID --reason "the lock was changed"
    """
    with opened(agent) as heart:
        gone = heart.forget(memory_id, reason=reason)
    if as_json:
        show_json(gone)
        return
    show_memory("forgotten", gone.memory)
    for ids, what in ((gone.merged, "was merged into it"), (gone.replaced, "had been replaced by it")):
        for each in ids:
            show_note(f"{each} {what}, and stays out of recall too")


def restore(memory_id: MemoryId, *, reason: Why = None, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """Restore a memory that was forgotten, or archived by a night, to the state it was in.

    [bold]Examples[/bold]

    [dim]$[/dim] nous restore $ID --reason "forgotten by mistake"
    """
    with opened(agent) as heart:
        answer("restored", heart.restore(memory_id, reason=reason), as_json=as_json)


def pin(memory_id: MemoryId, *, reason: Why = None, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """Pin a memory: no night archives or condenses it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous pin $ID
    """
    with opened(agent) as heart:
        answer("pinned", heart.pin(memory_id, reason=reason), as_json=as_json)


def unpin(memory_id: MemoryId, *, reason: Why = None, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """Unpin a memory: nights treat it like any other again.

    [bold]Examples[/bold]

    [dim]$[/dim] nous unpin $ID
    """
    with opened(agent) as heart:
        answer("unpinned", heart.unpin(memory_id, reason=reason), as_json=as_json)


@with_options(MemoryChanges)
def update(
    memory_id: MemoryId,
    *,
    reason: Why = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Correct what is known about a memory besides its text; to say something else, learn it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous update $ID --subject "gate code" --tag home

    [dim]$[/dim] nous update $ID --valid-to 2026-12-31T00:00:00Z --reason "the lease ends"
    """
    changes = cast("MemoryChanges", {name: value for name, value in told.items() if value is not None})
    with opened(agent) as heart:
        answer("updated", heart.update(memory_id, reason=reason, **changes), as_json=as_json)


def answer(done: str, memory: Memory, *, as_json: bool) -> None:
    """Say what became of a memory."""
    if as_json:
        show_json(memory)
    else:
        show_memory(done, memory)


def show_memory(done: str, memory: Any) -> None:
    """Print what was done to a memory, its text, and the state it is in."""
    names = ("content", "title", "name", "trigger", "detail")
    text = next((value for name in names if (value := getattr(memory, name, None))), "")
    show(f"[green]{done}[/green]  {escaped(text)}")
    show(f"[dim]{memory.id}  {memory.state}[/dim]")
