"""What other memory stores export, to facts: mem0, its server, the memory server of MCP, a LangGraph store."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_NAMES, is_blank
from nous_online.interfaces.imports.import_files import (
    ImportItem,
    Occurrences,
    ReaderState,
    Unread,
    archive,
    canonical,
    elements_of,
    fields_of,
    list_of,
    objects_of_lines,
    opened,
)
from nous_online.interfaces.imports.markdown_notes import Page, is_secret, notes_of
from nous_online.interfaces.imports.records import (
    MAX_STATEMENT_CHARACTERS,
    ImportedRecord,
    id_text,
    imported_moment,
    parts,
)
from nous_online.interfaces.imports.sessionize import HIDDEN_FACTS
from nous_online.language.writing.credentials import holds_credential

Fields = Mapping[str, Any]
EMPHASISED_LINE = re.compile(r"^(\*\*|__|\*|_)([^*_\n]{1,100})\1:?[ \t]*$", re.MULTILINE)
"""A line in bold or italics is the heading of what follows."""


def fact_item(place: ImportItem, fields: Mapping[str, Any], name: str | None = None) -> ImportItem:
    """Return a fact to import, or why it is none: it has no text, or looks as if it held a credential.

    `name` tells it from all others of its source; without one its content does.
    """
    content = fields.get("content")
    if not isinstance(content, str) or is_blank(content):
        return replace(place, problem="the memory has no text", record=None)
    if holds_credential(content):
        return replace(place, left_out={HIDDEN_FACTS: 1})
    told = {key: value for key, value in fields.items() if value not in (None, "", [])}
    return replace(place, record=ImportedRecord("fact", None, None, told), name=name, text=canonical(told))


def items_of_text(text: str, place: ImportItem, fields: Mapping[str, Any], *, named: str) -> Iterator[ImportItem]:
    """Yield the statements of a text in Markdown as facts with these fields, each under its heading.

    `named` tells the text from others of its source: a statement that was there before is known again.
    """
    page = Page({})
    for note in notes_of(EMPHASISED_LINE.sub(r"## \2", text), page):
        if is_secret(note):
            yield replace(place, left_out={HIDDEN_FACTS: 1})
            continue
        heading = note.headings[-1] if note.headings else str(fields.get("subject") or "")
        for part in parts(note.text, max_characters=MAX_STATEMENT_CHARACTERS):
            above = " > ".join((str(fields.get("context") or named), *note.headings))[:MAX_STATEMENT_CHARACTERS]
            told = {**fields, "content": part, "subject": heading[:500], "context": above}
            digest = sha256(f"{above}\n{part}".encode("utf-8", "replace")).hexdigest()[:32]
            yield fact_item(place, told, f"{named}:{digest}")
    yield replace(place, left_out=dict(page.left_out))


def elements_in(path: Path, *, lists: Sequence[str]) -> Iterator[tuple[ImportItem, Any]]:
    """Yield the elements of a JSON file's list, each with its place; where it breaks off, an item that says so."""
    number = 0
    with opened(path) as file:
        unread = Unread(file)
        try:
            for element in elements_of(unread, lists=lists):
                number += 1
                yield ImportItem(number, unread.bytes_read), element
        except InvalidInput as error:
            problem = f"{error}; what comes after it was not read"
            yield ImportItem(number + 1, unread.bytes_read, problem=problem), None


# --- mem0 ---

MEM0_LISTS = ("results", "memories")
OF_WHOM = ("agent_id", "app_id", "run_id", "session_id")
"""What mem0 keeps beside the user; here they become tags."""
CAPITALS = re.compile(r"(?<=[a-z])[A-Z]+")
CAPITAL_OF_A_WORD = re.compile(r"(?<=[a-z])([A-Z])(?=[a-z])")
"""Where a word of a name begins, or an abbreviation: "dependsOn", "userID"."""


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
            for element in elements_of(unread, lists=MEM0_LISTS):
                number += 1
                yield memory_item(element, ImportItem(number, unread.bytes_read))
        except InvalidInput as error:
            yield ImportItem(number + 1, unread.bytes_read, problem=f"{error}; what comes after it was not read")


