"""The formats histories come in: how each is told from the others, read, and named."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.chatgpt import CONVERSATIONS, items_of_conversations
from nous_online.interfaces.imports.claude_ai import is_claude_ai, items_of_export
from nous_online.interfaces.imports.claude_code import by_age, is_claude_code, items_of_sessions
from nous_online.interfaces.imports.codex import is_codex, items_of_rollouts
from nous_online.interfaces.imports.gemini import is_gemini, is_gemini_message, items_of_gemini
from nous_online.interfaces.imports.import_files import (
    DAMAGES,
    ReadItems,
    Unread,
    elements_of,
    fields_of,
    items_of_lines,
    list_of,
    opened,
)
from nous_online.interfaces.imports.letta import is_letta, items_of_agents
from nous_online.interfaces.imports.markdown_notes import items_of_page
from nous_online.interfaces.imports.memory_exports import (
    is_langgraph,
    is_mcp_memory,
    is_mem0,
    is_openmemory,
    items_of_backup,
    items_of_graph,
    items_of_memories,
    items_of_store,
)
from nous_online.interfaces.imports.records import parsed_object

LOOKED_AT = 20
"""Lines of a file, to tell its format; what a program writes names itself earlier."""
MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx")
LINE_ENDINGS = (".jsonl", ".ndjson")
PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv"})
FILES_PASSED_OVER = "files in no known format"


@dataclass(frozen=True)
class Format:
    """A format: its name, what one of its records is called, and how its files are read."""

    name: str
    unit: str
    read: ReadItems
    has_own_source: bool = True
    """Whether its records name themselves wherever they lie; otherwise each file is a source."""

    def source_of(self, path: Path) -> str:
        """Return which import the ids of a file belong to."""
        return self.name if self.has_own_source else path.name.split(".")[0]


FORMATS = {
    each.name: each
    for each in (
        Format("jsonl", "line", items_of_lines, has_own_source=False),
        Format("claude-code", "line", items_of_sessions),
        Format("chatgpt", "conversation", items_of_conversations),
        Format("codex", "line", items_of_rollouts),
        Format("gemini", "message", items_of_gemini),
        Format("claude-ai", "conversation", items_of_export),
        Format("mem0", "memory", items_of_memories),
        Format("openmemory", "memory", items_of_backup),
        Format("mcp-memory", "line", items_of_graph),
        Format("langgraph", "item", items_of_store),
        Format("letta", "block", items_of_agents),
        Format("markdown", "line", items_of_page),
    )
}
AUTO = "auto"
NOUS = "nous"
NAMES = (AUTO, *FORMATS, NOUS)
Recognise = Callable[[Mapping[str, Any]], bool]
ON_A_LINE: Mapping[str, Recognise] = {
    NOUS: lambda fields: "nous_export" in fields,
    "claude-code": is_claude_code,
    "codex": is_codex,
    "gemini": is_gemini,
    "mem0": is_mem0,
    "mcp-memory": is_mcp_memory,
    "langgraph": is_langgraph,
}
IN_A_LIST: Mapping[str, Recognise] = {
    "chatgpt": lambda fields: "mapping" in fields,
    "claude-ai": is_claude_ai,
    "mem0": is_mem0,
    "openmemory": is_openmemory,
    "gemini": is_gemini_message,
    "mcp-memory": is_mcp_memory,
    "langgraph": is_langgraph,
    "letta": is_letta,
}
LISTS = ("results", "memories", "conversations", "messages", "items", "entities", "relations", "agents", "core_memory")
"""Under which names an object holds the records of one of these formats."""
ALONE = ("mapping", "chat_messages", "conversations_memory")
"""What only a record of one of these formats has that stands by itself in its file."""
SESSIONS = ("claude-code", "codex", "gemini")


@dataclass(frozen=True)
class SourceFile:
    """A file to be imported, and the format it is in."""

    path: Path
    format: Format


def sources_of(paths: Sequence[Path], wanted: str) -> tuple[list[SourceFile], int]:
    """Return the files to read, in order, and how many of some folders are in no known format.

    Raises `InvalidInput` where a file that was named is in none, can't be read, or nothing is left.
    """
    found: list[SourceFile] = []
    passed_over = 0
    for path in paths:
        if not path.is_dir():
            found.append(SourceFile(path, named_format(path, wanted)))
            continue
        for each in files_in(path):
            name = told_format(each) if wanted == AUTO else wanted if may_be(each, wanted) else None
            found += [SourceFile(each, FORMATS[name])] if name in FORMATS else []
            passed_over += name not in FORMATS
    if not found:
        raise InvalidInput(f"nothing to import in {', '.join(map(str, paths))}; name files, or another --format")
    return ordered(found), passed_over


def ordered(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """Return sources as they came, but sessions last and by age: what is repeated counts where it was first."""
    sessions = [source for source in sources if source.format.name in SESSIONS]
    others = [source for source in sources if source.format.name not in SESSIONS]
    return [*others, *sorted(sessions, key=lambda source: by_age(source.path))]


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of those in it, but for what is hidden or installed; links are not followed."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInput(f"can't read {folder}: {error.strerror}; name a folder you may read") from error
    for entry in entries:
        if entry.name.startswith(".") or entry.name in PASSED_OVER or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from files_in(entry)
        elif entry.is_file():
            yield entry


def named_format(path: Path, wanted: str) -> Format:
    """Return the format of a file that was named; raise `InvalidInput` where it can't be told."""
    name = format_of(path) if wanted == AUTO else wanted
    if name == NOUS:
        raise InvalidInput(f"{path} is an export of Nous; import it by itself, with nothing else")
    if name not in FORMATS and (told := unread_format(path)):
        raise InvalidInput(f"{path} is {told}")
    if name not in FORMATS:
        known = f"say which with --format: {', '.join(FORMATS)}"
        raise InvalidInput(f'{path} is in no known format; {known}; or write each record as a line {{"content": …}}')
    return FORMATS[name]


