"""JSONL as users write it, and chats as the APIs of language models have them: `messages` of a `role` and a `content`.

A chat becomes an episode, on a line of JSONL, in a list of a JSON file, or as the whole of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.import_files import (
    NOTHING_SAID,
    ImportedSession,
    ImportItem,
    ReaderState,
    episodes_of,
    read_export,
    read_objects,
    text_of_parts,
)
from nous_online.interfaces.imports.program_exports import SPOKEN, canonical_json, dated_messages
from nous_online.interfaces.imports.records import (
    CONTENT_FIELDS,
    MOMENT_FIELDS,
    SESSION_LISTS,
    Fields,
    checked_list,
    fields_of,
    first_moment,
    id_text,
    list_of,
    record_of,
)

ROLES = (*SPOKEN, "system", "developer", "tool", "function")
"""Only what the first two say is told."""
TEXT_PARTS = ("text", "input_text", "output_text")
CHAT_IDS = ("id", "conversation_id", "session_id")
CHAT_DATES = ("started_at", "ended_at")
CHAT_MOMENTS = (*MOMENT_FIELDS, "created", *CHAT_DATES)
READ_HERE = frozenset(("messages", "title", "kind", "agent", "created", *CHAT_IDS, *MOMENT_FIELDS))
"""The fields of a chat that are read here; the others are those of an episode."""
OTHER_TEXTS = (*CONTENT_FIELDS, "detail", "turns", *SESSION_LISTS)
"""A record with one of these is no chat."""


PART_OF_CHAT = "the messages of this file are one chat, which is stored once every line can be read; mend the others"


def read_jsonl(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the records of a JSONL file (docs/import.md), one a line; lines that are messages are one chat."""
    yield from records_in(with_chat(read_objects(path), path), path, state)


def read_chats(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the records of a file with chats: JSONL, or JSON that is a chat, its messages or a list of chats."""
    rows = elements_in(path) if is_json(path) else read_objects(path)
    yield from records_in(with_chat(rows, path), path, state)


def elements_in(path: Path) -> Iterator[tuple[ImportItem, Fields | None]]:
    """Yield the objects of a JSON file with their places; None for one with a problem."""
    for place, fields, _ in read_export(path, lists=["conversations"], alone=["messages"]):
        yield replace(place, text=canonical_json(fields)), None if place.problem else fields


def with_chat(
    rows: Iterable[tuple[ImportItem, Fields | None]], path: Path
) -> Iterator[tuple[ImportItem, Fields | None]]:
    """Yield the objects of a file with their places; messages that stand there by themselves are one chat."""
    messages: list[Fields] = []
    number, is_whole = 1, True
    for place, fields in rows:
        number, is_whole = place.number, is_whole and not place.problem
        if fields is not None and is_chat_message(fields):
            messages.append(fields)
        else:
            yield place, fields
    # A JSON file is counted by chats. Of a part of a chat nothing is stored: mended, the whole would be another.
    place = ImportItem(1 if is_json(path) else number, path.stat().st_size)
    if messages and is_whole:
        yield place, {"messages": messages}
    elif messages and not is_json(path):
        yield replace(place, problem=PART_OF_CHAT), None


def is_json(path: Path) -> bool:
    """Return whether a file is one JSON value, rather than one a line."""
    return path.suffix.lower() == ".json"


def records_in(
    rows: Iterable[tuple[ImportItem, Fields | None]], path: Path, state: ReaderState
) -> Iterator[ImportItem]:
    for place, fields in rows:
        try:
            if fields is None:
                yield place
            elif is_chat(fields):
                yield from chat_episodes(fields, place, path, state)
            else:
                yield replace(place, record=record_of(dict(fields)))
        except InvalidInput as error:
            yield replace(place, problem=str(error))


def chat_episodes(fields: Fields, place: ImportItem, path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the episode of a chat, several where its messages are dated and hours apart.

    It is named by the id of the chat, or else by what the chat holds. Raises `InvalidInput` for the first wrong field.
    """
    record = record_of(dict(fields))
    ids = {each: id_text(each, fields[each]) for each in CHAT_IDS if fields.get(each) is not None}
    name = next(iter(ids.values()), sha256(canonical_json(fields)).hexdigest()[:32])
    said = list(spoken_messages(checked_list("messages", fields["messages"])))
    named = [(f"{name}#{number}" if number else name, *each) for number, each in enumerate(said)]
    moments = [moment for moment, _, _ in said if moment]
    undated = state.now + timedelta(microseconds=place.number)  # in the order of the lines
    began_at = first_moment(fields, CHAT_MOMENTS) or min(moments, default=undated)
    title = fields.get("title") if isinstance(fields.get("title"), str) else None
    session = ImportedSession(path, "chat", ids.get("session_id", name), title, at=place)
    # What is not dated was all said at once, so that no part of it came after an earlier import.
    known = replace(state, is_over=True) if moments else ReaderState(state.now, state.seen, is_over=True)
    read_here = READ_HERE.union(CHAT_DATES) if moments else READ_HERE
    others = {each: value for each, value in fields.items() if value is not None and each not in read_here}
    for item in episodes_of(session, dated_messages(named, began_at, "date"), known):
        if item.record is not None:
            own = replace(item.record, agent=record.agent, fields={**item.record.fields, **others})
            yield replace(item, record=own)
        else:
            yield item if said else replace(item, left_out={NOTHING_SAID: 1})


def spoken_messages(messages: Iterable[object]) -> Iterator[tuple[datetime | None, str, str]]:
    """Yield the date, the role and the text of each message of a user or an assistant that has a text.

    Raises `InvalidInput` for a message that is malformed.
    """
    for number, message in enumerate(messages):
        fields = fields_of(message)
        role, content = fields.get("role"), fields.get("content")
        if role not in ROLES:
            raise InvalidInput(f"message {number} needs a role, one of {', '.join(ROLES)}; got {message!r:.100}")
        if content not in (None, []) and not isinstance(content, str) and not list_of(content):
            raise InvalidInput(f"the content of message {number} must be text or a list of parts; got {content!r:.100}")
        text = text_of_parts(content, kinds=TEXT_PARTS)
        if role in SPOKEN and text:
            yield first_moment(fields, CHAT_MOMENTS), role, text


def is_chat(fields: Fields) -> bool:
    """Return whether a record is a chat: it holds `messages`, and no text of a record of another kind."""
    is_other = fields.get("kind") not in (None, "episode") or any(fields.get(each) is not None for each in OTHER_TEXTS)
    return fields.get("messages") is not None and not is_other


def is_chat_message(fields: Fields) -> bool:
    return fields.get("role") in ROLES and "content" in fields
