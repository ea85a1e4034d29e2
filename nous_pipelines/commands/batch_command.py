"""The commands about paid models: batches and cost."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note, waiting
from nous_pipelines.nights import parse_night
from nous_pipelines.reports.costs import Cost, Dimension, cost_in_words, costs_of, short

if TYPE_CHECKING:
    from rich.table import Table

    from nous_online.database.connection import Database
    from nous_pipelines.batches.batch_rows import BatchRow
    from nous_pipelines.batches.collecting import Collected
    from nous_pipelines.batches.second_judge import SecondJudge


SHOWN = 20
LOOK_S = 600.0
LOOK_EVERY_S = 30.0
MOST_TROUBLED = 10
"""Consecutive looks with a problem, which may be temporary, after which waiting ends."""
SHOWN_ERROR = 60  # characters


def batches(
    *,
    collect: Annotated[bool, typer.Option("--collect", help="Import the results of batches that have ended.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="With --collect: look again until nothing is open.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the batches of questions to Claude: those in progress, and the latest others with their results.

    A night sends pairs that the offline judge may get wrong; the answers come within a day, mostly within the hour, and
    count in the next night. While the daemon runs it imports them by itself. Without a key nothing is sent.

    [bold]Examples[/bold]

    [dim]$[/dim] nous batches

    [dim]$[/dim] nous batches --collect --wait
    """
    from nous_online.core.errors import InvalidInput
    from nous_pipelines.batches.batch_rows import recent

    if wait and not collect:
        raise InvalidInput("--wait says how long to collect: write --collect --wait")
    agent_ids = [agent] if agent else []
    with night_database() as database:
        collected = collect_batches(database, agent_ids, waits=wait) if collect else None
        rows = recent(database, agent_ids, limit=SHOWN)
    if as_json:
        show_json({"batches": [as_plain(row) for row in rows], "collected": collected})
    else:
        show_rows(rows)
        if collected is not None:
            show_note(collected.words)
    if collected is not None and collected.troubles:
        raise typer.Exit(1)


@contextmanager
def night_database() -> Generator[Database]:
    """Open the database as the night."""
    from nous_online.database.connection import Database, open_url

    with closing(Database(open_url(), role="nous_night", max_connections=2)) as database:
        yield database


def collect_batches(database: Database, agent_ids: Sequence[str], *, waits: bool) -> Collected:
    """Collect ended batches; with `waits` look again until none is open or a problem persists."""
    from nous_online.core.errors import InvalidInput
    from nous_online.core.settings import settings
    from nous_pipelines.batches.second_judge import SecondJudge

    second = SecondJudge.collector(settings())
    if second is None:
        raise InvalidInput("batches can't be collected without a key: set ANTHROPIC_API_KEY")
    done = collect_once(second, database, agent_ids)
    with waiting("waiting for Claude …"):
        troubled = 0
        while waits and done.waiting:
            troubled = troubled + 1 if done.troubles else 0
            if troubled == MOST_TROUBLED:
                break
            if troubled == 1:
                show_note("; ".join(done.troubles))
            time.sleep(LOOK_EVERY_S)
            done = replace(done, waiting=0, troubles=()) + collect_once(second, database, agent_ids)
    return done


def collect_once(second: SecondJudge, database: Database, agent_ids: Sequence[str]) -> Collected:
    """Collect once, blocking erasure meanwhile: results that are being saved must not escape it."""
    from nous_online.memories.erasure import shared_copies_lock
    from nous_pipelines.orchestration.instance import home_folder

    with shared_copies_lock(database.url):
        return second.look(database, home_folder(), seconds=LOOK_S, agent_ids=agent_ids)


def as_plain(row: BatchRow) -> dict[str, Any]:
    """Return a batch as plain values for JSON."""
    names = ("id", "agent_id", "night", "model", "state", "batch_id", "pair_count", "request_count", "failed_count")
    values = {name: getattr(row, name) for name in (*names, "estimated_usd", "cost_usd", "error", "created_at")}
    return {**values, "is_open": row.is_open}


def show_rows(rows: Sequence[BatchRow]) -> None:
    """Print batches as a table, open ones first."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        show("no batch was sent yet")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("state", "agent", "night", "model", "pairs", "requests", "USD", "batch"):
        table.add_column(name, justify="right" if name in {"pairs", "requests", "USD"} else "left")
    for row in rows:
        cost = f"≤ {row.estimated_usd:.4f}" if row.is_open else f"{row.cost_usd:.4f}"
        counts = (f"{row.pair_count:,}", f"{row.request_count:,}", cost)
        name = Text(row.batch_id or "not answered")
        if row.error:
            name.append(f"  {row.error[:SHOWN_ERROR]}", style="yellow")
        style = "bold" if row.is_open else "red" if row.state == "failed" else ""
        table.add_row(Text(row.state, style=style), row.agent_id, str(row.night), row.model, *counts, name)
    show(table)


# --- cost ---

LONG = (Dimension.MODEL, Dimension.AGENT)
USUAL = (Dimension.NIGHT, Dimension.PURPOSE, Dimension.MODEL, Dimension.AGENT)


def cost(
    *,
    first: Annotated[str | None, typer.Option("--from", metavar="YYYY-MM-DD", help="From this night on …")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="… up to this one.")] = None,
    by: Annotated[
        list[Dimension] | None,
        typer.Option(metavar="|".join(Dimension), help="Group the sums by this; may be given more than once."),
    ] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the costs of language models: requests, tokens and US dollars, by night, purpose, model and agent.

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
        limits = {"first": begins, "last": ends, "agent_ids": (agent,) if agent else ()}
        costs, total = (costs_of(database, each, **limits) for each in (chosen, []))
    finally:
        database.close()
    if as_json:
        show_json({"by": chosen, "costs": costs, "total": total[0] if total else None})
    elif not total:
        show("no language model was asked; nothing was spent")
    else:
        show(table_of(costs, chosen))
        show(f"\n[bold]{cost_in_words(total[0])}[/bold]")


def table_of(costs: Sequence[Cost], by: Sequence[Dimension]) -> Table:
    """Return the table: a column for each dimension, and for each figure that is not empty in every row."""
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
    filled = {heading: column for heading, column in figures.items() if any(column)}
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for each in shown:
        table.add_column(each, overflow="fold", no_wrap=each not in LONG)
    for heading in filled:
        table.add_column(heading, justify="right", no_wrap=True)
    for cost, row in zip(costs, zip(*filled.values(), strict=True), strict=True):
        table.add_row(*(escaped(named(cost, each)) for each in shown), *row)
    return table


def named(cost: Cost, dimension: Dimension) -> str:
    """Return the value of a row in one dimension, `-` for none."""
    value = cost.agent_id if dimension is Dimension.AGENT else getattr(cost, dimension)
    return "-" if value is None else str(value)
