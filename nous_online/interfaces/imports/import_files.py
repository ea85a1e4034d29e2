"""What every reader of a history uses: files of any size, line by line or element by element; messages to episodes."""

from __future__ import annotations

import codecs
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_IDS
from nous_online.interfaces.imports.records import (
    Fields,
    ImportedRecord,
    fields_of,
    list_of,
    parse_object,
    refuse_constant,
)
from nous_online.language.writing.credentials import holds_credential

MAX_LINE_BYTES = 8 * 1024 * 1024
SKIPPED_AT_ONCE_BYTES = 64 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


# --- what readers yield, and what they share ---


@dataclass(frozen=True)
class ImportItem:
    """One thing a file holds, counted from 1; `end` is the byte up to which the file was read for it."""

    number: int
    end: int
    record: ImportedRecord | None = None
    name: str | None = None
    """Identifies the record within its source; without one, its id or its text does."""
    text: bytes = b""
    """The record as it stands in the file."""
    problem: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """What was left out although nothing is wrong with it: counts by reason."""
    hidden: tuple[int, ...] = ()
    """The numbers of the records in which a line was left out that looks as if it holds a credential."""


class Occurrences:
    """Names for records without an id: the hash of their text, and how often that text has occurred so far."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()  # 91 bytes a text; an agent has a million memories at most

    def name(self, text: bytes, *, within: str = "") -> str:
        """Return the name of the next occurrence of a text in a source: the same in every run over the same file."""
        times = self._count(text, within)
        return f"{sha256(text).hexdigest()[:32]}:{times}"

    def is_new(self, text: bytes, *, within: str) -> bool:
        """Return whether a text occurs for the first time in a source."""
        return self._count(text, within) == 1

    def _count(self, text: bytes, within: str) -> int:
        digest = sha256(within.encode() + b"\n" + text).digest()[:16]
        self._counts[digest] += 1
        return self._counts[digest]


@dataclass(frozen=True)
class ReaderState:
    """What the readers of one import share: when it began, and which texts occurred before."""

    now: datetime
    seen: Occurrences
    is_over: bool = False
    """The conversations have ended: the last part of none waits for more messages."""
    stored_until: Callable[[str], datetime | None] = lambda _: None
    """Returns when the episode of a name ended, if an earlier import stored it."""


Reader = Callable[[Path, ReaderState], Iterator[ImportItem]]


# --- one object a line ---


@contextmanager
def open_file(path: Path) -> Generator[IO[bytes]]:
    """Open a file to be imported; raise `InvalidInput` when it can't be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"can't read {path}: {error.strerror}; name a file to import") from error
    with file:
        yield file


def read_lines(file: IO[bytes]) -> Iterator[ImportItem]:
    """Yield the lines of a file; of one longer than 8 MiB, which is skipped unread, what is wrong with it."""
    number, end = 0, 0
    while text := file.readline(MAX_LINE_BYTES + 1):
        number, end = number + 1, end + len(text)
        if len(text) <= MAX_LINE_BYTES or text.endswith(b"\n"):
            yield ImportItem(
                number, end, text=text.removeprefix(BYTE_ORDER_MARK).strip() if number == 1 else text.strip()
            )
            continue
        while not text.endswith(b"\n") and (text := file.readline(SKIPPED_AT_ONCE_BYTES)):
            end += len(text)
        problem = f"the line is longer than {MAX_LINE_BYTES:,} bytes; split it into several records"
        yield ImportItem(number, end, problem=problem)


def read_objects(path: Path) -> Iterator[tuple[ImportItem, dict[str, Any] | None]]:
    """Yield the JSON object on each line of a file with its place; None for an empty line and one with a problem."""
    with open_file(path) as file:
        for line in read_lines(file):
            try:
                yield line, parse_object(line.text) if line.text else None
            except InvalidInput as error:
                yield replace(line, problem=str(error)), None


# --- one JSON value, however large, and zips of them ---

PIECE_BYTES = 1024 * 1024
MAX_ELEMENT_CHARACTERS = 64 * 1024 * 1024
MAX_NAMES_SHOWN = 5
"""How many of an object's names an error lists where none is the expected one."""
BLANK = re.compile(r"[ \t\r\n]*")