def memory_item(element: object, place: ImportItem) -> ImportItem:
    """Return one memory, what is wrong with it, or why it is left out."""
    try:
        fields = memory_fields(stored_fields(fields_of(element)))
        name = fields.pop("id")
    except InvalidInput as error:
        return ImportItem(place.number, place.end, problem=str(error))
    if holds_credential(fields["content"]):
        return ImportItem(place.number, place.end, left_out={HIDDEN_FACTS: 1})
    return ImportItem(place.number, place.end, ImportedRecord("fact", None, None, fields), name, canonical(fields))


def stored_fields(memory: Fields) -> Fields:
    """Return a memory's fields by the names they have in Python: mem0 writes `createdAt` in TypeScript.

    A vector store that mem0 writes to holds them as the payload of a point.
    """
    told = {**fields_of(memory.get("payload")), **memory}
    return {CAPITALS.sub(lambda found: f"_{found[0].lower()}", name): value for name, value in told.items()}


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
    others = {name: value for name, value in metadata.items() if name != "category"}
    told = {**others, **{name: memory[name] for name in OF_WHOM if memory.get(name)}}
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
    if isinstance(payload := fields.get("payload"), Mapping):
        return {"data", "hash"} <= payload.keys()
    return isinstance(fields.get("memory"), str) and bool({"hash", "categories", "metadata"} & set(fields))


# --- the backup of mem0's own server: a zip, or its memories.json ---

BACKUP = "memories.json"
GONE = ("deleted",)
DELETED = "memories that were deleted there"


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


# --- the graph of MCP's memory server: memory.jsonl, or one object ---

GRAPH_LISTS = ("entities", "relations")
ENTITY, RELATION = "entity", "relation"
REPEATED_OBSERVATIONS = "observations and relations that stand there before"


def relation_in_words(kind: str) -> str:
    """Return `depends_on` and `dependsOn` as "depends on", and `runsOnAWS` as "runs on AWS"."""
    words = CAPITAL_OF_A_WORD.sub(lambda found: f" {found[1].lower()}", kind.replace("_", " "))
    return CAPITALS.sub(lambda found: f" {found[0] if len(found[0]) > 1 else found[0].lower()}", words)


