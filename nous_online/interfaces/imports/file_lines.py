"""The lines of an import file, however large: one at a time, numbered, with how often each occurred."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from nous_online.core.errors import InvalidInput
from nous_online.database.statements import statements

MAX_LINE_BYTES = 8 * 1024 * 1024
SKIPPED_AT_ONCE_BYTES = 64 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SQL = statements("nous_online.interfaces.imports", "file_lines.sql")


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
