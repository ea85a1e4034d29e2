"""Commands about what an agent does now: context, predict, feedback, censors, and how things are done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast
from uuid import UUID

from typer import Argument, Option

from nous_online.core.details import (
    AskedLimit,
    AskingSession,
    AskingUser,
    AssemblyDetails,
    CensorDetails,
    CheckDetails,
    SignalDetails,
)
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import rows_of
from nous_online.interfaces.cli.output import (
    AgentOption,
    Ended,
    ProjectOption,
    ReadProject,
    UserOption,
    escaped,
    open_heart,
    project_to_read,
    show,
    show_note,
    text_or_stdin,
    with_options,
)
from nous_online.interfaces.cli.short_ids import brief


@with_options(AssemblyDetails, SignalDetails, project_id=ReadProject)
def context(
    query: Annotated[
        str | None, Argument(metavar="[QUERY]", help="What it is about; `-` reads the standard input.")
    ] = None,
    *,
    why: Annotated[bool, Option(help="Tell of each line why it is there.")] = False,
    agent: AgentOption = None,
    **details: Any,
) -> object:
    """Assemble what the agent should see now, within a budget of tokens, ready to be put before a model.

    The text goes to standard output, what it took to standard error.

    $ nous context "how do we deploy?" --budget 2000
    $ nous context --file src/auth/login.py --error "TokenExpired: …" --frame debug --why
    """
    signals = pop_signals(details)
    with open_heart(agent) as heart:
        details["project_id"] = project_to_read(heart, details["project_id"])
        assembled = heart.assemble_context(
            query=None if query is None else text_or_stdin(query), signals=signals, **details
        )
    if why:
        for line in assembled.lines:
            show(f"[bold]{line.tier}[/bold]  {line.kind}, {line.level}, {line.tokens:,} tokens  {escaped(line.text)}")
            show(f"    [dim]{escaped(line.reason)}[/dim]")
    else:
        show(escaped(assembled.text) or "[dim]nothing is known that matters now[/dim]")
    tiers = ", ".join(f"{tier} {count:,}" for tier, count in assembled.tokens.items() if count)
    left_out = sum(assembled.left_out.values())
    dropped = f"; {left_out:,} lines found no room" if left_out else ""
    show_note(f"{assembled.token_count:,} of {assembled.budget:,} tokens ({tiers or 'none'}){dropped}")
    if assembled.is_by_words:
        show_note("the embedder failed, so only words were compared")
    if assembled.lines:
        show_note(f"say what was used: nous feedback {brief(assembled.recall_id)} --cite ID")
    return {**vars(assembled), "project_id": details["project_id"]}


@with_options(
    SignalDetails,
    defaults={"limit": 10},
    session_id=AskingSession,
    limit=AskedLimit,
    user_id=AskingUser,
    project_id=ReadProject,
)
def predict(*, agent: AgentOption = None, **details: Any) -> object:
    """Predict which memories this work will want, from what was used in work like it, the likeliest first.

    $ nous predict --file src/auth/login.py --branch fix/tokens
    $ nous predict --error "TokenExpired: …" --with ada --json | jq '.memories[0].reasons'
    """
    signals = pop_signals(details)
    with open_heart(agent) as heart:
        details["project_id"] = project_to_read(heart, details["project_id"])
        prediction = heart.predict(signals=signals, **details)
    for each in prediction.memories:
        show(f"[cyan]{each.confidence:.0%}[/cyan]  {each.kind}  {each.memory_id}")
        show(f"     [dim]{escaped('; '.join(each.reasons))}[/dim]")
    if not prediction.memories:
        show_note("nothing was used in work like this yet")
    return prediction


def pop_signals(details: dict[str, Any]) -> SignalDetails:
    return cast("SignalDetails", {name: details.pop(name) for name in rows_of(SignalDetails)})


def feedback(
    recall_id: Annotated[UUID, Argument(metavar="ID", help="A recall or context, as either names itself.")],
    *,
    cite: Annotated[
        list[UUID] | None, Option(metavar="MEMORY", help="What was used; may be given several times.")
    ] = None,
    ignore: Annotated[
        list[UUID] | None, Option(metavar="MEMORY", help="What was of no use; may be given several times.")
    ] = None,
    agent: AgentOption = None,
) -> object:
    """Say which memories of a recall or context were used: over the nights cited ones rise, ignored ones sink.

    $ nous feedback $RECALL --cite $FACT --cite $EPISODE
    $ nous feedback $RECALL --ignore $FACT
    """
    if not (cite or ignore):
        raise InvalidInput(
            "the command says nothing of the recall: name what was used with --cite, what not with --ignore"
        )
    with open_heart(agent) as heart:
        cited = heart.cite(recall_id, cite) if cite else 0
        ignored = heart.ignore(recall_id, ignore) if ignore else 0
    show(f"[green]noted[/green]  {cited:,} cited, {ignored:,} ignored")
    return {"recall_id": recall_id, "cited": cited, "ignored": ignored}


COLOURS = {"warn": "yellow", "block": "red", "absolute": "bold red"}


@with_options(CheckDetails, project_id=ReadProject)
def check(
    action: Annotated[
        str, Argument(metavar="ACTION", help="The action to check: a command, or in words; `-` reads standard input.")
    ],
    *,
    look_only: Annotated[bool, Option(help="Count and announce nothing.")] = False,
    agent: AgentOption = None,
    **details: Any,
) -> object:
    """Check an action against the agent's censors, the firmest first.

    The exit code is 0 when nothing speaks against it or something only warns, 1 when something blocks it, and 2 when
    the check itself failed. What is alike in meaning alone only warns. Each censor that fires is counted; a warning
    that fired often enough blocks.

    $ nous check "git push origin main"
    $ nous check "$COMMAND" --agent aria && eval "$COMMAND"
    """
    with open_heart(agent) as heart:
        details["project_id"] = project_to_read(heart, details["project_id"])
        checked = heart.check_censors(text_or_stdin(action), is_recorded=not look_only, **details)
    for each in checked:
        show_censor(each.severity, each.censor.trigger, each.message)
        how = each.match if each.similarity is None else f"{each.match} {each.similarity:.2f}"
        wrong = f"; if it is wrong: nous censor report {each.censor.id} --activation {each.id}" if each.id else ""
        show(f"[dim]matched {how}{wrong}[/dim]")
    if not len(checked):
        show_note("nothing speaks against it")
    return Ended(
        0 if checked.is_allowed else 1, {"is_blocked": not checked.is_allowed, "activations": checked.activations}
    )


@with_options(CensorDetails, defaults={"scope": None})
def add(
    trigger: Annotated[str, Argument(metavar="TRIGGER", help="What triggers it.")],
    reason: Annotated[str | None, Argument(metavar="REASON", help="Why not, or what to do instead.")] = None,
    *,
    why: Annotated[str | None, Option("--reason", help="Another way to give REASON.")] = None,
    agent: AgentOption = None,
    **details: Any,
) -> object:
    """Add a censor, which warns of an action or blocks it; one that exists already is only made stricter.

    $ nous censor add "pushing directly to main branch" "use a feature branch" --severity block
    $ nous censor add "DROP TABLE *" "write a migration" --literal
    """
    from nous_online.language.actions.action_words import is_unread_rule

    if (reason is None) == (why is None):
        raise InvalidInput("say once why not, or what to do instead: as REASON or with --reason")
    with open_heart(agent, may_begin=True) as heart:
        details["scope"] = details["scope"] or ("project" if details["project_id"] else "private")
        added = heart.add_censor(trigger, reason or why or "", **details)
    show_censor(added.severity, added.trigger, added.reason)
    show(f"[dim]{added.id}[/dim]")
    if not added.is_literal and is_unread_rule(added.trigger):
        show_note("what this forbids could not be read off it, so hardly any action sets it off; name the act alone")
    return added


def list_censors(*, agent: AgentOption = None) -> object:
    """List the agent's censors, the firmest first.

    $ nous censor list --json
    """
    with open_heart(agent) as heart:
        found = heart.list_censors()
    for each in found:
        show_censor(each.severity, each.trigger, each.reason)
        wrongly = f", {each.false_positive_count:,} wrongly" if each.false_positive_count else ""
        show(f"[dim]{each.id}  fired {each.activation_count:,}{wrongly}[/dim]")
    if not found:
        show_note("no censors yet; add one: nous censor add")
    return {"censors": found}


def report(
    censor_id: Annotated[UUID, Argument(metavar="CENSOR", help="The id of the censor.")],
    *,
    activation: Annotated[str | None, Option(metavar="ID", help="Which activation; the latest by default.")] = None,
    action: Annotated[str | None, Option(help="Or the action it should let pass.")] = None,
    note: Annotated[str | None, Option(help="Why it was wrong.")] = None,
    agent: AgentOption = None,
) -> object:
    """Report a false alarm of a censor: that action, and similar ones, no longer set it off.

    You speak as a person here, so it also opens what blocks where a censor is absolute or trusted more than the agent.

    $ nous censor report 0199… --note "the repository is a sandbox"
    $ nous censor report 0199… --action "git push origin gh-pages"
    """
    with open_heart(agent) as heart:
        reported = heart.report_false_positive(
            censor_id, activation_id=activation, action=action, note=note, source_kind="user"
        )
    show(f"[{COLOURS[reported.severity]}]{reported.severity}[/]  {escaped(reported.trigger)}")
    show(f"[dim]lets pass: {escaped(str(reported.exceptions[-1]['action']))}[/dim]")
    return reported


def show_censor(severity: str, trigger: str, reason: str) -> None:
    words = trigger if reason == trigger else f"{trigger}: {reason}"
    show(f"[{COLOURS[severity]}]{severity}[/]  {escaped(words)}")


SKIPPED_SHOWN = 10
LookOption = Annotated[bool, Option(help="Show what is found and store nothing.")]


def patterns(
    paths: Annotated[list[Path], Argument(metavar="PATH...", help="Source files, or folders that hold some.")],
    *,
    look_only: LookOption = False,
    project: ProjectOption = None,
    agent: AgentOption = None,
) -> object:
    """Learn how a project is written from its Python, TypeScript, JavaScript and Go source.

    Each pattern is a procedure: how requests are answered, tests written, errors treated, and what functions do over
    again. A pattern seen before is brought up to date. What others wrote or tools made is passed over. Needs the extra
    `code`.

    $ nous patterns src tests
    $ nous patterns src/api --look-only --json
    """
    from nous_online.interfaces.code_patterns import learn_patterns

    with open_heart(agent, may_begin=True) as heart:
        learned = learn_patterns(heart, paths, project_id=project, is_recorded=not look_only)
    for each in learned.patterns:
        show(f"[bold]{escaped(each.hint)}[/bold]  [dim]{escaped(each.name)}, seen {each.count:,} times[/dim]")
    show_note(f"{learned.files_read:,} files read, {len(learned.patterns):,} patterns found")
    for path, reason in list(learned.skipped.items())[:SKIPPED_SHOWN]:
        show_note(f"passed over {path}: {reason}")
    if len(learned.skipped) > SKIPPED_SHOWN:
        show_note(f"passed over {len(learned.skipped) - SKIPPED_SHOWN:,} more files; --json lists them")
    for reason in learned.refused.values():
        show_note(reason)
    return learned


def workflows(
    *, look_only: LookOption = False, user: UserOption = None, project: ProjectOption = None, agent: AgentOption = None
) -> object:
    """Keep the steps that at least three closed episodes took in the same order as workflows.

    Steps are what the agent recorded with `Heart.record_step`. A workflow of the same steps is found again, and each
    episode counts once for it, as a success or a failure.

    $ nous workflows --look-only
    $ nous workflows --agent aria --json
    """
    with open_heart(agent, may_begin=True) as heart:
        learned = heart.learn_workflows(user_id=user, project_id=project, is_recorded=not look_only)
    for each in learned:
        found = each.found
        hint = escaped(f"{found.name}: {'→'.join(step.name for step in found.steps)}")
        share = "" if found.success_share is None else f", {found.success_share:.0%} succeeded"
        show(f"[green]{each.action}[/green]  {hint}  ({found.support} sessions{share})")
    if not learned:
        show_note("no three closed episodes recorded the same steps yet")
    return {"workflows": learned}
