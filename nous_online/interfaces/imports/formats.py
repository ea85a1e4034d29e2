"""The formats histories come in: how each is told from the others, read, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.core.texts import is_blank
from nous_online.interfaces.imports.chatgpt import CONVERSATIONS, items_of_conversations
from nous_online.interfaces.imports.claude_code import by_age, is_claude_code, items_of_sessions
from nous_online.interfaces.imports.import_files import (
    ImportItem,
    ReaderState,
    ReadItems,
    Unread,
    canonical,
    elements_of,
    fields_of,
    items_of_lines,
    list_of,
    objects_of_lines,
    opened,
)
from nous_online.interfaces.imports.markdown_notes import items_of_page
from nous_online.interfaces.imports.records import ImportedRecord, id_text, imported_moment, parsed_object
from nous_online.interfaces.imports.sessionize import HIDDEN_FACTS
from nous_online.language.writing.credentials import holds_credential

LISTS = ("results", "memories")
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
    content = memory.get("memory") or memory.get("data") or memory.get("text")
    if not isinstance(content, str) or is_blank(content):
        raise InvalidInput("the memory has no text; it belongs under `memory`")
    said_at = imported_moment("updated_at", memory.get("updated_at")) or imported_moment(
        "created_at", memory.get("created_at")
    )
    metadata = fields_of(memory.get("metadata"))
    tags = [tag for tag in listed(memory.get("categories")) if tag]
    own_id = None if memory.get("id") is None else id_text("id", memory["id"])
    return {
        "id": f"{own_id}:{sha256(content.encode('utf-8', 'replace')).hexdigest()[:16]}" if own_id else None,
        "content": content,
        "learned_at": said_at.isoformat() if said_at else None,
        "category": (tags or listed(metadata.get("category")) or [None])[0],
        "tags": tags,
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
        Format("mem0", "memory", items_of_memories),
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
    "mem0": is_mem0,
}
IN_A_LIST: Mapping[str, Recognise] = {"chatgpt": lambda fields: "mapping" in fields, "mem0": is_mem0}


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
    sessions = [source for source in sources if source.format.name == "claude-code"]
    others = [source for source in sources if source.format.name != "claude-code"]
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
    if name not in FORMATS:
        known = f"say which with --format: {', '.join(FORMATS)}"
        raise InvalidInput(f'{path} is in no known format; {known}; or write each record as a line {{"content": …}}')
    return FORMATS[name]


def may_be(path: Path, wanted: str) -> bool:
    """Tell by its name whether a file of a folder is to be read in a format."""
    endings = {
        "jsonl": LINE_ENDINGS, "claude-code": LINE_ENDINGS, "mem0": (*LINE_ENDINGS, ".json"),
        "markdown": MARKDOWN_ENDINGS,
    }  # fmt: skip
    return fnmatch(path.name, CONVERSATIONS) if wanted == "chatgpt" else path.suffix.lower() in endings.get(wanted, ())


def format_of(path: Path) -> str | None:
    """Return the name of the format of a file, as its name and its beginning tell it; None where they don't."""
    ending = path.suffix.lower()
    if ending in MARKDOWN_ENDINGS:
        return "markdown"
    if ending == ".zip":
        return "chatgpt"
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
            first = next(iter(elements_of(Unread(file), lists=(*LISTS, "conversations"))), None)
        except InvalidInput:
            return None
    fields = fields_of(first)
    return next((name for name, recognises in IN_A_LIST.items() if recognises(fields)), None)
