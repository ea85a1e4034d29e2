"""Records of JSONL files (docs/import.md): from a line to the facts, episodes and recalls it holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

Fields = Mapping[str, Any]
"""The fields of a JSON object."""

KINDS = ("fact", "episode", "recall")
CONTENT_FIELDS = ("content", "fact", "text", "memory")
MOMENT_FIELDS = ("learned_at", "time", "date", "created_at", "timestamp")
ID_FIELDS = ("id", "store", "serial")
NOT_SHARED = ("learned_at", "valid_from", "valid_to", "session_id", "source_episode_id", "source_decision_id")
"""Parameters of `learn` that a line writes in another form or can't name; its id becomes the idempotency key."""
SHARED_FIELDS = tuple(name for name in rows_of(FactDetails) if name not in (*NOT_SHARED, "idempotency_key"))
OWNERS = ("user_id", "project_id")
RECALL_FIELDS = ("query", "at", "frame", "cited", "ignored")
SESSION_LISTS = ("sessions", "evidence_sessions", "haystack_sessions")
EVERYWHERE = ("kind", "agent", *ID_FIELDS)
KNOWN_FIELDS = {
    "fact": frozenset((
        *EVERYWHERE, *CONTENT_FIELDS, *MOMENT_FIELDS, *SHARED_FIELDS, "valid_from", "valid_to",
        *SESSION_LISTS, "turns", "haystack_dates",
    )),
    "episode": frozenset((*EVERYWHERE, *EPISODE_FIELDS)),
    "recall": frozenset((*EVERYWHERE, *RECALL_FIELDS)),
}  # fmt: skip
OTHER_MOMENTS = (
    "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%B-%d-%Y", "%B %d, %Y", "%b %d, %Y", "%I:%M %p on %d %B, %Y",
)  # fmt: skip
MILLISECONDS_FROM = 1e11  # as seconds this is the year 5138, as milliseconds March 1973
MAX_KEY_CHARACTERS = 200
MAX_ID_CHARACTERS = 1000


@dataclass(frozen=True)
class ReplayedRecall:
    """A past question, with the idempotency keys of the memories that were then used and ignored."""

    query: str
    at: datetime
    frame: str | None
    cited: tuple[str, ...]
    ignored: tuple[str, ...]
    idempotency_key: str

    @property
    def marked(self) -> list[str]:
        return list(dict.fromkeys((*self.cited, *self.ignored)))


Entry: TypeAlias = NewFact | NewEpisode | ReplayedRecall


@dataclass(frozen=True)
class ImportedRecord:
    """A record before its fields are checked: its kind, the agent and the id it names, and its fields as written."""

    kind: str
    agent: str | None
    id: str | None
    fields: Mapping[str, Any]
    project_id: str | None = None
    """The project of where it was said, for an import that names none."""

    @property
    def ignored_fields(self) -> frozenset[str]:
        return frozenset(self.fields) - KNOWN_FIELDS[self.kind]