class JsonStream:
    """A JSON text that is read from a file piece by piece, so that memory holds one element of it at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = json.JSONDecoder(parse_constant=refuse_constant)
        self._text = ""
        self._at = 0
        self._is_all = False
        self.bytes_read = 0

    def read_more(self) -> bool:
        """Read another piece; return False at the end of the file."""
        if self._is_all:
            return False
        # Twice as much each time for the same element: it is parsed from its start after each piece, and pieces of one
        # size would make that quadratic.
        piece = self._file.read(max(PIECE_BYTES, len(self._text) - self._at))
        self.bytes_read += len(piece)
        self._is_all = not piece
        try:
            self._text = self._text[self._at :] + self._decode(piece, final=self._is_all)
        except UnicodeDecodeError as error:
            raise InvalidInput(f"the file is not UTF-8 ({error.reason}); convert it, or export it again") from error
        self._at = 0
        return bool(piece)

    def peek(self) -> str:
        """Return the next character that is not blank, without taking it; an empty text at the end."""
        while True:
            match = BLANK.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self.read_more():
                return ""

    def take(self, character: str) -> None:
        """Take the next character, which must be this one."""
        found = self.peek()
        if found != character:
            raise InvalidInput(f"expected {character!r}, found {found or 'the end of the file'!r}; export it again")
        self._at += 1

    def take_value(self) -> Any:
        """Take the next JSON value; raise `InvalidInput` when it is broken, or longer than 64 Mi characters."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise InvalidInput("the JSON is nested too deeply") from error
            except InvalidInput:  # a constant that JSON does not have; as a ValueError it would be read on for
                raise
            except ValueError as error:
                if len(self._text) - self._at > MAX_ELEMENT_CHARACTERS:
                    problem = f"an element is longer than {MAX_ELEMENT_CHARACTERS:,} characters, or broken: {error}"
                    raise InvalidInput(problem) from None
                if not self.read_more():
                    raise InvalidInput(f"the JSON is broken or cut off: {error}; export it again") from error
                continue
            if end < len(self._text) or self._is_all:  # else a number may go on in the next piece
                self._at = end
                return value
            self.read_more()


def read_value(path: Path) -> tuple[Any, int]:
    """Return the one JSON value of a file, and how many bytes were read for it."""
    with open_file(path) as file:
        stream = JsonStream(file)
        return stream.take_value(), stream.bytes_read


def read_elements(stream: JsonStream, *, lists: Collection[str], alone: Collection[str] = ()) -> Iterator[Any]:
    """Yield the elements of an array, or of the arrays that an object holds under the names in `lists`.

    An object that has one of the names in `alone` is yielded itself.
    Raises `InvalidInput` where the text is broken, after everything before it, and for an object without such a name.
    """
    if stream.peek() != "{":
        yield from array_elements(stream)
        return
    stream.take("{")
    others: dict[str, Any] = {}
    is_found = False
    while stream.peek() not in ("}", ""):
        name = stream.take_value()
        stream.take(":")
        if name in lists and stream.peek() == "[":
            is_found = True
            yield from array_elements(stream)
        else:
            value = stream.take_value()
            others[str(name)] = value if alone else None
        if stream.peek() == ",":
            stream.take(",")
    stream.take("}")
    if others.keys() & set(alone):
        yield others
    elif not is_found:
        names = [name[:40] for name in others][:MAX_NAMES_SHOWN]
        wanted, found = (" or ".join(map(repr, each)) for each in (lists, names))
        raise InvalidInput(f"expected a list, by itself or under {wanted}, found {found or 'nothing'}; export it again")


def array_elements(stream: JsonStream) -> Iterator[Any]:
    stream.take("[")
    while stream.peek() != "]":
        yield stream.take_value()
        if stream.peek() != "]":
            stream.take(",")
    stream.take("]")


READ_ERRORS = (InvalidInput, zipfile.BadZipFile, zlib.error, OSError)
"""What reading a damaged zip, or a damaged file in one, raises."""
UNDATED_YEAR = 1980
"""The first year a zip can hold: programs write it where they know no date."""


def open_export(
    path: Path, names: Collection[str], *, program: str | None = None
) -> Iterator[tuple[IO[bytes], datetime | None]]:
    """Yield the files of an export, opened, with the moment each was written: those of these names in a zip, by name.

    Any other file, or any file without names, is yielded itself. `names` may hold wildcards. Raises `InvalidInput` when
    the file can't be read and, if `program` names what exported it, when a zip holds no such file.
    """
    if not names or not zipfile.is_zipfile(path):
        with open_file(path) as file:
            yield file, datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InvalidInput(f"can't read {path}: {error}; download the export again") from error
    with archive:
        members = [each for each in archive.infolist() if is_named(each.filename, names)]
        if program and not members:
            first = next(iter(names)).replace("*", "")
            raise InvalidInput(f"{path} holds no {first}; name the zip that {program} exported")
        for member in sorted(members, key=lambda member: member.filename):
            written_at = None
            if member.date_time[0] > UNDATED_YEAR:
                with suppress(ValueError):  # a zip may hold an invalid date
                    written_at = datetime(*member.date_time, tzinfo=UTC)
            with archive.open(member) as file:
                yield file, written_at


