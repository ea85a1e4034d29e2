"""What an agent is doing right now: signals, and the atoms read from them, by which sessions can be compared. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, cast

from nous_online.core.details import SignalDetails
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import checked_details, rows_of
from nous_online.language.pairs.reading import stem

WORD = re.compile(r"[^\W_]+")
LONGEST_ATOM = 300
"""Characters of one atom: what the table of sightings holds."""
FOLDERS = 3
"""The directory of a file and so many less one above it."""
IMPORTS, BRANCH_WORDS, ERRORS, PEOPLE = 3, 3, 2, 2
"""Most of each; with the rest that makes at most 20 atoms, so that one look at the past stays small."""
LEAST_WORD = 3
"""Characters of a word of a branch that says something."""
HOURS_A_BAND = 4
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST_LINE = 500
"""Characters of a line of an error that are read: classes and codes stand near its beginning."""
ERROR_CLASS = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Warning|Interrupt|Failure|Timeout|NotFound)|E[A-Z]{4,})\b")
ERROR_CODE = re.compile(r"\b([A-Z]{1,5}-?\d{3,5})\b")
QUOTED = re.compile(r"""(?:"[^"]*"|'[^']*'|`[^`]*`)""")
NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.:,]\d+)*")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
LETTERS = re.compile(r"[^\W\d_]+")
SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Signals:
    """Checked signals; nothing told is an empty text or none."""

    current_file: str | None = None
    imports: tuple[str, ...] = ()
    branch: str | None = None
    recent_errors: tuple[str, ...] = ()
    activity: str | None = None
    task: str | None = None
    collaborators: tuple[str, ...] = ()


def checked_signals(details: SignalDetails | None) -> Signals:
    """Return what was told of what the agent is doing; blank texts and None count as not told.

    Raises `InvalidInput` for a signal nobody knows, a text that can't be stored or is too long, and a list too long.
    """
    if details is None:
        return Signals()
    if not isinstance(cast("object", details), Mapping):
        raise InvalidInput(f"signals must be named, such as {{'current_file': 'src/login.py'}}; got {details!r}")
    unknown = sorted(str(name) for name in set(details) - set(rows_of(SignalDetails)))
    if unknown:
        raise InvalidInput(f"unknown signal {unknown[0]!r}; known: {', '.join(rows_of(SignalDetails))}")
    values = checked_details(SignalDetails, details)
    told: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if path := told.get("current_file"):
        root = "/" if path.startswith(("/", "\\")) else ""
        told["current_file"] = root + str(normal_path(path)).lstrip("/") or None
    return Signals(**told)


def normal_path(path: str) -> PurePosixPath:
    """Return a path with one kind of slash and without steps that lead nowhere."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in {"", ".", ".."}:
            parts.append(part)
    return PurePosixPath("/".join(parts) or "/")


def file_words(path: str) -> str:
    """Return the words of a path without its ending, for a search by words and meaning."""
    folder, slash, name = path.rpartition("/")
    return " ".join(WORD.findall(f"{folder}{slash}{name.rpartition('.')[0] or name}")) or path


# --- atoms: short texts, each true of many sessions ---


def atoms_of(signals: Signals, *, at: datetime) -> tuple[str, ...]:
    """Return the atoms of what was told, the most telling kind first: at most 20, each of at most 300 characters.

    `at` adds its hour in bands of four and its weekday, both as its time zone has them.
    """
    begin = at.hour // HOURS_A_BAND * HOURS_A_BAND
    clock = (f"hours:{begin:02d}-{begin + HOURS_A_BAND:02d}", f"weekday:{WEEKDAYS[at.weekday()]}")
    return tuple(dict.fromkeys((*signal_atoms(signals), *clock)))


def signal_atoms(signals: Signals) -> Iterator[str]:
    """Yield the atoms of what was told, without the clock.

    Upper and lower case of files are kept: they tell files apart where code is built. Of a branch the stems of its
    words count; numbers of tickets and short words say too little.
    """
    if signals.current_file:
        normal = normal_path(signals.current_file)
        yield atom("file", str(normal))
        yield from (atom("module", str(folder)) for folder in list(normal.parents)[:FOLDERS] if folder.name)
    yield from (atom("import", name) for name in signals.imports[:IMPORTS])
    if signals.branch:
        yield atom("branch", signals.branch)
        words = (word.casefold() for word in LETTERS.findall(CAMEL.sub(" ", signals.branch)))
        stems = dict.fromkeys(stem(word) for word in words if len(word) >= LEAST_WORD)
        yield from (atom("word", word) for word in list(stems)[:BRANCH_WORDS])
    for error in signals.recent_errors[:ERRORS]:
        yield from error_atoms(error)
    yield from (atom("with", spaced(name).casefold()) for name in signals.collaborators[:PEOPLE])
    if signals.activity:
        yield atom("activity", spaced(signals.activity).casefold())


def error_atoms(error: str) -> Iterator[str]:
    """Yield the class or code of an error, and the shape of its message, by which errors of one cause agree.

    Both are those of the last line that names a class or a code, else of the first line of the text.
    """
    lines = [line.strip()[:LONGEST_LINE] for line in error.splitlines() if line.strip()]
    found = [(line, ERROR_CLASS.search(line) or ERROR_CODE.search(line)) for line in lines]
    line, named = next(((line, named) for line, named in reversed(found) if named), found[0])
    if named:
        yield atom("error", named[1])
    yield atom("error-shape", error_shape(line))


def error_shape(line: str) -> str:
    """Return a message in small letters, with what is quoted and what is counted cut out."""
    return spaced(NUMBER.sub("#", QUOTED.sub("…", line))).casefold()


def spaced(text: str) -> str:
    """Return a text with single blanks and none around it."""
    return SPACES.sub(" ", text).strip()


def atom(kind: str, text: str) -> str:
    """Return one atom; of a text too long its beginning and a hash, so that two of them stay two."""
    whole = f"{kind}:{text}"
    if len(whole) <= LONGEST_ATOM:
        return whole
    return f"{whole[: LONGEST_ATOM - 17]}…{sha256(whole.encode()).hexdigest()[:16]}"


def kind_of(found: str) -> str:
    """Return the kind of an atom."""
    return found.partition(":")[0]


def in_words(found: str) -> str:
    """Return what sessions with an atom have in common, such as "with src/auth/login.py open"."""
    kind, _, text = found.partition(":")
    return {
        "file": f"with {text} open",
        "module": f"in {text}",
        "import": f"that import {text}",
        "branch": f"on branch {text}",
        "word": f"on branches about “{text}…”",
        "error": f"that saw {text}",
        "error-shape": f"that saw an error like “{text}”",
        "with": f"with {text}",
        "activity": f"of {text}",
        "hours": f"between {text.replace('-', ' and ')} o'clock",
        "weekday": f"on a {text.capitalize()}",
    }[kind]
