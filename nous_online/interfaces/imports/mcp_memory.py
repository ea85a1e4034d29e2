"""The graph that the reference memory server of MCP keeps (`memory.jsonl`, or one JSON object) to facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nous_online.interfaces.imports.fact_items import elements_in, fact_item
from nous_online.interfaces.imports.file_lines import Occurrences
from nous_online.interfaces.imports.items import ImportItem, ReaderState, fields_of, list_of, objects_of_lines

LISTS = ("entities", "relations")
ENTITY, RELATION = "entity", "relation"
REPEATED = "observations and relations that stand there before"
Fields = Mapping[str, Any]


def items_of_graph(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield each observation and each relation as a fact, each once: the server appends the same entity again."""
    found = (
        objects_of_lines(path)
        if path.suffix != ".json"
        else ((place, fields_of(element)) for place, element in elements_in(path, lists=LISTS))
    )
    for place, fields in found:
        if place.problem or not fields:
            yield place
        elif is_entity(fields):
            yield from observations_of(fields, place, reading.seen)
        elif is_relation(fields):
            text = f"{fields['from']} {str(fields['relationType']).replace('_', ' ')} {fields['to']}"
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
        return ImportItem(place.number, place.end, left_out={REPEATED: 1})
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
