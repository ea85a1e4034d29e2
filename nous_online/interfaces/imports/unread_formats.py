"""What can be said of files that no reader takes: what they are where that can be told, and what is in a zip."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.file_lines import opened
from nous_online.interfaces.imports.items import fields_of, list_of
from nous_online.interfaces.imports.json_stream import Unread, elements_of

BEGINNING_BYTES = 65_536
SQLITE = b"SQLite format 3\x00"
ZIPPED = ("conversations.json", "memories.json")
KNOWN: Mapping[str, tuple[frozenset[str], str]] = {
    "codex exec": (
        frozenset({"type", "thread_id"}),
        "the event stream of `codex exec --json`, which has no dates; import the session that Codex keeps of it, "
        "in ~/.codex/sessions",
    ),
    "codex prompts": (
        frozenset({"session_id", "ts", "text"}),
        "the list of prompts that Codex keeps, without the answers; import ~/.codex/sessions",
    ),
    "gemini prompts": (
        frozenset({"sessionId", "messageId", "message"}),
        "the list of prompts that Gemini CLI keeps, without the answers; import the folder `chats` beside it",
    ),
    "claude.ai users": (
        frozenset({"uuid", "full_name"}),
        "the account of an export of claude.ai, which holds no memories; import its conversations.json and "
        "memories.json, or the zip",
    ),
    "claude.ai projects": (
        frozenset({"uuid", "prompt_template"}),
        "the projects of an export of claude.ai, which can't be read yet; its conversations.json and memories.json can",
    ),
    "trace": (frozenset({"resourceSpans"}), "a trace of OpenTelemetry, which can't be read"),
    "chat request": (
        frozenset({"messages", "model"}),
        "a request to a language model, which says no dates; write it as a line of JSONL with `turns` and a `date`",
    ),
}
Recognise = Callable[[Mapping[str, Any]], bool]


def unread_format(path: Path) -> str | None:
    """Return what a file in no format that can be read is, and what to import instead; None where nobody can tell."""
    with opened(path) as file:
        beginning = file.read(BEGINNING_BYTES)
    if beginning.startswith(SQLITE):
        return (
            "a database of SQLite, such as Cursor and ChatGPT's desktop app keep, which can't be read; export the "
            "conversations as JSON or Markdown and import those"
        )
    fields = first_object(beginning, path)
    return next((told for names, told in KNOWN.values() if names <= set(fields)), None)


def first_object(beginning: bytes, path: Path) -> Mapping[str, Any]:
    """Return the first JSON object of a file: on its first line, or the whole of it, or the first of its list."""
    line = beginning.partition(b"\n")[0].decode("utf-8", "replace").strip()
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        try:
            with opened(path) as file:
                value = Unread(file).value()
        except InvalidInput:
            value = None
    listed = list_of(value)
    return fields_of(listed[0] if listed else value)


def zipped_format(path: Path, lists: Sequence[str], recognised: Mapping[str, Recognise]) -> str | None:
    """Return the format of the files in a zip, as the first record of the first one tells it; None where none does."""
    try:
        with zipfile.ZipFile(path) as found:
            members = [each for each in found.namelist() if PurePosixPath(each).name in ZIPPED]
            for member in sorted(members):
                with found.open(member) as file:
                    first = fields_of(next(iter(elements_of(Unread(cast("Any", file)), lists=lists)), None))
                for name, recognises in recognised.items():
                    if recognises(first):
                        return name
    except (zipfile.BadZipFile, zlib.error, OSError, InvalidInput):
        return None
    return None
