"""Commands about what a memory rests on: what was said for it, word for word, and taking one of that apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from nous_online.interfaces.cli.history_commands import show_event, succession_lines
from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json

if TYPE_CHECKING:
    from nous_online.core.domain import Statement

PANEL = "Memories"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in {"show": show_fact, "split": split}.items():
        app.command(name, rich_help_panel=PANEL)(command)


def show_fact(
    fact_id: Annotated[UUID, typer.Argument(metavar="ID", help="A fact, as `nous recall` names it.")],
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a fact in full: its text, what was said for it, word for word, and what became of it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous show 01a202e5-e0bd-7d8c-b5bd-9313b051deb4

    [dim]$[/dim] nous show $ID --json | jq '.statements[].content'
    """
    from nous_online.memories.store import unrecorded_count

    with opened(agent) as heart:
        fact, said, events = heart.get_fact(fact_id), heart.statements(fact_id), heart.history(fact_id)
        before, lines = heart.predecessors(fact_id), succession_lines(heart, fact)
    unrecorded = unrecorded_count(fact, said)
    if as_json:
        told = {"fact": fact, "statements": said, "unrecorded_count": unrecorded, "events": events}
        show_json({**told, "predecessors": before})
        return
    show(f"[bold]{escaped(fact.content)}[/bold]")
    show(f"[dim]{fact.id}  {escaped(fact.state)}, trust {fact.trust}[/dim]")
    for line in (*lines, "", *statement_lines(said, unrecorded)):
        show(line)
    show("\nwhat became of it, the latest first")
    for event in events:
        show_event(event)


def statement_lines(said: list[Statement], unrecorded: int) -> list[str]:
    """Return what was said for a fact, a line for each statement with its time, source and id."""
    times = {1: "once", 2: "twice"}.get(len(said), f"{len(said)} times")
    lines = [f"said {times}, in these words"]
    for each in said:
        source = f", {escaped(each.source)}" if each.source else ""
        undone = ", undone" if each.taken_back_at else ""
        lines.append(f"{each.said_at:%Y-%m-%d %H:%M}  {escaped(each.content)}")
        lines.append(f"                  [dim]{each.reason}{undone}{source}: {each.id}[/dim]")
    if unrecorded:
        lines.append(f"confirmed {unrecorded} more times before statements were kept: those words are gone")
    return lines


def split(
    statement_id: Annotated[UUID, typer.Argument(metavar="STATEMENT_ID", help="A statement, as `nous show` names it.")],
    *,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the history of both facts.")] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a statement a fact of its own, apart from the fact it was taken for; `nous undo` joins them again.

    [bold]Examples[/bold]

    [dim]$[/dim] nous split 01a202e5-e0bd-7d8c-b5bd-9313b051deb4 --reason "against is not for"

    [dim]$[/dim] nous split $STATEMENT --json | jq .id
    """
    with opened(agent) as heart:
        fact = heart.split(statement_id, reason=reason)
    if as_json:
        show_json(fact)
        return
    show(f"[green]split off[/green]  {escaped(fact.content)}")
    show(f"[dim]{fact.id}  nights and the same words, learned again, keep the two apart[/dim]")
