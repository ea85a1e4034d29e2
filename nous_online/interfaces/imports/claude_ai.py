"""The export of claude.ai, as the zip it comes in or file by file: conversations to episodes, its memory to facts."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.import_files import (
    DAMAGES,
    ImportItem,
    ReaderState,
    Unread,
    archive,
    elements_of,
    fields_of,
    list_of,
    opened,
)
from nous_online.interfaces.imports.memory_exports import items_of_text
from nous_online.interfaces.imports.records import imported_moment
from nous_online.interfaces.imports.sessionize import Conversation, Message, episode_of, stretches, text_of_parts

READ = ("conversations.json", "memories.json")
SPEAKERS = {"human": "user", "assistant": "assistant"}
ALONE = ("chat_messages", "conversations_memory")
MEMORY = "claude.ai memory"
UNDATED_YEAR = 1980
"""The first of a zip, which stands for none."""
Fields = Mapping[str, Any]


def items_of_export(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the conversations of an export as episodes and what claude.ai remembered as facts."""
    number = 0
    for file, written_at in files_of(path):
        unread = Unread(cast("Any", file))
        try:
            for element in elements_of(unread, lists=("conversations",), alone=ALONE):
                number += 1
                place, fields = ImportItem(number, unread.bytes_read), fields_of(element)
                is_memory = is_claude_ai_memory(fields)
                yield from memories_in(fields, place, written_at) if is_memory else episodes_in(fields, place, reading)
        except DAMAGES as error:
            yield ImportItem(number + 1, unread.bytes_read, problem=f"{error}; what comes after it was not read")


def files_of(path: Path) -> Iterator[tuple[IO[bytes], datetime | None]]:
    """Yield the files of an export that hold memories, opened, each with when it was written."""
    if not zipfile.is_zipfile(path):
        with opened(path) as file:
            yield file, datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return
    with archive(path) as found:
        for member in found.infolist():
            if PurePosixPath(member.filename).name not in READ:
                continue
            is_dated = member.date_time[0] > UNDATED_YEAR
            with found.open(member) as file:
                yield file, datetime(*member.date_time, tzinfo=UTC) if is_dated else None


def memories_in(fields: Fields, place: ImportItem, written_at: datetime | None) -> Iterator[ImportItem]:
    """Yield what claude.ai remembered of a person, and of each of their projects, statement by statement."""
    told: dict[str, Any] = {"learned_at": written_at.isoformat() if written_at else None, "source": MEMORY}
    general = fields.get("conversations_memory")
    if isinstance(general, str):
        yield from items_of_text(general, place, {**told, "context": MEMORY}, named="memory")
    for project, text in fields_of(fields.get("project_memories")).items():
        if isinstance(text, str):
            of_project = {**told, "context": f"{MEMORY} of a project", "tags": [f"project:{project}"[:100]]}
            yield from items_of_text(text, place, of_project, named=f"memory:{project}")


def episodes_in(fields: Fields, place: ImportItem, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of one conversation, or an item that says what is wrong with it."""
    try:
        known, messages = read_conversation(fields)
    except InvalidInput as error:
        yield ImportItem(place.number, place.end, problem=str(error))
        return
    left_out: Counter[str] = Counter()
    for together in stretches(messages, stored_until=reading.stored_until):
        episode = episode_of(together, known)
        if episode:
            yield ImportItem(place.number, place.end, episode.record, episode.name, left_out=episode.left_out)
    yield ImportItem(place.number, place.end, left_out=left_out)


def read_conversation(fields: Fields) -> tuple[Conversation, list[Message]]:
    """Return what is known of a conversation, and its messages in order; raise `InvalidInput` where it is none."""
    name, title = fields.get("uuid"), fields.get("name")
    if not isinstance(name, str) or not isinstance(fields.get("chat_messages"), list):
        raise InvalidInput("a conversation must be an object with a `uuid` and `chat_messages`")
    began_at = imported_moment("created_at", fields.get("created_at"))
    messages: list[Message] = []
    for told in shown_last([fields_of(each) for each in fields["chat_messages"]]):
        said_at = imported_moment("created_at", told.get("created_at")) or began_at
        text = spoken(told)
        if text and said_at is None:
            raise InvalidInput("neither the conversation nor its messages say when it was: `created_at` is missing")
        if text and said_at:
            speaker = SPEAKERS.get(str(told.get("sender")), "user")
            messages.append(Message(str(told.get("uuid") or len(messages)), said_at, speaker, text))
    known = Conversation(name, f"claude-ai:{name}", title if isinstance(title, str) else None, ("claude-ai",))
    return known, sorted(messages, key=lambda message: message.said_at)


def shown_last(messages: list[Fields]) -> list[Fields]:
    """Return the messages that led to the last one: what was edited or regenerated is not on the way to it."""
    by_id = {str(each.get("uuid")): each for each in messages}
    if not messages or not any(each.get("parent_message_uuid") in by_id for each in messages):
        return messages
    path: list[Fields] = []
    here: Fields | None = max(messages, key=lambda each: str(each.get("created_at") or ""))
    while here is not None and here not in path:
        path.append(here)
        here = by_id.get(str(here.get("parent_message_uuid")))
    return path[::-1]


def spoken(message: Fields) -> str:
    """Return what a message says, with the names of what was attached; thinking and tools are left out."""
    text = text_of_parts(message.get("content"), kinds=("text",)) or str(message.get("text") or "").strip()
    attached = [fields_of(each) for name in ("attachments", "files") for each in list_of(message.get(name))]
    names = dict.fromkeys(str(each["file_name"]) for each in attached if each.get("file_name"))
    return "\n".join([text, *(f"[attached: {name}]" for name in names)]).strip()


def is_claude_ai(fields: Fields) -> bool:
    """Tell whether an object is a conversation of claude.ai, or its memory of a person."""
    return isinstance(fields.get("chat_messages"), list) or is_claude_ai_memory(fields)


def is_claude_ai_memory(fields: Fields) -> bool:
    """Tell whether an object is what claude.ai remembered of a person."""
    return isinstance(fields.get("conversations_memory"), str) or isinstance(fields.get("project_memories"), Mapping)