def is_named(path: str, names: Collection[str]) -> bool:
    """Return whether the file name of a zip's member is one of these, which may hold wildcards."""
    return any(fnmatch(PurePosixPath(path).name, name) for name in names)


def read_export(
    path: Path,
    *,
    lists: Collection[str],
    names: Collection[str] = (),
    alone: Collection[str] = (),
    program: str | None = None,
) -> Iterator[tuple[ImportItem, Fields, datetime | None]]:
    """Yield the objects of an export with their places and the moment their file was written.

    They are those of `read_elements` in the files of `open_export`. Where a file breaks off, its last item says so, and
    has no fields.
    """
    number = 0
    for file, written_at in open_export(path, names, program=program):
        stream = JsonStream(file)
        try:
            for element in read_elements(stream, lists=lists, alone=alone):
                number += 1
                yield ImportItem(number, stream.bytes_read), fields_of(element), written_at
        except READ_ERRORS as error:
            problem = f"{error}; what comes after it was not read"
            yield ImportItem(number + 1, stream.bytes_read, problem=problem), {}, written_at


# --- conversations to episodes: messages without a pause of two hours between them are one ---

PAUSE = timedelta(hours=2)
"""A shorter pause is part of one piece of work. For as long after its last message a conversation may go on."""
MAX_EPISODE_CHARACTERS = 100_000
"""About 25,000 tokens: what draws facts from an episode reads it at once."""
MAX_MESSAGE_CHARACTERS = 20_000
"""A longer message is a pasted file or a log."""
MAX_EPISODE_TAGS = 20
"""An episode that touches more places is about none of them."""
STILL_GOING_ON = "conversations that may still be going on (import them later)"
NOTHING_SAID = "dialogues in which nothing is said"
HIDDEN_FACTS = "facts that look as if they hold a credential"
HIDDEN_TITLES = "headings and titles that look as if they hold a credential"
HIDDEN_LINES = "lines that look as if they hold a credential"
CODE_FENCE = "```"
LEFT_OUT_LINE = "[a line was left out: it looks as if it holds a credential]"
KEY_BEGINS, KEY_ENDS = "-----BEGIN", "-----END"
"""The first and the last line of a private key in PEM."""


@dataclass(frozen=True)
class Message:
    """Something said or done in a conversation; one without text still names the files it touched."""

    id: str
    said_at: datetime
    speaker: str
    text: str
    artifacts: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    """Of the place where it was said: an episode has the tags of its own messages."""
    number: int = 0
    """Of its record in the file, counted from 1."""


@dataclass
class ImportedSession:
    """A conversation while it is read: what is known of it, the reader's place, and what was wrong or left out."""

    path: Path
    program: str
    id: str = ""
    title: str | None = None
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    """The project of the folder it began in."""
    at: ImportItem = ImportItem(0, 0)
    left_out: Counter[str] = field(default_factory=Counter[str])
    hidden: list[int] = field(default_factory=list[int])
    """The numbers of the records with a line that was left out as a credential."""
    problems: list[ImportItem] = field(default_factory=list[ImportItem])

    @property
    def name(self) -> str:
        """The id of the session, or the name of its file where it has none."""
        return self.id or self.path.stem

    def read_lines(self) -> Iterator[Fields]:
        """Yield the object on each line of the file, moving the reader's place and keeping the problems of lines."""
        for place, fields in read_objects(self.path):
            self.at = place
            if place.problem:
                self.problems.append(place)
            if fields is not None:
                yield fields


