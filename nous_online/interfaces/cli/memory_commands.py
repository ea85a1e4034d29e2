"""Commands about memories: learn, recall, status."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nous_online.core.details import FactDetails, RecallDetails, Replaces
from nous_online.interfaces.cli.input import said
from nous_online.interfaces.cli.options import with_options
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.heart import Heart
    from nous_online.memories.status import Nights, WaitingWork
    from nous_online.recall.recalling import Recall


INDENT = " " * 11
MOST_LINES, LEAST_COLUMNS = 3, 60


UserOption = Annotated[str | None, typer.Option("--user", help="For whom; what is of other users stays out.")]
ProjectOption = Annotated[str | None, typer.Option("--project", help="In which project.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in {"learn": learn, "recall": recall, "status": status}.items():
        app.command(name, rich_help_panel="Memories")(command)


def opened(agent: str | None) -> Heart:
    """Open the memory of the agent named, or of the one NOUS_AGENT names; what is due is left to `nous worker`."""
    from nous_online.core.settings import settings
    from nous_online.heart import Heart

    return Heart.open(agent or settings().agent, works_in_background=False)


@with_options(FactDetails, replaces=Replaces)
def learn(
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="What is to be remembered: one statement; `-` reads it from standard input."
        ),
    ],
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Learn one fact: confirm what says the same, supersede what it updates, or store it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous learn "The staging database is Postgres 18" --subject staging --source "chat with Ada"

    [dim]$[/dim] nous learn "Deploys need two approvals" --frame decision --tag process --json

    [dim]$[/dim] nous learn "Ana lives in Paris" --key ana/home

    [dim]$[/dim] git log -1 --format=%B | nous learn - --source "git log"
    """
    with opened(agent) as heart:
        learned = heart.learn(said(text), **told)
    if as_json:
        show_json(learned)
        return
    show(f"[green]{learned.action}[/green]  {escaped(learned.memory.content)}")
    show(f"[dim]{learned.memory.id}  {escaped(learned.reason)}[/dim]")
    if learned.hidden:
        show(f"[yellow]hidden[/yellow]  {learned.hidden} of what looks like credentials")
    if learned.action == "superseded" and learned.match is not None:
        old = learned.match.fact
        show(f"[yellow]was[/yellow]  {escaped(old.content)}  [dim]take it back: nous undo --memory {old.id}[/dim]")
    for each in learned.contradicts:
        known = escaped(each.fact.content)
        show(
            f"[yellow]contradicts[/yellow]  {known}  [dim]both stay; if it is replaced: --replaces {each.fact.id}[/dim]"
        )
    opposed = {each.fact.id for each in learned.contradicts}
    for each in (near for near in learned.near if near.suggestion and near.fact.id not in opposed):
        show(f"[dim]near  {escaped(each.fact.content)}  if it is replaced: --replaces {each.fact.id}[/dim]")


