"""Exports of an agent as a file: written from one snapshot, restored row for row, rewritten without erased parts."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from uuid import uuid4

from psycopg import Connection
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import InvalidInput, Refused
from nous_online.core.files import replacing
from nous_online.core.validation import LARGEST_LEAD, checked_agent, checked_moment
from nous_online.database.connection import Database, operator_database, register_space
from nous_online.database.statements import fetch, statements
from nous_online.interfaces.imports.records import parse_object
from nous_online.language.embedding import embedder_of
from nous_online.memories import store
from nous_online.memories.erasure import Erasure, erase_again, erase_copy, shared_copies_lock
from nous_online.memories.status import unknown_agent
from nous_online.recall.recall import refresh_statistics

BLOCKS = statements("nous_online.interfaces", "exporting.sql")

FORMAT = 2
"""Version of the file format; a later one is refused. Format 1 had no statements."""
DROPPED = ("agent_id", "written_xid", "duration_seconds")
"""Columns left out: the header names the agent, and the server generates the others."""


@dataclass(frozen=True)
class Table:
    """A table: the columns that order its rows, the role that may write it, and its SQL blocks."""

    name: str
    key: tuple[str, ...] = ("id",)
    writer: Literal["night", "app"] = "night"
    reading: str = "rows_of"
    storing: str = "store_rows"


# Restored in this order, so that a row comes after those its foreign keys point to.
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
        Table("lifecycle.events", reading="events_of"),
    )
}
COUNTED_ANEW = ("heart.term_stats", "heart.corpus_stats")
"""Tables of which earlier exports have rows: they are counted again from the memories, and would keep erased words."""
EXPORT_TIMEOUT_S = 4 * 3600.0
FETCHED_AT_ONCE = 100  # rows; an episode may hold a megabyte
COMPRESSED = ".gz"
MAX_HEADER_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Exported:
    """An export that was written: the file, and the number of rows of each table."""

    path: Path
    agent_id: str
    rows: Mapping[str, int]
    sha256: str
    """Of all lines before the last, uncompressed."""
    size_bytes: int


class ExportWriter:
    """Writes lines and computes their checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = sha256()

    def write(self, line: str) -> None:
        encoded = line.encode() + b"\n"
        self._digest.update(encoded)
        self._file.write(encoded)

    def checksum(self) -> str:
        return self._digest.hexdigest()


def export_agent(database: Database, agent_id: str, path: Path) -> Exported:
    """Write all rows of an agent to a file, compressed if its name ends in `.gz`, and return what it holds.

    Raises `NotFound` for an unknown agent, `InvalidInput` when the file can't be written, and `Refused` when it exists
    and is an export of another agent. An existing file is replaced only by a complete one.
    """
    check_replaceable(path, agent_id)
    # `shared_copies_lock` keeps erasing out until the file is complete: rows in memory could not be erased.
    with (
        shared_copies_lock(database.url),
        atomic_file(path) as file,
        operator_database(database.url) as operated_on,
        operated_on.transaction(agent_id, timeout_s=EXPORT_TIMEOUT_S, is_snapshot=True) as connection,
    ):
        connection.execute(BLOCKS["act_as_night"])
        header = {
            "nous_export": FORMAT,
            "agent": agent_id,
            "exported_at": datetime.now(UTC).isoformat(),
            "version": version("nous-pipelines"),
            "spaces": [asdict(space) for space in spaces_of(connection, agent_id, database.url)],
        }
        rows, checksum = write_rows(connection, agent_id, header, file)
    return Exported(path, agent_id, rows, checksum, path.stat().st_size)


def write_rows(
    connection: Connection, agent_id: str, header: Mapping[str, Any], file: BinaryIO
) -> tuple[Mapping[str, int], str]:
    """Write a header, all rows of an agent and the last line, and return the rows of each table and the checksum."""
    writer, rows = ExportWriter(file), Counter[str]()
    writer.write(json.dumps(header))
    for table, row in all_rows(connection, agent_id):
        writer.write(f'{{"table":"{table}","row":{row}}}')
        rows[table] += 1
    checksum = writer.checksum()
    writer.write(json.dumps({"end": {"rows": rows, "sha256": checksum}}))
    return rows, checksum


