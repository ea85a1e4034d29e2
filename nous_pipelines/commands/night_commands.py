"""The commands about nights, and the programs that run them: night, diff, report, demo, dev, service."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.cli.output import (
    INTERRUPTED,
    IS_JSON,
    Ended,
    JsonOption,
    OneOfAllOption,
    OneOrAllOption,
    add_command,
    agent_if_set,
    as_json_value,
    escaped,
    show,
    show_error,
    show_json,
    show_note,
    show_progress,
    without_controls,
)
from nous_online.interfaces.cli.server_commands import address_of, place_of, stopping
from nous_pipelines.commands.operator_commands import NightOption, batches, cost, numbers, policy, purge, reembed, undo
from nous_pipelines.commands.query_command import query, show_difference
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import last_night, nights_between, parse_night

if TYPE_CHECKING:
    from nous_online.processes import ProcessStop, Program
    from nous_pipelines.orchestration.running import NightOptions, NightOutcome
    from nous_pipelines.reports.report import NightReport

SIGNALLED = 128
"""Added to the number of the signal that ended a command, this is its exit code, as in a shell."""
JUDGE_ASKED = "judge_batches_sent"
"""The check that fails, without stopping the night, where the judge could not be asked."""
LEFT_OUT = 3
"""The exit code if nights were applied, but not for every agent."""


def register(app: typer.Typer) -> None:
    for command in (night, diff, report, undo, purge, policy, query, cost, batches, reembed, dev, demo):
        add_command(app, command.__name__, command, rich_help_panel="Nights")
    service = typer.Typer(
        name="service", help="Have the system run the worker and every night, without Dagster.", no_args_is_help=True
    )
    for command in (install, uninstall, status):
        add_command(service, command.__name__, command)
    app.add_typer(service, rich_help_panel="Nights")


def night(  # noqa: PLR0913 (one parameter for each option)
    *,
    night: NightOption = None,
    first: Annotated[str | None, Option("--from", metavar="YYYY-MM-DD", help="Backfill from this night on …")] = None,
    last: Annotated[str | None, Option("--to", metavar="YYYY-MM-DD", help="… up to this one, in order.")] = None,
    backfill: Annotated[
        bool, Option(help="All nights not run yet, from the first memory to yesterday, in order.")
    ] = False,
    dry_run: Annotated[bool, Option(help="Stop after the checks; change nothing.")] = False,
    full: Annotated[bool, Option(help="Use nothing that earlier nights compared or judged.")] = False,
    policy: Annotated[
        list[str] | None, Option(metavar="FIELD=NUMBER", help="Override a policy field for this run.")
    ] = None,
    agent: OneOfAllOption = None,
) -> object:
    """Run the nightly lifecycle: propose, check, apply, report. Running a night twice changes nothing.

    Without --date it is yesterday's night, the last one that is over. Today's can be run too: what is said later that
    day waits for the night that runs when the day is over. Without --agent it is for all agents, whatever NOUS_AGENT
    says. --backfill ages an imported history: closed episodes are completed, then every night that was not run yet is.
    Ctrl-C ends it when the night under way is whole, with exit code 130; run it again and it goes on. A database that
    is lost on the way is waited for. Of several nights those with nothing new and nothing due are left out; --full runs
    all.
    A night builds on what earlier ones compared and judged, and comes to the same; --full makes sure, at the price of a
    first night. What a language model was paid for is kept.
    Exit code 1 when a check or a step failed; then nothing of that night was applied. Exit code 3 when one failed for
    some agents alone: they were left out, all was applied for the others, and the next night tries again.

    $ nous night --dry-run
    $ nous night --date 2026-11-20 --agent aria
    $ nous night --from 2026-08-01 --to 2026-11-20
    $ nous import history.jsonl --agent aria && nous night --backfill --agent aria
    """
    values = numbers(policy or [])
    NightPolicy().overridden(values)  # refused before anything is opened
    options = options_for(agent, policy=values, is_dry_run=dry_run, is_full=full)
    wanted = missing_nights(options, night or first or last) if backfill else chosen_nights(night, first, last)
    early = [each for each in wanted if each == datetime.now(UTC).date() and not dry_run]
    for each in early:
        show_note(f"warning: {early_in_words(each)}")
    ran = run_in_order(wanted, options, is_range=backfill or len(wanted) > 1)
    outcomes, stop = ran.outcomes, ran.stop
    if not wanted:
        show("every night that is over has been run")
    elif ran.quiet:
        show(quiet_in_words(len(ran.quiet)))
    code = LEFT_OUT if any(outcome.left_out for outcome in outcomes) else 0
    if stop.signal is not None:
        left = len(wanted) - len(outcomes) - len(ran.quiet)
        rest = f"{left} {'is' if left == 1 else 'are'} left: run it again and it goes on" if left else "none is left"
        show_error(f"interrupted; every night that began is whole, {rest}")
        code = SIGNALLED + stop.signal
    elif outcomes and outcomes[-1].is_stopped:
        code = 1
    return Ended(code, {"nights": [as_plain(outcome) for outcome in outcomes], "quiet": ran.quiet, "not_over": early})


@dataclass
class NightsRun:
    """The nights of one command: those that ran, those that had nothing to do, and what stopped the command."""

    stop: ProcessStop
    outcomes: list[NightOutcome] = field(default_factory=list["NightOutcome"])
    quiet: list[date] = field(default_factory=list[date])


def run_in_order(wanted: Sequence[date], options: NightOptions, *, is_range: bool) -> NightsRun:
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
                show_progress(f"{quiet_in_words(len(quiet))}: {quiet[0]} to {quiet[-1]}")
            ran.quiet += quiet
            if (done := len(ran.outcomes) + len(ran.quiet)) < len(wanted):
                show_progress(time_left(done, len(wanted), seconds=time.monotonic() - began))
            return quiet

        try:
            with nullcontext() if options.is_dry_run else dagster_instance() as instance:
                for outcome in run_nights(
                    wanted, run, stop=stop, tell=show_progress, waits_s=waits_s, find_quiet=find_quiet
                ):
                    ran.outcomes.append(outcome)
                    if not IS_JSON.get():
                        show_outcome(outcome)
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)  # a night is under way in a thread; as after a kill, the next run finishes it
    return ran


def early_in_words(night: date) -> str:
    """Return what it means that a night runs before its day is over."""
    return (
        f"the day of night {night} ends at midnight UTC, and what is said until then is not in this run: a night after "
        f"that takes it in, the scheduled one or nous night --date {night} again"
    )


def quiet_in_words(count: int) -> str:
    """Return how many nights were not run: `412 quiet nights had nothing to do`."""
    return "1 quiet night had nothing to do" if count == 1 else f"{count:,} quiet nights had nothing to do"


def diff(
    *,
    night: NightOption = None,
    first: Annotated[
        str | None, Option("--from", metavar="YYYY-MM-DD", help="What differs between the snapshot of this night …")
    ] = None,
    last: Annotated[str | None, Option("--to", metavar="YYYY-MM-DD", help="… and that of this one.")] = None,
    agent: OneOrAllOption = None,
) -> object:
    """Show what a night changed, or after a dry run would change: one line a memory.

    With --from and --to: the memories that were added or removed between two nights, or changed their state or text.

    $ nous diff --night 2026-11-20
    $ nous diff --json | jq '.entries[].changed[].text'
    $ nous diff --from 2026-11-01 --to 2026-11-20
    """
    from nous_pipelines.orchestration.running import read_report
    from nous_pipelines.reports.text_reports import show_diff

    if first or last:
        if night or not (first and last):
            raise InvalidInput("give either --night, or both --from and --to")
        return show_difference(first, last, agent_if_set(agent))
    found = read_report(chosen_night(night), options_for(agent_if_set(agent)), shown=None)
    show_diff(found)
    return {"night": found.night, "plan_hash": found.plan_hash, "entries": found.entries}


def report(
    *,
    night: NightOption = None,
    html: Annotated[Path | None, Option(metavar="FILE", help="Write it as one HTML page with plots instead.")] = None,
    open_page: Annotated[bool, Option("--open", help="Open that page in the browser.")] = False,
    agent: OneOrAllOption = None,
) -> object:
    """Tell what a night did and why, what it left alone and why, the figures of the store, and how to undo it.

    $ nous report
    $ nous report --night 2026-11-20 --agent aria
    $ nous report --html report.html --open
    """
    from nous_pipelines.orchestration.running import read_report
    from nous_pipelines.reports.html_report import write_page
    from nous_pipelines.reports.text_reports import show_report

    if open_page and html is None:
        raise InvalidInput("the command names no file: --open opens the page that --html FILE writes")
    found = read_report(chosen_night(night), options_for(agent_if_set(agent)))
    if html is not None:
        page = write_page(html, found).resolve()
        show_note(f"the report of night {found.night} is at {page}")
        if open_page:
            typer.launch(page.as_uri())
    else:
        show_report(found)
        hints = [f"take it back: {command}, or --proposal ID (ids: --json)" for command in found.undo]
        for line in hints or [found.undo_hint]:
            show_note(f"\n{line}")
    return {**as_json_value(found), "counts": found.counts, "needs": found.needs, "cost_usd": found.cost_usd}


def demo(
    *,
    source: Annotated[
        Path | None, Option("--from", metavar="FILE", help="Your own history, as `nous import` reads it.")
    ] = None,
    no_interface: Annotated[bool, Option("--no-ui", help="Don't start the Dagster interface.")] = False,
) -> None:
    """Watch a night over a sample history: ninety days of one agent, learned, then one night through Dagster.

    Uses a server and a home of its own; your memories are not touched. `nous down` stops what it started.

    $ nous demo
    $ nous demo --from my_memories.jsonl
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
        show_progress(f"episodes completed: {completed:,}")
    wanted = nights_to_run(options, now=datetime.now(UTC))
    if wanted:
        nights = f"nights to run: {len(wanted):,}, {wanted[0]} to {wanted[-1]}"
        show_progress(f"{nights}; Ctrl-C ends it between two of them")
    return wanted


