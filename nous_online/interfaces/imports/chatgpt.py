"""The export of ChatGPT, `conversations.json` by itself or within its zip, to episodes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import is_blank
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
from nous_online.interfaces.imports.sessionize import (
    Conversation,
    Message,
    episode_of,
    stretches,
    text_of_parts,
)

CONVERSATIONS = "conversations*.json"
LISTS = ("conversations",)
MAPPING = "mapping"
MEMORY, INSTRUCTIONS = "chatgpt memory", "chatgpt instructions"
TO_MEMORY = "bio"
"""Whom ChatGPT tells what it is to remember."""
ABOUT = ("about_user_message", "about_model_message")
"""What somebody wrote about themselves, and about the answers they want: it stands hidden in every conversation."""
SPOKEN = ("user", "assistant")
SAID = ("text", "multimodal_text")
Fields = Mapping[str, Any]


def items_of_conversations(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of an export, and what was wrong with some of its conversations."""
    number = 0
    for file in files_of(path):
        unread = Unread(cast("BinaryIO", file))
        try:
            for conversation in elements_of(unread, lists=LISTS, alone=(MAPPING,)):
                number += 1
                yield from items_in(conversation, ImportItem(number, unread.bytes_read), reading)
        except DAMAGES as error:
            yield ImportItem(number + 1, unread.bytes_read, problem=f"{error}; what comes after it was not read")


def files_of(path: Path) -> Iterator[IO[bytes]]:
    """Yield the files with conversations of an export, opened; raise `InvalidInput` where there is none."""
    return (zipped if zipfile.is_zipfile(path) else plain)(path)


def plain(path: Path) -> Iterator[IO[bytes]]:
    """Yield the file itself, opened."""
    with opened(path) as file:
        yield file


def zipped(path: Path) -> Iterator[IO[bytes]]:
    """Yield the files with conversations in a zip, opened; raise `InvalidInput` when there is none."""
    with archive(path) as found:
        members = conversations_in(found)
        if not members:
            raise InvalidInput(f"{path} holds no conversations.json; name the zip that ChatGPT exported")
        for member in members:
            with found.open(member) as file:
                yield file


def conversations_in(found: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files with conversations in a zip, in order."""
    members = (each for each in found.infolist() if fnmatch(PurePosixPath(each.filename).name, CONVERSATIONS))
    return sorted(members, key=lambda member: member.filename)


def items_in(conversation: object, place: ImportItem, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield what was remembered in a conversation and its episodes, or an item that says what is wrong with it."""
    try:
        known, path, began_at = read_conversation(conversation)
        messages = sorted(dated(path, began_at), key=lambda message: message.said_at)
    except InvalidInput as error:
        yield ImportItem(place.number, place.end, problem=str(error))
        return
    yield from remembered_in(path, place, began_at, reading)
    for together in stretches(messages, stored_until=reading.stored_until):
        episode = episode_of(together, known)
        if episode:
            yield ImportItem(place.number, place.end, episode.record, episode.name, left_out=episode.left_out)
    yield ImportItem(place.number, place.end)


def read_conversation(conversation: object) -> tuple[Conversation, list[Fields], datetime | None]:
    """Return what is known of a conversation, its messages and when it began; raise `InvalidInput` where it is none."""
    fields = fields_of(conversation)
    if not isinstance(fields.get(MAPPING), Mapping):
        raise InvalidInput("a conversation must be an object with a `mapping` of its messages")
    name, title = fields.get("conversation_id") or fields.get("id"), fields.get("title")
    if not isinstance(name, str):
        raise InvalidInput("the conversation has no id; export it again")
    began_at = imported_moment("create_time", fields.get("create_time"))
    known = Conversation(name, f"chatgpt:{name}", title if isinstance(title, str) else None, ("chatgpt",))
    return known, branch(fields_of(fields[MAPPING]), fields.get("current_node")), began_at


def remembered_in(
    path: list[Fields], place: ImportItem, began_at: datetime | None, reading: ReaderState
) -> Iterator[ImportItem]:
    """Yield, each once, what ChatGPT was to remember and what somebody told it about themselves, as facts."""
    for fields in path:
        moment = imported_moment("create_time", fields.get("create_time")) or began_at
        told: dict[str, Any] = {"learned_at": moment.isoformat() if moment else None, "source": MEMORY}
        hidden = fields_of(fields_of(fields.get("metadata")).get("user_context_message_data"))
        texts = [(str(hidden[name]), INSTRUCTIONS) for name in ABOUT if hidden.get(name)]
        if fields.get("recipient") == TO_MEMORY:
            texts.append((text_of_parts(fields_of(fields.get("content")).get("parts")), MEMORY))
        for text, context in texts:
            if reading.seen.is_new(text.encode("utf-8", "replace"), within=context):
                yield from items_of_text(text, place, {**told, "context": context}, named=context)


def branch(mapping: Fields, current: object) -> list[Fields]:
    """Return the messages that led to the one shown last, oldest first: what was edited or regenerated is not on it."""
    path: list[Fields] = []
    met: set[str] = set()
    here = current if isinstance(current, str) and current in mapping else latest(mapping)
    while isinstance(here, str) and here not in met and isinstance(mapping.get(here), Mapping):
        met.add(here)
        node = fields_of(mapping[here])
        if isinstance(node.get("message"), Mapping):
            path.append({**node["message"], "node": here})
        here = node.get("parent")
    return path[::-1]


def latest(mapping: Fields) -> str | None:
    """Return the node that is nobody's parent whose message was made last."""

    def made(name: str) -> float:
        moment = fields_of(fields_of(mapping[name]).get("message")).get("create_time")
        return float(moment) if isinstance(moment, int | float) else 0.0

    parents = {fields_of(node).get("parent") for node in mapping.values()}
    leaves = [name for name in mapping if name not in parents]
    return max(leaves, key=made, default=None)


def dated(path: list[Fields], began_at: datetime | None) -> Iterator[Message]:
    """Yield what was said on a path; what has no date was said when the one before was."""
    said_at = began_at
    for fields in path:
        said_at = imported_moment("create_time", fields.get("create_time")) or said_at
        speaker, text = spoken(fields)
        if is_blank(text):
            continue
        if said_at is None:
            raise InvalidInput("neither the conversation nor its messages say when it was: `create_time` is missing")
        message_id = fields.get("id")
        yield Message(message_id if isinstance(message_id, str) else str(fields["node"]), said_at, speaker, text)


def spoken(fields: Fields) -> tuple[str, str]:
    """Return who said a message and what; no text where it was hidden, meant for a tool, or none."""
    speaker, said = fields_of(fields.get("author")).get("role"), fields_of(fields.get("content"))
    is_hidden = bool(fields_of(fields.get("metadata")).get("is_visually_hidden_from_conversation"))
    is_for_tool = fields.get("recipient", "all") not in ("all", None)
    if speaker not in SPOKEN or is_hidden or is_for_tool or said.get("content_type") not in SAID:
        return str(speaker), ""
    return speaker, "\n".join(text for text in list_of(said.get("parts")) if isinstance(text, str))
