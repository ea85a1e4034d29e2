"""The command that tells what language models cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json
from nous_pipelines.nights import parse_night
from nous_pipelines.reports.costs import Cost, Dimension, costs_of, short, told_cost

if TYPE_CHECKING:
    from rich.table import Table

LONG = (Dimension.MODEL, Dimension.AGENT)
USUAL = (Dimension.NIGHT, Dimension.PURPOSE, Dimension.MODEL, Dimension.AGENT)


def cost(
    *,
    first: Annotated[str | None, typer.Option("--from", metavar="YYYY-MM-DD", help="From this night on …")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="… up to this one.")] = None,
    by: Annotated[
        list[Dimension] | None,
        typer.Option(metavar="|".join(Dimension), help="Sum over everything but this; may be given more than once."),
    ] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what language models cost: requests, tokens and US dollars, by night, purpose, model and agent.

    A request outside of a night counts for the day it was made on. Prices are those at the time of the request.

    [bold]Examples[/bold]

    [dim]$[/dim] nous cost

    [dim]$[/dim] nous cost --from 2026-11-01 --by purpose --by agent

    [dim]$[/dim] nous cost --agent aria --json | jq .total.usd
    """
    from nous_online.database.connection import Database, open_url

    begins, ends = (parse_night(night) if night else None for night in (first, last))
    if begins and ends and begins > ends:
        raise InvalidInput(f"--from {begins} is after --to {ends}; no night lies between them")
    chosen = by or USUAL
    database = Database(open_url(), role="nous_night", max_connections=1)
    try:
        asked = {"first": begins, "last": ends, "agent_ids": (agent,) if agent else ()}
        costs, total = (costs_of(database, each, **asked) for each in (chosen, []))
    finally:
        database.close()
    if as_json:
        show_json({"by": chosen, "costs": costs, "total": total[0] if total else None})
    else:
        show_costs(costs, total, chosen)


def show_costs(costs: Sequence[Cost], total: Sequence[Cost], by: Sequence[Dimension]) -> None:
    """Print what was spent as a table with a sum, or that nothing was."""
    if not total:
        show("no language model was asked; nothing was spent")
        return
    show(table_of(costs, by))
    show(f"\n[bold]{told_cost(total[0])}[/bold]")


def table_of(costs: Sequence[Cost], by: Sequence[Dimension]) -> Table:
    """Return the table: a column for each dimension, and for each figure that is not nothing in every row."""
    from rich.table import Table

    shown = [each for each in Dimension if each in by]
    figures = {
        "requests": [f"{cost.requests:,}" for cost in costs],
        "failed": [f"{cost.failed:,}" if cost.failed else "" for cost in costs],
        "tokens": [short(cost.tokens) for cost in costs],
        "cached": [short(cost.cache_read_tokens) if cost.cache_read_tokens else "" for cost in costs],
        "USD": [f"{cost.usd:,.4f}" for cost in costs],
        "to come": [f"≤ {cost.expected_usd:,.4f}" if cost.under_way else "" for cost in costs],
    }
    told = {heading: column for heading, column in figures.items() if any(column)}
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for each in shown:
        table.add_column(each, overflow="fold", no_wrap=each not in LONG)
    for heading in told:
        table.add_column(heading, justify="right", no_wrap=True)
    for cost, row in zip(costs, zip(*told.values(), strict=True), strict=True):
        table.add_row(*(escaped(named(cost, each)) for each in shown), *row)
    return table


def named(cost: Cost, dimension: Dimension) -> str:
    """Return what a row is about, in one dimension."""
    value = cost.agent_id if dimension is Dimension.AGENT else getattr(cost, dimension)
    return "-" if value is None else str(value)
