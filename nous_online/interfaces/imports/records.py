"""One line of an import file to the memories it holds: its schema, its aliases, its dialogues and its checks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import zip_longest
from typing import Any, NoReturn, TypeAlias, cast

from nous_online.core.details import FactDetails
from nous_online.core.domain import NewFact
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import rows_of
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.rights import Rights
from nous_online.core.validation import checked_agent, checked_choice, checked_optional, checked_text
from nous_online.memories.episodes import EPISODE_FIELDS, NewEpisode, RecordDetails, new_episode
from nous_online.memories.facts import new_fact

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


KINDS = ("fact", "episode", "recall")
CONTENT_FIELDS = ("content", "fact", "text", "memory")
MOMENT_FIELDS = ("learned_at", "time", "date", "created_at", "timestamp")
ID_FIELDS = ("id", "store", "serial")
NOT_SHARED = ("learned_at", "valid_from", "valid_to", "session_id", "source_episode_id", "source_decision_id")
"""What a line says of a fact in other forms than `learn` is told, or not at all; its id becomes the idempotency key."""
SHARED_FIELDS = tuple(name for name in rows_of(FactDetails) if name not in (*NOT_SHARED, "idempotency_key"))
RECALL_FIELDS = ("query", "at", "frame", "cited", "ignored")
EVERYWHERE = ("kind", "agent", *ID_FIELDS)
FACT_FIELDS = frozenset((*EVERYWHERE, *CONTENT_FIELDS, *MOMENT_FIELDS, *SHARED_FIELDS, "valid_from", "valid_to"))
KNOWN_FIELDS = {
    "fact": FACT_FIELDS | SESSION_FIELDS,
    "episode": frozenset((*EVERYWHERE, *EPISODE_FIELDS)),
    "recall": frozenset((*EVERYWHERE, *RECALL_FIELDS)),
}
OTHER_MOMENTS = (
    "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%B-%d-%Y", "%B %d, %Y", "%b %d, %Y", "%I:%M %p on %d %B, %Y",
)  # fmt: skip
MILLISECONDS_FROM = 1e11  # as seconds this is the year 5138, as milliseconds March 1973
MAX_KEY_CHARACTERS = 200
MAX_ID_CHARACTERS = 1000


@dataclass(frozen=True)
class ReplayedRecall:
    """A question asked in the past, with the keys of the memories that were then used and left aside."""

    query: str
    at: datetime
    frame: str | None
    cited: tuple[str, ...]
    ignored: tuple[str, ...]
    idempotency_key: str

    @property
    def marked(self) -> list[str]:
        """The keys of everything that was cited or ignored, each once."""
        return list(dict.fromkeys((*self.cited, *self.ignored)))


Entry: TypeAlias = NewFact | NewEpisode | ReplayedRecall


@dataclass(frozen=True)
class ImportedRecord:
    """A parsed line: its kind, the agent and the id it names, and its fields as they stood there."""

    kind: str
    agent: str | None
    id: str | None
    fields: Mapping[str, Any]

    @property
    def ignored_fields(self) -> frozenset[str]:
        """The fields nothing here reads."""
        return frozenset(self.fields) - KNOWN_FIELDS[self.kind]


def parsed_record(line: bytes) -> ImportedRecord:
    """Read one line of JSON; raise `InvalidInput` saying what is wrong with it."""
    fields = parsed_object(line)
    agent = fields.get("agent")
    return ImportedRecord(
        kind=checked_choice("kind", fields.get("kind") or "fact", KINDS),
        agent=None if agent is None else checked_agent(agent),
        id=record_id(fields),
        fields=fields,
    )


def parsed_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object on a line."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"byte {error.start + 1} is not UTF-8 ({error.reason}); convert the file to UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"not JSON: {error.msg} at column {error.colno}; one JSON object belongs on a line"
        ) from error
    except RecursionError as error:
        raise InvalidInput("the JSON is nested too deeply; one flat object belongs on a line") from error
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"a line must hold one JSON object, got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python would read and JSON does not have."""
    raise InvalidInput(f"{name} is not a JSON number; leave the field out")


def record_id(fields: Mapping[str, Any]) -> str | None:
    """Return the id of a record as text; `serial` counts only together with `store`."""
    if fields.get("id") is not None:
        return id_text("id", fields["id"])
    store, serial = fields.get("store"), fields.get("serial")
    if store is None or serial is None:
        return None
    return f"{id_text('store', store)}/{id_text('serial', serial)}"


