"""The formats of histories: how each is recognised and read, and what its records are called."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.coding_sessions import (
    by_age,
    is_claude_code,
    is_codex,
    is_gemini,
    is_gemini_message,
    read_claude_code,
    read_codex,
    read_gemini,
)
from nous_online.interfaces.imports.import_files import (
    READ_ERRORS,
    JsonStream,
    Reader,
    is_named,
    open_file,
    read_elements,
    read_value,
)
from nous_online.interfaces.imports.json_records import is_chat, is_chat_message, read_chats, read_jsonl
from nous_online.interfaces.imports.markdown_notes import read_markdown
from nous_online.interfaces.imports.program_exports import (
    BACKUP,
    CONVERSATIONS,
    is_claude_ai,
    is_langgraph,
    is_letta,
    is_mcp_memory,
    is_mem0,
    is_openmemory,
    read_chatgpt,
    read_claude_ai,
    read_langgraph,
    read_letta,
    read_mcp_memory,
    read_mem0,
    read_openmemory,
)
from nous_online.interfaces.imports.records import Fields, fields_of, list_of, parse_object

LINES_READ = 20
"""How many lines of a file are read to recognise its format; each program's log identifies itself in fewer."""
LINES, MARKDOWN = ("*.jsonl", "*.ndjson"), ("*.md", "*.markdown", "*.mdx")
LINES_OR_JSON, ZIP_OR_JSON = (*LINES, "*.json"), ("*.zip", "*.json")
INSTALLED = frozenset({"node_modules", "__pycache__", "venv"})
FILES_PASSED_OVER = "files in no known format"
Recognise = Callable[[Fields], bool]


@dataclass(frozen=True)
class Format:
    """A format: its name, what one of its records is called, and how its files are recognised and read."""

    name: str
    unit: str
    read: Reader
    files: Sequence[str]
    """The files of a folder that are read in this format when it is named, with wildcards."""
    is_line: Recognise | None = None
    """Whether an object on a line of a file is in this format."""
    is_element: Recognise | None = None
    """Whether an object that stands by itself in a file, or first in its list, is in this format."""
    has_own_source: bool = True
    """Whether its records have the same ids in whichever file they are; otherwise each file is a source."""

    def source_of(self, path: Path) -> str:
        """Return the name of the import that the ids of a file belong to."""
        return self.name if self.has_own_source else path.name.split(".")[0]


FORMATS = {
    each.name: each
    for each in (
        Format("jsonl", "line", read_jsonl, LINES, has_own_source=False),
        Format("claude-code", "line", read_claude_code, LINES, is_claude_code),
        Format("chatgpt", "conversation", read_chatgpt, (CONVERSATIONS,), None, lambda fields: "mapping" in fields),
        Format("codex", "line", read_codex, LINES, is_codex),
        Format("gemini", "message", read_gemini, LINES_OR_JSON, is_gemini, is_gemini_message),
        Format("claude-ai", "conversation", read_claude_ai, ZIP_OR_JSON, None, is_claude_ai),
        Format("mem0", "memory", read_mem0, LINES_OR_JSON, is_mem0, is_mem0),
        Format("openmemory", "memory", read_openmemory, ZIP_OR_JSON, None, is_openmemory),
        Format("mcp-memory", "line", read_mcp_memory, LINES_OR_JSON, is_mcp_memory, is_mcp_memory),
        Format("langgraph", "item", read_langgraph, LINES_OR_JSON, is_langgraph, is_langgraph),
        Format("letta", "block", read_letta, ("*.af", "*.json"), None, is_letta),
        Format(
            "chats",
            "chat",
            read_chats,
            LINES_OR_JSON,
            None,
            lambda fields: is_chat(fields) or is_chat_message(fields),
            has_own_source=False,
        ),
        Format("markdown", "line", read_markdown, MARKDOWN),
    )
}
"""In the order in which they are tried: an object is in the first format that recognises it."""
AUTO = "auto"
NOUS = "nous"
NAMES = (AUTO, *FORMATS, NOUS)
BY_ENDING = {".md": "markdown", ".markdown": "markdown", ".mdx": "markdown", ".af": "letta", ".gz": NOUS}
"""The endings of files that only one format has."""
SESSIONS = ("claude-code", "codex", "gemini")
LISTS = ("results", "memories", "conversations", "messages", "items", "entities", "relations", "agents", "core_memory")
"""The names of the lists that hold the records of these formats."""
ALONE = ("mapping", "chat_messages", "conversations_memory")
"""Names that only a record has which is the one object of its file."""


