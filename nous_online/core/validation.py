"""Checks of input values, and texts without what a person does not see.

Each check returns the value as it is stored, or raises `InvalidInput` with how to fix it. Enough invisible characters
can carry a message that a model reads and a person does not.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar, cast
from uuid import UUID

from nous_online.core.domain import Artifact, DecisionId, decision_of
from nous_online.core.errors import InvalidInput
from nous_online.core.patterns import regex
from nous_online.core.policy import MAX_CONTENT_BYTES, MAX_RECALL_LIMIT

C = TypeVar("C", bound=str)
SHOWN_CHARACTERS = 40
MAX_NAMES = 100
MAX_IDS = 1_000
"""Memories, decisions or artifacts named in one call."""
LARGEST_LEAD = timedelta(days=1)
"""How far ahead of this clock a statement may be dated: callers mix up time zones, and clocks go wrong."""
FRAME = ("frame", "encoded_frame", "frame_used")
ACTIVE_CENSORS = ("active_censors", "encoded_censors")
"""The name of each parameter, followed by its older names."""
ADMINISTRATOR = "*"
"""The agent id in an HTTP key that is valid for all agents."""
MAX_LINE_BYTES = 4 * 1024
ARTIFACT_KINDS = ("commit", "pr", "adr", "file")
PLAIN_DATE = regex(r"\d{4}-\d\d-\d\d")
MOST_INVISIBLE = 3
"""How many invisible characters (joiners, soft hyphens, marks of direction) a copy of an honest text may differ by."""
_INVISIBLE = regex(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters that are no white space, and what Unicode calls Default_Ignorable_Code_Point."""
HIDDEN = regex(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u115f\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Those of them that no script and no emoji needs, and lone surrogates; joiners and U+FE0F, the emoji mark, stay."""
_BLANK_MARKS = "\u2800"
"""The Braille pattern without dots: invisible, though not white space by Unicode."""

PUNCTUATION = ".,;:!?…\"'“”‘’«»()[]"  # noqa: RUF001 (marks around words; signs such as - # % mean something)


def checked_text(name: str, value: object, *, max_bytes: int) -> str:
    """Return a text that PostgreSQL can hold: not blank, no NUL, no lone surrogate, at most `max_bytes` in UTF-8."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, got {type(value).__name__}")
    if not value.strip():
        raise InvalidInput(f"{name} is empty; write at least a word")
    if "\x00" in value:
        raise InvalidInput(f"{name} holds a NUL character at position {value.index(chr(0))}; remove it")
    if is_blank(value):
        raise InvalidInput(f"{name} holds only characters that nobody sees; write at least a word")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        message = f"{name} holds a lone surrogate at position {error.start}; decode the source with errors='replace'"
        raise InvalidInput(message) from error
    if size > max_bytes:
        shown, fix = f"{value[:SHOWN_CHARACTERS]!r}…", "shorten it"
        if name == "content":
            fix = "split it, or store an episode"
        raise InvalidInput(f"{name} has {size:,} bytes, the limit is {max_bytes:,}: {shown}; {fix}")
    return value


