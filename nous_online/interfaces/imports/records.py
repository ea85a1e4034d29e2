"""One line of an import file to the memories it holds: the documented schema, its aliases and its checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NoReturn, TypeAlias, cast

from nous_online.core.details import FactDetails
from nous_online.core.domain import NewFact
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import rows_of
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.rights import Rights
from nous_online.core.validation import checked_agent, checked_choice, checked_optional, checked_text
from nous_online.interfaces.imports.dialogues import SESSION_FIELDS, is_dialogue, statements_of
from nous_online.memories.episodes import EPISODE_FIELDS, NewEpisode, RecordDetails, new_episode
from nous_online.memories.facts import new_fact

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
