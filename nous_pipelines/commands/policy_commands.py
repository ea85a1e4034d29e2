"""The command that shows and sets what an agent's nights do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_pipelines.night_policy import NightPolicy


def policy(
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="[FIELD=NUMBER]...", help="Fields to set for this agent's nights.")
    ] = None,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="Go back to the default, but for what is set now.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the nights do for an agent, every field with its default, or set some of them.

    It counts from the next snapshot on. What a single run is told with `nous night --policy` comes before it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous policy --agent aria

    [dim]$[/dim] nous policy --agent aria unused_after_days=180 rank_step=0.1

    [dim]$[/dim] nous policy --agent aria --reset
    """
    from nous_online.core.settings import settings
    from nous_online.database.connection import Database, open_url
    from nous_pipelines.night_policy import NightPolicy
    from nous_pipelines.plan.agent_policies import own_policy, set_policy

    name, values = agent or settings().agent, numbers(assignments or [])
    database = Database(open_url(), role="nous_night", max_connections=1)
    try:
        is_change = bool(values) or reset
        own = set_policy(database, name, values, is_reset=reset) if is_change else own_policy(database, name)
    finally:
        database.close()
    fields = described(NightPolicy().overridden(own))
    if as_json:
        show_json({"agent_id": name, "own": own, "fields": fields})
    else:
        show_policy(name, fields, own)


def numbers(assignments: list[str]) -> dict[str, float]:
    """Read assignments such as unused_after_days=180; raise `InvalidInput` for anything else."""
    values: dict[str, float] = {}
    for assignment in assignments:
        name, _, number = assignment.partition("=")
        try:
            values[name] = float(number)
        except ValueError as error:
            raise InvalidInput(f"{assignment!r} is not of the form FIELD=NUMBER; `nous policy` lists them") from error
    return values


def described(policy: NightPolicy) -> dict[str, dict[str, Any]]:
    """Return each field with its value, its default and what it means."""
    from nous_pipelines.night_policy import NightPolicy
    from nous_pipelines.plan.agent_policies import meanings

    usual = NightPolicy().as_dict()
    return {
        name: {"value": value, "default": usual[name], "meaning": meanings()[name]}
        for name, value in policy.as_dict().items()
    }


def show_policy(agent_id: str, fields: dict[str, dict[str, Any]], own: dict[str, Any]) -> None:
    """Print the fields as a table; those the agent has otherwise stand out."""
    from rich.table import Table

    table = Table("field", "value", "default", "what it means", title=f"the nights of {escaped(agent_id)}", box=None)
    for name, field in fields.items():
        style = "bold" if name in own else None
        table.add_row(name, f"{field['value']:g}", f"{field['default']:g}", field["meaning"], style=style)
    show(table)
    show_note(f"{len(own)} of {len(fields)} fields are {agent_id}'s own")