@dataclass(frozen=True)
class SourceFile:
    """A file to be imported, and the format it is in."""

    path: Path
    format: Format


def sources_of(paths: Sequence[Path], wanted: str) -> tuple[list[SourceFile], int]:
    """Return the files to read, in order, and how many files of folders are in no known format.

    Raises `InvalidInput` if a named file is in no known format or can't be read, and if there is no file to read.
    """
    found: list[SourceFile] = []
    exports: list[Path] = []
    passed_over = 0
    for path in paths:
        if not path.is_dir():
            found.append(SourceFile(path, named_format(path, wanted)))
            continue
        for each in files_in(path):
            is_wanted = wanted in FORMATS and is_named(each.name.lower(), FORMATS[wanted].files)
            name = detected_format(each) if wanted == AUTO else wanted if is_wanted else None
            found += [SourceFile(each, FORMATS[name])] if name in FORMATS else []
            exports += [each] if name == NOUS else []
            passed_over += name not in FORMATS
    if exports and not found:
        raise InvalidInput(f"{exports[0]} is an export of Nous, which is restored by itself: nous import {exports[0]}")
    if not found:
        raise InvalidInput(f"nothing to import in {', '.join(map(str, paths))}; name files, or another --format")
    # Sessions come last and by age: a message that several sessions hold counts where it was said first.
    sessions = [source for source in found if source.format.name in SESSIONS]
    others = [source for source in found if source.format.name not in SESSIONS]
    return [*others, *sorted(sessions, key=lambda source: by_age(source.path))], passed_over


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, except hidden and installed ones; links are not followed."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInput(f"can't read {folder}: {error.strerror}; name a folder you may read") from error
    for entry in entries:
        if entry.name.startswith(".") or entry.name in INSTALLED or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from files_in(entry)
        elif entry.is_file():
            yield entry


def named_format(path: Path, wanted: str) -> Format:
    """Return the format of a file that was named; raise `InvalidInput` if it is not known or can't be imported."""
    name = format_of(path) if wanted == AUTO else wanted
    if name == NOUS:
        raise InvalidInput(f"{path} is an export of Nous; import it by itself, with nothing else")
    if name in FORMATS:
        return FORMATS[name]
    if description := unsupported_format(path):
        raise InvalidInput(f"{path} is {description}")
    known = f"say which with --format: {', '.join(FORMATS)}"
    raise InvalidInput(f'{path} is in no known format; {known}; or write each record as a line {{"content": …}}')


def format_of(path: Path) -> str | None:
    """Return the name of a file's format by its name and its beginning; None if it is not known.

    Raises `InvalidInput` when the file can't be read.
    """
    ending = path.suffix.lower()
    if ending in BY_ENDING:
        return BY_ENDING[ending]
    if ending == ".zip":
        return zipped_format(path)
    if ending != ".json":
        return line_format(path) or ("jsonl" if is_named(path.name.lower(), LINES) else None)
    with open_file(path) as file:
        try:
            return element_format(file)
        except InvalidInput:
            return None


def detected_format(path: Path) -> str | None:
    """Return the name of a file's format as `format_of` does; None also when the file can't be read."""
    try:
        return format_of(path)
    except InvalidInput:
        return None