def chosen_nights(night: str | None, first: str | None, last: str | None) -> list[date]:
    if first is None and last is None:
        return [chosen_night(night)]
    if night is not None or first is None or last is None:
        raise InvalidInput("give either --date, or both --from and --to")
    return list(nights_between(parse_night(first), parse_night(last)))


def chosen_night(night: str | None) -> date:
    """Return the given night, or the last one that is over."""
    return parse_night(night) if night else last_night(datetime.now(UTC))


def options_for(
    agent: str | None, *, policy: dict[str, float] | None = None, is_dry_run: bool = False, is_full: bool = False
) -> NightOptions:
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
    show_failures(outcome.failures)
    if outcome.report is None:
        return
    if outcome.was_applied:
        show_applied_before(outcome.report)
        return
    counts = outcome.report.counts
    mark = "[red]✗[/red]"
    if outcome.is_success:  # whether it did all it had to do
        has_more = outcome.report.unseen or outcome.report.put_off.note
        mark = "[yellow]![/yellow]" if has_more else "[green]✓[/green]"
    show(f"{mark} night {outcome.night}: {outcome.report.summary}")
    for note in notes_on(outcome, outcome.report):
        show_note(f"  {note}")
    were = {
        "went stale": counts["stale"],
        "was refused" if counts["refused"] == 1 else "were refused": counts["refused"],
    }
    if said := [f"{count} {what}" for what, count in were.items() if count]:
        show(f"  [yellow]{', '.join(said)}[/yellow] and changed nothing")
    show_note(
        f"  why: nous report --night {outcome.night}"
        + (f"   back: {'; '.join(outcome.report.undo)}" if outcome.report.undo else "")
    )
    if note := outcome.report.put_off.note:
        show(f"[yellow]{escaped(note)}[/yellow]")