def items_of_graph(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield each observation and each relation as a fact, each once: the server appends the same entity again."""
    found = (
        objects_of_lines(path)
        if path.suffix != ".json"
        else ((place, fields_of(element)) for place, element in elements_in(path, lists=GRAPH_LISTS))
    )
    for place, fields in found:
        if place.problem or not fields:
            yield place
        elif is_entity(fields):
            yield from observations_of(fields, place, reading.seen)
        elif is_relation(fields):
            text = f"{fields['from']} {relation_in_words(str(fields['relationType']))} {fields['to']}"
            yield once({"content": text, "subject": str(fields["from"])[:500], "tags": [RELATION]}, place, reading.seen)
        else:
            wanted = "an entity with `name` and `observations`, or a relation with `from`, `to` and `relationType`"
            yield ImportItem(place.number, place.end, problem=f"not {wanted}")


def observations_of(entity: Fields, place: ImportItem, seen: Occurrences) -> Iterator[ImportItem]:
    """Yield each thing that was observed of an entity, with its name where the text does not say it."""
    name, kind = str(entity["name"]), entity.get("entityType")
    category = kind[:100] if isinstance(kind, str) and kind.strip() else None
    for observation in list_of(entity["observations"]):
        text = observation if isinstance(observation, str) else fields_of(observation).get("content")
        if not isinstance(text, str) or not text.strip():
            continue
        told = text if name.replace("_", " ").casefold() in text.replace("_", " ").casefold() else f"{name}: {text}"
        yield once({"content": told, "subject": name[:500], "category": category}, place, seen)


def once(fields: dict[str, Any], place: ImportItem, seen: Occurrences) -> ImportItem:
    """Return a fact the first time it is met, and afterwards that it was left out."""
    said = f"{fields['subject']}\n{fields['content']}".encode("utf-8", "replace")
    if not seen.is_new(said, within="mcp-memory"):
        return ImportItem(place.number, place.end, left_out={REPEATED_OBSERVATIONS: 1})
    name = seen.name(said, within="mcp-memory names")
    return fact_item(ImportItem(place.number, place.end), {**fields, "source": "mcp-memory"}, name)


def is_entity(fields: Fields) -> bool:
    """Tell whether an object is an entity of the graph."""
    is_named = isinstance(fields.get("name"), str) and isinstance(fields.get("observations"), list)
    return is_named and fields.get("type", ENTITY) == ENTITY


def is_relation(fields: Fields) -> bool:
    """Tell whether an object is a relation of the graph."""
    return all(isinstance(fields.get(name), str) for name in ("from", "to", "relationType"))


def is_mcp_memory(fields: Fields) -> bool:
    """Tell whether an object is an entity or a relation of the graph."""
    return is_entity(fields) or is_relation(fields)


# --- items of a LangGraph store, as its `search` returns them or LangMem writes them ---

STORE_LISTS = ("items", "memories", "results")
TEXTS = ("content", "text", "memory", "data", "fact")
MEMORIES = "memories"
PLAIN_KIND = "Memory"
"""What LangMem calls a memory without a schema of its own."""


def items_of_store(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    """Yield the items of a store as facts, and what was wrong with some of them."""
    found = (
        objects_of_lines(path)
        if path.suffix != ".json"
        else ((place, fields_of(element)) for place, element in elements_in(path, lists=STORE_LISTS))
    )
    for place, fields in found:
        yield place if place.problem or not fields else item_of(fields, place)


def item_of(fields: Fields, place: ImportItem) -> ImportItem:
    """Return an item as a fact: its text, or its fields as one; its namespace becomes its tags and names its user."""
    if not is_langgraph(fields):
        return ImportItem(place.number, place.end, problem="an item needs a `namespace`, a `key` and a `value`")
    value, labels = fields_of(fields["value"]), labels_of(fields["namespace"])
    kind = value.get("kind")
    told = {
        "content": value_text(value),
        "category": kind[:100] if isinstance(kind, str) and kind != PLAIN_KIND else None,
        "learned_at": fields.get("updated_at") or fields.get("created_at"),
        "tags": [label[:100] for label in labels],
        "user_id": user_of(labels),
        "source": f"langgraph:{'/'.join(labels)}"[:500],
    }
    return fact_item(ImportItem(place.number, place.end), told, f"{'/'.join(labels)}:{fields['key']}")


def labels_of(namespace: object) -> list[str]:
    """Return the labels of a namespace, which some exports join with dots."""
    if isinstance(namespace, str):
        return [label for label in namespace.split(".") if label]
    return [label for label in list_of(namespace) if isinstance(label, str) and label]


def user_of(labels: list[str]) -> str | None:
    """Return whose memories a namespace holds, where it pairs a user with `memories`, as LangGraph does."""
    others = [label for label in labels if label != MEMORIES]
    return others[0][:100] if MEMORIES in labels and len(labels) == len(others) + 1 == 2 else None  # noqa: PLR2004 (a pair)


def value_text(value: Fields) -> str:
    """Return what an item says: its text, or what its fields say one after the other."""
    found = next((value[name] for name in TEXTS if value.get(name)), None)
    if isinstance(found, str):
        return found
    if fields_of(found):
        return value_text(fields_of(found))
    told = {name: in_words(each) for name, each in value.items() if name != "kind"}
    return "; ".join(f"{name.replace('_', ' ')}: {each}" for name, each in told.items() if each)


def in_words(value: object) -> str:
    """Return a value as words: the elements of a list with commas; nothing where it is an object, empty or null."""
    if elements := list_of(value):
        return ", ".join(filter(None, map(in_words, elements)))
    return str(value) if isinstance(value, str | int | float) else ""


def is_langgraph(fields: Fields) -> bool:
    """Tell whether an object is an item of a store."""
    return (
        isinstance(fields.get("namespace"), list | str) and "key" in fields and isinstance(fields.get("value"), Mapping)
    )