def record_of(fields: dict[str, Any]) -> ImportedRecord:
    """Return the record of a line; raise `InvalidInput` for an invalid kind, agent or id."""
    agent = fields.get("agent")
    return ImportedRecord(
        kind=checked_choice("kind", fields.get("kind") or "fact", KINDS),
        agent=None if agent is None else checked_agent(agent),
        id=record_id(fields),
        fields=fields,
    )


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object on a line; raise `InvalidInput` with what is wrong with it."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"byte {error.start + 1} is not UTF-8 ({error.reason}); convert the file to UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}; one JSON object belongs on a line"
        ) from error
    except RecursionError as error:
        raise InvalidInput("the JSON is nested too deeply; one flat object belongs on a line") from error
    except InvalidInput:  # of refuse_constant; it is a ValueError too
        raise
    except ValueError as error:  # a number of more digits than Python converts
        raise InvalidInput(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"a line must hold one JSON object, got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def fields_of(value: object) -> Fields:
    """Return the fields of a JSON object; none for any other value."""
    return cast("Fields", value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[object]:
    """Return the elements of a JSON array; none for any other value."""
    return cast("list[object]", value) if isinstance(value, list) else []


def json_object(text: str) -> Fields:
    """Return the fields of the JSON object in a text; none for any other text."""
    try:
        return fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def refuse_constant(name: str) -> NoReturn:
    """Raise `InvalidInput` for NaN and the infinities, which Python's parser accepts and JSON does not have."""
    raise InvalidInput(f"{name} is not a JSON number; leave the field out")


def record_id(fields: Mapping[str, Any]) -> str | None:
    """Return the id of a record as text, None without one; `serial` is one only together with `store`."""
    if fields.get("id") is not None:
        return id_text("id", fields["id"])
    store, serial = fields.get("store"), fields.get("serial")
    if store is None or serial is None:
        return None
    return f"{id_text('store', store)}/{id_text('serial', serial)}"


def id_text(name: str, value: object) -> str:
    """Return an id, which may be a whole number, as text; raise `InvalidInput` for anything else."""
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
    """Return the memories and recalls of a record, checked; raise `InvalidInput` for the first invalid field.

    `name` identifies the record within `source`; `now` is the moment of an undated one; `rights` are those of the
    agent it is for, whose policy says how far each kind of source is trusted.
    """
    if record.kind == "episode":
        return [imported_episode(record, key=memory_key(source, name), now=now, rights=rights)]
    if record.kind == "recall":
        return [imported_recall(record, source=source, name=name)]
    if any(record.fields.get(each) is not None for each in ("turns", *SESSION_LISTS)):
        return imported_dialogue(record, source=source, name=name, now=now, rights=rights)
    return [imported_fact(record, key=memory_key(source, name), now=now, rights=rights)]


def imported_fact(record: ImportedRecord, *, key: str, now: datetime, rights: Rights) -> NewFact:
    content = next((record.fields[name] for name in CONTENT_FIELDS if record.fields.get(name) is not None), None)
    if content is None:
        raise InvalidInput(
            "the line has no content; a fact needs `content`, a chat `messages`, a dialogue `turns`, "
            "other records a `kind`"
        )
    details = shared_details(record.fields)
    for name in ("valid_from", "valid_to"):
        details[name] = imported_moment(name, record.fields.get(name))
    details["learned_at"] = first_moment(record.fields)
    details["idempotency_key"] = key
    return new_fact(content, cast("FactDetails", details), now=now, rights=rights)


def imported_episode(record: ImportedRecord, *, key: str, now: datetime, rights: Rights) -> NewEpisode:
    fields = record.fields
    details = told_of(fields, EPISODE_FIELDS)
    for name in ("started_at", "ended_at"):
        details[name] = imported_moment(name, fields.get(name))
    details = {"source_kind": "import", **details, "idempotency_key": key}
    return new_episode(details.pop("detail", None), cast("RecordDetails", details), now=now, rights=rights)


def imported_recall(record: ImportedRecord, *, source: str, name: str) -> ReplayedRecall:
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
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list of ids, got {value!r}")
    return [id_text(f"an entry of {name}", each) for each in cast("list[object]", value)]


def shared_details(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a fact that a line writes as `learn` takes them."""
    return {"source_kind": "import", **told_of(fields, SHARED_FIELDS)}


def told_of(fields: Fields, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of these names that have a value; a file may say with an empty text that it names no owner."""
    told = {name: fields[name] for name in names if fields.get(name) is not None}
    return {name: value for name, value in told.items() if name not in OWNERS or value != ""}


def first_moment(fields: Mapping[str, Any], names: Sequence[str] = MOMENT_FIELDS) -> datetime | None:
    """Return the moment in the first of the fields for it that has a value, or None."""
    name = next((name for name in names if fields.get(name) is not None), None)
    return imported_moment(name, fields[name]) if name else None


def imported_moment(name: str, value: object) -> datetime | None:
    """Return a moment in UTC from ISO 8601, epoch seconds or milliseconds, or a form of `OTHER_MOMENTS`.

    A moment without a zone is UTC. Returns None for an empty value; raises `InvalidInput` for one that is no moment.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        moment = parse_moment(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        moment = epoch_moment(value)
    else:
        moment = None
    if moment is None:
        raise InvalidInput(f"{name} {value!r} is no date; write it as ISO 8601, such as 2026-05-01T09:30:00Z")
    return moment


def parse_moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError: the year 1 or 9999, shifted out of the calendar by its zone
        pass
    for form in OTHER_MOMENTS:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def epoch_moment(number: float) -> datetime | None:
    """Return the moment of a number of seconds or milliseconds since 1970; None beyond the calendar."""
    try:
        return datetime.fromtimestamp(number / 1000 if abs(number) >= MILLISECONDS_FROM else number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


# --- dialogues ---

MAX_STATEMENT_CHARACTERS = 2000  # about 400 tokens: the vector covers the first 256, the words are all found
NEIGHBOUR_CHARACTERS = 400  # of each neighbour; more would push the statement itself out of its context's vector
SOURCE_KINDS = {
    "assistant": "agent", "agent": "agent", "ai": "agent", "bot": "agent", "model": "agent", "system": "agent",
    "tool": "tool", "function": "tool",
}  # fmt: skip
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。\uff01\uff1f])|\n+")


@dataclass(frozen=True)
class DialogueStatement:
    """A turn of a dialogue, or a part of a long one."""

    text: str
    speaker: str | None
    after: timedelta
    """How long after the beginning of its session it counts as said: a second for each turn before it."""
    place: str
    """The numbers of session, turn and part within the record."""


def imported_dialogue(record: ImportedRecord, *, source: str, name: str, now: datetime, rights: Rights) -> list[Entry]:
    """Return a fact for each statement of a record's sessions, in order, with its neighbours as its context."""
    shared = shared_details(record.fields)
    entries: list[Entry] = []
    for number, (began_at, turns) in enumerate(sessions_of(record.fields)):
        statements = list(statements_of(turns, session=number))
        for index, said in enumerate(statements):
            before = statements[index - 1].text[-NEIGHBOUR_CHARACTERS:] if index else ""
            after = statements[index + 1].text[:NEIGHBOUR_CHARACTERS] if index + 1 < len(statements) else ""
            # Without a date, microseconds keep the statements of a record in their order.
            undated = now + timedelta(microseconds=len(entries))
            details = {
                **shared,
                "source": shared.get("source") or said.speaker,
                "source_kind": SOURCE_KINDS.get((said.speaker or "").casefold(), "user"),
                "learned_at": began_at + said.after if began_at else undated,
                "context": "\n".join(filter(str.strip, (before, after))) or None,
                "idempotency_key": memory_key(source, f"{name}#{said.place}"),
            }
            entries.append(new_fact(said.text, cast("FactDetails", details), now=now, rights=rights))
    return entries


def sessions_of(fields: Fields) -> Iterator[tuple[datetime | None, list[object]]]:
    """Yield the turns of each session of a record and when it began: its own turns, then those of its lists.

    A session is a list of turns, or an object with `turns` and a date; without one, the record's date counts.
    """
    if fields.get("turns") is not None:
        yield first_moment(fields), checked_list("turns", fields["turns"])
    for name in SESSION_LISTS:
        sessions = checked_list(name, fields.get(name) or [])
        dated = fields.get("haystack_dates") if name == "haystack_sessions" else None
        dates = checked_list("haystack_dates", dated or [])
        for session, date in zip_longest(sessions, dates[: len(sessions)]):
            own = fields_of(session)
            began_at = first_moment(own) or first_moment({"date": date}) or first_moment(fields)
            is_object = isinstance(session, Mapping)
            yield began_at, checked_list("turns", own.get("turns")) if is_object else checked_list("a session", session)


def checked_list(name: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list, got {type(value).__name__}")
    return cast("list[object]", value)


def statements_of(turns: list[object], *, session: int) -> Iterator[DialogueStatement]:
    """Yield the statements of a session, long turns in parts; turns without text are left out."""
    for number, turn in enumerate(turns):
        speaker, text = speaker_and_text(turn, number=number)
        for part_number, part in enumerate(parts(text, max_characters=MAX_STATEMENT_CHARACTERS)):
            after = timedelta(seconds=number, microseconds=part_number)
            place = f"{session}.{number}" + (f".{part_number}" if part_number else "")
            yield DialogueStatement(part, speaker, after, place)


def speaker_and_text(turn: object, *, number: int) -> tuple[str | None, str]:
    """Return who said a turn and its text; raise `InvalidInput` for one that is malformed."""
    if not isinstance(turn, Mapping):
        raise InvalidInput(f"turn {number} must be an object with role and content, got {type(turn).__name__}")
    fields = cast("Fields", turn)
    speaker = fields.get("role") or fields.get("speaker")
    text = fields.get("content") if fields.get("content") is not None else fields.get("text")
    for name, value in (("speaker", speaker), ("content", text)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"the {name} of turn {number} must be text, got {type(value).__name__}")
    return speaker, text or ""


def parts(text: str, *, max_characters: int) -> list[str]:
    """Return the parts of a text, cut at ends of sentences, else between words, else after `max_characters`."""
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
