"""What an agent is doing right now: the signals that predictions and contexts start from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypedDict, cast

from nous_online.core.errors import InvalidInput
from nous_online.core.unseen import is_blank
from nous_online.core.validation import checked_text

MAX_NAME_BYTES = 4 * 1024
"""Of one path, module, branch, activity or person."""
MAX_WORDS_BYTES = 16 * 1024
"""Of one task or error, in bytes of UTF-8: the end of a trace says what went wrong."""
MOST_LISTED = 100
"""Imports, errors or people told at once."""
WORD = re.compile(r"[^\W_]+")


class SignalDetails(TypedDict, total=False):
    """Everything that may be told about what the agent is doing."""

    current_file: str | None
    """The file that was opened, as a path from the root of its project."""
    imports: Sequence[str] | None
    """What that file imports; its directory is its module."""
    branch: str | None
    """The branch that was checked out."""
    recent_errors: Sequence[str] | None
    """Texts of errors seen lately, the latest first."""
    activity: str | None
    """What is being done, such as debugging; where no frame is named it is the frame of the budget."""
    task: str | None
    """What is to be achieved, in words."""
    collaborators: Sequence[str] | None
    """Who has joined."""


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
    unknown = sorted(str(name) for name in set(details) - set(SignalDetails.__annotations__))
    if unknown:
        raise InvalidInput(f"unknown signal {unknown[0]!r}; known: {', '.join(SignalDetails.__annotations__)}")
    return Signals(
        current_file=checked_path("current_file", details.get("current_file")),
        imports=checked_several("imports", details.get("imports"), MAX_NAME_BYTES),
        branch=checked_told("branch", details.get("branch"), MAX_NAME_BYTES),
        recent_errors=checked_several("recent_errors", details.get("recent_errors"), MAX_WORDS_BYTES),
        activity=checked_told("activity", details.get("activity"), MAX_NAME_BYTES),
        task=checked_told("task", details.get("task"), MAX_WORDS_BYTES),
        collaborators=checked_several("collaborators", details.get("collaborators"), MAX_NAME_BYTES),
    )


def checked_told(name: str, value: object, max_bytes: int) -> str | None:
    """Return one text without the blanks around it, or None where nothing was told."""
    if value is None or (isinstance(value, str) and is_blank(value)):
        return None
    return checked_text(name, value, max_bytes=max_bytes).strip()


def checked_several(name: str, values: object, max_bytes: int) -> tuple[str, ...]:
    """Return several texts, each once and in the order they were told."""
    if values is None:
        return ()
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(f"{name} must be a list of texts, got {values!r}")
    listed = cast("Sequence[object]", values)
    if len(listed) > MOST_LISTED:
        raise InvalidInput(f"{name} has {len(listed):,} entries, the limit is {MOST_LISTED}; tell the latest")
    told = (checked_told(f"an entry of {name}", each, max_bytes) for each in listed)
    return tuple(dict.fromkeys(text for text in told if text is not None))


def normal_path(path: str) -> PurePosixPath:
    """Return a path with one kind of slash and without steps that lead nowhere."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in {"", ".", ".."}:
            parts.append(part)
    return PurePosixPath("/".join(parts) or "/")


def checked_path(name: str, value: object) -> str | None:
    """Return a path as it is commonly spelled, or None where nothing was told; one that begins at a root stays one."""
    told = checked_told(name, value, MAX_NAME_BYTES) or ""
    root = "/" if told.startswith(("/", "\\")) else ""
    return root + str(normal_path(told)).lstrip("/") or None


def file_words(path: str) -> str:
    """Return the words of a path without its ending, for a search by words and meaning."""
    folder, slash, name = path.rpartition("/")
    return " ".join(WORD.findall(f"{folder}{slash}{name.rpartition('.')[0] or name}")) or path
