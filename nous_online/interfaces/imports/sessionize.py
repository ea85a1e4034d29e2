"""Conversations to episodes: what was said in one go is one, and a pause of two hours begins another. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from nous_online.core.validation import MAX_IDS
from nous_online.interfaces.imports.import_files import ImportItem, ReaderState, fields_of, list_of
from nous_online.interfaces.imports.records import ImportedRecord
from nous_online.language.writing.credentials import holds_credential

HIDDEN_FACTS = "facts that look as if they hold a credential"
HIDDEN_TITLES = "headings and titles that look as if they hold a credential"
HIDDEN_LINES = "lines that look as if they hold a credential"
LEFT_OUT_LINE = "[a line was left out: it looks as if it holds a credential]"
KEY_BEGINS, KEY_ENDS = "-----BEGIN", "-----END"


def without_credentials(lines: Iterable[str], left_out: Counter[str]) -> Iterator[str]:
    """Yield lines, with a mark for each that looks as if it holds a credential, or for a whole block of a key."""
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


PAUSE = timedelta(hours=2)
"""A stretch that went on after less is one piece of work; one that is younger may still be going on."""
MOST_CHARACTERS = 100_000
"""Of one episode: about 25,000 tokens, so that whoever draws facts from it can read it at once."""
MOST_OF_A_MESSAGE = 20_000
"""Characters; what is longer is a pasted file or a log."""
MOST_TAGS = 20
"""Of one episode; one that wanders through more places is about none of them."""
STILL_GOING_ON = "conversations that may still be going on (import them later)"


@dataclass(frozen=True)
class Message:
    """Something said or done in a conversation; one without a text still names what it touched."""

    id: str
    said_at: datetime
    speaker: str
    text: str
    artifacts: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    """Of where it was said: an episode has those of its own messages."""


@dataclass(frozen=True)
class Conversation:
    """What is known of a conversation besides its messages."""

    id: str
    source: str
    title: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stretch:
    """An episode drawn from a conversation, and the name that tells it from all others of its source."""

    name: str
    record: ImportedRecord
    left_out: Counter[str] = field(default_factory=Counter[str])


def not_stored(_: str) -> datetime | None:
    """Say of every stretch that it is new."""
    return None


def stretches(
    messages: Iterable[Message], *, stored_until: Callable[[str], datetime | None] = not_stored
) -> Iterator[list[Message]]:
    """Yield messages that belong together: no pause between them, and not too much for one episode.

    `stored_until` says when a stretch that begins with a message ended if it was stored before: what was said since,
    though in the same go, is a stretch of its own, so that nothing is told twice and nothing gets lost.
    """
    together: list[Message] = []
    size, stored = 0, None
    for message in messages:
        length = min(len(message.text), MOST_OF_A_MESSAGE)
        is_apart = together and message.said_at - together[-1].said_at >= PAUSE
        if together and (is_apart or size + length > MOST_CHARACTERS or (stored and message.said_at > stored)):
            yield together
            together, size = [], 0
        stored = stored if together else stored_until(message.id)
        together.append(message)
        size += length
    if together:
        yield together


def is_going_on(messages: Sequence[Message], *, now: datetime) -> bool:
    """Tell whether a stretch ended so lately that more of it may come."""
    return bool(messages) and now - messages[-1].said_at < PAUSE


def episode_of(messages: Sequence[Message], conversation: Conversation) -> Stretch | None:
    """Return the episode some messages make; None where nothing is said in them."""
    left_out: Counter[str] = Counter()
    told = [line for message in messages if message.text.strip() for line in told_of(message, left_out)]
    if not told:
        return None
    began_at, ended_at = min(each.said_at for each in messages), max(each.said_at for each in messages)
    tags = list(dict.fromkeys((*conversation.tags, *(tag for message in messages for tag in message.tags))))
    artifacts = list(dict.fromkeys(artifact for message in messages for artifact in message.artifacts))
    fields = {
        "detail": "\n".join(told),
        "title": title_of(conversation, left_out),
        "started_at": began_at.isoformat(),
        "ended_at": ended_at.isoformat(),
        "participants": list(dict.fromkeys(message.speaker for message in messages if message.text.strip())),
        "tags": tags[:MOST_TAGS],
        "artifacts": artifacts[:MAX_IDS],
        "session_id": conversation.id[:100] or None,
        "source": conversation.source[:500],
    }
    return Stretch(messages[0].id, ImportedRecord("episode", None, None, fields), left_out)


def title_of(conversation: Conversation, left_out: Counter[str]) -> str | None:
    """Return the title of an episode; none, and that counted, where it looks as if it held a credential."""
    title = (conversation.title or "").strip()
    if holds_credential(title):
        left_out[HIDDEN_TITLES] += 1
        return None
    return title[:500] or None


def told_of(message: Message, left_out: Counter[str]) -> Iterator[str]:
    """Yield a message as lines of a detail, the first with its speaker, counting those that are left out."""
    text = message.text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    beyond = len(text) - MOST_OF_A_MESSAGE
    cut = f"{text[:MOST_OF_A_MESSAGE]}\n[{beyond:,} characters were left out]" if beyond > 0 else text
    lines = [line.rstrip() for line in cut.splitlines() if line.strip()]
    for number, line in enumerate(without_credentials(lines, left_out)):
        yield line if number else f"{message.speaker}: {line}"


# --- sessions of coding agents, whichever program wrote them ---


@dataclass
class SessionRead:
    """A session while it is read: what is known of it, where the reader stands, and what was wrong or left out."""

    path: Path
    program: str
    id: str = ""
    title: str | None = None
    cwd: str | None = None
    tags: tuple[str, ...] = ()
    is_subagent: bool = False
    """Another session started it, and tells what came of it."""
    committing: set[str] = field(default_factory=set[str])
    """The ids of tool calls that commit or open a pull request: their results name what came of it."""
    left_out: Counter[str] = field(default_factory=Counter[str])
    at: ImportItem = field(default_factory=lambda: ImportItem(0, 0))
    problems: list[ImportItem] = field(default_factory=list[ImportItem])

    @property
    def name(self) -> str:
        """The id of the session, or the name of its file where it tells none."""
        return self.id or self.path.stem

    def note_problem(self, message: str) -> None:
        """Keep what is wrong with the line the reader stands at."""
        self.problems.append(ImportItem(self.at.number, self.at.end, problem=message))

    def drained(self) -> Iterator[ImportItem]:
        """Yield the problems met so far, each once."""
        yield from self.problems
        self.problems.clear()


def items_of_session(session: SessionRead, messages: Iterable[Message], reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of a session that are over, and what was wrong with some of its lines."""
    for together in stretches(messages, stored_until=reading.stored_until):
        yield from session.drained()
        if not reading.is_over and is_going_on(together, now=reading.now):
            session.left_out[STILL_GOING_ON] += 1
            continue
        known = Conversation(session.name, f"{session.program}:{session.name}", session.title, session.tags)
        episode = episode_of(together, known)
        if episode:
            left_out = session.left_out + episode.left_out
            session.left_out.clear()
            yield ImportItem(session.at.number, session.at.end, episode.record, episode.name, left_out=left_out)
    yield from session.drained()
    yield ImportItem(session.at.number, session.at.end, left_out=dict(session.left_out))


def text_of_parts(content: object, *, kinds: tuple[str, ...] = ()) -> str:
    """Return the text of a message: a text, a part or a list of them; of these kinds alone where any is named."""
    texts: list[str] = []
    for part in list_of(content) or [content]:
        text = part if isinstance(part, str) else fields_of(part).get("text")
        is_wanted = isinstance(part, str) or not kinds or fields_of(part).get("type") in kinds
        texts += [text.strip()] if isinstance(text, str) and is_wanted and text.strip() else []
    return "\n".join(texts)
