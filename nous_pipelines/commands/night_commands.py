"""The commands about nights: night, diff, report, undo, demo."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import (
    INTERRUPTED,
    AgentOption,
    JsonOption,
    as_json_value,
    escaped,
    show,
    show_error,
    show_json,
    show_note,
)
from nous_online.interfaces.cli.server_commands import CommandStop, stopping
from nous_pipelines.commands import program_commands
from nous_pipelines.commands.operator_commands import NightOption, batches, cost, numbers, policy, purge, reembed, undo
from nous_pipelines.commands.program_commands import dev
from nous_pipelines.commands.query_command import query, show_difference
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import nights_between, parse_night

if TYPE_CHECKING:
    from nous_pipelines.orchestration.running import NightOptions, NightOutcome
    from nous_pipelines.reports.report import NightReport

SIGNALLED = 128
"""Added to the number of the signal that ended a command, this is its exit code, as in a shell."""
JUDGE_ASKED = "judge_batches_sent"
"""The check that fails, without stopping the night, where the judge could not be asked."""
LEFT_OUT = 3
"""The exit code if nights were applied, but not for every agent."""


def register(app: typer.Typer) -> None:
    """Add these commands."""
    commands = {
        "night": night, "diff": diff, "report": report, "undo": undo, "purge": purge, "policy": policy, "query": query,
        "cost": cost, "batches": batches, "reembed": reembed, "dev": dev, "demo": demo,
    }  # fmt: skip
    for name, command in commands.items():
        app.command(name, rich_help_panel="Nights")(command)
    program_commands.register(app)


def night(  # noqa: PLR0913 (one parameter for each option)
    *,
    night: NightOption = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="YYYY-MM-DD", help="Backfill from this night on …")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="… up to this one, in order.")] = None,
    backfill: Annotated[
        bool, typer.Option("--backfill", help="All nights not run yet, from the first memory to yesterday, in order.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the checks; change nothing.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Use nothing that earlier nights compared or judged.")] = False,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=NUMBER", help="Override a policy field for this run.")
    ] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the nightly lifecycle: propose, check, apply, report. Running a night twice changes nothing.

    Without --date it is yesterday's night, the last one that is over. Without --agent it is for all agents.
    --backfill ages an imported history: closed episodes are completed, then every night that was not run yet is. Ctrl-C
    ends it when the night under way is whole, with exit code 130; run it again and it goes on. A database that is lost
    on the way is waited for. Of several nights those that would change nothing are not run; --full runs all.
    A night builds on what earlier ones compared and judged, and comes to the same; --full makes sure, at the price of a
    first night. What a language model was paid for is kept.
    Exit code 1 when a check or a step failed; then nothing of that night was applied. Exit code 3 when one failed for
    some agents alone: they were left out, all was applied for the others, and the next night tries again.

    [bold]Examples[/bold]

    [dim]$[/dim] nous night --dry-run

    [dim]$[/dim] nous night --date 2026-11-20 --agent aria

    [dim]$[/dim] nous night --from 2026-08-01 --to 2026-11-20

    [dim]$[/dim] nous import history.jsonl --agent aria && nous night --backfill --agent aria
    """
    values = numbers(policy or [])
    NightPolicy().overridden(values)  # refused before anything is opened
    options = options_for(agent, policy=values, is_dry_run=dry_run, is_full=full)
    wanted = missing_nights(options, night or first or last) if backfill else chosen_nights(night, first, last)
    is_range = backfill or len(wanted) > 1
    ran = run_in_order(wanted, options, is_range=is_range, as_json=as_json)
    outcomes, stop = ran.outcomes, ran.stop
    if as_json:
        show_json({"nights": [as_plain(outcome) for outcome in outcomes], "quiet": ran.quiet})
    elif not wanted:
        show("every night that is over has been run")
    elif ran.quiet:
        show(quiet_in_words(len(ran.quiet)))
    if stop.signal is not None:
        left = len(wanted) - len(outcomes) - len(ran.quiet)
        rest = f"{left} {'is' if left == 1 else 'are'} left: run it again and it goes on" if left else "none is left"
        show_error(f"interrupted; every night that began is whole, {rest}")
        raise typer.Exit(SIGNALLED + stop.signal)
    if outcomes and outcomes[-1].is_stopped:
        raise typer.Exit(1)
    if any(outcome.left_out for outcome in outcomes):
        raise typer.Exit(LEFT_OUT)


@dataclass
class NightsRun:
    """The nights of one command: those that ran, those that had nothing to do, and what stopped the command."""

    stop: CommandStop
    outcomes: list[NightOutcome] = field(default_factory=list["NightOutcome"])
    quiet: list[date] = field(default_factory=list[date])