def check_replaceable(path: Path, agent_id: str) -> None:
    """Raise `Refused` when a file is an export of another agent: it may be the only copy."""
    try:
        with open_export(path) as file:
            found = parse_object(file.readline(MAX_HEADER_BYTES))
    except InvalidInput:
        return
    if "nous_export" in found and found.get("agent") != agent_id:
        message = (
            f"{path} is an export of agent {found.get('agent')!r}, not of {agent_id!r}; move it, or name another file"
        )
        raise Refused(message)


def spaces_of(connection: Connection, agent_id: str, url: str) -> list[EmbeddingSpace]:
    """Return the embedding spaces of an agent's vectors, its current one first; raise `NotFound` for an unknown one."""
    if found := fetch(connection, EmbeddingSpace, BLOCKS["spaces_of"], {"agent_id": agent_id}):
        return found
    raise unknown_agent(url, agent_id)


def all_rows(connection: Connection, agent_id: str) -> Iterator[tuple[str, str]]:
    parameters = {"agent_id": agent_id, "dropped": list(DROPPED)}
    for table in TABLES.values():
        # A server-side cursor, so that no table has to fit in memory.
        with connection.cursor(name="export") as cursor:
            cursor.itersize = FETCHED_AT_ONCE
            key = SQL(", ").join(map(Identifier, table.key))
            cursor.execute(SQL(BLOCKS[table.reading]).format(table=identifier_of(table), key=key), parameters)
            for (row,) in cursor:
                yield table.name, row


def identifier_of(table: Table) -> Identifier:
    return Identifier(*table.name.split("."))


@contextmanager
def atomic_file(path: Path) -> Generator[BinaryIO]:
    """Yield a new file that replaces `path` once it is complete, readable by its owner only.

    Raises `InvalidInput` when it can't be written.
    """
    try:
        with replacing(path) as plain:
            if path.name.endswith(COMPRESSED):
                # Without name and time in its header: equal content gives equal bytes.
                with gzip.GzipFile("", "wb", 6, plain, mtime=0) as compressed:
                    yield cast("BinaryIO", compressed)
            else:
                yield plain
    except OSError as error:
        raise InvalidInput(f"can't write {path}: {error.strerror or error}; name another place") from error


PAGES = statements("nous_online.interfaces", "export_pages.sql")


@dataclass(frozen=True)
class Pages:
    """The folder of the pages, and the number of memories on each."""

    path: Path
    agent_id: str
    rows: Mapping[str, int]


def write_pages(database: Database, agent_id: str, folder: Path) -> Pages:
    """Write a Markdown page for each kind of memory, from one snapshot, and return what was written.

    Raises `NotFound` for an unknown agent, and `InvalidInput` when a page can't be written.
    """
    counts: dict[str, int] = {}
    with (
        shared_copies_lock(database.url),
        database.transaction(agent_id, timeout_s=EXPORT_TIMEOUT_S, is_snapshot=True) as connection,
    ):
        spaces_of(connection, agent_id, database.url)
        make_folder(folder)
        for kind, query in PAGES.items():
            counts[kind] = 0
            with connection.cursor(name="pages") as rows, atomic_file(folder / f"{kind}.md") as page:
                rows.itersize = FETCHED_AT_ONCE
                rows.execute(query, {"agent_id": agent_id})
                page.write(f"# {kind.capitalize()}\n".encode())
                for heading, group in groupby(rows, key=lambda row: row[0]):
                    page.write(f"\n## {on_one_line(heading)}\n\n".encode())
                    for _, lines in group:
                        counts[kind] += 1
                        page.writelines(f"- {on_one_line(line)}\n".encode() for line in lines)
    return Pages(folder, agent_id, counts)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"can't make the folder {folder}: {error.strerror}; name another place") from error


def on_one_line(text: str) -> str:
    """Return a text without line ends, so that it stays one item of a list."""
    return " ".join(text.split())


RESTORE_TIMEOUT_S = 4 * 3600.0

# --- restoring ---

STORED_AT_ONCE = 200  # rows
MAX_LINE_BYTES = 64 * 1024 * 1024
DATED = {
    "heart.facts": ("created_at", ("learned_at", "last_confirmed_at")),
    "heart.statements": ("recorded_at", ("said_at",)),
}
"""Columns with the time of writing, and columns with the time a statement was made."""
EVENTS = "lifecycle.events"