def id_text(name: str, value: object) -> str:
    """Return an id as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = checked_optional(name, value, max_characters=MAX_ID_CHARACTERS)
    if text is None:
        raise InvalidInput(f"{name} is empty; leave it out or give each record one of its own")
    return text


def memory_key(source: str, name: str) -> str:
    """Return the idempotency key of the record called `name` in the import called `source`."""
    key = f"import:{source}:{name}"
    return key if len(key) <= MAX_KEY_CHARACTERS else f"import:{sha256(key.encode()).hexdigest()}"


def entries_of(record: ImportedRecord, *, source: str, name: str, now: datetime, rights: Rights) -> list[Entry]:
    """Return what a record holds, ready to be stored; raise `InvalidInput` when any of it can't be.

    `name` tells the record from all others of `source`; `now` is when an undated one counts as said; `rights` are
    those of the memory it goes to, whose policy says how far each kind of source is trusted.
    """
    if record.kind == "episode":
        return [imported_episode(record, key=memory_key(source, name), now=now, rights=rights)]
    if record.kind == "recall":
        return [imported_recall(record, source=source, name=name)]
    if is_dialogue(record.fields):
        return imported_dialogue(record, source=source, name=name, now=now, rights=rights)
    return [imported_fact(record, key=memory_key(source, name), now=now, rights=rights)]


def imported_fact(record: ImportedRecord, *, key: str, now: datetime, rights: Rights) -> NewFact:
    """Return the fact a line states."""
    content = first_of(record.fields, CONTENT_FIELDS)
    if content is None:
        raise InvalidInput(
            "the line has no content; a fact needs `content`, a dialogue `turns`, other records a `kind`"
        )
    details = shared_details(record.fields)
    for name in ("valid_from", "valid_to"):
        details[name] = imported_moment(name, record.fields.get(name))
    details["learned_at"] = first_moment(record.fields)
    details["idempotency_key"] = key
    return new_fact(content, cast("FactDetails", details), now=now, rights=rights)


def imported_dialogue(record: ImportedRecord, *, source: str, name: str, now: datetime, rights: Rights) -> list[Entry]:
    """Return one fact for each thing said in a line's sessions, in order."""
    shared = shared_details(record.fields)
    said = statements_of(record.fields, read_moment=first_moment, now=now)
    return [
        new_fact(
            statement.text,
            cast(
                "FactDetails",
                {
                    **shared,
                    "source": shared.get("source") or statement.speaker,
                    "source_kind": statement.source_kind,
                    "learned_at": statement.said_at,
                    "context": statement.context,
                    "idempotency_key": memory_key(source, f"{name}#{statement.place}"),
                },
            ),
            now=now,
            rights=rights,
        )
        for statement in said
    ]


def imported_episode(record: ImportedRecord, *, key: str, now: datetime, rights: Rights) -> NewEpisode:
    """Return the closed episode a line tells."""
    fields = record.fields
    details = {name: fields[name] for name in EPISODE_FIELDS if fields.get(name) is not None}
    for name in ("started_at", "ended_at"):
        details[name] = imported_moment(name, fields.get(name))
    details = {"source_kind": "import", **details, "idempotency_key": key}
    return new_episode(details.pop("detail", None), cast("RecordDetails", details), now=now, rights=rights)


def imported_recall(record: ImportedRecord, *, source: str, name: str) -> ReplayedRecall:
    """Return the question a line replays."""
    fields = record.fields
    at = imported_moment("at", fields.get("at"))
    if at is None:
        raise InvalidInput("at is missing; say when the question was asked")
    return ReplayedRecall(
        query=checked_text("query", fields.get("query"), max_bytes=MAX_CONTENT_BYTES),
        at=at,
        frame=checked_optional("frame", fields.get("frame"), max_characters=100),
        cited=tuple(memory_key(source, each) for each in listed_ids("cited", fields.get("cited"))),
        ignored=tuple(memory_key(source, each) for each in listed_ids("ignored", fields.get("ignored"))),
        idempotency_key=memory_key(source, name),
    )


def listed_ids(name: str, value: object) -> list[str]:
    """Return a list of ids as texts."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list of ids, got {value!r}")
    return [id_text(f"an entry of {name}", each) for each in cast("list[object]", value)]


def shared_details(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details a line states as `learn` takes them."""
    return {"source_kind": "import", **{name: fields[name] for name in SHARED_FIELDS if fields.get(name) is not None}}


def first_of(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first of these fields that is there, or None."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def first_moment(fields: Mapping[str, Any]) -> datetime | None:
    """Return when a record says it was said."""
    name = next((name for name in MOMENT_FIELDS if fields.get(name) is not None), None)
    return imported_moment(name, fields[name]) if name else None


def imported_moment(name: str, value: object) -> datetime | None:
    """Return a moment from ISO 8601, epoch seconds or milliseconds, or another known form; without a zone it is UTC."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        moment = read_moment(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        moment = epoch_moment(value)
    else:
        moment = None
    if moment is None:
        raise InvalidInput(f"{name} {value!r} is no date; write it as ISO 8601, such as 2026-05-01T09:30:00Z")
    return moment


def read_moment(text: str) -> datetime | None:
    """Return the moment a text names, or None."""
    try:
        return in_utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        pass
    for form in OTHER_MOMENTS:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def epoch_moment(number: float) -> datetime | None:
    """Return the moment of a count of seconds, or of milliseconds, since 1970; None beyond the calendar."""
    try:
        return datetime.fromtimestamp(number / 1000 if abs(number) >= MILLISECONDS_FROM else number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is taken to be UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
