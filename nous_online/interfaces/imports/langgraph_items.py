"""Items of a LangGraph store, as its `search` returns them or LangMem writes them, to facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nous_online.interfaces.imports.fact_items import elements_in, fact_item
from nous_online.interfaces.imports.items import ImportItem, ReaderState, fields_of, list_of, objects_of_lines

LISTS = ("items", "memories", "results")
TEXTS = ("content", "text", "memory", "data", "fact")
MEMORIES = "memories"
PLAIN_KIND = "Memory"
"""What LangMem calls a memory without a schema of its own."""
Fields = Mapping[str, Any]


def items_of_store(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    """Yield the items of a store as facts, and what was wrong with some of them."""
    found = (
        objects_of_lines(path)
        if path.suffix != ".json"
        else ((place, fields_of(element)) for place, element in elements_in(path, lists=LISTS))
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
        "content": text_of(value),
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


def text_of(value: Fields) -> str:
    """Return what an item says: its text, or what its fields say one after the other."""
    found = next((value[name] for name in TEXTS if value.get(name)), None)
    if isinstance(found, str):
        return found
    if fields_of(found):
        return text_of(fields_of(found))
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
