"""Exporting an agent: every row of it as it was at one moment, streamed to a file that is there whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Literal, cast

from psycopg import Connection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL, Composed, Identifier

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.database.connection import Database, operated
from nous_online.database.statements import statements
from nous_online.interfaces.imports.records import parsed_object
from nous_online.memories.erasure import copying

FORMAT = 2
"""Counts how an export is written; one of a later format is refused. Format 1 had no statements."""
DROPPED = ("agent_id", "written_xid", "duration_seconds")
"""Whose a row is says the export; the others the server makes anew."""


@dataclass(frozen=True)
class Table:
    """A table: the columns its rows are ordered by, who may write it, and the statements that are its own."""

    name: str
    key: tuple[str, ...] = ("id",)
    writer: Literal["night", "app"] = "night"
    reading: str = "rows_of"
    storing: str = "store_rows"


TABLES = {
    table.name: table
    for table in (
        Table("lifecycle.plans", reading="plans_of", storing="store_plans"),
        Table("lifecycle.proposals", ("night", "id")),
        Table("lifecycle.agent_policies", ("agent_id",)),
        Table("lifecycle.health", ("night",)),
        Table("heart.episodes"),
        Table("heart.episode_artifacts", ("episode_id", "kind", "reference"), writer="app"),
        Table("brain.decisions", writer="app"),
        Table("heart.facts", reading="facts_of"),
        Table("heart.statements", writer="app"),
        Table("heart.procedures"),
        Table("heart.censors"),
        Table("heart.working_memory", ("session_id",), writer="app"),
        Table("heart.cold_texts", ("memory_id", "tier")),
        Table("heart.usage", ("memory_id",)),
        Table("heart.recalls", writer="app"),
        Table("heart.sightings", ("signal", "session_id"), writer="app"),
        Table("heart.requests", ("idempotency_key",), writer="app"),
        Table("heart.contradictions"),
        Table("heart.links", ("from_id", "to_id", "kind")),
        Table("heart.judgements", ("pair_hash", "model", "prompt_version")),
        Table("heart.completions", ("episode_id",), writer="app"),
        Table("heart.term_stats", ("lexeme",)),
        Table("heart.corpus_stats", ("memory_kind",)),
        Table("lifecycle.events", reading="events_of"),
    )
}
LEFT_BEHIND = {
    "heart.agents": "the header says which",
    "heart.api_keys": "secrets of one installation",
    "heart.llm_requests": "what one installation asked and paid",
    "heart.next_embeddings": "made anew when the agent moves to another embedding space",
    "heart.outbox": "announced where it happened",
    "heart.outbox_cursors": "places in that queue",
    "heart.webhooks": "addresses and secrets of one installation",
    "heart.postings": "made from the texts as they are stored",
    "lifecycle.tombstones": "who was erased stays erased",
}


BLOCKS = statements("nous_online.interfaces", "exporting.sql")
EXPORT_TIMEOUT_S = 4 * 3600.0
FETCHED_AT_ONCE = 100  # rows; an episode may hold a megabyte
TOLD_EVERY = 200  # rows
PACKED = ".gz"
MAX_HEADER_BYTES = 1024 * 1024

OnRows = Callable[[int], None]


@dataclass(frozen=True)
class Exported:
    """What was exported: the file, and how many rows of each table it holds."""

    path: Path
    agent_id: str
    rows: Mapping[str, int]
    sha256: str
    """Of everything in the file before its last line, as text."""
    size_bytes: int


class ExportWriter:
    """Writes lines, and knows their checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = sha256()

    def write(self, line: str) -> None:
        """Write one line."""
        encoded = line.encode() + b"\n"
        self._digest.update(encoded)
        self._file.write(encoded)

    def checksum(self) -> str:
        """Return the SHA-256 of what was written so far."""
        return self._digest.hexdigest()