def may_be(path: Path, wanted: str) -> bool:
    """Tell by its name whether a file of a folder is to be read in a format."""
    either = (*LINE_ENDINGS, ".json")
    endings = {
        "jsonl": LINE_ENDINGS, "claude-code": LINE_ENDINGS, "codex": LINE_ENDINGS, "gemini": either, "mem0": either,
        "mcp-memory": either, "langgraph": either, "letta": (".af", ".json"), "claude-ai": (".zip", ".json"),
        "openmemory": (".zip", ".json"), "markdown": MARKDOWN_ENDINGS,
    }  # fmt: skip
    return fnmatch(path.name, CONVERSATIONS) if wanted == "chatgpt" else path.suffix.lower() in endings.get(wanted, ())


def format_of(path: Path) -> str | None:
    """Return the name of the format of a file, as its name and its beginning tell it; None where they don't."""
    ending = path.suffix.lower()
    if ending in MARKDOWN_ENDINGS:
        return "markdown"
    if ending == ".zip":
        return zipped_format(path)
    if ending == ".af":
        return "letta"
    if ending == ".gz":
        return NOUS
    if ending == ".json":
        return listed_format(path)
    return line_format(path) or ("jsonl" if ending in LINE_ENDINGS else None)


def told_format(path: Path) -> str | None:
    """Return the name of the format of a file of a folder; None where it can't be told, or the file not be read."""
    try:
        return format_of(path)
    except InvalidInput:
        return None


def line_format(path: Path) -> str | None:
    """Return the format of a file with an object on each line; `jsonl` where they are nobody else's."""
    name = None
    with opened(path) as file:
        for _ in range(LOOKED_AT):
            try:
                fields = parsed_object(file.readline(1_000_000))
            except InvalidInput:
                continue
            for own, recognises in ON_A_LINE.items():
                if recognises(fields):
                    return own
            name = "jsonl"
    return name


def listed_format(path: Path) -> str | None:
    """Return the format of a file with one list, by its first element."""
    with opened(path) as file:
        try:
            first = next(iter(elements_of(Unread(file), lists=LISTS, alone=ALONE)), None)
        except InvalidInput:
            return None
    fields = fields_of(first)
    return next((name for name, recognises in IN_A_LIST.items() if recognises(fields)), None)


# --- files that no reader takes: what they are, where that can be told, and what is in a zip ---

BEGINNING_BYTES = 65_536
SQLITE = b"SQLite format 3\x00"
ZIP, PICKLE = b"PK", (b"\x80\x03", b"\x80\x04", b"\x80\x05")
ZIPPED = (CONVERSATIONS, "memories.json")
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
    "mem0 history": (
        frozenset({"old_memory", "new_memory"}),
        "the history of a memory of mem0; import the memories themselves, as `get_all` returns them",
    ),
    "trace": (frozenset({"resourceSpans"}), "a trace of OpenTelemetry, which can't be read"),
    "chat request": (
        frozenset({"messages", "model"}),
        "a request to a language model, which says no dates; write it as a line of JSONL with `turns` and a `date`",
    ),
}


def unread_format(path: Path) -> str | None:
    """Return what a file in no format that can be read is, and what to import instead; None where nobody can tell."""
    with opened(path) as file:
        beginning = file.read(BEGINNING_BYTES)
    if beginning.startswith(ZIP):
        return "a zip without the conversations.json or memories.json of an export, or a damaged one; download it again"
    if beginning.startswith(PICKLE):
        return (
            "a pickle of Python, such as the store of `langgraph dev`, which can't be read; write the items of the "
            "store as JSON, as its search returns them"
        )
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


def zipped_format(path: Path) -> str | None:
    """Return the format of the files in a zip, as the first record of one tells it; None where it is no export.

    Where the records can't be read, conversations are taken for ChatGPT's, whose reader says what is wrong with them.
    """
    unread = None
    try:
        with zipfile.ZipFile(path) as found:
            members = [each for each in found.namelist() if any(fnmatch(PurePosixPath(each).name, n) for n in ZIPPED)]
            unread = "chatgpt" if any(fnmatch(PurePosixPath(each).name, CONVERSATIONS) for each in members) else None
            for member in sorted(members):
                with found.open(member) as file:
                    first = next(iter(elements_of(Unread(cast("Any", file)), lists=LISTS, alone=ALONE)), None)
                for name, recognises in IN_A_LIST.items():
                    if recognises(fields_of(first)):
                        return name
    except DAMAGES:
        return unread
    return unread