def run_in_order(wanted: Sequence[date], options: NightOptions, *, is_range: bool, as_json: bool) -> NightsRun:
    """Run nights one after the other without those that have nothing to do, and print each outcome."""
    from nous_pipelines.orchestration.instance import dagster_instance
    from nous_pipelines.orchestration.quiet_nights import find_quiet_nights
    from nous_pipelines.orchestration.running import WAITS_S, run_night, run_nights, time_left

    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    began, waits_s = time.monotonic(), WAITS_S if is_range else ()
    with stopping() as stop:
        ran = NightsRun(stop)

        def run(night: date) -> NightOutcome:
            with progress(night, is_single=len(wanted) == 1) as tell:
                return run_night(night, options, instance=instance, tell=tell)

        def find_quiet(night: date, later: Sequence[date]) -> Sequence[date]:
            quiet = find_quiet_nights(night, later, options, instance=instance, is_stopped=stop.is_asked)
            if quiet:
                show_note(f"{quiet_in_words(len(quiet))}: {quiet[0]} to {quiet[-1]}")
            ran.quiet += quiet
            if (done := len(ran.outcomes) + len(ran.quiet)) < len(wanted):
                show_note(time_left(done, len(wanted), seconds=time.monotonic() - began))
            return quiet

        try:
            with nullcontext() if options.is_dry_run else dagster_instance() as instance:
                for outcome in run_nights(
                    wanted, run, stop=stop, tell=show_note, waits_s=waits_s, find_quiet=find_quiet
                ):
                    ran.outcomes.append(outcome)
                    if not as_json:
                        show_outcome(outcome)
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)  # a night is under way in a thread; as after a kill, the next run finishes it
    return ran


def quiet_in_words(count: int) -> str:
    """Return how many nights were not run: `412 quiet nights had nothing to do`."""
    return "1 quiet night had nothing to do" if count == 1 else f"{count:,} quiet nights had nothing to do"


def diff(
    *,
    night: NightOption = None,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="YYYY-MM-DD", help="What differs between the snapshot of this night …"),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="… and that of this one.")] = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a night changed, or after a dry run would change: one line a memory.

    With --from and --to: the memories that were added or removed between two nights, or changed their state or text.

    [bold]Examples[/bold]

    [dim]$[/dim] nous diff --night 2026-11-20

    [dim]$[/dim] nous diff --json | jq '.entries[].changed[].text'

    [dim]$[/dim] nous diff --from 2026-11-01 --to 2026-11-20
    """
    from nous_pipelines.orchestration.running import read_report
    from nous_pipelines.reports.text_reports import show_diff

    if first or last:
        if night or not (first and last):
            raise InvalidInput("give either --night, or both --from and --to")
        show_difference(first, last, agent, as_json=as_json)
        return
    found = read_report(chosen_night(night), options_for(agent), shown=None)
    if as_json:
        show_json({"night": found.night, "plan_hash": found.plan_hash, "entries": found.entries})
    else:
        show_diff(found)


def report(
    *,
    night: NightOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page with plots instead.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open that page in the browser.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what a night did and why, what it left alone and why, the figures of the store, and how to undo it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous report

    [dim]$[/dim] nous report --night 2026-11-20 --agent aria

    [dim]$[/dim] nous report --html report.html --open
    """
    from nous_pipelines.orchestration.running import read_report
    from nous_pipelines.reports.text_reports import show_report

    if open_page and html is None:
        raise InvalidInput("the command names no file: --open opens the page that --html FILE writes")
    found = read_report(chosen_night(night), options_for(agent))
    if html is not None:
        write_report(html, found, is_opened=open_page)
    if as_json:
        show_json({**as_json_value(found), "counts": found.counts, "needs": found.needs, "cost_usd": found.cost_usd})
    elif html is None:
        show_report(found)
        hints = [f"take it back: {command}, or --proposal ID (ids: --json)" for command in found.undo]
        for line in hints or [found.undo_hint]:
            show_note(f"\n{line}")


def write_report(path: Path, report: NightReport, *, is_opened: bool) -> None:
    """Write a report as a page, print its path, and open it if wanted."""
    from nous_pipelines.reports.html_report import write_page

    page = write_page(path, report).resolve()
    show_note(f"the report of night {report.night} is at {page}")
    if is_opened:
        typer.launch(page.as_uri())


def demo(
    *,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Your own history, as `nous import` reads it.")
    ] = None,
    no_interface: Annotated[bool, typer.Option("--no-ui", help="Don't start the Dagster interface.")] = False,
) -> None:
    """Watch a night over a sample history: ninety days of one agent, learned, then one night through Dagster.

    Uses a server and a home of its own; your memories are not touched. `nous down` stops what it started.

    [bold]Examples[/bold]

    [dim]$[/dim] nous demo

    [dim]$[/dim] nous demo --from my_memories.jsonl
    """
    from nous_pipelines.demo.show import run_demo

    if not run_demo(source, with_interface=not no_interface):
        raise typer.Exit(1)


