"""Signals read into atoms: short texts, each true of many sessions, so that sessions can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from itertools import islice

from nous_online.context.signals import Signals, normal_path
from nous_online.language.pairs.reading import stem

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


def atoms_of(signals: Signals, *, at: datetime) -> tuple[str, ...]:
    """Return the atoms of what was told, the most telling kind first: at most 20, each of at most 300 characters.

    `at` adds its hour in bands of four and its weekday, both as its time zone has them.
    """
    return tuple(dict.fromkeys((*told_atoms(signals), *clock_atoms(at))))


def told_atoms(signals: Signals) -> Iterator[str]:
    """Yield the atoms of what was told, without the clock."""
    if signals.current_file:
        yield from file_atoms(signals.current_file)
    yield from (atom("import", name) for name in signals.imports[:IMPORTS])
    if signals.branch:
        yield atom("branch", signals.branch)
        yield from (atom("word", word) for word in islice(branch_words(signals.branch), BRANCH_WORDS))
    for error in signals.recent_errors[:ERRORS]:
        yield from error_atoms(error)
    yield from (atom("with", spaced(name).casefold()) for name in signals.collaborators[:PEOPLE])
    if signals.activity:
        yield atom("activity", spaced(signals.activity).casefold())


def file_atoms(path: str) -> Iterator[str]:
    """Yield a file, its directory as its module, and the nearest directories above that.

    Upper and lower case are kept: they tell files apart where code is built.
    """
    normal = normal_path(path)
    yield atom("file", str(normal))
    yield from (atom("module", str(folder)) for folder in list(normal.parents)[:FOLDERS] if folder.name)


def branch_words(branch: str) -> Iterator[str]:
    """Yield the stems of the words of a branch name, each once; numbers of tickets and short words say too little."""
    words = (word.casefold() for word in LETTERS.findall(CAMEL.sub(" ", branch)))
    yield from dict.fromkeys(stem(word) for word in words if len(word) >= LEAST_WORD)


def error_atoms(error: str) -> Iterator[str]:
    """Yield the class or code of an error, and the shape of its message, by which errors of one cause agree."""
    line = telling_line(error)
    named = class_or_code(line)
    if named:
        yield atom("error", named[1])
    yield atom("error-shape", error_shape(line))


def telling_line(error: str) -> str:
    """Return the last line that names a class or a code of errors, else the first line of the text."""
    lines = [line.strip()[:LONGEST_LINE] for line in error.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if class_or_code(line)), lines[0])


def class_or_code(line: str) -> re.Match[str] | None:
    """Return where a line names a class of errors, else a code."""
    return ERROR_CLASS.search(line) or ERROR_CODE.search(line)


def error_shape(line: str) -> str:
    """Return a message in small letters, with what is quoted and what is counted cut out."""
    return spaced(NUMBER.sub("#", QUOTED.sub("…", line))).casefold()


def spaced(text: str) -> str:
    """Return a text with single blanks and none around it."""
    return SPACES.sub(" ", text).strip()


def clock_atoms(at: datetime) -> tuple[str, str]:
    """Return the band of hours and the weekday of a moment."""
    begin = at.hour // HOURS_A_BAND * HOURS_A_BAND
    return f"hours:{begin:02d}-{begin + HOURS_A_BAND:02d}", f"weekday:{WEEKDAYS[at.weekday()]}"


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