Row = dict[str, Any]


@dataclass(frozen=True)
class Header:
    """The first line of an export."""

    agent_id: str
    exported_at: str
    spaces: tuple[EmbeddingSpace, ...]
    """The current one of the agent first."""
    fields: Mapping[str, Any]
    """All that it says."""

    @property
    def format(self) -> int:
        """The version of the file's format."""
        return int(self.fields["nous_export"])


@dataclass(frozen=True)
class Restored:
    """An export that was restored: the agent, the time of the export, and the number of rows of each table."""

    agent_id: str
    exported_at: str
    rows: Mapping[str, int]
    erased: int = 0
    """The number of its memories that had been erased here on request, and were erased again."""


def restore_agent(database: Database, path: Path, *, agent_id: str | None = None) -> Restored:
    """Store all rows of an export in one transaction, for its agent or under another name, and return their number.

    Memories that were erased here on request are erased again. Raises `InvalidInput` when the file is not an export,
    truncated, changed since or of a newer format, and `Refused` when the agent has memories already or was erased here.
    """
    # The file is read twice: nothing is stored of one whose checksum, at its end, is wrong.
    header, rows, merged = read_whole(path)
    agent_id = checked_agent(agent_id or header.agent_id)
    for number, space in enumerate(header.spaces):
        register_space(database, space, is_indexed=number == 0)
    with (
        operator_database(database.url) as operated_on,
        operated_on.transaction(agent_id, timeout_s=RESTORE_TIMEOUT_S) as connection,
    ):
        store_export(connection, path, header, merged, agent_id)
        connection.execute(BLOCKS["act_as_purge"])
        erased = erase_again(connection, agent_id, header.agent_id, header.exported_at, embedder_of)
        connection.execute(BLOCKS["act_as_night"])
        refresh_statistics(connection, agent_id, is_full=True)
    return Restored(agent_id, header.exported_at, rows, erased)


def store_export(connection: Connection, path: Path, header: Header, merged: frozenset[str], agent_id: str) -> None:
    """Store all rows of an export for an agent that has none yet."""
    connection.execute(BLOCKS["act_as_night"])
    store.lock_agent(connection, agent_id)
    create_agent(connection, agent_id, header.spaces[0])
    for table, batch in batches(path):
        known = batch if header.format == FORMAT else with_succession(table, batch, merged)
        connection.execute(BLOCKS[f"act_as_{table.writer}"])
        owner = {"agent_ids": [agent_id]} if table.storing == "store_plans" else {"agent_id": agent_id}
        owned = [{**without_future(table, row), **owner} for row in known]
        if table.name == EVENTS:
            store_events(connection, agent_id, table, owned)
        else:
            store_rows(connection, table, owned)
    if header.format < FORMAT:
        connection.execute(BLOCKS["act_as_app"])
        connection.execute(BLOCKS["store_first_statements"], {"agent_id": agent_id})
    # Deferred constraints are checked now, with all rows there: erasing removes some of them.
    for block in ("check_rows", "check_later"):
        connection.execute(BLOCKS[block])


def read_whole(path: Path) -> tuple[Header, Mapping[str, int], frozenset[str]]:
    """Return the header of an export, its counts, and the facts that were merged into a successor.

    Raises `InvalidInput` if the file is truncated or changed.
    """
    with open_export(path) as file:
        header = read_header(file.readline(MAX_LINE_BYTES), path)
    counts = Counter[str]()
    is_merged: dict[str, bool] = {}
    for table, row in rows_in(path):
        counts[table.name] += 1
        if table.name == EVENTS and row.get("after", {}).get("superseded_by"):
            is_ruled = str(row["reason"]).startswith("contradiction resolved: merged")
            is_merged[row["memory_id"]] = row["action"] == "merged" or is_ruled
    return header, counts, frozenset(memory for memory, was_merged in is_merged.items() if was_merged)


def with_succession(table: Table, rows: list[Row], merged: frozenset[str]) -> list[Row]:
    """Return rows of format 1 with the column `succession` of facts, which only its events tell."""
    if table.name != "heart.facts":
        return rows
    ways = {True: "merged", False: "replaced"}
    return [{**row, "succession": ways[row["id"] in merged] if row["superseded_by"] else None} for row in rows]


