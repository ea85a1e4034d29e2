"""The command that takes back: a night, a kind, a proposal, the latest change of a memory, or all a source said."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from nous_online.cli.output import AgentOption, JsonOption, escaped, show, show_json
from nous_online.errors import InvalidInput
from nous_pipelines.nights import parse_night

NightOption = Annotated[
    str | None, typer.Option("--night", "--date", metavar="YYYY-MM-DD", help="Which night; yesterday's by default.")
]


def known_kinds(incomplete: str) -> list[str]:
    """Return the kinds of proposals that a shell may offer."""
    from nous_pipelines.proposals import PRECEDENCE

    return [kind for kind in PRECEDENCE if kind.startswith(incomplete)]


def undo(  # noqa: PLR0913 (one parameter for each option)
    *,
    night: NightOption = None,
    proposal: Annotated[str | None, typer.Option(metavar="ID", help="One proposal, as `nous report` names it.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="One kind of proposal, such as merge.", autocompletion=known_kinds)
    ] = None,
    memory: Annotated[
        UUID | None, typer.Option(metavar="ID", help="A memory: its latest change, also that it was learned.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="All that one source said, or that came with an import.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; kept with the event.")] = "taken back by the operator",
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back what a night changed: every row as it was, another event for each. Refused where others built on it.

    What was taken back is not proposed again.

    [bold]Examples[/bold]

    [dim]$[/dim] nous undo --night 2026-11-20

    [dim]$[/dim] nous undo --proposal 3f0c… --reason "two different teams"

    [dim]$[/dim] nous undo --memory $ID --reason "that was a joke"

    [dim]$[/dim] nous undo --source wiki.example.org --reason "the page was forged"
    """
    if memory is not None:
        is_alone = not (night or proposal or kind or source)
        undo_memory(memory, agent, reason=reason, as_json=as_json, is_alone=is_alone)
        return
    if source is not None:
        undo_source(source, agent, reason=reason, as_json=as_json, is_alone=not (night or proposal or kind))
        return
    from nous_online.database import Database, open_url
    from nous_pipelines.undo import Selection
    from nous_pipelines.undo import undo as take_back

    if not (night or proposal):
        raise InvalidInput("say what to take back: --night YYYY-MM-DD, --proposal ID, --memory ID or --source NAME")
    selection = Selection(agent, parse_night(night) if night else None, kind, parsed_id(proposal) if proposal else None)
    database = Database(open_url(), role="nous_night")
    try:
        result = take_back(database, selection, reason=reason)
    finally:
        database.close()
    if as_json:
        show_json(
            {"undone": [str(each) for each in result.undone], "refused": {str(k): v for k, v in result.refused.items()}}
        )
    else:
        show(f"[green]taken back[/green]  {len(result.undone)} proposals")
        for each, why in result.refused.items():
            show(f"[red]refused[/red]  {each}: {escaped(why)}")
    if result.refused:
        raise typer.Exit(1)


def undo_memory(memory_id: UUID, agent: str | None, *, reason: str, as_json: bool, is_alone: bool) -> None:
    """Take back the latest change of one memory, and say what it was."""
    from nous_online.cli.memory import opened

    if not is_alone:
        raise InvalidInput("--memory names one memory: leave out --night, --proposal, --kind and --source")
    with opened(agent) as heart:
        event = heart.undo(memory_id, reason=reason)
    if as_json:
        show_json(event)
    else:
        show(f"[green]taken back[/green]  {event.action}  [dim]{escaped(event.reason)}[/dim]")


def undo_source(source: str, agent: str | None, *, reason: str, as_json: bool, is_alone: bool) -> None:
    """Take back all that one source said, and say what could not be taken back."""
    from nous_online.cli.memory import opened

    if not is_alone:
        raise InvalidInput("--source names all that one source said: leave out --night, --proposal and --kind")
    with opened(agent) as heart:
        result = heart.undo_source(source, reason=reason)
    if as_json:
        show_json({"undone": result.undone, "refused": {str(each): why for each, why in result.refused.items()}})
    else:
        count = len(result.undone)
        show(f"[green]taken back[/green]  {count} {'memory' if count == 1 else 'memories'} of {escaped(source)}")
        for each, why in result.refused.items():
            show(f"[red]refused[/red]  {each}: {escaped(why)}")
    if result.refused:
        raise typer.Exit(1)


def parsed_id(text: str) -> UUID:
    """Read the id of a proposal."""
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no proposal id; `nous report` names them") from error
