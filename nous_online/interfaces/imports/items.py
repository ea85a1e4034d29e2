"""What a file of any format yields, one after the other: a record, or what is wrong with it, or why it is left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.file_lines import MAX_LINE_BYTES, Occurrences, lines_of, opened
from nous_online.interfaces.imports.records import ImportedRecord, parsed_object, parsed_record


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
