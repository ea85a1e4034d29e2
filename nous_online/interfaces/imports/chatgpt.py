"""The export of ChatGPT, `conversations.json` by itself or within its zip, to episodes."""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from nous_online.core.errors import InvalidInput
from nous_online.core.texts import is_blank
from nous_online.interfaces.imports.import_files import (
    ImportItem,
    ReaderState,
    Unread,
    elements_of,
    fields_of,
    list_of,
    opened,
)
from nous_online.interfaces.imports.records import imported_moment
from nous_online.interfaces.imports.sessionize import (
    Conversation,
    Message,
    episode_of,
    is_going_on,
    stretches,
)

CONVERSATIONS = "conversations*.json"
LISTS = ("conversations",)
UNDER_WAY = "conversations that were going on when they were exported (import the next export)"
UNDATED_YEAR = 1980
"""The first of a zip, which stands for none."""
SPOKEN = ("user", "assistant")
SAID = ("text", "multimodal_text")
DAMAGES = (InvalidInput, zipfile.BadZipFile, zlib.error, OSError)
Fields = Mapping[str, Any]


def items_of_conversations(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of an export, and what was wrong with some of its conversations."""
    number = 0
    moment = exported_at(path, now=reading.now)
    for file in files_of(path):
        unread = Unread(cast("BinaryIO", file))
        try:
            for conversation in elements_of(unread, lists=LISTS):
                number += 1
                yield from episodes_in(conversation, ImportItem(number, unread.bytes_read), moment)
        except DAMAGES as error:
            yield ImportItem(number + 1, unread.bytes_read, problem=f"{error}; what comes after it was not read")


def exported_at(path: Path, *, now: datetime) -> datetime:
    """Return when an export was made: by the dates of the files in its zip, or by what is newest in them, or `now`.

    Measured against a later moment, a conversation under way would be taken for a whole one, and never be completed.
    """
    told = list(archived(path)) if zipfile.is_zipfile(path) else []
    return min(now, max(told or moments_in(path), default=now))


def archived(path: Path) -> Iterator[datetime]:
    """Yield when the files with conversations in a zip were written, taken for UTC, but for those that don't say."""
    with archive(path) as found:
        for member in conversations_in(found):
            with suppress(ValueError):
                moment = datetime(*member.date_time, tzinfo=UTC)
                yield from [moment] if moment.year > UNDATED_YEAR else []


def moments_in(path: Path) -> Iterator[datetime]:
    """Yield the moments that an export tells of, as far as it can be read."""
    with suppress(*DAMAGES):
        for file in files_of(path):
            for conversation in elements_of(Unread(cast("BinaryIO", file)), lists=LISTS):
                fields = fields_of(conversation)
                nodes = fields_of(fields.get("mapping")).values()
                for each in (fields, *(fields_of(fields_of(node).get("message")) for node in nodes)):
                    yield from moment_under("create_time", each)
                    yield from moment_under("update_time", each)


def moment_under(name: str, fields: Fields) -> Iterator[datetime]:
    """Yield the moment under a name, where there is one."""
    with suppress(InvalidInput):
        moment = imported_moment(name, fields.get(name))
        yield from [moment] if moment else []


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


@contextmanager
def archive(path: Path) -> Generator[zipfile.ZipFile]:
    """Open a zip; raise `InvalidInput` when it can't be read."""
    try:
        found = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InvalidInput(f"can't read {path}: {error}; download the export again") from error
    with found:
        yield found


def episodes_in(conversation: object, place: ImportItem, moment: datetime) -> Iterator[ImportItem]:
    """Yield the episodes of one conversation that were over at a moment, or an item that says what is wrong with it."""
    try:
        known, messages = read_conversation(conversation)
    except InvalidInput as error:
        yield ImportItem(place.number, place.end, problem=str(error))
        return
    left_out: Counter[str] = Counter()
    for together in stretches(messages):
        if is_going_on(together, now=moment):
            left_out[UNDER_WAY] += 1
            continue
        episode = episode_of(together, known)
        if episode:
            yield ImportItem(place.number, place.end, episode.record, episode.name, left_out=episode.left_out)
    yield ImportItem(place.number, place.end, left_out=left_out)


def read_conversation(conversation: object) -> tuple[Conversation, list[Message]]:
    """Return what is known of a conversation, and its messages in order; raise `InvalidInput` where it is none."""
    fields = fields_of(conversation)
    if not isinstance(fields.get("mapping"), Mapping):
        raise InvalidInput("a conversation must be an object with a `mapping` of its messages")
    name, title = fields.get("conversation_id") or fields.get("id"), fields.get("title")
    if not isinstance(name, str):
        raise InvalidInput("the conversation has no id; export it again")
    began_at = imported_moment("create_time", fields.get("create_time"))
    messages = list(dated(branch(fields_of(fields["mapping"]), fields.get("current_node")), began_at))
    known = Conversation(name, f"chatgpt:{name}", title if isinstance(title, str) else None, ("chatgpt",))
    return known, sorted(messages, key=lambda message: message.said_at)


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
    """Return the node without children whose message was made last."""

    def made(name: str) -> float:
        moment = fields_of(fields_of(mapping[name]).get("message")).get("create_time")
        return float(moment) if isinstance(moment, int | float) else 0.0

    leaves = [name for name, node in mapping.items() if not fields_of(node).get("children")]
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