def episodes_of(session: ImportedSession, messages: Iterable[Message], state: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of a session that are over, and the problems that reading its messages met."""
    placed = (replace(message, number=session.at.number) for message in messages)
    for together in sessionize(placed, stored_until=state.stored_until):
        yield from session.problems
        session.problems.clear()
        if not state.is_over and state.now - together[-1].said_at < PAUSE:
            session.left_out[STILL_GOING_ON] += 1
        elif episode := episode_of(together, session):
            yield replace(episode, left_out=dict(session.left_out), hidden=tuple(session.hidden))
            session.left_out.clear()
            session.hidden.clear()
    yield from session.problems
    yield ImportItem(session.at.number, session.at.end, left_out=dict(session.left_out))


def sessionize(
    messages: Iterable[Message], *, stored_until: Callable[[str], datetime | None]
) -> Iterator[list[Message]]:
    """Yield messages that belong together: no pause between them, and not too many characters for one episode.

    `stored_until` returns when the episode that begins with a message ended, if an earlier import stored it. Later
    messages then begin another episode, even without a pause, so that none is stored twice and none is lost.
    """
    together: list[Message] = []
    size, stored = 0, None
    for message in messages:
        length = min(len(message.text), MAX_MESSAGE_CHARACTERS)
        is_apart = together and message.said_at - together[-1].said_at >= PAUSE
        is_full = size + length > MAX_EPISODE_CHARACTERS
        if together and (is_apart or is_full or (stored and message.said_at > stored)):
            yield together
            together, size = [], 0
        stored = stored if together else stored_until(message.id)
        together.append(message)
        size += length
    if together:
        yield together


def episode_of(messages: Sequence[Message], session: ImportedSession) -> ImportItem | None:
    """Return the episode of some messages, None where they have no text; what it leaves out counts for the session."""
    lines: list[str] = []
    for message in messages:
        before = session.left_out[HIDDEN_LINES]
        lines += lines_of(message, session.left_out) if message.text.strip() else ()
        session.hidden += [message.number] if session.left_out[HIDDEN_LINES] > before else []
    if not lines:
        return None
    title = (session.title or "").strip()
    if holds_credential(title):
        session.left_out[HIDDEN_TITLES] += 1
        title = ""
    tags = list(dict.fromkeys((*session.tags, *(tag for message in messages for tag in message.tags))))
    artifacts = list(dict.fromkeys(artifact for message in messages for artifact in message.artifacts))
    fields = {
        "detail": "\n".join(lines),
        "title": title[:500] or None,
        "started_at": min(each.said_at for each in messages).isoformat(),
        "ended_at": max(each.said_at for each in messages).isoformat(),
        "participants": list(dict.fromkeys(message.speaker for message in messages if message.text.strip())),
        "tags": tags[:MAX_EPISODE_TAGS],
        "artifacts": artifacts[:MAX_IDS],
        "session_id": session.name[:100],
        "source": f"{session.program}:{session.name}"[:500],
    }
    # Named by its first message: an episode that went on after an import is recognised when it is read again.
    record = ImportedRecord("episode", None, None, fields, session.project_id)
    return ImportItem(session.at.number, session.at.end, record, messages[0].id)


def lines_of(message: Message, left_out: Counter[str]) -> Iterator[str]:
    """Yield a message as lines of an episode, the first with its speaker; lines with a credential are counted."""
    text = message.text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    beyond = len(text) - MAX_MESSAGE_CHARACTERS
    cut = f"{text[:MAX_MESSAGE_CHARACTERS]}\n[{beyond:,} characters were left out]" if beyond > 0 else text
    lines = [line.rstrip() for line in cut.splitlines() if line.strip()]
    if sum(line.lstrip().startswith(CODE_FENCE) for line in lines) % 2:  # what others say next is no code
        lines.append(CODE_FENCE)
    for number, line in enumerate(without_credentials(lines, left_out)):
        yield line if number else f"{message.speaker}: {line}"


def without_credentials(lines: Iterable[str], left_out: Counter[str]) -> Iterator[str]:
    """Yield lines, with a mark in place of each that looks as if it holds a credential, or of all lines of a key."""
    is_in_key = False
    for line in lines:
        if is_in_key:
            is_in_key = KEY_ENDS not in line
        elif holds_credential(line):
            left_out[HIDDEN_LINES] += 1
            is_in_key = KEY_BEGINS in line and KEY_ENDS not in line
            yield LEFT_OUT_LINE
        else:
            yield line


def read_messages(
    session: ImportedSession, objects: Iterable[Fields], message_of: Callable[[Fields], Message | None]
) -> Iterator[tuple[Fields, Message]]:
    """Yield each object that holds a message with it; an object that can't be read is a problem of the session."""
    for fields in objects:
        try:
            message = message_of(fields)
        except InvalidInput as error:
            session.problems.append(ImportItem(session.at.number, session.at.end, problem=str(error)))
            continue
        if message:
            yield fields, message


def text_of_parts(content: object, *, kinds: tuple[str, ...] = ()) -> str:
    """Return the text of a message, which is a text, a part or a list of parts; only of these kinds if any is named."""
    texts: list[str] = []
    for part in list_of(content) or [content]:
        text = part if isinstance(part, str) else fields_of(part).get("text")
        is_wanted = isinstance(part, str) or not kinds or fields_of(part).get("type") in kinds
        texts += [text.strip()] if isinstance(text, str) and is_wanted and text.strip() else []
    return "\n".join(texts)