@with_options(RecallDetails, defaults={"detail": "summary"})
def recall(
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="What to look for, as a question or in words; `-` reads standard input."),
    ],
    *,
    full: Annotated[bool, typer.Option("--full", help="Show the whole text of each, however long.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Recall what matters for a question, best first: of each memory its summary, in at most three lines.

    [bold]Examples[/bold]

    [dim]$[/dim] nous recall "which database does staging use?" --limit 3

    [dim]$[/dim] nous recall "who approves deploys" --as-of 2026-05-01T00:00:00Z --json
    """
    told["detail"] = "full" if full else told["detail"]
    with opened(agent) as heart:
        found = heart.recall(said(query), **told)
    if as_json:
        memories = [recalled_json(each) for each in found]
        told_of = {"is_confident": found.is_confident, "is_by_words": found.is_by_words}
        show_json({"recall_id": found.id, **told_of, "memories": memories})
        return
    show_answers(found, is_full=full)


def show_answers(found: Recall, *, is_full: bool) -> None:
    """Print the answers of a recall, each with its score and its id."""
    if found.is_by_words:
        show_note("the embedder failed, so only words were compared")
    if not found:
        show("nothing was found")
    elif not found.is_confident:
        show("nothing clearly answers this; the nearest are:")
    for place, each in enumerate(found, start=1):
        shown = escaped(few_lines(each.text, is_full=is_full))
        contested = f"  contradicted by {', '.join(map(str, each.contradicted_by))}" if each.contradicted_by else ""
        show(f"[bold]{place:>2}[/bold]  [cyan]{each.score:.3f}[/cyan]  {shown}")
        said_at = f"{each.memory.said_at:%Y-%m-%d %H:%M}".removesuffix(" 00:00")  # of many only the day is known
        show(f"            [dim]{each.id}  said {said_at}{contested}[/dim]")
    if found:
        show_note(f"say what was used: nous feedback {found.id} --cite ID")


def few_lines(text: str, *, is_full: bool = False) -> str:
    """Return a text in at most three lines of a terminal, indented under its score, cut short where it has more."""
    if is_full:
        return text
    columns = max(LEAST_COLUMNS, shutil.get_terminal_size().columns) - len(INDENT)
    lines = textwrap.wrap(" ".join(text.split()), columns, max_lines=MOST_LINES, placeholder=" … (--full)")
    return f"\n{INDENT}".join(lines)


def status(*, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """Count what an agent remembers.

    [bold]Examples[/bold]

    [dim]$[/dim] nous status --agent aria

    [dim]$[/dim] nous status --json | jq .memories.fact.active
    """
    from nous_online.core.settings import settings
    from nous_online.core.validation import checked_agent
    from nous_online.database.connection import Database, open_url
    from nous_online.memories.status import status_of

    name = checked_agent(agent or settings().agent)
    database = Database(open_url())
    try:
        with database.transaction(name) as connection:
            found = status_of(connection, name)
    finally:
        database.close()
    if as_json:
        show_json(found)
        return
    show(f"[bold]{escaped(name)}[/bold]")
    for kind, states in found.memories.items():
        counts = ", ".join(f"{count:,} {state}" for state, count in states.items())
        show(f"{kind:<10} {counts}")
    show(f"{'recalls':<10} {found.recalls:,}")
    for line in waiting_lines(found.waiting):
        show(line)
    show(f"{'nights':<10} {night_line(found.nights)}")
    if not found.memories:
        show_note("no memories yet; teach it some with `nous learn` or `nous import`")


def night_line(nights: Nights) -> str:
    """Return which night was the last, and what to do about those that were missed."""
    last = f"the last was {nights.last}" if nights.last else "none yet"
    if nights.missed_from is None:
        return last
    waits = f"nights have been missed since {nights.missed_from} (changes that wait: {nights.missed_changes:,})"
    return f"{last}; {waits}: run `nous night --backfill`, or `nous service install` for every night"


def waiting_lines(waiting: WaitingWork) -> list[str]:
    """Return what is left to whoever works, a line each; nothing where nothing is."""
    lines = [f"{'waiting':<10} {waiting.episodes:,} closed episodes to complete"] if waiting.episodes else []
    if waiting.failed_episodes:
        lines.append(
            f"{'':<10} {waiting.failed_episodes:,} failed and are tried again: {escaped(waiting.last_error or '')}"
        )
    if waiting.set_aside:
        ids = " ".join(map(str, waiting.set_aside_ids))
        lines.append(f"{'set aside':<10} {waiting.set_aside:,} closed episodes that failed too often: {ids}")
    lines += [f"{'waiting':<10} {count:,} events for {escaped(consumer)}" for consumer, count in waiting.events.items()]
    return lines


def recalled_json(recalled: Any) -> dict[str, Any]:
    """Return one answer of a recall for machines: the memory, its score and the parts of it, what contradicts it."""
    told = {"score": recalled.score, "memory": recalled.memory, "parts": recalled.parts}
    return {**told, "put_before": recalled.put_before, "contradicted_by": recalled.contradicted_by}
