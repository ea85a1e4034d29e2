"""Dialogues to statements: what was said, turn by turn, each with its date and with what was said around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, cast

from nous_online.core.errors import InvalidInput

SESSION_LISTS = ("sessions", "evidence_sessions", "haystack_sessions")
SESSION_FIELDS = frozenset((*SESSION_LISTS, "turns", "haystack_dates"))
MAX_STATEMENT_CHARACTERS = 2000  # about 400 tokens: the vector covers the first 256, the words are all found
NEIGHBOUR_CHARACTERS = 400  # of each neighbour; more would push the statement itself out of its context's vector
SOURCE_KINDS = {
    "assistant": "agent", "agent": "agent", "ai": "agent", "bot": "agent", "model": "agent", "system": "agent",
    "tool": "tool", "function": "tool",
}  # fmt: skip
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。\uff01\uff1f])|\n+")

Fields = Mapping[str, Any]
ReadMoment = Callable[[Fields], "datetime | None"]


@dataclass(frozen=True)
class SaidTurn:
    """A turn, or a part of a long one; `place` numbers session, turn and part within the line."""

    text: str
    speaker: str | None
    source_kind: str
    said_at: datetime
    place: str
    context: str | None = None


@dataclass(frozen=True)
class DatedTurns:
    """Turns of one conversation and when it began, where that is known."""

    began_at: datetime | None
    turns: Sequence[object]


def is_dialogue(fields: Fields) -> bool:
    """Tell whether a record holds turns, by themselves or in sessions."""
    return any(fields.get(name) is not None for name in ("turns", *SESSION_LISTS))


def statements_of(fields: Fields, *, read_moment: ReadMoment, now: datetime) -> list[SaidTurn]:
    """Return everything said in a record, in order.

    A turn counts as said as many seconds after its session began as turns came before it, in microseconds after
    `now` where no date is known.
    """
    said: list[SaidTurn] = []
    for number, session in enumerate(sessions_of(fields, read_moment=read_moment)):
        statements = list(session_statements(session, number=number, now=now + timedelta(microseconds=len(said))))
        said.extend(with_context(statements))
    return said


def sessions_of(fields: Fields, *, read_moment: ReadMoment) -> Iterator[DatedTurns]:
    """Yield the sessions of a record: its own turns, then those of its lists."""
    if fields.get("turns") is not None:
        yield DatedTurns(read_moment(fields), listed("turns", fields["turns"]))
    for name in SESSION_LISTS:
        sessions = listed(name, fields.get(name) or [])
        dates = listed("haystack_dates", fields.get("haystack_dates") or []) if name == "haystack_sessions" else []
        for session, date in zip_longest(sessions, dates[: len(sessions)]):
            yield one_session(session, {"date": date}, fields, read_moment=read_moment)


def one_session(session: object, dated: Fields, record: Fields, *, read_moment: ReadMoment) -> DatedTurns:
    """Return a session that is a list of turns, or an object with `turns` and a date."""
    if isinstance(session, Mapping):
        own = cast("Fields", session)
        began_at = read_moment(own) or read_moment(dated) or read_moment(record)
        return DatedTurns(began_at, listed("turns", own.get("turns")))
    return DatedTurns(read_moment(dated) or read_moment(record), listed("a session", session))


def listed(name: str, value: object) -> list[object]:
    """Return a value that must be a list."""
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list, got {type(value).__name__}")
    return cast("list[object]", value)


def session_statements(session: DatedTurns, *, number: int, now: datetime) -> Iterator[SaidTurn]:
    """Yield what was said in a session, long turns in parts; turns without text are left out."""
    count = 0
    for turn_number, turn in enumerate(session.turns):
        speaker, text = spoken(turn, number=turn_number)
        for part_number, part in enumerate(parts(text, max_characters=MAX_STATEMENT_CHARACTERS)):
            after = timedelta(seconds=turn_number, microseconds=part_number)
            yield SaidTurn(
                text=part,
                speaker=speaker,
                source_kind=SOURCE_KINDS.get((speaker or "").casefold(), "user"),
                said_at=session.began_at + after if session.began_at else now + timedelta(microseconds=count),
                place=f"{number}.{turn_number}" + (f".{part_number}" if part_number else ""),
            )
            count += 1


def spoken(turn: object, *, number: int) -> tuple[str | None, str]:
    """Return who said a turn and what."""
    if not isinstance(turn, Mapping):
        raise InvalidInput(f"turn {number} must be an object with role and content, got {type(turn).__name__}")
    fields = cast("Fields", turn)
    speaker = fields.get("role") or fields.get("speaker")
    text = fields.get("content") if fields.get("content") is not None else fields.get("text")
    for name, value in (("speaker", speaker), ("content", text)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"the {name} of turn {number} must be text, got {type(value).__name__}")
    return speaker, text or ""


def with_context(statements: Sequence[SaidTurn]) -> Iterator[SaidTurn]:
    """Yield the statements of one session with the end of the one before and the beginning of the one after."""
    for index, statement in enumerate(statements):
        before = statements[index - 1].text[-NEIGHBOUR_CHARACTERS:] if index else ""
        after = statements[index + 1].text[:NEIGHBOUR_CHARACTERS] if index + 1 < len(statements) else ""
        yield replace(statement, context="\n".join(filter(str.strip, (before, after))) or None)


def parts(text: str, *, max_characters: int) -> list[str]:
    """Cut a text at sentence ends, between words, or at last anywhere, into parts of at most `max_characters`."""
    if len(text) <= max_characters:
        return [text.strip()] if text.strip() else []
    packed: list[str] = []
    for piece in pieces(text, max_characters=max_characters):
        if packed and len(packed[-1]) + 1 + len(piece) <= max_characters:
            packed[-1] = f"{packed[-1]} {piece}"
        else:
            packed.append(piece)
    return packed


def pieces(text: str, *, max_characters: int) -> Iterator[str]:
    """Yield the sentences of a text; of one that is too long its words, of such a word its slices."""
    for sentence in filter(str.strip, SENTENCE_END.split(text)):
        if len(sentence) <= max_characters:
            yield sentence.strip()
            continue
        for word in sentence.split():
            yield from (word[start : start + max_characters] for start in range(0, len(word), max_characters))
