"""Conversations to episodes: messages without a pause of two hours between them are one episode. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_IDS
from nous_online.interfaces.imports.import_files import ImportItem, ReaderState, read_objects
from nous_online.interfaces.imports.records import Fields, ImportedRecord, fields_of, list_of
from nous_online.language.writing.credentials import holds_credential

PAUSE = timedelta(hours=2)
"""A shorter pause is part of one piece of work. For as long after its last message a conversation may go on."""
MAX_EPISODE_CHARACTERS = 100_000
"""About 25,000 tokens: what draws facts from an episode reads it at once."""
MAX_MESSAGE_CHARACTERS = 20_000
"""A longer message is a pasted file or a log."""
MAX_EPISODE_TAGS = 20
"""An episode that touches more places is about none of them."""
STILL_GOING_ON = "conversations that may still be going on (import them later)"
HIDDEN_FACTS = "facts that look as if they hold a credential"
HIDDEN_TITLES = "headings and titles that look as if they hold a credential"
HIDDEN_LINES = "lines that look as if they hold a credential"
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


@dataclass
class ImportedSession:
    """A conversation while it is read: what is known of it, the reader's place, and what was wrong or left out."""

    path: Path
    program: str
    id: str = ""
    title: str | None = None
    tags: tuple[str, ...] = ()
    at: ImportItem = field(default_factory=lambda: ImportItem(0, 0))
    left_out: Counter[str] = field(default_factory=Counter[str])
    problems: list[ImportItem] = field(default_factory=list[ImportItem])

    @property
    def name(self) -> str:
        """The id of the session, or the name of its file where it has none."""
        return self.id or self.path.stem

    def note_problem(self, message: str) -> None:
        """Keep a problem with the object at the reader's place."""
        self.problems.append(ImportItem(self.at.number, self.at.end, problem=message))

    def read_lines(self) -> Iterator[Fields]:
        """Yield the object on each line of the file, moving the reader's place and keeping the problems of lines."""
        for place, fields in read_objects(self.path):
            self.at = place
            if place.problem:
                self.problems.append(place)
            if fields is not None:
                yield fields

    def take_problems(self) -> Iterator[ImportItem]:
        """Yield the problems since the last call."""
        yield from self.problems
        self.problems.clear()


def episodes_of(session: ImportedSession, messages: Iterable[Message], state: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of a session that are over, and the problems that reading its messages met."""
    for together in sessionize(messages, stored_until=state.stored_until):
        yield from session.take_problems()
        if not state.is_over and state.now - together[-1].said_at < PAUSE:
            session.left_out[STILL_GOING_ON] += 1
        elif episode := episode_of(together, session):
            yield replace(episode, left_out=dict(session.left_out))
            session.left_out.clear()
    yield from session.take_problems()
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
    lines = [line for message in messages if message.text.strip() for line in lines_of(message, session.left_out)]
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
    record = ImportedRecord("episode", None, None, fields)
    return ImportItem(session.at.number, session.at.end, record, messages[0].id)


def lines_of(message: Message, left_out: Counter[str]) -> Iterator[str]:
    """Yield a message as lines of an episode, the first with its speaker; lines with a credential are counted."""
    text = message.text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    beyond = len(text) - MAX_MESSAGE_CHARACTERS
    cut = f"{text[:MAX_MESSAGE_CHARACTERS]}\n[{beyond:,} characters were left out]" if beyond > 0 else text
    lines = [line.rstrip() for line in cut.splitlines() if line.strip()]
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
            session.note_problem(str(error))
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
