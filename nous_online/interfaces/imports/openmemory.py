"""The backup that mem0's self-hosted server makes, as the zip it comes in or its `memories.json`, to facts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.chatgpt import archive
from nous_online.interfaces.imports.file_lines import opened
from nous_online.interfaces.imports.items import ImportItem, ReaderState, fields_of, list_of
from nous_online.interfaces.imports.json_stream import Unread
from nous_online.interfaces.imports.mem0 import memory_item

BACKUP = "memories.json"
GONE = ("deleted",)
DELETED = "memories that were deleted there"
Fields = Mapping[str, Any]


def items_of_backup(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    """Yield the memories of a backup, each of its user and with the names of its categories and its app."""
    backup, end = read_backup(path)
    user = fields_of(backup.get("user"))
    categories, apps = names_in(backup, "categories"), names_in(backup, "apps")
    for number, memory in enumerate(map(fields_of, list_of(backup.get("memories"))), start=1):
        place = ImportItem(number, end)
        if memory.get("state") in GONE or memory.get("deleted_at"):
            yield ImportItem(number, end, left_out={DELETED: 1})
            continue
        named = [categories[each] for each in map(str, list_of(memory.get("category_ids"))) if each in categories]
        app = apps.get(str(memory.get("app_id")))
        yield memory_item(
            {
                **memory,
                "memory": memory.get("content"),
                "categories": named,
                "user_id": user.get("user_id"),
                "app_id": app,
            },
            place,
        )


def read_backup(path: Path) -> tuple[Fields, int]:
    """Return the backup in a file or a zip; raise `InvalidInput` where there is none."""
    if not zipfile.is_zipfile(path):
        with opened(path) as file:
            unread = Unread(file)
            return fields_of(unread.value()), unread.bytes_read
    with archive(path) as found:
        member = next((each for each in found.namelist() if PurePosixPath(each).name == BACKUP), None)
        if member is None:
            raise InvalidInput(f"{path} holds no {BACKUP}; name the zip that mem0 exported")
        with found.open(member) as file:
            unread = Unread(cast("Any", file))
            return fields_of(unread.value()), unread.bytes_read


def names_in(backup: Fields, table: str) -> dict[str, str]:
    """Return the names of a table of a backup by their ids."""
    rows = map(fields_of, list_of(backup.get(table)))
    return {str(row.get("id")): str(row["name"]) for row in rows if row.get("name")}


def is_openmemory(fields: Fields) -> bool:
    """Tell whether an object is a memory of such a backup."""
    return isinstance(fields.get("content"), str) and {"state", "category_ids", "app_id"} <= set(fields)
