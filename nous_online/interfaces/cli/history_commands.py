"""Commands about what happened to memories: history, and contradictions with their resolution."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.core.domain import Fact
    from nous_online.heart import Heart
    from nous_online.memories.contradictions import Contradiction
    from nous_online.memories.undoing import PastChange

PANEL = "Memories"
Status = Literal["open", "resolved", "any"]
Ruled = Literal["a_wins", "b_wins", "both_valid", "merged"]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (history, contradictions, resolve):
        app.command(rich_help_panel=PANEL)(command)


def history(
    memory_id: Annotated[UUID, typer.Argument(metavar="ID", help="A memory, as `nous recall` names it.")],
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what became of a memory: every change, the latest first, with who made it, when and why.

    [bold]Examples[/bold]

    [dim]$[/dim] nous history 01a202e5-e0bd-7d8c-b5bd-9313b051deb4

    [dim]$[/dim] nous history $ID --json | jq '.events[0].before'
    """
    with opened(agent) as heart:
        events = heart.history(memory_id)
        lines = succession_lines(heart, heart.get_fact(memory_id)) if events[0].memory_kind == "fact" else []
    if as_json:
        show_json({"memory_id": memory_id, "events": events})
        return
    for line in lines:
        show(line)
    for event in events:
        show_event(event)


def succession_lines(heart: Heart, fact: Fact) -> list[str]:
    """Return what a fact gave way to, and what gave way to it, with the text and the id of each."""
    successor = [heart.get_fact(fact.superseded_by)] if fact.superseded_by else []
    how = "merged into" if fact.succession == "merged" else "replaced by"
    gave_way = [(how, each) for each in successor]
    gave_way += [(str(each.succession), each) for each in heart.predecessors(fact.id)]
    return [f"{how:<16}  {escaped(each.content)}\n{'':<18}[dim]{each.id}[/dim]" for how, each in gave_way]


def show_event(event: PastChange) -> None:
    """Print one change of a memory: when, what, by whom and why."""
    moved = event.to_state if event.from_state == event.to_state else f"{event.from_state} → {event.to_state}"
    show(f"{event.effective_at:%Y-%m-%d %H:%M}  [bold]{escaped(event.action)}[/bold]  {escaped(moved)}")
    by = f"the night of {event.night}" if event.night else event.actor
    show(f"                  [dim]{escaped(by)}: {escaped(event.reason)}[/dim]")


def contradictions(
    *,
    status: Annotated[Status, typer.Option(help="Those that are open, resolved, or any.")] = "open",
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what the agent believes twice and otherwise; both sides are kept until somebody decides.

    [bold]Examples[/bold]

    [dim]$[/dim] nous contradictions

    [dim]$[/dim] nous contradictions --status resolved --json
    """
    with opened(agent) as heart:
        found = heart.contradictions(status=None if status == "any" else status)
        told = [with_texts(each) for each in found]
    if as_json:
        show_json({"contradictions": told})
        return
    for each in told:
        show(f"[bold]{each['id']}[/bold]  {escaped(each['resolution'] or each['status'])}")
        show(f"  a  {escaped(each['a'])}  [dim]{each['memory_a']}[/dim]")
        show(f"  b  {escaped(each['b'])}  [dim]{each['memory_b']}[/dim]")
        if each["proposed"] and each["status"] == "open":
            show(f"  [yellow]proposed[/yellow]  {escaped(in_words(each['proposed']))}")
    if not told:
        show_note("nothing contradicts itself")
    elif status == "open":
        show_note("decide one: nous resolve ID a_wins|b_wins|both_valid --note WHY, or nous resolve ID --keep FACT")


def resolve(  # noqa: PLR0913 (one parameter for each option)
    contradiction_id: Annotated[
        UUID, typer.Argument(metavar="ID", help="A contradiction, as `nous contradictions` names it.")
    ],
    resolution: Annotated[Ruled | None, typer.Argument(help="Who is right; `merged` needs --into.")] = None,
    *,
    keep: Annotated[UUID | None, typer.Option(metavar="ID", help="Instead: the fact that wins.")] = None,
    note: Annotated[str | None, typer.Option(help="Why; kept with it.")] = None,
    into: Annotated[
        UUID | None, typer.Option(metavar="ID", help="With `merged`: the fact that takes the place of both.")
    ] = None,
    reject: Annotated[
        bool, typer.Option("--reject", help="Forget what was proposed; it stays open.", metavar="")
    ] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide a contradiction. The loser is superseded and stays in the store.

    An agent's key may not decide against what is pinned or trusted more: it proposes, `nous contradictions` shows that,
    and this decides, so or otherwise, or rejects it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous resolve $ID b_wins --note "the contract was renewed"

    [dim]$[/dim] nous resolve $ID --keep $FACT

    [dim]$[/dim] nous resolve $ID merged --into $FACT

    [dim]$[/dim] nous resolve $ID --reject
    """
    if reject == bool(resolution or keep or note or into):
        message = "say a_wins, b_wins, both_valid, merged or --keep, or --reject alone, which decides nothing"
        raise InvalidInput(message)
    with opened(agent) as heart:
        if reject:
            ruled = heart.reject_ruling(contradiction_id)
        else:
            ruled = heart.resolve_contradiction(contradiction_id, resolution, keep=keep, note=note, merged_into=into)
    if as_json:
        show_json(ruled)
        return
    done = "[green]rejected[/green]  still open" if reject else f"[green]resolved[/green]  {ruled.resolution}"
    show(f"{done}  [dim]{ruled.id}[/dim]")
    for name, side in (("a", ruled.a), ("b", ruled.b)):
        show(f"  {name}  {escaped(side['content'])}")


def in_words(proposed: dict[str, Any]) -> str:
    """Return how somebody would decide a contradiction, who and why."""
    into = f" into {proposed['merged_into']}" if proposed["merged_into"] else ""
    why = f": {proposed['note']}" if proposed["note"] else ""
    return f"{proposed['resolution']}{into} by {proposed['by']}{why}"


def with_texts(each: Contradiction) -> dict[str, Any]:
    """Return a contradiction's columns, and under `a` and `b` what its two sides say."""
    return {**asdict(each), "a": each.a["content"], "b": each.b["content"]}