def line_format(path: Path) -> str | None:
    """Return the format of a file with an object on each line: `jsonl` if no program's; None without an object."""
    name = None
    with open_file(path) as file:
        for _ in range(LINES_READ):
            try:
                fields = parse_object(file.readline(1_000_000))
            except InvalidInput:
                continue
            if "nous_export" in fields:
                return NOUS
            own = next((each.name for each in FORMATS.values() if each.is_line and each.is_line(fields)), None)
            if own:
                return own
            name = "jsonl"
    return name


def element_format(file: IO[bytes]) -> str | None:
    """Return the format of a JSON file by the first element of its list; raise `InvalidInput` for broken JSON."""
    fields = fields_of(next(iter(read_elements(JsonStream(file), lists=LISTS, alone=ALONE)), None))
    return next((each.name for each in FORMATS.values() if each.is_element and each.is_element(fields)), None)


def zipped_format(path: Path) -> str | None:
    """Return the format of a zip by the first record in it; None if it is not an export.

    A zip with conversations that can't be read is taken for ChatGPT's, whose reader says what is wrong with it.
    """
    unread = None
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.namelist() if is_named(each, (CONVERSATIONS, BACKUP))]
            unread = "chatgpt" if any(is_named(each, (CONVERSATIONS,)) for each in members) else None
            for member in sorted(members):
                with archive.open(member) as file:
                    if name := element_format(file):
                        return name
    except READ_ERRORS:
        return unread
    return unread


# --- files that can't be imported: what they are, if that can be recognised, and what to import instead ---

BEGINNING_BYTES = 65_536
UNSUPPORTED_BEGINNINGS = {
    (b"PK",): (
        "a zip without the conversations.json or memories.json of an export, or a damaged one; download it again"
    ),
    (b"\x80\x03", b"\x80\x04", b"\x80\x05"): (
        "a pickle of Python, such as the store of `langgraph dev`, which can't be read; write the items of the "
        "store as JSON, as its search returns them"
    ),
    (b"SQLite format 3\x00",): (
        "a database of SQLite, such as Cursor and ChatGPT's desktop app keep, which can't be read; export the "
        "conversations as JSON or Markdown and import those"
    ),
}
UNSUPPORTED_FIELDS: Sequence[tuple[set[str], str]] = (
    (
        {"type", "thread_id"},
        "the event stream of `codex exec --json`, which has no dates; import the session that Codex keeps of it, "
        "in ~/.codex/sessions",
    ),
    (
        {"session_id", "ts", "text"},
        "the list of prompts that Codex keeps, without the answers; import ~/.codex/sessions",
    ),
    (
        {"sessionId", "messageId", "message"},
        "the list of prompts that Gemini CLI keeps, without the answers; import the folder `chats` beside it",
    ),
    (
        {"uuid", "full_name"},
        "the account of an export of claude.ai, which holds no memories; import its conversations.json and "
        "memories.json, or the zip",
    ),
    (
        {"uuid", "prompt_template"},
        "the projects of an export of claude.ai, which can't be read yet; its conversations.json and memories.json can",
    ),
    (
        {"old_memory", "new_memory"},
        "the history of a memory of mem0; import the memories themselves, as `get_all` returns them",
    ),
    ({"resourceSpans"}, "a trace of OpenTelemetry, which can't be read"),
)


def unsupported_format(path: Path) -> str | None:
    """Return what a file is that can't be imported, and what to import instead; None if it can't be recognised."""
    with open_file(path) as file:
        beginning = file.read(BEGINNING_BYTES)
    for starts, description in UNSUPPORTED_BEGINNINGS.items():
        if beginning.startswith(starts):
            return description
    fields = first_object(beginning, path)
    return next((description for names, description in UNSUPPORTED_FIELDS if names <= set(fields)), None)


def first_object(beginning: bytes, path: Path) -> Fields:
    """Return the first JSON object of a file: on its first line, or the whole of it, or the first of its list."""
    try:
        value: object = json.loads(beginning.partition(b"\n")[0].decode("utf-8", "replace").strip())
    except (ValueError, RecursionError):
        try:
            value, _ = read_value(path)
        except InvalidInput:
            value = None
    listed = list_of(value)
    return fields_of(listed[0] if listed else value)
