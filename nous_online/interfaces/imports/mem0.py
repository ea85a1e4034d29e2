"""Memories exported from mem0, as an answer of `get_all`, a list or one a line, to facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.core.unseen import is_blank
from nous_online.core.validation import MAX_NAMES
from nous_online.interfaces.imports.file_lines import opened
from nous_online.interfaces.imports.items import (
    ImportItem,
    ReaderState,
    canonical,
    fields_of,
    list_of,
    objects_of_lines,
)
from nous_online.interfaces.imports.json_stream import Unread, elements_of
from nous_online.interfaces.imports.records import ImportedRecord, id_text, imported_moment
from nous_online.interfaces.imports.redact import HIDDEN_FACTS
from nous_online.language.writing.credentials import holds_credential

LISTS = ("results", "memories")
OF_WHOM = ("agent_id", "app_id", "run_id")
"""What mem0 keeps beside the user; here they become tags."""
Fields = Mapping[str, Any]


def items_of_memories(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    """Yield the memories of an export, and what was wrong with some of them."""
    if path.suffix in (".jsonl", ".ndjson"):
        for place, fields in objects_of_lines(path):
            yield place if fields is None else memory_item(fields, place)
        return
    number = 0
    with opened(path) as file:
        unread = Unread(file)
        try:
            for element in elements_of(unread, lists=LISTS):
                number += 1
                yield memory_item(element, ImportItem(number, unread.bytes_read))
        except InvalidInput as error:
            yield ImportItem(number + 1, unread.bytes_read, problem=f"{error}; what comes after it was not read")


def memory_item(element: object, place: ImportItem) -> ImportItem:
    """Return one memory, what is wrong with it, or why it is left out."""
    try:
        fields = memory_fields(fields_of(element))
        name = fields.pop("id")
    except InvalidInput as error:
        return ImportItem(place.number, place.end, problem=str(error))
    if holds_credential(fields["content"]):
        return ImportItem(place.number, place.end, left_out={HIDDEN_FACTS: 1})
    return ImportItem(place.number, place.end, ImportedRecord("fact", None, None, fields), name, canonical(fields))


def memory_fields(memory: Fields) -> dict[str, Any]:
    """Return a memory as a fact, with a name for it; one that was updated since is another fact.

    Raises `InvalidInput` where it is none.
    """
    content = memory.get("memory") or memory.get("data") or memory.get("text") or memory.get("content")
    if not isinstance(content, str) or is_blank(content):
        raise InvalidInput("the memory has no text; it belongs under `memory`")
    said_at = imported_moment("updated_at", memory.get("updated_at")) or imported_moment(
        "created_at", memory.get("created_at")
    )
    metadata = fields_of(memory.get("metadata"))
    categories = [tag for tag in listed(memory.get("categories")) if tag]
    told = {**metadata, **{name: memory[name] for name in OF_WHOM if memory.get(name)}}
    tags = [*categories, *(f"{name}:{value}"[:100] for name, value in told.items() if isinstance(value, str | int))]
    own_id = None if memory.get("id") is None else id_text("id", memory["id"])
    return {
        "id": f"{own_id}:{sha256(content.encode('utf-8', 'replace')).hexdigest()[:16]}" if own_id else None,
        "content": content,
        "learned_at": said_at.isoformat() if said_at else None,
        "category": (categories or listed(metadata.get("category")) or [None])[0],
        "tags": tags[:MAX_NAMES],
        "user_id": memory.get("user_id"),
        "source": f"mem0:{own_id}" if own_id else "mem0",
    }


def listed(value: object) -> list[str]:
    """Return the names in a list, or a name as a list of itself; each at most 100 characters."""
    values = list_of(value) or [value]
    return [each[:100] for each in values if isinstance(each, str)]


def is_mem0(fields: Fields) -> bool:
    """Tell whether an object is a memory of mem0."""
    return isinstance(fields.get("memory"), str) and bool({"hash", "categories", "metadata"} & set(fields))
