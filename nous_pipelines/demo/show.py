"""`nous demo`: a history is learned, a night runs over it, and a person sees what it did and why."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import psycopg
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces.cli.output import escaped, show, show_error, stderr
from nous_online.interfaces.imports.importing import ImportReport, import_file
from nous_pipelines.demo.history import history
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.instance import dagster_instance
from nous_pipelines.orchestration.interface import start_interface, wait_for
from nous_pipelines.orchestration.running import NightOptions, NightOutcome, folder_of, run_night
from nous_pipelines.reports.terminal_report import show_report

SQL = statements("nous_pipelines.demo", "demo.sql")
AGENT = "aria"
SHOWN = 3
WORK_S = 60.0


@dataclass(frozen=True)
class Stage:
    """The demo's own server, home and night."""

    home: Path
    url: str
    night: date


def run_demo(source: Path | None, *, with_interface: bool) -> bool:
    """Learn a history, run a night over it and show what happened; return whether the night succeeded."""
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    now = datetime.now(UTC)
    # A history without dates was said just now: only tonight's night sees it.
    night = last_night(now) if source is None else now.date()
    with steps() as progress:
        with step(progress, "PostgreSQL"):
            stage = set_stage(night)
        with step(progress, "learning" if source is None else f"importing {source}"):
            learned = learn_history(stage, source)
        with step(progress, f"night {night} in Dagster") as part, dagster_instance() as instance:
            outcome = run_night(night, NightOptions(stage.url, stage.home), instance=instance, tell=part)
    tell(stage, learned, outcome)
    if with_interface:  # only now: its daemon works on the same memories
        with steps() as progress, step(progress, "Dagster's interface"):
            shown = start_interface(stage.home)
            wait_for(shown, home=stage.home)
        watch = "[dim](Dagster: assets, checks, runs; make down stops it)[/dim]"
        show(f"[bold]Watch it[/bold]      {escaped(shown.entrance)}   {watch}")
    return outcome.is_success


def set_stage(night: date) -> Stage:
    """Start the demo's server and give it an empty database; the user's own memories live elsewhere."""
    home = (settings().home or postgres.default_home()) / "demo"
    server = postgres.ensure(home)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(SQL["drop_database"])
        connection.execute(SQL["create_database"])
    shutil.rmtree(home / "snapshots", ignore_errors=True)
    os.environ.pop("NOUS_DATABASE_URL", None)
    os.environ["NOUS_HOME"] = str(home)
    settings.cache_clear()
    return Stage(home, server.dsn(), night)


def learn_history(stage: Stage, source: Path | None) -> ImportReport:
    """Learn the sample history, or the user's own, and complete its episodes, so that no worker adds to the night."""
    path = source
    if path is None:
        path = stage.home / "history.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in history(until=stage.night)), "utf-8")
    with Heart.open(AGENT) as heart:
        learned = import_file(heart, path)
        while heart.work(deadline_s=WORK_S):
            pass
    return learned


def tell(stage: Stage, learned: ImportReport, outcome: NightOutcome) -> None:
    """Print what happened, as a person would like to read it."""
    nous = f"NOUS_HOME={shlex.quote(str(stage.home))} {shlex.quote(sys.argv[0])}"
    show(
        f"\n[bold]Learned[/bold]  {learned.stored} facts and {learned.episodes} episodes, "
        f"and asked {learned.recalls_replayed} questions of them"
    )
    for note in learned.bad[:SHOWN]:
        show(f"  [yellow]line {note.number}[/yellow] {escaped(note.message)}")
    for failure in outcome.failures:
        show_error(failure)
    if outcome.report is not None:
        show_report(outcome.report, shown=SHOWN, nous=nous)
    show(f"\n[bold]See it all[/bold]    {nous} report --night {stage.night}")
    page = page_beside(stage)
    if page is not None:
        show(f"[bold]As a page[/bold]     {page.as_uri()}")
    show(f"[bold]Take it back[/bold]  {nous} undo --night {stage.night}")
    show(f"[bold]Ask it[/bold]        {nous} recall 'when do we deploy?' --agent {AGENT}")


def page_beside(stage: Stage) -> Path | None:
    """Return the page the night wrote beside its snapshot; none when it did not get that far."""
    page = folder_of(stage.night, NightOptions(stage.url, stage.home)) / "report.html"
    return page if page.exists() else None


def steps() -> Progress:
    """Return the progress display: one line a step, with the time it took, on stderr."""
    return Progress(
        SpinnerColumn(finished_text="[green]✓[/green]"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=stderr(),
    )


@contextmanager
def step(progress: Progress, description: str) -> Generator[Callable[[str], None]]:
    """Show one step while it runs, and which part of it has just ended."""
    task = progress.add_task(description, total=1)
    yield lambda ended: progress.update(task, description=f"{description}: {ended}")
    progress.update(task, description=description, completed=1)
