"""An agent as pages of Markdown for people: one a kind, what belongs together under one heading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from psycopg.rows import TupleRow

from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.interfaces.exports.exporting import EXPORT_TIMEOUT_S, FETCHED_AT_ONCE, replaced, spaces_of
from nous_online.memories.erasure import copying

BLOCKS = statements("nous_online.interfaces.exports", "pages.sql")


@dataclass(frozen=True)
class Pages:
    """The folder the pages are in, and how many lines each has."""

    path: Path
    agent_id: str
    rows: Mapping[str, int]


def write_pages(database: Database, agent_id: str, folder: Path) -> Pages:
    """Write a page for each kind of memory, as all of them were at one moment, and return what was written.

    Raises `NotFound` for an agent nobody knows, and `InvalidInput` when a page can't be written.
    """
    counts: dict[str, int] = {}
    with (
        copying(database.url),
        database.transaction(agent_id, timeout_s=EXPORT_TIMEOUT_S, is_snapshot=True) as connection,
    ):
        if not spaces_of(connection, agent_id):
            raise NotFound(f"agent {agent_id!r} is not known here, so there is nothing to export; see `nous status`")
        made(folder)
        for kind, query in BLOCKS.items():
            with connection.cursor(name="pages") as rows, replaced(folder / f"{kind}.md") as page:
                rows.itersize = FETCHED_AT_ONCE
                rows.execute(query, {"agent_id": agent_id})
                counts[kind] = 0
                for count, line in lines_of(kind, rows):
                    counts[kind] += count
                    page.write(line.encode())
    return Pages(folder, agent_id, counts)


def made(folder: Path) -> None:
    """Make the folder; raise `InvalidInput` when that is not possible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"can't make the folder {folder}: {error.strerror}; name another place") from error


def lines_of(kind: str, rows: Iterable[TupleRow]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, each with how many memories it tells of."""
    yield 0, f"# {kind.capitalize()}\n"
    for heading, group in groupby(rows, key=lambda row: row[0]):
        yield 0, f"\n## {on_one_line(heading)}\n\n"
        for _, line in group:
            yield 1, f"- {on_one_line(line)}\n"


def on_one_line(text: str) -> str:
    """Return a text without line ends, so that it stays one item of a list."""
    return " ".join(text.split())
