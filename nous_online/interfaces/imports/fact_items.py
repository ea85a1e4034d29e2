"""Ready-made memories of other programs to facts: one at a time, or those a text in Markdown states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.core.unseen import is_blank
from nous_online.interfaces.imports.dialogues import MAX_STATEMENT_CHARACTERS, parts
from nous_online.interfaces.imports.file_lines import opened
from nous_online.interfaces.imports.items import ImportItem, canonical
from nous_online.interfaces.imports.json_stream import Unread, elements_of
from nous_online.interfaces.imports.markdown_notes import Page, is_secret, notes_of
from nous_online.interfaces.imports.records import ImportedRecord
from nous_online.interfaces.imports.redact import HIDDEN_FACTS
from nous_online.language.writing.credentials import holds_credential

BOLD_LINE = re.compile(r"^(?:\*\*|__)([^*_\n]{1,100})(?:\*\*|__):?[ \t]*$", re.MULTILINE)
"""A line in bold is the heading of what follows."""


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
    for note in notes_of(BOLD_LINE.sub(r"## \1", text), page):
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
