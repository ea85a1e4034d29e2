"""`nous demo`: learns a sample history, runs a night over it, and shows what the night did and why."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from nous_online.core.files import demo_home
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces.cli.output import escaped, show, show_error, stderr
from nous_online.interfaces.imports.importing import ImportReport, import_history
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.instance import dagster_instance, start_interface, wait_for
from nous_pipelines.orchestration.running import NightOptions, NightOutcome, folder_of, run_night
from nous_pipelines.reports.text_reports import show_report

DAYS = 90
ENDED = date(2026, 11, 20)
"""The last day of the sample history as it is written: a Friday."""
MOMENTS = ("learned_at", "started_at", "ended_at", "at")
NAMED_DAY = re.compile(r"<(\d{4}-\d\d-\d\d)>")
# Not strftime: it follows the locale, and the bytes must not.
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def history(*, until: date) -> Iterator[dict[str, Any]]:
    """Yield facts, episodes and recalls of 90 days, oldest first, in the import schema.

    They are moved by whole weeks, so that workdays stay workdays, to end on `until` or up to six days before.
    """
    moved = timedelta(weeks=(until - ENDED).days // 7)

    def spelled(found: re.Match[str]) -> str:
        day = date.fromisoformat(found[1]) + moved
        return f"{day.day} {MONTHS[day.month - 1]}"

    for line in (Path(__file__).parent / "history.jsonl").read_text("utf-8").splitlines():
        record: dict[str, Any] = json.loads(NAMED_DAY.sub(spelled, line))
        moments = {name: datetime.fromisoformat(record[name]) + moved for name in MOMENTS if name in record}
        yield {**record, **{name: f"{moment:%Y-%m-%dT%H:%M:%SZ}" for name, moment in moments.items()}}


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
    show_results(stage, learned, outcome)
    if with_interface:  # only now: its daemon works on the same memories
        with steps() as progress, step(progress, "Dagster's interface"):
            shown = start_interface(stage.home)
            wait_for(shown, home=stage.home)
        watch = "[dim](Dagster: assets, checks, runs; make down stops it)[/dim]"
        show(f"[bold]Watch it[/bold]      {escaped(shown.entrance)}   {watch}")
    return outcome.is_success


def set_stage(night: date) -> Stage:
    """Start the demo's own server with an empty database; the user's memories are not touched."""
    home = demo_home(settings().home)
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
    """Learn the sample history, or the user's own, and complete its episodes: no worker runs during the night."""
    path = source
    if path is None:
        path = stage.home / "history.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in history(until=stage.night)), "utf-8")
    with Heart.open(AGENT) as heart:
        learned = import_history(heart, [path])
        while heart.work(deadline_s=WORK_S):
            pass
    return learned


def show_results(stage: Stage, learned: ImportReport, outcome: NightOutcome) -> None:
    """Print what was learned, the report, and the next commands to try."""
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
    page = folder_of(stage.night, NightOptions(stage.url, stage.home)) / "report.html"
    if page.exists():  # there is none when the night did not get that far
        show(f"[bold]As a page[/bold]     {page.as_uri()}")
    show(f"[bold]Take it back[/bold]  {nous} undo --night {stage.night}")
    show(f"[bold]Ask it[/bold]        {nous} recall 'when do we deploy?' --agent {AGENT}")


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
