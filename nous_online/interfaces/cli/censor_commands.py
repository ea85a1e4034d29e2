"""Commands about censors: check an action, add a censor, list them, report a false alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nous_online.core.details import CensorDetails, CheckDetails
from nous_online.core.validation import checked_id
from nous_online.interfaces.cli.input import said
from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.options import with_options
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.core.domain import Censor
    from nous_online.memories.checking import Activation

COLOURS = {"warn": "yellow", "block": "red", "absolute": "bold red"}
censor = typer.Typer(name="censor", help="What the agent was taught to beware of.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("check", rich_help_panel="Memories")(check)
    app.add_typer(censor, rich_help_panel="Memories")


@with_options(CheckDetails)
def check(
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION", help="What is about to be done: a command, or in words; `-` reads standard input."
        ),
    ],
    *,
    look_only: Annotated[bool, typer.Option("--look-only", help="Count and announce nothing.", metavar="")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Check an action against the agent's censors, the firmest first.

    The exit code is 0 when nothing speaks against it or something only warns, and 1 when something blocks it or the
    check itself failed. What is alike in meaning alone only warns. Each censor that fires is counted; a warning that
    fired often enough blocks.

    [bold]Examples[/bold]

    [dim]$[/dim] nous check "git push origin main"

    [dim]$[/dim] nous check "$COMMAND" --agent aria && eval "$COMMAND"
    """
    with opened(agent) as heart:
        checked = heart.check_censors(said(action), is_recorded=not look_only, **told)
    if as_json:
        show_json({"is_blocked": not checked.is_allowed, "activations": checked.activations})
    elif not len(checked):
        show_note("nothing speaks against it")
    else:
        for each in checked:
            show_censor(each.severity, each.censor.trigger, each.message)
            show(f"[dim]{match_line(each)}[/dim]")
    if not checked.is_allowed:
        raise typer.Exit(1)


def match_line(each: Activation) -> str:
    """Return how a censor was set off, and how to say that it was wrong."""
    how = each.match if each.similarity is None else f"{each.match} {each.similarity:.2f}"
    wrong = f"; if it is wrong: nous censor report {each.censor.id} --activation {each.id}" if each.id else ""
    return f"matched {how}{wrong}"


@censor.command("add")
@with_options(CensorDetails)
def add(
    trigger: Annotated[str, typer.Argument(metavar="TRIGGER", help="What sets it off.")],
    reason: Annotated[str, typer.Argument(metavar="REASON", help="Why not, or what to do instead.")],
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
    **told: Any,
) -> None:
    """Teach the agent to beware of something; what it knows already is only made stricter.

    [bold]Examples[/bold]

    [dim]$[/dim] nous censor add "pushing directly to main branch" "use a feature branch" --severity block

    [dim]$[/dim] nous censor add "DROP TABLE *" "write a migration" --literal
    """
    with opened(agent) as heart:
        added = heart.add_censor(trigger, reason, scope="project" if told["project_id"] else "private", **told)
    if as_json:
        show_json(added)
        return
    show_censor(added.severity, added.trigger, added.reason)
    show(f"[dim]{added.id}[/dim]")


@censor.command("list")
def list_all(*, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """List the agent's censors, the firmest first.

    [bold]Examples[/bold]

    [dim]$[/dim] nous censor list --json
    """
    with opened(agent) as heart:
        found = heart.list_censors()
    if as_json:
        show_json({"censors": found})
        return
    for each in found:
        show_censor(each.severity, each.trigger, each.reason)
        show(f"[dim]{each.id}  fired {counts(each)}[/dim]")
    if not found:
        show_note("no censors yet; add one: nous censor add")


@censor.command("report")
def report(
    censor_id: Annotated[str, typer.Argument(metavar="CENSOR", help="The id of the censor.")],
    *,
    activation: Annotated[
        str | None, typer.Option(metavar="ID", help="Which activation; the latest by default.")
    ] = None,
    action: Annotated[str | None, typer.Option(help="Or the action it should let pass.")] = None,
    note: Annotated[str | None, typer.Option(help="Why it was wrong.")] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that a censor was wrong: that action, and its like, set it off no more.

    You speak as a person here, so it also opens what blocks where a censor is absolute or trusted more than the agent.

    [bold]Examples[/bold]

    [dim]$[/dim] nous censor report 0199… --note "the repository is a sandbox"

    [dim]$[/dim] nous censor report 0199… --action "git push origin gh-pages"
    """
    with opened(agent) as heart:
        reported = heart.report_false_positive(
            checked_id("censor", censor_id), activation_id=activation, action=action, note=note, source_kind="user"
        )
    if as_json:
        show_json(reported)
        return
    show(f"[{COLOURS[reported.severity]}]{reported.severity}[/]  {escaped(reported.trigger)}")
    show(f"[dim]lets pass: {escaped(str(reported.exceptions[-1]['action']))}[/dim]")


def counts(each: Censor) -> str:
    """Return how often a censor fired, and how often wrongly."""
    wrongly = f", {each.false_positive_count:,} wrongly" if each.false_positive_count else ""
    return f"{each.activation_count:,}{wrongly}"


def show_censor(severity: str, trigger: str, reason: str) -> None:
    """Print how firm a censor is, what sets it off and why."""
    show(f"[{COLOURS[severity]}]{severity}[/]  {escaped(trigger)}: {escaped(reason)}")
