"""A session of a coding agent to episodes, whatever program wrote it: stretches, problems and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nous_online.interfaces.imports.items import ImportItem, ReaderState, fields_of, list_of
from nous_online.interfaces.imports.sessionize import (
    STILL_GOING_ON,
    Conversation,
    Message,
    episode_of,
    is_going_on,
    stretches,
)


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
