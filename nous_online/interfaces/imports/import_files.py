"""Import files, however large: read line by line or element by element, each thing they hold with its place."""

from __future__ import annotations

import codecs
import json
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, cast

from nous_online.core.errors import InvalidInput
from nous_online.database.statements import statements
from nous_online.interfaces.imports.records import ImportedRecord, parsed_object, parsed_record, refuse_constant

MAX_LINE_BYTES = 8 * 1024 * 1024
SKIPPED_AT_ONCE_BYTES = 64 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SQL = statements("nous_online.interfaces.imports", "import_files.sql")


@dataclass(frozen=True)
class FileLine:
    """A line, counted from 1; `text` is None where it was too long to be read; `end` is the byte it ends at."""

    number: int
    text: bytes | None
    end: int


@contextmanager
def opened(path: Path) -> Generator[BinaryIO]:
    """Open a file to be imported; raise `InvalidInput` when it can't be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"can't read {path}: {error.strerror}; name a file to import") from error
    with file:
        yield file


def lines_of(file: BinaryIO) -> Iterator[FileLine]:
    """Yield the lines of a file, never holding more than 8 MiB of one."""
    number, end = 0, 0
    while text := file.readline(MAX_LINE_BYTES + 1):
        number, end = number + 1, end + len(text)
        if len(text) > MAX_LINE_BYTES and not text.endswith(b"\n"):
            end += skip_line(file)
            yield FileLine(number, None, end)
        else:
            yield FileLine(number, text.removeprefix(BYTE_ORDER_MARK).strip() if number == 1 else text.strip(), end)


def skip_line(file: BinaryIO) -> int:
    """Read on to the end of a line and return how many bytes that took."""
    skipped = 0
    while text := file.readline(SKIPPED_AT_ONCE_BYTES):
        skipped += len(text)
        if text.endswith(b"\n"):
            break
    return skipped


class Occurrences:
    """Names for lines without an id: by their content, and by how often that content occurred before.

    The counts lie in a temporary file, so that memory stays bounded whatever the size of the import.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute(SQL["create_seen"])

    def name(self, text: bytes, *, within: str = "") -> str:
        """Return the name of the next occurrence of a line; the same file yields the same names every time.

        Occurrences count within one source: what stands in another changes no name.
        """
        times = self._count(text, within)
        return f"{sha256(text).hexdigest()[:32]}:{times}"

    def is_new(self, text: bytes, *, within: str) -> bool:
        """Tell whether a text is met for the first time within one source."""
        return self._count(text, within) == 1

    def _count(self, text: bytes, within: str) -> int:
        digest = sha256(within.encode() + b"\n" + text).digest()
        return self._connection.execute(SQL["count_line"], [digest[:16]]).fetchone()[0]


@contextmanager
def occurrences() -> Generator[Occurrences]:
    """Count occurrences in a temporary file, which goes when the block ends."""
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.execute("begin")
        yield Occurrences(connection)


@dataclass(frozen=True)
class ImportItem:
    """One thing a file holds, counted from 1; `end` is the byte up to which the file was read for it."""

    number: int
    end: int
    record: ImportedRecord | None = None
    name: str | None = None
    """What tells the record from all others of its source; None leaves it to its id, or to its text."""
    text: bytes = b""
    """The record as it stood there."""
    problem: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """What was left out although nothing is wrong with it: the reason, and how many."""


@dataclass(frozen=True)
class ReaderState:
    """What the readers of one import share: the moment it began, and what was met before."""

    now: datetime
    seen: Occurrences
    is_over: bool = False
    """Nothing waits because more of it may come: whoever imports knows that it has ended."""
    stored_until: Callable[[str], datetime | None] = lambda _: None
    """When the episode of a name ended that an earlier import stored; None where there is none."""


ReadItems = Callable[[Path, ReaderState], Iterator[ImportItem]]


