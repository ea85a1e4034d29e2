"""What an agent is doing right now: the signals that predictions and contexts start from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.core.field_tables import checked_details, rows_of
from nous_online.core.question_details import SignalDetails

WORD = re.compile(r"[^\W_]+")


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
    told["current_file"] = common_path(told.get("current_file"))
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


def common_path(told: str | None) -> str | None:
    """Return a path as it is commonly spelled, or None where nothing was told; one that begins at a root stays one."""
    if told is None:
        return None
    root = "/" if told.startswith(("/", "\\")) else ""
    return root + str(normal_path(told)).lstrip("/") or None


def file_words(path: str) -> str:
    """Return the words of a path without its ending, for a search by words and meaning."""
    folder, slash, name = path.rpartition("/")
    return " ".join(WORD.findall(f"{folder}{slash}{name.rpartition('.')[0] or name}")) or path
