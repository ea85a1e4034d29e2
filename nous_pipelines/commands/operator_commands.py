"""The commands of an operator: undo, purge, reembed, policy, batches, cost."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from typer import Argument, Option

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import (
    AgentOption,
    Ended,
    OneOfAllOption,
    OneOrAllOption,
    agent_if_set,
    by_person,
    escaped,
    open_database,
    open_heart,
    show,
    show_note,
    show_progress,
    waiting,
)
from nous_online.interfaces.cli.short_ids import brief
from nous_pipelines.night_policy import NightPolicy, meanings
from nous_pipelines.nights import nights_between, parse_night
from nous_pipelines.reports.costs import Cost, Dimension, cost_in_words, costs_of, short

if TYPE_CHECKING:
    from rich.table import Table

    from nous_online.database.connection import Database
    from nous_online.memories.source_undo import SourceUndone
    from nous_pipelines.batches.batch_rows import BatchRow
    from nous_pipelines.batches.collecting import Collected
    from nous_pipelines.batches.second_judge import SecondJudge
    from nous_pipelines.plan.undo import Undone

ALONE = "--memory and --source stand alone: leave out --night, --from, --to, --proposal, --kind and the other"
SHOWN_AGENTS = 10
NightOption = Annotated[
    str | None, Option("--night", "--date", metavar="YYYY-MM-DD", help="Which night; yesterday's by default.")
]


def known_kinds(incomplete: str) -> list[str]:
    from nous_pipelines.phases.phase_table import PRECEDENCE

    return [kind for kind in PRECEDENCE if kind.startswith(incomplete)]


@by_person
def undo(  # noqa: PLR0913 (one parameter for each option)
    changed: Annotated[
        UUID | None, Argument(metavar="[ID]", help="The same as --memory ID; or a contradiction: the ruling on it.")
    ] = None,
    *,
    night: Annotated[
        str | None, Option("--night", "--date", metavar="YYYY-MM-DD", help="All that this night changed.")
    ] = None,
    first: Annotated[str | None, Option("--from", metavar="YYYY-MM-DD", help="All nights from this one on …")] = None,
    last: Annotated[str | None, Option("--to", metavar="YYYY-MM-DD", help="… to this one, newest first.")] = None,
    proposal: Annotated[UUID | None, Option(metavar="ID", help="One proposal, as `nous report` names it.")] = None,
    kind: Annotated[str | None, Option(help="One kind of proposal, such as merge.", autocompletion=known_kinds)] = None,
    memory: Annotated[
        UUID | None, Option(metavar="ID", help="A memory: its latest change, also that it was learned.")
    ] = None,
    source: Annotated[
        str | None, Option(metavar="NAME", help="All that one source said, or that came with an import.")
    ] = None,
    reason: Annotated[str, Option(help="Why; kept with the event.")] = "taken back by the operator",
    agent: OneOrAllOption = None,
) -> object:
    """Take back what a night changed: every row as it was, another event for each. Refused where others built on it.

    Changes that were taken back are not proposed again. A range of nights ends at the first night with a refusal.
    Nights are taken back for all agents unless --agent or NOUS_AGENT names one, which the answer says; a memory or a
    source is of that one.

    $ nous undo --night 2026-11-20
    $ nous undo --from 2026-11-01 --to 2026-11-20 --agent aria
    $ nous undo --proposal 3f0c… --reason "two different teams"
    $ nous undo $ID --reason "that was a joke"
    $ nous undo --source wiki.example.org --reason "the page was forged"
    """
    if changed is not None and memory is not None:
        raise InvalidInput(f"both {changed} and --memory {memory} are given; name one memory")
    memory = memory or changed
    if memory is not None or source is not None:
        if night or first or last or proposal or kind or (memory and source):
            raise InvalidInput(ALONE)
        return undo_source(str(source), agent, reason) if memory is None else undo_memory(memory, agent, reason)
    if first or last:
        return undo_nights(range_of(first, last, night or proposal), agent_if_set(agent), kind, reason)
    if not (night or proposal):
        raise InvalidInput("name what to take back: --night YYYY-MM-DD, --proposal ID, --memory ID or --source NAME")
    whose = agent if proposal else agent_if_set(agent)  # an id says whose it is, but for copies
    return undo_proposals(whose, parse_night(night) if night else None, kind, proposal, reason)


def undo_memory(memory_id: UUID, agent: str | None, reason: str) -> object:
    with open_heart(agent) as heart:
        event = heart.undo(memory_id, reason=reason)
        undone, *_ = history = heart.history(event.memory_id)
        is_archived = heart.get(event.memory_id).state == "archived"
    history = [each for each in history if each.recorded_at != undone.recorded_at]  # as it was before
    show(f"[green]taken back[/green]  {event.action}  [dim]{escaped(brief(event.reason))}[/dim]")
    # What was ruled or found in the same transaction is taken back with it.
    for each in (each for each in history if each.recorded_at == event.recorded_at and "contradiction" in each.after):
        show_note(f"asked again: nous resolve {brief(each.after['contradiction'])}")
    if (last := history[0]).action == "contradicted" and last.recorded_at != event.recorded_at:
        back = f"; nous restore {brief(memory_id)} brings the memory back" if is_archived else ""
        show_note(f"its last change was {last.action} ({escaped(last.reason)}), which stays: undo passes over it{back}")
    return event


def undo_source(source: str, agent: str | None, reason: str) -> object:
    with open_heart(agent) as heart:
        result = heart.undo_source(source, reason=reason)
    count = len(result.undone)
    return show_undone(f"{count} {'memory' if count == 1 else 'memories'} of {escaped(source)}", result)


def undo_proposals(
    agent: str | None, night: date | None, kind: str | None, proposal: UUID | None, reason: str
) -> object:
    from nous_pipelines.plan.apply import find_agents
    from nous_pipelines.plan.undo import Selection, undo

    selection = Selection(agent, night, kind, proposal)
    with open_database("nous_night") as database:
        find_agents(database, [agent] if agent else [])
        result = undo(database, selection, reason=reason)
    return show_undone(proposals_in_words(result), result, agents=result.agents)


def proposals_in_words(result: Undone) -> str:
    """Return how many proposals were undone, and of whom: `3 proposals of aria, ben`."""
    count, agents = len(result.undone), result.agents
    more = f" and {len(agents) - SHOWN_AGENTS} more" if len(agents) > SHOWN_AGENTS else ""
    whose = f" of {escaped(', '.join(agents[:SHOWN_AGENTS]))}{more}" if agents else ""
    return f"{count} {'proposal' if count == 1 else 'proposals'}{whose}"


def range_of(first: str | None, last: str | None, other: object) -> list[date]:
    """Return the nights of a range, newest first; raise `InvalidInput` without both ends, or with another selection."""
    if first is None or last is None or other:
        raise InvalidInput("a range needs both --from and --to, and neither --night nor --proposal")
    return list(nights_between(parse_night(first), parse_night(last)))[::-1]


def undo_nights(nights: Sequence[date], agent: str | None, kind: str | None, reason: str) -> object:
    """Undo nights as far as possible and print the result of each; the command fails if a proposal was refused."""
    from nous_pipelines.plan.apply import find_agents
    from nous_pipelines.plan.undo import Selection, undo_range

    with open_database("nous_night") as database:
        find_agents(database, [agent] if agent else [])
        results = undo_range(database, Selection(agent_id=agent, kind=kind), nights, reason=reason)
    is_refused = bool(results) and bool([*results.values()][-1].refused)
    refused = {str(each): why for result in results.values() for each, why in result.refused.items()}
    for night, result in results.items():
        show(f"[green]taken back[/green]  night {night}: {proposals_in_words(result)}")
    show_refused(refused)
    if is_refused:
        show(f"[red]ended at night {[*results][-1]}[/red]: those before it stand as they were")
    undone = [{"night": night, "undone": result.undone, "agents": result.agents} for night, result in results.items()]
    return Ended(1 if is_refused else 0, {"nights": undone, "refused": refused})


def show_refused(refused: Mapping[Any, str]) -> None:
    for each, why in refused.items():
        show(f"[red]refused[/red]  {each}: {escaped(why)}")


def show_undone(what: str, result: Undone | SourceUndone, **answer: object) -> object:
    """Print what was undone and what was refused; the command fails if anything was."""
    show(f"[green]taken back[/green]  {what}")
    refused = {str(each): why for each, why in result.refused.items()}
    show_refused(refused)
    return Ended(1 if refused else 0, {"undone": result.undone, "refused": refused, **answer})


WORDS = {
    "cold_texts": "texts of condensed episodes",
    "outbox": "announcements that everybody has heard",
    "completions": "records of completed episodes",
    "requests": "idempotency keys",
}


def purge(
    *,
    dry_run: Annotated[bool, Option(help="Say how much would be deleted; change nothing.")] = False,
    policy: Annotated[
        list[str] | None, Option(metavar="FIELD=DAYS", help="Override a policy field, such as outbox_kept_days.")
    ] = None,
) -> object:
    """Delete what the policy keeps no longer: old texts of condensed episodes, announcements, records, keys.

    Never a memory, an event or a proposal. The texts of condensed episodes stay for ever unless a policy says
    otherwise: the agent's own, which comes first, or --policy cold_texts_kept_days=DAYS. What is purged is gone.

    $ nous purge --dry-run
    $ nous purge --policy cold_texts_kept_days=730 --json
    """
    from nous_pipelines.orchestration.retention import purge as delete

    chosen = NightPolicy().overridden(numbers(policy or []))
    with open_database("nous_purge") as database:
        purged = delete(database, chosen, now=datetime.now(UTC), is_dry_run=dry_run)
    for name, words in WORDS.items():
        show(f"{getattr(purged, name):>8,}  {words}")
    show_note("would be deleted; nothing was" if purged.is_dry_run else "deleted")
    return purged


# --- reembed ---


def reembed(
    *,
    model: Annotated[
        str, Option("--to", metavar="MODEL", help="multilingual-e5-small, minilm, or one of your server.")
    ],
    dimensions: Annotated[int | None, Option(help="Its width; NOUS_EMBEDDING_DIMENSIONS unless named here.")] = None,
    dry_run: Annotated[bool, Option(help="Say how much there is to do; change nothing.")] = False,
    agent: OneOfAllOption = None,
) -> object:
    """Move memories to another embedding model while agents go on recalling and learning.

    The old vectors serve until all new ones are there, and are kept: moving back to them embeds nothing anew.
    Without --agent it is for all agents. Interrupted, it goes on where it was. The built-in model is minilm-l6-v2-int8.

    $ nous reembed --to text-embedding-3-small --dry-run
    $ nous reembed --to minilm-l6-v2-int8 --agent aria
    """
    from nous_online.database.connection import register_space
    from nous_pipelines.orchestration.reembedding import all_due, embedder_named
    from nous_pipelines.orchestration.reembedding import reembed as move
    from nous_pipelines.plan.apply import find_agents

    embedder = embedder_named(model, dimensions)
    space = embedder.space
    with open_database("nous_night") as database:
        agents = find_agents(database, [agent] if agent else [])
        left = all_due(database, agents, space.id)
        if dry_run:
            lines = [
                f"{escaped(name)}: {each.memories:,} memories to move, {each.missing:,} of them still to be embedded"
                for name, each in left.items()
            ]
            return show_moved(lines, space.id, due=left)
        total, done = sum(each.missing for each in left.values()), 0

        def on_progress(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            if done // 2000 > before // 2000:
                show_progress(f"  {done:,} of {total:,} embedded")

        register_space(database, space, is_indexed=False)
        with waiting(f"embedding {total:,} memories for {space.id} …"):
            moves = move(database, embedder, agents, on_progress=on_progress)
    done_to = "[green]moved[/green]  {}: {:,} memories; learning waited {:.1f} s"
    lines = [done_to.format(escaped(each.agent_id), sum(each.moved.values()), each.seconds) for each in moves]
    return show_moved(lines, space.id, embedded=done, moves=moves)


def show_moved(lines: Sequence[str], space_id: str, **answer: object) -> object:
    """Print what was or would be moved to an embedding space, and return that as the answer of the command."""
    for line in lines or [f"everything is in {space_id} already"]:
        show(line)
    return {"space": space_id, **answer}


# --- policy ---


def policy(
    assignments: Annotated[
        list[str] | None, Argument(metavar="[FIELD=NUMBER]...", help="Fields to set for this agent's nights.")
    ] = None,
    *,
    reset: Annotated[bool, Option(help="Go back to the default, but for what is set now.")] = False,
    agent: AgentOption = None,
) -> object:
    """Show what the nights do for an agent, every field with its default, or set some of them.

    Changes count from the next snapshot on; `nous night --policy` overrides them for a single run.

    $ nous policy --agent aria
    $ nous policy --agent aria unused_after_days=180 rank_step=0.1
    $ nous policy --agent aria --reset
    """
    from rich.table import Table

    from nous_online.core.settings import settings
    from nous_pipelines.plan.apply import own_policy, set_policy

    name, values = agent or settings().agent, numbers(assignments or [])
    with open_database("nous_night") as database:
        is_change = bool(values) or reset
        own = set_policy(database, name, values, is_reset=reset) if is_change else own_policy(database, name)
    usual = NightPolicy().as_dict()
    fields = {
        field: {"value": value, "default": usual[field], "meaning": meanings()[field]}
        for field, value in NightPolicy().overridden(own).as_dict().items()
    }
    table = Table("field", "value", "default", "what it means", title=f"the nights of {escaped(name)}", box=None)
    shown = {field: row for field, row in fields.items() if not values or field in values}
    for field, row in shown.items():
        style = "bold" if field in own else None
        table.add_row(field, f"{row['value']:g}", f"{row['default']:g}", row["meaning"], style=style)
    show(table)
    show_note(f"{len(own)} of {len(fields)} fields are {name}'s own")
    return {"agent_id": name, "own": own, "fields": fields}


def numbers(assignments: list[str]) -> dict[str, float]:
    """Parse assignments such as unused_after_days=180; raise `InvalidInput` for anything else."""
    values: dict[str, float] = {}
    for assignment in assignments:
        name, _, number = assignment.partition("=")
        try:
            values[name] = float(number)
        except ValueError as error:
            raise InvalidInput(f"{assignment!r} is not of the form FIELD=NUMBER; `nous policy` lists them") from error
    return values


# --- batches ---


SHOWN = 20
LOOK_S = 600.0
LOOK_EVERY_S = 30.0
MOST_TROUBLED = 10
"""Consecutive looks with a problem, which may be temporary, after which waiting ends."""
SHOWN_ERROR = 60  # characters


def batches(
    *,
    collect: Annotated[bool, Option(help="Import the results of batches that have ended.")] = False,
    wait: Annotated[bool, Option(help="With --collect: look again until nothing is open.")] = False,
    agent: OneOfAllOption = None,
) -> object:
    """Show the batches of questions to Claude: those in progress, and the latest others with their results.

    A night sends pairs that the offline judge may get wrong; the answers come within a day, mostly within the hour, and
    count in the next night. While the daemon runs it imports them by itself. Without a key nothing is sent.

    $ nous batches
    $ nous batches --collect --wait
    """
    from nous_pipelines.batches.batch_rows import recent
    from nous_pipelines.plan.apply import find_agents

    if wait and not collect:
        raise InvalidInput("--wait says how long to collect: write --collect --wait")
    agent_ids = [agent] if agent else []
    with open_database("nous_night") as database:
        find_agents(database, agent_ids)
        collected = collect_batches(database, agent_ids, waits=wait) if collect else None
        rows = recent(database, agent_ids, limit=SHOWN)
    show_rows(rows)
    if collected is not None:
        show_note(collected.words)
    is_troubled = collected is not None and bool(collected.troubles)
    return Ended(1 if is_troubled else 0, {"batches": [as_plain(row) for row in rows], "collected": collected})


def collect_batches(database: Database, agent_ids: Sequence[str], *, waits: bool) -> Collected:
    """Collect ended batches; with `waits` look again until none is open or a problem persists."""
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
                show_progress("; ".join(done.troubles))
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
    names = ("id", "agent_id", "night", "model", "state", "batch_id", "pair_count", "request_count", "failed_count")
    values = {name: getattr(row, name) for name in (*names, "estimated_usd", "cost_usd", "error", "created_at")}
    return {**values, "is_open": row.is_open}


def show_rows(rows: Sequence[BatchRow]) -> None:
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
    first: Annotated[str | None, Option("--from", metavar="YYYY-MM-DD", help="From this night on …")] = None,
    last: Annotated[str | None, Option("--to", metavar="YYYY-MM-DD", help="… up to this one.")] = None,
    by: Annotated[
        list[Dimension] | None,
        Option(metavar="|".join(Dimension), help="Group the sums by this; may be given more than once."),
    ] = None,
    agent: OneOfAllOption = None,
) -> object:
    """Show the costs of language models: requests, tokens and US dollars, by night, purpose, model and agent.

    A request outside of a night counts for the day it was made on. Prices are those at the time of the request.

    $ nous cost
    $ nous cost --from 2026-11-01 --by purpose --by agent
    $ nous cost --agent aria --json | jq .total.usd
    """
    from nous_pipelines.plan.apply import find_agents

    begins, ends = (parse_night(night) if night else None for night in (first, last))
    if begins and ends and begins > ends:
        raise InvalidInput(f"--from {begins} is after --to {ends}; no night lies between them")
    chosen, agent_ids = by or USUAL, [agent] if agent else []
    with open_database("nous_night") as database:
        find_agents(database, agent_ids)
        limits = {"first": begins, "last": ends, "agent_ids": agent_ids}
        costs, total = (costs_of(database, each, **limits) for each in (chosen, []))
    if total:
        show(table_of(costs, chosen))
        show(f"\n[bold]{cost_in_words(total[0])}[/bold]")
    else:
        show("no language model was asked; nothing was spent")
    return {"by": chosen, "costs": costs, "total": total[0] if total else None}


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
        named = (cost.agent_id if each is Dimension.AGENT else getattr(cost, each) for each in shown)
        table.add_row(*("-" if value is None else escaped(str(value)) for value in named), *row)
    return table