def export_agent(database: Database, agent_id: str, path: Path, *, on_rows: OnRows | None = None) -> Exported:
    """Write everything of an agent to a file, packed where its name ends in `.gz`, and return what it holds.

    Raises `NotFound` for an agent nobody knows, and `InvalidInput` when the file can't be written; what was there
    under that name then is there still. Raises `Refused` when that is an export of another agent.
    """
    check_replaceable(path, agent_id)
    rows: dict[str, int] = {}
    with copying(database.url), replaced(path) as file, operated(database.url) as operated_on:
        writer = ExportWriter(file)
        with operated_on.transaction(agent_id, timeout_s=EXPORT_TIMEOUT_S, is_snapshot=True) as connection:
            connection.execute(BLOCKS["act_as_night"])
            writer.write(json.dumps(header(agent_id, spaces_of(connection, agent_id))))
            for number, (table, row) in enumerate(all_rows(connection, agent_id), start=1):
                writer.write(f'{{"table":"{table}","row":{row}}}')
                rows[table] = rows.get(table, 0) + 1
                if on_rows and number % TOLD_EVERY == 0:
                    on_rows(number)
        checksum = writer.checksum()
        writer.write(json.dumps({"end": {"rows": rows, "sha256": checksum}}))
    return Exported(path, agent_id, rows, checksum, path.stat().st_size)


def check_replaceable(path: Path, agent_id: str) -> None:
    """Raise `Refused` when a file is an export of another agent, perhaps the only one there is."""
    try:
        with (gzip.open if path.name.endswith(PACKED) else open)(path, "rb") as file:
            found = parsed_object(cast("BinaryIO", file).readline(MAX_HEADER_BYTES))
    except (OSError, EOFError, zlib.error, InvalidInput):
        return
    if "nous_export" in found and found.get("agent") != agent_id:
        message = (
            f"{path} is an export of agent {found.get('agent')!r}, not of {agent_id!r}; move it, or name another file"
        )
        raise Refused(message)


def header(agent_id: str, spaces: list[EmbeddingSpace]) -> dict[str, object]:
    """Return the first line of an export; raise `NotFound` for an agent that lives in no space."""
    if not spaces:
        raise NotFound(f"agent {agent_id!r} is not known here, so there is nothing to export; see `nous status`")
    return {
        "nous_export": FORMAT,
        "agent": agent_id,
        "exported_at": datetime.now(UTC).isoformat(),
        "version": version("nous-pipelines"),
        "spaces": [asdict(space) for space in spaces],
    }


def spaces_of(connection: Connection, agent_id: str) -> list[EmbeddingSpace]:
    """Return the embedding spaces of an agent's vectors, the one it lives in first."""
    with connection.cursor(row_factory=class_row(EmbeddingSpace)) as cursor:
        return cursor.execute(BLOCKS["spaces_of"], {"agent_id": agent_id}).fetchall()


def all_rows(connection: Connection, agent_id: str) -> Iterator[tuple[str, str]]:
    """Yield every row of an agent as JSON, with the name of its table."""
    parameters = {"agent_id": agent_id, "dropped": list(DROPPED)}
    for table in TABLES.values():
        with connection.cursor(name="export") as cursor:
            cursor.itersize = FETCHED_AT_ONCE
            cursor.execute(reading(table), parameters)
            for (row,) in cursor:
                yield table.name, row


def reading(table: Table) -> Composed:
    """Return the query for the rows of a table."""
    key = SQL(", ").join(map(Identifier, table.key))
    return SQL(BLOCKS[table.reading]).format(table=named(table), key=key)


def named(table: Table) -> Identifier:
    """Return the name of a table for a statement."""
    return Identifier(*table.name.split("."))


@contextmanager
def replaced(path: Path) -> Generator[BinaryIO]:
    """Yield a file that takes the place of another once it is whole; nobody else may read it.

    Raises `InvalidInput` when it can't be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with opened_new(partial) as plain:
            if path.name.endswith(PACKED):
                with gzip.GzipFile("", "wb", 6, plain, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield plain
            plain.flush()
            os.fsync(plain.fileno())
        partial.replace(path)
    except OSError as error:
        raise InvalidInput(f"can't write {path}: {error.strerror or error}; name another place") from error
    finally:
        with suppress(OSError):
            partial.unlink()


def opened_new(path: Path) -> BinaryIO:
    """Open a file for writing that only its owner may read."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


PAGES = statements("nous_online.interfaces", "pages.sql")


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
        for kind, query in PAGES.items():
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
