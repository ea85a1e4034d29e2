"""Commands about what an agent should see now: context, predict, and the feedback on what it was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast
from uuid import UUID

import typer

from nous_online.core.details import (
    AskedLimit,
    AskingProject,
    AskingSession,
    AskingUser,
    AssemblyDetails,
    SignalDetails,
)
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import rows_of
from nous_online.interfaces.cli.input import said
from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.options import with_options
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.context.context_answer import Context


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (context, predict, feedback):
        app.command(rich_help_panel="Memories")(command)


@with_options(AssemblyDetails, SignalDetails)
def context(
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="What it is about; `-` reads the standard input.")
    ] = None,
    *,
    why: Annotated[bool, typer.Option("--why", help="Tell of each line why it is there.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Assemble what the agent should see now, within a budget of tokens, ready to be put before a model.

    The text goes to standard output, what it took to standard error.

    [bold]Examples[/bold]

    [dim]$[/dim] nous context "how do we deploy?" --budget 2000

    [dim]$[/dim] nous context --file src/auth/login.py --error "TokenExpired: …" --frame debug --why
    """
    signals = signals_of(told)
    with opened(agent) as heart:
        assembled = heart.assemble_context(query=None if query is None else said(query), signals=signals, **told)
    if as_json:
        show_json(assembled)
    else:
        show_context(assembled, is_explained=why)


@with_options(
    SignalDetails,
    defaults={"limit": 10},
    session_id=AskingSession,
    limit=AskedLimit,
    user_id=AskingUser,
    project_id=AskingProject,
)
def predict(
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Predict which memories this work will want, from what was used in work like it, the likeliest first.

    [bold]Examples[/bold]

    [dim]$[/dim] nous predict --file src/auth/login.py --branch fix/tokens

    [dim]$[/dim] nous predict --error "TokenExpired: …" --with ada --json | jq '.memories[0].reasons'
    """
    signals = signals_of(told)
    with opened(agent) as heart:
        prediction = heart.predict(signals=signals, **told)
    if as_json:
        show_json(prediction)
        return
    for each in prediction.memories:
        show(f"[cyan]{each.confidence:.0%}[/cyan]  {each.kind}  {each.memory_id}")
        show(f"     [dim]{escaped('; '.join(each.reasons))}[/dim]")
    if not prediction.memories:
        show_note("nothing was used in work like this yet")


def signals_of(told: dict[str, Any]) -> SignalDetails:
    """Take the signals out of what a command was told, and return them."""
    return cast("SignalDetails", {name: told.pop(name) for name in rows_of(SignalDetails)})


def feedback(
    recall_id: Annotated[UUID, typer.Argument(metavar="ID", help="A recall or context, as either names itself.")],
    *,
    cite: Annotated[
        list[UUID] | None, typer.Option(metavar="MEMORY", help="What was used; may be given several times.")
    ] = None,
    ignore: Annotated[
        list[UUID] | None, typer.Option(metavar="MEMORY", help="What was of no use; may be given several times.")
    ] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what of a recall or a context was used: with the nights what is cited rises, what is ignored sinks.

    [bold]Examples[/bold]

    [dim]$[/dim] nous feedback $RECALL --cite $FACT --cite $EPISODE

    [dim]$[/dim] nous feedback $RECALL --ignore $FACT
    """
    if not (cite or ignore):
        raise InvalidInput(
            "the command says nothing of the recall: name what was used with --cite, what not with --ignore"
        )
    with opened(agent) as heart:
        cited = heart.cite(recall_id, cite) if cite else 0
        ignored = heart.ignore(recall_id, ignore) if ignore else 0
    if as_json:
        show_json({"recall_id": recall_id, "cited": cited, "ignored": ignored})
    else:
        show(f"[green]noted[/green]  {cited:,} cited, {ignored:,} ignored")


def show_context(assembled: Context, *, is_explained: bool) -> None:
    """Print a context, or line by line why it is so, and on standard error what it took."""
    if is_explained:
        show_reasons(assembled)
    else:
        show(escaped(assembled.text) or "[dim]nothing is known that matters now[/dim]")
    show_tokens(assembled)


def show_reasons(assembled: Context) -> None:
    """Print each line of a context with its tier, level and tokens, and below it why it is there."""
    for line in assembled.lines:
        show(f"[bold]{line.tier}[/bold]  {line.kind}, {line.level}, {line.tokens:,} tokens  {escaped(line.text)}")
        show(f"    [dim]{escaped(line.reason)}[/dim]")


def show_tokens(assembled: Context) -> None:
    """Tell on standard error how many tokens a context takes, and where feedback on it goes."""
    tiers = ", ".join(f"{tier} {count:,}" for tier, count in assembled.tokens.items() if count)
    left_out = sum(assembled.left_out.values())
    dropped = f"; {left_out:,} lines found no room" if left_out else ""
    show_note(f"{assembled.token_count:,} of {assembled.budget:,} tokens ({tiers or 'none'}){dropped}")
    if assembled.is_by_words:
        show_note("the embedder failed, so only words were compared")
    if assembled.lines:
        show_note(f"say what was used: nous feedback {assembled.recall_id} --cite ID")
