"""The commands that query the snapshots of all nights: query, and diff between two nights."""

from __future__ import annotations

import csv
import json
import math
import signal
import sys
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from nous_online.core.errors import InvalidInput, NotFound
from nous_online.interfaces.cli.output import (
    AgentOption,
    JsonOption,
    as_json_value,
    escaped,
    open_database,
    show,
    show_json,
    show_note,
    stdout,
    waiting,
    without_controls,
    written,
)
from nous_online.interfaces.cli.server_commands import HANGUP, handled
from nous_pipelines.nights import FIRST_NIGHT, parse_night

if TYPE_CHECKING:
    from nous_online.database.connection import Database
    from nous_pipelines.plan.night_tables import Answer, StoredNights

SHOWN = 100
SHOWN_NUMBERS = 4
NARROWEST = 8  # characters of a column that can still be read
SIGNS: Mapping[str, tuple[str, str]] = {"added": ("+ ", "green"), "left": ("- ", "red")}
CHANGED = ("≠ ", "yellow")
WORDS: Mapping[str, str] = {
    "added": "added", "left": "gone", "state": "with another state", "text": "with another text",
    "state and text": "with another state and text",
}  # fmt: skip


def query(  # noqa: PLR0913 (one parameter for each option)
    sql: Annotated[
        str | None, Argument(metavar="SQL", help="One SELECT, in DuckDB's dialect; `-` reads it from stdin.")
    ] = None,
    *,
    first: Annotated[str | None, Option("--from", metavar="YYYY-MM-DD", help="From this night on …")] = None,
    last: Annotated[str | None, Option("--to", metavar="YYYY-MM-DD", help="… up to this one.")] = None,
    all_agents: Annotated[bool, Option(help="Read the rows of all agents; for an operator.")] = False,
    limit: Annotated[int | None, Option(min=1, help=f"Rows to print; {SHOWN} in a table, else all by default.")] = None,
    as_csv: Annotated[bool, Option("--csv", help="Print CSV, row by row: as many as there are.")] = False,
    memory: Annotated[str, Option(metavar="SIZE", help="Memory to use before it spills to the disk.")] = "1GB",
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the snapshots and plans of all nights in SQL. Without SQL: which tables, columns and nights there are.

    Every table has a column `night`, and the rows of one agent; times are in UTC. An incomplete or damaged night is
    left out and named. --from and --to read fewer nights, which is quicker. Nothing is changed.

    The examples ask how the store grew, which facts were superseded between two nights, and what nights propose most.

    $ nous query "select night, state, count(*) from facts group by all order by all"
    $ nous query --from 2026-11-01 --to 2026-11-20 "select night, content from facts qualify state = 'superseded' and lag(state) over (partition by id order by night) = 'active'"
    $ nous query --csv "select kind, state, count(*) from proposals group by all order by 3 desc"
    """  # noqa: E501 (an example is one line, to be copied)
    from nous_pipelines.plan.night_tables import TABLES, QueryScope, parsed_query, run_query

    if (agent and all_agents) or (as_csv and as_json):
        raise InvalidInput("give either --agent or --all-agents, and either --csv or --json")
    asked = None if sql is None else parsed_query(sys.stdin.read() if sql == "-" else sql)
    with opened(agent, is_for_all=all_agents) as (database, agent_id):
        nights = nights_of(database, TABLES if asked is None else asked.tables, (first, last))
        show_left_out(nights)
        if asked is None:
            show_tables(nights, database, as_json=as_json)
            return
        with waiting("asking …"), run_query(asked, nights, database, QueryScope(agent_id, memory)) as answer:
            if as_csv:
                show_csv(answer, limit)
            elif as_json:
                head = {"nights": nights.nights, "left_out": by_text(nights.left_out), "columns": answer.columns}
                stream_json(head, islice(rows_by_name(answer), limit))
            else:
                show_answer(answer, limit or SHOWN, agent_id)


def show_difference(first: str, last: str, agent: str | None) -> object:
    """Print the differences between the snapshots of two nights, of one agent or all, a line for each memory."""
    from nous_pipelines.plan.night_tables import BLOCKS, QueryScope, parsed_query, run_query

    earlier, later = parse_night(first), parse_night(last)
    if earlier >= later:
        raise InvalidInput(f"--from {earlier} is not before --to {later}; swap them")
    asked = parsed_query(BLOCKS["compare"])
    with opened(agent, is_for_all=agent is None) as (database, agent_id):
        nights = nights_of(database, asked.tables, (first, last))
        for night in (earlier, later):
            if night not in nights.nights:
                raise NotFound(f"night {night} can't be compared: {why_not_stored(database, night, nights)}")
        scope = QueryScope(agent_id, parameters={"earlier": earlier, "later": later})
        with run_query(asked, replace(nights, nights=(earlier, later)), database, scope) as answer:
            entries = list(rows_by_name(answer))
    for entry in entries:
        show_change(entry)
    counts = Counter(entry["change"] for entry in entries)
    summary = ", ".join(f"{count:,} {WORDS[change]}" for change, count in counts.items()) or "nothing differs"
    show(f"[dim]{earlier} → {later}:[/dim] {summary}")
    return {"from": earlier, "to": later, "entries": entries, "counts": counts}


# --- the nights and the agent ---


@contextmanager
def opened(agent: str | None, *, is_for_all: bool) -> Generator[tuple[Database, str | None]]:
    """Open the database as the night, blocking erasure, and yield it with the agent to query, None for all."""
    from nous_online.core.settings import settings
    from nous_online.memories.erasure import shared_copies_lock
    from nous_pipelines.plan.apply import find_agents

    agent_id = None if is_for_all else agent or settings().agent
    with (
        # SIGTERM and SIGHUP end it as Ctrl-C does, so that it removes its temporary files.
        handled({signal.SIGTERM, HANGUP}, signal.default_int_handler),
        open_database("nous_night") as database,
        shared_copies_lock(database.url),
    ):
        find_agents(database, [agent_id] if agent_id else [])
        yield database, agent_id


def nights_of(database: Database, tables: Collection[str], bounds: tuple[str | None, str | None]) -> StoredNights:
    """Return the nights of a database that are stored on this machine; raise `NotFound` if there is none."""
    from nous_pipelines.orchestration.instance import home_folder
    from nous_pipelines.plan.night_tables import stored_nights
    from nous_pipelines.snapshots.snapshot import night_folder

    first, last = (parse_night(bound) if bound else None for bound in bounds)
    if first and last and first > last:
        raise InvalidInput(f"--from {first} is after --to {last}; swap them")
    root = night_folder(home_folder() / "snapshots", database, FIRST_NIGHT).parent
    nights = stored_nights(root, tables, first=first or FIRST_NIGHT, last=last or date.max)
    if not nights.nights:
        show_left_out(nights)
        if last:
            raise NotFound(f"no night of those can be read: {why_not_stored(database, last, nights)}")
        raise NotFound(f"no night {'of those ' if first else ''}has run here; run one with: nous night")
    return nights


def why_not_stored(database: Database, night: date, nights: StoredNights) -> str:
    """Return why a night can't be read: it is damaged, was quiet, or has not run here."""
    from nous_pipelines.orchestration.running import why_not_run

    return nights.left_out.get(night) or why_not_run(database, night)


def show_left_out(nights: StoredNights) -> None:
    for night, why in nights.left_out.items():
        show_note(f"night {night} is left out: {why}")


# --- answers ---


def show_answer(answer: Answer, limit: int, agent_id: str | None) -> None:
    """Print the first rows as a table, or a line for each value if that is too wide, and the number of the others."""
    from rich.table import Table

    rows = list(islice(answer.rows, limit + 1))
    is_wide = len(answer.columns) * NARROWEST > stdout().width
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=not is_wide)
    for place, name in enumerate(("column", "value") if is_wide else answer.columns):
        is_number = not is_wide and rows and all(isinstance(row[place], int | float | Decimal) for row in rows)
        table.add_column(escaped(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows[:limit]:
        cells = [escaped(cell(value)) for value in row]
        if is_wide:
            for name, text in zip(answer.columns, cells, strict=True):
                table.add_row(escaped(name), text)
            table.add_row()
        else:
            table.add_row(*cells)
    show(table)
    if len(rows) > limit:
        more = answer.count() - limit
        show_note(f"… and {more:,} more; ask for them with --limit, or for all with --csv or --json")
    elif not rows:
        of_one = f" of agent {agent_id}; ask about another with --agent NAME, or about all with --all-agents"
        show_note(f"no rows{of_one if agent_id else ''}")


def cell(value: object) -> str:
    """Return a value as text for a table; of a vector only the first numbers."""
    if isinstance(value, list):
        items: list[object] = value
        if len(items) > SHOWN_NUMBERS and all(isinstance(each, float) for each in items):
            return f"[{', '.join(f'{each:.3f}' for each in items[:SHOWN_NUMBERS])}, … {len(items)} numbers]"
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value) if isinstance(value, list | dict) else str(value)


def show_csv(answer: Answer, limit: int | None) -> None:
    """Print all rows as CSV as they are read, lists and structures as JSON, null as empty."""
    clean = without_controls if sys.stdout.isatty() else str
    with written():
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(answer.columns)
        for row in islice(answer.rows, limit):
            lines.writerow([
                json_text(value) if isinstance(value, list | dict) else "" if value is None else clean(str(value))
                for value in row
            ])  # fmt: skip


def stream_json(head: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object with the values of `head` and a list of rows, which is streamed."""
    with written():
        sys.stdout.write(f'{json_text(head)[:-1]}, "rows": [')
        for place, row in enumerate(rows):
            sys.stdout.write(f"{', ' if place else ''}{json_text(row)}")
        sys.stdout.write("]}\n")


def rows_by_name(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield rows as dicts; the second column of a name gets its position as a suffix."""
    names: list[str] = []
    for place, name in enumerate(answer.columns):
        names.append(f"{name}_{place}" if name in names else name)
    for row in answer.rows:
        yield dict(zip(names, row, strict=True))


def json_text(value: object) -> str:
    """Return a value as JSON: times as ISO 8601, decimals as numbers, NaN and infinity as text."""
    try:
        return json.dumps(value, default=as_number, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(finite(value), default=as_number, ensure_ascii=False)


def as_number(value: object) -> Any:
    """Return a decimal as a number, and other values as plain JSON."""
    return float(value) if isinstance(value, Decimal) else as_json_value(value)


def finite(value: Any) -> Any:
    """Return a value with NaN and infinity as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]  # pyright: ignore[reportUnknownVariableType] (whatever a column holds)
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType] (so)
    return value


def by_text(reasons: Mapping[date, str]) -> dict[str, str]:
    return {night.isoformat(): why for night, why in reasons.items()}


# --- the tables ---


def show_tables(nights: StoredNights, database: Database, *, as_json: bool) -> None:
    from rich.table import Table

    from nous_pipelines.plan.night_tables import TABLES, stored_columns

    found = stored_columns(nights, database)
    meaning_of = {name: TABLES[name].meaning_of for name in found}
    if as_json:
        listed = {
            name: [{"name": each, "type": kind, "meaning": meaning_of[name](each)} for each, kind in columns.items()]
            for name, columns in found.items()
        }
        tables = [{"name": name, "meaning": TABLES[name].meaning, "columns": listed[name]} for name in found]
        show_json({"nights": nights.nights, "left_out": by_text(nights.left_out), "tables": tables})
        return
    show(f"[bold]{len(nights.nights):,} nights[/bold], {nights.nights[0]} to {nights.nights[-1]}")
    for name, columns in found.items():
        show(f"\n[bold]{name}[/bold]  {TABLES[name].meaning}")
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(style="dim", no_wrap=True)
        for column, kind in columns.items():
            table.add_row(f"  {escaped(column)}", escaped(kind), meaning_of[name](column))
        show(table)


# --- two nights ---


def show_change(entry: Mapping[str, Any]) -> None:
    from rich.text import Text

    sign, style = SIGNS.get(entry["change"], CHANGED)
    before, after = (" ".join(str(entry[name] or "").split()) for name in ("text_before", "text_after"))
    text = f"{before} → {after}" if "text" in entry["change"] else after or before
    moved: Sequence[Any] = [entry[name] for name in ("state_before", "state_after") if entry[name] is not None]
    states = " → ".join(dict.fromkeys(moved))
    show(Text.assemble((sign, style), text, f"   {entry['kind']}", (f"  {states}", "cyan")))
