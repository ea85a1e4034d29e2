"""What an agent is doing right now: the signals that predictions and contexts start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict


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