def checked_optional(name: str, value: object, *, max_characters: int) -> str | None:
    """Return a short text or None; an empty text counts as none."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and len(value) > max_characters:
        shown = f"{value[:SHOWN_CHARACTERS]!r}…"
        raise InvalidInput(f"{name} has {len(value):,} characters, the limit is {max_characters}: {shown}; shorten it")
    return checked_text(name, value, max_bytes=4 * max_characters)


def checked_names(name: str, values: object) -> list[str]:
    """Return a list of short names (tags, censors)."""

    def checked(each: object) -> str:
        return checked_text(f"an entry of {name}", each, max_bytes=400)

    return checked_list(name, values, checked, most=MAX_NAMES, of=" of names")


def told_as(details: Mapping[str, object], names: Sequence[str]) -> tuple[str, object]:
    """Return the name a value was given under, and the value; raise `InvalidInput` where two names have two values."""
    given = [(name, details[name]) for name in names if details.get(name) is not None]
    for name, value in given[1:]:
        if value != given[0][1]:
            raise InvalidInput(f"{given[0][0]} is {given[0][1]!r}, and {name}, its other name, {value!r}; say it once")
    return given[0] if given else (names[0], None)


def checked_moment(name: str, value: object) -> datetime | None:
    """Return a moment with its time zone, read from a datetime or an ISO 8601 text; None stays None.

    A plain date, as a `date` or as "2026-10-01", is midnight UTC at its beginning.
    """
    if value is None:
        return None
    if isinstance(value, str) and PLAIN_DATE.fullmatch(value):
        value += "T00:00:00Z"
    elif isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidInput(f"{name} {value!r} is no ISO 8601 moment, such as 2026-05-01T09:30:00Z") from error
    if not isinstance(moment, datetime):
        raise InvalidInput(f"{name} must be a moment, got {value!r}")
    if moment.tzinfo is None:
        raise InvalidInput(f"{name} {moment.isoformat()} names no time zone; add one, such as Z for UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(f"{name} {moment.isoformat()} lies outside the years 1 to 9999 of UTC") from error


def checked_said(name: str, value: object, *, now: datetime) -> datetime | None:
    """Return the moment something was said or happened, as `checked_moment` does; refuse one over a day ahead."""
    moment = checked_moment(name, value)
    # One fact dated 2099 would supersede, and stand before, everything learned until then.
    if moment is not None and moment > now + LARGEST_LEAD:
        raise InvalidInput(f"{name} {moment.isoformat()} lies ahead: it is {now:%Y-%m-%d %H:%M} UTC now; mend the date")
    return moment


def checked_whole(name: str, value: object, *, least: int, most: int) -> int:
    # A bool is an int to Python, and `True` as a number is a slip of the caller.
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name} must be a whole number between {least} and {most:,}, got {value!r}")
    return value


def checked_flag(name: str, value: object) -> bool:
    """Return True or False; a text such as "no" is neither."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, got {value!r}")
    return value


def checked_id(name: str, value: object) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError as error:
        raise InvalidInput(f"{name} must be the UUID of a memory, got {value!r}") from error


def checked_ids(name: str, values: object) -> list[UUID]:
    """Return ids of memories, each once, from a list of UUIDs or their texts."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} must be a list of ids, got {values!r}")
    listed = list(islice(cast("Iterable[object]", values), MAX_IDS + 1))
    if len(listed) > MAX_IDS:
        raise InvalidInput(f"{name} has more than {MAX_IDS:,} entries, the limit")
    return list(dict.fromkeys(checked_id(f"an entry of {name}", each) for each in listed))


def checked_list(name: str, values: object, check: Callable[[object], Any], *, most: int, of: str = "") -> list[Any]:
    """Return a list whose entries passed their check."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(f"{name} must be a list{of}, got {values!r}")
    entries = cast("Sequence[object]", values)
    if len(entries) > most:
        raise InvalidInput(f"{name} has {len(entries):,} entries, the limit is {most:,}")
    return [check(entry) for entry in entries]


def checked_decision(name: str, value: object) -> DecisionId:
    """Return the name of a decision: its UUID, or up to 200 characters for one recorded elsewhere."""
    if isinstance(value, UUID):
        return value
    text = checked_optional(name, value, max_characters=200) if isinstance(value, str) else None
    if text is None:
        raise InvalidInput(f"{name} must name a decision, by its id or reference; got {value!r}")
    return decision_of(text)


def checked_limit(value: object) -> int:
    return checked_whole("limit", value, least=1, most=MAX_RECALL_LIMIT)


def checked_choice(name: str, value: object, choices: Sequence[C]) -> C:
    found = next((choice for choice in choices if choice == value), None)
    if found is None:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return found


def checked_agent(value: object) -> str:
    """Return an agent id: a short name that is not empty, and not `*`, which stands for all in the keys of the API."""
    text = checked_optional("agent_id", value, max_characters=100)
    if text is None:
        raise InvalidInput("agent_id is empty; name the agent this memory belongs to")
    if text == ADMINISTRATOR:
        raise InvalidInput(f"agent_id {text!r} is nobody's name: it stands for administrators; name one agent")
    return text


