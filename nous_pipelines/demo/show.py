"""`nous demo`: learns a sample history, runs a night over it, and shows what the night did and why."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
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
from nous_online.interfaces.imports.importing import ImportReport, import_file
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.instance import dagster_instance, start_interface, wait_for
from nous_pipelines.orchestration.running import NightOptions, NightOutcome, folder_of, run_night
from nous_pipelines.reports.text_reports import show_report

DAY_OF_HISTORY = re.compile(r"<d(\d+)>")
DAYS = 90
FACT_FILES = ("facts_platform.txt", "facts_team.txt", "facts_business.txt")
WORKDAY_START = time(9, 0)
WORKDAY_MINUTES = 9 * 60
FULL_FACT_FIELDS = 7
SOURCES_WITH_A_KIND = ("agent", "tool", "import")
# Not strftime: it follows the locale, and the bytes must not.
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

CONFIDENCE = {"user": 0.86, "tool": 0.93, "import": 0.76, "agent": 0.72}
FRAMES = {
    "technical": "task",
    "incident": "debug",
    "process": "decision",
    "preference": "conversation",
    "customer": "conversation",
}


@dataclass(frozen=True)
class Moment:
    """A day of the ninety, counted from 0, and a time of day; a fixed one keeps its day even on a weekend."""

    day: int
    at: time
    fixed: bool = False


@dataclass(frozen=True)
class WrittenFact:
    """One written fact, and how it relates to an earlier one: `=`, `~`, `>`, `x`, `!`, or not at all."""

    key: str
    relation: str
    other: str
    differ_in: str
    when: Moment
    source: str
    category: str
    subject: str
    tags: tuple[str, ...]
    content: str


@dataclass(frozen=True)
class WrittenEpisode:
    """One written episode; the details are kept as they stand in the file."""

    key: str
    when: Moment
    minutes: int
    written: dict[str, Any]


@dataclass(frozen=True)
class WrittenRecall:
    """One question of the agent, with the keys of the memories it then used and of those it ignored."""

    when: Moment
    frame: str
    query: str
    cited: tuple[str, ...]
    ignored: tuple[str, ...]


def history(*, until: date) -> Iterator[dict[str, Any]]:
    """Yield facts, episodes and recalls of the 90 days that end on `until`, oldest first, in the import schema."""
    records = [
        *(fact_record(fact, until=until) for fact in facts()),
        *(episode_record(episode, until=until) for episode in episodes()),
        *(recall_record(recall, until=until) for recall in recalls()),
    ]
    # A recall has no id, and comes before what was learned in the same minute.
    yield from sorted(
        records,
        key=lambda each: (each.get("learned_at") or each.get("started_at") or each["at"], each.get("id", "")),
    )


def fact_record(fact: WrittenFact, *, until: date) -> dict[str, Any]:
    """Return one fact in the import schema; frame and censors appear only where they were in force."""
    kind, slash, source = fact.source.partition("/")
    if not slash or kind not in SOURCES_WITH_A_KIND:  # a bare first name is a chat with that person
        kind, source = "user", f"chat with {fact.source}"
    censors = [tag[1:] for tag in fact.tags if tag.startswith("!")]
    record: dict[str, Any] = {
        "kind": "fact",
        "id": ids()[fact.key],
        "content": with_dates(fact.content, until=until),
        "subject": fact.subject,
        "category": fact.category,
        "tags": [tag for tag in fact.tags if not tag.startswith("!")],
        "source": source,
        "source_kind": kind,
        "learned_at": stamp(moment_at(fact.when, until=until)),
        "confidence": round(CONFIDENCE[kind] + draw(fact.key, 7) / 100, 2),
    }
    if fact.category in FRAMES and draw(f"frame {fact.key}", 3):
        record["encoded_frame"] = FRAMES[fact.category]
    return record | ({"encoded_censors": censors} if censors else {})


def episode_record(episode: WrittenEpisode, *, until: date) -> dict[str, Any]:
    """Return one episode in the import schema."""
    started = moment_at(episode.when, until=until)
    written = episode.written
    return {
        "kind": "episode",
        "id": ids()[episode.key],
        "title": written["title"],
        "detail": with_dates(" ".join(written["detail"].split()), until=until),
        "started_at": stamp(started),
        "ended_at": stamp(started + timedelta(minutes=episode.minutes)),
        "participants": written["participants"],
        "tags": written["tags"],
        "frame_used": written["frame"],
        "outcome": written["outcome"],
        "lessons_learned": written["lessons"],
        "surprise_level": written["surprise"],
    }


def recall_record(recall: WrittenRecall, *, until: date) -> dict[str, Any]:
    """Return one question and its outcome in the import schema."""
    return {
        "kind": "recall",
        "query": recall.query,
        "at": stamp(moment_at(recall.when, until=until)),
        "frame": recall.frame,
        "cited": [ids()[key] for key in recall.cited],
        "ignored": [ids()[key] for key in recall.ignored],
    }


def moment_at(when: Moment, *, until: date) -> datetime:
    """Return the UTC time of a moment, moved from a weekend to the nearest working day unless it is fixed."""
    first = until - timedelta(days=DAYS - 1)
    day = first + timedelta(days=when.day)
    return datetime.combine(day if when.fixed else workday(day, first=first, last=until), when.at, tzinfo=UTC)


def workday(day: date, *, first: date, last: date) -> date:
    """Move a Saturday to Friday and a Sunday to Monday, or the other way where that would leave `first`…`last`."""
    backward, forward = {5: (1, 2), 6: (2, 1)}.get(day.weekday(), (0, 0))
    earlier, later = day - timedelta(days=backward), day + timedelta(days=forward)
    preferred, other = (earlier, later) if backward <= forward else (later, earlier)
    return preferred if first <= preferred <= last else other


def stamp(moment: datetime) -> str:
    """Write a UTC time the way the import schema wants it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def with_dates(text: str, *, until: date) -> str:
    """Replace each `<d12>` by the date of that day of the history, such as `14 September`, never on a weekend."""
    first = until - timedelta(days=DAYS - 1)

    def spelled(match: re.Match[str]) -> str:
        day = workday(first + timedelta(days=int(match[1])), first=date.min, last=date.max)
        return f"{day.day} {MONTHS[day.month - 1]}"

    return DAY_OF_HISTORY.sub(spelled, text)