def show_failures(failures: Sequence[str]) -> None:
    """Print what failed; of a check its plain name."""
    from nous_pipelines.plan.checks import title_of

    for failure in failures:
        name, _, why = failure.removeprefix("check ").partition(": ")
        if name != JUDGE_ASKED:  # told at the end, with how many pairs wait
            show_error(f"check “{title_of(name)}”: {why}" if failure.startswith("check ") else failure)


def show_applied_before(report: NightReport) -> None:
    """Print what is left of a dry run's night that was applied before."""
    left = f"{report.counts['planned']} more proposals" if report.counts["planned"] else "nothing"
    show(f"[green]✓[/green] night {report.night} was applied already: {left} would be done{report.unseen_note}")
    show_note(f"  what it did: nous report --night {report.night}")


def notes_on(outcome: NightOutcome, report: NightReport) -> Iterator[str]:
    """Yield notes on what to do, and on what is left for the next night."""
    from nous_pipelines.plan.checks import title_of

    for left in outcome.left_out:
        yield f"what to do about {left.agent_id}: {left.advice}"
    for stop in report.stopped:
        yield f"what to do about “{title_of(stop.check)}”: {stop.advice}"
    if outcome.asking and not report.put_off.obstacles:
        yield outcome.asking
    if not report.counts["active_before"] and not report.kinds:
        upcoming = outcome.night + timedelta(days=1)
        yield f"nothing was known by then; what the next night would do: nous night --date {upcoming} --dry-run"
    if report.counts["waiting"]:
        yield f"{report.counts['waiting']} proposals wait for the next night"