def items_of_lines(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    """Yield the records of a JSONL file, one a line."""
    with opened(path) as file:
        for line in lines_of(file):
            if line.text is None:
                yield ImportItem(line.number, line.end, problem=too_long())
                continue
            try:
                record = parsed_record(line.text) if line.text else None
            except InvalidInput as error:
                yield ImportItem(line.number, line.end, problem=str(error))
                continue
            yield ImportItem(line.number, line.end, record, text=line.text)


def objects_of_lines(path: Path) -> Iterator[tuple[ImportItem, dict[str, Any] | None]]:
    """Yield the JSON objects of a file that has one a line, each with an item for its place or its problem."""
    with opened(path) as file:
        for line in lines_of(file):
            found, problem = None, too_long() if line.text is None else None
            try:
                found = parsed_object(line.text) if line.text else None
            except InvalidInput as error:
                problem = str(error)
            yield ImportItem(line.number, line.end, text=line.text or b"", problem=problem), found


def too_long() -> str:
    """Say what is wrong with a line that is too long to be read."""
    return f"the line is longer than {MAX_LINE_BYTES:,} bytes; split it into several records"


def fields_of(value: object) -> Mapping[str, Any]:
    """Return the fields of a JSON object; none of anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[object]:
    """Return the elements of a JSON array; none of anything else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def canonical(fields: Mapping[str, Any]) -> bytes:
    """Return an object as text that depends on its content alone."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=True).encode()


PIECE_BYTES = 1024 * 1024
MAX_ELEMENT_CHARACTERS = 64 * 1024 * 1024
MOST_TOLD = 5
"""Names of what an object holds instead of what was sought, for a message."""
BLANK = re.compile(r"[ \t\r\n]*")


class Unread:
    """The part of a JSON text that was read from a file and not taken yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = json.JSONDecoder(parse_constant=refuse_constant)
        self._text = ""
        self._at = 0
        self._is_all = False
        self.bytes_read = 0

    def more(self) -> bool:
        """Read on, twice as much each time for the same element; return whether there was anything."""
        if self._is_all:
            return False
        piece = self._file.read(max(PIECE_BYTES, len(self._text) - self._at))
        self.bytes_read += len(piece)
        self._is_all = not piece
        try:
            self._text = self._text[self._at :] + self._decode(piece, final=self._is_all)
        except UnicodeDecodeError as error:
            raise InvalidInput(f"the file is not UTF-8 ({error.reason}); convert it, or export it again") from error
        self._at = 0
        return bool(piece)

    def peek(self) -> str:
        """Return the next character that is not blank, without taking it; an empty text at the end."""
        while True:
            match = BLANK.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self.more():
                return ""

    def take(self, character: str) -> None:
        """Take the next character, which must be this one."""
        found = self.peek()
        if found != character:
            raise InvalidInput(f"expected {character!r}, found {found or 'the end of the file'!r}; export it again")
        self._at += 1

    def value(self) -> Any:
        """Take the next JSON value; raise `InvalidInput` when it is broken, or longer than 64 Mi characters."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise InvalidInput("the JSON is nested too deeply") from error
            except ValueError as error:
                self._grow(error)
                continue
            if end < len(self._text) or self._is_all:  # else a number may go on
                self._at = end
                return value
            self.more()

    def _grow(self, error: ValueError) -> None:
        if isinstance(error, InvalidInput):
            raise error
        if len(self._text) - self._at > MAX_ELEMENT_CHARACTERS:
            raise InvalidInput(f"an element is longer than {MAX_ELEMENT_CHARACTERS:,} characters, or broken: {error}")
        if not self.more():
            raise InvalidInput(f"the JSON is broken or cut off: {error}; export it again") from error


def elements_of(unread: Unread, *, lists: Collection[str], alone: Collection[str] = ()) -> Iterator[Any]:
    """Yield the elements of an array, or of those an object holds under one of these names.

    An object that has one of the names in `alone` is the one element itself.
    Raises `InvalidInput` where the text is broken, after everything before, and where an object holds none of them.
    """
    if unread.peek() != "{":
        yield from array_elements(unread)
        return
    unread.take("{")
    others: dict[str, Any] = {}
    is_found = False
    while unread.peek() not in ("}", ""):
        name = unread.value()
        unread.take(":")
        if name in lists and unread.peek() == "[":
            is_found = True
            yield from array_elements(unread)
        else:
            value = unread.value()
            others[str(name)] = value if alone else None
        if unread.peek() == ",":
            unread.take(",")
    unread.take("}")
    if others.keys() & set(alone):
        yield others
    elif not is_found:
        names = [name[:40] for name in others][:MOST_TOLD]
        wanted, told = (" or ".join(map(repr, each)) for each in (lists, names))
        raise InvalidInput(f"expected a list, by itself or under {wanted}, found {told or 'nothing'}; export it again")


def array_elements(unread: Unread) -> Iterator[Any]:
    """Yield the elements of an array."""
    unread.take("[")
    while unread.peek() != "]":
        yield unread.value()
        if unread.peek() != "]":
            unread.take(",")
    unread.take("]")


DAMAGES = (InvalidInput, zipfile.BadZipFile, zlib.error, OSError)
"""What reading a damaged zip, or a damaged file in one, raises."""


@contextmanager
def archive(path: Path) -> Generator[zipfile.ZipFile]:
    """Open a zip; raise `InvalidInput` when it can't be read."""
    try:
        found = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InvalidInput(f"can't read {path}: {error}; download the export again") from error
    with found:
        yield found