def missing_nights(options: NightOptions, named: str | None) -> list[date]:
    """Complete due episodes and return the nights to catch up on; raise `InvalidInput` if a night is named, too."""
    from nous_pipelines.orchestration.running import complete_episodes, nights_to_run

    if named:
        raise InvalidInput("--backfill finds the nights itself; leave --date, --from and --to out")
    if options.is_dry_run:
        raise InvalidInput("--backfill builds each night on the one before, so it can't be a dry run; name one --date")
    if completed := complete_episodes(options):
        show_note(f"episodes completed: {completed:,}")
    wanted = nights_to_run(options, now=datetime.now(UTC))
    if wanted:
        show_note(f"nights to run: {len(wanted):,}, {wanted[0]} to {wanted[-1]}; Ctrl-C ends it between two of them")
    return wanted


def chosen_nights(night: str | None, first: str | None, last: str | None) -> list[date]:
    """Return the nights that the options select."""
    if first is None and last is None:
        return [chosen_night(night)]
    if night is not None or first is None or last is None:
        raise InvalidInput("give either --date, or both --from and --to")
    return list(nights_between(parse_night(first), parse_night(last)))


def chosen_night(night: str | None) -> date:
    """Return the given night, or the last one that is over."""
    from nous_pipelines.nights import last_night

    return parse_night(night) if night else last_night(datetime.now(UTC))


def options_for(
    agent: str | None, *, policy: dict[str, float] | None = None, is_dry_run: bool = False, is_full: bool = False
) -> NightOptions:
    """Return the options of a run over the database and the home of this process."""
    from nous_online.database.connection import open_url
    from nous_pipelines.orchestration.instance import home_folder
    from nous_pipelines.orchestration.running import NightOptions

    return NightOptions(open_url(), home_folder(), (agent,) if agent else (), policy or {}, is_dry_run, is_full)


@contextmanager
def progress(night: date, *, is_single: bool) -> Generator[Callable[[str], None]]:
    """Show on a terminal the last step of a night that ended; if it is the only night, a line for each step."""
    from nous_online.interfaces.cli.output import stderr

    console = stderr()
    if not console.is_terminal:
        yield lambda step: None
        return
    began = time.monotonic()
    with console.status(f"night {night} …") as status:

        def tell(step: str) -> None:
            status.update(f"night {night}: after {step} …")
            if is_single:
                console.print(f"  {time.monotonic() - began:5.1f} s  {step}", style="dim")

        yield tell


def show_outcome(outcome: NightOutcome) -> None:
    """Print the outcome of a run in a few lines."""
    for failure in outcome.failures:
        if not failure.startswith(f"check {JUDGE_ASKED}:"):  # told at the end, with how many pairs wait
            show_error(failure)
    if outcome.report is None:
        return
    counts = outcome.report.counts
    show(f"{mark_of(outcome, outcome.report)} night {outcome.night}: {outcome.report.summary}")
    for note in notes_on(outcome, outcome.report):
        show_note(f"  {note}")
    if counts["stale"] or counts["refused"]:
        show(f"  [yellow]{counts['stale']} went stale, {counts['refused']} were refused[/yellow]; they changed nothing")
    show_note(
        f"  why: nous report --night {outcome.night}"
        + (f"   back: {'; '.join(outcome.report.undo)}" if outcome.report.undo else "")
    )
    if note := outcome.report.put_off.note:
        show(f"[yellow]{escaped(note)}[/yellow]")


def mark_of(outcome: NightOutcome, report: NightReport) -> str:
    """Return the sign before the line of a night: whether it did all it had to do."""
    if not outcome.is_success:
        return "[red]✗[/red]"
    return "[yellow]![/yellow]" if report.unseen or report.put_off.note else "[green]✓[/green]"


def notes_on(outcome: NightOutcome, report: NightReport) -> Iterator[str]:
    """Yield notes on what to do, and on what is left for the next night."""
    for left in outcome.left_out:
        yield f"what to do about {left.agent_id}: {left.advice}"
    for stop in report.stopped:
        yield f"what to do about {stop.check}: {stop.advice}"
    if outcome.asking and not report.put_off.obstacles:
        yield outcome.asking
    if not report.counts["active_before"] and not report.kinds:
        upcoming = outcome.night + timedelta(days=1)
        yield f"nothing was known by then; what the next night would do: nous night --date {upcoming} --dry-run"
    if report.counts["waiting"]:
        yield f"{report.counts['waiting']} proposals wait for the next night"


def as_plain(outcome: NightOutcome) -> dict[str, Any]:
    """Return an outcome as plain values for JSON."""
    report: NightReport | None = outcome.report
    return {
        "night": outcome.night,
        "run_id": outcome.run_id,
        "is_success": outcome.is_success,
        "is_stopped": outcome.is_stopped,
        "failures": list(outcome.failures),
        "counts": report.counts if report else None,
        "left_out": [as_json_value(each) for each in outcome.left_out],
        "late": dict(report.late) if report else {},
        "unseen": dict(report.unseen) if report else {},
        "plan_hash": report.plan_hash if report else None,
        "asking": outcome.asking or None,
        "put_off": as_json_value(report.put_off) if report else None,
    }
