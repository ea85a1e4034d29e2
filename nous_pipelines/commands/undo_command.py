"""The command that takes back: a night, a kind, a proposal, the latest change of a memory, or all a source said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated
from uuid import UUID

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json
from nous_pipelines.nights import nights_between, parse_night

ALONE = "--memory and --source stand alone: leave out --night, --from, --to, --proposal, --kind and the other"
NightOption = Annotated[
    str | None, typer.Option("--night", "--date", metavar="YYYY-MM-DD", help="Which night; yesterday's by default.")
]


def known_kinds(incomplete: str) -> list[str]:
    """Return the kinds of proposals that a shell may offer."""
    from nous_pipelines.phases.phase_table import PRECEDENCE

    return [kind for kind in PRECEDENCE if kind.startswith(incomplete)]


def undo(  # noqa: PLR0913 (one parameter for each option)
    changed: Annotated[UUID | None, typer.Argument(metavar="[ID]", help="The same as --memory ID.")] = None,
    *,
    night: NightOption = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="YYYY-MM-DD", help="All nights from this one on …")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="… to this one, newest first.")] = None,
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

    What was taken back is not proposed again. A range of nights ends at the first night of which something is refused.

    [bold]Examples[/bold]

    [dim]$[/dim] nous undo --night 2026-11-20

    [dim]$[/dim] nous undo --from 2026-11-01 --to 2026-11-20 --agent aria

    [dim]$[/dim] nous undo --proposal 3f0c… --reason "two different teams"

    [dim]$[/dim] nous undo $ID --reason "that was a joke"

    [dim]$[/dim] nous undo --source wiki.example.org --reason "the page was forged"
    """
    if changed is not None and memory is not None:
        raise InvalidInput(f"both {changed} and --memory {memory} are given; name one memory")
    memory = memory or changed
    if memory is not None or source is not None:
        if night or first or last or proposal or kind or (memory and source):
            raise InvalidInput(ALONE)
        if memory is not None:
            undo_memory(memory, agent, reason=reason, as_json=as_json)
        else:
            undo_source(str(source), agent, reason=reason, as_json=as_json)
        return
    if first or last:
        undo_nights(range_of(first, last, night or proposal), agent, kind, reason=reason, as_json=as_json)
        return
    if not (night or proposal):
        raise InvalidInput("say what to take back: --night YYYY-MM-DD, --proposal ID, --memory ID or --source NAME")
    chosen = (agent, parse_night(night) if night else None, kind, parsed_id(proposal) if proposal else None)
    undo_proposals(chosen, reason=reason, as_json=as_json)


def undo_proposals(
    chosen: tuple[str | None, date | None, str | None, UUID | None], *, reason: str, as_json: bool
) -> None:
    """Take back proposals of nights, those of an agent, a night, a kind or an id, and say what could not be."""
    from nous_online.database.connection import Database, open_url
    from nous_pipelines.plan.undo import Selection, undo

    database = Database(open_url(), role="nous_night")
    try:
        result = undo(database, Selection(*chosen), reason=reason)
    finally:
        database.close()
    count = len(result.undone)
    tell(f"{count} {'proposal' if count == 1 else 'proposals'}", result.undone, result.refused, as_json=as_json)


def range_of(first: str | None, last: str | None, other: str | None) -> list[date]:
    """Return the nights of a range, newest first; raise `InvalidInput` for half of one, or beside something else."""
    if first is None or last is None or other:
        raise InvalidInput("a range needs both --from and --to, and neither --night nor --proposal")
    return list(nights_between(parse_night(first), parse_night(last)))[::-1]


def undo_nights(nights: Sequence[date], agent: str | None, kind: str | None, *, reason: str, as_json: bool) -> None:
    """Take back night after night as far as that goes, and say which; the command fails where one is not whole."""
    from nous_online.database.connection import Database, open_url
    from nous_pipelines.plan.undo import Selection, undo_range

    database = Database(open_url(), role="nous_night")
    try:
        results = undo_range(database, Selection(agent_id=agent, kind=kind), nights, reason=reason)
    finally:
        database.close()
    is_refused = bool(results) and bool([*results.values()][-1].refused)
    refused = {str(each): why for result in results.values() for each, why in result.refused.items()}
    if as_json:
        undone = [{"night": night, "undone": result.undone} for night, result in results.items()]
        show_json({"nights": undone, "refused": refused})
    else:
        for night, result in results.items():
            show(f"[green]taken back[/green]  night {night}: {len(result.undone)} proposals")
        for each, why in refused.items():
            show(f"[red]refused[/red]  {each}: {escaped(why)}")
        if is_refused:
            show(f"[red]ended at night {[*results][-1]}[/red]: those before it stand as they were")
    if is_refused:
        raise typer.Exit(1)


def tell(what: str, undone: Sequence[UUID], refused: Mapping[UUID, str], *, as_json: bool) -> None:
    """Say what was taken back and what was not, with which the command fails."""
    if as_json:
        show_json({"undone": undone, "refused": {str(each): why for each, why in refused.items()}})
    else:
        show(f"[green]taken back[/green]  {what}")
        for each, why in refused.items():
            show(f"[red]refused[/red]  {each}: {escaped(why)}")
    if refused:
        raise typer.Exit(1)


def undo_memory(memory_id: UUID, agent: str | None, *, reason: str, as_json: bool) -> None:
    """Take back the latest change of one memory, and say what it was."""
    from nous_online.interfaces.cli.options import opened

    with opened(agent) as heart:
        event = heart.undo(memory_id, reason=reason)
    if as_json:
        show_json(event)
    else:
        show(f"[green]taken back[/green]  {event.action}  [dim]{escaped(event.reason)}[/dim]")


def undo_source(source: str, agent: str | None, *, reason: str, as_json: bool) -> None:
    """Take back all that one source said, and say what could not be taken back."""
    from nous_online.interfaces.cli.options import opened

    with opened(agent) as heart:
        result = heart.undo_source(source, reason=reason)
    count = len(result.undone)
    what = f"{count} {'memory' if count == 1 else 'memories'} of {escaped(source)}"
    tell(what, result.undone, result.refused, as_json=as_json)


def parsed_id(text: str) -> UUID:
    """Read the id of a proposal."""
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no proposal id; `nous report` names them") from error