def checked_steps(name: str, values: object) -> list[Any]:
    """Return the steps of a workflow: a name each where it has no detail, else a name with its detail."""

    def checked_step(step: object) -> str | dict[str, str]:
        if isinstance(step, str):
            return checked_text("a step", step, max_bytes=MAX_LINE_BYTES)
        if not isinstance(step, Mapping) or not set(cast("Mapping[object, object]", step)) <= {"name", "detail"}:
            raise InvalidInput(f'a step must be a name or {{"name": …, "detail": …}}, got {step!r}')
        parts = cast("Mapping[str, object]", step)
        step_name = checked_text("the name of a step", parts.get("name"), max_bytes=MAX_LINE_BYTES)
        if parts.get("detail") is None:
            return step_name
        detail = checked_text("the detail of a step", parts["detail"], max_bytes=MAX_LINE_BYTES)
        return {"name": step_name, "detail": detail}

    return checked_list(name, values, checked_step, most=MAX_NAMES)


def checked_template(name: str, value: object) -> Any:
    """Return a template as a JSON object of at most 32 KiB."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be a JSON object, got {value!r}")
    try:
        written = json.dumps(dict(cast("Mapping[str, Any]", value)), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} can't be written as JSON: {error}") from error
    return json.loads(checked_text(name, written, max_bytes=MAX_CONTENT_BYTES))


def checked_hint(name: str, value: object) -> str | None:
    hint = checked_optional(name, value, max_characters=500)
    if hint and len(hint.splitlines()) > 1:
        raise InvalidInput(f"{name} must be one line, got {hint!r}")
    return hint


def checked_artifacts(name: str, values: object) -> tuple[Artifact, ...]:
    """Return artifacts, from pairs of kind and reference."""

    def checked_artifact(value: object) -> Artifact:
        match value:
            case [str() as kind, str() as reference]:
                named = checked_optional("the reference of an artifact", reference, max_characters=200)
            case _:
                named, kind = None, ""
        if named is None:
            raise InvalidInput(f"an artifact is a pair (kind, reference), such as ('commit', '4f3d51d'); got {value!r}")
        return Artifact(checked_choice("the kind of an artifact", kind, ARTIFACT_KINDS), named)

    return tuple(checked_list(name, values, checked_artifact, most=MAX_IDS))


def checked_new_reference(name: str, value: object) -> str | None:
    """Return the reference of a new decision; raise `InvalidInput` for a UUID, which would be taken for an id."""
    reference = checked_optional(name, value, max_characters=200)
    if reference is not None and isinstance(decision_of(reference), UUID):
        raise InvalidInput(f"{name} {reference!r} looks like the id of a decision; use another name")
    return reference


# --- texts as a person sees them ---


def invisible_difference(a: str, b: str) -> str | None:
    """Return why two texts are not the same if one has more invisible characters than the other; None otherwise."""
    difference = abs(len(_INVISIBLE.findall(a)) - len(_INVISIBLE.findall(b)))
    return f"{difference} characters nobody sees" if difference > MOST_INVISIBLE else None


def visible(text: str) -> str:
    """Return a text without control and invisible characters, so that a model reads what a person sees."""
    return text if text.isascii() and text.isprintable() else HIDDEN.sub("", text)


def is_blank(text: str) -> bool:
    """Tell whether a text has no visible character: only white space, invisible ones, or accents without a letter."""
    return all(
        char.isspace() or char in _BLANK_MARKS or unicodedata.category(char) in {"Cc", "Cf", "Mn", "Mc", "Me"}
        for char in without_invisible(text)
    )


def without_invisible(text: str) -> str:
    return _INVISIBLE.sub("", text)


def folded(text: str) -> str:
    """Return a text without case, spacing and the punctuation around its words, for comparing two texts."""
    return " ".join(filter(None, (word.strip(PUNCTUATION) for word in text.casefold().split())))