def without_future(table: Table, row: Row) -> Row:
    """Return a row without dates in the future, which earlier versions accepted: the time of writing replaces them."""
    written, moments = DATED.get(table.name, ("", ()))
    now = datetime.now(UTC)
    ahead = [name for name in moments if (checked_moment(name, row.get(name)) or now) > now + LARGEST_LEAD]
    if not ahead:
        return row
    return {**row, **dict.fromkeys(ahead, min(checked_moment(written, row[written]) or now, now).isoformat())}


@contextmanager
def open_export(path: Path) -> Generator[BinaryIO]:
    """Open an export, decompressed if its name ends in `.gz`; raise `InvalidInput` when it can't be read."""
    try:
        with path.open("rb") as plain:
            yield cast("BinaryIO", gzip.GzipFile(fileobj=plain)) if path.name.endswith(COMPRESSED) else plain
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"can't read {path}: {error}; take another copy of the export") from error


def read_header(line: bytes, path: Path) -> Header:
    """Read the first line of an export; raise `InvalidInput` for another file or a later format."""
    try:
        fields = parse_object(line)
    except InvalidInput:
        fields = {}
    if "nous_export" not in fields:
        raise InvalidInput(f"{path} is no export of Nous; `nous export` writes one, other histories need no --format")
    if fields["nous_export"] not in range(1, FORMAT + 1):
        raise InvalidInput(
            f"{path} is an export of format {fields['nous_export']!r}, this version of Nous reads {FORMAT}; upgrade it"
        )
    try:
        spaces = tuple(EmbeddingSpace(**space) for space in fields["spaces"])
        own = (spaces[0], *spaces[1:])
        checked_moment("exported_at", exported_at := str(fields["exported_at"]))
        return Header(checked_agent(fields["agent"]), exported_at, own, fields)
    except (KeyError, TypeError, IndexError) as error:
        raise damaged(path, "its first line is not what an export begins with") from error


def rows_in(path: Path) -> Iterator[tuple[Table, Row]]:
    """Yield the rows of an export, each with its table; raise `InvalidInput` at its end if the checksum is wrong."""
    digest = sha256()
    counts = Counter[str]()
    with open_export(path) as file:
        digest.update(file.readline(MAX_LINE_BYTES))
        while line := file.readline(MAX_LINE_BYTES):
            try:
                fields = parse_object(line)
            except InvalidInput as error:
                raise damaged(path, f"one of its lines can't be read ({error})") from error
            if "end" in fields:
                if fields["end"] != {"rows": counts, "sha256": digest.hexdigest()}:
                    raise damaged(path, "its checksum is not that of its lines, so it was changed since it was written")
                if file.read(1):
                    raise damaged(path, "something follows its last line")
                return
            digest.update(line)
            if fields.get("table") in COUNTED_ANEW:
                counts[str(fields["table"])] += 1
                continue
            table, row = TABLES.get(str(fields.get("table"))), fields.get("row")
            if table is None or not isinstance(row, dict):
                raise damaged(path, f"it holds rows of {fields.get('table')!r}, which is no table of this version")
            counts[table.name] += 1
            yield table, cast("Row", row)
    raise damaged(path, "it is cut off: its last line is missing")


def damaged(path: Path, what: str) -> InvalidInput:
    return InvalidInput(f"{path} is damaged: {what}; nothing was stored, take another copy of the export")


def create_agent(connection: Connection, agent_id: str, space: EmbeddingSpace) -> None:
    """Create the agent in its space; raise `Refused` when it has rows already or was erased here."""
    key = {"agent_id": agent_id, "space_id": space.id}
    connection.execute(BLOCKS["act_as_purge"])
    if connection.execute(BLOCKS["was_erased"], key).fetchone() == (True,):
        raise Refused(f"agent {agent_id!r} was erased here on request; restore it under another name with --agent NAME")
    connection.execute(BLOCKS["act_as_night"])
    for table in TABLES.values():
        query = SQL(BLOCKS["has_rows"]).format(table=identifier_of(table))
        # Plans belong to nights, not to one agent.
        if table.storing != "store_plans" and connection.execute(query, key).fetchone() == (True,):
            raise Refused(
                f"agent {agent_id!r} is known here already, and an export is restored into a new one; name "
                f"another with --agent NAME, or erase this one first: nous erase {shlex.quote(agent_id)}"
            )
    connection.execute(BLOCKS["act_as_app"])
    store.register_agent(connection, agent_id, space.id)
    connection.execute(BLOCKS["act_as_night"])
    connection.execute(BLOCKS["move_agent"], key)