def draw(key: str, below: int) -> int:
    """Return a number in 0…below-1 that depends on `key` alone."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest()) % below


@cache
def ids() -> dict[str, str]:
    """Number facts and episodes by their written day and time, whatever weekday that falls on."""
    return numbered(facts(), "f-{:04d}") | numbered(episodes(), "e-{:03d}")


def numbered(memories: Iterable[WrittenFact | WrittenEpisode], form: str) -> dict[str, str]:
    """Give each memory an id of one form, oldest first."""
    oldest_first = sorted(memories, key=lambda memory: (memory.when.day, memory.when.at, memory.key))
    return {memory.key: form.format(number) for number, memory in enumerate(oldest_first, start=1)}


@cache
def facts() -> tuple[WrittenFact, ...]:
    """Read the written facts; one that relates to an earlier one may share its category, subject and tags."""
    read: dict[str, WrittenFact] = {}
    for name in FACT_FILES:
        for fields in rows(name):
            fact = parsed_fact(fields, earlier=read)
            read[fact.key] = fact
    return tuple(read.values())


def parsed_fact(fields: list[str], *, earlier: dict[str, WrittenFact]) -> WrittenFact:
    """Read one line of a fact file."""
    key, relation, other, differ_in = (*fields[0].split(" ", 3), "", "", "")[:4]
    shared = earlier.get(other)
    if len(fields) == FULL_FACT_FIELDS:
        category, subject, tags = fields[3], fields[4], tuple(fields[5].split(","))
    elif shared:
        category, subject, tags = shared.category, shared.subject, shared.tags
    else:
        message = f"fact {key!r} has {len(fields)} fields and names no earlier fact; give it {FULL_FACT_FIELDS}"
        raise ValueError(message)
    when = parsed_moment(fields[1], key)
    return WrittenFact(key, relation, other, differ_in, when, fields[2], category, subject, tags, fields[-1])


@cache
def episodes() -> tuple[WrittenEpisode, ...]:
    """Read the written episodes."""
    written = tomllib.loads(text_of("episodes.toml"))["episode"]
    return tuple(
        WrittenEpisode(entry["key"], parsed_moment(entry["when"], entry["key"]), entry["minutes"], entry)
        for entry in written
    )


@cache
def recalls() -> tuple[WrittenRecall, ...]:
    """Read the written recalls."""
    return tuple(
        WrittenRecall(parsed_moment(day, query), frame, query, tuple(cited.split()), tuple(ignored.split()))
        for day, frame, query, cited, ignored in rows("recalls.txt")
    )


def parsed_moment(text: str, key: str) -> Moment:
    """Read `34`, at a working hour drawn from the key, or `34@22:10`, which is meant as it stands."""
    day, _, at = text.partition("@")
    if at:
        return Moment(int(day), time.fromisoformat(at), fixed=True)
    drawn = datetime.combine(date.min, WORKDAY_START) + timedelta(minutes=draw(f"minute {key}", WORKDAY_MINUTES))
    return Moment(int(day), drawn.time())


def rows(name: str) -> Iterator[list[str]]:
    """Yield the fields of each line that is neither empty nor a comment."""
    for line in text_of(name).splitlines():
        if line and not line.startswith("#"):
            yield [field.strip() for field in line.split("|")]


def text_of(name: str) -> str:
    """Read one of the files beside this module."""
    return (Path(__file__).parent / name).read_text("utf-8")


# --- the demo ---

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
        learned = import_file(heart, path)
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
