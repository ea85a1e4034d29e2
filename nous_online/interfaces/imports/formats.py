"""The formats histories come in: how each is told from the others, read, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.chatgpt import CONVERSATIONS, items_of_conversations
from nous_online.interfaces.imports.claude_ai import is_claude_ai, items_of_export
from nous_online.interfaces.imports.claude_code import by_age, is_claude_code, items_of_sessions
from nous_online.interfaces.imports.codex import is_codex, items_of_rollouts
from nous_online.interfaces.imports.file_lines import opened
from nous_online.interfaces.imports.gemini import is_gemini, is_gemini_message, items_of_gemini
from nous_online.interfaces.imports.items import ReadItems, fields_of, items_of_lines
from nous_online.interfaces.imports.json_stream import Unread, elements_of
from nous_online.interfaces.imports.langgraph_items import is_langgraph, items_of_store
from nous_online.interfaces.imports.letta import is_letta, items_of_agents
from nous_online.interfaces.imports.markdown_notes import items_of_page
from nous_online.interfaces.imports.mcp_memory import is_mcp_memory, items_of_graph
from nous_online.interfaces.imports.mem0 import is_mem0, items_of_memories
from nous_online.interfaces.imports.openmemory import is_openmemory, items_of_backup
from nous_online.interfaces.imports.records import parsed_object
from nous_online.interfaces.imports.unread_formats import unread_format, zipped_format

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
        return zipped_format(path, LISTS, IN_A_LIST) or "chatgpt"
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
            first = next(iter(elements_of(Unread(file), lists=LISTS)), None)
        except InvalidInput:
            return None
    fields = fields_of(first)
    return next((name for name, recognises in IN_A_LIST.items() if recognises(fields)), None)