def batches(path: Path) -> Iterator[tuple[Table, list[Row]]]:
    for table, group in groupby(rows_in(path), key=lambda found: found[0]):
        while batch := [row for _, row in islice(group, STORED_AT_ONCE)]:
            yield table, batch


def store_events(connection: Connection, agent_id: str, table: Table, rows: Sequence[Row]) -> None:
    """Store events in order: the server gives new ids, so an undo looks up the new id of the event it undoes."""
    for is_undoing, group in groupby(rows, key=lambda row: row.get("undoes") is not None):
        if not is_undoing:
            store_rows(connection, table, list(group))
            continue
        for row in group:
            found = connection.execute(BLOCKS["find_event"], {"agent_id": agent_id, **row["undoes"]}).fetchone()
            store_rows(connection, table, [{**row, "undoes": found[0] if found else None}])


def store_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Store rows of one table; raise `InvalidInput` for an unknown column."""
    columns = tuple(rows[0])
    known = {row[0] for row in connection.execute(BLOCKS["columns_of"], {"table": table.name})}
    if unknown := {column for row in rows for column in row} - known:
        raise InvalidInput(
            f"the export has a column {sorted(unknown)[0]!r} of {table.name} that this version of Nous does not know; "
            "upgrade it; nothing was stored"
        )
    names = SQL(", ").join(map(Identifier, columns))
    statement = SQL(BLOCKS[table.storing]).format(table=identifier_of(table), columns=names)
    connection.execute(statement, {"rows": Jsonb(list(rows))})


def erase_exports(erasure: Erasure, paths: Iterable[Path]) -> Counter[str]:
    """Erase an agent or part of it from exports, and return how many of them held some of it.

    An export of an agent that is erased entirely is deleted. Raises `InvalidInput` for a file that is not a complete
    export, and `Refused` for one of another agent.
    """
    found = Counter[str]()
    for path in paths:
        if not path.exists():  # deleted by the look before this one
            continue
        with open_export(path) as file:
            agent_id = read_header(file.readline(MAX_LINE_BYTES), path).agent_id
        if agent_id != erasure.agent_id:
            raise Refused(f"{path} is an export of agent {agent_id!r}, not of {erasure.agent_id!r}; name another file")
        if erasure.ids is None:
            found["exports"] += 1
            if not erasure.is_dry_run:
                path.unlink()
            continue
        found["exports"] += rewrite_export(path, erasure)
    return +found


def rewrite_export(path: Path, erasure: Erasure) -> bool:
    """Rewrite an export without the erased part, and return whether it held some of it.

    Its rows are stored under a name of their own, erased as those of the store are, read again and taken back: what the
    file says afterwards is what the store says, and where a rule of the store forbids it, the file stays as it was.
    """
    header, _, merged = read_whole(path)
    copy_id = uuid4().hex
    with operator_database(erasure.url) as database:
        for space in header.spaces:
            register_space(database, space, is_indexed=False)
        with (
            database.transaction(copy_id, timeout_s=RESTORE_TIMEOUT_S) as connection,
            connection.transaction(force_rollback=True),
        ):
            store_export(connection, path, header, merged, copy_id)
            connection.execute(BLOCKS["act_as_night"])
            fields = {**header.fields, "nous_export": FORMAT}
            with Path(os.devnull).open("wb") as nowhere:
                before = write_rows(connection, copy_id, fields, nowhere)
            connection.execute(BLOCKS["act_as_purge"])
            erase_copy(connection, copy_id, erasure, embedder_of if embedder_of(header.spaces[0]) else None)
            connection.execute(BLOCKS["check_rows"])
            connection.execute(BLOCKS["act_as_night"])
            with Path(os.devnull).open("wb") if erasure.is_dry_run else atomic_file(path) as file:
                return write_rows(connection, copy_id, fields, file) != before