def as_plain(outcome: NightOutcome) -> dict[str, Any]:
    report: NightReport | None = outcome.report
    return {
        **{name: getattr(outcome, name) for name in ("night", "run_id", "is_success", "is_stopped", "failures")},
        "counts": outcome.counts,
        "was_applied": outcome.was_applied,
        "left_out": outcome.left_out,
        "late": report.late if report else {},
        "unseen": report.unseen if report else {},
        "plan_hash": report.plan_hash if report else None,
        "asking": outcome.asking or None,
        "put_off": report.put_off if report else None,
    }


# --- programs that keep running: dev, and service install, uninstall, status ---


READY_TIMEOUT_S = 120.0
"""Dagster takes 5 to 10 s to come up on a machine that does nothing else."""
WRITING = threading.Lock()
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def dev(  # noqa: PLR0913 (one parameter for each option)
    *,
    port: Annotated[int, Option(help="Where the Dagster interface listens, on 127.0.0.1.")] = 3000,
    api_port: Annotated[int, Option(help="Where the REST API listens, on 127.0.0.1.")] = 8420,
    console_port: Annotated[int, Option(help="Where the console listens, on 127.0.0.1.")] = 8430,
    read_only: Annotated[bool, Option(help="The Dagster interface and the console show, and change nothing.")] = False,
    no_interface: Annotated[bool, Option("--no-ui", help="Without the Dagster interface and daemon.")] = False,
    no_api: Annotated[bool, Option(help="Without the REST API and the console.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run PostgreSQL, the Dagster interface with its daemon, the REST API and the console until Ctrl-C.

    Prints the address of each as soon as it answers; a port that is taken is replaced by a free one. All need a token,
    a new one at each start or that of NOUS_TOKEN: the interface in the address that is printed, the API as
    `Authorization: Bearer`. The console acts as an operator: its address has a token of its own. Logs go to standard
    error. Ctrl-C, SIGTERM and closing the terminal end everything; PostgreSQL stays if it ran before. When one of them
    ends by itself, the command names it, ends the others, and exits with 1. With --json it prints one object with the
    addresses and the token, once all of them answer.

    $ nous dev
    $ nous dev --no-ui --console-port 9000
    """
    from nous_online.interfaces.request_checks import TOKEN_BYTES, interface_token
    from nous_online.processes import run_together, watch_programs
    from nous_pipelines.orchestration.instance import api_program, console_program, dagster_program, database_up

    with stopping() as stop, database_up() as url:
        place = place_of(url)
        if not as_json:
            show(f"[green]ready[/green]  PostgreSQL  {escaped(address_of(place))}")
        token, console_token = interface_token(), token_urlsafe(TOKEN_BYTES)
        programs = [] if no_interface else [dagster_program(port, token=token, read_only=read_only)]
        if not no_api and offers_api():
            programs.append(api_program(api_port, token=token))
            programs.append(console_program(console_port, token=console_token, read_only=read_only))
        addresses: dict[str, str] = {}

        def on_answer(program: Program) -> None:
            addresses[program.name.lower()] = program.entrance or program.address
            if not as_json:
                show(f"[green]ready[/green]  {program.name:<10}  {escaped(addresses[program.name.lower()])}")
                if not program.entrance:
                    show_note(f"programs call it with the header `Authorization: Bearer {token}`")
            elif len(addresses) == len(programs):
                show_json({"postgresql": address_of(place), **addresses, "token": token})

        show_note("Ctrl-C ends everything")
        with run_together(programs, tell=lambda name, line: log(name, line.replace(console_token, "…"))) as running:
            watch_programs(running, stop=stop, on_answer=on_answer, ready_timeout_s=READY_TIMEOUT_S)
            show_note("ending …")


def offers_api() -> bool:
    """Return whether the extra `api`, with the console, is installed; print how to install it if not."""
    from nous_online.interfaces.cli.command_line import EXTRAS

    found = all(find_spec(module) for module in EXTRAS["api"])
    if not found:
        show_note(
            "the REST API and the console stay out: they need the extra `api`; run: pip install 'nous-pipelines[api]'"
        )
    return found


def log(name: str, line: str) -> None:
    with WRITING:
        sys.stderr.write(f"{name.lower():<7} | {without_controls(COLOUR.sub('', line))}\n")
        sys.stderr.flush()


# --- the service ---

VALUE = re.compile(r"=.*")
CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
DryRunOption = Annotated[bool, Option(help="Show what would be written and run; change nothing.")]
ManagerOption = Annotated[
    Literal["systemd", "launchd", "cron"] | None, Option(help="Who runs it; by default who answers here.")
]


def install(
    *,
    at: Annotated[str, Option(metavar="HH:MM", help="When nights run, by the local clock.")] = "03:00",
    manager: ManagerOption = None,
    dry_run: DryRunOption = False,
) -> object:
    """Run `nous worker` always and `nous night --backfill` once a day, by systemd, launchd or cron.

    A night that was missed, since the machine was off, is made up for. The settings of this shell (NOUS_…, keys of
    models) are kept beside the memories, for you alone to read: install again when they change. What runs says what
    it does in the journal of systemd, else in `service.log` beside the memories.

    $ nous service install --dry-run
    $ nous service install --at 04:30
    """
    from nous_pipelines.commands import autostart

    planned = autostart.autostart_here(manager, clock(at))
    # Of the settings file only the names: some values are keys.
    names = {path: VALUE.sub("=…", text) for path, text in planned.files.items() if path.suffix == ".env"}
    files = {str(path): text for path, text in {**planned.files, **names}.items()}
    if dry_run:
        for path, text in files.items():
            show(f"[bold]{escaped(path)}[/bold]")
            show(escaped(text))
        for command in planned.starts:
            show(f"[dim]$[/dim] {escaped(str(command))}")
            if command.stdin:
                show(escaped(command.stdin))
    else:
        autostart.install(planned)
        show(f"[green]installed[/green]  with {planned.manager}; the nights run at {at}")
        show_note("`nous service status` says how it stands, `nous status` when the last night was")
    commands = [str(command) for command in planned.starts]
    return {"is_dry_run": dry_run, "manager": planned.manager, "files": files, "commands": commands}


def uninstall(*, manager: ManagerOption = None, dry_run: DryRunOption = False) -> object:
    """End what `nous service install` started and delete its files; memories stay where they are.

    $ nous service uninstall
    """
    from nous_pipelines.commands import autostart

    found = autostart.autostart_here(manager, (0, 0))
    was_there = found.is_installed
    if was_there and not dry_run:
        autostart.uninstall(found)
    if was_there:
        show(f"{'would be uninstalled' if dry_run else '[green]uninstalled[/green]'}  from {found.manager}")
    else:
        show(f"no service of Nous is installed with {found.manager}")
    return {"is_dry_run": dry_run, "was_installed": was_there}


def status(*, manager: ManagerOption = None) -> object:
    """Say whether the service is installed, and how its programs stand.

    $ nous service status --json
    """
    from nous_pipelines.commands import autostart

    found = autostart.autostart_here(manager, (0, 0))
    is_there = found.is_installed
    answers = {name: autostart.try_command(command) for name, command in found.asks.items()} if is_there else {}
    stand = {name: "runs or waits" if answer is not None else "does not run" for name, answer in answers.items()}
    show(f"{'installed' if is_there else 'not installed'} with {found.manager}")
    for name, words in stand.items():
        show(f"{name:<20} {words}")
    return {"manager": found.manager, "is_installed": is_there, "programs": stand}


def clock(text: str) -> tuple[int, int]:
    """Parse a time of day as hour and minute; raise `InvalidInput` for anything but HH:MM."""
    found = CLOCK.fullmatch(text)
    if found is None:
        raise InvalidInput(f"not a time of day: --at {text!r} (want HH:MM, such as 03:00)")
    return int(found[1]), int(found[2])
